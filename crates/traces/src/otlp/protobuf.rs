//! OTLP as protobuf: requests to a collector, and files of `TracesData` and `LogsData`, which have the same bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Inner;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span as Sent;
use prost::Message as _;
use serde_json::{Map, Value};

use super::gathered::Gathered;
use super::json::{name_event, tells_of_a_model};
use super::{SpansRead, Unreadable};
use crate::identifier;
use crate::kind::Kind;
use crate::parts::{LogEvent, Span, SpanEvent};
use crate::time::{Unit, since_1970};

const ERROR: i32 = 2;

/// Reads spans or log records, whichever the bytes are of.
pub fn read_protobuf(bytes: &[u8]) -> Result<SpansRead, Unreadable> {
    let traces = read_traces_protobuf(bytes);
    match traces {
        Ok(read) => Ok(read),
        Err(error) => read_logs_protobuf(bytes).map_err(|_| error),
    }
}

/// Reads an `ExportTraceServiceRequest` or `TracesData`.
pub fn read_traces_protobuf(bytes: &[u8]) -> Result<SpansRead, Unreadable> {
    let request = ExportTraceServiceRequest::decode(bytes).map_err(|error| no_protobuf(bytes, &error))?;
    Ok(traces_of(request))
}

/// Reads an `ExportLogsServiceRequest` or `LogsData`.
pub fn read_logs_protobuf(bytes: &[u8]) -> Result<SpansRead, Unreadable> {
    let request = ExportLogsServiceRequest::decode(bytes).map_err(|error| no_protobuf(bytes, &error))?;
    Ok(logs_of(request))
}

/// Says for a person why bytes are no protobuf.
fn no_protobuf(bytes: &[u8], error: &prost::DecodeError) -> Unreadable {
    if matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) && std::str::from_utf8(bytes).is_ok() {
        return Unreadable("not OpenTelemetry's protobuf, but what looks like JSON".to_owned());
    }
    let said = error.to_string();
    if said.ends_with("buffer underflow") {
        return Unreadable("not OpenTelemetry's protobuf, or cut off: it ends too early".to_owned());
    }
    let why = said.strip_prefix("failed to decode Protobuf message: ").unwrap_or(&said);
    Unreadable(format!("not OpenTelemetry's protobuf: {why}"))
}

/// Reads a request that is decoded already.
pub fn traces_of(request: ExportTraceServiceRequest) -> SpansRead {
    let mut gathered = Gathered::new(Kind::Otlp);
    for (first, resource) in request.resource_spans.into_iter().enumerate() {
        let of_process = resource.resource.map(|resource| attributes(resource.attributes)).unwrap_or_default();
        for (second, scope) in resource.scope_spans.into_iter().enumerate() {
            let wrote = scope.scope.map(|scope| scope.name).filter(|name| !name.is_empty());
            for (third, sent) in scope.spans.into_iter().enumerate() {
                match read_span(sent) {
                    Ok((trace_id, mut span)) => {
                        span.resource.clone_from(&of_process);
                        span.scope.clone_from(&wrote);
                        gathered.span(trace_id, span);
                    }
                    Err(message) => {
                        gathered.refuse(format!("resourceSpans[{first}].scopeSpans[{second}].spans[{third}]"), message);
                    }
                }
            }
        }
    }
    gathered.finish()
}

/// Reads a request that is decoded already. Records of no trace, and those that tell of no model, are
/// passed over.
pub fn logs_of(request: ExportLogsServiceRequest) -> SpansRead {
    let mut gathered = Gathered::new(Kind::Otlp);
    let scopes = request.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
    for record in scopes.flat_map(|scope| scope.log_records) {
        if let Some((trace_id, log)) = read_record(record) {
            gathered.log(trace_id, log);
        }
    }
    gathered.finish()
}

fn read_span(sent: Sent) -> Result<(String, Span), &'static str> {
    let trace_id = identifier::of_bytes(&sent.trace_id).ok_or("`traceId` is missing")?;
    let id = identifier::of_bytes(&sent.span_id).ok_or("`spanId` is missing")?;
    let events = sent.events.into_iter().map(|event| SpanEvent {
        name: event.name,
        time: since_1970(event.time_unix_nano.into(), Unit::Nanoseconds),
        attributes: attributes(event.attributes),
    });
    let span = Span {
        id,
        parent: identifier::of_bytes(&sent.parent_span_id),
        name: sent.name,
        start: since_1970(sent.start_time_unix_nano.into(), Unit::Nanoseconds),
        end: since_1970(sent.end_time_unix_nano.into(), Unit::Nanoseconds),
        attributes: attributes(sent.attributes),
        events: events.collect(),
        error: sent.status.filter(|status| status.code == ERROR).map(|status| status.message),
        ..Span::default()
    };
    Ok((trace_id, span))
}

fn read_record(sent: LogRecord) -> Option<(String, LogEvent)> {
    let trace_id = identifier::of_bytes(&sent.trace_id)?;
    let time = if sent.time_unix_nano == 0 { sent.observed_time_unix_nano } else { sent.time_unix_nano };
    let mut event = SpanEvent {
        name: sent.event_name,
        time: since_1970(time.into(), Unit::Nanoseconds),
        attributes: attributes(sent.attributes),
    };
    name_event(&mut event);
    if !tells_of_a_model(&event) {
        return None;
    }
    let body = sent.body.map(any_value).unwrap_or_default();
    Some((trace_id, LogEvent { span: identifier::of_bytes(&sent.span_id), event, body }))
}

fn attributes(sent: Vec<KeyValue>) -> Map<String, Value> {
    sent.into_iter().map(|pair| (pair.key, pair.value.map(any_value).unwrap_or_default())).collect()
}

fn any_value(sent: AnyValue) -> Value {
    match sent.value {
        Some(Inner::StringValue(text)) => Value::String(text),
        Some(Inner::BoolValue(truth)) => Value::Bool(truth),
        Some(Inner::IntValue(number)) => number.into(),
        Some(Inner::DoubleValue(number)) if number.is_finite() => number.into(),
        Some(Inner::DoubleValue(number)) => Value::String(number.to_string()),
        Some(Inner::ArrayValue(list)) => Value::Array(list.values.into_iter().map(any_value).collect()),
        Some(Inner::KvlistValue(list)) => Value::Object(attributes(list.values)),
        Some(Inner::BytesValue(bytes)) => Value::String(STANDARD.encode(bytes)),
        // An index is only in profiles, which have the table that it points into.
        None | Some(Inner::StringValueStrindex(_)) => Value::Null,
    }
}
