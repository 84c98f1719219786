//! Calls of tools within messages.

use karat_core::document::StepCall;
use serde_json::{Map, Value};

use crate::json::{first, first_text, parsed, unpacked_copy};

/// Returns the arguments as an object wherever they are one or are the JSON text of one.
pub(crate) fn arguments_of(value: Option<&Value>) -> Value {
    match value {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
        Some(other) => unpacked_copy(other),
    }
}

/// Reads a call in any of its shapes; nothing where the object names no tool.
pub(crate) fn call_of(map: &Map<String, Value>) -> Option<StepCall> {
    for wrapper in ["tool_call", "function_call", "functionCall", "toolUse"] {
        if let Some(inner) = map.get(wrapper).and_then(Value::as_object) {
            return call_of(inner);
        }
    }
    let function = map.get("function").and_then(Value::as_object).unwrap_or(map);
    let name = first_text(function, &["name", "tool_name", "toolName"]).or_else(|| first_text(map, &["name"]))?;
    // `id` of a Responses item is the item's; the call's is beside it.
    let id = first_text(map, &["call_id", "tool_call_id", "toolCallId", "toolUseId", "id"]);
    let arguments = first(function, &["arguments", "args", "input", "parameters"])
        .or_else(|| first(map, &["arguments", "args", "input", "parameters", "server_tool_call"]));
    Some(StepCall {
        name: name.to_owned(),
        arguments: arguments_of(arguments),
        id: id.map(str::to_owned),
        ..StepCall::default()
    })
}

/// Reads a text that is nothing but the JSON of calls: some frameworks write an answer that only calls tools so.
pub(crate) fn calls_of_text(text: &str) -> Option<Vec<StepCall>> {
    if !text.trim_start().starts_with("[{") {
        return None;
    }
    let Some(Value::Array(items)) = parsed(text) else { return None };
    let calls: Option<Vec<StepCall>> = items.iter().map(|item| bare_call(item.as_object()?)).collect();
    calls.filter(|calls| !calls.is_empty())
}

/// Reads an object that can be nothing but a call. A name alone is not enough: the definition of a tool has one too.
pub(crate) fn bare_call(map: &Map<String, Value>) -> Option<StepCall> {
    let calls = |function: &Value| function.get("name").is_some() && function.get("arguments").is_some();
    let is_call = map.get("function").is_some_and(calls)
        || map.contains_key("toolCallId") && map.contains_key("toolName") && !map.contains_key("result");
    is_call.then(|| call_of(map)).flatten()
}
