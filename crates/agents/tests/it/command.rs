//! Command agents with well-behaved and faulty programs.

use std::path::Path;
use std::time::{Duration, Instant};

use karat_agents::CommandAgent;
use karat_core::assertion::Mode;
use karat_core::port::{Agent, AgentError};
use karat_core::trace::Trace;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{ask, case, config, wait_until};

fn agent_with(command: &str, value: &Value) -> CommandAgent {
    CommandAgent::new(command, Path::new("/"), config(value), &|_| None).unwrap()
}

/// Creates an agent that runs a shell script.
fn shell(script: &str) -> CommandAgent {
    agent_with(&shell_command(script), &json!({}))
}

fn shell_command(script: &str) -> String {
    format!("sh -c '{}'", script.replace('\'', r"'\''"))
}

async fn answer(script: &str) -> Result<Trace, AgentError> {
    ask(&shell(script), "hi").await
}

async fn error_of(script: &str) -> String {
    answer(script).await.expect_err(script).message
}

/// Whether a process with this argument is running.
fn is_running(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let has_argument = |line: Vec<u8>| line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes());
    processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(has_argument)
}

#[tokio::test]
async fn sends_the_request_on_stdin_and_reads_the_reply_from_stdout() {
    let script = r#"import json, sys
request = json.load(sys.stdin)
assert sys.stdin.read() == ""
print("thinking", file=sys.stderr)
print(json.dumps({
    "response": request["message"] + "! " + sys.argv[1],
    "toolCalls": [{"name": "t", "params": {"a": 1}, "success": True}],
    "usage": {"inputTokens": 3, "costUsd": 0.5},
    "model": "m",
}))"#;
    let agent = agent_with(&format!("python3 -c '{script}' \"two words\""), &json!({}));
    let trace = ask(&agent, "héllo \"you\"\n").await.unwrap();
    assert_eq!(trace.response, "héllo \"you\"\n! two words");
    assert_eq!((trace.tool_names(), trace.cost_usd(), trace.model.as_deref()), (vec!["t"], Some(0.5), Some("m")));
    assert_eq!(trace.stderr.as_deref(), Some("thinking\n"));
    assert!(trace.latency_ms > 0.0);
    assert_eq!(agent.mode(&case("hi")), Mode::Endpoint);
}

#[tokio::test]
async fn request_and_reply_formats_are_configurable() {
    let value = json!({
        "request": {"body": {"messages": [{"role": "user", "content": ""}]}, "message": "/messages/0/content", "query": "q"},
        "response": {"response": "/seen"},
    });
    let agent =
        agent_with(&shell_command(r#"printf '{"seen": %s}' "$(cat | sed 's/.*content":\("[^"]*"\).*/\1/')""#), &value);
    assert_eq!(ask(&agent, "hi there").await.unwrap().response, "hi there");
    let parts = agent.determinants(&case("hi"), 0);
    assert_eq!(parts["message"], "hi");
    assert_eq!(parts["request"]["request"]["message"], "/messages/0/content");
    assert!(parts["agent"].as_str().unwrap().starts_with("command:sh -c "));
}

#[tokio::test]
async fn a_program_may_ignore_stdin() {
    let trace = answer("exec 0<&-; printf '{\"response\": \"ok\"}'").await.unwrap();
    assert_eq!((trace.response.as_str(), trace.stderr), ("ok", None));
    // More than a pipe can buffer.
    let agent = shell("printf '{\"response\": \"ok\"}'");
    assert_eq!(ask(&agent, &"x".repeat(1_000_000)).await.unwrap().response, "ok");
}

#[tokio::test]
async fn a_program_may_write_before_it_reads() {
    let script = "import sys; sys.stdout.write(\" \" * 500000); sys.stderr.write(\"e\" * 50000); \
                  sys.stdout.write(\"{\\\"response\\\": \\\"%d\\\"}\" % len(sys.stdin.read()))";
    let agent = agent_with(&format!("python3 -c '{script}'"), &json!({}));
    assert_eq!(ask(&agent, &"x".repeat(500_000)).await.unwrap().response, "500014");
}

#[rstest]
#[case("exit 3", "the program ended with exit status 3")]
#[case("echo one >&2; echo two >&2; exit 1", "the program ended with exit status 1; its stderr: one\ntwo")]
#[case("printf '{\"response\": \"ok\"}'; exit 9", "the program ended with exit status 9")]
#[case("kill -9 $$", "the program ended with signal 9 (SIGKILL)")]
#[case("true", "the program wrote nothing to stdout")]
#[case("echo why >&2; echo ' '", "the program wrote nothing to stdout; its stderr: why")]
#[case("echo hello", "the program's answer is not valid JSON (expected value at line 1 column 1): hello")]
#[case(
    "echo oops >&2; printf '{\"response\": \"ok\"} x'",
    "the program's answer is not valid JSON (trailing characters at line 1 column 20); its stderr: oops: {\"response\": \"ok\"} x"
)]
#[case("echo oops >&2; echo '{}'", "the reply has no text at '/response'; its stderr: oops")]
#[tokio::test]
async fn reports_failed_programs_and_invalid_answers(#[case] script: &str, #[case] expected: &str) {
    assert_eq!(error_of(script).await, expected);
}

