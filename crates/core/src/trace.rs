//! An agent's answer to one message, in the one form that is judged for every kind of agent.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

/// An agent's answer and the tool calls that led to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    pub response: String,
    /// In the order in which they were made.
    pub tool_calls: Vec<ToolCall>,
    pub usage: Option<Usage>,
    pub model: Option<String>,
    pub stop_reason: Option<String>,
    /// From sending the message to the complete answer, without delays between retries.
    pub latency_ms: f64,
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
    /// What the tool returned, if the agent reports it.
    #[serde(default, deserialize_with = "read_present", skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why the call failed, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
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

/// Keeps an explicit null apart from an absent value.
fn read_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Trace {
    pub fn tool_names(&self) -> Vec<&str> {
        self.tool_calls.iter().map(|call| call.name.as_str()).collect()
    }

    /// Returns this trace as a trace document with one step, from the message to the final response. Latency is left
    /// out, since it differs between runs in which the agent does the same.
    pub fn document(&self, id: &str, message: &str) -> Value {
        let parts = AnswerParts {
            response: &self.response,
            tool_calls: &self.tool_calls,
            model: self.model.as_deref(),
            stop_reason: self.stop_reason.as_deref(),
            usage: self.usage.as_ref(),
        };
        Value::Object(parts.document(id, message))
    }

    pub fn cost_usd(&self) -> Option<f64> {
        self.usage.as_ref().and_then(|usage| usage.cost_usd)
    }
}

/// The parts of an answer that go into its trace document.
pub(crate) struct AnswerParts<'a> {
    pub(crate) response: &'a str,
    pub(crate) tool_calls: &'a [ToolCall],
    pub(crate) model: Option<&'a str>,
    pub(crate) stop_reason: Option<&'a str>,
    pub(crate) usage: Option<&'a Usage>,
}

impl AnswerParts<'_> {
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
        // A failed call always has an error, so that eval functions need to check only one member.
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
    fn an_empty_trace_has_one_step() {
        let empty = Trace::default().document("a", "");
        assert_eq!(empty["steps"][0]["tool_calls"], json!([]));
        assert_eq!(empty.as_object().map(Map::len), Some(2));
    }
}
