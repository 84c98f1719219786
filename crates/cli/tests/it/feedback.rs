//! `karat feedback add`, `retract` and `list`.

use karat_testkit::project::{Output, TempProject};
use serde_json::{Value, json};

use crate::stored::ProjectStore;
use crate::support::project;

/// A project of Ada's with some traces.
pub(crate) fn ada_with(traces: &[&str]) -> TempProject {
    let project = project().env("GIT_AUTHOR_NAME", "Ada");
    let store = ProjectStore::open(&project);
    for id in traces {
        store.trace(id, "Will it rain?", "2026-01-02");
    }
    project
}

#[track_caller]
fn said(project: &TempProject, arguments: &[&str]) -> String {
    let output = project.run(["feedback"].iter().chain(arguments).copied());
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{}", output.both());
    output.stdout
}

#[track_caller]
pub(crate) fn document(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.both()))
}

#[track_caller]
pub(crate) fn assert_follows(schema: &str, document: &Value) {
    let schema = serde_json::from_str(&project().run(["schema", schema]).stdout).unwrap();
    let problems: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(document).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}\n{document:#}");
}

#[test]
fn a_change_of_mind_is_told() {
    let ada = ada_with(&["trace-1", "trace-2"]);
    assert_eq!(said(&ada, &["add", "trace-1", "negative"]), "trace-1: Ada says negative\n");
    assert_eq!(said(&ada, &["add", "trace-1", "negative"]), "trace-1: Ada says negative already; nothing changed\n");
    let now = said(&ada, &["add", "trace-1", "positive", "--note", "it was the tool"]);
    assert_eq!(now, "trace-1: Ada said negative, and now positive; the history is kept\n");
    let now = said(&ada, &["add", "trace-1", "positive", "--note", "it was the user"]);
    assert_eq!(now, "trace-1: Ada says positive as before, with another note\n");
    let now = said(&ada, &["add", "trace-1", "negative", "--author", "Grace"]);
    assert_eq!(now, "trace-1: Grace says negative\n2 people together: neutral\n");
    let now = said(&ada, &["retract", "trace-1"]);
    assert_eq!(now, "trace-1: Ada takes positive back; the history is kept\n");
    let lines = said(&ada, &["list", "--trace", "trace-1", "--history", "--format", "jsonl"]);
    let history: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let words: Vec<&Value> = history.iter().map(|one| &one["rating"]).collect();
    assert_eq!(words, [&json!(null), &json!("negative"), &json!("positive"), &json!("positive"), &json!("negative")]);
    for line in &history {
        assert_follows("feedback", line);
    }
    let current = said(&ada, &["list", "--format", "jsonl"]);
    assert_eq!(current.lines().count(), 1, "{current}");
}

#[test]
fn programs_are_told_the_same() {
    let ada = ada_with(&["trace-1"]);
    let first = document(&ada.run(["feedback", "add", "trace-1", "neutral", "--format", "json"]));
    assert_eq!((&first["added"], &first["before"], &first["rating"]), (&json!(true), &json!(null), &json!("neutral")));
    assert_eq!((&first["now"]["source"], &first["now"]["author"]), (&json!("cli"), &json!("Ada")));
    let again = document(&ada.run(["feedback", "add", "trace-1", "neutral", "--format", "json"]));
    assert_eq!((&again["added"], &again["now"]), (&json!(false), &first["now"]));
    let list = document(&ada.run(["feedback", "list", "--format", "json"]));
    assert_eq!((&list["feedback"][0], &list["more"]), (&first["now"], &json!(false)));
    assert_follows("feedback-add", &first);
    assert_follows("feedback-add", &again);
    assert_follows("feedback-list", &list);
}

