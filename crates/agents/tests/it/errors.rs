//! Errors of HTTP agents, without secrets.

use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{agent, agent_at, ask, ask_server, error_of, serve, serve_securely};

#[rstest]
#[case(json!({"status": 500, "raw": "out of\n  cheese \n"}), "the agent returned HTTP 500 Internal Server Error: out of\n  cheese")]
#[case(json!({"status": 503, "raw": ""}), "the agent returned HTTP 503 Service Unavailable")]
#[case(json!({"status": 429, "headers": {"retry-after": "1"}, "raw": "slow down"}), "the agent returned HTTP 429 Too Many Requests: slow down")]
#[case(json!({"status": 401, "json": {"error": "no key"}}), "the agent returned HTTP 401 Unauthorized: {\"error\":\"no key\"}")]
#[case(json!({"status": 404, "json": {"response": "ok"}}), "the agent returned HTTP 404 Not Found: {\"response\":\"ok\"}")]
#[case(json!({"status": 418, "rawBytes": [255, 65]}), "the agent returned HTTP 418 I'm a teapot: \u{fffd}A")]
#[case(json!({"status": 599, "raw": "x"}), "the agent returned HTTP 599 <unknown status code>: x")]
#[case(json!({"status": 304, "raw": ""}), "the agent returned HTTP 304 Not Modified")]
#[tokio::test]
async fn reports_unsuccessful_statuses(#[case] entry: Value, #[case] message: &str) {
    let server = serve(json!({"*": entry}));
    let error = ask(&agent(&server), "hi").await.expect_err("expected an error");
    assert_eq!(error.message, message);
    assert_eq!(server.request_count(), 1, "not retried, because the agent may have side effects");
}

#[tokio::test]
async fn an_error_body_is_quoted_in_full_for_redaction() {
    let error = error_of(json!({"status": 500, "raw": "é".repeat(1_000)})).await;
    assert_eq!(error, format!("the agent returned HTTP 500 Internal Server Error: {}", "é".repeat(1_000)));
}

#[rstest]
#[case(200, true)]
#[case(201, true)]
#[case(299, true)]
#[case(300, false)]
#[tokio::test]
async fn only_2xx_replies_are_parsed(#[case] status: u16, #[case] is_ok: bool) {
    assert_eq!(ask_server(json!({"status": status, "json": {"response": "ok"}})).await.is_ok(), is_ok);
}

#[tokio::test]
async fn an_empty_reply_is_an_error() {
    assert_eq!(error_of(json!({"status": 204, "raw": ""})).await, "the reply is empty");
}

#[rstest]
#[case(301, "Moved Permanently")]
#[case(302, "Found")]
#[case(303, "See Other")]
#[case(307, "Temporary Redirect")]
#[case(308, "Permanent Redirect")]
#[tokio::test]
async fn redirects_are_not_followed(#[case] status: u16, #[case] reason: &str) {
    let other_server = serve(json!({"*": {"response": "mine"}, "GET /chat": {"response": "mine"}}));
    let location = other_server.endpoint();
    let server = serve(json!({"*": {"status": status, "headers": {"location": location}, "raw": "<a>moved</a>"}}));
    let agent = agent_at(&server.endpoint(), &json!({"headers": {"Authorization": "Bearer s3cr3t", "x-key": "k"}}));
    let error = ask(&agent, "hi").await.expect_err("redirects are not followed").message;
    assert_eq!(
        error,
        format!("the agent returned HTTP {status} {reason} (redirect to {location}): set that URL as the endpoint")
    );
    assert_eq!(other_server.connections(), 0, "no header is sent to the other host");
    assert_eq!(server.requests()[0].headers["authorization"], "Bearer s3cr3t");
}

#[rstest]
#[case(json!({"status": 307, "headers": {"location": "/v2/chat"}, "raw": ""}), "the agent returned HTTP 307 Temporary Redirect (redirect to /v2/chat): set that URL as the endpoint")]
#[case(json!({"status": 302, "raw": "nowhere"}), "the agent returned HTTP 302 Found: nowhere")]
#[case(json!({"status": 500, "headers": {"location": "/x"}, "raw": "no"}), "the agent returned HTTP 500 Internal Server Error: no")]
#[tokio::test]
async fn the_location_is_reported_for_redirects_only(#[case] entry: Value, #[case] message: &str) {
    assert_eq!(error_of(entry).await, message);
}

#[tokio::test]
async fn broken_connections_are_reported_and_not_retried() {
    for (entry, expected) in [
        (json!({"hangup": true}), "connection closed before message completed"),
        (json!({"raw": "{\"response\": \"o", "truncated": true}), "end of file before message length reached"),
        (json!({"response": "ok", "truncated": true}), "end of file before message length reached"),
    ] {
        let server = serve(json!({"*": entry, "fine": {"response": "ok"}}));
        let agent = agent(&server);
        // The second attempt uses an existing connection.
        for attempt in 1..=2 {
            let error = ask(&agent, "hi").await.expect_err("expected an error").message;
            assert!(error.contains(expected), "{error}");
            assert_eq!(server.bodies().iter().filter(|body| **body == json!({"message": "hi"})).count(), attempt);
            assert_eq!(ask(&agent, "fine").await.unwrap().response, "ok", "the agent is still usable");
        }
    }
}

