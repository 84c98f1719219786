//! Parts of message content.

use karat_core::document::{Message, StepCall};
use serde_json::{Map, Value};

use crate::call::{parse_bare_call, parse_call};
use crate::lenient::{first, first_text};
use crate::messages::{collect_text, result_text};

/// One part of a message.
#[derive(Debug)]
pub(crate) enum Part {
    Text(String),
    Reasoning(String),
    Call(StepCall),
    /// A tool result, which becomes a separate message.
    Result(Message),
    /// Images, files and the like.
    Other(Value),
}

const TEXT_TYPES: [&str; 5] = ["text", "input_text", "output_text", "refusal", "summary_text"];
const REASONING_TYPES: [&str; 4] = ["reasoning", "thinking", "redacted_thinking", "reasoning_text"];
const CALL_TYPES: [&str; 10] = [
    "tool_call",
    "tool-call",
    "tool_use",
    "function_call",
    "function",
    "server_tool_call",
    "server_tool_use",
    "mcp_call",
    "mcp_tool_use",
    "custom_tool_call",
];
const RESULT_TYPES: [&str; 8] = [
    "tool_call_response",
    "tool-result",
    "tool_result",
    "function_call_output",
    "function_response",
    "server_tool_call_response",
    "mcp_tool_result",
    "custom_tool_call_output",
];
const OTHER_TYPES: [&str; 13] = [
    "image",
    "image_url",
    "input_image",
    "blob",
    "file",
    "uri",
    "audio",
    "input_audio",
    "document",
    "video",
    "media",
    "input_file",
    "source-url",
];

/// Whether an object is message content rather than a message.
pub(crate) fn is_content(map: &Map<String, Value>) -> bool {
    if map.contains_key("role") || map.contains_key("message") {
        return false;
    }
    if let Some(inner) = map.get("message_content").and_then(Value::as_object) {
        return is_content(inner) || inner.contains_key("text");
    }
    match map.get("type").and_then(Value::as_str) {
        Some(kind) => {
            TEXT_TYPES.contains(&kind)
                || REASONING_TYPES.contains(&kind)
                || CALL_TYPES.contains(&kind)
                || RESULT_TYPES.contains(&kind)
                || OTHER_TYPES.contains(&kind)
                || kind.ends_with("_tool_result")
        }
        None => {
            ["function_call", "functionCall", "function_response", "functionResponse", "toolUse", "toolResult"]
                .iter()
                .any(|name| map.contains_key(*name))
                || parse_bare_call(map).is_some()
                || map.len() <= 2 && map.get("text").is_some_and(Value::is_string)
        }
    }
}

/// Whether an object is a tool result with an id.
pub(crate) fn is_result(map: &Map<String, Value>) -> bool {
    map.get("type").and_then(Value::as_str).is_some_and(|kind| RESULT_TYPES.contains(&kind))
        || ["function_response", "functionResponse", "toolResult"].iter().any(|name| map.contains_key(*name))
}

/// Parses one part.
pub(crate) fn read(value: &Value) -> Part {
    let map = match value {
        Value::String(text) => return Part::Text(text.clone()),
        Value::Object(map) => map,
        other => return Part::Other(other.clone()),
    };
    for wrapper in ["message_content", "tool_call"] {
        if let Some(inner @ Value::Object(_)) = map.get(wrapper) {
            return match (wrapper, parse_call(map)) {
                ("tool_call", Some(call)) => Part::Call(call),
                _ => read(inner),
            };
        }
    }
    let kind = map.get("type").or_else(|| map.get("part_kind")).and_then(Value::as_str).unwrap_or_default();
    if TEXT_TYPES.contains(&kind) {
        return Part::Text(first_text(map, &["refusal"]).map_or_else(|| collect_text(value), str::to_owned));
    }
    if REASONING_TYPES.contains(&kind) {
        let text = first(map, &["content", "text", "thinking", "reasoning", "summary"]).map(collect_text);
        return Part::Reasoning(text.unwrap_or_default());
    }
    if RESULT_TYPES.contains(&kind) || kind.ends_with("_tool_result") {
        return Part::Result(parse_tool_result(map));
    }
    for wrapper in ["function_response", "functionResponse", "toolResult"] {
        if let Some(inner) = map.get(wrapper).and_then(Value::as_object) {
            return Part::Result(parse_tool_result(inner));
        }
    }
    if (CALL_TYPES.contains(&kind) || kind.is_empty())
        && let Some(call) = parse_call(map).filter(|_| !kind.is_empty() || is_call(map))
    {
        return Part::Call(call);
    }
    if kind.is_empty() {
        // Gemini marks reasoning with `thought`.
        if map.get("thought").and_then(Value::as_bool) == Some(true) {
            return Part::Reasoning(collect_text(value));
        }
        if let Some(text) = first_text(map, &["text", "content"]) {
            return Part::Text(text.to_owned());
        }
    }
    Part::Other(value.clone())
}

fn is_call(map: &Map<String, Value>) -> bool {
    ["function_call", "functionCall", "toolUse"].iter().any(|name| map.contains_key(*name))
        || parse_bare_call(map).is_some()
}

/// Parses a tool result.
fn parse_tool_result(map: &Map<String, Value>) -> Message {
    let names = ["response", "result", "output", "content", "value", "server_tool_call_response"];
    let result = first(map, &names).unwrap_or(&Value::Null);
    // The Vercel AI SDK tags results with their type.
    let tagged = result.as_object().filter(|inner| inner.len() <= 3 && inner.contains_key("value"));
    let kind = tagged.and_then(|inner| inner.get("type")).and_then(Value::as_str).unwrap_or_default();
    let is_tagged = matches!(kind, "text" | "json" | "error-text" | "error-json" | "content");
    let inner = tagged.filter(|_| is_tagged).and_then(|inner| inner.get("value")).unwrap_or(result);
    let failed = first(map, &["is_error", "isError"]).and_then(Value::as_bool) == Some(true)
        || map.get("status").and_then(Value::as_str) == Some("error")
        || is_tagged && kind.starts_with("error");
    let id = first_text(map, &["tool_use_id", "tool_call_id", "toolCallId", "toolUseId", "call_id", "id"]);
    Message {
        role: "tool".to_owned(),
        content: result_text(inner),
        name: first_text(map, &["name", "toolName", "tool_name"]).map(str::to_owned),
        tool_call_id: id.map(str::to_owned),
        is_error: failed,
        ..Message::default()
    }
}