#[tokio::test]
async fn the_last_lines_of_stderr_are_quoted() {
    let message = error_of("seq 1 100000 >&2; exit 1").await;
    assert!(message.ends_with("\n99999\n100000") && message.len() < 400, "{message}");
    // Only whole lines are quoted, so that no secret is split.
    let message = error_of("printf 'first\\n%01000d\\n' 7 >&2; exit 1").await;
    assert_eq!(message, format!("the program ended with exit status 1; its stderr: {:01000}", 7));
}

#[tokio::test]
async fn only_the_end_of_stderr_is_captured() {
    let trace = answer("seq 1 100000 >&2; printf '{\"response\": \"ok\"}'").await.unwrap();
    let stderr = trace.stderr.unwrap();
    assert!(stderr.len() <= 64 * 1024 + 8 && stderr.len() > 60 * 1024, "{}", stderr.len());
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!((lines[0], lines.last()), ("…", Some(&"100000")));
    let (first, second): (u32, u32) = (lines[1].parse().unwrap(), lines[2].parse().unwrap());
    assert_eq!(first + 1, second, "expected a whole first line");
}

#[tokio::test]
async fn a_program_with_endless_output_is_killed() {
    let started = Instant::now();
    let agent = agent_with("yes karat-endless-7531", &json!({"maxResponseBytes": 1000}));
    let error = ask(&agent, "hi").await.expect_err("too much");
    assert_eq!(error.message, "the program's answer is larger than 1000 bytes ('maxResponseBytes')");
    assert!(started.elapsed() < Duration::from_secs(10));
    wait_until("the program is killed", || !is_running("karat-endless-7531")).await;
    // Exactly the limit is allowed.
    let exact = agent_with(&shell_command("printf '{\"response\": \"ok\"}'"), &json!({"maxResponseBytes": 18}));
    assert_eq!(ask(&exact, "hi").await.unwrap().response, "ok");
}

#[tokio::test]
async fn a_cancelled_program_is_killed_with_its_children() {
    let agent = shell("sleep 86001.5 & (sleep 86002.5 & wait) & sleep 86003.5; wait");
    let call = tokio::time::timeout(Duration::from_millis(700), ask(&agent, "hi"));
    let children = wait_until("the children are running", || is_running("86001.5") && is_running("86002.5"));
    let (cancelled, ()) = tokio::join!(call, children);
    assert!(cancelled.is_err(), "expected a timeout");
    for argument in ["86001.5", "86002.5", "86003.5"] {
        wait_until("all processes are killed", || !is_running(argument)).await;
    }
}

