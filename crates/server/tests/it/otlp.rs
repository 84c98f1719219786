//! Accepted requests and their responses.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use karat_server::Limits;
use karat_workflows::receive_traces::RefusedRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{JSON, MemorySink, PROTOBUF, Receiver, Response, gzip, hex_trace_id, log, logs, span, spans};

fn span_ids(receiver: &Receiver, trace: u32) -> Vec<String> {
    let traces = receiver.sink.traces();
    traces.get(&hex_trace_id(trace)).map(|trace| trace.spans.keys().cloned().collect()).unwrap_or_default()
}

#[tokio::test]
async fn accepts_both_encodings_with_and_without_compression() {
    let receiver = Receiver::start().await;
    let protobuf = |trace| spans(vec![span(trace, 1), span(trace, 2)]).encode_to_vec();
    let json = |trace| serde_json::to_vec(&spans(vec![span(trace, 1), span(trace, 2)])).unwrap();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(&protobuf(5)).unwrap();
    let responses = [
        receiver.send("/v1/traces", PROTOBUF, protobuf(1)).await,
        receiver.send("/v1/traces", "application/json; charset=utf-8", json(2)).await,
        receiver.send_compressed(PROTOBUF, "gzip", gzip(&protobuf(3))).await,
        receiver.send_compressed(JSON, "gzip", gzip(&json(4))).await,
        receiver.send_compressed(PROTOBUF, "deflate", zlib.finish().unwrap()).await,
    ];
    for (index, response) in responses.iter().enumerate() {
        assert_eq!(response.status, 200, "{index}: {response:?}");
        let (media_type, body) = if matches!(index, 1 | 3) { (JSON, "{}") } else { (PROTOBUF, "") };
        assert_eq!((response.media_type.as_str(), response.text().as_str()), (media_type, body), "{index}");
    }
    for trace in 1..=5 {
        assert_eq!(span_ids(&receiver, trace), ["0101010101010101", "0202020202020202"], "trace {trace}");
    }
    assert_eq!(receiver.sink.refusals(), []);
}

#[rstest]
#[case(PROTOBUF, b"".as_slice())]
#[case(JSON, b"{}".as_slice())]
#[tokio::test]
async fn accepts_empty_requests(#[case] media_type: &str, #[case] body: &'static [u8]) {
    let receiver = Receiver::start().await;
    for path in ["/v1/traces", "/v1/logs"] {
        assert_eq!(receiver.send(path, media_type, body).await.status, 200);
    }
    assert_eq!(receiver.sink.writes.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn log_records_join_their_trace() {
    let receiver = Receiver::start().await;
    let response = receiver.send("/v1/logs", PROTOBUF, logs(vec![log(1, 1, "hello")]).encode_to_vec()).await;
    assert_eq!((response.status, response.text().as_str()), (200, ""));
    let response = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(1, 1)]).encode_to_vec()).await;
    assert_eq!(response.status, 200);
    let response = receiver.send("/v1/logs", JSON, serde_json::to_vec(&logs(vec![log(1, 1, "again")])).unwrap()).await;
    assert_eq!((response.status, response.text().as_str()), (200, "{}"));
    let traces = receiver.sink.traces();
    let trace = &traces[&hex_trace_id(1)];
    let bodies: Vec<&Value> = trace.logs.iter().map(|log| &log.body).collect();
    assert_eq!((trace.spans.len(), bodies), (1, vec![&json!("again"), &json!("hello")]), "in any order");
}

#[tokio::test]
async fn only_the_invalid_span_is_refused() {
    let receiver = Receiver::start().await;
    let mut invalid = span(1, 7);
    invalid.trace_id.clear();
    let request = spans(vec![invalid, span(1, 1)]);
    let response = receiver.send("/v1/traces", PROTOBUF, request.encode_to_vec()).await;
    let partial = ExportTraceServiceResponse::decode(response.body.as_slice()).unwrap().partial_success.unwrap();
    assert_eq!((response.status, partial.rejected_spans), (200, 1));
    assert!(partial.error_message.starts_with("1 span refused: "), "{}", partial.error_message);
    assert_eq!(span_ids(&receiver, 1), ["0101010101010101"]);

    let response = receiver.send("/v1/traces", JSON, serde_json::to_vec(&request).unwrap()).await;
    let body: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(body["partialSuccess"]["rejectedSpans"], "1");
    assert!(body["partialSuccess"]["errorMessage"].as_str().unwrap().contains("refused"), "{body}");
    let reported: Vec<(u16, u64)> =
        receiver.sink.refusals().iter().map(|refusal| (refusal.status, refusal.rejected)).collect();
    assert_eq!(reported, [(200, 1), (200, 1)]);
}

#[tokio::test]
async fn ignores_log_records_without_a_trace() {
    let receiver = Receiver::start().await;
    let mut unrelated = log(1, 1, "no trace");
    unrelated.trace_id.clear();
    let request = logs(vec![unrelated, log(1, 1, "of a trace")]);
    let response = receiver.send("/v1/logs", PROTOBUF, request.encode_to_vec()).await;
    assert_eq!((response.status, response.text().as_str()), (200, ""));
    assert_eq!(receiver.sink.traces().len(), 1);
    assert_eq!(receiver.sink.traces()[&hex_trace_id(1)].logs.len(), 1);
}

