//! Encodings of the same spans by different exporters.

use karat_traces::{TraceParts, assemble, jaeger, otlp};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Inner;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, TracesData};
use prost::Message as _;
use rstest::rstest;
use serde_json::{Value, json};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn single_trace(read: otlp::ParsedSpans) -> TraceParts {
    assert_eq!(read.refused, []);
    assert_eq!(read.traces.len(), 1, "{read:?}");
    read.traces.into_iter().next().expect("one trace")
}

/// One span as in the specification.
fn standard_export() -> Value {
    json!({"resourceSpans": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
        "scopeSpans": [{"scope": {"name": "lib"}, "spans": [{
            "traceId": TRACE, "spanId": "00f067aa0ba902b7", "parentSpanId": "", "name": "chat", "kind": 3,
            "startTimeUnixNano": "1771237534567093000", "endTimeUnixNano": "1771237535567093000",
            "attributes": [
                {"key": "text", "value": {"stringValue": "a"}}, {"key": "count", "value": {"intValue": "7"}},
                {"key": "share", "value": {"doubleValue": 0.5}}, {"key": "yes", "value": {"boolValue": true}},
                {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "b"}, {"intValue": "8"}]}}},
                {"key": "map", "value": {"kvlistValue": {"values": [{"key": "c", "value": {"stringValue": "d"}}]}}},
                {"key": "none", "value": {}},
            ],
            "events": [{"timeUnixNano": "1771237534567093000", "name": "exception", "attributes": [{"key": "exception.message", "value": {"stringValue": "no"}}]}],
            "status": {"code": 2, "message": "failed"},
        }]}],
    }]})
}

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = standard_export();
    change(&mut value);
    value
}

fn first_span(value: &mut Value) -> &mut Value {
    &mut value["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
}

fn renamed(value: &Value, names: &[(&str, &str)]) -> Value {
    let mut text = value.to_string();
    for (from, to) in names {
        text = text.replace(&format!("\"{from}\":"), &format!("\"{to}\":"));
    }
    serde_json::from_str(&text).expect("JSON")
}

#[rstest]
#[case::snake_case(renamed(&standard_export(), &[
    ("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans"), ("traceId", "trace_id"), ("spanId", "span_id"),
    ("parentSpanId", "parent_span_id"), ("startTimeUnixNano", "start_time_unix_nano"), ("endTimeUnixNano", "end_time_unix_nano"),
    ("timeUnixNano", "time_unix_nano"), ("stringValue", "string_value"), ("intValue", "int_value"), ("doubleValue", "double_value"),
    ("boolValue", "bool_value"), ("arrayValue", "array_value"), ("kvlistValue", "kvlist_value"),
]))]
#[case::tempo(renamed(&standard_export(), &[("resourceSpans", "batches"), ("scopeSpans", "instrumentationLibrarySpans"), ("scope", "instrumentationLibrary")]))]
#[case::tempo_in_a_wrapper(json!({"trace": renamed(&standard_export(), &[("resourceSpans", "batches")])}))]
#[case::a_list_of_exports(json!([standard_export()]))]
#[case::one_resource(standard_export()["resourceSpans"][0].clone())]
#[case::ids_in_capitals(with(|value| first_span(value)["traceId"] = json!(TRACE.to_uppercase())))]
#[case::ids_in_base64(with(|value| {
    first_span(value)["traceId"] = json!("S/kvNXezTaajzpKdDg5HNg==");
    first_span(value)["spanId"] = json!("APBnqgupArc=");
}))]
#[case::times_as_numbers(with(|value| {
    first_span(value)["startTimeUnixNano"] = json!(1_771_237_534_567_093_000_u64);
    first_span(value)["endTimeUnixNano"] = json!(1_771_237_535_567_093_000_u64);
}))]
#[case::enums_by_name(with(|value| {
    first_span(value)["kind"] = json!("SPAN_KIND_CLIENT");
    first_span(value)["status"]["code"] = json!("STATUS_CODE_ERROR");
}))]
#[case::whole_numbers_as_numbers(with(|value| first_span(value)["attributes"][1]["value"]["intValue"] = json!(7)))]
#[case::no_parent_as_zeros(with(|value| first_span(value)["parentSpanId"] = json!("0000000000000000")))]
fn reads_all_json_variants(#[case] value: Value) {
    let expected = single_trace(otlp::read_value(standard_export()).unwrap());
    assert_eq!(single_trace(otlp::read_json(value.to_string().as_bytes()).unwrap()), expected);
    let span = &expected.spans["00f067aa0ba902b7"];
    assert_eq!(
        Value::Object(span.attributes.clone()),
        json!({"text": "a", "count": 7, "share": 0.5, "yes": true, "list": ["b", 8], "map": {"c": "d"}, "none": {}})
    );
    assert_eq!(span.error.as_deref(), Some("failed"));
    assert_eq!(span.parent, None);
    assert_eq!(span.scope.as_deref(), Some("lib"));
    assert_eq!(Value::Object(span.resource.clone()), json!({"service.name": "shop"}));
}

