//! Servers leave no processes behind.

use karat_process::kill_all;
use karat_registry::McpServer;
use serde_json::json;

use crate::support::{TIMEOUT, arguments, eventually, is_running, shell};

/// Starts a server with a child process; returns both process ids.
async fn server_with_child(folder: &std::path::Path) -> (McpServer, String, String) {
    let pid_file = folder.join("child");
    let before = format!("sleep 1000 & echo $! >'{}'", pid_file.display());
    let server = McpServer::connect(shell("parent", &before), TIMEOUT).await.unwrap();
    let parent = server.call("pid", &arguments(json!({}))).await.unwrap().result.as_str().unwrap().to_owned();
    let child = std::fs::read_to_string(pid_file).unwrap().trim().to_owned();
    assert!(is_running(&parent) && is_running(&child));
    (server, parent, child)
}

#[tokio::test]
async fn dropping_a_server_kills_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let (server, parent, child) = server_with_child(folder.path()).await;
    drop(server);
    eventually("the server ends", || !is_running(&parent)).await;
    eventually("its child ends", || !is_running(&child)).await;
}

#[tokio::test]
async fn a_crashed_server_leaves_no_children() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _, child) = server_with_child(folder.path()).await;
    server.call("die", &arguments(json!({}))).await.expect_err("no result");
    drop(server);
    eventually("its child ends", || !is_running(&child)).await;
}

#[test]
fn kill_all_kills_servers_and_children() {
    // Run in a separate process, since all servers of the process are killed.
    if std::env::var_os("KARAT_TEST_ALONE").is_none() {
        let alone = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["kill_all_kills_servers_and_children", "--nocapture"])
            .env("KARAT_TEST_ALONE", "1")
            .output()
            .unwrap();
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stdout));
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let (server, parent, child) = server_with_child(folder.path()).await;
        std::mem::forget(server);
        kill_all();
        eventually("the server ends", || !is_running(&parent)).await;
        eventually("its child ends", || !is_running(&child)).await;
    });
}
