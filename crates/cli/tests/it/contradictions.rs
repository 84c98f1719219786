//! `karat contradictions` and their resolutions.

use insta::assert_snapshot;
use karat_core::rating::Rating;
use karat_testkit::project::TempProject;
use rstest::rstest;
use serde_json::Value;

use crate::project_store::ProjectStore;
use crate::support::project;

pub(crate) fn project_with_contradictions() -> (TempProject, ProjectStore) {
    let project = project();
    let store = ProjectStore::open(&project);
    let refund = store.add_version("eval_refund", "code");
    let tone = store.add_version("eval_tone", "code");
    store.add_trace(
        "conversation-1",
        "I want my money back, and I want it today. I waited for three weeks already!",
        "2026-11-10",
    );
    store.add_trace("conversation-2", "Where is my parcel?", "2026-11-10");
    store.add_trace("conversation-3", "Hello", "2026-11-10");
    store.add_verdict("eval_refund", refund, "conversation-1", Some(false), "the tool refund was never called");
    store.add_verdict("eval_refund", refund, "conversation-2", Some(true), "nothing to refund");
    store.add_verdict("eval_refund", refund, "conversation-3", Some(true), "nothing to refund");
    store.add_verdict("eval_tone", tone, "conversation-2", Some(true), "friendly");
    store.add_feedback("ada", "conversation-1", Rating::Positive, Some("correct: the return had not arrived"));
    store.add_feedback("ada", "conversation-2", Rating::Negative, Some("it made up a tracking number"));
    store.add_feedback("ada", "conversation-3", Rating::Neutral, None);
    (project, store)
}

fn resolve(project: &TempProject, arguments: &[&str]) -> karat_testkit::project::Output {
    project.command([&["contradictions", "resolve"], arguments].concat()).env("USER", "cyd").run()
}

