//! Evals in the store: `karat eval add`, `list`, `show`, `history`, and `eval run --stored`.

use std::path::Path;

use jiff::Timestamp;
use karat_core::port::TraceStore;
use karat_core::stored::NewTrace;
use karat_evals::port::EvalStore;
use karat_evals::version::StoredExecution;
use karat_store::{Location, Store};
use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::project_store;
use crate::support::{ok_case, project, project_with_python, script};

const HELLO: &str = "def eval_hello(trace):\n    said = trace['steps'][-1]['output']['response']\n    return 'hello' in said, f'said {said!r}'\n";
const SHORT: &str = "def eval_short(trace):\n    said = trace['steps'][-1]['output']['response']\n    return len(said) < 20, f'{len(said)} characters'\n";

/// Returns a trace with this response.
pub(crate) fn new_trace(id: &str, response: &str) -> NewTrace {
    let step = json!({"input": {"message": "q"}, "output": {"response": response}, "tool_calls": [], "error": null});
    let document = json!({"trace_id": id, "started_at": "2026-11-16T12:00:00Z", "steps": [step]});
    project_store::new_trace(id, "karat", &document.to_string())
}

/// Opens the store in the test process, runs `work` and closes the store.
pub(crate) fn with_store<T>(location: &Location, work: impl AsyncFnOnce(&Store) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(location).await.expect("store opens");
        let result = work(&store).await;
        store.close().await;
        result
    })
}

pub(crate) fn store_location(project: &TempProject) -> Location {
    Location::File(project.path().join(".karat/karat.db"))
}

fn put_traces(project: &TempProject, traces: &[NewTrace]) {
    with_store(&store_location(project), async |store| store.put_traces(traces, Timestamp::UNIX_EPOCH).await.unwrap());
}

/// Returns all executions of a version.
pub(crate) fn executions(location: &Location, eval: &str, version: u64) -> Vec<StoredExecution> {
    with_store(location, async |store| store.executions(eval, version, None, 1_000_000).await.unwrap())
}

