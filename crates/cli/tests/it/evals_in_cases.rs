//! `expect.evals`: cases judged by Python eval functions.

use std::time::Duration;

use karat_testkit::project::{Output, TempProject};
use serde_json::{Value, json};

use crate::support::{case, only_result, project, script};

const TONE: &str = "\
def eval_tone(trace: dict) -> tuple[bool, str]:
    response = trace['steps'][-1]['output']['response']
    print('judging', trace['trace_id'])
    return 'please' in response, f'{len(response)} letters'
";

/// Creates a project with eval functions and an agent that echoes messages.
fn echo_project(cases: Value, functions: &[(&str, &str)]) -> TempProject {
    let echo = script(&[("please", "please"), ("now", "now")]);
    let project = project().file("agent.json", echo).file("evals/talk.golden.json", cases);
    functions.iter().fold(project, |project, (name, source)| project.file(&format!("evals/functions/{name}"), *source))
}

fn run(project: &TempProject, more: &[&str]) -> Output {
    let arguments = ["run", "--agent-endpoint", "scripted:agent.json", "--output-dir", "results"];
    project.run(arguments.iter().chain(more))
}

#[test]
fn functions_judge_cases() {
    let cases = json!([
        case("gs-talk-001", "please", json!({"evals": ["eval_tone"]})),
        case("gs-talk-002", "now", json!({"responseNonEmpty": true, "evals": ["eval_tone"]})),
        case("gs-talk-003", "please", json!({"evals": ["eval_tone", "eval_broken"]})),
    ]);
    let broken = "def eval_broken(trace):\n    return trace['nothing']\n";
    let project = echo_project(cases, &[("tone.py", TONE), ("broken.py", broken)]);
    // The first run on a machine compiles Python.
    let arguments = ["run", "--agent-endpoint", "scripted:agent.json", "--output-dir", "results", "--quiet"];
    let output = project.command(arguments).timeout(Duration::from_mins(5)).run();
    assert_eq!(output.code, Some(3), "{}", output.both());
    let result = only_result(&project, "results");
    let case_at = |index: usize| &result["cases"][index];
    assert_eq!((&case_at(0)["outcome"], &case_at(0)["assertionsRun"]), (&json!("passed"), &json!(1)));
    let verdict = &case_at(0)["details"]["evals"][0];
    assert_eq!((&verdict["result"], &verdict["reason"]), (&json!(true), &json!("6 letters")));
    assert_eq!(verdict["stdout"], "judging gs-talk-001\n");
    assert_eq!(case_at(1)["error"], "evals: eval_tone failed: 3 letters");
    assert_eq!(case_at(1)["failures"][0]["pointer"], "/expect/evals/0");
    assert_eq!(case_at(2)["outcome"], "errored");
    assert_eq!(case_at(2)["error"], "evals: eval_broken errored (exception): KeyError: 'nothing'");
    assert_eq!(case_at(2)["details"]["evals"][1]["errorKind"], "exception");
    let traceback = case_at(2)["details"]["evals"][1]["error"].as_str().unwrap();
    assert!(traceback.contains("line 2, in eval_broken"), "{traceback}");
}

