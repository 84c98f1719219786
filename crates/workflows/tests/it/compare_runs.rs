use karat_core::diff::Change;
use karat_workflows::ErrorKind;
use karat_workflows::compare_runs::{Request, compare_runs};
use serde_json::{Value, json};

use crate::project::TestProject;

fn result(run_id: &str, tool: &str, cases: &[(&str, bool)]) -> Value {
    let case = |(id, passed): &(&str, bool)| json!({"id": id, "passed": passed});
    let cases: Vec<Value> = cases.iter().map(case).collect();
    json!({"runId": run_id, "tier": "golden", "toolName": tool, "cases": cases})
}

fn request(before: &str, now: &str) -> Request {
    Request { before: before.to_owned(), now: now.to_owned() }
}

#[test]
fn compares_runs_suite_by_suite() {
    let project = TestProject::new()
        .file("evals/results/x-golden-1.json", result("run-1", "x", &[("a", true), ("b", false)]))
        .file("evals/results/y-golden-1.json", result("run-1", "y", &[("c", true)]))
        .file("evals/results/x-golden-2.json", result("run-2", "x", &[("a", false), ("b", true)]));
    let compared = compare_runs(&request("run-1", "run-2"), &project.context()).unwrap();
    assert_eq!((compared.regressions, compared.new_passes), (1, 1));
    let suites: Vec<(&str, Change)> =
        compared.suites.iter().map(|suite| (suite.tool_name.as_str(), suite.cases[0].change)).collect();
    assert_eq!(suites, [("x", Change::Regression), ("y", Change::Removed)]);
    let error = compare_runs(&request("run-1", "run-3"), &project.context()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[test]
fn compares_two_files_of_different_suites() {
    let project = TestProject::new()
        .file("before.json", result("1", "x", &[("a", true)]))
        .file("now.json", result("2", "y", &[("a", false)]));
    let compared = compare_runs(&request("before.json", "now.json"), &project.context()).unwrap();
    assert_eq!((compared.suites.len(), compared.regressions), (1, 1));
}
