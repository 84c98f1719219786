//! OTLP JSON. The reader accepts what differs between exporters: names in camel or snake case, the older
//! `instrumentationLibrarySpans`, Tempo's `batches`, ids in hexadecimal or base64, numbers as numbers or strings.

use jiff::SignedDuration;
use serde_json::{Map, Value};

use super::collector::SpanCollector;
use super::{ParseError, ParsedSpans};
use crate::format::TraceFormat;
use crate::otel_ids;
use crate::parts::{LogEvent, Span, SpanEvent};
use crate::time::{self, Unit};
use karat_chat::lenient::{json_error_with_position, replace_lone_surrogates};

/// Maximum nesting of wrappers around the data.
const MAX_WRAPPER_DEPTH: usize = 8;

/// Maximum nesting of spans within spans.
const MAX_SPAN_DEPTH: usize = 64;

/// Reads one JSON document.
pub fn read_json(bytes: &[u8]) -> Result<ParsedSpans, ParseError> {
    let value: Result<Value, ParseError> = serde_json::from_slice(bytes).or_else(|error| {
        let repaired = replace_lone_surrogates(bytes).and_then(|repaired| serde_json::from_slice(&repaired).ok());
        repaired.ok_or_else(|| ParseError(json_error_with_position(bytes, &error)))
    });
    read_value(value?)
}

/// Reads one JSON value.
pub fn read_value(value: Value) -> Result<ParsedSpans, ParseError> {
    let mut collector = SpanCollector::new(TraceFormat::Otlp);
    if !walk(value, String::new(), MAX_WRAPPER_DEPTH, &mut collector) {
        return Err(ParseError(
            "not an OpenTelemetry export: expected 'resourceSpans', 'resourceLogs' or 'batches'".to_owned(),
        ));
    }
    Ok(collector.finish())
}

fn take(map: &mut Map<String, Value>, names: &[&str]) -> Option<Value> {
    names.iter().find_map(|name| map.get_mut(*name).map(Value::take)).filter(|value| !value.is_null())
}

