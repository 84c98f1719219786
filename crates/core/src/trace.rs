//! An agent's answer to one message. All kinds of agents are judged by this form.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The stop reason of a loop that ended because the model still called tools in its last turn.
pub const MAX_TURNS_REACHED: &str = "maxTurns";

/// An agent's answer and the tool calls that led to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    pub response: String,
    /// In the order in which they were made.
    pub tool_calls: Vec<ToolCall>,
    /// Number of model calls; `None` if the agent does not report them.
    pub steps: Option<u64>,
    pub usage: Option<Usage>,
    pub model: Option<String>,
    pub stop_reason: Option<String>,
    /// From sending the message to the complete answer, without delays between retries.
    pub latency_ms: f64,
    /// From sending the message to the first text of the answer; known only for streams.
    pub first_token_ms: Option<f64>,
    /// Whether the agent does not report its tool calls. `tool_calls` is then empty, even if tools were called.
    pub calls_unreported: bool,
    /// Standard error of an agent that is a program.
    pub stderr: Option<String>,
    /// Oddities of the answer that no assertion covers, such as truncation.
    pub warnings: Vec<String>,
}

/// One call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub name: String,
    /// Whether the tool ran without error; absent if the agent does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The arguments that the model passed.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// The arguments as the model wrote them, if they are not a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_params: Option<String>,
    /// The result of the tool, if the agent reports it.
    #[serde(default, deserialize_with = "read_present", skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why the call failed, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model call in which the call was made, from 0; absent if the agent does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
}

/// Tokens and cost of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Input tokens that the provider read from its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// The cost of the answer, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Distinguishes an explicit null from an absent value.
fn read_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Trace {
    pub fn tool_names(&self) -> Vec<&str> {
        self.tool_calls.iter().map(|call| call.name.as_str()).collect()
    }

    /// Adds the standard error of a program, unless it is empty.
    #[must_use]
    pub fn with_stderr(self, stderr: String) -> Self {
        Self { stderr: Some(stderr).filter(|text| !text.is_empty()), ..self }
    }

    pub fn cost_usd(&self) -> Option<f64> {
        self.usage.as_ref().and_then(|usage| usage.cost_usd)
    }
}

impl Usage {
    /// Adds another usage. A count that either lacks is unknown in the sum, except for cached tokens, which providers
    /// often leave out when there are none.
    #[must_use]
    pub fn plus(&self, other: &Usage) -> Usage {
        let both =
            |left: Option<u64>, right: Option<u64>| left.zip(right).map(|(left, right)| left.saturating_add(right));
        let cached_input_tokens = match (self.cached_input_tokens, other.cached_input_tokens) {
            (None, None) => None,
            (left, right) => Some(left.unwrap_or(0).saturating_add(right.unwrap_or(0))),
        };
        Usage {
            input_tokens: both(self.input_tokens, other.input_tokens),
            output_tokens: both(self.output_tokens, other.output_tokens),
            cached_input_tokens,
            cost_usd: self.cost_usd.zip(other.cost_usd).map(|(left, right)| left + right),
        }
    }
}

impl ToolCall {
    /// Returns the error of a failed call. Every failed call has one, so that eval functions check only one member.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.error.as_deref().or_else(|| (self.success == Some(false)).then_some("the call failed"))
    }
}