/// The output of Python's console exporter.
#[test]
fn reads_a_single_span() {
    let value = json!({
        "name": "chat", "context": {"trace_id": format!("0x{TRACE}"), "span_id": "0x00f067aa0ba902b7", "trace_state": "[]"},
        "kind": "SpanKind.CLIENT", "parent_id": null, "start_time": "2026-02-16T10:25:34.567093Z", "end_time": "2026-02-16T10:25:35.567093Z",
        "status": {"status_code": "ERROR", "description": "failed"}, "attributes": {"count": 7}, "events": [], "links": [],
        "resource": {"attributes": {"service.name": "shop"}, "schema_url": ""},
    });
    let parts = single_trace(otlp::read_value(value).unwrap());
    let span = &parts.spans["00f067aa0ba902b7"];
    assert_eq!(parts.trace_id, TRACE);
    assert_eq!((span.error.as_deref(), span.attributes["count"].as_u64()), (Some("failed"), Some(7)));
    assert_eq!(span.start.unwrap().to_string(), "2026-02-16T10:25:34.567093Z");
    assert_eq!(Value::Object(span.resource.clone()), json!({"service.name": "shop"}));
}

#[rstest]
#[case::no_object(json!(3), "expected an object, found a number")]
#[case::no_trace(json!({"spanId": "a1"}), "missing `traceId`")]
#[case::zeros(json!({"traceId": "00000000000000000000000000000000", "spanId": "a1"}), "missing `traceId`")]
#[case::no_span(json!({"traceId": TRACE}), "missing `spanId`")]
#[case::id_of_wrong_type(json!({"traceId": 7, "spanId": "a1"}), "'traceId': expected a string, found a number")]
#[case::no_time(json!({"traceId": TRACE, "spanId": "a1", "startTimeUnixNano": "soon"}), "`startTimeUnixNano`: invalid time: \"soon\"")]
#[case::no_attributes(json!({"traceId": TRACE, "spanId": "a1", "attributes": "x"}), "'attributes': expected a list, found a string")]
#[case::no_key(json!({"traceId": TRACE, "spanId": "a1", "attributes": [{"value": {}}]}), "an attribute has no 'key'")]
#[case::no_events(json!({"traceId": TRACE, "spanId": "a1", "events": 7}), "'events': expected a list, found a number")]
fn refuses_only_the_broken_span(#[case] broken: Value, #[case] message: &str) {
    let mut value = standard_export();
    value["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array_mut().unwrap().push(broken);
    let read = otlp::read_value(value).unwrap();
    assert_eq!(read.traces.len(), 1);
    let refused: Vec<_> =
        read.refused.iter().map(|refusal| (refusal.location.as_str(), refusal.message.as_str())).collect();
    assert_eq!(refused, [("resourceSpans[0].scopeSpans[0].spans[1]", message)]);
}

#[rstest]
#[case("", "invalid JSON: the input is empty")]
#[case("{", "invalid JSON: unexpected end of input (line 1, column 1)")]
#[case("{\n\"resourceSpans\": [", "invalid JSON: unexpected end of input (line 2, column 18)")]
#[case("{\n\"resourceSpans\": [],\n}", "invalid JSON: trailing comma (line 3, column 1)")]
#[case("<!doctype html>", "invalid JSON: starts with '<!doctype'")]
#[case("nonsense", "invalid JSON: starts with 'nonsense'")]
#[case("a-word-that-goes-on-and-on", "invalid JSON: starts with 'a-word-that-goes-on-…'")]
#[case("{\"resourceSpans\": nil}", "invalid JSON: expected a value (line 1, column 20)")]
#[case("7", "not an OpenTelemetry export: expected 'resourceSpans', 'resourceLogs' or 'batches'")]
#[case(r#"{"messages": []}"#, "not an OpenTelemetry export: expected 'resourceSpans', 'resourceLogs' or 'batches'")]
fn rejects_other_input(#[case] text: &str, #[case] message: &str) {
    assert_eq!(otlp::read_json(text.as_bytes()).unwrap_err().to_string(), message);
}

#[test]
fn accepts_empty_exports() {
    for text in ["{}", r#"{"resourceSpans": []}"#, r#"{"resourceLogs": []}"#, "[]"] {
        assert_eq!(otlp::read_json(text.as_bytes()).unwrap(), otlp::ParsedSpans::default());
    }
}

fn pair(key: &str, value: Inner) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn protobuf_request() -> ExportTraceServiceRequest {
    let text = |text: &str| Inner::StringValue(text.to_owned());
    let any = |value| AnyValue { value: Some(value) };
    let list = ArrayValue { values: vec![any(text("b")), any(Inner::IntValue(8))] };
    let map = KeyValueList { values: vec![pair("c", text("d"))] };
    let span = Span {
        trace_id: (0..16).map(|at| u8::from_str_radix(&TRACE[at * 2..at * 2 + 2], 16).expect("hexadecimal")).collect(),
        span_id: vec![0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7],
        name: "chat".to_owned(),
        start_time_unix_nano: 1_771_237_534_567_093_000,
        end_time_unix_nano: 1_771_237_535_567_093_000,
        attributes: vec![
            pair("text", text("a")),
            pair("count", Inner::IntValue(7)),
            pair("share", Inner::DoubleValue(0.5)),
            pair("yes", Inner::BoolValue(true)),
            pair("list", Inner::ArrayValue(list)),
            pair("map", Inner::KvlistValue(map)),
            pair("none", Inner::KvlistValue(KeyValueList::default())),
        ],
        events: vec![Event {
            time_unix_nano: 1_771_237_534_567_093_000,
            name: "exception".to_owned(),
            attributes: vec![pair("exception.message", text("no"))],
            ..Event::default()
        }],
        status: Some(Status { message: "failed".to_owned(), code: 2 }),
        ..Span::default()
    };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes: vec![pair("service.name", text("shop"))], ..Resource::default() }),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope { name: "lib".to_owned(), ..InstrumentationScope::default() }),
                spans: vec![span],
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    }
}

