//! Several agents in one run.

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::support::{ok_case, project};

const MATRIX: &str = "scripted:a.json,scripted:b.json";

/// Creates a project with an expensive agent that passes all cases and a cheap one that fails a case.
fn two_agents() -> TempProject {
    let reply = |response: &str, cost: f64, delay: u64| json!({"response": response, "usage": {"costUsd": cost}, "delayMs": delay});
    project()
        .file("karat.json", json!({"agentEndpoint": "scripted:other.json", "outputDir": "results"}))
        .file(
            "a.json",
            json!({"replies": {"m": reply("ok", 0.02, 150), "n": reply("ok", 0.02, 150), "o": reply("ok", 0.02, 150)}}),
        )
        .file(
            "b.json",
            json!({"replies": {"m": reply("ok", 0.001, 0), "n": reply("no", 0.001, 0), "o": reply("ok", 0.001, 0)}}),
        )
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m"), ok_case("gs-x-002", "n")]))
        .file("evals/y.labeled.json", json!([ok_case("ls-y-001", "o")]))
}

#[test]
fn shows_agents_side_by_side() {
    let project = two_agents();
    let output = project.command(["run", "--matrix", MATRIX]).env("COLUMNS", "80").run();
    insta::assert_snapshot!(output.filtered(), @"
    exit: 1
    ----- stdout -----
    ═══ 2 agents — 3 cases ════════════════════════════════════════════
                     scripted:a.json  scripted:b.json
    x — golden evals
      gs-x-001                    ✓                ✓
      gs-x-002                    ✓                ✗
    y — labeled evals
      ls-y-001                    ✓                ✓
    ───────────────────────────────────────────────────────────────────
      pass rate                100%*           66.7%
      cost                  $0.0600         $0.00300*
      cost per pass         $0.0200         $0.00150*
      latency p50            [TIME]             [TIME]*
      latency p95            [TIME]             [TIME]*
      * the best value of its row
      best value: scripted:a.json, $0.0200 per passed case at a pass rate of 100%; a
        cheaper agent passes less often

      gs-x-002  says n
        ✗ scripted:b.json: responseContains: expected 'ok' in response but not found

    4 suites: 5/6 passed | 1 failed | 0 skipped assertions
    ----- stderr -----
    run [RUN_ID]: 4 result files in results
    to rerun what did not pass:
      karat run --matrix scripted:a.json,scripted:b.json --id gs-x-002
    ");
    insta::assert_snapshot!(project.run(["run", "--matrix", MATRIX, "--quiet", "--ascii", "-j", "4"]).filtered(), @"
    exit: 1
    ----- stdout -----
    === 2 agents - 3 cases ============================================
                     scripted:a.json  scripted:b.json
    x - golden evals
      gs-x-002                   ok             FAIL
    -------------------------------------------------------------------
      pass rate                100%*           66.7%
      cost                  $0.0600         $0.00300*
      cost per pass         $0.0200         $0.00150*
      latency p50            [TIME]             [TIME]*
      latency p95            [TIME]             [TIME]*
      * the best value of its row
      best value: scripted:a.json, $0.0200 per passed case at a pass rate of 100%; a
        cheaper agent passes less often

      gs-x-002  says n
        FAIL scripted:b.json: responseContains: expected 'ok' in response but not
             found

    4 suites: 5/6 passed | 1 failed | 0 skipped assertions
    ----- stderr -----
    ");
}

#[test]
fn writes_results_per_agent() {
    let project = two_agents();
    let output = project.run(["run", "--matrix", MATRIX, "--format", "json", "-j", "8"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let run_id = document["runId"].as_str().unwrap();
    let mut names: Vec<String> = project
        .files_in("results", ".json")
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().replace(run_id, "ID"))
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "x-golden-scripted-a.json-ID.json",
            "x-golden-scripted-b.json-ID.json",
            "y-labeled-scripted-a.json-ID.json",
            "y-labeled-scripted-b.json-ID.json",
        ]
    );
    let result = project.read_json(&format!("results/x-golden-scripted-b.json-{run_id}.json"));
    assert_eq!(result["agentEndpoint"], "scripted:b.json");
    assert_eq!(result["summary"]["passed"], 1);
    let suites: Vec<(&str, &str)> = document["suites"]
        .as_array()
        .unwrap()
        .iter()
        .map(|suite| (suite["agentEndpoint"].as_str().unwrap(), suite["toolName"].as_str().unwrap()))
        .collect();
    let expected =
        [("scripted:a.json", "x"), ("scripted:a.json", "y"), ("scripted:b.json", "x"), ("scripted:b.json", "y")];
    assert_eq!(suites, expected);
    let matrix = &document["matrix"];
    assert_eq!(matrix["bestValue"], "scripted:a.json", "b is cheaper, but clearly worse");
    let figures = |agent: usize| {
        let figures = &matrix["agents"][agent];
        ["passed", "failed", "errored", "passRate", "costUsd"].map(|key| figures[key].clone())
    };
    assert_eq!(figures(0).map(|value| value.to_string()), ["3", "0", "0", "1.0", "0.06"]);
    assert_eq!(figures(1).map(|value| value.to_string()), ["2", "1", "0", "0.6666666666666666", "0.003"]);
    assert!(matrix["agents"][0]["latencyP95Ms"].as_u64().unwrap() >= 150, "{matrix}");
    let row = &matrix["rows"][1];
    assert_eq!((&row["id"], &row["path"]), (&json!("gs-x-002"), &json!("evals/x.golden.json")));
    assert_eq!(row["cells"][0]["outcome"], "passed");
    assert_eq!(row["cells"][1]["reason"], "responseContains: expected 'ok' in response but not found");
}

#[test]
fn a_single_agent_is_an_ordinary_run() {
    let project = two_agents();
    let output = project.run(["run", "--matrix", "scripted:a.json", "--format", "json"]);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(document.get("matrix"), None);
    let names: Vec<_> = project.files_in("results", ".json");
    assert!(names.iter().all(|path| !path.to_string_lossy().contains("scripted")), "{names:?}");
}

#[test]
fn diff_compares_results_of_the_same_agent() {
    let project = two_agents().file("c.json", json!({"replies": {}, "otherwise": {"response": "no"}}));
    project.run(["run", "--matrix", MATRIX, "evals/x.golden.json"]);
    project.run(["run", "--matrix", "scripted:b.json,scripted:c.json", "evals/x.golden.json"]);
    insta::assert_snapshot!(project.run(["diff", "latest~1", "latest"]).filtered(), @"
    exit: 0
    ----- stdout -----
    [RUN_ID] → [RUN_ID]

    x — golden evals of scripted:b.json
      1 still failing
        gs-x-002  responseContains: expected 'ok' in response but not found
      1 still passing
      overall: unchanged

    x — golden evals of scripted:c.json
      2 added
        gs-x-001  responseContains: expected 'ok' in response but not found
        gs-x-002  responseContains: expected 'ok' in response but not found
      overall: nothing to compare

    x — golden evals of scripted:a.json
      2 not run now
        gs-x-001  says m
        gs-x-002  says n
      overall: nothing to compare

    ----- stderr -----
    ");
}

#[test]
fn only_failed_reruns_a_case_with_all_agents() {
    let project = two_agents();
    assert_eq!(project.run(["run", "--matrix", MATRIX]).code, Some(1));
    let output = project.run(["run", "--matrix", MATRIX, "--only-failed", "--format", "json"]);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let rows = document["matrix"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["id"], "gs-x-002");
    assert_eq!(document["totals"]["cases"], 2);
}

/// Returns the agents of the run's suites.
fn agents_of_run(project: &TempProject, arguments: &[&str], variable: Option<(&str, &str)>) -> Vec<String> {
    let mut command = project.command([&["run", "--format", "json", "evals/y.labeled.json"], arguments].concat());
    if let Some((name, value)) = variable {
        command = command.env(name, value);
    }
    let output = command.run();
    let document: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.both()));
    let suites = document["suites"].as_array().unwrap();
    suites.iter().map(|suite| suite["agentEndpoint"].as_str().unwrap().replace("scripted:", "")).collect()
}

