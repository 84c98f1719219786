//! Servers that fail or misbehave.

use std::time::Duration;

use karat_core::port::ToolRunner;
use karat_registry::{McpError, McpProblem, McpServer, McpServers};
use serde_json::json;

use crate::support::{TIMEOUT, arguments, shell, stdio};

async fn connect_error(command: &[&str]) -> McpError {
    McpServer::connect(stdio("test", command), Duration::from_secs(2)).await.err().expect("no server")
}

#[tokio::test]
async fn reports_missing_programs_and_folders() {
    let error = connect_error(&["no-such-program-anywhere"]).await;
    assert_eq!(
        error.to_string(),
        "the MCP server 'test' cannot be started: program 'no-such-program-anywhere' not found"
    );
    let error = connect_error(&["/etc/hostname"]).await;
    assert!(error.to_string().contains("cannot be started: '/etc/hostname': "), "{error}");
    let mut target = shell("test", "");
    target.base = "/no/such/folder".into();
    let error = McpServer::connect(target, TIMEOUT).await.err().expect("no server");
    assert_eq!(error.problem, McpProblem::FolderNotFound("/no/such/folder".to_owned()));
}

#[tokio::test]
async fn reports_servers_that_exit() {
    let error = connect_error(&["sh", "-c", "echo 'no licence' >&2; exit 3"]).await;
    assert_eq!(error.to_string(), "the MCP server 'test' exited unexpectedly (exit status: 3); output: no licence");
    let error = connect_error(&["sh", "-c", "echo one >&2; echo two >&2; exit 3"]).await;
    assert_eq!(error.to_string(), "the MCP server 'test' exited unexpectedly (exit status: 3); output:\none\ntwo");
    let error = connect_error(&["true"]).await;
    assert_eq!(error.to_string(), "the MCP server 'test' exited unexpectedly (exit status: 0)");
    // The child process keeps the pipes open.
    let error = connect_error(&["sh", "-c", "sleep 1000 & exit 4"]).await;
    assert_eq!(error.to_string(), "the MCP server 'test' exited unexpectedly (exit status: 4)");
}

#[tokio::test]
async fn reports_servers_that_do_not_speak_mcp() {
    let error = connect_error(&["sh", "-c", "echo Welcome to my server; cat >/dev/null"]).await;
    assert_eq!(error.to_string(), "the MCP server 'test' did not respond within 2000 ms; output: Welcome to my server");
    let error = connect_error(&["cat", "/dev/zero"]).await;
    assert_eq!(error.to_string(), "the MCP server 'test' sent a message larger than 16 MB");
    let error = connect_error(&["sh", "-c", "yes noise >&2"]).await;
    let message = error.to_string();
    assert!(message.contains("noise") && message.len() < 5000, "the stored output is bounded: {}", message.len());
    let error = connect_error(&[
        "sh",
        "-c",
        "read line; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32000,\"message\":\"go away\"}}'; cat",
    ])
    .await;
    assert!(error.to_string().contains("refuses the connection: go away (MCP error -32000)"), "{error}");
}

#[tokio::test]
async fn restarts_a_server_that_exits_during_a_call() {
    let server = McpServer::connect(shell("test", "echo noise on stdout"), TIMEOUT).await.unwrap();
    let first = server.call("pid", &arguments(json!({}))).await.unwrap();
    let died = server.call("die", &arguments(json!({}))).await.expect_err("no result");
    assert_eq!(
        died.to_string(),
        "the MCP server 'test' exited during the call die {} (exit status: 7); output: last words"
    );
    let second = server.call("pid", &arguments(json!({}))).await.unwrap();
    assert_eq!(second.error, None);
    assert_ne!(second.result, first.result, "another process");
}

#[tokio::test]
async fn names_the_calls_that_a_server_left_without_a_response() {
    let server = McpServer::connect(shell("test", ""), TIMEOUT).await.unwrap();
    server.call("pid", &arguments(json!({}))).await.unwrap();
    let (hung, pid) = (arguments(json!({"id": "4411"})), arguments(json!({"text": "x".repeat(300)})));
    // The server does not answer to an unknown tool.
    let (first, second, died) = tokio::join!(server.call("hang", &hung), server.call("hang", &pid), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.call("die", &arguments(json!({}))).await
    });
    let texts = [first, second, died].map(|lost| lost.expect_err("no result").to_string());
    let end = "(exit status: 7); also without a response";
    let start = "the MCP server 'test' exited during the call";
    assert_eq!(
        texts,
        [
            format!("{start} hang {{\"id\":\"4411\"}} {end}: hang {{…}}, die {{}}; output: last words"),
            format!("{start} hang {{…}} {end}: hang {{\"id\":\"4411\"}}, die {{}}; output: last words"),
            format!("{start} die {{}} {end}: hang {{\"id\":\"4411\"}}, hang {{…}}; output: last words"),
        ]
    );
}

