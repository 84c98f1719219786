//! The reference servers of MCP: what is listed is what they say over the wire.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use karat_core::registry::Tool;
use karat_json::hash::short_hash;
use karat_registry::{McpServer, NamedServer};
use karat_testkit::tools::{BackgroundServer, TestTool};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{LIMIT, http, stdio};

/// Asks a server for its tools without any of karat's code: a few lines of JSON in, a few out.
fn ask(command: &[String]) -> Vec<Value> {
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
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let messages = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let listed = messages.filter(|message| message["id"] == 2).find_map(|message| message.get("result").cloned());
    child.kill().unwrap();
    child.wait().unwrap();
    listed.expect("an answer")["tools"].as_array().unwrap().clone()
}

fn agree(tools: &[Tool], said: &[Value], place: &str) {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let said_names: Vec<&str> = said.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, said_names);
    for (tool, said) in tools.iter().zip(said) {
        let description = said["description"].as_str().unwrap();
        assert_eq!(tool.description_hash(), Some(short_hash(description.as_bytes())), "{}", tool.name);
        assert_eq!(tool.input_schema.get(), Some(&said["inputSchema"]), "{}", tool.name);
        assert_eq!(tool.input_schema.get().unwrap()["type"], "object");
        assert_eq!(tool.place.as_ref().unwrap().to_string(), place);
        let category = match &said["annotations"] {
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
    McpServer::connect(target, LIMIT).await.unwrap().tools().await.unwrap()
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
async fn a_reference_server_is_listed_as_it_speaks(#[case] server: TestTool, #[case] known: &str) {
    let mut command = server.command();
    let folder = tempfile::tempdir().unwrap();
    if server == TestTool::ServerFilesystem {
        command.push(folder.path().canonicalize().unwrap().to_string_lossy().into_owned());
    }
    let tools = list(stdio("reference", &command)).await;
    assert!(tools.iter().any(|tool| tool.name == known && tool.version.get().is_some()), "{tools:?}");
    agree(&tools, &ask(&command), "mcp:reference");
}

#[tokio::test]
#[ignore = "needs server-everything"]
async fn over_http_the_tools_are_the_same() {
    let words = TestTool::ServerEverything.command();
    let command = |port: u16| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("streamableHttp").env("PORT", port.to_string());
        command
    };
    let background = BackgroundServer::start(command, "/mcp");
    let tools = list(http("web", &background.url("/mcp"))).await;
    let mut said = ask(&words);
    // Some tools are offered only to clients that say that they can do more.
    said.retain(|tool| tools.iter().any(|listed| listed.name == tool["name"]));
    assert!(tools.len() > 5, "{tools:?}");
    agree(&tools, &said, "mcp:web");
}