#[test]
fn reads_the_same_spans_from_protobuf_and_json() {
    let expected = single_trace(otlp::read_value(standard_export()).unwrap());
    assert_eq!(single_trace(otlp::read_protobuf(&protobuf_request().encode_to_vec()).unwrap()), expected);
    let file = TracesData { resource_spans: protobuf_request().resource_spans };
    assert_eq!(single_trace(otlp::read_protobuf(&file.encode_to_vec()).unwrap()), expected);
}

#[test]
fn refuses_only_the_broken_span_in_protobuf() {
    let mut request = protobuf_request();
    let spans = &mut request.resource_spans[0].scope_spans[0].spans;
    spans.push(Span { span_id: vec![1], ..Span::default() });
    let read = otlp::read_protobuf(&request.encode_to_vec()).unwrap();
    assert_eq!(read.traces.len(), 1);
    assert_eq!(read.refused[0].location, "resourceSpans[0].scopeSpans[0].spans[1]");
    assert_eq!(read.refused[0].message, "missing `traceId`");
}

#[test]
fn reads_log_records_from_protobuf_and_json() {
    let record = LogRecord {
        time_unix_nano: 1_771_237_534_000_000_000,
        body: Some(AnyValue { value: Some(Inner::StringValue("hello".to_owned())) }),
        attributes: vec![pair("event.name", Inner::StringValue("gen_ai.choice".to_owned()))],
        trace_id: vec![0x4b; 16],
        span_id: vec![0xf0; 8],
        ..LogRecord::default()
    };
    let without_trace = LogRecord { trace_id: Vec::new(), ..record.clone() };
    let scope_logs =
        vec![ScopeLogs { log_records: vec![record.clone(), without_trace, record], ..ScopeLogs::default() }];
    let request =
        ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] };
    let parts = single_trace(otlp::read_protobuf(&request.encode_to_vec()).unwrap());
    assert_eq!(parts.logs.len(), 1, "duplicates are removed");
    assert_eq!((parts.logs[0].event.name.as_str(), &parts.logs[0].body), ("gen_ai.choice", &json!("hello")));

    let value = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"timeUnixNano": "1771237534000000000", "traceId": "4b".repeat(16), "spanId": "f0".repeat(8), "body": {"stringValue": "hello"},
         "attributes": [{"key": "event.name", "value": {"stringValue": "gen_ai.choice"}}]},
        {"body": {"stringValue": "without trace"}},
    ]}]}]});
    assert_eq!(single_trace(otlp::read_value(value).unwrap()), parts);
}

