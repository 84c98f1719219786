//! Lists of messages: the state of a conversation. Only the messages after the user's last one are new.

use karat_core::document::Message;
use serde_json::{Map, Value};

use super::turn::{Outcome, TurnBuilder};
use super::{ai_sdk, usage};
use crate::lenient::{first, first_text, truncate};
use crate::messages::{ParsedMessages, read_joined};

/// Adds the messages after the user's last one.
pub(super) fn read(messages: &[Value], turn: &mut TurnBuilder) {
    for message in messages {
        push(message, turn);
    }
}

/// Adds a message. A user message discards everything before it.
pub(super) fn push(value: &Value, turn: &mut TurnBuilder) {
    if let Some(message) = value.as_object().filter(|message| ai_sdk::is_ui_message(message)) {
        return ai_sdk::push_ui_message(message, turn);
    }
    let Some(parsed) = read_joined(value, "assistant") else { return };
    let reports_failures = reports_failures(value);
    let ParsedMessages { messages, mut reasoning, stop_reason, unread_calls, .. } = parsed;
    if let Some(call) = unread_calls.first() {
        turn.invalid = Some(format!("a call in the reply has no tool name: {}", truncate(&call.to_string())));
    }
    for message in messages {
        match message.role.as_str() {
            "user" => turn.discard_all(),
            "assistant" => push_answer(&message, reasoning.take(), turn),
            "tool" => push_result(&message, reports_failures, turn),
            _ => {}
        }
    }
    if let Some(reasoning) = reasoning {
        turn.add_reasoning(&reasoning);
    }
    turn.set_stop_reason(stop_reason.as_deref());
    if let Some(message) = value.as_object() {
        push_metadata(message, turn);
    }
}

fn push_answer(message: &Message, reasoning: Option<String>, turn: &mut TurnBuilder) {
    turn.start_step();
    if let Some(reasoning) = reasoning {
        turn.add_reasoning(&reasoning);
    }
    turn.add_text(&message.content);
    for call in &message.tool_calls {
        let index = turn.new_call(call.id.as_deref(), &call.name);
        turn.set_arguments(index, &call.arguments);
    }
}

fn push_result(message: &Message, reports_failures: bool, turn: &mut TurnBuilder) {
    let result = Value::String(message.content.clone());
    let outcome = match (message.is_error, reports_failures) {
        (true, _) => Outcome::failed(&result),
        (false, true) => Outcome::known(&result, false),
        (false, false) => Outcome::unknown(&result),
    };
    turn.finish_call(message.tool_call_id.as_deref(), message.name.as_deref(), outcome);
}

/// Whether the format of a message marks failed results, so that results without the mark succeeded.
fn reports_failures(value: &Value) -> bool {
    let Some(message) = value.as_object() else { return false };
    let message = ["kwargs", "message"].iter().find_map(|name| message.get(*name)?.as_object()).unwrap_or(message);
    let is_flagged = |map: &Map<String, Value>| map.contains_key("is_error") || map.contains_key("isError");
    // LangChain's tool messages have a status, those of AG-UI an error if there is one.
    let is_framework_message = message.contains_key("status")
        || message.get("role").and_then(Value::as_str) == Some("tool") && message.contains_key("toolCallId");
    let parts = first(message, &["content", "parts"]).and_then(Value::as_array);
    let mut parts = parts.into_iter().flatten().filter_map(Value::as_object);
    is_framework_message
        || is_flagged(message)
        || parts.any(|part| {
            let kind = first_text(part, &["type"]).unwrap_or_default();
            is_flagged(part)
                || matches!(kind, "tool_result" | "mcp_tool_result")
                || kind == "tool-result" && part.get("output").is_some_and(|output| output.get("type").is_some())
        })
}

/// Adds the usage, model and stop reason that frameworks add to a message.
fn push_metadata(message: &Map<String, Value>, turn: &mut TurnBuilder) {
    let message = message.get("kwargs").and_then(Value::as_object).unwrap_or(message);
    if let Some(usage) = usage::read(first(message, &["usage_metadata", "usage"])) {
        turn.add_usage(&usage);
    }
    let metadata = first(message, &["response_metadata"]).and_then(Value::as_object).unwrap_or(message);
    turn.set_model(first_text(metadata, &["model_name", "model"]));
    turn.set_stop_reason(first_text(metadata, &["finish_reason", "stop_reason"]));
}
