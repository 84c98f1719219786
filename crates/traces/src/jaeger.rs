//! Jaeger JSON, as exported by its API and UI: times in microseconds, attributes as tags, events as logs.

use serde_json::{Map, Value};

use crate::format::TraceFormat;
use crate::otel_ids;
use crate::otlp::{ParseError, ParsedSpans, SpanCollector};
use crate::parts::{Span, SpanEvent};
use crate::time::{self, Unit};
use karat_chat::lenient::json_error_with_position;

/// Reads one JSON document.
pub fn read_json(bytes: &[u8]) -> Result<ParsedSpans, ParseError> {
    let value = serde_json::from_slice(bytes).map_err(|error| ParseError(json_error_with_position(bytes, &error)))?;
    read_value(value)
}

/// Reads one JSON value: an API response, a list of traces, or one trace.
pub fn read_value(value: Value) -> Result<ParsedSpans, ParseError> {
    let mut collector = SpanCollector::new(TraceFormat::Jaeger);
    let traces = match value {
        Value::Object(mut map) => match map.get_mut("data").map(Value::take) {
            Some(Value::Array(traces)) => traces,
            Some(object @ Value::Object(_)) => vec![object],
            _ if map.contains_key("spans") => vec![Value::Object(map)],
            _ => return Err(ParseError("not a Jaeger export: expected 'data' or 'spans'".to_owned())),
        },
        Value::Array(traces) => traces,
        _ => return Err(ParseError("not a Jaeger export: expected an object".to_owned())),
    };
    for (at, trace) in traces.into_iter().enumerate() {
        read_trace(trace, at, &mut collector);
    }
    Ok(collector.finish())
}

fn read_trace(value: Value, at: usize, collector: &mut SpanCollector) {
    let location = format!("data[{at}]");
    let Value::Object(mut trace) = value else {
        collector.refuse(location, "expected an object");
        return;
    };
    let trace_id = trace.get("traceID").and_then(Value::as_str).and_then(|id| otel_ids::parse_padded(id, 32));
    let processes = match trace.get_mut("processes").map(Value::take) {
        Some(Value::Object(processes)) => processes.into_iter().map(|(id, process)| (id, resource(process))).collect(),
        _ => Map::new(),
    };
    let Some(Value::Array(spans)) = trace.get_mut("spans").map(Value::take) else {
        collector.refuse(location, "missing list 'spans'");
        return;
    };
    for (index, value) in spans.into_iter().enumerate() {
        let location = format!("{location}.spans[{index}]");
        let Value::Object(map) = value else {
            collector.refuse(location, "expected an object");
            continue;
        };
        match read_span(map, trace_id.as_deref(), &processes) {
            Ok((trace_id, span)) => collector.add_span(trace_id, span),
            Err(message) => collector.refuse(location, message),
        }
    }
}

/// Converts a process into resource attributes: its tags, and its name as `service.name`.
fn resource(process: Value) -> Value {
    let Value::Object(mut process) = process else { return Value::Null };
    let mut tags = process.get_mut("tags").map(Value::take).map(tags).unwrap_or_default();
    if let Some(name @ Value::String(_)) = process.get_mut("serviceName").map(Value::take) {
        tags.insert("service.name".to_owned(), name);
    }
    Value::Object(tags)
}

