//! Runs small documents against shell scripts in place of the binary.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use karat_testkit::conformance::{RunSummary, run_document};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Writes a shell script as the binary. It exists as long as the folder.
fn binary(script: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fake");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (folder, path)
}

fn run(document: &Value, script: &str) -> RunSummary {
    let (_folder, path) = binary(script);
    run_document(document, &path)
}

fn run_step(step: &Value, script: &str) -> Vec<String> {
    run(&json!({"scenarios": [{"name": "s", "files": {"f.txt": "{base}"}, "steps": [step]}]}), script).problems
}

/// Writes a result file, prints to both streams and fails.
const FAILING_RUN: &str = r#"mkdir -p results
echo '{"runId": "r-1", "cases": [{"id": "a", "passed": false, "n": 2}]}' > results/x.json
echo "out: $1 $NO_COLOR$CI"; echo "err" >&2; exit 1"#;

#[rstest]
#[case(json!({"args": ["run"], "exit": 1, "output": ["out: run", "err"], "stdout": ["out: run 1true"]}))]
#[case(json!({"args": [], "exit": [1, 3], "stderr": [{"$lacks": "out"}], "requestCount": 0, "peak": 0, "requests": []}))]
#[case(json!({"args": [], "result": {"cases": [{"passed": false, "n": 2.0}]}, "results": {"$len": 1}}))]
#[case(json!({"args": [], "fileHolds": {
    "results/x.json": {"runId": "r-1"}, "f.txt": {"$prefix": "http://127.0.0.1:"}, "none": {"$absent": true}}}))]
fn met_expectations_are_not_problems(#[case] step: Value) {
    assert_eq!(run_step(&step, FAILING_RUN), Vec::<String>::new());
}

#[rstest]
#[case(json!({"args": [], "exit": 0}), "s: step 1: expected exit 0, found exit 1: err")]
#[case(json!({"args": [], "stdout": ["other"]}), "stdout: \"out")]
#[case(json!({"args": [], "stderr": [{"$lacks": "err"}]}), "contains \"err\"")]
#[case(json!({"args": [], "result": {"cases": [{"passed": true}]}}), "result.cases[0].passed: false is not true")]
#[case(json!({"args": [], "results": {"$len": 2}}), "results:")]
#[case(json!({"args": [], "resultsDir": "other", "keep": true}), "no result file in other/")]
#[case(json!({"args": [], "json": {}}), "stdout is not json")]
#[case(json!({"args": [], "jsonl": []}), "stdout is not jsonl")]
#[case(json!({"args": [], "requestCount": 1}), "requestCount: 0 is not 1")]
#[case(json!({"args": [], "peak": {"$min": 1}}), "peak: 0 is below 1")]
#[case(json!({"args": [], "requests": [{}]}), "requests: [] is not [{}]")]
#[case(json!({"args": [], "fileHolds": {"none": {"$has": "x"}}}), "cannot read none")]
#[case(json!({"args": [], "fileHolds": {"f.txt": {"$absent": true}}}), "f.txt was written")]
#[case(json!({"args": [], "fileHolds": {"f.txt": {"a": 1}}}), "f.txt is not JSON")]
#[case(json!({"args": [], "sql": []}), "'sql' is not supported")]
#[case(json!({"args": [], "exitt": 1}), "unknown key 'exitt'")]
#[case(json!({"exit": 1}), "missing 'args'")]
fn reports_failed_expectations(#[case] step: Value, #[case] problem: &str) {
    let problems = run_step(&step, FAILING_RUN);
    assert!(problems.len() == 1 && problems[0].contains(problem), "{problems:?}");
}

#[test]
fn steps_share_a_folder_and_the_newest_run_id() {
    let script = r#"case "$1" in
make) mkdir -p results; echo "{\"runId\": \"$2\"}" > "results/$2.json";;
say) echo "$2 $V"; cat;;
esac"#;
    let document = json!({"scenarios": [{"name": "s", "steps": [
        {"args": ["make", "r-1"], "result": {"runId": "r-1"}},
        {"args": ["make", "r-2"], "keep": true},
        {"args": ["say", "{runId}"], "env": {"V": "{dir}"}, "stdin": "in", "stdout": ["r-2 /", "in"]},
        {"files": {"g.json": "[\"{runId}\"]"}, "args": [], "fileHolds": {"g.json": ["r-2"]}},
        {"args": ["say", "late"], "stdout": ["never"]},
        {"args": ["say", "not run"], "exit": 99},
    ]}]});
    let summary = run(&document, script);
    assert_eq!(summary.scenarios, 1);
    assert!(
        summary.problems.len() == 1 && summary.problems[0].starts_with("s: step 5: stdout"),
        "{:?}",
        summary.problems
    );
}

