use std::sync::Barrier;
use std::time::{Duration, Instant};

use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::wire::{exchange, split};

fn post_text(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nx-tenant: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Sends a message and returns status, head and body.
fn ask(server: &ScriptedServer, message: &str) -> (u16, String, String) {
    split(exchange(server, &post_text("/chat", &json!({"message": message}).to_string()), usize::MAX).0)
}

#[test]
fn replies_by_message_with_default_fields() {
    let server = ScriptedServer::start(json!({
        "hi": {"response": "hello", "usage": {"inputTokens": 3}},
        "bare": {},
        "status": {"status": 503, "headers": {"retry-after": "2"}, "raw": "busy"},
        "json": {"json": ["odd"]},
    }));
    let (status, head, body) = ask(&server, "hi");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/json"));
    assert_eq!(
        serde_json::from_str::<Value>(&body).unwrap(),
        json!({"response": "hello", "usage": {"inputTokens": 3}, "toolCalls": []})
    );
    assert_eq!(ask(&server, "bare").2, r#"{"response":"","toolCalls":[]}"#);
    let (status, head, body) = ask(&server, "status");
    assert_eq!((status, body.as_str()), (503, "busy"));
    assert!(head.contains("retry-after: 2"));
    assert_eq!(ask(&server, "json").2, r#"["odd"]"#);
    assert_eq!(ask(&server, "who?").0, 404);
}

#[test]
fn records_requests_until_reset() {
    let server = ScriptedServer::start(json!({"*": {"sequence": [{"response": "1"}, {"status": 500}]}}));
    let statuses = ["a", "a", "a", "b"].map(|message| ask(&server, message).0);
    assert_eq!(statuses, [200, 500, 500, 200]);
    assert_eq!(server.request_count(), 4);
    assert_eq!(server.bodies()[3], json!({"message": "b"}));
    let request = &server.requests()[0];
    assert_eq!((request.path.as_str(), request.headers["x-tenant"].as_str()), ("/chat", "a"));
    assert_eq!(split(exchange(&server, &post_text("/chat", "{"), usize::MAX).0).2, "not json");
    assert_eq!(server.request_count(), 4, "invalid JSON is not counted");
    server.reset(json!({}));
    assert_eq!((server.request_count(), server.peak()), (0, 0));
    assert_eq!(ask(&server, "a").0, 404);
}

#[test]
fn serves_get_requests() {
    let server = ScriptedServer::start(json!({
        "GET /snapshot?x=1": {"price": 5},
        "GET /broken": {"status": 500, "raw": "no"},
        "GET /list": [1],
    }));
    let get = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let (status, _, body) = split(exchange(&server, &request, usize::MAX).0);
        (status, body)
    };
    assert_eq!(get("/snapshot?x=1"), (200, r#"{"price":5}"#.to_owned()));
    assert_eq!(get("/broken"), (500, "no".to_owned()));
    assert_eq!(get("/list"), (200, "[1]".to_owned()));
    assert_eq!(get("/snapshot").0, 404);
    assert_eq!(server.gets().len(), 4);
    assert_eq!(server.request_count(), 0);
}

#[test]
fn counts_concurrent_requests() {
    let server = ScriptedServer::start(json!({"*": {"delayMs": 200}}));
    let start = Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                start.wait();
                ask(&server, "m");
            });
        }
    });
    assert_eq!((server.peak(), server.in_flight()), (3, 0));
    server.reset(json!({"*": {"delayMs": 1}}));
    for _ in 0..20 {
        ask(&server, "m");
    }
    assert_eq!(server.peak(), 1, "a request ends before its reply is sent");
}

#[test]
fn a_disconnected_client_is_not_in_flight() {
    let server = ScriptedServer::start(json!({"*": {"delayMs": 60_000}}));
    let (reply, closed) = exchange(&server, &post_text("/chat", "{}"), 1);
    assert!(reply.is_empty() && !closed);
    let deadline = Instant::now() + Duration::from_secs(10);
    while server.in_flight() > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((server.in_flight(), server.peak()), (0, 1));
}

#[rstest]
#[case(json!({"hangup": true}), "", true)]
#[case(json!({"raw": "{\"resp", "truncated": true}), "{\"resp", true)]
#[case(json!({"huge": 30}), r#"{"response":"","toolCalls":[]}"#, true)]
#[case(json!({"huge": 33}), r#"{"response":"aaa","toolCalls":[]}"#, true)]
fn sends_misbehaving_replies(#[case] entry: Value, #[case] body: &str, #[case] closed: bool) {
    let server = ScriptedServer::start(json!({"*": entry}));
    let (reply, ended) = exchange(&server, &post_text("/chat", "{}"), usize::MAX);
    assert_eq!(ended, closed);
    let text = String::from_utf8(reply).unwrap();
    assert_eq!(text.split_once("\r\n\r\n").map_or("", |(_, body)| body), body);
}

#[test]
fn a_truncated_reply_is_shorter_than_its_content_length() {
    let server = ScriptedServer::start(json!({"*": {"response": "x", "truncated": true}}));
    let (_, head, body) = ask(&server, "m");
    let content_length: usize = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    assert_eq!(body, r#"{"response":"x","toolCalls":[]}"#);
    assert!(content_length > body.len());
}

#[test]
fn sends_raw_bytes() {
    let server = ScriptedServer::start(json!({"*": {"rawBytes": [255, 254, 0]}}));
    let (reply, _) = exchange(&server, &post_text("/chat", "{}"), usize::MAX);
    assert!(reply.ends_with(b"\r\n\r\n\xff\xfe\0"));
}

#[test]
fn sends_endless_bodies_and_slow_headers() {
    let server = ScriptedServer::start(json!({
        "body": {"endless": true},
        "head": {"slowHeaders": 5},
        "fine": {"response": "still here"},
    }));
    let (reply, closed) = exchange(&server, &post_text("/chat", r#"{"message":"body"}"#), 10_000_000);
    assert!(reply.len() >= 10_000_000 && !closed);
    let (reply, closed) = exchange(&server, &post_text("/chat", r#"{"message":"head"}"#), 40);
    assert!(reply.starts_with(b"HTTP/1.1 200") && !reply.windows(4).any(|end| end == b"\r\n\r\n") && !closed);
    assert_eq!(ask(&server, "fine").0, 200);
}

#[test]
#[should_panic(expected = "the entry of 'm' is not an object")]
fn rejects_an_invalid_script() {
    ScriptedServer::start(json!({"m": "text"}));
}
