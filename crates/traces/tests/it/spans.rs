//! Helpers that build spans and render documents.

use jiff::Timestamp;
use karat_core::document::TraceContent;
use karat_traces::{LogEvent, Span, SpanEvent, TraceFormat, TraceParts, assemble};
use serde_json::{Map, Value};

pub(crate) const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Returns a time this many seconds after midnight of a day in 2026.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_771_200_000 + seconds).expect("valid time")
}

pub(crate) fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

/// Returns a span that starts at this second and lasts one second. A slash separates its name from its parent's:
/// `chat/agent`.
pub(crate) fn span(names: &str, second: i64, attributes: Value) -> Span {
    let (name, parent) = match names.split_once('/') {
        Some((name, parent)) => (name, Some(parent.to_owned())),
        None => (names, None),
    };
    Span {
        id: name.to_owned(),
        parent,
        name: name.to_owned(),
        start: Some(at(second)),
        end: Some(at(second + 1)),
        attributes: map(attributes),
        ..Span::default()
    }
}

pub(crate) fn event(name: &str, attributes: Value) -> SpanEvent {
    SpanEvent { name: name.to_owned(), time: Some(at(1)), attributes: map(attributes) }
}

pub(crate) fn log(span: &str, name: &str, second: i64, attributes: Value, body: Value) -> LogEvent {
    let event = SpanEvent { name: name.to_owned(), time: Some(at(second)), attributes: map(attributes) };
    LogEvent { span: Some(span.to_owned()), event, body }
}

pub(crate) fn parts(spans: impl IntoIterator<Item = Span>) -> TraceParts {
    let mut parts = TraceParts::new(TraceFormat::Otlp, TRACE);
    for span in spans {
        parts.add_span(span);
    }
    parts
}

pub(crate) fn document(spans: impl IntoIterator<Item = Span>) -> TraceContent {
    assemble(&parts(spans)).document
}

/// Renders a conversation with one line per message, answer and call.
pub(crate) fn render(document: &TraceContent) -> String {
    let mut lines = Vec::new();
    for step in &document.steps {
        for message in &step.input.messages {
            let id = message.tool_call_id.as_ref().map(|id| format!(" of {id}")).unwrap_or_default();
            lines.push(format!("{}{id}: {}", message.role, message.content));
        }
        if let Some(value) = &step.input.value {
            lines.push(format!("value: {value}"));
        }
        if let Some(reasoning) = &step.output.reasoning {
            lines.push(format!("> thought: {reasoning}"));
        }
        lines.push(format!("> {}", step.output.response));
        if let Some(value) = &step.output.value {
            lines.push(format!("> value: {value}"));
        }
        for call in &step.tool_calls {
            let id = call.id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
            let error = call.error.as_ref().map(|error| format!(" failed: {error}")).unwrap_or_default();
            lines.push(format!("> call{id} {}({}) -> {}{error}", call.name, call.arguments, call.result));
        }
        if let Some(error) = &step.error {
            lines.push(format!("> failed: {error}"));
        }
    }
    if let Some(error) = &document.error {
        lines.push(format!("failed: {error}"));
    }
    lines.join("\n")
}
