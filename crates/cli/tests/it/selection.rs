//! Selection of cases.

use serde_json::{Value, json};

use crate::support::{newest_result, ok_case, project, script};
use karat_testkit::project::{Output, TempProject};

fn project_with_suites() -> TempProject {
    let labeled = |id: &str, difficulty: &str| {
        let mut case = ok_case(id, "m");
        case["difficulty"] = json!(difficulty);
        case
    };
    project()
        .file("karat.json", json!({"agentEndpoint": "scripted:a.json", "outputDir": "results"}))
        .file("a.json", script(&[("m", "ok"), ("bad", "no")]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m"), ok_case("gs-x-002", "bad")]))
        .file("evals/x.labeled.json", json!([labeled("ls-x-001", "edge"), labeled("ls-x-002", "ambiguous")]))
}

fn ids(output: &Output) -> Vec<String> {
    let document: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.both()));
    let suites = document["suites"].as_array().unwrap().iter();
    suites
        .flat_map(|suite| suite["cases"].as_array().unwrap())
        .map(|case| case["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn filters_are_combined() {
    let project = project_with_suites();
    let run = |arguments: &[&str]| project.run(["run", "--format", "json"].iter().chain(arguments).copied());
    assert_eq!(ids(&run(&["--id", "gs-x-001", "--id", "ls-x-002"])), ["gs-x-001", "ls-x-002"]);
    assert_eq!(ids(&run(&["--tier", "labeled"])), ["ls-x-001", "ls-x-002"]);
    assert_eq!(ids(&run(&["--difficulty", "edge"])), ["ls-x-001"]);
    assert_eq!(ids(&run(&["--grep", "^says b"])), ["gs-x-002"]);
    assert_eq!(ids(&run(&["--grep", "-001$", "--tier", "golden"])), ["gs-x-001"]);
    assert_eq!(ids(&run(&["evals/x.l*.json"])), ["ls-x-001", "ls-x-002"]);
}

#[test]
fn an_empty_selection_exits_with_4() {
    let project = project_with_suites();
    insta::assert_snapshot!(project.run(["run", "--id", "gs-x-003"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no case has the id 'gs-x-003'
    hint: did you mean 'gs-x-001'?
    ");
    assert_eq!(project.run(["run", "--grep", "nowhere"]).code, Some(4));
    assert_eq!(project.run(["run", "--tier", "regression"]).code, Some(4));
    assert_eq!(project.run(["run", "evals/*.none.json"]).code, Some(4));
    insta::assert_snapshot!(project.run(["run", "--tier", "golde"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: invalid value 'golde' for --tier
    hint: did you mean 'golden'?
    ");
    project.write("evals/empty.golden.json", json!([]));
    assert_eq!(project.run(["run", "evals/empty.golden.json"]).code, Some(4));
}

#[test]
fn only_failed_uses_the_newest_result_or_the_baseline() {
    let project = project_with_suites();
    assert_eq!(project.run(["run", "--only-failed"]).code, Some(2));
    assert_eq!(project.run(["run"]).code, Some(1));
    let run_id = newest_result(&project, "results")["runId"].as_str().unwrap().to_owned();
    let run =
        |arguments: &[&str]| project.run(["run", "--format", "json", "--only-failed"].iter().chain(arguments).copied());
    assert_eq!(ids(&run(&[])), ["gs-x-002"]);
    project.write("a.json", script(&[("m", "ok"), ("bad", "ok")]));
    assert_eq!(ids(&run(&[])), ["gs-x-002"]);
    assert_eq!(run(&[]).code, Some(4));
    assert_eq!(ids(&run(&["--baseline-run-id", &run_id])), ["gs-x-002"]);
}

/// A run of one case has no results for the others.
#[test]
fn only_failed_includes_cases_missing_from_a_partial_run() {
    let project = project_with_suites();
    assert_eq!(project.run(["run"]).code, Some(1));
    assert_eq!(project.run(["run", "--id", "gs-x-001"]).code, Some(0));
    assert_eq!(ids(&project.run(["run", "--only-failed", "--format", "json"])), ["gs-x-002"]);
}

/// Files of other tiers may be invalid.
#[test]
fn selects_tiers_before_reading_files() {
    let project = project_with_suites().file("evals/x.rubric.json", "[{\"id\": \"r\", \"rubric\": []}]");
    assert_eq!(project.run(["run", "--tier", "labeled"]).code, Some(0));
    let refused = project.run(["run"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("'rubric' needs at least one dimension"), "{}", refused.stderr);
}
