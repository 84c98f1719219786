//! Converts an agent's JSON reply to a trace.

use karat_core::trace::{ToolCall, Trace, Usage};
use karat_json::text::shorten;
use karat_json::{ObjectReader, Path, Problems, parse, read_pointer, type_name, without_bom};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Keys that agents use for their tool calls.
const CALL_KEYS: [&str; 6] = ["tool_calls", "toolcalls", "tools", "steps", "intermediate_steps", "intermediateSteps"];
/// Keys that agents use for their text.
const TEXT_KEYS: [&str; 5] = ["output", "text", "message", "content", "answer"];

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
            None => {
                let hint = near_key(reply, &TEXT_KEYS).map_or_else(String::new, |key| {
                    format!(": it has '{key}', which 'agent.response.response' can point to")
                });
                return Err(format!("the reply has no text at '{}'{hint}", self.response));
            }
        };
        let mut warnings = Vec::new();
        let tool_calls = match non_null(reply, &self.tool_calls) {
            None => {
                if let Some(key) = near_key(reply, &CALL_KEYS) {
                    warnings.push(format!(
                        "the reply has '{key}' but no '{}', so no tool call was read: set 'agent.response.toolCalls'",
                        self.tool_calls.trim_start_matches('/')
                    ));
                }
                Vec::new()
            }
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
            usage: non_null(reply, &self.usage).and_then(|usage| read_usage(usage, &mut warnings)),
            model: non_null(reply, &self.model).and_then(Value::as_str).map(str::to_owned),
            warnings,
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
            Some(Value::String(name)) if name.is_empty() => {
                return Err(format!("has an empty name at '{}'", self.name));
            }
            Some(Value::String(name)) => name.clone(),
            _ => return Err(format!("has no name at '{}'", self.name)),
        };
        let params = match non_null(call, &self.params) {
            None => Map::new(),
            Some(Value::Object(params)) => params.clone(),
            // Models write no arguments as an empty text.
            Some(Value::String(text)) if text.trim().is_empty() => Map::new(),
            Some(Value::String(text)) => match parse(text) {
                Ok(Value::Object(params)) => params,
                _ => return Err(format!("('{name}') has arguments that are not a JSON object")),
            },
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
            duration_ms: non_null(call, &self.duration_ms).and_then(Value::as_f64).filter(|millis| *millis >= 0.0),
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

/// Returns the first of the keys that the reply has.
fn near_key<'k>(reply: &Value, keys: &[&'k str]) -> Option<&'k str> {
    keys.iter().copied().find(|key| reply.get(key).is_some_and(|value| !value.is_null()))
}

/// Parses the body of a reply; a duplicate key is an error, since it is unclear which one counts.
pub(crate) fn parse_reply(body: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(without_bom(body)).map_err(|error| error.to_string())?;
    parse(text).map_err(|error| error.describe(text))
}

/// Reads token counts and the cost under any of the common names. Values that cannot be right count as absent.
fn read_usage(usage: &Value, warnings: &mut Vec<String>) -> Option<Usage> {
    let mut find = |names: &[&str], is_valid: fn(&Value) -> bool| {
        let (name, value) = names.iter().find_map(|name| Some((name, non_null(usage, &format!("/{name}"))?)))?;
        if is_valid(value) {
            return Some(value);
        }
        warnings
            .push(format!("the reply's '{name}' is ignored: {} is not a valid value", shorten(&value.to_string(), 60)));
        None
    };
    let is_count: fn(&Value) -> bool = Value::is_u64;
    let is_cost: fn(&Value) -> bool = |value| value.as_f64().is_some_and(|cost| cost >= 0.0);
    let usage = Usage {
        input_tokens: find(&["inputTokens", "input_tokens", "promptTokens", "prompt_tokens"], is_count)
            .and_then(Value::as_u64),
        output_tokens: find(&["outputTokens", "output_tokens", "completionTokens", "completion_tokens"], is_count)
            .and_then(Value::as_u64),
        cost_usd: find(&["costUsd", "cost_usd"], is_cost).and_then(Value::as_f64),
        ..Usage::default()
    };
    (usage != Usage::default()).then_some(usage)
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
    fn says_which_near_miss_keys_were_not_read() {
        let map = ResponseMap::default();
        let trace = map.parse_trace(&json!({"response": "hi", "tool_calls": []})).expect("valid");
        let warning = "the reply has 'tool_calls' but no 'toolCalls', so no tool call was read: set \
                       'agent.response.toolCalls'";
        assert_eq!(trace.warnings, [warning]);
        let told = map.parse_trace(&json!({"response": "hi", "toolCalls": [], "tools": [1]})).expect("valid");
        assert_eq!(told.warnings, Vec::<String>::new());
        let error = map.parse_trace(&json!({"output": "hi"})).expect_err("no text");
        assert_eq!(
            error,
            "the reply has no text at '/response': it has 'output', which 'agent.response.response' can point to"
        );
    }

    #[test]
    fn ignores_impossible_usage() {
        let map = ResponseMap::default();
        let reply = json!({"response": "", "usage": {"inputTokens": -3, "outputTokens": 4, "costUsd": -500}});
        let trace = map.parse_trace(&reply).expect("valid");
        assert_eq!(trace.usage, Some(Usage { output_tokens: Some(4), ..Usage::default() }));
        assert_eq!(
            trace.warnings,
            [
                "the reply's 'inputTokens' is ignored: -3 is not a valid value",
                "the reply's 'costUsd' is ignored: -500 is not a valid value",
            ]
        );
        let text = json!({"response": "", "usage": {"costUsd": "NaN"}});
        assert_eq!(map.parse_trace(&text).expect("valid").usage, None);
    }

    #[test]
    fn reads_bodies_strictly() {
        let text = "\u{feff}{\"id\": 12345678901234567890123}";
        assert_eq!(parse_reply(text.as_bytes()).expect("JSON").to_string(), "{\"id\":12345678901234567890123}");
        let error = parse_reply(b"{\"a\": 1, \"a\": 2}").expect_err("a duplicate key");
        assert_eq!(error, "duplicate key 'a' at line 1 column 10");
    }

    #[test]
    fn an_empty_text_means_no_arguments() {
        let reply = json!({"response": "", "toolCalls": [{"name": "t", "params": ""}]});
        let trace = ResponseMap::default().parse_trace(&reply).expect("valid");
        assert!(trace.tool_calls[0].params.is_empty());
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
                json!({"response": "", "toolCalls": [{"name": ""}]}),
                "tool call 0 of the reply has an empty name at '/name'",
            ),
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
