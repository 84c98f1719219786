//! Agents that are functions of the project or kept programs, and agents that do not report their calls.

use std::fmt::Write as _;

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::support::{newest_result, only_result, project};

const AGENT: &str = r#"
import os

def answer(message):
    if message == "kill":
        os.kill(os.getpid(), 9)
    if message == "hang":
        import time
        time.sleep(1000)
    if message == "raise":
        raise LookupError("no such city")
    return {"response": "ok " + message, "toolCalls": [{"name": "get_weather", "params": {}}], "model": str(os.getpid())}

def text(message):
    return "ok"
"#;

/// Cases with these messages, of which each expects a call.
fn cases(messages: &[String]) -> Value {
    let case = |(number, message): (usize, &String)| {
        json!({"id": format!("gs-x-{number:03}"), "input": {"message": message},
            "expect": {"toolsCalled": ["get_weather"], "responseContains": ["ok"]}})
    };
    messages.iter().enumerate().map(case).collect()
}

fn project_with(agent: &str, messages: &[String]) -> TempProject {
    project()
        .file("karat.json", json!({"agentEndpoint": agent}))
        .file("agent.py", AGENT)
        .file("evals/x.golden.json", cases(messages))
}

/// Removes the padding before times, which depends on their width.
fn normalise_padding(text: &str) -> String {
    let line = |line: &str| match line.strip_suffix("[TIME]") {
        Some(before) => format!("{} [TIME]\n", before.trim_end()),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn a_killed_function_affects_one_case() {
    let mut messages: Vec<String> = (0..1000).map(|number| format!("message {number}")).collect();
    messages[500] = "kill".to_owned();
    let project = project_with("python:agent:answer", &messages);
    let output = project.run(["run", "--quiet"]);
    let result = only_result(&project, "evals/results");
    let summary = &result["summary"];
    assert_eq!((&summary["passed"], &summary["errored"]), (&json!(999), &json!(1)), "{}", output.filtered());
    let killed = &result["cases"][500];
    let error = "the function's process ended with signal 9 (SIGKILL) before it answered";
    assert_eq!((&killed["outcome"], &killed["error"]), (&json!("errored"), &json!(error)));
    let mut processes: Vec<&Value> =
        result["cases"].as_array().unwrap().iter().map(|case| &case["details"]["model"]).collect();
    processes.dedup();
    assert_eq!(processes.len(), 3, "one process before the crash, none of the crash, and one after it");
}

#[test]
fn hangs_and_exceptions_affect_one_case_each() {
    let messages = ["a", "hang", "raise", "b"].map(str::to_owned);
    let project = project_with("python:agent:answer", &messages);
    let output = project.run(["run", "--timeout-ms", "500", "--jobs", "2"]);
    let result = only_result(&project, "evals/results");
    let mut outcomes = String::new();
    for case in result["cases"].as_array().unwrap() {
        let _ = writeln!(outcomes, "{} {}", case["outcome"], case["error"]);
    }
    insta::assert_snapshot!(outcomes, @r#"
    "passed" null
    "failed" "timeout"
    "errored" "the function raised LookupError: no such city (agent.py, line 11: raise LookupError(\"no such city\"))"
    "passed" null
    "#);
    assert_eq!(output.code, Some(3), "{}", output.filtered());
}

#[test]
fn a_function_that_cannot_be_loaded_stops_the_run() {
    let project = project_with("python:agent:anwser", &["a".to_owned(), "b".to_owned()]);
    let output = project.run(["run"]);
    let error = "error: cannot load 'agent:anwser': 'agent' has no 'anwser'; did you mean 'answer'?";
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{}", output.filtered());
    assert!(output.unwrapped_stderr().contains(error), "{}", output.stderr);
    assert_eq!(project.files_in("evals/results", ".json").len(), 0);
    // A replay does not need the function.
    project.write("evals/recordings/notes.txt", "no recordings yet");
    let replayed = project.run(["run", "--replay=strict"]);
    assert!(replayed.stdout.contains("no recording for this request"), "{}", replayed.both());
}

#[test]
fn calls_that_are_not_reported_are_skipped_and_strictly_errored() {
    let project = project_with("python:agent:text", &["a".to_owned(), "b".to_owned()]);
    let output = project.run(["run"]);
    insta::assert_snapshot!(normalise_padding(&output.filtered()), @"
    exit: 0
    ----- stdout -----
    ═══ x — golden evals ══════════════════════════════════════════════
      ✓ gs-x-000 [TIME]
      ✓ gs-x-001 [TIME]
    ───────────────────────────────────────────────────────────────────
      2/2 passed | 0 failed | 2 skipped assertions | [TIME] total

    ⚠ the agent does not report its tool calls, so assertions about calls were not
      judged in 2 cases: 'karat agent try MESSAGE' shows what its replies report
    ----- stderr -----
    run [RUN_ID]: 1 result file in evals/results
    ");
    let output = project.run(["run", "--strict"]);
    assert_eq!(output.code, Some(3), "{}", output.filtered());
    assert_eq!(
        output.stdout.matches("the agent does not report its tool calls, so").count(),
        1,
        "{}",
        output.filtered()
    );
    let result = newest_result(&project, "evals/results");
    let case = &result["cases"][0];
    let error =
        "toolsCalled: the agent does not report its tool calls, and --strict does not skip assertions about them";
    assert_eq!((&case["outcome"], &case["error"]), (&json!("errored"), &json!(error)));
    assert_eq!((&case["failures"], &case["details"]["callsUnreported"]), (&json!([]), &json!(true)));
}

#[test]
fn rejects_names_without_a_function() {
    let project = project_with("python:agent", &["a".to_owned()]);
    let output = project.run(["run"]);
    assert!(
        output.stderr.contains("'agent' does not name a function: use 'python:MODULE:FUNCTION'"),
        "{}",
        output.filtered()
    );
    assert_eq!(output.code, Some(2));
}
