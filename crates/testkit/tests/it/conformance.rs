//! Plays small documents against shell scripts that stand for the binary, right ones and wrong ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use karat_testkit::conformance::{Played, play_document};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Makes a binary of a shell script; it lives as long as the folder.
fn binary(script: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fake");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (folder, path)
}

fn play(document: &Value, script: &str) -> Played {
    let (_folder, path) = binary(script);
    play_document(document, &path)
}

fn play_step(step: &Value, script: &str) -> Vec<String> {
    play(&json!({"scenarios": [{"name": "s", "files": {"f.txt": "{base}"}, "steps": [step]}]}), script).problems
}

/// Writes a result file, says something and fails.
const FAILING_RUN: &str = r#"mkdir -p results
echo '{"runId": "r-1", "cases": [{"id": "a", "passed": false, "n": 2}]}' > results/x.json
echo "out: $1 $NO_COLOR$CI"; echo "err" >&2; exit 1"#;

#[rstest]
#[case(json!({"args": ["run"], "exit": 1, "output": ["out: run", "err"], "stdout": ["out: run 1true"]}))]
#[case(json!({"args": [], "exit": [1, 3], "stderr": [{"$lacks": "out"}], "requestCount": 0, "peak": 0, "requests": []}))]
#[case(json!({"args": [], "result": {"cases": [{"passed": false, "n": 2.0}]}, "results": {"$len": 1}}))]
#[case(json!({"args": [], "fileHolds": {
    "results/x.json": {"runId": "r-1"}, "f.txt": {"$prefix": "http://127.0.0.1:"}, "none": {"$absent": true}}}))]
fn what_holds_is_no_problem(#[case] step: Value) {
    assert_eq!(play_step(&step, FAILING_RUN), Vec::<String>::new());
}

#[rstest]
#[case(json!({"args": [], "exit": 0}), "s: step 1: not exit 0 but exit 1: err")]
#[case(json!({"args": [], "stdout": ["other"]}), "stdout: \"out")]
#[case(json!({"args": [], "stderr": [{"$lacks": "err"}]}), "holds \"err\"")]
#[case(json!({"args": [], "result": {"cases": [{"passed": true}]}}), "result.cases[0].passed: false is not true")]
#[case(json!({"args": [], "results": {"$len": 2}}), "results:")]
#[case(json!({"args": [], "resultsDir": "other", "keep": true}), "no result file in other/")]
#[case(json!({"args": [], "json": {}}), "stdout is not json")]
#[case(json!({"args": [], "jsonl": []}), "stdout is not jsonl")]
#[case(json!({"args": [], "requestCount": 1}), "requestCount: 0 is not 1")]
#[case(json!({"args": [], "peak": {"$min": 1}}), "peak: 0 is below 1")]
#[case(json!({"args": [], "requests": [{}]}), "requests: [] is not [{}]")]
#[case(json!({"args": [], "fileHolds": {"none": {"$has": "x"}}}), "none cannot be read")]
#[case(json!({"args": [], "fileHolds": {"f.txt": {"$absent": true}}}), "f.txt was written")]
#[case(json!({"args": [], "fileHolds": {"f.txt": {"a": 1}}}), "f.txt is not JSON")]
#[case(json!({"args": [], "sql": []}), "'sql' needs a store, which this player does not read")]
#[case(json!({"args": [], "exitt": 1}), "the key 'exitt' is not known to this player")]
#[case(json!({"exit": 1}), "there are no 'args'")]
fn what_does_not_hold_is_told(#[case] step: Value, #[case] problem: &str) {
    let problems = play_step(&step, FAILING_RUN);
    assert!(problems.len() == 1 && problems[0].contains(problem), "{problems:?}");
}

#[test]
fn steps_share_a_folder_and_know_the_newest_run() {
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
        {"args": ["say", "not played"], "exit": 99},
    ]}]});
    let played = play(&document, script);
    assert_eq!(played.scenarios, 1);
    assert!(played.problems.len() == 1 && played.problems[0].starts_with("s: step 5: stdout"), "{:?}", played.problems);
}

