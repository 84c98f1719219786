//! Items that the OpenAI Agents SDK exports: traces and spans, as objects `trace` and `trace.span`.

use serde_json::{Map, Value};

use crate::format::TraceFormat;
use crate::otlp::{ParsedSpans, SpanCollector};
use crate::parts::{Role, Span};
use crate::time::parse_any_unit;
use crate::trace_ids::validate_id;
use karat_chat::lenient::{first, first_count, first_text, is_blank, unpack_owned};

/// Reads one item as part of a trace, because the items of a trace may be spread over a file.
pub(crate) fn read(value: &Value) -> ParsedSpans {
    let mut collector = SpanCollector::new(TraceFormat::OpenAiAgents);
    match value.as_object().ok_or_else(|| "an item must be an object".to_owned()).and_then(read_item) {
        Ok((trace_id, span)) => collector.add_span(trace_id, span),
        Err(message) => {
            let id = value.get("id").and_then(Value::as_str).unwrap_or("without an id");
            collector.refuse(format!("item {id}"), message);
        }
    }
    collector.finish()
}

fn read_item(item: &Map<String, Value>) -> Result<(String, Span), String> {
    let id = first_text(item, &["id"]).ok_or("the item has no 'id'")?;
    match first_text(item, &["object"]) {
        Some("trace") => Ok((validate_id(id)?, trace_span(id, item))),
        Some("trace.span") => {
            let trace_id = validate_id(first_text(item, &["trace_id"]).ok_or("the span has no 'trace_id'")?)?;
            let span = read_span(id, &trace_id, item)?;
            Ok((trace_id, span))
        }
        _ => Err("expected an object 'trace' or 'trace.span'".to_owned()),
    }
}

/// Returns the trace itself as the root of its spans.
fn trace_span(id: &str, trace: &Map<String, Value>) -> Span {
    let mut attributes = Map::new();
    for (attribute, name) in [("session.id", "group_id"), ("metadata", "metadata")] {
        if let Some(value) = trace.get(name).filter(|value| !is_blank(value)) {
            attributes.insert(attribute.to_owned(), value.clone());
        }
    }
    Span {
        id: id.to_owned(),
        name: first_text(trace, &["workflow_name"]).unwrap_or_default().to_owned(),
        role: Some(Role::Other),
        attributes,
        ..Span::default()
    }
}

fn read_span(id: &str, trace_id: &str, item: &Map<String, Value>) -> Result<Span, String> {
    let data = item.get("span_data").and_then(Value::as_object).ok_or("the span has no 'span_data'")?;
    let kind = first_text(data, &["type"]).unwrap_or_default();
    let role = match kind {
        "generation" | "response" => Role::Model,
        "function" => Role::Tool,
        "agent" => Role::Agent,
        _ => Role::Other,
    };
    let mut attributes = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            attributes.insert(name.to_owned(), value);
        }
    };
    // Custom processors also write the whole response.
    let response = data.get("response").and_then(Value::as_object);
    if role == Role::Model {
        let model = first_text(data, &["model"]).or_else(|| first_text(response?, &["model"]));
        set("gen_ai.request.model", model.map(Value::from));
        set("gen_ai.response.id", first(data, &["response_id"]).cloned());
        let usage = data.get("usage").or_else(|| response?.get("usage")).and_then(Value::as_object);
        let count = |names: &[&str]| first_count(usage?, names).map(Value::from);
        set("gen_ai.usage.input_tokens", count(&["input_tokens", "prompt_tokens"]));
        set("gen_ai.usage.output_tokens", count(&["output_tokens", "completion_tokens"]));
    }
    if role == Role::Agent {
        set("gen_ai.agent.name", first(data, &["name"]).cloned());
    }
    let field = |name: &str| data.get(name).filter(|value| !is_blank(value)).map(unpack_owned);
    Ok(Span {
        id: id.to_owned(),
        parent: Some(first_text(item, &["parent_id"]).unwrap_or(trace_id))
            .filter(|parent| *parent != id)
            .map(str::to_owned),
        name: first_text(data, &["name"]).unwrap_or(kind).to_owned(),
        role: Some(role),
        start: item.get("started_at").and_then(parse_any_unit),
        end: item.get("ended_at").and_then(parse_any_unit),
        attributes,
        error: item.get("error").filter(|error| !is_blank(error)).map(error_text),
        input: field("input"),
        output: field("output").or_else(|| response?.get("output").cloned()),
        ..Span::default()
    })
}

fn error_text(error: &Value) -> String {
    let text = error.get("message").and_then(Value::as_str).or_else(|| error.as_str());
    text.map_or_else(|| error.to_string(), str::to_owned)
}
