//! `karat feedback add`, `retract` and `list`.

use karat_testkit::project::{Output, TempProject};
use serde_json::{Value, json};

use crate::project_store::ProjectStore;
use crate::support::project;

/// Creates a project with these traces and `Ada` as the author.
pub(crate) fn project_with_traces(traces: &[&str]) -> TempProject {
    let project = project().env("GIT_AUTHOR_NAME", "Ada");
    let store = ProjectStore::open(&project);
    for id in traces {
        store.add_trace(id, "Will it rain?", "2026-01-02");
    }
    project
}

#[track_caller]
fn run_feedback(project: &TempProject, arguments: &[&str]) -> String {
    let output = project.run(["feedback"].iter().chain(arguments).copied());
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{}", output.both());
    output.stdout
}

#[track_caller]
pub(crate) fn parse_json(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.both()))
}

#[track_caller]
pub(crate) fn assert_matches_schema(schema: &str, document: &Value) {
    let schema = serde_json::from_str(&project().run(["schema", schema]).stdout).unwrap();
    let problems: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(document).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}\n{document:#}");
}

#[test]
fn reports_changed_ratings() {
    let project = project_with_traces(&["trace-1", "trace-2"]);
    assert_eq!(run_feedback(&project, &["add", "trace-1", "bad"]), "trace-1: rated bad by Ada\n");
    assert_eq!(run_feedback(&project, &["add", "trace-1", "negative"]), "trace-1: already rated bad by Ada\n");
    let now = run_feedback(&project, &["add", "trace-1", "positive", "--note", "it was the tool"]);
    assert_eq!(now, "trace-1: rated good by Ada (was bad)\n");
    let now = run_feedback(&project, &["add", "trace-1", "positive", "--note", "it was the user"]);
    assert_eq!(now, "trace-1: rated good by Ada, with a new note\n");
    let now = run_feedback(&project, &["add", "trace-1", "negative", "--author", "Grace"]);
    assert_eq!(now, "trace-1: rated bad by Grace\noverall rating by 2 authors: neutral\n");
    let now = run_feedback(&project, &["retract", "trace-1"]);
    assert_eq!(now, "trace-1: retracted by Ada (was good)\n");
    let lines = run_feedback(&project, &["list", "--trace", "trace-1", "--history", "--format", "jsonl"]);
    let history: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ratings: Vec<&Value> = history.iter().map(|entry| &entry["rating"]).collect();
    assert_eq!(ratings, [&json!(null), &json!("negative"), &json!("positive"), &json!("positive"), &json!("negative")]);
    for line in &history {
        assert_matches_schema("feedback", line);
    }
    let current = run_feedback(&project, &["list", "--format", "jsonl"]);
    assert_eq!(current.lines().count(), 1, "{current}");
}

#[test]
fn json_output_follows_its_schemas() {
    let project = project_with_traces(&["trace-1"]);
    let first = parse_json(&project.run(["feedback", "add", "trace-1", "neutral", "--format", "json"]));
    assert_eq!((&first["added"], &first["before"], &first["rating"]), (&json!(true), &json!(null), &json!("neutral")));
    assert_eq!((&first["now"]["source"], &first["now"]["author"]), (&json!("cli"), &json!("Ada")));
    let again = parse_json(&project.run(["feedback", "add", "trace-1", "neutral", "--format", "json"]));
    assert_eq!((&again["added"], &again["now"]), (&json!(false), &first["now"]));
    let list = parse_json(&project.run(["feedback", "list", "--format", "json"]));
    assert_eq!((&list["feedback"][0], &list["more"]), (&first["now"], &json!(false)));
    assert_matches_schema("feedback-add", &first);
    assert_matches_schema("feedback-add", &again);
    assert_matches_schema("feedback-list", &list);
}