#[tokio::test]
async fn a_refused_trace_counts_all_its_spans() {
    let refused_traces = BTreeMap::from([(hex_trace_id(2), "it is invalid")]);
    let receiver = Receiver::with(MemorySink { refused_traces, ..MemorySink::default() }, Limits::default()).await;
    let request = spans(vec![span(1, 1), span(2, 1), span(2, 2)]);
    let response = receiver.send("/v1/traces", PROTOBUF, request.encode_to_vec()).await;
    let partial = ExportTraceServiceResponse::decode(response.body.as_slice()).unwrap().partial_success.unwrap();
    assert_eq!((response.status, partial.rejected_spans), (200, 2));
    assert_eq!(partial.error_message, format!("2 spans refused: trace {}: it is invalid", hex_trace_id(2)));
    assert_eq!(span_ids(&receiver, 1).len(), 1);
}

/// google.rpc.Status.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

fn error_message(response: &Response) -> String {
    match response.media_type.as_str() {
        PROTOBUF => Status::decode(response.body.as_slice()).expect("the body is a status").message,
        JSON => {
            let status: Value = serde_json::from_slice(&response.body).expect("the body is JSON");
            status["message"].as_str().expect("the message is a string").to_owned()
        }
        _ => response.text(),
    }
}

#[rstest]
#[case(PROTOBUF, b"\xff\xff\xff".as_slice())]
#[case(JSON, b"{\"resourceSpans\": [".as_slice())]
#[case(JSON, b"\xff".as_slice())]
#[tokio::test]
async fn rejects_invalid_bodies(#[case] media_type: &str, #[case] body: &'static [u8]) {
    let receiver = Receiver::start().await;
    for path in ["/v1/traces", "/v1/logs"] {
        let response = receiver.send(path, media_type, body).await;
        assert_eq!((response.status, response.media_type.as_str()), (400, media_type), "{response:?}");
        let message = error_message(&response);
        assert!(message.starts_with("cannot parse the body: "), "{message}");
        assert_eq!(receiver.sink.refusals().last(), Some(&RefusedRequest { status: 400, rejected: 0, message }));
    }
    let response = receiver.send_compressed(media_type, "gzip", b"not gzip".to_vec()).await;
    assert_eq!(response.status, 400);
    assert!(error_message(&response).starts_with("cannot decompress the body: "), "{response:?}");
}

#[tokio::test]
async fn rejects_unsupported_types_and_encodings() {
    let receiver = Receiver::start().await;
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "application/grpc", "multipart/form-data"] {
        let response = receiver.send("/v1/traces", media_type, "{}").await;
        assert_eq!(response.status, 415, "{media_type}");
        assert!(response.text().contains(media_type), "{response:?}");
    }
    let response =
        Response::read(receiver.client.post(receiver.url("/v1/logs")).body("{}").send().await.unwrap()).await;
    assert_eq!(response.status, 415);
    assert!(response.text().contains("missing Content-Type"), "{response:?}");
    let response = receiver.send_compressed(JSON, "zstd", b"{}".to_vec()).await;
    assert_eq!((response.status, response.media_type.as_str()), (415, JSON));
    assert_eq!(error_message(&response), "unsupported Content-Encoding 'zstd': use gzip or deflate");
}

#[tokio::test]
async fn answers_other_paths_and_methods() {
    let receiver = Receiver::start().await;
    for path in ["/v1/traces", "/v1/logs"] {
        let response = Response::read(receiver.client.get(receiver.url(path)).send().await.unwrap()).await;
        assert_eq!((response.status, response.allow.as_deref()), (405, Some("POST")));
    }
    let response = Response::read(receiver.client.get(receiver.url("/healthz")).send().await.unwrap()).await;
    assert_eq!((response.status, response.text().as_str()), (200, "ok\n"));
    let response = receiver.send("/", PROTOBUF, "").await;
    assert_eq!(response.status, 404);
    assert!(response.text().contains("/v1/traces"), "{response:?}");
    let response = receiver.send("/v1/metrics", JSON, "{}").await;
    assert_eq!(response.status, 404);
    assert!(error_message(&response).contains("OTEL_METRICS_EXPORTER=none"), "{response:?}");
    // The sink is notified, because senders may not show the error.
    let reported: Vec<u16> = receiver.sink.refusals().iter().map(|refusal| refusal.status).collect();
    assert_eq!(reported, [404, 404]);
}

#[tokio::test]
async fn rejects_requests_from_browsers() {
    let receiver = Receiver::start().await;
    let body = spans(vec![span(1, 1)]).encode_to_vec();
    let request = receiver.client.post(receiver.url("/v1/traces")).header("content-type", PROTOBUF);
    let response =
        Response::read(request.header("origin", "https://example.com").body(body).send().await.unwrap()).await;
    assert_eq!(response.status, 403);
    assert!(receiver.sink.traces().is_empty());
}

#[tokio::test]
async fn store_failures_are_server_errors() {
    let refused_traces =
        BTreeMap::from([(hex_trace_id(2), "full: no space left on the disk"), (hex_trace_id(3), "panic")]);
    let receiver = Receiver::with(MemorySink { refused_traces, ..MemorySink::default() }, Limits::default()).await;
    for (media_type, body) in [
        (PROTOBUF, spans(vec![span(2, 1)]).encode_to_vec()),
        (JSON, serde_json::to_vec(&spans(vec![span(2, 1)])).unwrap()),
    ] {
        let response = receiver.send("/v1/traces", media_type, body).await;
        assert_eq!((response.status, response.media_type.as_str()), (503, media_type));
        assert_eq!(response.retry_after.as_deref(), Some("2"));
        assert_eq!(error_message(&response), "full: no space left on the disk");
    }
    // A panic of the sink does not affect other requests.
    let response = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(3, 1)]).encode_to_vec()).await;
    assert_eq!(response.status, 503);
    let response = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(1, 1)]).encode_to_vec()).await;
    assert_eq!(response.status, 200);
}
