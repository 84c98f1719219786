//! `karat eval test`: the cases of eval functions.

use karat_core::rating::Rating;
use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::project_store::ProjectStore;
use crate::support::{project, project_with_python};

const LENGTH: &str =
    "def eval_length(trace):\n    size = len(trace['text'])\n    return size < 5, f'{size} characters'\n";

fn with_cases(cases: &[&str]) -> TempProject {
    project_with_python()
        .file("evals/functions/length.py", LENGTH)
        .file("evals/functions/length.cases.jsonl", cases.join("\n"))
}

#[test]
fn names_cases_without_a_function() {
    let project = with_cases(&[r#"{"trace": {"text": "abc"}, "expected": true}"#])
        .file("evals/functions/lenght.cases.jsonl", r#"{"trace": {"text": "abc"}, "expected": false}"#);
    insta::assert_snapshot!(project.run(["eval", "test"]).filtered(), @r"
    exit: 0
    ----- stdout -----
    ✓ eval_length: 1 of 1 case passed
    ⚠ evals/functions/lenght.cases.jsonl: no eval function of that name

    1 function, 1 case: 1 passed, 0 failed; 1 file without a function
    ----- stderr -----
    ");
    let json: Value = serde_json::from_str(&project.run(["eval", "test", "--format", "json"]).stdout).unwrap();
    assert_eq!(json["cases_without_function"], json!(["evals/functions/lenght.cases.jsonl"]));
    let selected = project.run(["eval", "test", "length"]);
    assert!(!selected.stdout.contains("lenght"), "{}", selected.stdout);
}

#[test]
fn a_stored_trace_becomes_a_case() {
    let tone = "def eval_tone(trace):\n    return 'polite' in trace['steps'][0]['input']['message'], 'by the tone'\n";
    let project = project_with_python().file("evals/functions/tone.py", tone);
    let store = ProjectStore::open(&project);
    for (id, message) in [("t-good", "polite words"), ("t-bad", "rude words"), ("t-unrated", "other words")] {
        store.add_trace(id, message, "2026-11-10");
    }
    store.add_feedback("ada", "t-good", Rating::Positive, None);
    store.add_feedback("ada", "t-bad", Rating::Negative, None);
    let add = |arguments: &[&str]| project.run([&["eval", "add-case", "tone"], arguments].concat());
    insta::assert_snapshot!(add(&["t-good"]).filtered(), @"
    exit: 0
    ----- stdout -----
    added t-good to evals/functions/tone.cases.jsonl (new file): expected verdict pass
    ----- stderr -----
    to run it: karat eval test tone
    ");
    // A prefix of the id is enough.
    assert_eq!(add(&["t-b", "--reason", "by the tone"]).code, Some(0));
    insta::assert_snapshot!(add(&["t-unrated"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot derive the expected verdict: trace 't-unrated' is rated neither
      good nor bad
    hint: pass --expected pass or --expected fail
    ");
    assert_eq!(add(&["t-unrated", "--expected", "fail", "--name", "no tone"]).code, Some(0));
    let again = add(&["t-good"]);
    assert_eq!(again.code, Some(2), "{}", again.both());
    assert!(again.stderr.contains("already has a case 't-good'"), "{}", again.stderr);
    let cases = project.read("evals/functions/tone.cases.jsonl");
    let cases: Vec<Value> = cases.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = cases.iter().map(|case| (case["name"].as_str().unwrap(), case["expected"].as_bool().unwrap()));
    assert_eq!(expected.collect::<Vec<_>>(), [("t-good", true), ("t-bad", false), ("no tone", false)]);
    assert_eq!((&cases[1]["trace"]["trace_id"], &cases[1]["reason"]), (&json!("t-bad"), &json!("by the tone")));
    let tested = project.run(["eval", "test", "tone"]);
    assert!(tested.code == Some(0) && tested.stdout.contains("3 of 3 cases passed"), "{}", tested.both());
    assert_eq!(project.run(["eval", "add-case", "evals/functions", "no-such-trace"]).code, Some(2));
}

#[test]
fn shows_each_mismatch_and_separates_errors_from_failures() {
    let project = with_cases(&[
        r#"{"trace": {"text": "abc"}, "expected": true}"#,
        r#"{"name": "long", "trace": {"text": "abcdefg"}, "expected": true}"#,
        r#"{"trace": {"text": "abcdefg"}, "expected": false, "reason": "8 characters"}"#,
        r#"{"trace": {"txt": ""}, "expected": false}"#,
        r#"{"trace": {"txt": ""}, "error": "exception"}"#,
        r#"{"trace": {"text": ""}, "error": "timeout"}"#,
    ])
    .file("evals/functions/other.py", "def eval_other(trace):\n    return True, ''\n");
    let output = project.run(["eval", "test"]);
    insta::assert_snapshot!(output.filtered(), @r#"
    exit: 3
    ----- stdout -----
    ! eval_length: 2 of 6 cases passed
      evals/functions/length.cases.jsonl:2 long
        expected pass
        actual   fail: 7 characters
      evals/functions/length.cases.jsonl:3
        expected fail, with '8 characters' in the reason
        actual   fail: 7 characters
      evals/functions/length.cases.jsonl:4
        expected fail
        actual   error (exception)
          KeyError: 'text'
          Traceback (most recent call last):
            File "<eval>", line 2, in eval_length
              size = len(trace['text'])
                         ~~~~~^^^^^^^^
          KeyError: 'text'
      evals/functions/length.cases.jsonl:6
        expected error (timeout)
        actual   pass: 0 characters
    ⚠ eval_other: no cases (evals/functions/other.cases.jsonl does not exist)

    2 functions, 6 cases: 2 passed, 3 failed, 1 errored; 1 function without cases
    ----- stderr -----
    "#);
    let json = project.run(["eval", "test", "length", "--format", "json"]);
    assert_eq!(json.code, Some(3));
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    let schema = serde_json::from_str(&project.run(["schema", "eval-test"]).stdout).unwrap();
    jsonschema::validate(&schema, &report).unwrap();
    let summary = json!({"functions": 1, "without_cases": 0, "passed": 2, "failed": 3, "errored": 1});
    assert_eq!(report["summary"], summary);
}

#[test]
fn reports_passing_cases() {
    let project = with_cases(&[r#"{"trace": {"text": "abc"}, "expected": true, "reason": "3 char"}"#, ""]);
    let output = project.run(["eval", "test", "evals/functions/length.py"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "✓ eval_length: 1 of 1 case passed\n\n1 function, 1 case: 1 passed, 0 failed\n")
    );
}

#[test]
fn shows_all_invalid_cases_and_runs_nothing() {
    let project = with_cases(&[
        r#"{"trace": {"text": "abc"}, "expectd": true}"#,
        r#"{"trace": {"text": "abc"}, "error": "exeption"}"#,
        "nonsense",
    ]);
    insta::assert_snapshot!(project.run(["eval", "test"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × 'expected' is missing: true to pass, false to fail
       ╭─[evals/functions/length.cases.jsonl:1:1]
     1 │ {"trace": {"text": "abc"}, "expectd": true}
       · ──────────────────────────
       ╰────
      help: or give 'error', the kind of error that the function must end with
      × unknown key 'expectd'
       ╭─[evals/functions/length.cases.jsonl:1:28]
     1 │ {"trace": {"text": "abc"}, "expectd": true}
       ·                            ─────────
       ╰────
      help: did you mean 'expected'?
      × invalid value 'exeption' for 'error'
       ╭─[evals/functions/length.cases.jsonl:2:37]
     2 │ {"trace": {"text": "abc"}, "error": "exeption"}
       ·                                     ──────────
       ╰────
      help: did you mean 'exception'?
      × expected JSON
       ╭─[evals/functions/length.cases.jsonl:3:2]
     3 │ nonsense
       ·  ─
       ╰────
    "#);
}

#[test]
fn warns_about_functions_without_cases() {
    let project = project().file("evals/functions/length.py", LENGTH);
    insta::assert_snapshot!(project.run(["eval", "test"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ⚠ eval_length: no cases (evals/functions/length.cases.jsonl does not exist)

    1 function, 0 cases: 0 passed, 0 failed; 1 function without cases
    ----- stderr -----
    ");
}

#[test]
fn reports_nothing_to_do_without_functions() {
    insta::assert_snapshot!(project().run(["eval", "test"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no eval functions in evals/functions
    hint: run 'karat eval new NAME' to create one
    ");
}

#[test]
fn warns_about_an_empty_case_file() {
    let project = with_cases(&["", "  "]);
    insta::assert_snapshot!(project.run(["eval", "test"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ⚠ eval_length: no cases (evals/functions/length.cases.jsonl has none)

    1 function, 0 cases: 0 passed, 0 failed; 1 function without cases
    ----- stderr -----
    ");
}

#[test]
fn reports_an_array_of_cases_once() {
    let array = with_cases(&["[", "  {\"trace\": {}, \"expected\": true},", "  {}", "]"]);
    insta::assert_snapshot!(array.run(["eval", "test"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × expected one JSON object per line, found an array
       ╭─[evals/functions/length.cases.jsonl:1:1]
     1 │ [
       · ─
       ╰────
      help: convert the file with jq -c '.[]'
    ");
    let line = with_cases(&[r#"{"trace": {"text": "abc"}, "expected": true}"#, "[]"]);
    insta::assert_snapshot!(line.run(["eval", "test"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × the line must be an object, found an array
       ╭─[evals/functions/length.cases.jsonl:2:1]
     2 │ []
       · ──
       ╰────
    ");
}

#[test]
fn wraps_long_expected_reasons() {
    let reason = "a reason of very many words ".repeat(5);
    let case = json!({"trace": {"text": "abc"}, "expected": false, "reason": reason}).to_string();
    let output = with_cases(&[&case]).run(["eval", "test"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 1
    ----- stdout -----
    ✗ eval_length: 0 of 1 case passed
      evals/functions/length.cases.jsonl:1
        expected fail, with 'a reason of very many words a reason of very many words
                 a reason of very many words a reason of very many words a reason of
                 very many words ' in the reason
        actual   pass: 3 characters

    1 function, 1 case: 0 passed, 1 failed
    ----- stderr -----
    ");
}
