//! `karat eval run`: traces judged by Python functions in the sandbox.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use karat_testkit::project::TempProject;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{project, project_with_python};

const HELLO: &str =
    "def eval_hello(trace):\n    out = trace['steps'][-1]['output']\n    return 'hello' in out, f'said {out!r}'\n";

fn trace(id: &str, output: &Value) -> String {
    let step = json!({"input": "q", "output": output, "tool_calls": [], "error": null});
    json!({"trace_id": id, "steps": [step]}).to_string() + "\n"
}

fn tool_trace(id: &str, result: &Value) -> String {
    let call = json!({"name": "search", "arguments": {"q": "order"}, "result": result});
    let step =
        json!({"input": "q", "output": {"response": "Here is what I suggest."}, "tool_calls": [call], "error": null});
    json!({"trace_id": id, "steps": [step]}).to_string() + "\n"
}

fn rows(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Creates a project with the examples of the contract.
fn contract_project() -> TempProject {
    let traces = [
        trace("good", &json!({"response": "Thank you, I can help you with that order."})),
        trace("short", &json!({"response": "Sorry"})),
        trace("refusal", &json!({"response": "I don't know. Please contact someone else."})),
        trace("json", &json!("[1, 2]")),
        "{\"trace_id\": \"empty\", \"steps\": []}\n".to_owned(),
        tool_trace("tool", &json!({"found": 3})),
        tool_trace("broken-tool", &json!({"error": "no connection"})),
    ];
    project_with_python()
        .file("evals/functions/response_quality.py", include_str!("fixtures/functions/response_quality.py"))
        .file("evals/functions/tool_usage.py", include_str!("fixtures/functions/tool_usage.py"))
        .file("evals/functions/customer_support.py", include_str!("fixtures/functions/customer_support.py"))
        .file("evals/functions/response_format.py", include_str!("fixtures/functions/response_format.py"))
        .file("traces.jsonl", traces.concat())
}

#[test]
fn contract_functions_return_the_same_as_in_cpython() {
    let project = contract_project();
    let names = ["response_quality", "eval_customer_support", "evals/functions/tool_usage.py", "response_format"];
    let arguments = [&["eval", "run"], &names[..], &["--traces", "traces.jsonl", "--format", "jsonl"]].concat();
    let output = project.run(arguments);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let rows = rows(&output.stdout);
    let lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let text = row["reason"].as_str().or(row["error"].as_str()).unwrap().lines().next().unwrap();
            let (trace, eval) = (row["trace_id"].as_str().unwrap(), row["eval_id"].as_str().unwrap());
            format!("{trace} {eval} {}: {text}", row["result"])
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    good eval_response_quality true: Response meets quality criteria
    good eval_customer_support true: Response demonstrates good customer support
    good eval_tool_usage false: No tool calls found
    good eval_response_format false: Output is not valid JSON
    short eval_response_quality false: Response too short (5 chars)
    short eval_customer_support false: Response lacks quality indicators
    short eval_tool_usage false: No tool calls found
    short eval_response_format false: Output is not valid JSON
    refusal eval_response_quality true: Response meets quality criteria
    refusal eval_customer_support false: Response contains unhelpful patterns
    refusal eval_tool_usage false: No tool calls found
    refusal eval_response_format false: Output is not valid JSON
    json eval_response_quality null: AttributeError: 'str' object has no attribute 'get'
    json eval_customer_support null: AttributeError: 'str' object has no attribute 'get'
    json eval_tool_usage false: No tool calls found
    json eval_response_format true: Output is valid JSON
    empty eval_response_quality false: No steps found in trace
    empty eval_customer_support false: No steps in trace
    empty eval_tool_usage false: No tool calls found
    empty eval_response_format false: No steps found in trace
    tool eval_response_quality true: Response meets quality criteria
    tool eval_customer_support true: Response demonstrates good customer support
    tool eval_tool_usage true: All tool calls executed correctly
    tool eval_response_format false: Output is not valid JSON
    broken-tool eval_response_quality true: Response meets quality criteria
    broken-tool eval_customer_support true: Response demonstrates good customer support
    broken-tool eval_tool_usage false: Tool 'search' returned error
    broken-tool eval_response_format false: Output is not valid JSON
    ");
}

#[test]
fn the_summary_separates_failures_from_errors() {
    let project = contract_project();
    let output = project.run(["eval", "run", "response_quality", "customer_support", "--traces", "traces.jsonl"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 3
    ----- stdout -----
    eval_response_quality
      4 passed (57.1%), 2 failed (28.6%), 1 errored (14.3%)
      failed
           1  No steps found in trace
              in empty
           1  Response too short (5 chars)
              in short
      errored: exception
           1  AttributeError: 'str' object has no attribute 'get' (line 9)
              in json
      time per trace: p50 [TIME], p99 [TIME]

    eval_customer_support
      3 passed (42.9%), 3 failed (42.9%), 1 errored (14.3%)
      failed
           1  No steps in trace
              in empty
           1  Response contains unhelpful patterns
              in refusal
           1  Response lacks quality indicators
              in short
      errored: exception
           1  AttributeError: 'str' object has no attribute 'get' (line 11)
              in json
      time per trace: p50 [TIME], p99 [TIME]

    7 traces judged by 2 functions: 7 passed, 5 failed, 2 errored
    [TIME], [RATE] traces/s
    pass --format jsonl for tracebacks
    ----- stderr -----
    ");
}

#[test]
fn a_row_has_all_columns_and_follows_its_schema() {
    let project = project_with_python().file("e.py", HELLO).file("t.jsonl", trace("t1", &json!("hello")));
    let run = || project.run(["eval", "run", "e.py", "--traces", "t.jsonl", "--format", "jsonl"]);
    let (first, second) = (run(), run());
    assert_eq!(first.code, Some(0), "{}", first.both());
    assert_eq!(first.stderr, "");
    let (mut row, again) = (rows(&first.stdout).remove(0), rows(&second.stdout).remove(0));
    assert_eq!(row["id"], again["id"], "the id depends only on the code and the trace");
    let schema: Value = serde_json::from_str(&project.run(["schema", "eval-execution"]).stdout).unwrap();
    jsonschema::validate(&schema, &row).unwrap();
    for varying in ["execution_time_ms", "executed_at", "code_hash", "guest_hash"] {
        assert!(!row[varying].is_null(), "{varying}");
        row[varying] = Value::Null;
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&row).unwrap(), @r#"
    {
      "id": "1fd19aa78a093eb4c66beb83cd68997a",
      "eval_id": "eval_hello",
      "eval_version": null,
      "trace_id": "t1",
      "result": true,
      "reason": "said 'hello'",
      "execution_time_ms": null,
      "error": null,
      "error_kind": null,
      "stdout": "",
      "stderr": "",
      "code_hash": null,
      "guest_hash": null,
      "executed_at": null,
      "applicable": true,
      "score": null
    }
    "#);
}

#[test]
fn json_output_contains_all_rows_and_follows_its_schema() {
    let traces = [trace("t1", &json!("hello")), trace("t2", &json!("bye")), "{\n".to_owned()].concat();
    let project = project_with_python().file("e.py", HELLO).file("t.jsonl", traces).file("none.jsonl", "\n");
    let schema: Value = serde_json::from_str(&project.run(["schema", "eval-run"]).stdout).unwrap();
    let document = |traces: &str, code: i32| {
        let output = project.run(["eval", "run", "e.py", "--traces", traces, "--format", "json"]);
        assert_eq!(output.code, Some(code), "{}", output.both());
        let document: Value = serde_json::from_str(&output.stdout).unwrap();
        jsonschema::validate(&schema, &document).unwrap();
        document
    };
    let whole = document("t.jsonl", 3);
    assert_eq!(whole["executions"].as_array().unwrap().len(), 3);
    let keys = ["traces", "without_trace", "passed", "failed", "errored"];
    assert_eq!(keys.map(|key| whole["summary"][key].as_u64().unwrap()), [3, 1, 1, 1, 1]);
    assert_eq!(document("none.jsonl", 4)["executions"], json!([]));
}

#[test]
fn reports_a_broken_line_and_judges_the_others() {
    let traces = format!(
        "\u{feff}{}\r\n\n{{\"steps\": [\n{}",
        trace("t1", &json!("hello")).trim(),
        trace("t2", &json!("hello")).trim()
    );
    let project = project_with_python().file("e.py", HELLO).file("t.jsonl", traces);
    let output = project.run(["eval", "run", "e.py", "--traces", "t.jsonl"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 3
    ----- stdout -----
    eval_hello
      2 passed (66.7%), 0 failed (0%), 1 errored (33.3%)
      errored: validation
           1  line 3: invalid JSON: unexpected end of input
              in line 3
      time per trace: p50 [TIME], p99 [TIME]

    2 traces judged by 1 function, 1 invalid line: 2 passed, 0 failed, 1 errored
    [TIME], [RATE] traces/s
    ----- stderr -----
    ");
}

#[test]
fn reads_several_files_and_names_the_file_of_a_broken_line() {
    let project = project_with_python()
        .file("e.py", HELLO)
        .file("a.jsonl", trace("a1", &json!("hello")))
        .file("b.jsonl", trace("b1", &json!("hello")) + "{}x\n");
    let command = project.command([
        "eval",
        "run",
        "e.py",
        "--traces",
        "a.jsonl",
        "--traces",
        "b.jsonl",
        "--traces",
        "-",
        "--format=jsonl",
    ]);
    let output = command.stdin(trace("s1", &json!("hello"))).run();
    assert_eq!(output.code, Some(3), "{}", output.both());
    let rows = rows(&output.stdout);
    assert_eq!((&rows[0]["trace_id"], &rows[3]["trace_id"]), (&json!("a1"), &json!("s1")));
    assert!(rows[2]["error"].as_str().unwrap().starts_with("b.jsonl line 2: "), "{}", rows[2]);
    assert_eq!(rows[2]["error_kind"], "validation");
}

#[rstest]
#[case(&["eval", "run", "helo", "--traces", "t.jsonl"], "error: eval function 'eval_helo' not found in evals/functions\nhint: did you mean 'eval_hello'?\n")]
#[case(&["eval", "run", "nope.py", "--traces", "t.jsonl"], "error: cannot read nope.py: No such file or directory (os error 2)\n")]
#[case(&["eval", "run", "helo.py", "--traces", "t.jsonl"], "error: cannot read helo.py: No such file or directory (os error 2)\nhint: did you mean 'evals/functions/hello.py'?\n")]
#[case(&["eval", "run", "hello", "t.jsonl", "--traces", "t.jsonl"], "error: t.jsonl is not a Python file\nhint: eval functions are .py files; pass traces with --traces\n")]
#[case(&["eval", "run", "--traces", "t.jsonl"], "error: missing eval function\nhint: for example: karat eval run NAME --traces FILE\n")]
#[case(&["eval", "run", "hello", "--traces", "nope.jsonl"], "error: cannot read the traces nope.jsonl: No such file or directory (os error 2)\n")]
#[case(&["eval", "run", "hello", "--traces", "evals"], "error: cannot read the traces evals: is a directory\n")]
#[case(&["eval", "run", "hello", "--traces", "-", "--traces", "-"], "error: --traces - is given twice: stdin can be read only once\n")]
#[case(&["eval", "run", "hello", "--traces", "-", "--limit-ms", "5001"], "error: --limit-ms must be between 1 and 5000\n")]
#[case(&["eval", "run", "hello", "--traces", "-", "--limit-mb", "0"], "error: --limit-mb must be between 1 and 50\n")]
#[case(&["eval", "run", "hello", "--traces", "-", "--jobs", "0"], "error: --jobs must be between 1 and 1024\n")]
#[case(&["eval", "run", "hello", "--traces", "-", "--eval-limits", "{\"timeMs\": 9000}"], "error: --eval-limits: 'timeMs' must be at most 5000, found 9000\n")]
#[case(&["eval", "run", "hello", "other.py", "--traces", "t.jsonl"], "error: duplicate function 'eval_hello' in evals/functions/hello.py and other.py\nhint: rename one of them\n")]
fn rejects_invalid_arguments_before_the_run(#[case] arguments: &[&str], #[case] expected: &str) {
    let project = project()
        .file("evals/functions/hello.py", HELLO)
        .file("other.py", HELLO)
        .file("t.jsonl", trace("t", &json!("hello")));
    let output = project.run(arguments.iter().copied());
    assert_eq!((output.code, output.stderr.as_str(), output.stdout.as_str()), (Some(2), expected, ""));
}

#[test]
fn names_both_files_of_a_duplicate_function() {
    let project = project()
        .file("evals/functions/a.py", HELLO)
        .file("evals/functions/b.py", HELLO)
        .file("t.jsonl", "{\"steps\": []}\n");
    let output = project.run(["eval", "run", "hello", "--traces", "t.jsonl"]);
    assert_eq!(output.code, Some(2));
    for file in ["a.py", "b.py"] {
        assert!(
            output.stderr.contains(&format!("'eval_hello' is also defined in evals/functions/{file}")),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn config_lowers_the_limits() {
    let slow = "def eval_slow(trace):\n    while True:\n        pass\n";
    let project = project_with_python()
        .file("karat.json", json!({"evalLimits": {"timeMs": 50, "memoryMb": 20}}))
        .file("slow.py", slow)
        .file("t.jsonl", "{\"steps\": []}\n".repeat(4));
    let output = project.run(["eval", "run", "slow.py", "--traces", "t.jsonl"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(
        output.stdout.contains("errored: timeout") && output.stdout.contains("in line 1, line 2, line 3"),
        "{}",
        output.stdout
    );
    let output = project.run(["eval", "run", "slow.py", "--traces", "t.jsonl", "--format", "jsonl"]);
    let errors: Vec<Value> = rows(&output.stdout).iter().map(|row| row["error"].clone()).collect();
    assert_eq!(errors, ["took longer than 50 ms"; 4]);
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_writes_finished_rows() {
    let function = "def eval_x(trace):\n    while trace.get('slow'):\n        pass\n    return True, ''\n";
    let traces = format!("{}{}", "{\"steps\": []}\n".repeat(20), "{\"steps\": [], \"slow\": true}\n".repeat(100));
    let project = project_with_python().file("e.py", function).file("t.jsonl", traces);
    let running = project.command(["eval", "run", "e.py", "--traces", "t.jsonl", "--format", "jsonl"]).start();
    let started = Instant::now();
    while running.stdout_so_far().lines().count() < 16 {
        assert!(started.elapsed() < Duration::from_secs(30), "no rows written: {}", running.stderr_so_far());
        std::thread::sleep(Duration::from_millis(20));
    }
    running.interrupt();
    let output = running.wait().expect("karat exits");
    assert_eq!(output.code, Some(130), "{}", output.both());
    assert!(rows(&output.stdout).iter().take(16).all(|row| row["result"] == true));
    assert_eq!(output.stderr, "interrupted: verdicts so far were written\n");
}

/// `karat eval run … | head -1`
#[test]
#[cfg(unix)]
fn exits_quietly_when_the_reader_closes_the_pipe() {
    let project = project_with_python().file("e.py", HELLO).file("t.jsonl", trace("t", &json!("hello")).repeat(20_000));
    let script = format!(
        "{} eval run e.py --traces t.jsonl --format jsonl 2>err | head -1 | wc -l; cat err",
        env!("CARGO_BIN_EXE_karat")
    );
    let mut command = Command::new("sh");
    let output = command.args(["-c", &script]).current_dir(project.path());
    let output = output.stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "1");
}

#[test]
fn isolation_does_not_change_verdicts_of_stateless_functions() {
    let project = contract_project();
    let judge = |isolation: &str| {
        let names = ["response_quality", "customer_support", "tool_usage", "response_format"];
        let flags = ["--traces", "traces.jsonl", "--format", "jsonl", "--isolation", isolation];
        let output = project.run([&["eval", "run"], &names[..], &flags[..]].concat());
        assert_eq!(output.code, Some(3), "{}", output.both());
        let mut rows = rows(&output.stdout);
        for row in &mut rows {
            let row = row.as_object_mut().unwrap();
            assert!(row.remove("execution_time_ms").is_some() && row.remove("executed_at").is_some());
        }
        rows
    };
    let fresh = judge("fresh");
    for name in ["strict", "namespace", "shared"] {
        assert_eq!(judge(name), fresh, "{name}");
    }
    let wrong = project.run(["eval", "run", "response_quality", "--traces", "traces.jsonl", "--isolation", "strickt"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.both());
    assert!(wrong.stderr.contains("'strict'"), "{}", wrong.stderr);
}

#[test]
fn a_function_that_never_returns_is_given_up() {
    let looping = "def eval_loop(trace):\n    while True:\n        pass\n";
    let project = project_with_python()
        .file("loop.py", looping)
        .file("fine.py", "def eval_fine(trace):\n    return True, ''\n")
        .file("t.jsonl", trace("a", &json!("hello")).repeat(40));
    let flags = ["--traces", "t.jsonl", "--limit-ms", "200", "--jobs", "2"];
    let output = project.run([&["eval", "run", "loop.py", "fine.py"], &flags[..]].concat());
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stdout.contains("not run: the function timed out 5 times in a row"), "{}", output.stdout);
    assert!(
        output.stdout.contains("40 passed (100.0%)") || output.stdout.contains("40 passed (100%)"),
        "{}",
        output.stdout
    );
    let rows = rows(&project.run([&["eval", "run", "loop.py", "--format", "jsonl"], &flags[..]].concat()).stdout);
    let ran = rows.iter().filter(|row| !row["error"].as_str().unwrap().starts_with("not run")).count();
    // The threads may each have started one more.
    assert!((5..=6).contains(&ran) && rows.len() == 40, "{ran} of {}", rows.len());
}

#[test]
fn the_summary_says_how_to_return_other_forms() {
    let project = project_with_python()
        .file("e.py", "def eval_bool(trace):\n    return len(trace['steps']) > 0\n")
        .file("t.jsonl", trace("a", &json!("hello")));
    let output = project.run(["eval", "run", "e.py", "--traces", "t.jsonl"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("for other forms, set KARAT_RETURNS = \"flexible\""), "{}", output.stdout);
}

#[test]
fn warns_about_a_function_that_reads_what_only_a_case_has() {
    let adopted = "def get_assert(output, context):\n    return context['vars'].get('city', '') in output\n";
    let project = project_with_python()
        .file("assert.py", adopted)
        .file("e.py", "def eval_e(trace, context):\n    return True, str(context)\n")
        .file("t.jsonl", trace("a", &json!("hello")));
    let written = project.run(["eval", "adopt", "assert.py", "--name", "city"]);
    assert_eq!(written.code, Some(0), "{}", written.both());
    let warning = "warning: eval_city reads the context of a case, which traces do not have";
    let output = project.run(["eval", "run", "city", "--traces", "t.jsonl"]);
    assert!(output.unwrapped_stderr().contains(warning), "{}", output.both());
    let output = project.run(["eval", "run", "e.py", "--traces", "t.jsonl"]);
    assert!(!output.stderr.contains("warning"), "{}", output.both());
}

#[test]
#[cfg(unix)]
fn shows_progress_at_a_terminal_and_removes_it() {
    let function = "def eval_x(trace):\n    return sum(range(20000)) > 0, 'fine'\n";
    let project = project().file("e.py", function).file("t.jsonl", "{\"steps\": []}\n".repeat(2_000));
    let mut command = Command::new(env!("CARGO_BIN_EXE_karat"));
    command.args(["eval", "run", "e.py", "--traces", "t.jsonl"]).current_dir(project.path());
    command.env("TERM", "xterm").env_remove("CI");
    let mut session = rexpect::session::spawn_command(command, Some(60_000)).expect("a terminal");
    session.exp_regex("[0-9]+% [0-9]+ passed, 0 failed, .* left").expect("a progress bar");
    let rest = session.exp_eof().expect("karat exits");
    // A line of 80 columns would wrap when the terminal echoes ^C.
    let plain = rest.split("\u{1b}[2K").next().expect("a line").trim_end_matches('\r');
    assert!(plain.chars().count() < 80, "{plain:?}");
    let bar = rest.rsplit("\u{1b}[2K").next().expect("split returns at least one part");
    assert!(bar.contains("2000") && !bar.contains("left"), "the bar is not removed: {bar:?}");
}
