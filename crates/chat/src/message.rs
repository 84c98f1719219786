//! Parses single messages.

use std::collections::HashSet;

use karat_core::document::{Message, StepCall};
use serde_json::{Map, Value};

use crate::call::{parse_arguments, parse_call, parse_calls_text};
use crate::lenient::{first, first_text, is_blank, parse_nested, unpack};
use crate::messages::{ParsedMessages, result_text, set_stop_reason};
use crate::part::{self, Part};

/// Whether an object is a message. Content without a role is a message if an answer is expected.
pub(crate) fn is_message(map: &Map<String, Value>, role: &str) -> bool {
    if let Some(inner) = map.get("message").and_then(Value::as_object) {
        // OpenInference wraps each message; events add an index and a finish reason.
        return is_message(inner, role) && !map.contains_key("choices");
    }
    let has_content = ["content", "contents", "parts", "tool_calls", "function_call", "text"]
        .iter()
        .any(|name| map.contains_key(*name));
    if map.get("role").is_some_and(Value::is_string) {
        return true;
    }
    match kind_of(map) {
        Some("message") => has_content,
        Some(
            "function_call" | "function_call_output" | "reasoning" | "custom_tool_call" | "custom_tool_call_output",
        ) => true,
        Some(kind) if role_of_kind(kind).is_some() => has_content,
        Some(_) if part::is_content(map) => false,
        _ => {
            let is_bare_content = map.get("content").is_some_and(|content| {
                content.is_string() || content.as_array().is_some_and(|items| items.iter().all(Value::is_object))
            });
            role == "assistant" && (is_bare_content || map.get("tool_calls").is_some_and(Value::is_array))
        }
    }
}

fn kind_of(map: &Map<String, Value>) -> Option<&str> {
    map.get("type").and_then(Value::as_str)
}

/// Returns the role of a framework's message class.
fn role_of_kind(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "human" | "HumanMessage" | "HumanMessageChunk" | "UserMessage" => "user",
        "ai" | "AIMessage" | "AIMessageChunk" | "AssistantMessage" => "assistant",
        "system" | "SystemMessage" | "DeveloperMessage" => "system",
        "tool" | "ToolMessage" | "FunctionMessage" => "tool",
        _ => return None,
    })
}

/// Normalises the name of a role.
fn normalise_role(role: &str) -> &str {
    match role {
        "model" | "ai" | "assistant" => "assistant",
        "human" | "user" => "user",
        "developer" | "system" => "system",
        "function" | "tool" | "ipython" => "tool",
        other => other,
    }
}

/// Adds a message and the tool results that it contains.
pub(crate) fn push(map: &Map<String, Value>, role: &str, parsed: &mut ParsedMessages) {
    if let Some(inner) = map.get("message").and_then(Value::as_object) {
        set_stop_reason(map, parsed);
        return push(inner, role, parsed);
    }
    match kind_of(map) {
        Some("reasoning") => {
            if let Part::Reasoning(text) = part::read(&Value::Object(map.clone())) {
                parsed.push_reasoning(&text);
            }
            return;
        }
        Some("function_call" | "custom_tool_call") => {
            match parse_call(map) {
                Some(call) => push_call(call, parsed),
                None => parsed.unread_calls.push(Value::Object(map.clone())),
            }
            return;
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            if let Part::Result(message) = part::read(&Value::Object(map.clone())) {
                parsed.messages.push(message);
            }
            return;
        }
        _ => {}
    }
    let role_name = map.get("role").and_then(Value::as_str).or_else(|| kind_of(map).and_then(role_of_kind));
    let mut message = Message {
        role: normalise_role(role_name.unwrap_or(role)).to_owned(),
        name: first_text(map, &["name", "tool_name"]).map(str::to_owned),
        tool_call_id: first_text(map, &["tool_call_id", "toolCallId", "tool_use_id"]).map(str::to_owned),
        is_error: map.get("is_error").and_then(Value::as_bool) == Some(true)
            || map.get("status").and_then(Value::as_str) == Some("error"),
        ..Message::default()
    };
    let tool_error = map.get("error").filter(|_| message.role == "tool");
    message.is_error |= tool_error.is_some_and(|error| !is_blank(error) && *error != Value::Bool(false));
    if message.role == "tool" && message.tool_call_id.is_none() {
        message.tool_call_id = first_text(map, &["id"]).map(str::to_owned);
    }
    let mut results = Vec::new();
    read_content(map, &mut message, &mut results, parsed);
    read_calls(map, &mut message, parsed);
    if message.content.is_empty()
        && let Some(text) = tool_error.and_then(error_text)
    {
        message.content = text;
    }
    if message.content.is_empty()
        && let Some(refusal) = first_text(map, &["refusal"])
    {
        refusal.clone_into(&mut message.content);
    }
    for name in ["reasoning_content", "reasoning"] {
        if let Some(text) = map.get(name).and_then(Value::as_str) {
            parsed.push_reasoning(text);
        }
    }
    set_stop_reason(map, parsed);
    if message.role == "tool" && !message.tool_calls.is_empty() {
        "assistant".clone_into(&mut message.role);
    }
    // The content of the tool message is a result without an id.
    if message.role == "tool" && message.content.is_empty() && !results.is_empty() {
        for result in results.iter_mut().filter(|result| result.tool_call_id.is_none()) {
            result.tool_call_id.clone_from(&message.tool_call_id);
        }
    }
    // In the Anthropic API, tool results precede the user's text in the same message.
    if message.role == "user" {
        parsed.messages.append(&mut results);
    }
    let has_content = !message.content.is_empty() || !message.tool_calls.is_empty() || !message.parts.is_empty();
    if has_content || results.is_empty() && (message.role == "tool" || message.role == "assistant") {
        parsed.messages.push(message);
    }
    parsed.messages.append(&mut results);
}

