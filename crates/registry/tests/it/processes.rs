//! Nothing that a server started is left behind.

use karat_process::kill_all;
use karat_registry::McpServer;
use serde_json::json;

use crate::support::{LIMIT, arguments, eventually, is_running, shell};

/// Starts a server that starts a process of its own; returns both ids.
async fn family(folder: &std::path::Path) -> (McpServer, String, String) {
    let note = folder.join("child");
    let before = format!("sleep 1000 & echo $! >'{}'", note.display());
    let server = McpServer::connect(shell("parent", &before), LIMIT).await.unwrap();
    let parent = server.call("pid", &arguments(json!({}))).await.result.as_str().unwrap().to_owned();
    let child = std::fs::read_to_string(note).unwrap().trim().to_owned();
    assert!(is_running(&parent) && is_running(&child));
    (server, parent, child)
}

#[tokio::test]
async fn a_dropped_server_ends_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let (server, parent, child) = family(folder.path()).await;
    drop(server);
    eventually("the server ends", || !is_running(&parent)).await;
    eventually("its child ends", || !is_running(&child)).await;
}

#[tokio::test]
async fn a_server_that_died_leaves_no_children() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _, child) = family(folder.path()).await;
    let died = server.call("die", &arguments(json!({}))).await;
    assert!(died.error.is_some());
    drop(server);
    eventually("its child ends", || !is_running(&child)).await;
}

#[test]
fn a_program_that_stops_short_ends_them_too() {
    // In a process of its own, since every server of the process is ended.
    if std::env::var_os("KARAT_TEST_ALONE").is_none() {
        let alone = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["a_program_that_stops_short_ends_them_too", "--nocapture"])
            .env("KARAT_TEST_ALONE", "1")
            .output()
            .unwrap();
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stdout));
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let (server, parent, child) = family(folder.path()).await;
        std::mem::forget(server);
        kill_all();
        eventually("the server ends", || !is_running(&parent)).await;
        eventually("its child ends", || !is_running(&child)).await;
    });
}
