//! Replies that are streams of events.

use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Value, json};

use crate::product_server::{End, ProductServer, Sent};
use crate::support::{agent_at, ask};

fn settings() -> Value {
    json!({"response": {
        "response": "$[?@.type=='delta'].text",
        "toolCalls": "$[?@.type=='call']",
        "usage": "$[-1].usage",
    }})
}

const EVENTS: &str = "data: {\"type\": \"start\"}\n\ndata: {\"type\": \"call\", \"name\": \"a\", \"params\": {\"x\": 1}}\n\n\
    data: {\"type\": \"delta\", \"text\": \"Hel\"}\n\ndata: {\"type\": \"delta\", \"text\": \"lo\"}\n\n\
    data: {\"usage\": {\"inputTokens\": 3}}\n\ndata: [DONE]\n\n";

#[tokio::test]
async fn folds_the_events_of_a_stream() {
    let server = ProductServer::start(|_| Sent::sse(EVENTS)).await;
    let trace = ask(&agent_at(&server.url, &settings()), "hi").await.unwrap();
    assert_eq!((trace.response.as_str(), trace.tool_names()), ("Hello", vec!["a"]));
    assert_eq!(trace.usage.unwrap().input_tokens, Some(3));
    assert!(trace.first_token_ms.is_some_and(|first| first <= trace.latency_ms));
    assert!(!trace.calls_unreported);
}

#[tokio::test]
async fn reads_json_lines() {
    let lines = "{\"type\": \"delta\", \"text\": \"a\"}\n{\"type\": \"delta\", \"text\": \"b\"}\n";
    for (content_type, format) in [("application/x-ndjson", Value::Null), ("application/json", json!("jsonl"))] {
        let server = ProductServer::start(move |_| Sent::text(content_type, lines)).await;
        let mut settings = settings();
        settings["response"]["format"] = format;
        assert_eq!(ask(&agent_at(&server.url, &settings), "hi").await.unwrap().response, "ab");
    }
}

/// Some servers send JSON lines as `application/json`.
#[tokio::test]
async fn a_conversation_may_be_json_lines() {
    let lines = "{\"type\": \"item\", \"content\": \"a\"}\n{\"type\": \"end\"}\n";
    let server = ProductServer::start(move |_| Sent::text("application/json", lines)).await;
    let plain = ask(&agent_at(&server.url, &json!({})), "hi").await.unwrap_err().message;
    assert!(plain.starts_with("the reply is not valid JSON (trailing characters at line 2 column 1): "), "{plain}");
    let lines = "{\"type\":\"begin\",\"metadata\":{}}\n{\"type\":\"item\",\"content\":\"a\",\"metadata\":{}}\n\
        {\"type\":\"end\",\"metadata\":{}}\n";
    let server = ProductServer::start(move |_| Sent::text("application/json", lines)).await;
    let agent = agent_at(&server.url, &json!({"response": {"conversation": ""}}));
    assert_eq!(ask(&agent, "hi").await.unwrap().response, "a");
}

#[tokio::test]
async fn measures_the_time_of_the_first_text() {
    let server = ProductServer::start(|_| {
        let piece = |text: &str| format!("data: {{\"type\": \"delta\", \"text\": \"{text}\"}}\n\n").into_bytes();
        let mut sent = Sent::sse("");
        sent.pieces = vec![(0, piece("")), (100, piece("a")), (300, piece("b"))];
        sent
    })
    .await;
    let trace = ask(&agent_at(&server.url, &settings()), "hi").await.unwrap();
    let first = trace.first_token_ms.unwrap();
    assert!((100.0..trace.latency_ms - 200.0).contains(&first), "{first} of {}", trace.latency_ms);
}

#[tokio::test]
async fn a_stream_split_at_every_byte_is_the_same() {
    let server = ProductServer::start(|received| {
        let at: usize = received.body["message"].as_str().unwrap().parse().unwrap();
        let (left, right) = EVENTS.as_bytes().split_at(at);
        let mut sent = Sent::sse("");
        sent.pieces = vec![(0, left.to_vec()), (1, right.to_vec())];
        sent
    })
    .await;
    let agent = agent_at(&server.url, &settings());
    for at in 0..EVENTS.len() {
        let trace = ask(&agent, &at.to_string()).await.unwrap();
        assert_eq!((trace.response.as_str(), trace.tool_calls.len()), ("Hello", 1), "split at {at}");
    }
}