#[test]
fn flags_override_variables_and_variables_override_the_config() {
    let project = two_agents();
    let variable = Some(("KARAT_MATRIX", "scripted:b.json, scripted:a.json"));
    assert_eq!(agents_of_run(&project, &[], variable), ["b.json", "a.json"]);
    assert_eq!(agents_of_run(&project, &["--matrix", MATRIX], variable), ["a.json", "b.json"]);
    assert_eq!(agents_of_run(&project, &["--agent-endpoint", "scripted:b.json"], variable), ["b.json"]);
    project.write("karat.json", json!({"matrix": ["scripted:a.json", "scripted:b.json"], "outputDir": "results"}));
    assert_eq!(agents_of_run(&project, &[], None), ["a.json", "b.json"]);
    assert_eq!(agents_of_run(&project, &[], Some(("KARAT_AGENT_ENDPOINT", "scripted:b.json"))), ["b.json"]);
}

#[test]
fn rejects_invalid_matrices() {
    let project = two_agents();
    let error = |arguments: &[&str]| {
        let output = project.run([&["run"], arguments].concat());
        assert_eq!(output.code, Some(2), "{}", output.both());
        output.filtered_stderr().lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(error(&["--matrix", "scripted:a.json,,x"]), "error: agent 2 of 'matrix' is empty");
    assert_eq!(error(&["--matrix", "a, b ,a"]), "error: duplicate agent 'a' in 'matrix'");
    assert!(error(&["--matrix", "scripted:a.json,unknown"]).starts_with("error: 'unknown' is not a valid agent"));
    assert!(error(&["--matrix", "a", "--agent-endpoint", "b"]).contains("cannot be used with"));
    project.write("karat.json", json!({"matrix": []}));
    assert_eq!(error(&[]), "error: 'matrix' has no agents");
    project.write("karat.json", json!({"matrix": ["a"], "agentEndpoint": "b"}));
    assert_eq!(error(&[]), "error: karat.json has both 'matrix' and 'agentEndpoint': keep one");
}

#[test]
fn reports_name_the_agent() {
    let project = two_agents();
    project.run([
        "run",
        "--matrix",
        MATRIX,
        "--report",
        "junit=r.xml",
        "--report",
        "markdown=r.md",
        "--report",
        "github=r.txt",
    ]);
    assert!(project.read("r.xml").contains("name=\"evals/x.golden.json (scripted:b.json)\""));
    assert!(project.read("r.md").contains("### Agents"));
    assert!(project.read("r.txt").contains("(scripted%3Ab.json)"), "{}", project.read("r.txt"));
}
