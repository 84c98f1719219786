//! `@modelcontextprotocol/server-everything` over stdio.

use std::time::{Duration, Instant};

use futures::future::join_all;
use karat_registry::{McpServer, McpServerConfig};
use karat_testkit::tools::TestTool;
use serde_json::json;

use crate::support::{TIMEOUT, arguments, stdio};

async fn connect() -> McpServer {
    let command = TestTool::ServerEverything.command();
    McpServer::connect(stdio("everything", &command), TIMEOUT).await.expect("a connection")
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn lists_tools_with_schemas() {
    let server = connect().await;
    let tools = server.tools().await.unwrap();
    let sum = tools.iter().find(|tool| tool.name == "get-sum").expect("a tool");
    let schema = sum.input_schema.get().expect("a schema");
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["properties"]["a"]["type"], "number");
    assert_eq!(schema["required"], json!(["a", "b"]));
    assert!(sum.description.get().is_some_and(|description| description.contains("sum")), "{sum:?}");
    assert!(sum.version.get().is_some_and(|version| version.contains('.')), "{sum:?}");
    assert!(tools.len() > 5, "{tools:?}");
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn calls_tools() {
    let server = connect().await;
    let echo = server.call("echo", &arguments(json!({"message": "héllo \u{1b}[31m"}))).await.unwrap();
    assert_eq!((echo.result, echo.error), (json!("Echo: héllo \u{1b}[31m"), None));
    let sum = server.call("get-sum", &arguments(json!({"a": 2, "b": 40}))).await.unwrap();
    assert_eq!(sum.result, json!("The sum of 2 and 40 is 42."));
    let weather = server.call("get-structured-content", &arguments(json!({"location": "Chicago"}))).await.unwrap();
    assert_eq!(weather.result, json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}));
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn describes_content_that_is_not_text() {
    let server = connect().await;
    let image = server.call("get-tiny-image", &arguments(json!({}))).await.unwrap();
    let text = image.result.as_str().unwrap();
    assert!(text.contains("[image image/png, ") && text.contains(" bytes]"), "{text}");
    assert_eq!(image.error, None);
    let links = server.call("get-resource-links", &arguments(json!({"count": 2}))).await.unwrap();
    assert_eq!(links.result.as_str().unwrap().matches("[link to ").count(), 2, "{links:?}");
    let resource = server
        .call("get-resource-reference", &arguments(json!({"resourceType": "Text", "resourceId": 1})))
        .await
        .unwrap();
    assert!(resource.result.as_str().unwrap().contains("[resource "), "{resource:?}");
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn failed_calls_are_outcomes() {
    let server = connect().await;
    let invalid = server.call("get-sum", &arguments(json!({"a": "two"}))).await.unwrap();
    assert!(invalid.error.as_ref().is_some_and(|error| error.contains("number")), "{invalid:?}");
    let unknown = server.call("no-such-tool", &arguments(json!({}))).await.unwrap();
    assert!(unknown.error.as_ref().is_some_and(|error| error.contains("no-such-tool")), "{unknown:?}");
    let next = server.call("echo", &arguments(json!({"message": "there"}))).await.unwrap();
    assert_eq!(next.result, "Echo: there");
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn slow_calls_do_not_block_others_and_can_be_cancelled() {
    let server = connect().await;
    let start = Instant::now();
    let long = arguments(json!({"duration": 30, "steps": 30}));
    let cancelled =
        tokio::time::timeout(Duration::from_millis(300), server.call("trigger-long-running-operation", &long));
    assert!(cancelled.await.is_err(), "the call takes longer than the timeout");
    let slow = arguments(json!({"duration": 0.5, "steps": 2}));
    let quick = arguments(json!({"message": "quick"}));
    let (slow, quick) = tokio::join!(
        async { (server.call("trigger-long-running-operation", &slow).await.unwrap(), Instant::now()) },
        async { (server.call("echo", &quick).await.unwrap(), Instant::now()) },
    );
    assert!(slow.0.result.as_str().unwrap().contains("completed"), "{slow:?}");
    assert!(quick.1 < slow.1, "the quick call does not wait for the slow one");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn concurrent_calls_get_their_own_responses() {
    let server = connect().await;
    let server = &server;
    let calls = (0..50).map(|number| async move {
        let outcome = server.call("echo", &arguments(json!({"message": format!("number {number}")}))).await.unwrap();
        assert_eq!(outcome.result, format!("Echo: number {number}"));
    });
    join_all(calls).await;
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn servers_get_only_the_configured_environment() {
    let command = TestTool::ServerEverything.command();
    let mut target = stdio("everything", &command);
    if let McpServerConfig::Stdio { env, .. } = &mut target.config {
        env.insert("GIVEN".to_owned(), "this".to_owned());
    }
    let server = McpServer::connect(target, TIMEOUT).await.unwrap();
    let seen = server.call("get-env", &arguments(json!({}))).await.unwrap();
    let seen: serde_json::Value = serde_json::from_str(seen.result.as_str().unwrap()).unwrap();
    assert_eq!(seen["GIVEN"], "this");
    assert_eq!(seen.get("CARGO_MANIFEST_DIR"), None, "variables of the test process are not passed on: {seen}");
}
