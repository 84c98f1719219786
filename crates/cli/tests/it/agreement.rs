//! `karat eval agreement` and `karat eval compare`, over verdicts and ratings in the store.

use insta::assert_snapshot;
use karat_core::rating::Rating;
use karat_testkit::project::{Output, TempProject};
use rstest::rstest;
use serde_json::Value;

use crate::project_store::ProjectStore;
use crate::support::project;

/// A group of traces: their number, the verdicts of version 1 and 2, and the rating.
type TraceGroup = (usize, Option<bool>, Option<bool>, Option<Rating>);

const TRACE_GROUPS: [TraceGroup; 9] = [
    (10, Some(true), Some(true), Some(Rating::Positive)),
    (8, Some(false), Some(false), Some(Rating::Negative)),
    (9, Some(true), Some(false), Some(Rating::Negative)),
    (1, Some(true), Some(false), Some(Rating::Positive)),
    (2, Some(true), Some(true), Some(Rating::Negative)),
    (1, Some(true), None, Some(Rating::Positive)),
    (1, None, Some(true), Some(Rating::Positive)),
    (2, Some(true), Some(false), Some(Rating::Neutral)),
    (3, Some(false), Some(false), None),
];

/// Creates a project with two versions of an eval, traces of two weeks and ratings of two people.
pub(crate) fn rated_project() -> TempProject {
    let project = project();
    let store = ProjectStore::open(&project);
    let (first, second) = (store.add_version("eval_refund", "one"), store.add_version("eval_refund", "two"));
    let mut number = 0;
    for (count, before, now, rating) in TRACE_GROUPS {
        for _ in 0..count {
            number += 1;
            let id = format!("t-{number:02}");
            let day = if number % 3 == 0 { "2026-11-03" } else { "2026-11-10" };
            store.add_trace(&id, "I want my money back", day);
            let reason_or_error =
                |verdict: Option<bool>, reason| if verdict.is_some() { reason } else { "KeyError: 'refund'" };
            store.add_verdict(
                "eval_refund",
                first,
                &id,
                before,
                reason_or_error(before, "the word refund is in the answer"),
            );
            store.add_verdict("eval_refund", second, &id, now, reason_or_error(now, "the tool refund was called"));
            if let Some(rating) = rating {
                store.add_feedback("ada", &id, rating, None);
            }
        }
    }
    // Both people rated the first twelve traces and disagree on one.
    for number in 1..=12 {
        store.add_feedback(
            "bob",
            &format!("t-{number:02}"),
            if number <= 11 { Rating::Positive } else { Rating::Negative },
            None,
        );
    }
    project
}

fn parse_json(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.both()))
}