/// Takes a list. Any other value is refused.
fn list(map: &mut Map<String, Value>, names: &[&str], location: &str, collector: &mut SpanCollector) -> Vec<Value> {
    match take(map, names) {
        None => Vec::new(),
        Some(Value::Array(items)) => items,
        Some(other) => {
            collector.refuse(location, format!("'{}': expected a list, found {}", names[0], kind_of(&other)));
            Vec::new()
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn walk(value: Value, location: String, depth: usize, collector: &mut SpanCollector) -> bool {
    if depth == 0 {
        return false;
    }
    let mut map = match value {
        Value::Array(items) => {
            let mut known = items.is_empty();
            for (at, item) in items.into_iter().enumerate() {
                let location = format!("{location}[{at}]");
                if walk(item, location.clone(), depth - 1, collector) {
                    known = true;
                } else {
                    collector.refuse(location, "not an OpenTelemetry export");
                }
            }
            return known;
        }
        Value::Object(map) => map,
        _ => return false,
    };
    let mut known = false;
    for (names, is_logs) in
        [(&["resourceSpans", "resource_spans", "batches"][..], false), (&["resourceLogs", "resource_logs"][..], true)]
    {
        let Some(name) = names.iter().find(|name| map.contains_key(**name)) else { continue };
        known = true;
        let within = join_path(&location, name);
        for (at, item) in list(&mut map, &[name], &within, collector).into_iter().enumerate() {
            read_resource(item, format!("{within}[{at}]"), is_logs, collector);
        }
    }
    if known {
        return true;
    }
    let is_logs = map.contains_key("scopeLogs") || map.contains_key("scope_logs");
    if is_logs || SCOPE_SPANS.iter().any(|name| map.contains_key(*name)) {
        read_resource(Value::Object(map), location, is_logs, collector);
        return true;
    }
    if is_span(&map) {
        let location = if location.is_empty() { "span".to_owned() } else { location };
        let resource = match take(&mut map, &["resource"]) {
            Some(Value::Object(mut resource)) => take(&mut resource, &["attributes"])
                .map(|value| attributes(value).unwrap_or_default())
                .unwrap_or_default(),
            _ => Map::new(),
        };
        add_span(Value::Object(map), &location, &resource, None, collector);
        return true;
    }
    for wrapper in ["trace", "traces", "data", "body", "spans"] {
        if let Some(inner) = take(&mut map, &[wrapper])
            && walk(inner, join_path(&location, wrapper), depth - 1, collector)
        {
            return true;
        }
    }
    // An exporter without data writes an empty object.
    map.is_empty()
}

const SCOPE_SPANS: [&str; 4] =
    ["scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans"];

/// Reads the children of a span that contains them, as some tools write trees of spans. Children inherit the trace and
/// the parent.
fn add_children(
    children: Vec<Value>,
    location: &str,
    parent: &InheritedValues<'_>,
    depth: usize,
    collector: &mut SpanCollector,
) {
    for (at, child) in children.into_iter().enumerate() {
        let location = format!("{location}.child_spans[{at}]");
        let Value::Object(mut map) = child else {
            collector.refuse(location, format!("expected an object, found {}", kind_of(&child)));
            continue;
        };
        if depth == 0 {
            collector.refuse(location, "spans are nested too deeply");
            return;
        }
        for (names, value) in
            [(["traceId", "trace_id"], parent.trace_id), (["parentSpanId", "parent_span_id"], parent.span_id)]
        {
            if names.iter().all(|name| map.get(*name).is_none_or(Value::is_null)) {
                map.insert(names[1].to_owned(), value.into());
            }
        }
        add_tree(map, &location, parent.resource, None, depth - 1, collector);
    }
}

/// The values that child spans inherit from their parent.
struct InheritedValues<'p> {
    trace_id: &'p str,
    span_id: &'p str,
    resource: &'p Map<String, Value>,
}

/// Whether an object is a single span, as console and line exporters write it.
pub(crate) fn is_span(map: &Map<String, Value>) -> bool {
    let has_span_id = |map: &Map<String, Value>| ["spanId", "span_id"].iter().any(|name| map.contains_key(*name));
    has_span_id(map) && (map.contains_key("traceId") || map.contains_key("trace_id"))
        || map.get("context").and_then(Value::as_object).is_some_and(has_span_id)
}

fn join_path(location: &str, name: &str) -> String {
    if location.is_empty() { name.to_owned() } else { format!("{location}.{name}") }
}

fn read_resource(value: Value, location: String, is_logs: bool, collector: &mut SpanCollector) {
    let Value::Object(mut map) = value else {
        collector.refuse(location, format!("expected an object, found {}", kind_of(&value)));
        return;
    };
    let resource_attributes = match take(&mut map, &["resource"]) {
        Some(Value::Object(mut resource)) => {
            take(&mut resource, &["attributes"]).map(|value| attributes(value).unwrap_or_default()).unwrap_or_default()
        }
        _ => Map::new(),
    };
    let names: &[&str] = if is_logs { &["scopeLogs", "scope_logs"] } else { &SCOPE_SPANS };
    let name = names.iter().find(|name| map.contains_key(**name)).unwrap_or(&names[0]);
    let scopes = list(&mut map, &[name], &location, collector);
    for (at, scope) in scopes.into_iter().enumerate() {
        let location = format!("{location}.{name}[{at}]");
        let Value::Object(mut scope) = scope else {
            collector.refuse(location, format!("expected an object, found {}", kind_of(&scope)));
            continue;
        };
        let scope_name = match take(&mut scope, &["scope", "instrumentationLibrary", "instrumentation_library"]) {
            Some(Value::Object(mut scope)) => match take(&mut scope, &["name"]) {
                Some(Value::String(name)) if !name.is_empty() => Some(name),
                _ => None,
            },
            _ => None,
        };
        let inner = if is_logs { &["logRecords", "log_records", "logs"][..] } else { &["spans"][..] };
        for (at, item) in list(&mut scope, inner, &location, collector).into_iter().enumerate() {
            let location = format!("{location}.{}[{at}]", inner[0]);
            if is_logs {
                add_record(item, &location, collector);
            } else {
                add_span(item, &location, &resource_attributes, scope_name.as_deref(), collector);
            }
        }
    }
}

fn add_span(
    value: Value,
    location: &str,
    resource: &Map<String, Value>,
    scope: Option<&str>,
    collector: &mut SpanCollector,
) {
    let Value::Object(map) = value else {
        collector.refuse(location, format!("expected an object, found {}", kind_of(&value)));
        return;
    };
    add_tree(map, location, resource, scope, MAX_SPAN_DEPTH, collector);
}

/// Adds a span and the children that it contains.
fn add_tree(
    mut map: Map<String, Value>,
    location: &str,
    resource: &Map<String, Value>,
    scope: Option<&str>,
    depth: usize,
    collector: &mut SpanCollector,
) {
    let children = list(&mut map, &["child_spans"], location, collector);
    let own = match take(&mut map, &["resource_attributes"]) {
        Some(Value::Object(own)) => own,
        _ => resource.clone(),
    };
    let own_scope = match take(&mut map, &["scope_name"]) {
        Some(Value::String(name)) => Some(name),
        _ => scope.map(str::to_owned),
    };
    match read_span(map) {
        Ok((trace_id, mut span)) => {
            let inherited = InheritedValues { trace_id: &trace_id, span_id: &span.id, resource: &own };
            add_children(children, location, &inherited, depth, collector);
            span.resource.clone_from(&own);
            span.scope = own_scope;
            collector.add_span(trace_id, span);
        }
        Err(message) => collector.refuse(location, message),
    }
}

fn id(map: &mut Map<String, Value>, names: &[&str]) -> Result<Option<String>, String> {
    match take(map, names) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(otel_ids::parse(&text)),
        Some(other) => Err(format!("'{}': expected a string, found {}", names[0], kind_of(&other))),
    }
}

pub(crate) fn read_span(mut map: Map<String, Value>) -> Result<(String, Span), String> {
    if let Some(Value::Object(context)) = take(&mut map, &["context"]) {
        for (name, value) in context {
            map.entry(name).or_insert(value);
        }
    }
    let trace_id = id(&mut map, &["traceId", "trace_id"])?.ok_or("missing `traceId`")?;
    let span_id = id(&mut map, &["spanId", "span_id"])?.ok_or("missing `spanId`")?;
    let parent = id(&mut map, &["parentSpanId", "parent_span_id", "parent_id"])?;
    let time = |map: &mut Map<String, Value>, names: &[&str]| match take(map, names) {
        None => Ok(None),
        Some(value) => {
            time::parse_with_unit(&value, Unit::Nanoseconds).map_err(|error| format!("`{}`: {error}", names[0]))
        }
    };
    let start = time(&mut map, &["startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime", "timestamp"])?;
    let end = time(&mut map, &["endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"])?;
    let end = end.or_else(|| start?.checked_add(duration(&take(&mut map, &["duration"])?)?).ok());
    let attributes = match take(&mut map, &["attributes", "span_attributes"]) {
        None => Map::new(),
        Some(value) => attributes(value)?,
    };
    let mut events = Vec::new();
    match take(&mut map, &["events"]) {
        None => {}
        Some(Value::Array(items)) => {
            for item in items {
                events.extend(read_event(item)?);
            }
        }
        Some(other) => return Err(format!("'events': expected a list, found {}", kind_of(&other))),
    }
    let name = match take(&mut map, &["name", "span_name"]) {
        Some(Value::String(name)) => name,
        _ => String::new(),
    };
    let error = match take(&mut map, &["status"]) {
        Some(Value::Object(mut status)) => status_error(&mut status),
        _ => status_error(&mut map),
    };
    Ok((trace_id, Span { id: span_id, parent, name, start, end, attributes, events, error, ..Span::default() }))
}

/// Parses a duration in ISO 8601: `PT2.5S`.
fn duration(value: &Value) -> Option<SignedDuration> {
    value.as_str()?.parse().ok()
}

/// Returns the message of an error status, which may be empty.
fn status_error(status: &mut Map<String, Value>) -> Option<String> {
    let failed = match take(status, &["code", "status_code", "statusCode"])? {
        Value::Number(code) => code.as_u64() == Some(2),
        Value::String(code) => {
            matches!(code.as_str(), "2" | "STATUS_CODE_ERROR" | "ERROR" | "StatusCode.ERROR" | "Error")
        }
        _ => false,
    };
    failed.then(|| match take(status, &["message", "description", "status_message"]) {
        Some(Value::String(message)) => message,
        _ => String::new(),
    })
}

fn read_event(value: Value) -> Result<Option<SpanEvent>, String> {
    let Value::Object(mut map) = value else { return Ok(None) };
    let time = match take(&mut map, &["timeUnixNano", "time_unix_nano", "timestamp", "Timestamp"]) {
        None => None,
        Some(value) => time::parse_with_unit(&value, Unit::Nanoseconds).map_err(|error| format!("event: {error}"))?,
    };
    let name = match take(&mut map, &["name", "Name"]) {
        Some(Value::String(name)) => name,
        _ => String::new(),
    };
    let attributes = match take(&mut map, &["attributes", "Attributes"]) {
        None => Map::new(),
        Some(value) => attributes(value)?,
    };
    Ok(Some(SpanEvent { name, time, attributes }))
}

fn add_record(value: Value, location: &str, collector: &mut SpanCollector) {
    let Value::Object(map) = value else {
        collector.refuse(location, format!("expected an object, found {}", kind_of(&value)));
        return;
    };
    match read_record(map) {
        Ok(Some((trace_id, log))) => collector.add_log(trace_id, log),
        // Not related to a trace or a model.
        Ok(None) => {}
        Err(message) => collector.refuse(location, message),
    }
}

fn read_record(mut map: Map<String, Value>) -> Result<Option<(String, LogEvent)>, String> {
    let Some(trace_id) = id(&mut map, &["traceId", "trace_id"])? else { return Ok(None) };
    let span = id(&mut map, &["spanId", "span_id"])?;
    let body = take(&mut map, &["body"]).map(any_value).unwrap_or_default();
    let observed = take(&mut map, &["observedTimeUnixNano", "observed_time_unix_nano"]);
    if let (false, Some(observed)) = (map.contains_key("timeUnixNano") || map.contains_key("time_unix_nano"), observed)
    {
        map.insert("timeUnixNano".to_owned(), observed);
    }
    if let Some(name) = take(&mut map, &["eventName", "event_name"]) {
        map.insert("name".to_owned(), name);
    }
    let mut event = read_event(Value::Object(map))?.unwrap_or_default();
    fill_event_name(&mut event);
    Ok(is_gen_ai_event(&event).then(|| (trace_id, LogEvent { span, event, body })))
}

/// Whether a log record may carry content. Services write many other records with a trace id.
pub(super) fn is_gen_ai_event(event: &SpanEvent) -> bool {
    event.name.starts_with("gen_ai.") || event.attributes.keys().any(|name| name.starts_with("gen_ai."))
}

/// Fills in the event name that older SDKs write as an attribute.
pub(super) fn fill_event_name(event: &mut SpanEvent) {
    if event.name.is_empty()
        && let Some(name) = event.attributes.get("event.name").and_then(Value::as_str)
    {
        name.clone_into(&mut event.name);
    }
}

/// Reads attributes: the OTLP list of keys and values, or an object as other exporters write it.
fn attributes(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Array(items) => {
            let mut attributes = Map::with_capacity(items.len());
            for item in items {
                let Value::Object(mut item) = item else { return Err("an attribute is not an object".to_owned()) };
                let Some(Value::String(key)) = take(&mut item, &["key"]) else {
                    return Err("an attribute has no 'key'".to_owned());
                };
                let value = take(&mut item, &["value"]).map(any_value).unwrap_or_default();
                attributes.insert(key, value);
            }
            Ok(attributes)
        }
        Value::Object(map) => Ok(map.into_iter().map(|(name, value)| (name, any_value(value))).collect()),
        other => Err(format!("'attributes': expected a list, found {}", kind_of(&other))),
    }
}

