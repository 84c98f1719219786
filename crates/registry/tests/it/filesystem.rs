//! `@modelcontextprotocol/server-filesystem` over stdio, together with another server.

use karat_core::port::ToolRunner;
use karat_registry::McpServers;
use karat_testkit::tools::TestTool;
use serde_json::json;

use crate::support::{TIMEOUT, arguments, shell, stdio};

#[tokio::test]
#[ignore = "needs server-filesystem"]
async fn reads_and_writes_files_only_inside_the_folder() {
    let mut command = TestTool::ServerFilesystem.command();
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().canonicalize().unwrap();
    command.push(inside.to_string_lossy().into_owned());
    let targets = vec![stdio("files", &command), shell("shell", "")];
    let servers = McpServers::connect(targets, TIMEOUT, &|_| ()).await.unwrap();
    let names: Vec<&str> = servers.registry().names();
    assert!(names.contains(&"write_file") && names.ends_with(&["odd", "refuse", "pid"]), "{names:?}");

    let file = inside.join("note.txt");
    let written = servers.call("write_file", &arguments(json!({"path": file, "content": "ünïcode\n"}))).await.unwrap();
    assert_eq!(written.error, None, "{written:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "ünïcode\n");
    let read = servers.call("read_text_file", &arguments(json!({"path": file}))).await.unwrap();
    assert!(read.result.to_string().contains("ünïcode"), "{read:?}");
    let outside = servers.call("read_text_file", &arguments(json!({"path": "/etc/hostname"}))).await.unwrap();
    assert!(outside.error.as_ref().is_some_and(|error| error.contains("denied")), "{outside:?}");
    let other = servers.call("hello", &arguments(json!({}))).await.unwrap();
    assert_eq!(other.result, "hello", "calls go to the server of the tool");
}
