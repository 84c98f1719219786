//! OTLP protobuf: requests to a collector, and files of `TracesData` and `LogsData`, which have the same encoding.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as ProtoValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span as ProtoSpan;
use prost::Message as _;
use serde_json::{Map, Value};

use super::collector::SpanCollector;
use super::json::{fill_event_name, is_gen_ai_event};
use super::{ParseError, ParsedSpans};
use crate::format::TraceFormat;
use crate::otel_ids;
use crate::parts::{LogEvent, Span, SpanEvent};
use crate::time::{Unit, from_epoch};

const STATUS_CODE_ERROR: i32 = 2;

/// Reads spans or log records, whichever the bytes encode.
pub fn read_protobuf(bytes: &[u8]) -> Result<ParsedSpans, ParseError> {
    let traces = read_traces_protobuf(bytes);
    match traces {
        Ok(read) => Ok(read),
        Err(error) => read_logs_protobuf(bytes).map_err(|_| error),
    }
}

/// Reads an `ExportTraceServiceRequest` or `TracesData`.
pub fn read_traces_protobuf(bytes: &[u8]) -> Result<ParsedSpans, ParseError> {
    let request = ExportTraceServiceRequest::decode(bytes).map_err(|error| decode_error(bytes, &error))?;
    Ok(convert_traces(request))
}

/// Reads an `ExportLogsServiceRequest` or `LogsData`.
pub fn read_logs_protobuf(bytes: &[u8]) -> Result<ParsedSpans, ParseError> {
    let request = ExportLogsServiceRequest::decode(bytes).map_err(|error| decode_error(bytes, &error))?;
    Ok(convert_logs(request))
}

/// Explains why bytes cannot be decoded.
fn decode_error(bytes: &[u8], error: &prost::DecodeError) -> ParseError {
    if matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) && std::str::from_utf8(bytes).is_ok() {
        return ParseError("not OpenTelemetry protobuf: looks like JSON".to_owned());
    }
    let message = error.to_string();
    if message.ends_with("buffer underflow") {
        return ParseError("not OpenTelemetry protobuf, or truncated: unexpected end of input".to_owned());
    }
    let reason = message.strip_prefix("failed to decode Protobuf message: ").unwrap_or(&message);
    ParseError(format!("not OpenTelemetry protobuf: {reason}"))
}

/// Converts a decoded request.
pub fn convert_traces(request: ExportTraceServiceRequest) -> ParsedSpans {
    let mut collector = SpanCollector::new(TraceFormat::Otlp);
    for (resource_index, resource) in request.resource_spans.into_iter().enumerate() {
        let resource_attributes = resource.resource.map(|resource| attributes(resource.attributes)).unwrap_or_default();
        for (scope_index, scope) in resource.scope_spans.into_iter().enumerate() {
            let scope_name = scope.scope.map(|scope| scope.name).filter(|name| !name.is_empty());
            for (span_index, proto) in scope.spans.into_iter().enumerate() {
                match read_span(proto) {
                    Ok((trace_id, mut span)) => {
                        span.resource.clone_from(&resource_attributes);
                        span.scope.clone_from(&scope_name);
                        collector.add_span(trace_id, span);
                    }
                    Err(message) => {
                        let location =
                            format!("resourceSpans[{resource_index}].scopeSpans[{scope_index}].spans[{span_index}]");
                        collector.refuse(location, message);
                    }
                }
            }
        }
    }
    collector.finish()
}

/// Converts a decoded request. Records without a trace or without model content are skipped.
pub fn convert_logs(request: ExportLogsServiceRequest) -> ParsedSpans {
    let mut collector = SpanCollector::new(TraceFormat::Otlp);
    let scopes = request.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
    for record in scopes.flat_map(|scope| scope.log_records) {
        if let Some((trace_id, log)) = read_record(record) {
            collector.add_log(trace_id, log);
        }
    }
    collector.finish()
}

fn read_span(proto: ProtoSpan) -> Result<(String, Span), &'static str> {
    let trace_id = otel_ids::from_bytes(&proto.trace_id).ok_or("missing `traceId`")?;
    let id = otel_ids::from_bytes(&proto.span_id).ok_or("missing `spanId`")?;
    let events = proto.events.into_iter().map(|event| SpanEvent {
        name: event.name,
        time: from_epoch(event.time_unix_nano.into(), Unit::Nanoseconds),
        attributes: attributes(event.attributes),
    });
    let span = Span {
        id,
        parent: otel_ids::from_bytes(&proto.parent_span_id),
        name: proto.name,
        start: from_epoch(proto.start_time_unix_nano.into(), Unit::Nanoseconds),
        end: from_epoch(proto.end_time_unix_nano.into(), Unit::Nanoseconds),
        attributes: attributes(proto.attributes),
        events: events.collect(),
        error: proto.status.filter(|status| status.code == STATUS_CODE_ERROR).map(|status| status.message),
        ..Span::default()
    };
    Ok((trace_id, span))
}

fn read_record(proto: LogRecord) -> Option<(String, LogEvent)> {
    let trace_id = otel_ids::from_bytes(&proto.trace_id)?;
    let time = if proto.time_unix_nano == 0 { proto.observed_time_unix_nano } else { proto.time_unix_nano };
    let mut event = SpanEvent {
        name: proto.event_name,
        time: from_epoch(time.into(), Unit::Nanoseconds),
        attributes: attributes(proto.attributes),
    };
    fill_event_name(&mut event);
    if !is_gen_ai_event(&event) {
        return None;
    }
    let body = proto.body.map(any_value).unwrap_or_default();
    Some((trace_id, LogEvent { span: otel_ids::from_bytes(&proto.span_id), event, body }))
}

fn attributes(proto: Vec<KeyValue>) -> Map<String, Value> {
    proto.into_iter().map(|pair| (pair.key, pair.value.map(any_value).unwrap_or_default())).collect()
}

fn any_value(proto: AnyValue) -> Value {
    match proto.value {
        Some(ProtoValue::StringValue(text)) => Value::String(text),
        Some(ProtoValue::BoolValue(boolean)) => Value::Bool(boolean),
        Some(ProtoValue::IntValue(number)) => number.into(),
        Some(ProtoValue::DoubleValue(number)) if number.is_finite() => number.into(),
        Some(ProtoValue::DoubleValue(number)) => Value::String(number.to_string()),
        Some(ProtoValue::ArrayValue(list)) => Value::Array(list.values.into_iter().map(any_value).collect()),
        Some(ProtoValue::KvlistValue(list)) => Value::Object(attributes(list.values)),
        Some(ProtoValue::BytesValue(bytes)) => Value::String(STANDARD.encode(bytes)),
        // Only profiles use string indices: they have the table that the indices point into.
        None | Some(ProtoValue::StringValueStrindex(_)) => Value::Null,
    }
}
