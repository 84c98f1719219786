//! Trace input of `karat eval run`.

use std::process::Command;

use karat_testkit::project::TempProject;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{project, project_with_python};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

const FIRST: &str = "def eval_first(trace):\n    return trace['ok'], 'ok is false'\n";

fn eval_project() -> TempProject {
    project_with_python().file("evals/functions/first.py", FIRST)
}

#[rstest]
#[case(b"\x28\xB5\x2F\xFD", "t is compressed, not JSON", "zstdcat t | karat eval run … --traces -")]
#[case(
    b"PAR1\x15\x04",
    "t is a Parquet file, not JSON",
    "export the data as JSON Lines from the program that wrote it"
)]
#[case(b"ARROW1\0\0", "t is Arrow, not JSON", "to judge Arrow data: karat eval batch … <t")]
#[case(b"\xFF\xFE{\0}\0", "t is UTF-16 text, not JSON", "iconv -f UTF-16 -t UTF-8 t | karat eval run … --traces -")]
fn recognises_other_formats(#[case] bytes: &[u8], #[case] message: &str, #[case] hint: &str) {
    let project = project().file("evals/functions/first.py", FIRST);
    std::fs::write(project.path().join("t"), bytes).unwrap();
    for format in ["table", "json"] {
        let output = project.run(["eval", "run", "first", "--traces", "t", "--format", format]);
        let expected = format!("error: {message}\nhint: {hint}\n");
        assert_eq!((output.code, output.stdout.as_str(), output.stderr), (Some(2), "", expected));
    }
}

#[test]
fn reads_lists_and_documents_on_stdin() {
    let project = eval_project();
    let run =
        |text: &str| project.command(["eval", "run", "first", "--traces", "-", "--format=jsonl"]).stdin(text).run();
    let list = run("[{\"ok\": true, \"steps\": []}]");
    assert_eq!((list.code, list.stdout.lines().count()), (Some(0), 1), "{}", list.both());
    let document = run("{\n  \"ok\": true,\n  \"steps\": []\n}\n");
    assert_eq!((document.code, document.stdout.lines().count()), (Some(0), 1), "{}", document.both());
    let lines = run("\n{\"ok\": true, \"steps\": []}\n{ \"ok\": true, \"steps\": [] }");
    assert_eq!((lines.code, lines.stdout.lines().count()), (Some(0), 2), "{}", lines.both());
    // An incomplete first line is only a broken line.
    let broken = run("{\"ok\": tr\n{\"ok\": true, \"steps\": []}\n");
    assert_eq!((broken.code, broken.stdout.lines().count()), (Some(3), 2), "{}", broken.both());
}

