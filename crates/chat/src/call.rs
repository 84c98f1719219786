//! Tool calls in messages.

use karat_core::document::StepCall;
use serde_json::{Map, Value};

use crate::lenient::{first, first_text, parse_nested, unpack_owned};

/// Parses arguments: an object, or a string that contains it as JSON.
pub fn parse_arguments(value: Option<&Value>) -> Value {
    match value {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
        Some(other) => unpack_owned(other),
    }
}

/// Parses a call in any known shape. Returns `None` if the object has no tool name.
pub(crate) fn parse_call(map: &Map<String, Value>) -> Option<StepCall> {
    for wrapper in ["tool_call", "function_call", "functionCall", "toolUse"] {
        if let Some(inner) = map.get(wrapper).and_then(Value::as_object) {
            return parse_call(inner);
        }
    }
    // OpenAI's custom tools take a string.
    let function = map.get("function").or_else(|| map.get("custom")).and_then(Value::as_object).unwrap_or(map);
    // Inspect writes the tool's name as `function`.
    let name =
        first_text(function, &["name", "tool_name", "toolName"]).or_else(|| first_text(map, &["name", "function"]))?;
    // In the Responses API, `id` is the id of the item and `call_id` that of the call.
    let id = first_text(map, &["call_id", "tool_call_id", "toolCallId", "toolUseId", "id"]);
    let arguments = first(function, &["arguments", "args", "input", "parameters"])
        .or_else(|| first(map, &["arguments", "args", "input", "parameters", "server_tool_call"]));
    Some(StepCall {
        name: name.to_owned(),
        arguments: parse_arguments(arguments),
        id: id.map(str::to_owned),
        ..StepCall::default()
    })
}

/// Parses text that is a JSON list of calls: some frameworks write answers without text this way.
pub(crate) fn parse_calls_text(text: &str) -> Option<Vec<StepCall>> {
    if !text.trim_start().starts_with("[{") {
        return None;
    }
    let Some(Value::Array(items)) = parse_nested(text) else { return None };
    let calls: Option<Vec<StepCall>> = items.iter().map(|item| parse_bare_call(item.as_object()?)).collect();
    calls.filter(|calls| !calls.is_empty())
}

/// Parses an object that must be a call. A name is not enough: tool definitions have one too.
pub(crate) fn parse_bare_call(map: &Map<String, Value>) -> Option<StepCall> {
    let has_arguments = |function: &Value| function.get("name").is_some() && function.get("arguments").is_some();
    let is_call = map.get("function").is_some_and(has_arguments)
        || map.contains_key("toolCallId") && map.contains_key("toolName") && !map.contains_key("result");
    is_call.then(|| parse_call(map)).flatten()
}
