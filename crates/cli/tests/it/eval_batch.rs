//! `karat eval batch`: traces on stdin, verdicts on stdout.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use karat_testkit::project::TempProject;
use karat_testkit::tools::TestTool;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{project, project_with_python};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

const HELLO: &str = "def eval_hello(trace):\n    out = trace['steps'][-1]['output']\n    return 'hello' in out, out\n";
const LONG: &str = "def eval_long(trace):\n    return len(trace['steps']) < 9, 'steps'\n";

fn batch_project() -> TempProject {
    project_with_python().file("hello.py", HELLO).file("long.py", LONG)
}

fn trace(id: &str, output: &str) -> String {
    json!({"trace_id": id, "steps": [{"output": output}]}).to_string() + "\n"
}

fn rows(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn errors_are_rows_and_do_not_change_the_exit_code() {
    let traces = [trace("a", "hello"), "{]\n".to_owned(), trace("b", "bye"), "{}\n".to_owned()].concat();
    let output = batch_project().command(["eval", "batch", "hello.py", "long.py"]).stdin(traces).run();
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let rows = rows(&output.stdout);
    let outcomes: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {} {} {}", row["trace_id"], row["eval_id"], row["result"], row["error_kind"]))
        .collect();
    assert_eq!(
        outcomes,
        [
            r#""a" "eval_hello" true null"#,
            r#""a" "eval_long" true null"#,
            r#"null "eval_hello" null "validation""#,
            r#"null "eval_long" null "validation""#,
            r#""b" "eval_hello" false null"#,
            r#""b" "eval_long" true null"#,
            r#"null "eval_hello" null "exception""#,
            r#"null "eval_long" null "exception""#,
        ]
    );
    assert!(rows[2]["error"].as_str().unwrap().starts_with("line 2: "));
}

#[test]
fn rows_have_no_control_characters() {
    let hostile = "\u{202e}\u{9b}31m ##[stop-commands]x";
    let output = batch_project().command(["eval", "batch", "hello.py"]).stdin(trace("a", hostile)).run();
    assert!(!output.stdout.contains(['\u{202e}', '\u{9b}']) && !output.stdout.contains("##["), "{}", output.stdout);
    assert_eq!(rows(&output.stdout)[0]["reason"], hostile, "the value is unchanged");
}

#[test]
fn rows_equal_those_of_eval_run() {
    let project = batch_project().file("t.jsonl", trace("a", "hello"));
    let batch = project.command(["eval", "batch", "hello.py"]).stdin(trace("a", "hello")).run();
    let run = project.run(["eval", "run", "hello.py", "--traces", "t.jsonl", "--format", "jsonl"]);
    let comparable = |text: &str| {
        let mut row = rows(text).remove(0);
        row["executed_at"] = Value::Null;
        row["execution_time_ms"] = Value::Null;
        row
    };
    assert_eq!(comparable(&batch.stdout), comparable(&run.stdout));
}

#[test]
fn empty_input_produces_no_rows_and_no_error() {
    let output = batch_project().command(["eval", "batch", "hello.py"]).stdin("\n\n").run();
    assert_eq!((output.code, output.both().trim()), (Some(0), ""));
}

/// A client may wait for each verdict before it sends the next trace.
#[test]
fn answers_each_line_while_the_pipe_is_open() {
    let project = batch_project();
    let mut child = Command::new(KARAT)
        .args(["eval", "batch", "hello.py", "long.py"])
        .current_dir(project.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for id in ["a", "b", "c"] {
        input.write_all(trace(id, "hello").as_bytes()).unwrap();
        for function in ["eval_hello", "eval_long"] {
            let row: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
            assert_eq!((&row["trace_id"], &row["eval_id"]), (&json!(id), &json!(function)));
        }
    }
    drop(input);
    assert!(answers.next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
#[cfg(unix)]
fn exits_quietly_when_the_reader_closes_the_pipe() {
    let project = batch_project().file("t.jsonl", trace("t", "hello").repeat(5000));
    let script = format!("{KARAT} eval batch hello.py <t.jsonl 2>err | head -1 | wc -l; cat err");
    let mut command = Command::new("sh");
    let command = command.args(["-c", &script]).current_dir(project.path());
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "1");
}

#[test]
#[cfg(unix)]
fn an_interrupt_stops_the_batch() {
    let project = batch_project()
        .file("wait.py", "def eval_wait(trace):\n    while trace.get('slow'): pass\n    return True, ''\n");
    let traces = format!("{}{}", "{}\n".repeat(20), "{\"slow\": 1}\n".repeat(50));
    let running = project.command(["eval", "batch", "wait.py"]).stdin(traces).start();
    let started = std::time::Instant::now();
    while running.stdout_so_far().lines().count() < 16 {
        assert!(started.elapsed() < std::time::Duration::from_secs(30), "{}", running.stderr_so_far());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running.interrupt();
    let output = running.wait().expect("karat exits");
    assert_eq!((output.code, output.stderr.as_str()), (Some(130), "interrupted: verdicts so far were written\n"));
    assert!(rows(&output.stdout).iter().all(|row| row["result"] == true));
}

#[rstest]
#[case(b"PAR1\x15\x04", &[], 2, "error: stdin is a Parquet file; expected JSON Lines or an Arrow stream\n")]
#[case(b"\x1F\x8B\x08\0", &[], 2, "error: stdin is compressed; expected JSON Lines or an Arrow stream\n")]
#[case(b"{\n\"a\": 1\n}\n", &[], 2, "error: stdin is a JSON object over several lines; expected JSON Lines or an Arrow stream\nhint: jq -c . FILE | karat eval batch …\n")]
#[case(b"\xEF\xBB\xBF [{}]", &[], 2, "error: stdin is a JSON array; expected JSON Lines or an Arrow stream\n")]
#[case(b"[\n{}\n]\n", &[], 2, "error: stdin is a JSON array; expected JSON Lines or an Arrow stream\n")]
#[case(b"{}\n", &["--input-format", "arrow"], 2, "error: the input is not an Arrow stream\n")]
#[case(b"\xFF\xFF\xFF\xFF\x10\0\0\0rubbish", &[], 3, "error: invalid Arrow stream: ")]
fn rejects_input_in_other_formats(
    #[case] input: &[u8],
    #[case] flags: &[&str],
    #[case] code: i32,
    #[case] message: &str,
) {
    let arguments = [&["eval", "batch", "hello.py"][..], flags].concat();
    let output = batch_project().command(arguments).stdin(input).run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(code), ""));
    assert!(output.unwrapped_stderr().starts_with(message), "{}", output.stderr);
}

#[test]
fn rejects_an_invalid_function_before_reading_input() {
    let output =
        project().file("e.py", "import os\ndef eval_x(trace): return True, ''\n").run(["eval", "batch", "e.py"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
}

#[rstest]
#[case("many_rows")]
#[case("kinds_of_text")]
#[case("holes")]
#[case("empty")]
#[case("open_pipe")]
#[case("broken")]
#[case("wrong_columns")]
#[ignore = "needs pyarrow"]
fn processes_arrow_streams(#[case] check: &str) {
    let python = TestTool::Pyarrow.command();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/arrow_batch.py");
    let project = batch_project();
    let mut command = Command::new(&python[0]);
    let command = command.arg(script).args([KARAT, check]).current_dir(project.path());
    let output = command.env("NO_COLOR", "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Appended to the documented client: prints the error of each way to fail.
const FAILURES: &str = r#"

def raised(table, *functions):
    try:
        return judge(table, *functions).num_rows
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Breaks:
    def __init__(self, sink, schema):
        self.stream = new_stream(sink, schema)

    def write_table(self, table, max_chunksize):
        self.stream.write_table(table.slice(0, 1))
        raise ValueError("the second chunk broke")


many = pa.table({"trace": ['{"steps": [{"output": {"response": "Sorry"}}]}'] * 20000})
print(raised(many.slice(0, 2500), "response_quality"))
print(raised(many, "nope"))
print(raised(pa.table({"text": ["a"]}), "response_quality"))
new_stream, ipc.new_stream = ipc.new_stream, Breaks
print(raised(many, "response_quality"))
"#;

#[test]
#[cfg(unix)]
#[ignore = "needs pyarrow"]
fn the_documented_client_reports_every_failure() {
    let python = TestTool::Pyarrow.command();
    let document = include_str!("../../../../docs/guides/pipelines.md");
    let (_, rest) = document.split_once("```python\n").unwrap();
    let client = rest.split_once("```").unwrap().0;
    let project = project_with_python()
        .file("evals/functions/response_quality.py", include_str!("fixtures/functions/response_quality.py"))
        .file("client.py", format!("{client}{FAILURES}"));
    let folder = Path::new(KARAT).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(&python[0]);
    let command = command.arg("client.py").current_dir(project.path());
    let output = command.env("PATH", path).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    insta::assert_snapshot!(printed, @r#"
    [{'trace_id': 't1', 'trace': '{"steps": [{"output": {"response": "Sorry"}}]}', 'result': False, 'reason': 'Response too short (5 chars)'}]
    2500
    RuntimeError: karat ended with 2
    RuntimeError: karat ended with 2
    ValueError: the second chunk broke
    "#);
}