#[tokio::test]
async fn cancelled_programs_are_reaped() {
    let children = || {
        let id = std::process::id();
        let listed = std::fs::read_dir("/proc").unwrap().flatten();
        let stats: Vec<String> =
            listed.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok()).collect();
        let is_own_child = |stat: &&String| stat.contains(&format!("(karat-zombie) Z {id} "));
        stats.iter().filter(is_own_child).count()
    };
    let rename = "import ctypes, time; ctypes.CDLL(None).prctl(15, b\"karat-zombie\"); time.sleep(60)";
    let agent = agent_with(&format!("python3 -c '{rename}' 86010.5"), &json!({}));
    for _ in 0..3 {
        let call = tokio::time::timeout(Duration::from_millis(400), ask(&agent, "hi"));
        assert!(call.await.is_err());
    }
    wait_until("all processes are reaped", || !is_running("86010.5") && children() == 0).await;
}

#[tokio::test]
async fn children_that_keep_pipes_open_do_not_delay_the_case() {
    let started = Instant::now();
    let trace = answer("sleep 86004.5 & printf '{\"response\": \"ok\"}'; echo bye >&2").await.unwrap();
    assert_eq!((trace.response.as_str(), trace.stderr.as_deref()), ("ok", Some("bye\n")));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    // The latency does not include the children.
    assert!(trace.latency_ms < 250.0 + 1_000.0, "{}", trace.latency_ms);
    wait_until("the child is killed", || !is_running("86004.5")).await;
}

#[tokio::test]
async fn a_program_may_close_its_pipes_early() {
    let trace = answer("printf '{\"response\": \"ok\"}'; exec 1>&- 2>&-; sleep 0.2").await.unwrap();
    assert!(trace.latency_ms >= 200.0, "{}", trace.latency_ms);
}

#[rstest]
#[case("", "missing program after 'command:'")]
#[case("  ", "missing program after 'command:'")]
#[case("''", "missing program after 'command:'")]
#[case("sh -c 'x", "the command has an unclosed quote")]
#[case("./nothing here", "program './nothing' not found")]
#[case("bin/", "program 'bin/' not found")]
fn rejects_invalid_command_lines(#[case] command: &str, #[case] expected: &str) {
    let error =
        CommandAgent::new(command, Path::new("/karat-nowhere"), config(&json!({})), &|_| None).expect_err(command);
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_missing_program_is_an_error() {
    let message =
        ask(&agent_with("karat-no-such-program", &json!({})), "hi").await.expect_err("expected an error").message;
    assert_eq!(message, "cannot start karat-no-such-program: No such file or directory (os error 2)");
}

#[tokio::test]
async fn a_program_runs_in_the_project_folder() {
    let folder = std::env::temp_dir().join(format!("karat-command-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    let script = "#!/bin/sh\nprintf '{\"response\": \"%s\"}' \"$(basename \"$PWD\")\"\n";
    std::fs::write(folder.join("bin/agent"), script).unwrap();
    let command = "sh bin/agent";
    let agent = CommandAgent::new(command, &folder, config(&json!({})), &|_| None).unwrap();
    let by_path = CommandAgent::new("bin/agent", &folder, config(&json!({})), &|_| None);
    let response = ask(&agent, "hi").await.map(|trace| trace.response);
    let error = ask(&by_path.unwrap(), "hi").await.expect_err("not executable").message;
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(response, Ok(folder.file_name().unwrap().to_string_lossy().into_owned()));
    assert!(error.contains("Permission denied"), "{error}");
}

#[tokio::test]
async fn concurrent_calls_get_their_own_answers() {
    let agent = agent_with("cat", &json!({"response": {"response": "/message"}}));
    let messages: Vec<String> = (0..50).map(|number| format!("message {number}")).collect();
    let answers = futures::future::join_all(messages.iter().map(|message| ask(&agent, message))).await;
    let answers: Vec<String> = answers.into_iter().map(|answer| answer.unwrap().response).collect();
    assert_eq!(answers, messages);
}
