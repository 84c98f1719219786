//! What an agent did with a message: the one shape that is judged, whoever answered.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// An agent's answer and how it came about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    pub response: String,
    /// In the order in which they were made.
    pub tool_calls: Vec<ToolCall>,
    pub usage: Option<Usage>,
    pub model: Option<String>,
    pub stop_reason: Option<String>,
    /// From sending the message to the whole answer; waiting between tries is not in it.
    pub latency_ms: f64,
    /// What a program said beside its answer.
    pub stderr: Option<String>,
    /// What is odd about the answer and no assertion asks for, such as that it was cut off.
    pub warnings: Vec<String>,
}

/// One call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub name: String,
    /// Whether the tool ran without error; absent where the agent does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The arguments that the model passed.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// What the model passed instead, where that is no JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_params: Option<String>,
    /// What the tool answered, where the agent says.
    #[serde(default, deserialize_with = "read_present", skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why the call failed, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What an answer used up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// How many of the input's tokens the provider had in its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// What the answer cost, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Reads a value that is there: null is an answer too.
fn read_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Trace {
    pub fn tool_names(&self) -> Vec<&str> {
        self.tool_calls.iter().map(|call| call.name.as_str()).collect()
    }

    pub fn cost_usd(&self) -> Option<f64> {
        self.usage.as_ref().and_then(|usage| usage.cost_usd)
    }
}
