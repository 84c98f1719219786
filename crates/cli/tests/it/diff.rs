//! `karat diff`, and baselines.

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::support::{case, newest_result, ok_case, project, script};

#[test]
fn lists_regressions_first() {
    let project = project()
        .file("before.json", script(&[("a", "ok"), ("b", "no"), ("c", "ok"), ("d", "ok")]))
        .file("now.json", json!({"replies": {"a": {"response": "no"}, "b": {"response": "ok"}, "c": {"error": "HTTP 500"}, "d": {"response": "ok"}}}))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), ok_case("gs-x-002", "b"), ok_case("gs-x-003", "c"), ok_case("gs-x-004", "d")]));
    project.run(["run", "--agent-endpoint", "scripted:before.json"]);
    let before = newest_result(&project, "evals/results")["runId"].as_str().unwrap().to_owned();
    let compared = project.run(["run", "--agent-endpoint", "scripted:now.json", "--baseline-run-id", &before]);
    assert_eq!(compared.code, Some(3));
    insta::assert_snapshot!(compared.filtered_stdout(), @"
    ═══ x — golden evals ══════════════════════════════════════════════
      1 regression since [RUN_ID]
      1 new pass: gs-x-002
      ✗ gs-x-001  says a                                           [TIME]
        → regression: responseContains: expected 'ok' in response but not found
          message  a
          answer   no
          calls    none
      ✓ gs-x-002  says b                                           [TIME]
      ! gs-x-003  says c                                           [TIME]
        → error: HTTP 500
      ✓ gs-x-004  says d                                           [TIME]
    ───────────────────────────────────────────────────────────────────
      2/4 passed | 1 failed | 1 errored | 0 skipped assertions | [TIME] total

    not passed:
      ✗ gs-x-001 (evals/x.golden.json:2): regression: responseContains: expected
        'ok' in response but not found
      ! gs-x-003 (evals/x.golden.json:26): HTTP 500
    ");
    let result = newest_result(&project, "evals/results");
    assert_eq!(result["regressions"], json!(["gs-x-001"]));
    assert_eq!(result["newPasses"], json!(["gs-x-002"]));
    let now = result["runId"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(project.run(["diff", &before, &now]).filtered(), @"
    exit: 3
    ----- stdout -----
    [RUN_ID] → [RUN_ID]

    x — golden evals of scripted:before.json → scripted:now.json
      1 regression
        gs-x-001  responseContains: expected 'ok' in response but not found
      1 new pass
        gs-x-002  says b
      1 without a verdict
        gs-x-003  HTTP 500
      1 still passing
      overall: 1 worse, 1 better: too few changes to tell a trend from chance (p = 1.000)

    ----- stderr -----
    ");
    let document: Value =
        serde_json::from_str(&project.run(["diff", &before, &now, "--format", "json"]).stdout).unwrap();
    assert_eq!((&document["regressions"], &document["newPasses"]), (&json!(1), &json!(1)));
    let schema: Value = serde_json::from_str(&project.run(["schema", "diff"]).stdout).unwrap();
    assert!(jsonschema::is_valid(&schema, &document), "{document:#}");
    assert_eq!(project.run(["diff", &before, &before]).code, Some(0));
    insta::assert_snapshot!(project.run(["diff", &before, "nothing"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'nothing' is neither a run in evals/results nor a result file
    hint: run 'karat runs' to list runs; 'latest', a unique prefix of an id or a
      path works too
    ");
}

/// The agent was down in the earlier run.
#[test]
fn a_run_without_verdicts_is_not_compared() {
    let project = project()
        .file("down.json", json!({"replies": {}, "otherwise": {"error": "HTTP 500"}}))
        .file("up.json", script(&[("a", "ok"), ("b", "no")]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), ok_case("gs-x-002", "b")]));
    project.run(["run", "--agent-endpoint", "scripted:down.json"]);
    project.run(["run", "--agent-endpoint", "scripted:up.json"]);
    insta::assert_snapshot!(project.run(["diff", "latest~1", "latest"]).filtered(), @"
    exit: 3
    ----- stdout -----
    [RUN_ID] → [RUN_ID]

    x — golden evals of scripted:down.json → scripted:up.json
      1 failed now, no verdict before
        gs-x-002  responseContains: expected 'ok' in response but not found
      1 passed now, no verdict before
        gs-x-001  says a
      overall: nothing to compare

    ----- stderr -----
    warning: nothing to compare: no case has a verdict in both runs
    ");
    let document: Value =
        serde_json::from_str(&project.run(["diff", "latest~1", "latest", "--format", "json"]).stdout).unwrap();
    assert_eq!(
        (&document["compared"], &document["suites"][0]["overall"]["verdict"]),
        (&json!(0), &json!("nothingToCompare"))
    );
}

#[test]
fn a_baseline_can_be_a_file_of_another_runner() {
    let foreign = json!({
        "runId": "r-1", "timestamp": "2026-01-01T00:00:00Z", "tier": "golden", "toolName": "x",
        "metadata": {"toolVersion": "1", "descriptionHash": "a", "registrySize": 1, "evalFileHash": "b"},
        "stalenessWarnings": [], "regressions": [], "newPasses": [],
        "cases": [{"id": "gs-x-001", "description": "d", "passed": true, "durationMs": 5}],
        "summary": {"totalCases": 1, "passed": 1, "failed": 0, "skippedAssertions": 0, "totalDurationMs": 5},
    });
    let project = project()
        .file("a.json", script(&[("m", "no")]))
        .file("baseline.json", foreign)
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run", "--agent-endpoint", "scripted:a.json", "--baseline", "baseline.json"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("1 regression since r-1"), "{}", output.stdout);
}

#[test]
fn a_baseline_with_equal_keys_is_refused() {
    let project =
        project().file("a.json", script(&[("m", "ok")])).file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let twice = [
        r#"{"runId": "r", "tier": "golden", "toolName": "x", "cases": [], "cases": []}"#,
        r#"{"runId": "r", "tier": "golden", "toolName": "x", "cases": [{"id": "gs-x-001", "passed": true, "passed": false}]}"#,
    ];
    for text in twice {
        project.write("baseline.json", text);
        let output =
            project.run(["run", "--no-store", "--agent-endpoint", "scripted:a.json", "--baseline", "baseline.json"]);
        assert_eq!(output.code, Some(2), "{}", output.both());
        assert!(output.stderr.contains("duplicate"), "{}", output.stderr);
    }
}

/// Two eval files can have the same tool, tier and ids.
#[test]
fn compares_with_the_baseline_of_the_same_eval_file() {
    let project = project()
        .file("a.json", script(&[("good", "ok"), ("bad", "no")]))
        .file("evals/one/x.golden.json", json!([ok_case("gs-x-001", "good")]))
        .file("evals/two/x.golden.json", json!([ok_case("gs-x-001", "bad")]));
    project.run(["run", "--agent-endpoint", "scripted:a.json"]);
    let before = newest_result(&project, "evals/results")["runId"].as_str().unwrap().to_owned();
    let again =
        project.run(["run", "--agent-endpoint", "scripted:a.json", "--baseline-run-id", &before, "--format", "json"]);
    let document: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&document["totals"]["regressions"], &document["totals"]["newPasses"]), (&json!(0), &json!(0)));
    let now = document["runId"].as_str().unwrap();
    let diff: Value = serde_json::from_str(&project.run(["diff", &before, now, "--format", "json"]).stdout).unwrap();
    assert_eq!((&diff["regressions"], &diff["newPasses"]), (&json!(0), &json!(0)));
}

#[test]
fn a_baseline_can_be_a_folder() {
    let project = project()
        .file("before.json", script(&[("a", "ok"), ("b", "ok")]))
        .file("now.json", script(&[("a", "ok"), ("b", "no")]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a")]))
        .file("evals/y.golden.json", json!([ok_case("gs-y-001", "b")]));
    project.run(["run", "--agent-endpoint", "scripted:before.json", "--output-dir", "saved"]);
    let output = project.run(["run", "--agent-endpoint", "scripted:now.json", "--baseline", "saved"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("1 regression since"), "{}", output.stdout);
    assert!(output.stdout.find("1 regression since").unwrap() < output.stdout.find("✗ gs-y-001  says b").unwrap());
}

/// The end of a message has the actual value, so it must not be truncated.
#[test]
fn shows_messages_in_full_and_agrees_with_its_statistics() {
    let expect = json!({"toolsCalled": ["get_shipping_status"]});
    let cases: Vec<Value> = (1..=2)
        .map(|index| case(&format!("gs-get_shipping_status-00{index}"), &index.to_string(), expect.clone()))
        .collect();
    let reply = |tool: &str| json!({"response": "ok", "toolCalls": [{"name": tool, "params": {}}]});
    let agent = |tool: &str| json!({"replies": {"1": reply(tool), "2": reply(tool)}});
    let project = project().file("agent.json", agent("get_shipping_status")).file("evals/x.golden.json", json!(cases));
    let run = || project.run(["run", "--agent-endpoint", "scripted:agent.json"]).code;
    assert_eq!(run(), Some(0));
    project.write("agent.json", agent("cancel_the_order_that_was_not_meant"));
    assert_eq!(run(), Some(1));
    insta::assert_snapshot!(project.run(["diff"]).filtered(), @r"
    exit: 1
    ----- stdout -----
    [RUN_ID] → [RUN_ID]

    x — golden evals
      2 regressions
        gs-get_shipping_status-001  toolsCalled: expected ['get_shipping_status']
                                    but got ['cancel_the_order_that_was_not_meant']
        gs-get_shipping_status-002  toolsCalled: expected ['get_shipping_status']
                                    but got ['cancel_the_order_that_was_not_meant']
      0 still passing
      overall: 2 worse, 0 better: too few changes to tell a trend from chance (p = 0.500)

    ----- stderr -----
    ");
}

#[test]
fn accepts_run_names_in_all_commands() {
    let project = project()
        .file("agent.json", script(&[("a", "ok")]))
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a")]));
    assert_eq!(project.run(["run"]).code, Some(0));
    project.write("agent.json", script(&[("a", "no")]));
    let output = project.run(["run", "--baseline", "latest"]);
    assert!(output.stdout.contains("1 regression since"), "{}", output.both());
    let id = newest_result(&project, "evals/results")["runId"].as_str().unwrap().to_owned();
    for name in ["latest", &id, &id[..35]] {
        for arguments in [
            vec!["run", "--baseline", name, "--no-store"],
            vec!["run", "--baseline-run-id", name, "--no-store"],
            vec!["diff", name, name],
            vec!["show", name],
            vec!["regress", "add", "--from-run", name, "--case", "gs-x-001", "--bug-ref", "1", "--dry-run"],
        ] {
            let output = project.run(arguments.clone());
            assert!(matches!(output.code, Some(0 | 1)), "{arguments:?}: {}", output.both());
        }
    }
    let unknown = project.run(["run", "--baseline", "nothing"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.unwrapped_stderr().contains("'nothing' is neither a run in evals/results nor a result file"),
        "{}",
        unknown.stderr
    );
}

/// Three cases that pass in the folder `baseline`.
fn project_with_baseline() -> TempProject {
    let project = project()
        .file("agent.json", json!({"replies": {}, "otherwise": {"response": "ok"}}))
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), ok_case("gs-x-002", "b")]))
        .file("evals/y.golden.json", json!([ok_case("gs-y-001", "c")]));
    assert_eq!(project.run(["run", "--output-dir", "baseline"]).code, Some(0));
    project
}

#[test]
fn a_result_lists_failures_of_the_baseline_that_remain() {
    let project = project()
        .file("agent.json", script(&[("a", "no"), ("b", "ok")]))
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), ok_case("gs-x-002", "b")]));
    assert_eq!(project.run(["run"]).code, Some(1));
    project.write("agent.json", script(&[("a", "no"), ("b", "no")]));
    let output = project.run(["run", "--baseline", "latest", "--report", "github=commands.txt"]);
    assert_eq!(output.code, Some(1));
    let result = newest_result(&project, "evals/results");
    assert_eq!((&result["regressions"], &result["stillFailing"]), (&json!(["gs-x-002"]), &json!(["gs-x-001"])));
    let commands = project.read("commands.txt");
    let levels: Vec<&str> = commands.lines().map(|line| line.split_once(' ').unwrap().0).collect();
    assert_eq!(levels, ["::error", "::warning", "::notice"], "{commands}");
}

