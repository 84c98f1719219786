//! `@modelcontextprotocol/server-everything` over stdio.

use std::time::{Duration, Instant};

use futures::future::join_all;
use karat_registry::{McpServer, McpServerConfig};
use karat_testkit::tools::TestTool;
use serde_json::json;

use crate::support::{LIMIT, arguments, stdio};

async fn connect() -> McpServer {
    let command = TestTool::ServerEverything.command();
    McpServer::connect(stdio("everything", &command), LIMIT).await.expect("connects")
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn it_lists_tools_with_schemas() {
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
async fn it_runs_tools() {
    let server = connect().await;
    let echo = server.call("echo", &arguments(json!({"message": "héllo \u{1b}[31m"}))).await;
    assert_eq!((echo.result, echo.error), (json!("Echo: héllo \u{1b}[31m"), None));
    let sum = server.call("get-sum", &arguments(json!({"a": 2, "b": 40}))).await;
    assert_eq!(sum.result, json!("The sum of 2 and 40 is 42."));
    let weather = server.call("get-structured-content", &arguments(json!({"location": "Chicago"}))).await;
    assert_eq!(weather.result, json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}));
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn what_is_no_text_is_described() {
    let server = connect().await;
    let image = server.call("get-tiny-image", &arguments(json!({}))).await;
    let told = image.result.as_str().unwrap();
    assert!(told.contains("[image image/png, ") && told.contains(" bytes]"), "{told}");
    assert_eq!(image.error, None);
    let links = server.call("get-resource-links", &arguments(json!({"count": 2}))).await;
    assert_eq!(links.result.as_str().unwrap().matches("[link to ").count(), 2, "{links:?}");
    let resource =
        server.call("get-resource-reference", &arguments(json!({"resourceType": "Text", "resourceId": 1}))).await;
    assert!(resource.result.as_str().unwrap().contains("[resource "), "{resource:?}");
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn a_failure_is_an_outcome() {
    let server = connect().await;
    let wrong = server.call("get-sum", &arguments(json!({"a": "two"}))).await;
    assert!(wrong.error.as_ref().is_some_and(|error| error.contains("number")), "{wrong:?}");
    let unknown = server.call("no-such-tool", &arguments(json!({}))).await;
    assert!(unknown.error.as_ref().is_some_and(|error| error.contains("no-such-tool")), "{unknown:?}");
    let still = server.call("echo", &arguments(json!({"message": "there"}))).await;
    assert_eq!(still.result, "Echo: there");
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn a_slow_tool_holds_up_nobody_and_can_be_left() {
    let server = connect().await;
    let start = Instant::now();
    let long = arguments(json!({"duration": 30, "steps": 30}));
    let left = tokio::time::timeout(Duration::from_millis(300), server.call("trigger-long-running-operation", &long));
    assert!(left.await.is_err(), "thirty seconds are more than a third of one");
    let slow = arguments(json!({"duration": 0.5, "steps": 2}));
    let quick = arguments(json!({"message": "quick"}));
    let (slow, quick) =
        tokio::join!(async { (server.call("trigger-long-running-operation", &slow).await, Instant::now()) }, async {
            (server.call("echo", &quick).await, Instant::now())
        },);
    assert!(slow.0.result.as_str().unwrap().contains("completed"), "{slow:?}");
    assert!(quick.1 < slow.1, "the quick one does not wait for the slow one");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn fifty_calls_at_once_each_get_their_own_answer() {
    let server = connect().await;
    let server = &server;
    let calls = (0..50).map(|number| async move {
        let outcome = server.call("echo", &arguments(json!({"message": format!("number {number}")}))).await;
        assert_eq!(outcome.result, format!("Echo: number {number}"));
    });
    join_all(calls).await;
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn a_server_sees_the_environment_it_is_given_and_no_other() {
    let command = TestTool::ServerEverything.command();
    let mut target = stdio("everything", &command);
    if let McpServerConfig::Stdio { env, .. } = &mut target.config {
        env.insert("GIVEN".to_owned(), "this".to_owned());
    }
    let server = McpServer::connect(target, LIMIT).await.unwrap();
    let seen = server.call("get-env", &arguments(json!({}))).await;
    let seen: serde_json::Value = serde_json::from_str(seen.result.as_str().unwrap()).unwrap();
    assert_eq!(seen["GIVEN"], "this");
    assert_eq!(seen.get("CARGO_MANIFEST_DIR"), None, "the test's own variables stay here: {seen}");
}
