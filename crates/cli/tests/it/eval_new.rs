//! `karat eval new`.

use rstest::rstest;
use serde_json::json;

use crate::support::{project, project_with_python};

#[test]
fn writes_a_function_with_passing_cases_and_never_overwrites() {
    let project = project_with_python();
    let output = project.run(["eval", "new", "tone"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    wrote evals/functions/tone.py
    wrote evals/functions/tone.cases.jsonl

    next: write the check in the function and example traces in the cases, then
      karat eval test tone
      karat eval run tone --traces traces.jsonl
    or, to judge stored traces,
      karat eval add tone
      karat eval run tone --stored
    ----- stderr -----
    ");
    let tested = project.run(["eval", "test", "tone"]);
    assert_eq!(tested.code, Some(0), "{}", tested.both());
    assert!(tested.stdout.contains("1 function, 3 cases: 3 passed, 0 failed"), "{}", tested.stdout);
    project.write("evals/functions/tone.py", "mine");
    let again = project.run(["eval", "new", "eval_tone"]);
    insta::assert_snapshot!(again.filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: evals/functions/tone.py already exists
    ");
    assert_eq!(project.read("evals/functions/tone.py"), "mine");
}

#[test]
fn generated_cases_follow_their_schema() {
    let project = project();
    project.run(["eval", "new", "tone"]);
    let schema = serde_json::from_str(&project.run(["schema", "eval-cases"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let cases = project.read("evals/functions/tone.cases.jsonl");
    assert!(cases.lines().all(|line| validator.is_valid(&serde_json::from_str(line).unwrap())));
    assert!(validator.is_valid(&json!({"trace": {}, "error": "exception"})));
    assert!(!validator.is_valid(&json!({"trace": {}})));
    assert!(!validator.is_valid(&json!({"trace": {}, "expected": true, "error": "exception"})));
}

#[test]
fn does_not_overwrite_existing_cases() {
    let project = project().file("evals/functions/tone.cases.jsonl", "mine");
    let output = project.run(["eval", "new", "tone"]);
    assert_eq!(output.code, Some(2));
    assert!(!project.path().join("evals/functions/tone.py").exists());
}

#[test]
fn writes_cases_for_an_existing_function() {
    let project = project().file("evals/functions/tone.py", "mine");
    let output = project.run(["eval", "new", "tone"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    evals/functions/tone.py already exists
    wrote evals/functions/tone.cases.jsonl

    next: write the check in the function and example traces in the cases, then
      karat eval test tone
      karat eval run tone --traces traces.jsonl
    or, to judge stored traces,
      karat eval add tone
      karat eval run tone --stored
    ----- stderr -----
    ");
    assert_eq!(project.read("evals/functions/tone.py"), "mine");
}

#[rstest]
#[case("Tone-Of Voice", "did you mean 'tone_of_voice'?")]
#[case("../tone", "use lower-case letters, digits and _, starting with a letter, such as response_quality")]
fn rejects_names_that_are_not_snake_case(#[case] name: &str, #[case] hint: &str) {
    let output = project().run(["eval", "new", name]);
    assert_eq!(output.code, Some(2));
    let expected = format!("error: invalid function name '{name}': expected snake_case\nhint: {hint}\n");
    assert_eq!(output.unwrapped_stderr(), expected);
}

/// A file that cannot be written is not a mistake in the arguments.
#[test]
fn a_file_that_cannot_be_written_exits_with_3() {
    let project = project().file("evals", "a file in place of the folder");
    let output = project.run(["eval", "new", "answers"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stderr.contains("cannot write evals/functions/answers.py: "), "{}", output.stderr);
    let init = project.run(["init", "--yes", "--agent-endpoint", "http://localhost:1", "--message", "Hello"]);
    assert_eq!(init.code, Some(3), "{}", init.both());
}
