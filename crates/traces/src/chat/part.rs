//! The parts of a message's content.

use karat_core::document::{Message, StepCall};
use serde_json::{Map, Value};

use super::call::{bare_call, call_of};
use super::{result_text, text_within};
use crate::json::{first, first_text};

/// What one part of a message is.
#[derive(Debug)]
pub(super) enum Part {
    Text(String),
    Reasoning(String),
    Call(StepCall),
    /// A tool's answer, which is a message of its own.
    Result(Message),
    /// Images, files and the like.
    Other(Value),
}

const TEXT: [&str; 5] = ["text", "input_text", "output_text", "refusal", "summary_text"];
const REASONING: [&str; 4] = ["reasoning", "thinking", "redacted_thinking", "reasoning_text"];
const CALLS: [&str; 10] = [
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
const RESULTS: [&str; 8] = [
    "tool_call_response",
    "tool-result",
    "tool_result",
    "function_call_output",
    "function_response",
    "server_tool_call_response",
    "mcp_tool_result",
    "custom_tool_call_output",
];
const OTHERS: [&str; 13] = [
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

/// Tells whether an object is content of a message rather than a message.
pub(super) fn is_content(map: &Map<String, Value>) -> bool {
    if map.contains_key("role") || map.contains_key("message") {
        return false;
    }
    if let Some(inner) = map.get("message_content").and_then(Value::as_object) {
        return is_content(inner) || inner.contains_key("text");
    }
    match map.get("type").and_then(Value::as_str) {
        Some(kind) => {
            TEXT.contains(&kind)
                || REASONING.contains(&kind)
                || CALLS.contains(&kind)
                || RESULTS.contains(&kind)
                || OTHERS.contains(&kind)
                || kind.ends_with("_tool_result")
        }
        None => {
            ["function_call", "functionCall", "function_response", "functionResponse", "toolUse", "toolResult"]
                .iter()
                .any(|name| map.contains_key(*name))
                || bare_call(map).is_some()
                || map.len() <= 2 && map.get("text").is_some_and(Value::is_string)
        }
    }
}

/// Tells whether an object is a tool's answer with its own id around it.
pub(super) fn is_result(map: &Map<String, Value>) -> bool {
    map.get("type").and_then(Value::as_str).is_some_and(|kind| RESULTS.contains(&kind))
        || ["function_response", "functionResponse", "toolResult"].iter().any(|name| map.contains_key(*name))
}

/// Reads one part.
pub(super) fn read(value: &Value) -> Part {
    let map = match value {
        Value::String(text) => return Part::Text(text.clone()),
        Value::Object(map) => map,
        other => return Part::Other(other.clone()),
    };
    for wrapper in ["message_content", "tool_call"] {
        if let Some(inner @ Value::Object(_)) = map.get(wrapper) {
            return match (wrapper, call_of(map)) {
                ("tool_call", Some(call)) => Part::Call(call),
                _ => read(inner),
            };
        }
    }
    let kind = map.get("type").or_else(|| map.get("part_kind")).and_then(Value::as_str).unwrap_or_default();
    if TEXT.contains(&kind) {
        return Part::Text(first_text(map, &["refusal"]).map_or_else(|| text_within(value), str::to_owned));
    }
    if REASONING.contains(&kind) {
        let text = first(map, &["content", "text", "thinking", "reasoning", "summary"]).map(text_within);
        return Part::Reasoning(text.unwrap_or_default());
    }
    if RESULTS.contains(&kind) || kind.ends_with("_tool_result") {
        return Part::Result(result(map));
    }
    for wrapper in ["function_response", "functionResponse", "toolResult"] {
        if let Some(inner) = map.get(wrapper).and_then(Value::as_object) {
            return Part::Result(result(inner));
        }
    }
    if (CALLS.contains(&kind) || kind.is_empty())
        && let Some(call) = call_of(map).filter(|_| !kind.is_empty() || names_a_call(map))
    {
        return Part::Call(call);
    }
    if kind.is_empty() {
        // Gemini marks its thoughts.
        if map.get("thought").and_then(Value::as_bool) == Some(true) {
            return Part::Reasoning(text_within(value));
        }
        if let Some(text) = first_text(map, &["text", "content"]) {
            return Part::Text(text.to_owned());
        }
    }
    Part::Other(value.clone())
}

fn names_a_call(map: &Map<String, Value>) -> bool {
    ["function_call", "functionCall", "toolUse"].iter().any(|name| map.contains_key(*name)) || bare_call(map).is_some()
}

/// Reads a tool's answer.
fn result(map: &Map<String, Value>) -> Message {
    let names = ["response", "result", "output", "content", "value", "server_tool_call_response"];
    let given = first(map, &names).unwrap_or(&Value::Null);
    // The Vercel AI SDK's results say what they are.
    let tagged = given.as_object().filter(|inner| inner.len() <= 3 && inner.contains_key("value"));
    let kind = tagged.and_then(|inner| inner.get("type")).and_then(Value::as_str).unwrap_or_default();
    let is_tagged = matches!(kind, "text" | "json" | "error-text" | "error-json" | "content");
    let inner = tagged.filter(|_| is_tagged).and_then(|inner| inner.get("value")).unwrap_or(given);
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