#[test]
fn missing_cases_of_the_baseline_are_reported() {
    let project = project_with_baseline();
    let gates = ["--gates", "{\"maxRegressions\": 0}"];
    let run = |arguments: &[&str]| {
        let output = project.run(["run", "--baseline", "baseline"].iter().chain(&gates).chain(arguments).copied());
        // The gate is about regressions only.
        assert_eq!(output.code, Some(0), "{}", output.both());
        output
    };
    let missing = |arguments: &[&str]| -> Value {
        let output = run(&[&["--format", "json"], arguments].concat());
        serde_json::from_str::<Value>(&output.stdout).unwrap()["totals"]["baselineMissing"].clone()
    };
    assert_eq!(missing(&[]), Value::Null);
    assert!(!run(&[]).stdout.contains("of the baseline"));
    assert_eq!(missing(&["--id", "gs-x-001"]), json!({"notRun": ["gs-y-001", "gs-x-002"], "removed": []}));
    assert_eq!(missing(&["evals/x.golden.json"]), json!({"notRun": ["gs-y-001"], "removed": []}));

    let skipped = json!({"id": "gs-x-002", "input": {"message": "b"}, "expect": {}, "skip": "later"});
    project.write("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), skipped]));
    assert_eq!(missing(&[]), Value::Null);
    project.write("evals/x.golden.json", json!([ok_case("gs-x-001", "a")]));
    std::fs::remove_file(project.path().join("evals/y.golden.json")).unwrap();
    assert_eq!(missing(&[]), json!({"notRun": [], "removed": ["gs-y-001", "gs-x-002"]}));
    let output = run(&["--report", "markdown=summary.md"]);
    let text = "2 cases of the baseline are no longer in the eval files: gs-y-001, gs-x-002";
    assert!(output.stdout.contains(text), "{}", output.stdout);
    assert!(project.read("summary.md").contains("2 cases of the baseline are no longer in the eval files"));
    let result = newest_result(&project, "evals/results");
    assert_eq!(result["baselineMissing"], json!({"notRun": [], "removed": ["gs-x-002"]}));
}

#[test]
fn missing_cases_of_the_baseline_are_reported_for_merged_shards() {
    let project = project_with_baseline();
    project.write("evals/x.golden.json", json!([ok_case("gs-x-001", "a")]));
    for shard in ["1/2", "2/2"] {
        let shards = ["run", "--quiet", "--output-dir", "shards", "--shard", shard, "evals/x.golden.json"];
        assert_eq!(project.run(shards).code, Some(0));
    }
    let merge = ["runs", "merge", "shards", "--baseline", "baseline", "--format", "json"];
    let merged: Value = serde_json::from_str(&project.run(merge).stdout).unwrap();
    assert_eq!(merged["totals"]["baselineMissing"], json!({"notRun": ["gs-y-001"], "removed": ["gs-x-002"]}));
}

#[test]
fn compares_folders_of_results() {
    let project = project_with_baseline();
    project.write("agent.json", json!({"replies": {"b": {"response": "no"}}, "otherwise": {"response": "ok"}}));
    assert_eq!(project.run(["run"]).code, Some(1));
    for arguments in
        [&["diff", "baseline"][..], &["diff", "baseline", "latest"], &["diff", "baseline", "evals/results"]]
    {
        let output = project.run(arguments);
        assert_eq!(output.code, Some(1), "{}", output.both());
        assert!(output.stdout.contains("1 regression\n    gs-x-002"), "{}", output.stdout);
        assert!(!output.stdout.contains("added") && !output.stdout.contains("removed"), "{}", output.stdout);
    }
    std::fs::create_dir(project.path().join("empty")).unwrap();
    let output = project.run(["diff", "empty"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("the folder 'empty' contains no results"), "{}", output.stderr);
}
