//! What an agent did with a message: the one shape that is judged, whoever answered.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

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

    /// Returns this trace in the shape that is documented for eval functions: one step, from the message to the final
    /// response. What changes from run to run though the agent did the same, its latency, is not in it.
    pub fn document(&self, id: &str, message: &str) -> Value {
        let about = About {
            response: &self.response,
            tool_calls: &self.tool_calls,
            model: self.model.as_deref(),
            stop_reason: self.stop_reason.as_deref(),
            usage: self.usage.as_ref(),
        };
        Value::Object(about.document(id, message))
    }

    pub fn cost_usd(&self) -> Option<f64> {
        self.usage.as_ref().and_then(|usage| usage.cost_usd)
    }
}

/// What of an answer is in the shape that eval functions are given.
pub(crate) struct About<'a> {
    pub(crate) response: &'a str,
    pub(crate) tool_calls: &'a [ToolCall],
    pub(crate) model: Option<&'a str>,
    pub(crate) stop_reason: Option<&'a str>,
    pub(crate) usage: Option<&'a Usage>,
}

impl About<'_> {
    pub(crate) fn document(&self, id: &str, message: &str) -> Map<String, Value> {
        let mut document = Map::new();
        document.insert("trace_id".to_owned(), Value::from(id));
        let step = json!({
            "input": { "message": message },
            "output": { "response": self.response },
            "tool_calls": self.tool_calls.iter().map(ToolCall::document).collect::<Vec<_>>(),
            "error": null,
        });
        document.insert("steps".to_owned(), json!([step]));
        if let Some(model) = self.model {
            document.insert("model".to_owned(), Value::from(model));
        }
        if let Some(reason) = self.stop_reason {
            document.insert("stop_reason".to_owned(), Value::from(reason));
        }
        if let Some(usage) = self.usage {
            document.insert("usage".to_owned(), usage.document());
        }
        document
    }
}

impl ToolCall {
    fn document(&self) -> Value {
        // A call that failed has an error, so that nobody has to ask twice.
        let failed = || (self.success == Some(false)).then_some("the call failed");
        let mut call = json!({
            "name": self.name,
            "arguments": self.params,
            "result": self.result,
            "error": self.error.as_deref().or_else(failed),
            "success": self.success,
        });
        if let Some(raw) = &self.raw_params {
            call["raw_arguments"] = Value::from(raw.as_str());
        }
        call
    }
}

impl Usage {
    fn document(&self) -> Value {
        json!({
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_input_tokens": self.cached_input_tokens,
            "cost_usd": self.cost_usd,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_the_documented_shape() {
        let call = ToolCall {
            name: "search".to_owned(),
            success: Some(true),
            params: json!({ "q": "rain" }).as_object().cloned().unwrap_or_default(),
            result: Some(json!({ "hits": 2 })),
            ..ToolCall::default()
        };
        let broken = ToolCall {
            name: "find".to_owned(),
            success: Some(false),
            raw_params: Some("{".to_owned()),
            ..ToolCall::default()
        };
        let trace = Trace {
            response: "It rains.".to_owned(),
            tool_calls: vec![call, broken],
            usage: Some(Usage { input_tokens: Some(3), ..Usage::default() }),
            model: Some("m-1".to_owned()),
            latency_ms: 12.0,
            ..Trace::default()
        };
        let expected = json!({
            "trace_id": "gs-x-001",
            "steps": [{
                "input": { "message": "Rain?" },
                "output": { "response": "It rains." },
                "tool_calls": [
                    { "name": "search", "arguments": { "q": "rain" }, "result": { "hits": 2 }, "error": null, "success": true },
                    {
                        "name": "find", "arguments": {}, "result": null, "error": "the call failed", "success": false,
                        "raw_arguments": "{"
                    }
                ],
                "error": null
            }],
            "model": "m-1",
            "usage": { "input_tokens": 3, "output_tokens": null, "cached_input_tokens": null, "cost_usd": null }
        });
        assert_eq!(trace.document("gs-x-001", "Rain?"), expected);
    }

    #[test]
    fn an_empty_trace_has_a_step() {
        let empty = Trace::default().document("a", "");
        assert_eq!(empty["steps"][0]["tool_calls"], json!([]));
        assert_eq!(empty.as_object().map(Map::len), Some(2));
    }
}
