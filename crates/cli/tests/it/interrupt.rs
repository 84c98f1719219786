//! Ctrl-C and other signals: finished cases are written, child processes are killed.

use std::process::Command;
use std::time::{Duration, Instant};

use karat_testkit::mcp::shell_server;
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::json;

use crate::support::{ok_case, only_result, project};

#[test]
fn an_interrupted_run_writes_finished_cases() {
    let server =
        ScriptedServer::start(json!({"fast": {"response": "ok"}, "slow": {"response": "ok", "delayMs": 30_000}}));
    let project = project().file(
        "evals/x.golden.json",
        json!([ok_case("gs-x-001", "fast"), ok_case("gs-x-002", "slow"), ok_case("gs-x-003", "fast")]),
    );
    let started = Instant::now();
    let running = project.command(["run", "--agent-endpoint", &server.endpoint()]).start();
    while server.request_count() < 2 {
        assert!(started.elapsed() < Duration::from_secs(20), "the second case did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    running.interrupt();
    let output = running.wait().expect("karat exits");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(output.code, Some(130), "{}", output.both());
    assert!(output.stdout.contains("1/1 passed | 0 failed | 2 not run"), "{}", output.stdout);
    let result = only_result(&project, "evals/results");
    assert_eq!(result["cases"][0]["id"], "gs-x-001");
    assert_eq!(result["summary"]["notRun"], 2);
    assert_eq!(result["notRun"], json!(["gs-x-002", "gs-x-003"]));
    let endpoint = server.endpoint();
    let command = format!("karat run --agent-endpoint {endpoint} --only-failed");
    assert!(output.unwrapped_stderr().contains(&command), "{}", output.stderr);
    let list = project.run(["run", "--only-failed", "--list"]).stdout;
    assert!(!list.contains("gs-x-001") && list.contains("gs-x-002") && list.contains("gs-x-003"), "{list}");
}

/// Waits for the first line of a file.
fn wait_for_line(path: &std::path::Path) -> String {
    let started = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return text.trim().to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{} was not written", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process has exited. Waits up to two seconds, since a kill takes effect with a delay.
fn has_exited(pid: &str) -> bool {
    let started = Instant::now();
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") || started.elapsed() > Duration::from_secs(2) {
            return stat.is_empty() || stat.contains(") Z ");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Interrupts the snapshot command: the MCP server runs, and no case has started.
#[rstest]
#[case("INT")]
#[case("TERM")]
fn an_interrupt_before_the_first_case_kills_child_processes(#[case] signal: &str) {
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
    let snapshot = wait_for_line(&project.path().join("snapshot"));
    let server = wait_for_line(&project.path().join("server"));
    let started = Instant::now();
    running.signal(signal);
    let output = running.wait().expect("karat exits");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(output.code, Some(130), "{}", output.both());
    assert!(has_exited(&server) && has_exited(&snapshot), "a child process is still running");
}

#[rstest]
#[case::init("own", "Agent (a URL", &["init", "--ports", "1"])]
#[case::init_in_a_foreign_terminal("foreign", "Agent (a URL", &["init", "--ports", "1"])]
#[case::detect("own", "No discovery endpoint", &["agent", "detect", "http://127.0.0.1:9"])]
#[case::detect_in_a_foreign_terminal("foreign", "No discovery endpoint", &["agent", "detect", "http://127.0.0.1:9"])]
fn a_prompt_ends_when_the_terminal_closes(#[case] terminal: &str, #[case] prompt: &str, #[case] arguments: &[&str]) {
    let project = project();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures/closed_terminal.py");
    let mut command = Command::new("python3");
    command.args([script, terminal, prompt, "--", env!("CARGO_BIN_EXE_karat")]).args(arguments);
    command.current_dir(project.path()).env("TERM", "xterm").env("NO_COLOR", "1");
    let output = command.output().expect("python3 runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout, "130\n", "{stderr}");
}