#[test]
fn parses_standard_output_as_json() {
    let script = r#"printf '{"a": 1}\n\n[2]\n'"#;
    assert_eq!(run_step(&json!({"args": [], "jsonl": [{"a": 1}, [2]]}), script), Vec::<String>::new());
    assert_eq!(run_step(&json!({"args": [], "json": {"a": 1}}), r#"printf '{"a": 1, "b": 2}'"#), Vec::<String>::new());
}

#[test]
fn kills_a_command_after_its_timeout() {
    let problems = run_step(&json!({"args": [], "withinS": 0.2}), "sleep 60");
    assert!(problems[0].contains("timed out after 0.2 s"), "{problems:?}");
}

fn vector(name: &str, passed: bool) -> Value {
    let want = json!({"passed": passed, "run": 1});
    json!({"name": name, "expect": {"responseNonEmpty": true}, "reply": {"response": "x"}, "want": want})
}

/// Passes the cases whose name contains `good`.
const JUDGE: &str = r#"mkdir -p results
{ printf '{"runId": "r", "cases": ['
  sep=; id=0; status=0
  grep '"description"' "$2" | while read -r line; do
    id=$((id + 1)); printf '%s{"id": "gs-vector-%03d", "assertionsRun": 1, "assertionsSkipped": 0, ' "$sep" $id; sep=,
    case "$line" in *good*) printf '"passed": true}';; *) printf '"passed": false, "error": "responseNonEmpty: no"}';; esac
  done; printf ']}'; } > results/r.json
if grep -q '"description": "bad' "$2"; then exit 1; fi"#;

#[test]
fn runs_vectors_together_and_names_failing_ones() {
    let vectors = json!([vector("good one", true), vector("bad one", false), vector("bad two", true)]);
    let summary = run(&json!({"vectors": vectors}), JUDGE);
    assert_eq!((summary.vectors, summary.scenarios), (3, 0));
    let problem_count = |name: &str| summary.problems.iter().filter(|problem| problem.starts_with(name)).count();
    assert_eq!((problem_count("good one"), problem_count("bad one")), (0, 0), "{:?}", summary.problems);
    assert!(problem_count("bad two") > 0);
    let right = json!([vector("good one", true), vector("bad one", false)]);
    assert_eq!(run(&json!({"vectors": right}), JUDGE), RunSummary { vectors: 2, ..RunSummary::default() });
}

/// Succeeds if called with this model, the tools and the environment of both APIs.
const ASKS_MODEL: &str = r#"case "$*" in
*"--agent-endpoint MODE:test-model --output-dir results --tool-registry-path tools.json"*) ;; *) exit 9;; esac
[ "$OPENAI_BASE_URL" = "$ANTHROPIC_BASE_URL/v1" ] && [ "$OPENAI_API_KEY$ANTHROPIC_API_KEY" = test-keytest-key ] || exit 8
grep -q '"name": "look"' tools.json || exit 7
mkdir results
echo '{"cases": [{"id": "gs-vector-001", "passed": true, "assertionsRun": 1}]}' > results/r.json"#;

#[rstest]
#[case("openai")]
#[case("anthropic")]
fn passes_the_tools_of_the_document_to_models(#[case] mode: &str) {
    let document = json!({"mode": mode, "tools": [{"name": "look"}], "vectors": [vector("good", true)]});
    let summary = run(&document, &ASKS_MODEL.replace("MODE", mode));
    assert_eq!(summary, RunSummary { vectors: 1, ..RunSummary::default() });
    let mut own = vector("good", true);
    own["mode"] = json!(mode);
    let document = json!({"mode": "endpoint", "tools": [{"name": "look"}], "vectors": [own]});
    let summary = run(&document, &ASKS_MODEL.replace("MODE", mode));
    assert_eq!(summary.problems, Vec::<String>::new(), "the mode of a vector takes precedence");
}

#[rstest]
#[case("$OPENAI_BASE_URL/chat/completions", "you did not provide an API key")]
#[case("$ANTHROPIC_BASE_URL/v1/messages", "x-api-key header is required")]
fn refused_model_requests_are_problems(#[case] url: &str, #[case] reason: &str) {
    let client = env!("CARGO_BIN_EXE_karat-bare-client");
    let script =
        format!("echo '[{{\"input\": {{\"message\": \"m\"}}}}]' > f.json; '{client}' f.json --url \"{url}\"; true");
    let problems = run_step(&json!({"args": [], "exit": 0, "requestCount": 1}), &script);
    assert_eq!(problems, [format!("s: step 1: a model API would refuse the request: {reason}")]);
}

#[rstest]
#[case(json!({"mode": "gemini", "vectors": [vector("v", true)]}), "unknown mode 'gemini'")]
#[case(json!({"vectors": [vector("good", true), vector("good", true)]}), "two vectors have the name")]
#[case(json!({"vectors": [{"name": "v", "expect": {}, "reply": {}, "want": {"passed": true, "odd": 1}}]}), "'odd'")]
#[case(json!({"scenarios": [{"name": "s", "steps": []}]}), "the scenario has no steps")]
#[case(json!({"scenarios": [{"name": "s", "setup": {}, "steps": [{"args": []}]}]}), "unknown key 'setup' in the scenario")]
#[case(json!({"vektors": []}), "no vectors or scenarios")]
fn reports_invalid_documents(#[case] document: Value, #[case] problem: &str) {
    let problems = run(&document, JUDGE).problems;
    assert!(!problems.is_empty() && problems.iter().any(|actual| actual.contains(problem)), "{problems:?}");
}
