//! Why a span failed.

use serde_json::{Map, Value};

use crate::chat::text_within;
use crate::json::first_text;
use crate::parts::{Role, Span};

/// Returns why a span failed, if it did. An exception that was noted without the span having failed counts only for a
/// model or a tool that has no result: elsewhere exceptions are often part of the work, such as a wait that ends.
pub(crate) fn failure(span: &Span, role: Role, has_result: bool) -> Option<String> {
    if let Some(said) = span.error.as_deref().map(str::trim).filter(|said| !said.is_empty()) {
        return Some(said.to_owned());
    }
    let failed = span.error.is_some();
    let kind = first_text(&span.attributes, &["error.type"]);
    let counts = failed || kind.is_some() || matches!(role, Role::Model | Role::Tool) && !has_result;
    if !counts {
        return None;
    }
    let noted =
        span.events.iter().rev().find(|event| event.name == "exception").and_then(|event| exception(&event.attributes));
    noted
        .or_else(|| exception(&span.attributes))
        .or_else(|| first_text(&span.attributes, &["error.message", "gen_ai.error.message"]).map(str::to_owned))
        .or_else(|| kind.map(str::to_owned))
        .or_else(|| failed.then(|| "failed, without a message".to_owned()))
}

fn exception(attributes: &Map<String, Value>) -> Option<String> {
    let kind = first_text(attributes, &["exception.type"]);
    let message = first_text(attributes, &["exception.message"]);
    match (kind, message) {
        (Some(kind), Some(message)) if message.starts_with(kind) => Some(message.to_owned()),
        (Some(kind), Some(message)) => Some(format!("{kind}: {message}")),
        (Some(one), None) | (None, Some(one)) => Some(one.to_owned()),
        (None, None) => None,
    }
}

/// Returns what a tool's result says of its own failure, as MCP servers do.
pub(crate) fn failure_of_result(result: &Value) -> Option<String> {
    let map = result.as_object()?;
    let failed = ["isError", "is_error"].iter().any(|name| map.get(*name).and_then(Value::as_bool) == Some(true));
    if !failed {
        return None;
    }
    let text = text_within(result);
    Some(if text.is_empty() { "failed, without a message".to_owned() } else { text })
}