#[test]
fn reports_unknown_functions_at_their_case() {
    let cases = json!({"cases": [
        case("gs-talk-001", "please", json!({"evals": ["eval_tone"]})),
        case("gs-talk-002", "now", json!({"evals": ["eval_tone", "eval_tome"]})),
        case("gs-talk-003", "now", json!({"evals": ["eval_what_else"]})),
    ]});
    let project = echo_project(cases, &[("tone.py", TONE)]);
    // Only selected cases are checked, and their location in the file is correct.
    insta::assert_snapshot!(run(&project, &["--id", "gs-talk-002"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × gs-talk-002: eval function 'eval_tome' not found in evals/functions
        ╭─[evals/talk.golden.json:24:6]
     24 │      "eval_tome"
        ·      ───────────
        ╰────
      help: did you mean 'eval_tone'?
    "#);
    let output = project.run(["check", "--format", "json"]);
    assert_eq!(output.code, Some(2));
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let issues = report["issues"].as_array().unwrap().iter().filter(|issue| issue["rule"] == "invalid");
    let reported: Vec<Value> = issues.map(|issue| json!([issue["line"], issue["pointer"], issue["help"]])).collect();
    let expected = [
        json!([24, "/cases/1/expect/evals/1", "did you mean 'eval_tone'?"]),
        json!([36, "/cases/2/expect/evals/0", "known functions: eval_tone"]),
    ];
    assert_eq!(reported, expected);
}

#[test]
fn reports_invalid_functions() {
    let cases = json!([case("gs-talk-001", "please", json!({"evals": ["eval_files"]}))]);
    let files = "import os\n\n\ndef eval_files(trace):\n    return True, os.getcwd()\n";
    let other = "def eval_other(trace):\n    return open('x')\n";
    let project = echo_project(cases, &[("files.py", files), ("other.py", other), ("_shared.py", "import os\n")]);
    let output = run(&project, &[]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("evals/functions/files.py:1:"), "{}", output.stderr);
    assert!(!output.stderr.contains("other.py"), "no case names it: {}", output.stderr);
    let report: Value = serde_json::from_str(&project.run(["check", "--format", "json"]).stdout).unwrap();
    let issues = report["issues"].as_array().unwrap().iter().filter(|issue| issue["rule"] == "invalid");
    let locations: Vec<(&Value, &Value)> = issues.map(|issue| (&issue["file"], &issue["line"])).collect();
    let (files, other) = (json!("evals/functions/files.py"), json!("evals/functions/other.py"));
    assert_eq!(locations, [(&files, &json!(1)), (&other, &json!(2))]);
    // For a single file, only the functions that its cases name are checked.
    let output = project.run(["check", "evals/talk.golden.json"]);
    assert!(output.stdout.contains("files.py") && !output.stdout.contains("other.py"), "{}", output.stdout);
}

#[test]
fn rejects_duplicate_function_names() {
    let cases = json!([case("gs-talk-001", "please", json!({"evals": ["eval_tone"]}))]);
    let output = run(&echo_project(cases, &[("a.py", TONE), ("b.py", TONE)]), &[]);
    assert_eq!(output.code, Some(2));
    let message = "'eval_tone' is also defined in evals/functions/b.py";
    assert!(output.stderr.contains(message), "{}", output.stderr);
}

#[test]
fn needs_no_guest_without_functions() {
    let cases = json!([case("gs-talk-001", "please", json!({"responseNonEmpty": true, "evals": []}))]);
    let project =
        echo_project(cases, &[("broken.py", "def eval_broken(:\n")]).env("KARAT_GUEST", "/nowhere/guest.wasm");
    assert_eq!(run(&project, &[]).code, Some(0));
}

#[test]
fn reports_a_missing_guest_before_calling_the_agent() {
    let cases = json!([case("gs-talk-001", "please", json!({"evals": ["eval_tone"]}))]);
    let project = echo_project(cases, &[("tone.py", TONE)]).env("KARAT_GUEST", "/nowhere/guest.wasm");
    let output = run(&project, &[]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("cannot read /nowhere/guest.wasm"), "{}", output.stderr);
    assert!(project.files_in("results", ".json").is_empty());
}

#[test]
fn reads_functions_from_another_folder() {
    let cases = json!([case("gs-talk-001", "please", json!({"evals": ["eval_tone"]}))]);
    let project = echo_project(cases, &[])
        .file("judges/tone.py", TONE)
        .file("karat.json", json!({"evalFunctionsPath": "judges"}));
    assert_eq!(project.run(["check"]).code, Some(0));
    let output = project.run(["check", "--eval-functions-path", "nowhere"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("cannot read the folder of eval functions nowhere"), "{}", output.stderr);
}

const FLEXIBLE: &str = "\
from shared import words
KARAT_RETURNS = 'flexible'
def eval_words(trace, context):
    if context.reference is None:
        return None
    found = words(trace['steps'][-1]['output']['response'])
    return {'score': len(found & words(context.reference)) / context.params['of'], 'reason': context.case['id']}
";

#[test]
fn a_function_gets_its_context_and_a_helper_and_returns_a_score() {
    let entry = |reference: &str| json!({"name": "eval_words", "params": {"of": 1}, "reference": reference});
    let cases = json!([
        case("gs-talk-001", "please", json!({"evals": [entry("please")]})),
        case("gs-talk-002", "now", json!({"evals": [entry("later"), "eval_words"]})),
        case("gs-talk-003", "please", json!({"responseNonEmpty": true, "evals": ["eval_words"]})),
    ]);
    let shared = "def words(text):\n    return set(text.split())\n";
    let project = echo_project(cases, &[("words.py", FLEXIBLE), ("shared.py", shared)]);
    assert_eq!(run(&project, &["--quiet", "--all-failures"]).code, Some(1));
    let result = only_result(&project, "results");
    let case_at = |index: usize| &result["cases"][index];
    let eval = &case_at(0)["details"]["evals"][0];
    assert_eq!((&eval["result"], &eval["score"], &eval["reason"]), (&json!(true), &json!(1.0), &json!("gs-talk-001")));
    assert_eq!((&eval["params"], &eval["reference"]), (&json!({"of": 1}), &json!("please")));
    assert_eq!(case_at(1)["error"], "evals: eval_words failed with score 0: gs-talk-002");
    assert_eq!(case_at(1)["details"]["evals"][1]["applicable"], false);
    assert_eq!((&case_at(2)["outcome"], &case_at(2)["assertionsSkipped"]), (&json!("passed"), &json!(1)));
    let check = project.run(["check", "--format", "json"]);
    assert!(!check.stdout.contains("shared.py"), "a helper is not an eval function: {}", check.stdout);
}

#[test]
fn parameters_for_a_function_without_context_are_an_error() {
    let cases = json!([case("gs-talk-001", "please", json!({"evals": [{"name": "eval_tone", "params": {"x": 1}}]}))]);
    let output = run(&echo_project(cases, &[("tone.py", TONE)]), &[]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("'eval_tone' has no second parameter"), "{}", output.stderr);
    assert!(output.stderr.contains("write 'def eval_tone(trace, context):'"), "{}", output.stderr);
}
