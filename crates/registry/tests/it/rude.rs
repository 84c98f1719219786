//! Servers that do what no server should.

use std::time::Duration;

use karat_core::port::ToolRunner;
use karat_registry::{McpError, McpProblem, McpServer, McpServers};
use serde_json::json;

use crate::support::{LIMIT, arguments, shell, stdio};

async fn failing(command: &[&str]) -> McpError {
    McpServer::connect(stdio("rude", command), Duration::from_secs(2)).await.err().expect("no server")
}

#[tokio::test]
async fn a_program_that_does_not_exist() {
    let error = failing(&["no-such-program-anywhere"]).await;
    assert_eq!(
        error.to_string(),
        "the MCP server 'rude' cannot be started: there is no program 'no-such-program-anywhere'"
    );
    let error = failing(&["/etc/hostname"]).await;
    assert!(error.to_string().contains("cannot be started: '/etc/hostname': "), "{error}");
    let mut target = shell("rude", "");
    target.base = "/no/such/folder".into();
    let error = McpServer::connect(target, LIMIT).await.err().expect("no server");
    assert_eq!(error.problem, McpProblem::NoFolder("/no/such/folder".to_owned()));
}

#[tokio::test]
async fn one_that_ends_at_once() {
    let error = failing(&["sh", "-c", "echo 'no licence' >&2; exit 3"]).await;
    assert_eq!(error.to_string(), "the MCP server 'rude' ended at once (exit status: 3); it said: no licence");
    let error = failing(&["sh", "-c", "echo one >&2; echo two >&2; exit 3"]).await;
    assert_eq!(error.to_string(), "the MCP server 'rude' ended at once (exit status: 3); it said:\none\ntwo");
    let error = failing(&["true"]).await;
    assert_eq!(error.to_string(), "the MCP server 'rude' ended at once (exit status: 0)");
    // Its child holds the pipes open.
    let error = failing(&["sh", "-c", "sleep 1000 & exit 4"]).await;
    assert_eq!(error.to_string(), "the MCP server 'rude' ended at once (exit status: 4)");
}

#[tokio::test]
async fn one_that_talks_garbage() {
    let error = failing(&["sh", "-c", "echo Welcome to my server; cat >/dev/null"]).await;
    assert_eq!(error.to_string(), "the MCP server 'rude' did not answer within 2000 ms; it said: Welcome to my server");
    let error = failing(&["cat", "/dev/zero"]).await;
    assert!(matches!(error.problem, McpProblem::Silent { .. }), "{:?}", error.problem);
    let error = failing(&["sh", "-c", "yes noise >&2"]).await;
    let said = error.to_string();
    assert!(said.contains("noise") && said.len() < 5000, "what is kept is bounded: {}", said.len());
    let error = failing(&[
        "sh",
        "-c",
        "read line; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32000,\"message\":\"go away\"}}'; cat",
    ])
    .await;
    assert!(error.to_string().contains("refuses the connection: go away (MCP error -32000)"), "{error}");
}

#[tokio::test]
async fn one_that_dies_in_the_middle_is_started_once_more() {
    let server = McpServer::connect(shell("rude", "echo noise on stdout"), LIMIT).await.unwrap();
    let first = server.call("pid", &arguments(json!({}))).await;
    let died = server.call("die", &arguments(json!({}))).await;
    assert_eq!(
        died.error.as_deref(),
        Some("the MCP server 'rude' ended during the call (exit status: 7); it said: last words")
    );
    let second = server.call("pid", &arguments(json!({}))).await;
    assert_eq!(second.error, None);
    assert_ne!(second.result, first.result, "another process");
}

#[tokio::test]
async fn one_that_cannot_be_started_again_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let before = format!("echo x >>'{0}'; [ $(wc -l <'{0}') = 1 ] || {{ echo spent >&2; exit 5; }}", starts.display());
    let server = McpServer::connect(shell("rude", &before), LIMIT).await.unwrap();
    server.call("die", &arguments(json!({}))).await;
    for _ in 0..3 {
        let lost = server.call("hello", &arguments(json!({}))).await;
        assert_eq!(lost.error.as_deref(), Some("the MCP server 'rude' ended at once (exit status: 5); it said: spent"));
    }
    assert_eq!(std::fs::read_to_string(&starts).unwrap().lines().count(), 2, "it is tried once, not for every call");
}

#[tokio::test]
async fn odd_answers_are_told() {
    let server = McpServer::connect(shell("rude", ""), LIMIT).await.unwrap();
    let names: Vec<String> = server.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["hello", "die", "odd", "refuse", "pid"], "over both pages");
    let odd = server.call("odd", &arguments(json!({}))).await;
    assert_eq!(odd.result, "[content of a kind that karat does not know: {\"type\":\"hologram\",\"depth\":3}]");
    let refused = server.call("refuse", &arguments(json!({}))).await;
    assert_eq!(refused.error.as_deref(), Some("not like this (MCP error -32602)"));
    assert_eq!(refused.result, json!({"error": "not like this (MCP error -32602)"}));
}

#[tokio::test]
async fn a_list_without_end_is_no_list() {
    let server = r#"answer() { echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
        while read -r line; do
            id=${line#*'"id":'}; id=${id%%[,\}]*}
            case $line in
                *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":""}}';;
                *'"tools/list"'*) answer '{"tools":[],"nextCursor":"more"}';;
            esac
        done"#;
    let server = McpServer::connect(stdio("rude", &["sh", "-c", server]), LIMIT).await.unwrap();
    let error = server.tools().await.expect_err("no list");
    assert_eq!(error.to_string(), "the MCP server 'rude' lists its tools on more than 1000 pages");
}

#[tokio::test]
async fn a_tool_on_two_servers_names_both() {
    let error = McpServers::connect(vec![shell("one", ""), shell("two", "")], LIMIT).await.err().expect("a clash");
    assert_eq!(error.to_string(), "the MCP server 'two' has the tool 'hello', which 'one' has too");
    let servers = McpServers::connect(vec![shell("one", "")], LIMIT).await.unwrap();
    let unknown = servers.call("helo", &arguments(json!({}))).await;
    assert_eq!(unknown.error.as_deref(), Some("no MCP server has the tool 'helo': did you mean 'hello'?"));
}
