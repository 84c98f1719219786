//! Compares the listed tools of the MCP reference servers with their raw responses.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use karat_cases::registry::Tool;
use karat_json::hash::short_hash;
use karat_registry::{McpServer, NamedServer};
use karat_testkit::tools::{BackgroundServer, TestTool};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{TIMEOUT, http, stdio};

/// Requests a server's tools with raw JSON-RPC, without karat's code.
fn request_tools(command: &[String]) -> Vec<Value> {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let messages = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let result = messages.filter(|message| message["id"] == 2).find_map(|message| message.get("result").cloned());
    child.kill().unwrap();
    child.wait().unwrap();
    result.expect("a response")["tools"].as_array().unwrap().clone()
}

fn assert_matches(tools: &[Tool], expected: &[Value], location: &str) {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let expected_names: Vec<&str> = expected.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, expected_names);
    for (tool, expected) in tools.iter().zip(expected) {
        let description = expected["description"].as_str().unwrap();
        assert_eq!(tool.description_hash(), Some(short_hash(description.as_bytes())), "{}", tool.name);
        assert_eq!(tool.input_schema.get(), Some(&expected["inputSchema"]), "{}", tool.name);
        assert_eq!(tool.input_schema.get().unwrap()["type"], "object");
        assert_eq!(tool.location.as_ref().unwrap().to_string(), location);
        let category = match &expected["annotations"] {
            hints if hints["readOnlyHint"] == true => Some("read"),
            hints if hints["destructiveHint"] == true => Some("destructive"),
            hints if hints["readOnlyHint"] == false => Some("write"),
            _ => None,
        };
        assert_eq!(tool.category.as_deref(), category, "{}", tool.name);
        assert!(tool.unknowns().next().is_none());
    }
}

async fn list(target: NamedServer) -> Vec<Tool> {
    McpServer::connect(target, TIMEOUT).await.unwrap().tools().await.unwrap()
}

#[rstest]
#[ignore = "needs server-everything"]
#[case::everything(TestTool::ServerEverything, "echo")]
#[ignore = "needs server-filesystem"]
#[case::filesystem(TestTool::ServerFilesystem, "read_text_file")]
#[ignore = "needs server-memory"]
#[case::memory(TestTool::ServerMemory, "create_entities")]
#[ignore = "needs server-sequential-thinking"]
#[case::sequential_thinking(TestTool::ServerSequentialThinking, "sequentialthinking")]
#[tokio::test]
async fn lists_the_tools_of_reference_servers(#[case] server: TestTool, #[case] known: &str) {
    let mut command = server.command();
    let folder = tempfile::tempdir().unwrap();
    if server == TestTool::ServerFilesystem {
        command.push(folder.path().canonicalize().unwrap().to_string_lossy().into_owned());
    }
    let tools = list(stdio("reference", &command)).await;
    assert!(tools.iter().any(|tool| tool.name == known && tool.version.get().is_some()), "{tools:?}");
    assert_matches(&tools, &request_tools(&command), "mcp:reference");
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn lists_the_same_tools_over_http() {
    let words = TestTool::ServerEverything.command();
    let command = |port: u16| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("streamableHttp").env("PORT", port.to_string());
        command
    };
    let background = BackgroundServer::start(command, "/mcp");
    let tools = list(http("web", &background.url("/mcp"))).await;
    let mut expected = request_tools(&words);
    // Some tools are listed only for clients with more capabilities.
    expected.retain(|tool| tools.iter().any(|listed_tool| listed_tool.name == tool["name"]));
    assert!(tools.len() > 5, "{tools:?}");
    assert_matches(&tools, &expected, "mcp:web");
}
