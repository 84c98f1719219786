//! Content in events: on spans, in log records, and in the `events` attribute of older pydantic-ai versions.

use serde_json::{Map, Value};

use crate::parts::{LogEvent, Span};
use karat_chat::lenient::{first_count, first_text, is_blank, unpack};
use karat_chat::{self as chat, ParsedMessages};

/// Reads the input and the output from events.
pub(super) fn conversation(span: &Span, logs: &[&LogEvent]) -> (ParsedMessages, ParsedMessages) {
    let mut input = ParsedMessages { structured: true, ..ParsedMessages::default() };
    let mut output = ParsedMessages { structured: true, ..ParsedMessages::default() };
    for event in &span.events {
        read(&event.name, &event.attributes, &Value::Null, &mut input, &mut output);
    }
    for log in logs {
        let name = first_text(&log.event.attributes, &["event.name"]).unwrap_or(&log.event.name);
        read(name, &log.event.attributes, &log.body, &mut input, &mut output);
    }
    if input.messages.is_empty()
        && output.is_empty()
        && let Some(embedded) = span.attributes.get("events").filter(|value| !is_blank(value))
        && let Value::Array(items) = unpack(embedded).as_ref()
    {
        for item in items.iter().filter_map(Value::as_object) {
            if let Some(name) = first_text(item, &["event.name"]) {
                read(name, item, &Value::Null, &mut input, &mut output);
            }
        }
    }
    (input, output)
}

fn read(
    name: &str,
    attributes: &Map<String, Value>,
    body: &Value,
    input: &mut ParsedMessages,
    output: &mut ParsedMessages,
) {
    let role = match name {
        "gen_ai.system.message" => "system",
        "gen_ai.user.message" => "user",
        "gen_ai.assistant.message" => "assistant",
        "gen_ai.tool.message" => "tool",
        "gen_ai.choice" => {
            let choice = choice(attributes, body);
            let number = first_count(attributes, &["index"]).or_else(|| first_count(body.as_object()?, &["index"]));
            let calls =
                choice.as_ref().and_then(|choice| choice.get("tool_calls")).is_some_and(|calls| !is_blank(calls));
            let answered = output.messages.iter().any(|message| message.tool_calls.is_empty());
            // The first of several choices is the answer, but some instrumentations emit each call as a choice.
            if calls || !answered || number.unwrap_or(0) == 0 {
                add(choice, "assistant", output);
            }
            return;
        }
        "gen_ai.content.prompt" | "gen_ai.content.completion" | "gen_ai.client.inference.operation.details" => {
            details(attributes, input, output);
            if let Value::Object(inner) = unpack(body).as_ref() {
                details(inner, input, output);
            }
            return;
        }
        _ => return,
    };
    add(message(attributes, body, role), role, input);
}

fn details(map: &Map<String, Value>, input: &mut ParsedMessages, output: &mut ParsedMessages) {
    let names = [
        ("gen_ai.input.messages", "user"),
        ("gen_ai.prompt", "user"),
        ("gen_ai.output.messages", "assistant"),
        ("gen_ai.completion", "assistant"),
    ];
    if let Some(instructions) = map.get("gen_ai.system_instructions") {
        let text = chat::collect_text(&unpack(instructions));
        if !text.is_empty() {
            input.messages.push(chat::plain_message("system", &text));
        }
    }
    for (name, role) in names {
        let Some(value) = map.get(name).filter(|value| !is_blank(value)) else { continue };
        if let Some(parsed) = chat::read_or_text(value, role) {
            append(if role == "user" { &mut *input } else { &mut *output }, parsed);
        }
    }
}

/// Returns the message of an event: its body, the attribute that holds the whole message, or its attributes.
fn message(attributes: &Map<String, Value>, body: &Value, role: &str) -> Option<Map<String, Value>> {
    let mut map = match unpack(body).as_ref() {
        Value::Object(map) => map.clone(),
        Value::String(text) => Map::from_iter([("content".to_owned(), Value::String(text.clone()))]),
        _ => match attributes.get("gen_ai.event.content").map(unpack).as_deref() {
            Some(Value::Object(map)) => map.clone(),
            _ => attributes.clone(),
        },
    };
    if ["content", "parts", "tool_calls", "message"].iter().all(|name| !map.contains_key(*name)) {
        return None;
    }
    if !map.get("role").is_some_and(Value::is_string) {
        map.insert("role".to_owned(), Value::String(role.to_owned()));
    }
    Some(map)
}

/// Returns the message of a choice, with its finish reason.
fn choice(attributes: &Map<String, Value>, body: &Value) -> Option<Map<String, Value>> {
    let map = message(attributes, body, "assistant")?;
    let Some(inner) = map.get("message").map(unpack) else { return Some(map) };
    let mut inner = match inner.into_owned() {
        Value::Object(inner) => inner,
        other => Map::from_iter([("content".to_owned(), other)]),
    };
    inner.entry("role").or_insert_with(|| "assistant".into());
    for key in ["finish_reason", "tool_calls"] {
        if let Some(value) = map.get(key).filter(|value| !is_blank(value)) {
            inner.entry(key).or_insert_with(|| value.clone());
        }
    }
    Some(inner)
}

fn add(message: Option<Map<String, Value>>, role: &str, to: &mut ParsedMessages) {
    if let Some(parsed) = message.and_then(|message| chat::read(&Value::Object(message), role)) {
        append(to, parsed);
    }
}

fn append(to: &mut ParsedMessages, mut parsed: ParsedMessages) {
    to.messages.append(&mut parsed.messages);
    to.unread_calls.append(&mut parsed.unread_calls);
    if let Some(reasoning) = parsed.reasoning {
        to.push_reasoning(&reasoning);
    }
    to.stop_reason = to.stop_reason.take().or(parsed.stop_reason);
}
