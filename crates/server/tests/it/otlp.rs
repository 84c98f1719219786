//! What is taken, and what each request is told.

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

use crate::support::{Answer, JSON, Memory, PROTOBUF, Receiver, gzip, log, logs, span, spans, trace_name};

fn span_ids(receiver: &Receiver, trace: u32) -> Vec<String> {
    let traces = receiver.sink.traces();
    traces.get(&trace_name(trace)).map(|trace| trace.spans.keys().cloned().collect()).unwrap_or_default()
}

#[tokio::test]
async fn spans_are_taken_in_both_encodings_packed_or_not() {
    let receiver = Receiver::start().await;
    let protobuf = |trace| spans(vec![span(trace, 1), span(trace, 2)]).encode_to_vec();
    let json = |trace| serde_json::to_vec(&spans(vec![span(trace, 1), span(trace, 2)])).unwrap();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(&protobuf(5)).unwrap();
    let answers = [
        receiver.send("/v1/traces", PROTOBUF, protobuf(1)).await,
        receiver.send("/v1/traces", "application/json; charset=utf-8", json(2)).await,
        receiver.send_packed(PROTOBUF, "gzip", gzip(&protobuf(3))).await,
        receiver.send_packed(JSON, "gzip", gzip(&json(4))).await,
        receiver.send_packed(PROTOBUF, "deflate", zlib.finish().unwrap()).await,
    ];
    for (index, answer) in answers.iter().enumerate() {
        assert_eq!(answer.status, 200, "{index}: {answer:?}");
        let (media_type, body) = if matches!(index, 1 | 3) { (JSON, "{}") } else { (PROTOBUF, "") };
        assert_eq!((answer.media_type.as_str(), answer.text().as_str()), (media_type, body), "{index}");
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
async fn nothing_is_taken_too(#[case] media_type: &str, #[case] body: &'static [u8]) {
    let receiver = Receiver::start().await;
    for path in ["/v1/traces", "/v1/logs"] {
        assert_eq!(receiver.send(path, media_type, body).await.status, 200);
    }
    assert_eq!(receiver.sink.writes.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn log_records_join_their_trace() {
    let receiver = Receiver::start().await;
    let sent = receiver.send("/v1/logs", PROTOBUF, logs(vec![log(1, 1, "hello")]).encode_to_vec()).await;
    assert_eq!((sent.status, sent.text().as_str()), (200, ""));
    let sent = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(1, 1)]).encode_to_vec()).await;
    assert_eq!(sent.status, 200);
    let sent = receiver.send("/v1/logs", JSON, serde_json::to_vec(&logs(vec![log(1, 1, "again")])).unwrap()).await;
    assert_eq!((sent.status, sent.text().as_str()), (200, "{}"));
    let traces = receiver.sink.traces();
    let trace = &traces[&trace_name(1)];
    let bodies: Vec<&Value> = trace.logs.iter().map(|log| &log.body).collect();
    assert_eq!((trace.spans.len(), bodies), (1, vec![&json!("again"), &json!("hello")]), "whatever came first");
}

#[tokio::test]
async fn a_broken_span_is_refused_alone() {
    let receiver = Receiver::start().await;
    let mut broken = span(1, 7);
    broken.trace_id.clear();
    let request = spans(vec![broken, span(1, 1)]);
    let answer = receiver.send("/v1/traces", PROTOBUF, request.encode_to_vec()).await;
    let partial = ExportTraceServiceResponse::decode(answer.body.as_slice()).unwrap().partial_success.unwrap();
    assert_eq!((answer.status, partial.rejected_spans), (200, 1));
    assert!(partial.error_message.starts_with("1 span refused: "), "{}", partial.error_message);
    assert_eq!(span_ids(&receiver, 1), ["0101010101010101"]);

    let answer = receiver.send("/v1/traces", JSON, serde_json::to_vec(&request).unwrap()).await;
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(said["partialSuccess"]["rejectedSpans"], "1");
    assert!(said["partialSuccess"]["errorMessage"].as_str().unwrap().contains("refused"), "{said}");
    let told: Vec<(u16, u64)> = receiver.sink.refusals().iter().map(|one| (one.status, one.rejected)).collect();
    assert_eq!(told, [(200, 1), (200, 1)]);
}

#[tokio::test]
async fn a_log_record_of_no_trace_is_passed_over() {
    let receiver = Receiver::start().await;
    let mut alone = log(1, 1, "no trace");
    alone.trace_id.clear();
    let request = logs(vec![alone, log(1, 1, "of a trace")]);
    let answer = receiver.send("/v1/logs", PROTOBUF, request.encode_to_vec()).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, ""));
    assert_eq!(receiver.sink.traces().len(), 1);
    assert_eq!(receiver.sink.traces()[&trace_name(1)].logs.len(), 1);
}

