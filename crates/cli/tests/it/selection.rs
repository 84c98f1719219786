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
fn accepts_paths_as_a_flag() {
    let project = project_with_suites();
    let run = |arguments: &[&str]| project.run(["run", "--format", "json"].iter().chain(arguments).copied());
    assert_eq!(ids(&run(&["--eval", "evals/x.labeled.json"])), ["ls-x-001", "ls-x-002"]);
    let both = run(&["evals/x.golden.json", "--eval=evals/x.labeled.json", "--id", "gs-x-001", "--id", "ls-x-001"]);
    assert_eq!(ids(&both), ["gs-x-001", "ls-x-001"]);
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
    // A named run counts more than the baseline.
    let named = format!("--only-failed={run_id}");
    let output = project.run(["run", "--format", "json", &named, "--baseline", "latest"]);
    assert_eq!(ids(&output), ["gs-x-002"]);
    assert_eq!(project.run(["run", "--only-failed=nothing"]).code, Some(2));
}

#[test]
fn the_rerun_command_works_with_a_baseline() {
    let cases: Vec<Value> = (1..=7).map(|number| ok_case(&format!("gs-x-{number:03}"), &number.to_string())).collect();
    let agent = |failing: &str| {
        let numbers: Vec<String> = (1..=7).map(|number| number.to_string()).collect();
        let answer = |number: &str| if failing.contains(number) { "no" } else { "ok" };
        script(&numbers.iter().map(|number| (number.as_str(), answer(number))).collect::<Vec<_>>())
    };
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:a.json", "outputDir": "results"}))
        .file("a.json", agent("7"))
        .file("evals/x.golden.json", json!(cases));
    assert_eq!(project.run(["run"]).code, Some(1));
    let baseline = newest_result(&project, "results")["runId"].as_str().unwrap().to_owned();
    project.write("a.json", agent("123456"));
    let failed = project.run(["run", "--baseline", "latest"]);
    // The baseline is named by its id: `latest` is another run now.
    let command = format!("karat run --baseline {baseline} --only-failed=latest");
    assert!(failed.unwrapped_stderr().contains(&format!("to rerun what did not pass: {command}")), "{}", failed.stderr);
    let again = project.run(["run", "--baseline", &baseline, "--only-failed=latest", "--format", "json"]);
    assert_eq!(ids(&again), (1..=6).map(|number| format!("gs-x-{number:03}")).collect::<Vec<_>>());
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

#[test]
fn an_unmatched_glob_beside_another_path_is_an_error() {
    let project = project_with_suites();
    let output = project.run(["run", "evals/x.golden.json", "evals/*.none.json"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("no file matches 'evals/*.none.json'"), "{}", output.stderr);
}

#[test]
fn files_that_look_like_eval_files_are_not_ignored_silently() {
    let case = ok_case("gs-x-001", "m");
    let mut wrong_id = case.clone();
    wrong_id["Id"] = wrong_id.as_object_mut().unwrap().remove("id").unwrap();
    let project = project_with_suites()
        .file("evals/a.json", json!([wrong_id]))
        .file("evals/b.json", json!({"case": [case]}))
        .file("evals/c.gloden.json", json!({"cities": []}))
        .file("evals/d.golden.JSON", json!([case]))
        .file("evals/e.json", json!([]))
        .file("evals/f.golden.json", json!([]))
        .file("evals/data.json", json!({"cities": ["Paris"]}));
    for verb in ["run", "check"] {
        let stderr = project.run([verb]).stderr;
        for text in [
            "evals/a.json is ignored: its first case has no 'id'",
            "evals/b.json is ignored: it has 'case' instead of 'cases'",
            "evals/c.gloden.json is ignored: rename it to c.golden.json",
            "evals/d.golden.JSON is ignored: rename it to d.golden.json",
            "evals/e.json is ignored: it has no cases",
        ] {
            assert!(stderr.contains(text), "{verb}: {text}: {stderr}");
        }
        assert!(!stderr.contains("data.json"), "{stderr}");
    }
    assert!(project.run(["run"]).stderr.contains("evals/f.golden.json has no cases"));
}

#[test]
fn warns_about_tools_that_the_registry_lacks() {
    let mut case = ok_case("gs-x-001", "m");
    case["expect"]["toolsNotCalled"] = json!(["delte_city"]);
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:a.json", "toolRegistryPath": "tools.json"}))
        .file("a.json", script(&[("m", "ok")]))
        .file("tools.json", json!([{"name": "delete_city", "description": "Deletes a city.", "inputSchema": {}}]))
        .file("evals/x.golden.json", json!([case]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let message = "gs-x-001: the registry has no tool 'delte_city' (did you mean 'delete_city'?)";
    assert!(output.unwrapped_stderr().contains(message), "{}", output.stderr);
    let strict = project.run(["run", "--strict"]);
    assert_eq!(strict.code, Some(2), "{}", strict.both());
    assert!(strict.unwrapped_stderr().contains(message) && strict.stdout.is_empty(), "{}", strict.both());
}

/// As after an interruption.
#[test]
fn only_failed_selects_cases_that_did_not_run() {
    let project = project_with_suites();
    assert_eq!(project.run(["run", "--id", "gs-x-001"]).code, Some(0));
    let path = project.files_in("results", ".json").remove(0);
    let mut result: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    result["notRun"] = json!(["gs-x-002"]);
    std::fs::write(&path, result.to_string()).unwrap();
    let list = project.run(["run", "--only-failed", "--list"]).stdout;
    assert!(list.contains("gs-x-002") && list.ends_with("1 case in 1 file\n"), "{list}");
}

#[test]
fn an_empty_selection_names_its_flags() {
    let project = project_with_suites();
    let error = |arguments: &[&str]| {
        let output = project.run(["run"].iter().chain(arguments).copied());
        assert_eq!(output.code, Some(4), "{}", output.both());
        output.stderr
    };
    assert_eq!(error(&["--grep", "refund"]), "error: no case is selected by --grep 'refund'\n");
    assert_eq!(error(&["--tier", "regression"]), "error: no case is selected by --tier regression\n");
}