#[test]
fn standard_output_is_read_as_json() {
    let script = r#"printf '{"a": 1}\n\n[2]\n'"#;
    assert_eq!(play_step(&json!({"args": [], "jsonl": [{"a": 1}, [2]]}), script), Vec::<String>::new());
    assert_eq!(play_step(&json!({"args": [], "json": {"a": 1}}), r#"printf '{"a": 1, "b": 2}'"#), Vec::<String>::new());
}

#[test]
fn what_takes_too_long_is_ended() {
    let problems = play_step(&json!({"args": [], "withinS": 0.2}), "sleep 60");
    assert!(problems[0].contains("no end within 0.2 s"), "{problems:?}");
}

fn vector(name: &str, passed: bool) -> Value {
    let want = json!({"passed": passed, "run": 1});
    json!({"name": name, "expect": {"responseNonEmpty": true}, "reply": {"response": "x"}, "want": want})
}

/// Answers the question which cases pass by their names, as the real judge would by their expectations.
const JUDGE: &str = r#"mkdir -p results
{ printf '{"runId": "r", "cases": ['
  sep=; id=0; status=0
  grep '"description"' "$2" | while read -r line; do
    id=$((id + 1)); printf '%s{"id": "gs-vector-%03d", "assertionsRun": 1, "assertionsSkipped": 0, ' "$sep" $id; sep=,
    case "$line" in *good*) printf '"passed": true}';; *) printf '"passed": false, "error": "responseNonEmpty: no"}';; esac
  done; printf ']}'; } > results/r.json
if grep -q '"description": "bad' "$2"; then exit 1; fi"#;

#[test]
fn vectors_are_judged_together_and_named_alone() {
    let vectors = json!([vector("good one", true), vector("bad one", false), vector("bad two", true)]);
    let played = play(&json!({"vectors": vectors}), JUDGE);
    assert_eq!((played.vectors, played.scenarios), (3, 0));
    let about = |name: &str| played.problems.iter().filter(|problem| problem.starts_with(name)).count();
    assert_eq!((about("good one"), about("bad one")), (0, 0), "{:?}", played.problems);
    assert!(about("bad two") > 0);
    let right = json!([vector("good one", true), vector("bad one", false)]);
    assert_eq!(play(&json!({"vectors": right}), JUDGE), Played { vectors: 2, ..Played::default() });
}

/// Passes where it is told to ask this model, with the tools and what it takes to reach both APIs.
const ASKS_MODEL: &str = r#"case "$*" in
*"--agent-endpoint MODE:test-model --output-dir results --tool-registry-path tools.json"*) ;; *) exit 9;; esac
[ "$OPENAI_BASE_URL" = "$ANTHROPIC_BASE_URL/v1" ] && [ "$OPENAI_API_KEY$ANTHROPIC_API_KEY" = test-keytest-key ] || exit 8
grep -q '"name": "look"' tools.json || exit 7
mkdir results
echo '{"cases": [{"id": "gs-vector-001", "passed": true, "assertionsRun": 1}]}' > results/r.json"#;

#[rstest]
#[case("openai")]
#[case("anthropic")]
fn models_are_asked_with_the_documents_tools(#[case] mode: &str) {
    let document = json!({"mode": mode, "tools": [{"name": "look"}], "vectors": [vector("good", true)]});
    let played = play(&document, &ASKS_MODEL.replace("MODE", mode));
    assert_eq!(played, Played { vectors: 1, ..Played::default() });
    let mut own = vector("good", true);
    own["mode"] = json!(mode);
    let document = json!({"mode": "endpoint", "tools": [{"name": "look"}], "vectors": [own]});
    let played = play(&document, &ASKS_MODEL.replace("MODE", mode));
    assert_eq!(played.problems, Vec::<String>::new(), "a vector's own mode stands above the document's");
}

#[rstest]
#[case("$OPENAI_BASE_URL/chat/completions", "you did not provide an API key")]
#[case("$ANTHROPIC_BASE_URL/v1/messages", "x-api-key header is required")]
fn what_a_model_api_would_refuse_is_a_problem(#[case] url: &str, #[case] reason: &str) {
    let client = env!("CARGO_BIN_EXE_karat-bare-client");
    let script =
        format!("echo '[{{\"input\": {{\"message\": \"m\"}}}}]' > f.json; '{client}' f.json --url \"{url}\"; true");
    let problems = play_step(&json!({"args": [], "exit": 0, "requestCount": 1}), &script);
    assert_eq!(problems, [format!("s: step 1: a model API would have refused what was sent: {reason}")]);
}

#[rstest]
#[case(json!({"mode": "gemini", "vectors": [vector("v", true)]}), "the mode 'gemini' is not known to this player")]
#[case(json!({"vectors": [vector("good", true), vector("good", true)]}), "two vectors have the name")]
#[case(json!({"vectors": [{"name": "v", "expect": {}, "reply": {}, "want": {"passed": true, "odd": 1}}]}), "'odd'")]
#[case(json!({"scenarios": [{"name": "s", "steps": []}]}), "the scenario has no steps")]
#[case(json!({"scenarios": [{"name": "s", "setup": {}, "steps": [{"args": []}]}]}), "the scenario's key 'setup'")]
#[case(json!({"vektors": []}), "there is nothing to play")]
fn what_cannot_be_played_is_told(#[case] document: Value, #[case] problem: &str) {
    let problems = play(&document, JUDGE).problems;
    assert!(!problems.is_empty() && problems.iter().any(|told| told.contains(problem)), "{problems:?}");
}
