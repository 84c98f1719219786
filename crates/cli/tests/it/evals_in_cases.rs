//! `expect.evals`: cases that Python eval functions judge.

use std::time::Duration;

use karat_testkit::project::{Output, TempProject};
use serde_json::{Value, json};

use crate::support::{case, only_result, project, script};

const TONE: &str = "\
def eval_tone(trace: dict) -> tuple[bool, str]:
    response = trace['steps'][-1]['output']['response']
    print('heard', trace['trace_id'])
    return 'please' in response, f'{len(response)} letters'
";

/// A project whose agent answers each message with itself, with functions.
fn judged(cases: Value, functions: &[(&str, &str)]) -> TempProject {
    let echo = script(&[("please", "please"), ("now", "now")]);
    let project = project().file("agent.json", echo).file("evals/talk.golden.json", cases);
    functions.iter().fold(project, |project, (name, source)| project.file(&format!("evals/functions/{name}"), *source))
}

fn run(project: &TempProject, more: &[&str]) -> Output {
    let arguments = ["run", "--agent-endpoint", "scripted:agent.json", "--output-dir", "results"];
    project.run(arguments.iter().chain(more))
}

#[test]
fn functions_judge_the_cases_traces() {
    let cases = json!([
        case("gs-talk-001", "please", json!({"evals": ["eval_tone"]})),
        case("gs-talk-002", "now", json!({"responseNonEmpty": true, "evals": ["eval_tone"]})),
        case("gs-talk-003", "please", json!({"evals": ["eval_tone", "eval_broken"]})),
    ]);
    let broken = "def eval_broken(trace):\n    return trace['nothing']\n";
    let project = judged(cases, &[("tone.py", TONE), ("broken.py", broken)]);
    // The first time on a machine, Python is compiled.
    let arguments = ["run", "--agent-endpoint", "scripted:agent.json", "--output-dir", "results", "--quiet"];
    let output = project.command(arguments).within(Duration::from_mins(5)).run();
    assert_eq!(output.code, Some(3), "{}", output.both());
    let result = only_result(&project, "results");
    let of = |index: usize| &result["cases"][index];
    assert_eq!((&of(0)["outcome"], &of(0)["assertionsRun"]), (&json!("passed"), &json!(1)));
    let said = &of(0)["details"]["evals"][0];
    assert_eq!((&said["result"], &said["reason"]), (&json!(true), &json!("6 letters")));
    assert_eq!(said["stdout"], "heard gs-talk-001\n");
    assert_eq!(of(1)["error"], "evals: eval_tone failed: 3 letters");
    assert_eq!(of(1)["failures"][0]["pointer"], "/expect/evals/0");
    assert_eq!(of(2)["outcome"], "errored");
    assert_eq!(of(2)["error"], "evals: eval_broken errored (exception): KeyError: 'nothing'");
    assert_eq!(of(2)["details"]["evals"][1]["errorKind"], "exception");
    let traceback = of(2)["details"]["evals"][1]["error"].as_str().unwrap();
    assert!(traceback.contains("line 2, in eval_broken"), "{traceback}");
}

#[test]
fn a_function_that_nobody_knows_is_shown_in_its_case() {
    let cases = json!({"cases": [
        case("gs-talk-001", "please", json!({"evals": ["eval_tone"]})),
        case("gs-talk-002", "now", json!({"evals": ["eval_tone", "eval_tome"]})),
        case("gs-talk-003", "now", json!({"evals": ["eval_what_else"]})),
    ]});
    let project = judged(cases, &[("tone.py", TONE)]);
    // Only what is selected counts, and its place in the file is found all the same.
    insta::assert_snapshot!(run(&project, &["--id", "gs-talk-002"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × gs-talk-002: there is no eval function 'eval_tome' in evals/functions
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
    let told: Vec<Value> = issues.map(|issue| json!([issue["line"], issue["pointer"], issue["help"]])).collect();
    let expected = [
        json!([24, "/cases/1/expect/evals/1", "did you mean 'eval_tone'?"]),
        json!([36, "/cases/2/expect/evals/0", "there are: eval_tone"]),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_function_that_is_not_in_order_is_shown() {
    let cases = json!([case("gs-talk-001", "please", json!({"evals": ["eval_files"]}))]);
    let files = "import os\n\n\ndef eval_files(trace):\n    return True, os.getcwd()\n";
    let other = "def eval_other(trace):\n    return open('x')\n";
    let project = judged(cases, &[("files.py", files), ("other.py", other), ("_shared.py", "import os\n")]);
    let output = run(&project, &[]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("evals/functions/files.py:1:"), "{}", output.stderr);
    assert!(!output.stderr.contains("other.py"), "no case names it: {}", output.stderr);
    let report: Value = serde_json::from_str(&project.run(["check", "--format", "json"]).stdout).unwrap();
    let issues = report["issues"].as_array().unwrap().iter().filter(|issue| issue["rule"] == "invalid");
    let places: Vec<(&Value, &Value)> = issues.map(|issue| (&issue["file"], &issue["line"])).collect();
    let (files, other) = (json!("evals/functions/files.py"), json!("evals/functions/other.py"));
    assert_eq!(places, [(&files, &json!(1)), (&other, &json!(2))]);
    // Of a part of the project, only what its cases name is told.
    let output = project.run(["check", "evals/talk.golden.json"]);
    assert!(output.stdout.contains("files.py") && !output.stdout.contains("other.py"), "{}", output.stdout);
}

#[test]
fn two_functions_of_one_name_are_refused() {
    let cases = json!([case("gs-talk-001", "please", json!({"evals": ["eval_tone"]}))]);
    let output = run(&judged(cases, &[("a.py", TONE), ("b.py", TONE)]), &[]);
    assert_eq!(output.code, Some(2));
    let told = "'eval_tone' is defined in evals/functions/b.py too";
    assert!(output.stderr.contains(told), "{}", output.stderr);
}

#[test]
fn without_functions_no_python_is_needed() {
    let cases = json!([case("gs-talk-001", "please", json!({"responseNonEmpty": true, "evals": []}))]);
    let project = judged(cases, &[("broken.py", "def eval_broken(:\n")]).env("KARAT_GUEST", "/nowhere/guest.wasm");
    assert_eq!(run(&project, &[]).code, Some(0));
}

#[test]
fn a_guest_that_is_not_there_is_said_before_anything_is_asked() {
    let cases = json!([case("gs-talk-001", "please", json!({"evals": ["eval_tone"]}))]);
    let project = judged(cases, &[("tone.py", TONE)]).env("KARAT_GUEST", "/nowhere/guest.wasm");
    let output = run(&project, &[]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("cannot read /nowhere/guest.wasm"), "{}", output.stderr);
    assert!(project.files_in("results", ".json").is_empty());
}

#[test]
fn functions_can_stand_elsewhere() {
    let cases = json!([case("gs-talk-001", "please", json!({"evals": ["eval_tone"]}))]);
    let project =
        judged(cases, &[]).file("judges/tone.py", TONE).file("karat.json", json!({"evalFunctionsPath": "judges"}));
    assert_eq!(project.run(["check"]).code, Some(0));
    let output = project.run(["check", "--eval-functions-path", "nowhere"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("cannot read the folder of eval functions nowhere"), "{}", output.stderr);
}