fn read_span(
    mut map: Map<String, Value>,
    trace_id: Option<&str>,
    processes: &Map<String, Value>,
) -> Result<(String, Span), String> {
    let text = |map: &Map<String, Value>, name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
    let trace_id = text(&map, "traceID")
        .and_then(|id| otel_ids::parse_padded(&id, 32))
        .or_else(|| trace_id.map(str::to_owned))
        .ok_or("missing `traceID`")?;
    let id = text(&map, "spanID").and_then(|id| otel_ids::parse_padded(&id, 16)).ok_or("missing `spanID`")?;
    let start = match map.get("startTime") {
        None => None,
        Some(value) => {
            time::parse_with_unit(value, Unit::Microseconds).map_err(|error| format!("`startTime`: {error}"))?
        }
    };
    let duration = map.get("duration").and_then(Value::as_i64);
    let end = match (start, duration) {
        (Some(start), Some(duration)) => start.checked_add(jiff::SignedDuration::from_micros(duration)).ok(),
        _ => None,
    };
    let mut attributes = map.get_mut("tags").map(Value::take).map(tags).unwrap_or_default();
    let events = match map.get_mut("logs").map(Value::take) {
        Some(Value::Array(logs)) => logs.into_iter().filter_map(read_log).collect(),
        _ => Vec::new(),
    };
    let resource = match map.get_mut("process").map(Value::take) {
        Some(process @ Value::Object(_)) => resource(process),
        _ => text(&map, "processID").and_then(|id| processes.get(&id).cloned()).unwrap_or_default(),
    };
    let error = take_status_error(&mut attributes);
    let scope = match attributes.shift_remove("otel.scope.name") {
        Some(Value::String(scope)) => Some(scope),
        _ => None,
    };
    let span = Span {
        parent: parent(&map, &trace_id),
        id,
        name: text(&map, "operationName").unwrap_or_default(),
        start,
        end,
        attributes,
        events,
        error,
        resource: match resource {
            Value::Object(resource) => resource,
            _ => Map::new(),
        },
        scope,
        ..Span::default()
    };
    Ok((trace_id, span))
}

/// Returns the parent: the first `CHILD_OF` reference, else the first `FOLLOWS_FROM` reference.
fn parent(map: &Map<String, Value>, trace_id: &str) -> Option<String> {
    if let Some(parent) = map.get("parentSpanID").and_then(Value::as_str) {
        return otel_ids::parse_padded(parent, 16);
    }
    let references = map.get("references")?.as_array()?;
    let find_reference = |kind: &str| {
        references.iter().find(|reference| {
            let referenced_trace =
                reference.get("traceID").and_then(Value::as_str).and_then(|id| otel_ids::parse_padded(id, 32));
            reference.get("refType").and_then(Value::as_str) == Some(kind)
                && referenced_trace.is_none_or(|id| id == trace_id)
        })
    };
    let reference = find_reference("CHILD_OF").or_else(|| find_reference("FOLLOWS_FROM"))?;
    otel_ids::parse_padded(reference.get("spanID")?.as_str()?, 16)
}

/// Removes the status from the tags and returns its message if it is an error.
fn take_status_error(tags: &mut Map<String, Value>) -> Option<String> {
    let code = tags.shift_remove("otel.status_code");
    let description = tags.shift_remove("otel.status_description");
    let error_tag = tags.shift_remove("error");
    let failed = code.as_ref().and_then(Value::as_str) == Some("ERROR")
        || matches!(error_tag, Some(Value::Bool(true)))
        || error_tag.as_ref().and_then(Value::as_str) == Some("true");
    failed.then(|| match description {
        Some(Value::String(text)) => text,
        _ => String::new(),
    })
}

fn read_log(value: Value) -> Option<SpanEvent> {
    let Value::Object(mut map) = value else { return None };
    let time = map.get("timestamp").and_then(|value| time::parse_with_unit(value, Unit::Microseconds).ok().flatten());
    let mut attributes = map.get_mut("fields").map(Value::take).map(tags).unwrap_or_default();
    let name = match attributes.shift_remove("event") {
        Some(Value::String(name)) => name,
        _ => String::new(),
    };
    Some(SpanEvent { name, time, attributes })
}

/// Reads tags: a list of keys with a type and a value. Numbers may be strings.
fn tags(value: Value) -> Map<String, Value> {
    let Value::Array(items) = value else { return Map::new() };
    let mut tags = Map::with_capacity(items.len());
    for item in items {
        let Value::Object(mut item) = item else { continue };
        let Some(Value::String(key)) = item.get_mut("key").map(Value::take) else { continue };
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let value = match (kind.as_str(), item.get_mut("value").map(Value::take).unwrap_or_default()) {
            ("int64", Value::String(text)) => text.parse::<i64>().map_or(Value::String(text), Value::from),
            ("float64", Value::String(text)) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => number.into(),
                _ => Value::String(text),
            },
            ("bool", Value::String(text)) if text == "true" || text == "false" => Value::Bool(text == "true"),
            (_, value) => value,
        };
        tags.insert(key, value);
    }
    tags
}
