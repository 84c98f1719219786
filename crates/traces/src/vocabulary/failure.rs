//! Why a span failed.

use serde_json::{Map, Value};

use crate::parts::{Role, Span};
use karat_chat::collect_text;
use karat_chat::lenient::first_text;

/// Returns why a span failed, if it did. An exception on a span that did not fail counts only for a model or a tool
/// without a result: elsewhere exceptions are often expected, such as a timeout of a wait.
pub(crate) fn failure(span: &Span, role: Role, has_result: bool) -> Option<String> {
    if let Some(message) = span.error.as_deref().map(str::trim).filter(|message| !message.is_empty()) {
        return Some(message.to_owned());
    }
    let failed = span.error.is_some();
    let kind = first_text(&span.attributes, &["error.type"]);
    let is_failure = failed || kind.is_some() || matches!(role, Role::Model | Role::Tool) && !has_result;
    if !is_failure {
        return None;
    }
    let recorded =
        span.events.iter().rev().find(|event| event.name == "exception").and_then(|event| exception(&event.attributes));
    recorded
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
        (Some(text), None) | (None, Some(text)) => Some(text.to_owned()),
        (None, None) => None,
    }
}

/// Returns the error message of a tool result that is marked as an error, as MCP servers do.
pub(crate) fn result_failure(result: &Value) -> Option<String> {
    let map = result.as_object()?;
    let failed = ["isError", "is_error"].iter().any(|name| map.get(*name).and_then(Value::as_bool) == Some(true));
    if !failed {
        return None;
    }
    let text = collect_text(result);
    Some(if text.is_empty() { "failed, without a message".to_owned() } else { text })
}
