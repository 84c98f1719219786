//! Servers over streamable HTTP.

use std::process::Command;
use std::time::Duration;

use futures::future::join_all;
use karat_registry::{McpServer, McpServerConfig};
use karat_testkit::server::ScriptedServer;
use karat_testkit::tools::{BackgroundServer, TestTool};
use serde_json::json;

use crate::support::{TIMEOUT, arguments, http};

fn everything() -> BackgroundServer {
    let words = TestTool::ServerEverything.command();
    let command = |port: u16| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("streamableHttp").env("PORT", port.to_string());
        command
    };
    BackgroundServer::start(command, "/mcp")
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn lists_and_calls_tools_of_a_real_server() {
    let background = everything();
    let server = McpServer::connect(http("web", &background.url("/mcp")), TIMEOUT).await.unwrap();
    let tools = server.tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "get-sum" && tool.version.get().is_some()), "{tools:?}");
    let sum = server.call("get-sum", &arguments(json!({"a": 1, "b": 2}))).await.unwrap();
    assert_eq!(sum.result, "The sum of 1 and 2 is 3.");
    let invalid = server.call("get-sum", &arguments(json!({}))).await.unwrap();
    assert!(invalid.error.is_some(), "{invalid:?}");
    let server = &server;
    join_all((0..50).map(|number| async move {
        let outcome = server.call("echo", &arguments(json!({"message": number.to_string()}))).await.unwrap();
        assert_eq!(outcome.result, format!("Echo: {number}"));
    }))
    .await;
    drop(background);
    let message = arguments(json!({"message": "x"}));
    let outcome = tokio::time::timeout(Duration::from_secs(30), server.call("echo", &message)).await;
    let error = outcome.expect("a stopped server is detected").expect_err("no result").to_string();
    assert!(error.contains("'web'"), "{error}");
}

fn connect_error(reply: &serde_json::Value) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = ScriptedServer::start(json!({"*": reply}));
    let mut target = http("web", &server.endpoint());
    if let McpServerConfig::Http { headers, .. } = &mut target.config {
        headers.insert("x-tenant".to_owned(), "blue".to_owned());
    }
    let connected = runtime.block_on(McpServer::connect(target, Duration::from_secs(2)));
    let error = connected.err().expect("no server").to_string();
    assert_eq!(server.requests()[0].headers.get("x-tenant").map(String::as_str), Some("blue"));
    error
}

#[test]
fn reports_failed_handshakes() {
    let error = connect_error(&json!({"status": 503, "raw": "busy"}));
    assert!(error.starts_with("the MCP server 'web' cannot be reached: HTTP 503"), "{error}");
    let error = connect_error(&json!({"status": 404, "raw": "nothing here"}));
    assert!(error.contains("HTTP 404") && error.contains("nothing here"), "{error}");
    let error = connect_error(&json!({"status": 401, "raw": "", "headers": {"www-authenticate": "Bearer"}}));
    assert!(error.to_lowercase().contains("auth"), "{error}");
    let error = connect_error(&json!({"status": 200, "raw": "<html>", "headers": {"content-type": "text/html"}}));
    assert!(error.contains("text/html"), "{error}");
    let error = connect_error(&json!({"raw": "x", "delayMs": 20_000}));
    assert_eq!(error, "the MCP server 'web' did not respond within 2000 ms");
}

#[test]
fn limits_the_size_of_replies() {
    let large = "x".repeat(17 << 20);
    for (status, content_type) in [(200, "application/json"), (500, "application/json"), (404, "text/plain")] {
        let reply = json!({"status": status, "raw": large, "headers": {"content-type": content_type}});
        let error = connect_error(&reply);
        assert!(error.contains("a message larger than 16 MB"), "{status}: {}", &error[..error.len().min(500)]);
    }
}

#[test]
fn quotes_the_start_of_an_unexpected_reply() {
    let reply = json!({"status": 200, "raw": "y".repeat(1 << 20), "headers": {"content-type": "application/json"}});
    let error = connect_error(&reply);
    assert!(error.contains("the reply is not a JSON-RPC message") && error.len() < 1000, "{}", error.len());
}

#[tokio::test]
async fn reports_refused_connections() {
    let error = McpServer::connect(http("web", "http://127.0.0.1:9/mcp"), TIMEOUT).await.err().expect("no server");
    let error = error.to_string();
    assert!(error.contains("cannot be reached") && error.to_lowercase().contains("refused"), "{error}");
}

#[tokio::test]
async fn reports_invalid_headers_without_their_value() {
    let mut target = http("web", "http://127.0.0.1:9/mcp");
    if let McpServerConfig::Http { headers, .. } = &mut target.config {
        headers.insert("x-key".to_owned(), "secret\nvalue".to_owned());
    }
    let error = McpServer::connect(target, TIMEOUT).await.err().expect("no server").to_string();
    assert_eq!(error, "the MCP server 'web' has an invalid header 'x-key': its value contains forbidden characters");
}
