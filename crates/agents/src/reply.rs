//! Converts an agent's JSON reply to a trace.

use karat_core::trace::{ToolCall, Trace, Usage};
use karat_json::{ObjectReader, Path, Problems, read_string, type_name};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// JSON pointers to the parts of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResponseMap {
    /// The agent's text.
    pub response: String,
    /// The list of tool calls; optional in a reply.
    pub tool_calls: String,
    /// JSON pointers to the parts of each tool call, relative to the call.
    pub tool_call: ToolCallMap,
    /// Usage: `inputTokens`, `outputTokens`, `costUsd`.
    pub usage: String,
    pub model: String,
}

/// JSON pointers to the parts of a tool call, relative to the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolCallMap {
    pub name: String,
    /// An object, or a string that contains one as JSON.
    pub params: String,
    pub success: String,
    pub duration_ms: String,
    pub result: String,
}

impl Default for ResponseMap {
    fn default() -> Self {
        Self {
            response: "/response".to_owned(),
            tool_calls: "/toolCalls".to_owned(),
            tool_call: ToolCallMap::default(),
            usage: "/usage".to_owned(),
            model: "/model".to_owned(),
        }
    }
}

impl Default for ToolCallMap {
    fn default() -> Self {
        Self {
            name: "/name".to_owned(),
            params: "/params".to_owned(),
            success: "/success".to_owned(),
            duration_ms: "/durationMs".to_owned(),
            result: "/result".to_owned(),
        }
    }
}

impl ResponseMap {
    pub(crate) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let default = Self::default();
        let map = Self {
            response: object.nullable("response", path, problems, read_pointer).unwrap_or(default.response),
            tool_calls: object.nullable("toolCalls", path, problems, read_pointer).unwrap_or(default.tool_calls),
            tool_call: object.nullable("toolCall", path, problems, ToolCallMap::read).unwrap_or_default(),
            usage: object.nullable("usage", path, problems, read_pointer).unwrap_or(default.usage),
            model: object.nullable("model", path, problems, read_pointer).unwrap_or(default.model),
        };
        object.close(path, problems);
        Some(map)
    }

    /// Converts a reply to a trace; the error says which part is missing or invalid.
    pub(crate) fn parse_trace(&self, reply: &Value) -> Result<Trace, String> {
        let response = match reply.pointer(&self.response) {
            Some(Value::String(text)) => text.clone(),
            // An agent that only calls tools may have no text.
            Some(Value::Null) if non_null(reply, &self.tool_calls).is_some() => String::new(),
            Some(other) => return Err(format!("the reply's text at '{}' is {}", self.response, type_name(other))),
            None => return Err(format!("the reply has no text at '{}'", self.response)),
        };
        let tool_calls = match non_null(reply, &self.tool_calls) {
            None => Vec::new(),
            Some(Value::Array(calls)) => calls
                .iter()
                .enumerate()
                .map(|(index, call)| {
                    self.tool_call
                        .read_call(call)
                        .map_err(|problem| format!("tool call {index} of the reply {problem}"))
                })
                .collect::<Result<_, _>>()?,
            Some(other) => {
                return Err(format!("the reply's '{}' is {}, not an array", self.tool_calls, type_name(other)));
            }
        };
        Ok(Trace {
            response,
            tool_calls,
            usage: non_null(reply, &self.usage).and_then(read_usage),
            model: non_null(reply, &self.model).and_then(Value::as_str).map(str::to_owned),
            ..Trace::default()
        })
    }
}