#[test]
fn what_is_wrong_is_said() {
    let ada = ada_with(&["trace-1", "trace-2", "other"]);
    let wrong = |arguments: &[&str]| {
        let output = ada.run(["feedback"].iter().chain(arguments).copied());
        assert_eq!(output.code, Some(2), "{}", output.both());
        output.stderr
    };
    insta::assert_snapshot!(wrong(&["add", "trace-3", "positive"]), @"
    error: there is no trace 'trace-3' in the store
    hint: 'karat trace list' shows the traces; an id may be shortened to its
      beginning
    ");
    insta::assert_snapshot!(wrong(&["add", "trace", "positive"]), @"
    error: the ids of several traces begin with 'trace'
    hint: say more of it: trace-1, trace-2
    ");
    insta::assert_snapshot!(wrong(&["add", "other", "postive"]), @"
    error: invalid value 'postive' for '<RATING>'
      [possible values: positive, negative, neutral]

      tip: a similar value exists: 'positive'

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(wrong(&["retract", "other"]), @"
    error: Ada has said nothing of trace 'other'
    hint: 'karat feedback list' shows who said what; --author NAME says whose rating
      it is
    ");
    insta::assert_snapshot!(wrong(&["add", "other", "positive", "--author", " "]), @"error: --author is empty");
    // An id may be shortened.
    assert_eq!(said(&ada, &["add", "oth", "positive"]), "other: Ada says positive\n");
    let nobody = project();
    ProjectStore::open(&nobody).trace("t", "x", "2026-01-02");
    let output = nobody.run(["feedback", "add", "t", "positive"]);
    assert_eq!(output.code, Some(2));
    insta::assert_snapshot!(output.stderr, @"
    error: it is not known who you are
    hint: --author NAME says it, or the variable GIT_AUTHOR_NAME
    ");
}

const LABELS: &str = "\
trace_id,rating,note,author,created_at
tau-retail-17,negative,\"asked twice,\nand \"\"no\"\" was said\",Grace,2026-01-02T10:00:00Z
tau-retail-17,positive,,Grace,2026-01-01T10:00:00Z
tau-airline-3,neutral,\u{1b}[31mred\u{7},Ada,2026-01-03T10:00:00Z
0a1b2c3d4e5f60718293a4b5c6d7e8f9,positive,,Katherine Johnson,2026-01-04T10:00:00Z
";

fn labelled() -> TempProject {
    let ada = ada_with(&["tau-retail-17", "tau-airline-3", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"]);
    let ada = ada.file("labels.csv", LABELS);
    let output = ada.run(["feedback", "import", "labels.csv"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "imported 4 statements from labels.csv\n"));
    ada
}

#[test]
fn lists_are_for_people_too() {
    let ada = labelled();
    insta::assert_snapshot!(said(&ada, &["list"]), @r#"
    2026-01-04 10:00  ✓ positive   Katherine Johnson  0a1b2c3d4e5f60718293a4b5c6d7e8f9
    2026-01-03 10:00  — neutral    Ada                tau-airline-3
                      \u{1b}[31mred\u{7}
    2026-01-02 10:00  ✗ negative   Grace              tau-retail-17
                      asked twice,\nand "no" was said
    "#);
    insta::assert_snapshot!(said(&ada, &["list", "--history", "--author", "Grace", "--ascii"]), @r#"
    2026-01-02 10:00  negative   Grace  tau-retail-17
                      asked twice,\nand "no" was said
    2026-01-01 10:00  positive   Grace  tau-retail-17  (earlier)
    "#);
    let few = ada.run(["feedback", "list", "--limit", "1"]);
    assert_eq!((few.code, few.stdout.lines().count()), (Some(0), 1));
    assert_eq!(few.stderr, "there are more than these 1: --limit N shows more of them\n");
    assert_eq!(said(&ada, &["list", "--trace", "tau-r", "--author", "Ada", "--format", "jsonl"]), "");
    let nobody = ada.run(["feedback", "list", "--author", "Bob"]);
    assert_eq!((nobody.code, nobody.stdout.as_str()), (Some(0), ""));
    assert!(nobody.stderr.contains("no such statement that counts; --history"), "{}", nobody.stderr);
    let nobody = ada.run(["feedback", "list", "--author", "Bob", "--history"]);
    assert!(nobody.stderr.contains("without --trace and --author there are others"), "{}", nobody.stderr);
    let nothing = ada_with(&[]).run(["feedback", "list"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""));
    assert!(nothing.stderr.contains("karat review"), "{}", nothing.stderr);
}

#[test]
fn what_is_listed_can_be_imported_elsewhere() {
    let ada = labelled();
    said(&ada, &["retract", "tau-airline-3", "--note", "not mine"]);
    for format in ["csv", "jsonl"] {
        let listed = said(&ada, &["list", "--history", "--format", format]);
        let other = ada_with(&["tau-retail-17", "tau-airline-3", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"]);
        other.write("all", listed.as_str());
        assert_eq!(said(&other, &["import", "all"]), "imported 5 statements from all\n");
        assert_eq!(said(&other, &["list", "--history", "--format", format]), listed);
        assert_eq!(said(&other, &["import", "all"]), "imported 0 statements from all; 5 rows known already\n");
    }
}
