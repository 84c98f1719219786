//! `karat diff`, and baselines.

use serde_json::{Value, json};

use crate::support::{newest_result, ok_case, project, script};

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
        ✗ gs-x-001
      1 new pass: gs-x-002
      ✗ gs-x-001  says a                                            [TIME]
        → responseContains: expected 'ok' in response but not found
      ✓ gs-x-002  says b                                            [TIME]
      ! gs-x-003  says c                                            [TIME]
        → error: HTTP 500
      ✓ gs-x-004  says d                                            [TIME]
    ───────────────────────────────────────────────────────────────────
      2/4 passed | 1 failed | 1 errored | 0 skipped assertions | [TIME] total
    ");
    let result = newest_result(&project, "evals/results");
    assert_eq!(result["regressions"], json!(["gs-x-001"]));
    assert_eq!(result["newPasses"], json!(["gs-x-002"]));
    let now = result["runId"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(project.run(["diff", &before, &now]).filtered(), @"
    exit: 3
    ----- stdout -----
    x — golden evals
      1 regression
        gs-x-001  responseContains: expected 'ok' in response but not found
      1 new pass
        gs-x-002  says b
      1 without a verdict
        gs-x-003  HTTP 500
      1 still passing
      overall: not enough data (1 worse, 1 better, p = 1.000)

    ----- stderr -----
    ");
    let document: Value =
        serde_json::from_str(&project.run(["diff", &before, &now, "--format", "json"]).stdout).unwrap();
    assert_eq!((&document["regressions"], &document["newPasses"]), (&json!(1), &json!(1)));
    assert_eq!(project.run(["diff", &before, &before]).code, Some(0));
    insta::assert_snapshot!(project.run(["diff", &before, "nothing"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'nothing' is neither a result file nor a run in [DIR]/evals/results
    ");
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