#[test]
fn converts_and_checks_like_import() {
    let function = "def eval_calls(trace):\n    names = [c['name'] for s in trace['steps'] for c in s['tool_calls']]\n    return names == ['rain'], str(names)\n";
    let project = project_with_python()
        .file("calls.py", function)
        .file("log.json", r#"{"messages": [{"role": "user", "content": "Rain?"}, {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "rain", "arguments": "{}"}}]}]}"#)
        .file("null.jsonl", r#"{"trace_id": "n", "steps": [{"tool_calls": null}]}"#)
        .file("other.json", r#"{"foo": 1}"#)
        .file("steps.jsonl", "{\"trace_id\": \"d\", \"steps\": \"x\"}\n");
    let run = |file: &str| project.run(["eval", "run", "calls.py", "--traces", file]);
    assert_eq!(run("log.json").code, Some(0));
    let null = run("null.jsonl");
    assert_eq!(null.code, Some(1), "{}", null.both());
    let other = run("other.json");
    assert_eq!(other.code, Some(2));
    assert!(
        other.stderr.starts_with("error: cannot read the traces: other.json: unrecognised trace format (line 1)\n"),
        "{}",
        other.stderr
    );
    let steps = run("steps.jsonl");
    assert_eq!(steps.code, Some(3));
    assert!(steps.stdout.contains("the trace has no 'steps' list"), "{}", steps.stdout);
}

/// `--traces *.jsonl` as the shell expands it, and functions after the traces.
#[rstest]
#[case(&["first", "--traces", "a1.jsonl", "b2.jsonl"])]
#[case(&["first", "--traces", "a1.jsonl", "--traces", "b2.jsonl"])]
#[case(&["--traces", "a1.jsonl", "b2.jsonl", "--", "first"])]
#[case(&["--traces", "a1.jsonl", "b2.jsonl", "first"])]
#[case(&["--traces", "a1.jsonl", "b2.jsonl", "evals/functions/first.py"])]
#[case(&["--traces", "a1.jsonl", "b2.jsonl", "evals/functions"])]
fn one_flag_takes_several_files(#[case] arguments: &[&str]) {
    let project = eval_project()
        .file("a1.jsonl", "{\"trace_id\": \"a\", \"ok\": true, \"steps\": []}\n")
        .file("b2.jsonl", "{\"trace_id\": \"b\", \"ok\": true, \"steps\": []}\n");
    let output = project.run([&["eval", "run", "--format=jsonl"], arguments].concat());
    assert_eq!(output.code, Some(0), "{}", output.both());
    let ids: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["trace_id"].take()).collect();
    assert_eq!(ids, [json!("a"), json!("b")]);
}

#[test]
fn reports_broken_lines_with_their_files() {
    let project = eval_project()
        .file("m1.jsonl", "{\"ok\": true, \"steps\": []}\n{]\n")
        .file("m2.jsonl", "{]\n{\"steps\": []}\n")
        .file("none.jsonl", "a\nb\n");
    let output = project.run(["eval", "run", "first", "--traces", "m1.jsonl", "m2.jsonl"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 3
    ----- stdout -----
    eval_first
      1 passed (25%), 0 failed (0%), 3 errored (75%)
      errored: validation
           2  line #: invalid JSON: object keys must be in double quotes
              in m1.jsonl line 2, m2.jsonl line 1
      errored: exception
           1  KeyError: 'ok' (line 2)
              in m2.jsonl line 2
      # stands for numbers that differ
      time per trace: p50 [TIME], p99 [TIME]

    2 traces judged by 1 function, 2 invalid lines: 1 passed, 0 failed, 3 errored
    [TIME], [RATE] traces/s
    pass --format jsonl for tracebacks
    ----- stderr -----
    ");
    let none = project.run(["eval", "run", "first", "--traces", "none.jsonl"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(2), ""));
    let expected = "error: cannot read the traces: none.jsonl: unrecognised trace format (neither JSON nor OpenTelemetry protobuf)\n";
    assert!(none.unwrapped_stderr().starts_with(expected), "{}", none.stderr);
}

#[test]
fn shows_the_line_of_an_exception_if_it_is_unique() {
    let function =
        "def eval_x(trace):\n    if trace['n'] > 1:\n        raise ValueError('odd')\n    raise ValueError('odd')\n";
    let project = project_with_python()
        .file("e.py", function)
        .file("t.jsonl", "{\"steps\":[],\"n\": 1}\n{\"steps\":[],\"n\": 2}\n{\"steps\":[]}\n{\"steps\":[]}\n");
    let output = project.run(["eval", "run", "e.py", "--traces", "t.jsonl"]);
    assert!(output.stdout.contains("       2  KeyError: 'n' (line 2)\n"), "{}", output.stdout);
    assert!(output.stdout.contains("       2  ValueError: odd\n"), "{}", output.stdout);
    assert!(output.stdout.ends_with("\npass --format jsonl for tracebacks\n"), "{}", output.stdout);
    let quiet = project.run(["eval", "run", "e.py", "--traces", "t.jsonl", "--quiet"]);
    assert!(!quiet.stdout.contains("--format"), "{}", quiet.stdout);
}

#[test]
fn reports_a_folder_without_functions() {
    let project = project().file("empty/_helper.py", "").file("t.jsonl", "{}\n");
    insta::assert_snapshot!(project.run(["eval", "run", "empty", "--traces", "t.jsonl"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no Python files in empty
    hint: eval functions are .py files whose names do not start with _ or .
    ");
}

#[test]
fn names_the_variable_of_a_missing_guest() {
    let project = project().file("e.py", FIRST).file("t.jsonl", "{}\n");
    let output = project.command(["eval", "run", "e.py", "--traces", "t.jsonl"]).env("KARAT_GUEST", "/nope").run();
    let expected = "error: KARAT_GUEST: cannot read /nope: No such file or directory (os error 2)\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(2), expected));
}

#[cfg(unix)]
fn start_at_terminal(project: &TempProject) -> rexpect::session::PtySession {
    let mut command = Command::new(KARAT);
    command.args(["eval", "run", "first", "--traces", "-"]).current_dir(project.path());
    command.env("TERM", "xterm").env_remove("CI");
    let mut session = rexpect::session::spawn_command(command, Some(60_000)).expect("a terminal");
    session.exp_string("reading traces from the terminal, one JSON object per line").expect("a prompt");
    session
}

#[test]
#[cfg(unix)]
fn prompts_for_traces_at_a_terminal() {
    let project = eval_project();
    let mut session = start_at_terminal(&project);
    session.send_line("{\"ok\": true, \"steps\": []}").expect("terminal accepts input");
    session.send_control('d').expect("terminal accepts input");
    session.exp_string("1 trace judged by 1 function: 1 passed, 0 failed").expect("a summary");
}

#[test]
#[cfg(unix)]
fn reports_an_interrupt_before_the_first_verdict() {
    let project = eval_project();
    let mut session = start_at_terminal(&project);
    session.send_control('c').expect("terminal accepts input");
    session.exp_string("interrupted: no traces were judged").expect("a message");
    session.exp_eof().expect("karat exits");
    let status = session.process.wait().expect("exit status");
    assert!(format!("{status:?}").contains("130"), "{status:?}");
}