#[test]
fn rejects_invalid_protobuf() {
    let error = |bytes: &[u8]| otlp::read_protobuf(bytes).unwrap_err().to_string();
    assert_eq!(error(b"{\"resourceSpans\": []}"), "not OpenTelemetry protobuf: looks like JSON");
    let whole = protobuf_request().encode_to_vec();
    let truncated = "not OpenTelemetry protobuf, or truncated: unexpected end of input";
    assert_eq!(error(&whole[..whole.len() - 1]), truncated);
    assert!(error(b"hello, world").starts_with("not OpenTelemetry protobuf"), "{}", error(b"hello, world"));
}

#[test]
fn reads_jaeger_exports() {
    let value = json!({"data": [{
        "traceID": TRACE,
        "processes": {"p1": {"serviceName": "shop", "tags": [{"key": "zone", "type": "string", "value": "a"}]}},
        "spans": [
            {"traceID": TRACE, "spanID": "f067aa0ba902b7", "operationName": "POST", "references": [], "startTime": 1_771_237_534_567_093_u64,
             "duration": 2000, "tags": [], "logs": [], "processID": "p1"},
            {"traceID": TRACE, "spanID": "a1", "operationName": "chat", "startTime": 1_771_237_534_567_093_u64, "duration": 1000,
             "references": [{"refType": "FOLLOWS_FROM", "traceID": TRACE, "spanID": "ff"}, {"refType": "CHILD_OF", "traceID": TRACE, "spanID": "f067aa0ba902b7"}],
             "tags": [
                {"key": "count", "type": "int64", "value": "7"}, {"key": "yes", "type": "bool", "value": true},
                {"key": "otel.status_code", "type": "string", "value": "ERROR"}, {"key": "otel.status_description", "type": "string", "value": "failed"},
                {"key": "error", "type": "bool", "value": true}, {"key": "otel.scope.name", "type": "string", "value": "lib"},
             ],
             "logs": [{"timestamp": 1_771_237_534_567_500_u64, "fields": [{"key": "event", "type": "string", "value": "exception"}, {"key": "exception.message", "type": "string", "value": "no"}]}],
             "processID": "p1"},
            {"spanID": ""}, 7,
        ],
    }], "total": 0});
    let read = jaeger::read_json(value.to_string().as_bytes()).unwrap();
    let refused: Vec<_> =
        read.refused.iter().map(|refusal| format!("{}: {}", refusal.location, refusal.message)).collect();
    assert_eq!(refused, ["data[0].spans[2]: missing `spanID`", "data[0].spans[3]: expected an object"]);
    let parts = &read.traces[0];
    assert_eq!((parts.source.as_str(), parts.trace_id.as_str()), ("jaeger", TRACE));
    let span = &parts.spans["00000000000000a1"];
    assert_eq!(span.parent.as_deref(), Some("00f067aa0ba902b7"));
    assert_eq!(span.start.unwrap().to_string(), "2026-02-16T10:25:34.567093Z");
    assert_eq!(span.end.unwrap().to_string(), "2026-02-16T10:25:34.568093Z");
    assert_eq!((span.error.as_deref(), span.scope.as_deref()), (Some("failed"), Some("lib")));
    assert_eq!(Value::Object(span.attributes.clone()), json!({"count": 7, "yes": true}));
    assert_eq!(span.events[0].name, "exception");
    assert_eq!(Value::Object(span.resource.clone()), json!({"zone": "a", "service.name": "shop"}));
    assert_eq!(assemble(parts).document.name.as_deref(), Some("POST"));
}

#[test]
fn rejects_other_input_as_jaeger_export() {
    assert_eq!(jaeger::read_json(b"{}").unwrap_err().to_string(), "not a Jaeger export: expected 'data' or 'spans'");
}