/// Creates a project with three traces and two evals in its store.
fn project_with_evals() -> TempProject {
    let project = project_with_python().file("evals/functions/hello.py", HELLO).file("evals/functions/short.py", SHORT);
    put_traces(
        &project,
        &[new_trace("a", "hello"), new_trace("b", "good bye"), new_trace("c", "hello to all of you there")],
    );
    let output = project.run(["eval", "add"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    project
}

/// Replaces timestamps with `[TIME]`.
fn mask_times(text: &str) -> String {
    let matches_shape = |(byte, shape): (u8, u8)| if shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
    let is_time = |time: &str| time.bytes().zip(*b"0000-00-00 00:00").all(matches_shape);
    let (mut masked, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let is_time = rest.get(..16).is_some_and(is_time);
        masked.push_str(if is_time { "[TIME]" } else { &rest[..first.len_utf8()] });
        rest = &rest[if is_time { 16 } else { first.len_utf8() }..];
    }
    masked
}

#[test]
fn adds_a_version_only_when_the_code_changed() {
    let project = project().file("evals/functions/hello.py", HELLO).file("other/short.py", SHORT);
    insta::assert_snapshot!(project.run(["eval", "add", "hello", "other/short.py"]).filtered(), @"
    exit: 0
    ----- stdout -----
    ✓ eval_hello: added version 1 from evals/functions/hello.py
    ✓ eval_short: added version 1 from other/short.py
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.run(["eval", "add", "eval_hello", "--note", "again"]).filtered(), @"
    exit: 0
    ----- stdout -----
    ✓ eval_hello: version 1 is unchanged
    ----- stderr -----
    warning: eval_hello: the note was not saved, since the code equals that of
      version 1, which never changes
    ");
    project.write("evals/functions/hello.py", HELLO.replace("'hello' in said", "said.startswith('hello')"));
    let output = project.run(["eval", "add", "hello", "--note", "only at the beginning", "--format", "json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&report["evals"][0]["version"], &report["evals"][0]["added"]), (&json!(2), &json!(true)));
    // Going back to the first code adds a version too.
    project.write("evals/functions/hello.py", HELLO);
    assert_eq!(
        project.run(["eval", "add", "-q", "hello"]).filtered(),
        "exit: 0\n----- stdout -----\n----- stderr -----\n\
         warning: eval_hello: the code of version 1 replaces that of version 2 (only at\n  the beginning)\n"
    );
    insta::assert_snapshot!(mask_times(&project.run(["eval", "history", "hello"]).stdout), @"
    eval_hello: 3 versions

    version 3, [TIME] UTC, +1 -1 lines
      no verdicts yet

    version 2, [TIME] UTC, +1 -1 lines
      only at the beginning
      no verdicts yet

    version 1, [TIME] UTC, +3 lines
      no verdicts yet
    ");
    insta::assert_snapshot!(mask_times(&project.run(["eval", "list"]).stdout), @"
    eval        version  added (UTC)        passed   failed  errored
    eval_hello        3  [TIME]        0        0        0
    eval_short        1  [TIME]        0        0        0

    2 evals
    ");
    let details = project.run(["eval", "show", "hello", "--version", "2"]).stdout;
    let python = report["evals"][0]["guest_hash"].as_str().unwrap();
    let details = details.replace(python, "[PYTHON]");
    insta::assert_snapshot!(mask_times(&details), @"
    eval_hello version 2 of 3
      added     [TIME] UTC
      note      only at the beginning
      code      1b523ddeec5d
      python    [PYTHON]
      verdicts  version 3: no verdicts yet
                version 2: no verdicts yet
                version 1: no verdicts yet

    def eval_hello(trace):
        said = trace['steps'][-1]['output']['response']
        return said.startswith('hello'), f'said {said!r}'
    ");
}

#[test]
fn rejects_an_invalid_function_and_adds_none() {
    let project = project()
        .file("evals/functions/hello.py", HELLO)
        .file("evals/functions/os.py", "import os\ndef eval_os(trace):\n    return True, ''\n");
    let output = project.run(["eval", "add"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("evals/functions/os.py:1:8"), "{}", output.stderr);
    assert!(!project.path().join(".karat").exists());
}

#[test]
fn suggests_known_evals_and_versions() {
    let project = project_with_evals();
    insta::assert_snapshot!(project.run(["eval", "show", "helo"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: eval 'eval_helo' not found in the store
    hint: did you mean 'eval_hello'?
    ");
    insta::assert_snapshot!(project.run(["eval", "history", "nothing_like_it"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: eval 'eval_nothing_like_it' not found in the store
    hint: known evals: eval_hello, eval_short
    ");
    insta::assert_snapshot!(project.run(["eval", "show", "short", "--version", "7"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: version 7 of eval_short not found in the store
    hint: the only version is 1
    ");
    insta::assert_snapshot!(project.run(["eval", "run", "helo", "--stored"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: eval 'eval_helo' not found in the store
    hint: did you mean 'eval_hello'?
    ");
}

#[test]
fn judges_only_new_and_changed_traces() {
    let project = project_with_evals();
    insta::assert_snapshot!(project.run(["eval", "run", "--stored"]).filtered(), @"
    exit: 1
    ----- stdout -----
    eval_hello version 1
      2 passed (66.7%), 1 failed (33.3%)
      failed
           1  said 'good bye'
              in b
      time per trace: p50 [TIME], p99 [TIME]

    eval_short version 1
      2 passed (66.7%), 1 failed (33.3%)
      failed
           1  25 characters
              in c
      time per trace: p50 [TIME], p99 [TIME]

    3 traces, 2 evals: 4 passed, 2 failed
    [TIME], [RATE] traces/s
    ----- stderr -----
    ");
    insta::assert_snapshot!(project.run(["eval", "run", "--stored"]).filtered(), @"
    exit: 0
    ----- stdout -----
    3 traces, 2 evals: nothing new to judge
    ----- stderr -----
    pass --force to judge all traces again
    ");
    // One trace is new and one has changed.
    put_traces(&project, &[new_trace("d", "hello again"), new_trace("b", "hello")]);
    let output = project.run(["eval", "run", "hello", "--stored", "--format", "jsonl"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let rows: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<(&Value, &Value, &Value)> =
        rows.iter().map(|row| (&row["trace_id"], &row["result"], &row["eval_version"])).collect();
    assert_eq!(outcomes, [(&json!("b"), &json!(true), &json!(1)), (&json!("d"), &json!(true), &json!(1))]);
    let executed = executions(&store_location(&project), "eval_hello", 1);
    assert_eq!(executed.iter().map(|row| row.trace_id.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    let ids: Vec<Value> =
        executed.iter().filter(|row| ["b", "d"].contains(&row.trace_id.as_str())).map(|row| json!(row.id)).collect();
    assert_eq!(rows.iter().map(|row| row["id"].clone()).collect::<Vec<_>>(), ids);
}

#[test]
fn a_new_version_judges_all_traces_and_an_old_one_can_be_rerun() {
    let project = project_with_evals();
    assert_eq!(project.run(["eval", "run", "hello", "--stored"]).code, Some(1));
    project.write("evals/functions/hello.py", HELLO.replace("'hello' in said", "True"));
    assert_eq!(project.run(["eval", "add", "hello"]).code, Some(0));
    let output = project.run(["eval", "run", "eval_hello", "--stored", "--format", "json"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let summary = &report["summary"];
    assert_eq!(summary["judged"], 3);
    assert_eq!(summary["evals"][0]["eval_version"], 2);
    assert_eq!(report["executions"].as_array().unwrap().len(), 3);
    let schema: Value = serde_json::from_str(&project.run(["schema", "eval-run-stored"]).stdout).unwrap();
    assert!(jsonschema::is_valid(&schema, &report));
    let again = project.run(["eval", "run", "hello", "--stored", "--version", "1", "--force"]);
    assert_eq!(again.code, Some(1), "{}", again.both());
    let history: Value =
        serde_json::from_str(&project.run(["eval", "history", "hello", "--format", "json"]).stdout).unwrap();
    let counts: Vec<(&Value, &Value)> = history["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| (&version["passed"], &version["failed"]))
        .collect();
    assert_eq!(counts, [(&json!(3), &json!(0)), (&json!(2), &json!(1))]);
}

#[test]
fn warns_when_a_file_differs_from_the_stored_version() {
    let project = project_with_evals();
    assert_eq!(project.run(["eval", "run", "--stored"]).stderr, "");
    project.write("evals/functions/hello.py", HELLO.replace("'hello' in said", "True"));
    project.write("evals/functions/short.py", "def eval_short(");
    assert_eq!(
        project.run(["eval", "run", "--stored", "--force"]).stderr,
        "warning: evals/functions/hello.py differs from the stored version 1, which is\n  \
         used; add it with 'karat eval add evals/functions/hello.py'\n\
         warning: evals/functions/short.py differs from the stored version 1, which is\n  \
         used; add it with 'karat eval add evals/functions/short.py'\n"
    );
    assert_eq!(project.run(["eval", "run", "hello", "--stored", "--force", "--version", "1"]).stderr, "");
    assert_eq!(project.run(["eval", "add", "hello"]).code, Some(0));
    assert_eq!(project.run(["eval", "run", "hello", "--stored"]).stderr, "");
}

#[test]
fn stores_errors() {
    let project = project_with_python().file("broken.py", "def eval_broken(trace):\n    return trace['nothing']\n");
    put_traces(&project, &[new_trace("a", "hello")]);
    assert_eq!(project.run(["eval", "add", "broken.py"]).code, Some(0));
    let output = project.run(["eval", "run", "broken", "--stored"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let (_, hint) = output.stdout.split_once("for tracebacks: karat ").expect("a hint");
    let shown = project.run(hint.split_whitespace());
    assert!(shown.stdout.contains("Traceback (most recent call last):"), "{}", shown.both());
    let execution = executions(&store_location(&project), "eval_broken", 1).remove(0);
    assert_eq!(
        (execution.result, execution.error_kind.map(karat_core::judgement::ErrorKind::name)),
        (None, Some("exception"))
    );
    assert_eq!(execution.trace_hash, new_trace("a", "hello").head.hash);
    assert!(execution.guest_hash.is_some());
    // An errored trace counts as judged; only --force judges it again.
    assert_eq!(project.run(["eval", "run", "broken", "--stored"]).code, Some(0));
}

#[test]
fn filters_traces() {
    let project = project_with_evals();
    let output = project.run(["eval", "run", "hello", "--stored", "--search", "bye"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert_eq!(executions(&store_location(&project), "eval_hello", 1).len(), 1);
    insta::assert_snapshot!(project.run(["eval", "run", "hello", "--stored", "--search", "nobody says this"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no trace matches the filters
    hint: run 'karat trace list' with the same flags to see which traces match
    ");
}

#[test]
fn rejects_conflicting_arguments() {
    let project = project_with_python().file("evals/functions/hello.py", HELLO).file("t.jsonl", "{}\n");
    with_store(&store_location(&project), async |_| ());
    insta::assert_snapshot!(project.run(["eval", "run", "--stored"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no evals in the store
    hint: run 'karat eval add FILE' to add an eval function
    ");
    insta::assert_snapshot!(project.run(["eval", "run", "hello", "--stored"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: eval 'eval_hello' not found in the store
    hint: run 'karat eval add hello' to add it
    ");
    insta::assert_snapshot!(project.run(["eval", "run", "evals/functions/hello.py", "--stored"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: evals/functions/hello.py is a file, but --stored takes evals in the store
    hint: run 'karat eval add evals/functions/hello.py', then pass the name of the
      eval
    ");
    insta::assert_snapshot!(project.run(["eval", "run", "hello", "--traces", "t.jsonl", "--search", "x"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: a filter requires --stored
    hint: pass --stored instead of --traces
    ");
    assert_eq!(project.run(["eval", "run", "hello", "--traces", "t.jsonl", "--stored"]).code, Some(2));
    assert_eq!(project.run(["eval", "run", "hello", "--traces", "t.jsonl", "--force"]).code, Some(2));
    assert_eq!(project.run(["eval", "add"]).code, Some(0));
    insta::assert_snapshot!(project.run(["eval", "run", "hello", "--stored"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no traces in the store
    hint: run 'karat trace import FILE' to import traces
    ");
    project.write("evals/functions/short.py", SHORT);
    assert_eq!(project.run(["eval", "add"]).code, Some(0));
    insta::assert_snapshot!(project.run(["eval", "run", "--stored", "--version", "1"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: --version requires exactly one eval
    ");
}

#[test]
fn an_invalid_trace_is_an_error_without_a_row_number() {
    let project = project_with_evals();
    put_traces(&project, &[project_store::new_trace("bb", "karat", "[\"no object\"]")]);
    assert_eq!(project.run(["eval", "run", "hello", "--stored"]).code, Some(3));
    let executed = executions(&store_location(&project), "eval_hello", 1);
    let error = executed.iter().find(|row| row.trace_id == "bb").and_then(|row| row.error.clone()).unwrap();
    assert!(!error.contains("row "), "{error}");
}

/// Creates a project with a slow eval and many traces, so that a run takes a while.
fn slow_project(traces: usize) -> TempProject {
    let slow = "def eval_slow(trace):\n    return sum(n * n for n in range(50_000)) > 0, ''\n";
    let project = project_with_python().file("evals/functions/slow.py", slow);
    let traces: Vec<NewTrace> = (0..traces).map(|number| new_trace(&format!("t-{number:04}"), "x")).collect();
    put_traces(&project, &traces);
    assert_eq!(project.run(["eval", "add"]).code, Some(0));
    project
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_finished_executions() {
    let project = slow_project(2000);
    let running = project.command(["eval", "run", "slow", "--stored", "--format", "jsonl"]).start();
    while running.stdout_so_far().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running.interrupt();
    let output = running.wait().expect("karat exits");
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert!(output.stderr.contains("interrupted: verdicts so far were stored"), "{}", output.stderr);
    let stored = executions(&store_location(&project), "eval_slow", 1).len();
    assert_eq!(output.stdout.lines().count(), stored);
    assert!(0 < stored && stored < 2000, "{stored}");
}

#[test]
fn concurrent_runs_do_not_conflict() {
    let project = slow_project(150);
    let running: Vec<_> = (0..2).map(|_| project.command(["eval", "run", "--stored", "-j", "1"]).start()).collect();
    for process in running {
        let output = process.wait().expect("karat exits");
        assert_eq!(output.code, Some(0), "{}", output.both());
    }
    assert_eq!(executions(&store_location(&project), "eval_slow", 1).len(), 150);
}

#[test]
fn rejects_a_file_that_is_not_a_store() {
    let project = project()
        .file("evals/functions/hello.py", HELLO)
        .file("broken.db", "no database, but longer than its head".repeat(20));
    let output = project.run(["eval", "add", "--store", "broken.db"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stderr.contains("broken.db"), "{}", output.stderr);
    assert_eq!(std::fs::read(project.path().join("broken.db")).unwrap()[..11], *b"no database");
    assert!(!Path::new(&project.path().join(".karat")).exists());
}

/// Traces of test runs are not production data.
#[test]
fn judges_and_compares_production_traces_by_default() {
    let trace = json!({"trace_id": "p", "steps": [{"input": {"message": "hi"}, "output": {"response": "hello"}}]});
    let project = project_with_python()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("agent.json", script(&[("a", "ok"), ("b", "ok")]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), ok_case("gs-x-002", "b")]))
        .file("evals/functions/any.py", "def eval_any(trace):\n    return True, ''\n")
        .file("traces.jsonl", format!("{trace}\n"));
    assert_eq!(project.run(["run"]).code, Some(0));
    assert_eq!(project.run(["eval", "add", "any"]).code, Some(0));
    let judge = |source: &[&str]| {
        let arguments = ["eval", "run", "any", "--stored", "--force", "--format", "jsonl"].iter().chain(source);
        let output = project.run(arguments.copied());
        (output.code, output.stdout.lines().count())
    };
    assert_eq!(judge(&[]), (Some(4), 0), "only test runs are stored");
    assert_eq!(project.run(["trace", "import", "traces.jsonl"]).code, Some(0));
    assert_eq!(judge(&[]), (Some(0), 1));
    assert_eq!(judge(&["--source", "runs"]), (Some(0), 2));
    assert_eq!(judge(&["--source", "all"]), (Some(0), 3));
    let unrated = |source: &str| {
        let output = project.run(["eval", "agreement", "any", "--source", source, "--format", "json"]);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        report["evals"][0]["counts"]["unrated"].as_u64()
    };
    assert_eq!(["production", "runs", "all"].map(unrated), [1, 2, 3].map(Some));
}