#[test]
fn shows_verdict_and_rating_side_by_side() {
    let (project, _) = project_with_contradictions();
    let output = project.run(["contradictions"]);
    assert_eq!(output.code, Some(0));
    // Commands are not wrapped.
    let fits = |line: &str| line.chars().count() <= 80 || line.starts_with("  karat ");
    assert!(output.both().lines().all(fits), "{}", output.both());
    assert_snapshot!(output.filtered(), @r#"
    exit: 0
    ----- stdout -----
    conversation-1                                                  2025-11-16 12:01
      "I want my money back, and I want it today. I waited for three weeks already!"
      failed: eval_refund version 1         │ good, ada
      the tool refund was never called      │ correct: the return had not arrived

    conversation-2                                                  2025-11-16 12:01
      "Where is my parcel?"
      passed: eval_refund version 1         │ bad, ada
      nothing to refund                     │ it made up a tracking number

    conversation-2                                                  2025-11-16 12:01
      "Where is my parcel?"
      passed: eval_tone version 1           │ bad, ada
      friendly                              │ it made up a tracking number

    3 contradictions
    ----- stderr -----
    to show the first:     karat trace show conversation-1
    to resolve the first:
      karat contradictions resolve eval_refund conversation-1 RESOLUTION
    "#);
}

#[test]
fn lists_contradictions_of_test_runs_only_on_request() {
    let (project, store) = project_with_contradictions();
    let version = store.add_version("eval_refund", "code");
    store.add_run_trace("run-1", "Give it back");
    store.add_verdict("eval_refund", version, "run-1", Some(true), "nothing to refund");
    store.add_feedback("ada", "run-1", Rating::Negative, None);
    let list = |arguments: &[&str]| {
        let output = project.run([&["contradictions", "--format", "json"], arguments].concat());
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        let of_runs = report["contradictions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|contradiction| contradiction["trace_id"] == "run-1");
        (report["total"].as_u64(), of_runs.count(), output.unwrapped_stderr())
    };
    let (total, of_runs, stderr) = list(&[]);
    assert_eq!((total, of_runs), (Some(3), 0));
    assert!(stderr.contains("1 contradiction on traces of test runs left out; pass --source all"), "{stderr}");
    for (source, expected) in [("runs", (Some(1), 1)), ("all", (Some(4), 1)), ("production", (Some(3), 0))] {
        let (total, of_runs, _) = list(&["--source", source]);
        assert_eq!((total, of_runs), expected, "{source}");
    }
    let limited = list(&["--source", "all", "--limit", "1"]);
    assert_eq!(limited.0, Some(4));
}

#[test]
fn a_resolution_holds_until_verdict_or_rating_changes() {
    let (project, store) = project_with_contradictions();
    let resolved = resolve(&project, &["refund", "conversation-1", "label-wrong", "--note", "ada was in a hurry"]);
    assert_eq!(resolved.code, Some(0), "{}", resolved.both());
    assert_snapshot!(resolved.filtered(), @"
    exit: 0
    ----- stdout -----
    eval_refund on conversation-1: label-wrong
    ----- stderr -----
    the rating still counts; to correct it: karat feedback add conversation-1 bad
    ");
    let open = project.run(["contradictions", "refund"]);
    assert!(open.stdout.ends_with("1 contradiction; 1 resolved (see --all)\n"), "{}", open.stdout);
    let again = resolve(&project, &["refund", "conversation-1", "label-wrong", "--note", "ada was in a hurry"]);
    assert_eq!(again.stdout, "eval_refund on conversation-1: label-wrong (as before)\n");
    let all = project.run(["contradictions", "eval_refund", "--all"]);
    assert!(all.stdout.contains("  resolved as label-wrong by cyd: ada was in a hurry\n"), "{}", all.stdout);
    // A resolution does not change the figures.
    let agreement = project.run(["eval", "agreement", "refund", "--format", "json"]);
    let agreement: Value = serde_json::from_str(&agreement.stdout).unwrap();
    assert_eq!(agreement["evals"][0]["counts"]["failed_positive"], 1);
    // The resolution also covers the same verdict of a newer version.
    let newer = store.add_version("eval_refund", "other code");
    store.add_verdict("eval_refund", newer, "conversation-1", Some(false), "still never called");
    assert!(project.run(["contradictions", "refund"]).stdout.starts_with("0 contradictions; 1 resolved"));
    // The opposite verdict and rating form a new contradiction.
    store.add_feedback("bob", "conversation-1", Rating::Negative, None);
    store.add_feedback("cyd", "conversation-1", Rating::Negative, None);
    store.add_verdict("eval_refund", newer, "conversation-1", Some(true), "called after all");
    let open = project.run(["contradictions", "refund"]);
    assert!(open.stdout.ends_with("1 contradiction\n"), "{}", open.stdout);
}

#[test]
fn a_contradiction_can_be_resolved_again() {
    let (project, _) = project_with_contradictions();
    resolve(&project, &["tone", "conversation-2", "eval-wrong"]);
    let again = resolve(&project, &["tone", "conversation-2", "dismissed", "--author", "  dee ", "--format", "json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(
        (&again["before"], &again["contradiction"]["resolution"]["kind"]),
        (&"eval-wrong".into(), &"dismissed".into())
    );
    assert_eq!(again["contradiction"]["resolution"]["author"], "dee");
    let schema: Value = serde_json::from_str(&project.run(["schema", "contradictions-resolve"]).stdout).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&again), "{again}");
}

#[test]
fn json_list_follows_its_schema_and_limit() {
    let (project, _) = project_with_contradictions();
    resolve(&project, &["tone", "conversation-2", "eval-wrong"]);
    let list = project.run(["contradictions", "--format", "json", "--limit", "1"]);
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let schema: Value = serde_json::from_str(&project.run(["schema", "contradictions"]).stdout).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&list), "{list}");
    assert_eq!((&list["total"], &list["resolved"]), (&2.into(), &1.into()));
    assert_eq!(list["contradictions"].as_array().map(Vec::len), Some(1));
    let some = project.run(["contradictions", "--limit", "1"]);
    assert!(some.stdout.ends_with("1 of 2 contradictions (see --limit); 1 resolved (see --all)\n"), "{}", some.stdout);
    let all = project.run(["contradictions", "--limit", "0"]);
    assert!(all.stdout.ends_with("\n2 contradictions; 1 resolved (see --all)\n"), "{}", all.stdout);
}

#[rstest]
#[case(&["refund", "conversation-3", "dismissed"], 4, "eval_refund has no contradiction on trace conversation-3")]
#[case(&["refund", "conversation", "dismissed"], 2, "ambiguous trace id: several ids begin with 'conversation'")]
#[case(&["refund", "nothing", "dismissed"], 2, "trace 'nothing' not found in the store")]
#[case(&["refunds", "conversation-1", "dismissed"], 2, "did you mean 'eval_refund'?")]
#[case(&["refund", "conversation-1", "eval-rong"], 2, "eval-wrong")]
fn rejects_invalid_resolutions(#[case] arguments: &[&str], #[case] code: i32, #[case] message: &str) {
    let (project, _) = project_with_contradictions();
    let output = resolve(&project, arguments);
    assert_eq!(output.code, Some(code), "{}", output.both());
    assert!(output.stderr.contains(message), "{}", output.both());
}

#[test]
fn a_resolution_rejects_a_blank_author() {
    let (project, _) = project_with_contradictions();
    let output = project.run(["contradictions", "resolve", "refund", "conversation-1", "dismissed", "--author", " "]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("--author is empty"), "{}", output.stderr);
    let output = project.run(["contradictions", "tones"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
}