impl ToolCallMap {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let default = Self::default();
        let map = Self {
            name: object.nullable("name", path, problems, read_pointer).unwrap_or(default.name),
            params: object.nullable("params", path, problems, read_pointer).unwrap_or(default.params),
            success: object.nullable("success", path, problems, read_pointer).unwrap_or(default.success),
            duration_ms: object.nullable("durationMs", path, problems, read_pointer).unwrap_or(default.duration_ms),
            result: object.nullable("result", path, problems, read_pointer).unwrap_or(default.result),
        };
        object.close(path, problems);
        Some(map)
    }

    fn read_call(&self, call: &Value) -> Result<ToolCall, String> {
        let name = match call.pointer(&self.name) {
            Some(Value::String(name)) => name.clone(),
            _ => return Err(format!("has no name at '{}'", self.name)),
        };
        let params = match non_null(call, &self.params) {
            None => Map::new(),
            Some(Value::Object(params)) => params.clone(),
            Some(Value::String(text)) => serde_json::from_str(text)
                .map_err(|_| format!("('{name}') has arguments that are not a JSON object"))?,
            Some(other) => {
                return Err(format!("('{name}') has arguments that are {}, not an object", type_name(other)));
            }
        };
        let success = match non_null(call, &self.success) {
            None => None,
            Some(Value::Bool(success)) => Some(*success),
            Some(other) => return Err(format!("('{name}') has a 'success' that is {}", type_name(other))),
        };
        Ok(ToolCall {
            success,
            duration_ms: non_null(call, &self.duration_ms).and_then(Value::as_f64),
            params,
            result: call.pointer(&self.result).cloned(),
            name,
            ..ToolCall::default()
        })
    }
}

/// Returns the value at a pointer; null counts as absent.
fn non_null<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    value.pointer(pointer).filter(|found| !found.is_null())
}

/// Reads token counts under any of the common names.
fn read_usage(usage: &Value) -> Option<Usage> {
    let count = |names: &[&str]| names.iter().find_map(|name| usage.get(name)?.as_u64());
    let usage = Usage {
        input_tokens: count(&["inputTokens", "input_tokens", "promptTokens", "prompt_tokens"]),
        output_tokens: count(&["outputTokens", "output_tokens", "completionTokens", "completion_tokens"]),
        cost_usd: ["costUsd", "cost_usd"].iter().find_map(|name| usage.get(name)?.as_f64()),
        ..Usage::default()
    };
    (usage != Usage::default()).then_some(usage)
}

pub(crate) fn read_pointer(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    let pointer = read_string(value, path, problems)?;
    if pointer.is_empty() || pointer.starts_with('/') {
        return Some(pointer);
    }
    problems.at(path, format!("{} must be a JSON pointer that starts with '/'", path.name()));
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_parts_at_configured_pointers() {
        let map = ResponseMap {
            response: "/output/0/text".to_owned(),
            tool_calls: "/steps".to_owned(),
            tool_call: ToolCallMap {
                name: "/function/name".to_owned(),
                params: "/function/arguments".to_owned(),
                ..ToolCallMap::default()
            },
            usage: "/usage".to_owned(),
            model: "/model".to_owned(),
        };
        let reply = json!({
            "output": [{"text": "hi"}], "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 4},
            "steps": [{"function": {"name": "t", "arguments": "{\"a\": 1}"}, "result": null}],
        });
        let trace = map.parse_trace(&reply).expect("the reply is valid");
        assert_eq!((trace.response.as_str(), trace.tool_names()), ("hi", vec!["t"]));
        assert_eq!(trace.tool_calls[0].params["a"], 1);
        assert_eq!(trace.tool_calls[0].result, Some(Value::Null));
        assert_eq!(trace.usage.expect("usage is given").output_tokens, Some(4));
    }

    #[test]
    fn reports_invalid_parts() {
        let map = ResponseMap::default();
        for (reply, message) in [
            (json!([]), "the reply has no text at '/response'"),
            (json!({"response": null}), "the reply's text at '/response' is null"),
            (json!({"response": "", "toolCalls": {}}), "the reply's '/toolCalls' is an object, not an array"),
            (json!({"response": "", "toolCalls": [{}]}), "tool call 0 of the reply has no name at '/name'"),
            (
                json!({"response": "", "toolCalls": [{"name": "t", "params": "x"}]}),
                "tool call 0 of the reply ('t') has arguments that are not a JSON object",
            ),
            (
                json!({"response": "", "toolCalls": [{"name": "t", "success": "yes"}]}),
                "tool call 0 of the reply ('t') has a 'success' that is a string",
            ),
        ] {
            assert_eq!(map.parse_trace(&reply).expect_err("the reply is invalid"), message);
        }
    }
}