fn assert_matches_schema(schema: &str, value: &Value) {
    let schema = project().run(["schema", schema]);
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn compares_an_eval_with_ratings() {
    let output = rated_project().run(["eval", "agreement", "refund"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{}", output.stdout);
    assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    eval_refund version 2
      37 traces: 30 compared with ratings, 3 neutral, 3 unrated, 1 errored

      rating                  good       bad
      eval passed               11         2
      eval failed                1        16

                          figure  95% interval
      accuracy             0.900  [0.744, 0.965]    27 of 30
      precision            0.846  [0.578, 0.957]    11 of 13 that passed
      recall               0.917  [0.646, 0.985]    11 of 12 good
      F1                   0.880  [0.688, 0.961]
      Cohen's kappa        0.795  [0.575, 1.000]    0 means chance agreement
      contradiction rate   0.100  [0.035, 0.256]    3 of 30
      error rate           0.027  [0.005, 0.138]    1 of 37

      version  compared  accuracy                  kappa                     errors
      1              30   0.633  [0.455, 0.781]     0.337  [0.104, 0.571]         1
      2              30   0.900  [0.744, 0.965]     0.795  [0.575, 1.000]         1

      week       compared  accuracy                  contradictions
      2026-W45         10   0.900  [0.596, 0.982]                 1
      2026-W46         20   0.900  [0.699, 0.972]                 2
      newest week 0.900, earlier weeks 0.900: not significant (p = 1.000)

      ✓ accuracy 0.900 (must be at least 0.8)
      ✓ error rate 0.027 (must be at most 0.1)

    agreement between raters
      2 raters on 12 traces with several ratings: ada (12), bob (12)

      unanimous            0.917  [0.646, 0.985]    11 of 12
      Cohen's kappa        0.625  [-0.027, 1.000]   0 means chance agreement

    1 eval: no alerts
    ----- stderr -----
    run 'karat contradictions eval_refund' to list contradictions
    ");
}

#[test]
fn an_older_version_raises_alerts() {
    let output = rated_project().run(["eval", "agreement", "eval_refund", "--version", "1", "--quiet"]);
    assert_snapshot!(output.filtered(), @"
    exit: 1
    ----- stdout -----
    eval_refund version 1 of 2
      37 traces: 30 compared with ratings, 3 neutral, 3 unrated, 1 errored

      rating                  good       bad
      eval passed               12        11
      eval failed                0         7

                          figure  95% interval
      accuracy             0.633  [0.455, 0.781]    19 of 30
      precision            0.522  [0.330, 0.708]    12 of 23 that passed
      recall               1.000  [0.758, 1.000]    12 of 12 good
      F1                   0.686  [0.496, 0.829]
      Cohen's kappa        0.337  [0.104, 0.571]    0 means chance agreement
      contradiction rate   0.367  [0.219, 0.545]    11 of 30
      error rate           0.027  [0.005, 0.138]    1 of 37

      ✗ accuracy 0.633 (must be at least 0.8)
      ✓ error rate 0.027 (must be at most 0.1)

    1 eval: 1 alert
    ----- stderr -----
    ");
}

#[test]
fn json_report_is_complete_and_deterministic() {
    let project = rated_project();
    let output = project.run(["eval", "agreement", "--all", "--format", "json"]);
    let report = parse_json(&output);
    assert_matches_schema("eval-agreement", &report);
    let eval = &report["evals"][0];
    assert_eq!(eval["counts"]["passed_positive"], 11);
    assert_eq!((&eval["version"], &eval["compared"], &report["alerts"]), (&2.into(), &30.into(), &0.into()));
    assert_eq!(eval["trend"]["weeks"][0]["week"], "2026-W45");
    assert_eq!(report["raters"]["common_traces"], 12);
    assert_eq!(project.run(["eval", "agreement", "--all", "--format", "json"]).stdout, output.stdout);
}

#[rstest]
// 30 compared traces are enough by default, but not for `atLeast: 50`.
#[case::held(&[], None, Some(0), Some(true))]
#[case::too_few(&["--agreement", r#"{"atLeast": 50}"#], None, Some(0), None)]
#[case::alert(&["--agreement", r#"{"accuracy": 0.95}"#], None, Some(1), Some(false))]
#[case::from_config(&[], Some(r#"{"agreement": {"accuracy": 0.95}}"#), Some(1), Some(false))]
#[case::flag_overrides_config(&["--agreement", "{}"], Some(r#"{"agreement": {"accuracy": 0.95}}"#), Some(0), Some(true))]
fn applies_thresholds(
    #[case] flags: &[&str],
    #[case] config: Option<&str>,
    #[case] code: Option<i32>,
    #[case] held: Option<bool>,
) {
    let project = rated_project();
    if let Some(config) = config {
        project.write("karat.json", config);
    }
    let arguments = [&["eval", "agreement", "refund", "--format", "json"], flags].concat();
    let output = project.run(arguments);
    assert_eq!(output.code, code, "{}", output.both());
    let report = parse_json(&output);
    assert_eq!(report["evals"][0]["checks"][0]["held"], Value::from(held), "{report}");
}

#[test]
fn reads_thresholds_from_the_environment() {
    let project = rated_project();
    let command = project.command(["eval", "agreement", "refund"]).env("KARAT_AGREEMENT", r#"{"errorRate": 0.01}"#);
    let output = command.run();
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("✗ error rate 0.027 (must be at most 0.01)"), "{}", output.stdout);
}

#[rstest]
#[case(&["eval", "agreement", "refunds"], 2, "did you mean 'eval_refund'?")]
#[case(&["eval", "agreement", "refund", "--version", "7"], 2, "version 7 of eval_refund not found in the store")]
#[case(&["eval", "agreement", "refund", "--agreement", "{\"acuracy\": 1}"], 2, "did you mean 'accuracy'?")]
#[case(&["eval", "agreement", "refund", "--agreement", "{\"accuracy\": 80}"], 2, "did you mean 0.8?")]
#[case(&["eval", "agreement"], 2, "missing the name of an eval")]
#[case(&["eval", "compare", "refund", "1", "1"], 2, "cannot compare version 1 with itself")]
#[case(&["eval", "compare", "1", "2"], 2, "for example: karat eval compare NAME 1 2")]
#[case(&["eval", "compare", "refund@1", "tone@2"], 2, "different evals: 'refund' and 'tone'")]
fn rejects_invalid_arguments(#[case] arguments: &[&str], #[case] code: i32, #[case] message: &str) {
    let output = rated_project().run(arguments.to_vec());
    assert_eq!(output.code, Some(code), "{}", output.both());
    assert!(output.stdout.is_empty() && output.stderr.contains(message), "{}", output.both());
}

#[test]
fn reports_nothing_to_compare_without_ratings() {
    let project = project();
    let none = project.run(["eval", "agreement", "--all"]);
    assert_eq!(none.code, Some(4), "{}", none.both());
    let store = ProjectStore::open(&project);
    let version = store.add_version("eval_tone", "code");
    store.add_trace("t", "Hello", "2026-11-10");
    store.add_verdict("eval_tone", version, "t", Some(true), "friendly");
    let output = project.run(["eval", "agreement", "tone"]);
    assert_eq!(output.code, Some(4));
    assert_snapshot!(output.filtered(), @"
    exit: 4
    ----- stdout -----
    eval_tone version 1
      1 trace: 0 compared with ratings, 0 neutral, 1 unrated, 0 errored
      nothing to compare: no judged trace is rated good or bad

      ⚠ accuracy: no data (must be at least 0.8)
      ⚠ error rate 0.000 (must be at most 0.1); too little data: 1 of 20

    1 eval: no alerts; too little data for 1
    ----- stderr -----
    run 'karat review' or 'karat feedback add' to rate traces
    ");
    let single = project.run(["eval", "compare", "tone"]);
    assert_eq!(single.code, Some(2));
    assert!(single.stderr.contains("eval_tone has only one version"), "{}", single.stderr);
    store.add_version("eval_tone", "other code");
    let nothing = project.run(["eval", "compare", "tone"]);
    assert_eq!(nothing.code, Some(4), "{}", nothing.both());
}

#[test]
fn compares_versions_on_the_same_traces() {
    let project = rated_project();
    let output = project.run(["eval", "compare", "refund", "--limit", "2"]);
    assert_eq!(output.code, Some(0));
    assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    eval_refund version 1 → 2
      37 traces judged by both, 31 of them rated (errors count as wrong)

      version    accuracy                  errors
      1           0.613  [0.438, 0.763]         1
      2           0.871  [0.711, 0.949]         1
      change     +0.258  10 better, 2 worse (p = 0.039)

    1 worse: the verdict matched the rating before
      t-28  passed → failed, good
        before  the word refund is in the answer
        now     the tool refund was called

    1 lost: the verdict became an error
      t-31  passed → errored, good
        before  the word refund is in the answer
        now     KeyError: 'refund'

    9 better: the verdict matches the rating now
      t-19  passed → failed, bad
        before  the word refund is in the answer
        now     the tool refund was called
      t-20  passed → failed, bad
        before  the word refund is in the answer
        now     the tool refund was called
      and 7 more (pass --limit 0 to show all)

    1 gained: the error became a verdict
      t-32  errored → passed, good
        before  KeyError: 'refund'
        now     the tool refund was called

    2 changed on neutral or unrated traces
      t-33  passed → failed, neutral
        before  the word refund is in the answer
        now     the tool refund was called
      t-34  passed → failed, neutral
        before  the word refund is in the answer
        now     the tool refund was called

    version 2 is better: the change is significant
    1 verdict lost to errors
    ----- stderr -----
    ");
    let same = project.run(["eval", "compare", "eval_refund@1", "eval_refund@2", "--limit", "2"]);
    assert_eq!(same.stdout, output.stdout);
}

#[test]
fn a_worse_version_fails() {
    let project = rated_project();
    let output = project.run(["eval", "compare", "refund", "2", "1", "--format", "json"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    let comparison = parse_json(&output);
    assert_matches_schema("eval-compare", &comparison);
    assert_eq!((&comparison["better"], &comparison["worse"]), (&2.into(), &10.into()));
    assert_eq!((&comparison["direction"], &comparison["common_traces"]), (&"worse".into(), &37.into()));
    assert_eq!(comparison["changed"].as_array().map(Vec::len), Some(14));
}

#[test]
fn a_missing_name_is_explained() {
    let output = project().run(["eval", "agreement"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(
        output.stderr.contains("hint: karat eval agreement NAME, or karat eval agreement --all"),
        "{}",
        output.stderr
    );
}
