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
    Request { before: Some(before.to_owned()), now: Some(now.to_owned()) }
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

/// A result of `evals/x.golden.json` with a start time and an agent.
fn timed(run_id: &str, second: u8, agent: &str, passed: bool) -> Value {
    // The cases come last, as in result files: runs are listed without reading them.
    json!({
        "runId": run_id,
        "timestamp": format!("2026-01-01T00:00:0{second}Z"),
        "tier": "golden",
        "toolName": "x",
        "agentEndpoint": agent,
        "metadata": {"evalFile": "evals/x.golden.json", "evalFileHash": "h"},
        "cases": [{"id": "a", "passed": passed}],
    })
}

#[test]
fn compares_the_last_two_comparable_runs() {
    let project = TestProject::new()
        .file("evals/results/1.json", timed("aaa-1", 1, "one", true))
        .file("evals/results/2.json", timed("aab-2", 2, "two", true))
        .file("evals/results/3.json", timed("aac-3", 3, "one", false));
    let compare = |before: Option<&str>, now: Option<&str>| {
        let request = Request { before: before.map(str::to_owned), now: now.map(str::to_owned) };
        let compared = compare_runs(&request, &project.context());
        compared.map(|compared| (compared.before_run_id, compared.now_run_id))
    };
    let ids = |before: &str, now: &str| (before.to_owned(), now.to_owned());
    assert_eq!(compare(None, None).unwrap(), ids("aaa-1", "aac-3"));
    assert_eq!(compare(Some("latest~1"), None).unwrap(), ids("aab-2", "aac-3"));
    assert_eq!(compare(Some("aaa"), Some("aab")).unwrap(), ids("aaa-1", "aab-2"));
    assert_eq!(compare(Some("evals/results/1.json"), Some("latest")).unwrap(), ids("aaa-1", "aac-3"));
    let error = compare(None, Some("aab-2")).unwrap_err();
    assert_eq!(error.message, "no run before aab-2 has the same eval files and agent");
    let error = compare(Some("aa"), None).unwrap_err();
    assert_eq!(error.message, "ambiguous run id: several runs begin with 'aa'");
    let error = compare(Some("latest~3"), None).unwrap_err();
    assert_eq!(error.message, "no run 'latest~3': evals/results has 3 runs");
}

#[test]
fn a_whole_run_is_not_compared_with_a_shard() {
    let Value::Object(whole) = timed("aab-2", 2, "one", true) else { panic!("a result is an object") };
    // As in result files, before the cases.
    let mut shard = json!({"shard": {"number": 1, "count": 2}});
    whole.into_iter().for_each(|(key, value)| shard[key] = value);
    let project = TestProject::new()
        .file("evals/results/1.json", timed("aaa-1", 1, "one", true))
        .file("evals/results/2.json", shard)
        .file("evals/results/3.json", timed("aac-3", 3, "one", false));
    let compared = compare_runs(&Request { before: None, now: None }, &project.context()).unwrap();
    assert_eq!((compared.before_run_id.as_str(), compared.now_run_id.as_str()), ("aaa-1", "aac-3"));
}