#[test]
fn rejects_invalid_arguments() {
    let anonymous = project();
    let project = project_with_traces(&["trace-1", "trace-2", "other"]);
    let error = |arguments: &[&str]| {
        let output = project.run(["feedback"].iter().chain(arguments).copied());
        assert_eq!(output.code, Some(2), "{}", output.both());
        output.stderr
    };
    insta::assert_snapshot!(error(&["add", "trace-3", "positive"]), @"
    error: trace 'trace-3' not found in the store
    hint: run 'karat trace list' to list traces; a unique prefix of an id is enough
    ");
    insta::assert_snapshot!(error(&["add", "trace", "positive"]), @"
    error: ambiguous trace id: several ids begin with 'trace'
    hint: use a longer prefix: trace-1, trace-2
    ");
    insta::assert_snapshot!(error(&["add", "other", "postive"]), @"
    error: invalid value 'postive' for '<RATING>'
      [possible values: good, bad, neutral]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(error(&["retract", "other"]), @"
    error: Ada has not rated trace 'other'
    hint: run 'karat feedback list' to list ratings, or pass another --author NAME
    ");
    insta::assert_snapshot!(error(&["add", "other", "positive", "--author", " "]), @"error: --author is empty");
    // A unique prefix of an id is enough.
    assert_eq!(run_feedback(&project, &["add", "oth", "positive"]), "other: rated good by Ada\n");
    ProjectStore::open(&anonymous).add_trace("t", "x", "2026-01-02");
    // No variable names the user, as in many containers.
    let output = anonymous.run(["feedback", "add", "t", "positive"]);
    let user = std::process::Command::new("id").arg("-un").output().expect("id runs");
    let user = String::from_utf8(user.stdout).expect("a name");
    assert_eq!(output.stdout, format!("t: rated good by {}\n", user.trim()), "{}", output.both());
}

const LABELS: &str = "\
trace_id,rating,note,author,created_at
tau-retail-17,negative,\"asked twice,\nand \"\"no\"\" was said\",Grace,2026-01-02T10:00:00Z
tau-retail-17,positive,,Grace,2026-01-01T10:00:00Z
tau-airline-3,neutral,\u{1b}[31mred\u{7},Ada,2026-01-03T10:00:00Z
0a1b2c3d4e5f60718293a4b5c6d7e8f9,positive,,Katherine Johnson,2026-01-04T10:00:00Z
";

fn project_with_feedback() -> TempProject {
    let project = project_with_traces(&["tau-retail-17", "tau-airline-3", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"]);
    let project = project.file("labels.csv", LABELS);
    let output = project.run(["feedback", "import", "labels.csv"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "imported 4 ratings from labels.csv\n"));
    project
}

#[test]
fn lists_feedback_as_a_table() {
    let project = project_with_feedback();
    insta::assert_snapshot!(run_feedback(&project, &["list"]), @r#"
    2026-01-04 10:00  ✓ good       Katherine Johnson  0a1b2c3d
    2026-01-03 10:00  — neutral    Ada                tau-airline-3
                      \u{1b}[31mred\u{7}
    2026-01-02 10:00  ✗ bad        Grace              tau-retail-17
                      asked twice,\nand "no" was said
    "#);
    insta::assert_snapshot!(run_feedback(&project, &["list", "--history", "--author", "Grace", "--ascii"]), @r#"
    2026-01-02 10:00  bad        Grace  tau-retail-17
                      asked twice,\nand "no" was said
    2026-01-01 10:00  good       Grace  tau-retail-17  (earlier)
    "#);
    let few = project.run(["feedback", "list", "--limit", "1"]);
    assert_eq!((few.code, few.stdout.lines().count()), (Some(0), 1));
    assert_eq!(few.stderr, "showing only the newest rating; pass --limit N for more\n");
    let all = project.run(["feedback", "list", "--limit", "0"]);
    assert_eq!((all.code, all.stderr.as_str()), (Some(0), ""), "0 lists all");
    assert!(all.stdout.len() > few.stdout.len(), "{}", all.both());
    assert_eq!(run_feedback(&project, &["list", "--trace", "tau-r", "--author", "Ada", "--format", "jsonl"]), "");
    let none = project.run(["feedback", "list", "--author", "Bob"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert!(none.stderr.contains("no current ratings match; pass --history"), "{}", none.stderr);
    let none = project.run(["feedback", "list", "--author", "Bob", "--history"]);
    assert!(none.stderr.contains("no ratings match the filters"), "{}", none.stderr);
    let nothing = project_with_traces(&[]).run(["feedback", "list"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""));
    assert!(nothing.stderr.contains("karat review"), "{}", nothing.stderr);
}

#[test]
fn listed_feedback_can_be_imported() {
    let project = project_with_feedback();
    run_feedback(&project, &["retract", "tau-airline-3", "--note", "not mine"]);
    for format in ["csv", "jsonl"] {
        let output = run_feedback(&project, &["list", "--history", "--format", format]);
        let other = project_with_traces(&["tau-retail-17", "tau-airline-3", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"]);
        other.write("all", output.as_str());
        assert_eq!(run_feedback(&other, &["import", "all"]), "imported 5 ratings from all\n");
        assert_eq!(run_feedback(&other, &["list", "--history", "--format", format]), output);
        assert_eq!(run_feedback(&other, &["import", "all"]), "imported 0 ratings from all; 5 rows unchanged\n");
    }
}