#[tokio::test]
async fn does_not_retry_a_failed_restart() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let before = format!("echo x >>'{0}'; [ $(wc -l <'{0}') = 1 ] || {{ echo spent >&2; exit 5; }}", starts.display());
    let server = McpServer::connect(shell("test", &before), TIMEOUT).await.unwrap();
    server.call("die", &arguments(json!({}))).await.expect_err("no result");
    for _ in 0..3 {
        let lost = server.call("hello", &arguments(json!({}))).await.expect_err("no result");
        assert_eq!(lost.to_string(), "the MCP server 'test' exited unexpectedly (exit status: 5); output: spent");
    }
    assert_eq!(
        std::fs::read_to_string(&starts).unwrap().lines().count(),
        2,
        "the restart is attempted once, not for every call"
    );
}

#[tokio::test]
async fn describes_unsupported_content_and_errors() {
    let server = McpServer::connect(shell("test", ""), TIMEOUT).await.unwrap();
    let names: Vec<String> = server.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["hello", "die", "odd", "refuse", "pid"], "over both pages");
    let odd = server.call("odd", &arguments(json!({}))).await.unwrap();
    assert_eq!(odd.result, "[unsupported content: {\"type\":\"hologram\",\"depth\":3}]");
    let refused = server.call("refuse", &arguments(json!({}))).await.unwrap();
    assert_eq!(refused.error.as_deref(), Some("not like this (MCP error -32602)"));
    assert_eq!(refused.result, json!({"error": "not like this (MCP error -32602)"}));
}

/// Returns the error of a server whose list of tools is the output of a shell command.
async fn listing_error(list: &str) -> String {
    let server = r#"answer() { echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
        while read -r line; do
            id=${line#*'"id":'}; id=${id%%[,\}]*}
            case $line in
                *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":""}}';;
                *'"tools/list"'*) answer "$(LIST)";;
            esac
        done"#;
    let server = server.replace("LIST", list);
    let server = McpServer::connect(stdio("test", &["sh", "-c", &server]), TIMEOUT).await.unwrap();
    server.tools().await.expect_err("not listed").to_string()
}

#[tokio::test]
async fn limits_the_number_of_pages() {
    let error = listing_error(r#"echo '{"tools":[],"nextCursor":"more"}'"#).await;
    assert_eq!(error, "the MCP server 'test' lists its tools on more than 1000 pages");
}

#[tokio::test]
async fn limits_the_size_and_depth_of_messages() {
    let error = listing_error("head -c 17000000 /dev/zero | tr '\\0' x").await;
    assert_eq!(error, "the MCP server 'test' sent a message larger than 16 MB");
    let error = listing_error("head -c 5000 /dev/zero | tr '\\0' '['").await;
    assert_eq!(error, "the MCP server 'test' sent a message nested more than 127 levels deep");
}

#[tokio::test]
async fn rejects_a_tool_on_two_servers() {
    let error = McpServers::connect(vec![shell("one", ""), shell("two", "")], TIMEOUT, &|_| ())
        .await
        .err()
        .expect("a duplicate");
    assert_eq!(error.to_string(), "the MCP server 'two' has a tool 'hello' that 'one' also has");
    let servers = McpServers::connect(vec![shell("one", "")], TIMEOUT, &|_| ()).await.unwrap();
    let unknown = servers.call("helo", &arguments(json!({}))).await.unwrap();
    assert_eq!(unknown.error.as_deref(), Some("no MCP server has the tool 'helo': did you mean 'hello'?"));
}

#[tokio::test]
async fn reports_each_server_that_is_ready() {
    let ready = std::sync::Mutex::new(Vec::new());
    let on_ready = |name: &str| ready.lock().unwrap().push(name.to_owned());
    let hanging = stdio("hanging", &["sleep", "1000"]);
    let targets = vec![hanging, stdio("broken", &["false"]), shell("good", "")];
    let connecting = McpServers::list(targets, TIMEOUT, &on_ready);
    assert!(tokio::time::timeout(Duration::from_secs(2), connecting).await.is_err(), "a server hangs");
    let mut ready = ready.into_inner().unwrap();
    ready.sort();
    assert_eq!(ready, ["broken", "good"]);
}