/// Unwraps an OTLP value such as `{"stringValue": …}`. Other values are returned unchanged.
fn any_value(value: Value) -> Value {
    let Value::Object(mut map) = value else { return value };
    if map.len() != 1 {
        return Value::Object(map);
    }
    let Some(name) = map.keys().next().cloned() else { return Value::Object(map) };
    let mut inner = || map.get_mut(&name).map(Value::take).unwrap_or_default();
    match name.as_str() {
        "stringValue" | "string_value" | "boolValue" | "bool_value" | "bytesValue" | "bytes_value" => inner(),
        "intValue" | "int_value" => match inner() {
            Value::String(text) => text.trim().parse::<i64>().map_or(Value::String(text), Value::from),
            other => other,
        },
        "doubleValue" | "double_value" => match inner() {
            Value::String(text) => match text.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => Value::from(number),
                _ => Value::String(text),
            },
            other => other,
        },
        "arrayValue" | "array_value" => match inner() {
            Value::Object(mut list) => match take(&mut list, &["values"]) {
                Some(Value::Array(items)) => Value::Array(items.into_iter().map(any_value).collect()),
                _ => Value::Array(Vec::new()),
            },
            other => other,
        },
        "kvlistValue" | "kvlist_value" => match inner() {
            Value::Object(mut list) => {
                let values = take(&mut list, &["values"]).unwrap_or_default();
                Value::Object(attributes(values).unwrap_or_default())
            }
            other => other,
        },
        _ => Value::Object(map),
    }
}