/// Servers may keep the connection open after the end.
#[tokio::test]
async fn the_announced_end_is_the_end() {
    let server = ProductServer::start(|_| Sent { end: End::Never, ..Sent::sse(EVENTS) }).await;
    let start = Instant::now();
    assert_eq!(ask(&agent_at(&server.url, &settings()), "hi").await.unwrap().response, "Hello");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_stream_without_end_can_be_cancelled() {
    let server =
        ProductServer::start(|_| Sent { end: End::Never, ..Sent::sse("data: {\"type\": \"delta\"}\n\n") }).await;
    let agent = agent_at(&server.url, &settings());
    assert!(tokio::time::timeout(Duration::from_millis(200), ask(&agent, "hi")).await.is_err());
}

#[rstest]
#[case::cut_off("data: {\"type\": \"delta\", \"text\": \"a\"}\n\n", End::CutOff, "(after 1 events)")]
#[case::cut_off_in_an_event(
    "data: {\"type\": \"del",
    End::Normal,
    "the stream ends in the middle of an event: event 1"
)]
#[case::garbage(
    "data: {\"type\": \"delta\", \"text\": \"a\"}\n\ndata: \u{1}garbage\n\n",
    End::Normal,
    "event 2 of the reply is not valid JSON"
)]
#[case::page("<html>oops</html>", End::Normal, "the reply is not a stream of events: <html>oops</html>")]
#[case::empty("", End::Normal, "the reply has no events")]
#[case::no_text("data: {\"type\": \"start\"}\n\n", End::Normal, "the reply has no text at '$[?@.type=='delta'].text'")]
#[case::error_after_text(
    "data: {\"type\": \"delta\", \"text\": \"a\"}\n\nevent: error\ndata: {\"message\": \"it broke\"}\n\n",
    End::Normal,
    "the agent replied with an error: it broke"
)]
#[case::error_before_the_cut(
    "event: error\ndata: {\"message\": \"it broke\"}\n\n",
    End::CutOff,
    "the agent replied with an error: it broke"
)]
#[tokio::test]
async fn broken_streams_are_errors(#[case] body: &'static str, #[case] end: End, #[case] expected: &str) {
    let server = ProductServer::start(move |_| Sent { end, ..Sent::sse(body) }).await;
    let error = ask(&agent_at(&server.url, &settings()), "hi").await.unwrap_err().message;
    assert!(error.contains(expected), "{error}");
}

#[tokio::test]
async fn a_stream_that_is_too_large_is_an_error() {
    let server = ProductServer::start(|_| {
        let event = format!("data: {{\"type\": \"delta\", \"text\": \"{}\"}}\n\n", "x".repeat(100_000)).into_bytes();
        Sent { pieces: vec![(0, event); 1_000], end: End::Never, ..Sent::sse("") }
    })
    .await;
    let mut settings = settings();
    settings["maxResponseBytes"] = json!(1_000_000);
    let error = ask(&agent_at(&server.url, &settings), "hi").await.unwrap_err().message;
    assert!(error.starts_with("the reply is larger than 1000000 bytes ('maxResponseBytes')"), "{error}");
}

/// For example an agent that ignores the wish for a stream, or an error.
#[rstest]
#[case(json!({"type": "delta", "text": "hi"}), Ok("hi"))]
#[case(json!({"error": "no model"}), Err("the agent replied with an error: no model"))]
#[tokio::test]
async fn json_in_place_of_a_stream_is_one_event(#[case] body: Value, #[case] expected: Result<&str, &str>) {
    let server = ProductServer::start(move |_| Sent::json(&body)).await;
    let mut settings = settings();
    settings["response"]["format"] = json!("sse");
    let answer = ask(&agent_at(&server.url, &settings), "hi").await;
    let answer = answer.map(|trace| trace.response).map_err(|error| error.message);
    assert_eq!(answer.as_deref().map_err(String::as_str), expected);
}

#[tokio::test]
async fn an_http_error_of_a_stream_is_quoted() {
    let server = ProductServer::start(|_| Sent { status: 500, ..Sent::sse("data: out of memory\n\n") }).await;
    let error = ask(&agent_at(&server.url, &settings()), "hi").await.unwrap_err().message;
    assert_eq!(error, "the agent returned HTTP 500 Internal Server Error: data: out of memory");
}