/// Returns the text of a tool message's error: a string, or an object with a message.
fn error_text(error: &Value) -> Option<String> {
    let text = error.as_str().or_else(|| error.get("message")?.as_str())?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Adds a call to the preceding assistant message, or as a new message.
fn push_call(call: StepCall, parsed: &mut ParsedMessages) {
    if let Some(last) = parsed.messages.last_mut()
        && last.role == "assistant"
    {
        last.tool_calls.push(call);
        return;
    }
    parsed.messages.push(Message { role: "assistant".to_owned(), tool_calls: vec![call], ..Message::default() });
}

fn read_content(
    map: &Map<String, Value>,
    message: &mut Message,
    results: &mut Vec<Message>,
    parsed: &mut ParsedMessages,
) {
    let content = first(map, &["content", "contents", "parts", "text"]);
    let other_parts = map.get("parts").or_else(|| map.get("contents")).and_then(Value::as_array);
    let parts = match content {
        Some(Value::String(text)) => {
            let content = if parsed.literal { TextContent::Text } else { content_of_text(text, &message.role) };
            match content {
                TextContent::Text => message.content.clone_from(text),
                TextContent::Calls(calls) => message.tool_calls.extend(calls),
                TextContent::Parts(parts) => {
                    for part in &parts {
                        add_part(part, message, results, parsed);
                    }
                }
            }
            // The message may have both text and other parts.
            other_parts.filter(|_| message.content.is_empty() && message.tool_calls.is_empty())
        }
        Some(Value::Array(parts)) => Some(parts),
        Some(Value::Object(inner)) => {
            if message.role == "tool" {
                message.content = result_text(&Value::Object(inner.clone()));
            } else {
                add_part(&Value::Object(inner.clone()), message, results, parsed);
            }
            None
        }
        Some(Value::Null) | None => None,
        Some(other) => {
            message.content = other.to_string();
            None
        }
    };
    let Some(parts) = parts else { return };
    if message.role == "tool" && !parts.iter().any(|part| part.as_object().is_some_and(part::is_content)) {
        message.content = Value::Array(parts.clone()).to_string();
        return;
    }
    for part in parts {
        add_part(part, message, results, parsed);
    }
}

enum TextContent {
    Text,
    Calls(Vec<StepCall>),
    Parts(Vec<Value>),
}

/// Classifies text that may be the JSON of calls or parts.
fn content_of_text(text: &str, role: &str) -> TextContent {
    if !text.trim_start().starts_with("[{") {
        return TextContent::Text;
    }
    if matches!(role, "assistant" | "tool")
        && let Some(calls) = parse_calls_text(text)
    {
        return TextContent::Calls(calls);
    }
    // A tool may return a list that only looks like content.
    let is_part = |item: &Value| {
        item.as_object().is_some_and(|map| if role == "tool" { part::is_result(map) } else { part::is_content(map) })
    };
    match parse_nested(text) {
        Some(Value::Array(items)) if items.iter().all(is_part) => TextContent::Parts(items),
        _ => TextContent::Text,
    }
}

fn add_part(part: &Value, message: &mut Message, results: &mut Vec<Message>, parsed: &mut ParsedMessages) {
    match part::read(part) {
        Part::Text(text) => {
            if !message.content.is_empty() && !text.is_empty() && !parsed.joins_text_parts {
                message.content.push('\n');
            }
            message.content.push_str(&text);
        }
        Part::Reasoning(text) => parsed.push_reasoning(&text),
        Part::Call(call) => message.tool_calls.push(call),
        Part::Result(mut result) => {
            if result.name.is_none() {
                result.name.clone_from(&message.name);
            }
            results.push(result);
        }
        Part::Other(value) => message.parts.push(value),
    }
}

fn read_calls(map: &Map<String, Value>, message: &mut Message, parsed: &mut ParsedMessages) {
    let nested = map.get("additional_kwargs").and_then(|inner| inner.get("tool_calls"));
    let tool_calls = map.get("tool_calls").filter(|calls| !is_blank(calls)).or(nested);
    if let Some(tool_calls) = tool_calls.or_else(|| map.get("toolCalls"))
        && let Value::Array(items) = unpack(tool_calls).as_ref()
    {
        // Some sources list a call both here and in the content.
        let mut known: HashSet<String> = message.tool_calls.iter().filter_map(|call| call.id.clone()).collect();
        for item in items {
            let Some(call) = item.as_object().and_then(parse_call) else {
                parsed.unread_calls.push(item.clone());
                continue;
            };
            if call.id.as_ref().is_none_or(|id| known.insert(id.clone())) {
                message.tool_calls.push(call);
            }
        }
    }
    if let Some(call) = map.get("function_call").and_then(Value::as_object).and_then(parse_call)
        && message.tool_calls.is_empty()
    {
        message.tool_calls.push(call);
    }
    // Older versions of OpenInference use these keys.
    if message.tool_calls.is_empty()
        && let Some(name) = first_text(map, &["function_call_name"])
    {
        let arguments = parse_arguments(map.get("function_call_arguments_json"));
        message.tool_calls.push(StepCall { name: name.to_owned(), arguments, ..StepCall::default() });
    }
}