#[tokio::test]
async fn a_trace_that_cannot_be_stored_is_rejected_with_all_its_spans() {
    let refuses = BTreeMap::from([(trace_name(2), "it is too odd")]);
    let receiver = Receiver::with(Memory { refuses, ..Memory::default() }, Limits::default()).await;
    let request = spans(vec![span(1, 1), span(2, 1), span(2, 2)]);
    let answer = receiver.send("/v1/traces", PROTOBUF, request.encode_to_vec()).await;
    let partial = ExportTraceServiceResponse::decode(answer.body.as_slice()).unwrap().partial_success.unwrap();
    assert_eq!((answer.status, partial.rejected_spans), (200, 2));
    assert_eq!(partial.error_message, format!("2 spans refused: trace {}: it is too odd", trace_name(2)));
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

fn refusal(answer: &Answer) -> String {
    match answer.media_type.as_str() {
        PROTOBUF => Status::decode(answer.body.as_slice()).expect("a status").message,
        JSON => {
            let status: Value = serde_json::from_slice(&answer.body).expect("JSON");
            status["message"].as_str().expect("a message").to_owned()
        }
        _ => answer.text(),
    }
}

#[rstest]
#[case(PROTOBUF, b"\xff\xff\xff".as_slice())]
#[case(JSON, b"{\"resourceSpans\": [".as_slice())]
#[case(JSON, b"\xff".as_slice())]
#[tokio::test]
async fn a_body_that_is_none_is_said_to_be(#[case] media_type: &str, #[case] body: &'static [u8]) {
    let receiver = Receiver::start().await;
    for path in ["/v1/traces", "/v1/logs"] {
        let answer = receiver.send(path, media_type, body).await;
        assert_eq!((answer.status, answer.media_type.as_str()), (400, media_type), "{answer:?}");
        let message = refusal(&answer);
        assert!(message.starts_with("the body cannot be read: "), "{message}");
        assert_eq!(receiver.sink.refusals().last(), Some(&RefusedRequest { status: 400, rejected: 0, message }));
    }
    let answer = receiver.send_packed(media_type, "gzip", b"not gzip".to_vec()).await;
    assert_eq!(answer.status, 400);
    assert!(refusal(&answer).starts_with("the body cannot be unpacked: "), "{answer:?}");
}

#[tokio::test]
async fn other_types_and_packings_are_not_taken() {
    let receiver = Receiver::start().await;
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "application/grpc", "multipart/form-data"] {
        let answer = receiver.send("/v1/traces", media_type, "{}").await;
        assert_eq!(answer.status, 415, "{media_type}");
        assert!(answer.text().contains(media_type), "{answer:?}");
    }
    let answer = Answer::of(receiver.client.post(receiver.url("/v1/logs")).body("{}").send().await.unwrap()).await;
    assert_eq!(answer.status, 415);
    assert!(answer.text().contains("no Content-Type"), "{answer:?}");
    let answer = receiver.send_packed(JSON, "zstd", b"{}".to_vec()).await;
    assert_eq!((answer.status, answer.media_type.as_str()), (415, JSON));
    assert_eq!(refusal(&answer), "the Content-Encoding is not taken: zstd (gzip and deflate are)");
}

#[tokio::test]
async fn other_addresses_and_methods_are_answered() {
    let receiver = Receiver::start().await;
    for path in ["/v1/traces", "/v1/logs"] {
        let answer = Answer::of(receiver.client.get(receiver.url(path)).send().await.unwrap()).await;
        assert_eq!((answer.status, answer.allow.as_deref()), (405, Some("POST")));
    }
    let answer = Answer::of(receiver.client.get(receiver.url("/healthz")).send().await.unwrap()).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok\n"));
    let answer = receiver.send("/", PROTOBUF, "").await;
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("/v1/traces"), "{answer:?}");
    let answer = receiver.send("/v1/metrics", JSON, "{}").await;
    assert_eq!(answer.status, 404);
    assert!(refusal(&answer).contains("OTEL_METRICS_EXPORTER=none"), "{answer:?}");
    // Whoever runs it is told, for the sender may not say it.
    let told: Vec<u16> = receiver.sink.refusals().iter().map(|one| one.status).collect();
    assert_eq!(told, [404, 404]);
}

#[tokio::test]
async fn a_page_in_a_browser_may_not_write() {
    let receiver = Receiver::start().await;
    let body = spans(vec![span(1, 1)]).encode_to_vec();
    let request = receiver.client.post(receiver.url("/v1/traces")).header("content-type", PROTOBUF);
    let answer = Answer::of(request.header("origin", "https://example.com").body(body).send().await.unwrap()).await;
    assert_eq!(answer.status, 403);
    assert!(receiver.sink.traces().is_empty());
}

#[tokio::test]
async fn a_store_that_cannot_write_is_not_the_senders_fault() {
    let refuses = BTreeMap::from([(trace_name(2), "full: no space left on the disk"), (trace_name(3), "panic")]);
    let receiver = Receiver::with(Memory { refuses, ..Memory::default() }, Limits::default()).await;
    for (media_type, body) in [
        (PROTOBUF, spans(vec![span(2, 1)]).encode_to_vec()),
        (JSON, serde_json::to_vec(&spans(vec![span(2, 1)])).unwrap()),
    ] {
        let answer = receiver.send("/v1/traces", media_type, body).await;
        assert_eq!((answer.status, answer.media_type.as_str()), (503, media_type));
        assert_eq!(answer.retry_after.as_deref(), Some("2"));
        assert_eq!(refusal(&answer), "full: no space left on the disk");
    }
    // A sink that panics takes nobody else with it.
    let answer = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(3, 1)]).encode_to_vec()).await;
    assert_eq!(answer.status, 503);
    let answer = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(1, 1)]).encode_to_vec()).await;
    assert_eq!(answer.status, 200);
}
