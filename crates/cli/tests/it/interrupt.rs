//! Ctrl-C: what finished is written.

use std::time::{Duration, Instant};

use karat_testkit::mcp::shell_server;
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::json;

use crate::support::{ok_case, only_result, project};

#[test]
fn an_interrupted_run_keeps_what_finished() {
    let server =
        ScriptedServer::start(json!({"fast": {"response": "ok"}, "slow": {"response": "ok", "delayMs": 30_000}}));
    let project = project().file(
        "evals/x.golden.json",
        json!([ok_case("gs-x-001", "fast"), ok_case("gs-x-002", "slow"), ok_case("gs-x-003", "fast")]),
    );
    let started = Instant::now();
    let running = project.command(["run", "--agent-endpoint", &server.endpoint()]).start();
    while server.request_count() < 2 {
        assert!(started.elapsed() < Duration::from_secs(20), "the second case never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    running.interrupt();
    let output = running.wait().expect("ends at once");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(output.code, Some(130), "{}", output.both());
    assert!(output.stdout.contains("1/1 passed | 0 failed | 2 not run"), "{}", output.stdout);
    let result = only_result(&project, "evals/results");
    assert_eq!(result["cases"][0]["id"], "gs-x-001");
    assert_eq!(result["summary"]["notRun"], 2);
}

/// Waits for a file's first line.
fn line_of(path: &std::path::Path) -> String {
    let started = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return text.trim().to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{} is never written", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Tells whether a process has ended, or ends within moments: who was killed may not know it yet.
fn is_gone(pid: &str) -> bool {
    let started = Instant::now();
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") || started.elapsed() > Duration::from_secs(2) {
            return stat.is_empty() || stat.contains(") Z ");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The servers were read, nothing was sent yet.
#[rstest]
#[case("INT")]
#[case("TERM")]
fn a_run_is_interrupted_before_it_begins(#[case] signal: &str) {
    let project = project()
        .file(
            "karat.json",
            json!({
                "agentEndpoint": "http://127.0.0.1:9/chat",
                "mcpServers": {"shell": {"command": shell_server("echo $$ >server"), "cwd": "."}},
                "toolExecution": "mcp",
                "allowTools": ["*"],
                "snapshotEnabled": true,
                "snapshot": {"command": ["sh", "-c", "echo $$ >snapshot; exec sleep 50"]},
            }),
        )
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "hi")]));
    let running = project.command(["run"]).start();
    let snapshot = line_of(&project.path().join("snapshot"));
    let server = line_of(&project.path().join("server"));
    let started = Instant::now();
    running.signal(signal);
    let output = running.wait().expect("ends at once");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(output.code, Some(130), "{}", output.both());
    assert!(is_gone(&server) && is_gone(&snapshot), "nobody is left behind");
}
