//! What a trace's document says, as importers write it.
//!
//! `trace_id`, `steps` and what is in a step are the contract's names. Everything else is an addition that eval
//! functions may use: additions are never renamed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::trace::Usage;

/// What an agent did in one conversation or one request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceContent {
    pub trace_id: String,
    /// One for each call of a model, by the time at which it began.
    pub steps: Vec<Step>,
    /// What the source calls the trace or its root span.
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
    /// What all steps used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<StepUsage>,
    /// What went wrong outside of all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What else the source says of the whole trace, by its names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// One call of a model, with the tools that it had called.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub input: StepInput,
    pub output: StepOutput,
    pub tool_calls: Vec<StepCall>,
    /// Why the step failed, if it did.
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which agent of several took the step.
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

/// What is new to the model since the step before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepInput {
    /// The text of the newest user message among these; null where there is none.
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// What the source gives as input where that is no messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// What the model said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepOutput {
    /// Its text; empty where it only called tools.
    pub response: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What the source gives as output where that is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// One message of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or `tool`; what else a source says is kept.
    pub role: String,
    pub content: String,
    /// Which tool answers, or which agent speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which call a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The calls that an assistant's message makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<StepCall>,
    /// What is neither text nor a call: images, files and the like, as the source has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Value>,
    /// The tool says that it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// One call of a tool, with what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepCall {
    pub name: String,
    /// An object wherever the source has one, or has its JSON text.
    pub arguments: Value,
    /// Null where nobody says.
    #[serde(default)]
    pub result: Value,
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
}

/// What a step or a trace used up, by the names that traces of runs have.
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
    /// Adds what another step used; what neither says stays unknown.
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
    /// Returns the JSON text that is kept and judged: the same document gives the same bytes.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_has_the_contracts_names() {
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
        assert_eq!(serde_json::from_str::<Value>(&document.to_text()).expect("JSON"), expected);
        assert_eq!(serde_json::from_value::<TraceContent>(expected).expect("a document"), document);
    }

    #[test]
    fn unknown_usage_stays_unknown() {
        let mut sum = StepUsage { input_tokens: Some(3), ..StepUsage::default() };
        sum.add(&StepUsage { input_tokens: Some(4), cost_usd: Some(0.5), ..StepUsage::default() });
        assert_eq!(sum, StepUsage { input_tokens: Some(7), cost_usd: Some(0.5), ..StepUsage::default() });
    }
}
