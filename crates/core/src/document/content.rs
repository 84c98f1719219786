//! The content of a trace document, as importers write it.
//!
//! Eval functions use these members, so they are never renamed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::trace::Usage;

/// The trace of one conversation or request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceContent {
    pub trace_id: String,
    /// One per model call, in order of start time.
    pub steps: Vec<Step>,
    /// The source's name for the trace or its root span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The model of the last step that names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The sum over all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<StepUsage>,
    /// An error outside the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Other properties of the trace, with the source's names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// One model call, with the tool calls it led to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub input: StepInput,
    pub output: StepOutput,
    pub tool_calls: Vec<StepCall>,
    /// Why the step failed, if it did.
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent that took the step, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<StepUsage>,
}

/// The input that is new since the previous step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepInput {
    /// The text of the last user message; null if there is none.
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// The input, if it does not consist of messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// The output of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepOutput {
    /// The text; empty if the model only called tools.
    pub response: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The output, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// One message of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or `tool`; other roles are kept as given.
    pub role: String,
    pub content: String,
    /// The tool or agent that sent the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The calls that an assistant message makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<StepCall>,
    /// Parts that are neither text nor calls, such as images and files, unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Value>,
    /// Whether the tool reported a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// One tool call, with its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepCall {
    pub name: String,
    /// An object if the source has one, or has its JSON text.
    pub arguments: Value,
    /// Null if unknown.
    #[serde(default)]
    pub result: Value,
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
}

/// Tokens and cost of a step or a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StepUsage {
    #[serde(default)]
    pub input_tokens: Option<u64>,
    #[serde(default)]
    pub output_tokens: Option<u64>,
    #[serde(default)]
    pub cached_input_tokens: Option<u64>,
    #[serde(default)]
    pub cost_usd: Option<f64>,
}

impl From<&Usage> for StepUsage {
    fn from(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            cost_usd: usage.cost_usd,
        }
    }
}

impl StepUsage {
    /// Adds the usage of another step; a value that both lack stays unknown.
    pub fn add(&mut self, other: &Self) {
        let sum = |left: Option<u64>, right: Option<u64>| match (left, right) {
            (Some(left), Some(right)) => Some(left.saturating_add(right)),
            (known, None) | (None, known) => known,
        };
        self.input_tokens = sum(self.input_tokens, other.input_tokens);
        self.output_tokens = sum(self.output_tokens, other.output_tokens);
        self.cached_input_tokens = sum(self.cached_input_tokens, other.cached_input_tokens);
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(left), Some(right)) => Some(left + right),
            (known, None) | (None, known) => known,
        };
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl TraceContent {
    /// Returns the JSON text that is stored and judged; deterministic.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn serializes_with_the_documented_names() {
        let call = StepCall { name: "search".to_owned(), arguments: json!({"q": "rain"}), ..StepCall::default() };
        let step = Step {
            input: StepInput { message: Some("Rain?".to_owned()), ..StepInput::default() },
            output: StepOutput { response: "Yes".to_owned(), ..StepOutput::default() },
            tool_calls: vec![call],
            ..Step::default()
        };
        let document = TraceContent { trace_id: "t".to_owned(), steps: vec![step], ..TraceContent::default() };
        let expected = json!({
            "trace_id": "t",
            "steps": [{
                "input": { "message": "Rain?" },
                "output": { "response": "Yes" },
                "tool_calls": [{ "name": "search", "arguments": { "q": "rain" }, "result": null, "error": null }],
                "error": null
            }]
        });
        assert_eq!(serde_json::from_str::<Value>(&document.to_text()).expect("valid JSON"), expected);
        assert_eq!(serde_json::from_value::<TraceContent>(expected).expect("valid document"), document);
    }

    #[test]
    fn adding_usage_preserves_unknown_values() {
        let mut sum = StepUsage { input_tokens: Some(3), ..StepUsage::default() };
        sum.add(&StepUsage { input_tokens: Some(4), cost_usd: Some(0.5), ..StepUsage::default() });
        assert_eq!(sum, StepUsage { input_tokens: Some(7), cost_usd: Some(0.5), ..StepUsage::default() });
    }
}