#[tokio::test]
async fn reports_a_refused_connection() {
    let stopped = serve(json!({}));
    let url = stopped.endpoint().replace("/chat", "/chat?api_key=s3cr3t");
    drop(stopped);
    let error = ask(&agent_at(&url, &json!({})), "hi").await.expect_err("the server is stopped").message;
    assert!(error.ends_with(": connection refused"), "{error}");
    assert!(!error.contains("s3cr3t") && !error.contains("api_key"), "{error}");
}

/// Names under `.invalid` never exist.
#[tokio::test]
async fn reports_an_unknown_host() {
    let error = ask(&agent_at("http://nowhere.invalid/chat?api_key=s3cr3t", &json!({})), "hi").await;
    let error = error.expect_err("no such host").message;
    assert!(error.contains("failed to lookup address"), "{error}");
    assert!(!error.contains("s3cr3t"), "{error}");
}

#[rstest]
#[case(31)]
#[case(1000)]
#[case(70_000)]
#[case(1_000_000)]
#[tokio::test]
async fn enforces_the_maximum_reply_size(#[case] size: u64) {
    let server = serve(json!({"*": {"huge": size}}));
    let exact = agent_at(&server.endpoint(), &json!({"maxResponseBytes": size}));
    assert_eq!(ask(&exact, "hi").await.unwrap().response.len() as u64, size - 30);
    let small = agent_at(&server.endpoint(), &json!({"maxResponseBytes": size - 1}));
    let error = ask(&small, "hi").await.expect_err("too large").message;
    assert_eq!(error, format!("the reply is larger than {} bytes ('maxResponseBytes')", size - 1));
}

#[tokio::test]
async fn the_default_limit_is_ten_mebibytes() {
    let limit = 10 * 1024 * 1024;
    assert_eq!(ask_server(json!({"huge": limit})).await.unwrap().response.len(), limit - 30);
    let error = error_of(json!({"huge": limit + 1})).await;
    assert_eq!(error, "the reply is larger than 10485760 bytes ('maxResponseBytes')");
}

#[tokio::test]
async fn a_reply_without_end_is_cut_off() {
    let server = serve(json!({"*": {"endless": true}, "fine": {"response": "ok"}}));
    let agent = agent_at(&server.endpoint(), &json!({"maxResponseBytes": 1_000_000}));
    let error = ask(&agent, "hi").await.expect_err("too large").message;
    assert_eq!(error, "the reply is larger than 1000000 bytes ('maxResponseBytes')");
    assert_eq!(ask(&agent, "fine").await.unwrap().response, "ok");
}

/// The agent has no timeout; the caller must be able to cancel at any point.
#[rstest]
#[case(json!({"slowHeaders": 5}))]
#[case(json!({"delayMs": 60_000}))]
#[tokio::test]
async fn a_call_can_be_cancelled(#[case] entry: Value) {
    let server = serve(json!({"*": entry, "fine": {"response": "ok"}}));
    let agent = agent(&server);
    let started = Instant::now();
    let result = tokio::time::timeout(Duration::from_millis(100), ask(&agent, "hi")).await;
    assert!(result.is_err(), "{result:?}");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(ask(&agent, "fine").await.unwrap().response, "ok");
}

#[tokio::test]
async fn measures_the_time_of_the_exchange() {
    let server = serve(json!({
        "slow": {"response": "ok", "delayMs": 200},
        "slow error": {"status": 500, "raw": "no", "delayMs": 200},
        "quick": {"response": "ok"},
    }));
    let agent = agent(&server);
    let slow = ask(&agent, "slow").await.unwrap().latency_ms;
    assert!((200.0..5_000.0).contains(&slow), "{slow}");
    let error = ask(&agent, "slow error").await.expect_err("expected an error").elapsed;
    assert!((Duration::from_millis(200)..Duration::from_secs(5)).contains(&error), "{error:?}");
    let quick = ask(&agent, "quick").await.unwrap().latency_ms;
    assert!(quick > 0.0 && quick < slow, "{quick}");
}

#[tokio::test]
async fn rejects_an_untrusted_certificate() {
    let server = serve_securely();
    let error =
        ask(&agent_at(&server.endpoint(), &json!({})), "hi").await.expect_err("the certificate is not trusted").message;
    assert!(error.to_lowercase().contains("certificate"), "{error}");
    assert!(server.versions().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn reports_the_wrong_scheme() {
    let plain = serve(json!({"*": {"response": "ok"}}));
    let secure = agent_at(&plain.endpoint().replace("http://", "https://"), &json!({}));
    let error = ask(&secure, "hi").await.expect_err("the server has no TLS").message;
    assert!(error.starts_with("cannot reach https://127.0.0.1:"), "{error}");
    assert_eq!(plain.request_count(), 0);
    let server = serve_securely();
    let unsecured = agent_at(&server.endpoint().replace("https://", "http://"), &json!({}));
    assert!(ask(&unsecured, "hi").await.is_err());
    assert!(server.versions().is_empty());
}
