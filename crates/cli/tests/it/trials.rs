//! Trials, gates, and comparisons that separate regressions from flakiness.

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use serde_json::{Value, json};

use crate::support::{newest_result, ok_case, only_result, project};

/// Returns a script with a step for each letter: `p` passes, `f` fails, `e` is an HTTP error.
fn steps(letters: &str) -> Value {
    let step = |letter| match letter {
        'p' => json!({"response": "ok", "usage": {"costUsd": 0.01}}),
        'f' => json!({"response": "no", "usage": {"costUsd": 0.01}}),
        _ => json!({"status": 500, "raw": "boom"}),
    };
    json!({"sequence": letters.chars().map(step).collect::<Vec<_>>()})
}

fn project_with_cases() -> TempProject {
    project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), ok_case("gs-x-002", "b")]))
}

/// Removes the padding before times, which depends on their width.
fn normalise_padding(text: &str) -> String {
    let line = |line: &str| match line.strip_suffix("[TIME]") {
        Some(before) => format!("{} [TIME]\n", before.trim_end()),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Runs two cases with five trials and returns the run id.
fn run_five_trials(project: &TempProject, server: &ScriptedServer, first: &str, second: &str) -> String {
    server.reset(json!({"a": steps(first), "b": steps(second)}));
    project.run(["run", "--trials", "5", "--agent-endpoint", &server.endpoint()]);
    newest_result(project, "evals/results")["runId"].as_str().unwrap().to_owned()
}

#[test]
fn marks_flaky_cases() {
    let server = ScriptedServer::start(json!({"a": steps("ppfpf"), "b": steps("ppppp")}));
    let project = project_with_cases();
    let output = project.run(["run", "--trials", "5", "--agent-endpoint", &server.endpoint()]);
    insta::assert_snapshot!(normalise_padding(&output.filtered()), @"
    exit: 1
    ----- stdout -----
    ═══ x — golden evals ══════════════════════════════════════════════
      ✗ gs-x-001  says a                              3/5 flaky [TIME]
        → 2 of 5 trials failed: responseContains: expected 'ok' in response but not
          found
          message  a
          answer   no
          calls    none
      ✓ gs-x-002  says b                              5/5 [TIME]
    ───────────────────────────────────────────────────────────────────
      1/2 passed | 1 failed | 0 skipped assertions | [TIME] total | $0.100
      8/10 trials passed (80%, 95% interval 49–94%) | 1 flaky

    not passed:
      ✗ gs-x-001 (evals/x.golden.json:2): 2 of 5 trials failed: responseContains:
        expected 'ok' in response but not found

    ----- stderr -----
    run [RUN_ID]: 1 result file in evals/results
    to rerun what did not pass:
      karat run --trials 5 --agent-endpoint http://127.0.0.1:[PORT]/chat --id gs-x-001
    ");
    assert_eq!(server.request_count(), 10);
    let result = only_result(&project, "evals/results");
    let schema: Value = serde_json::from_str(&project.run(["schema", "result"]).stdout).unwrap();
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&result).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    let trials = &result["cases"][0]["trials"];
    assert_eq!((&trials["passed"], &trials["failed"], &trials["flaky"]), (&json!(3), &json!(2), &json!(true)));
    assert_eq!(trials["passRate"], json!(0.6));
    let ks: Vec<&Value> = trials["passAt"].as_array().unwrap().iter().map(|at| &at["k"]).collect();
    assert_eq!(ks, [&json!(1), &json!(2), &json!(4), &json!(5)]);
    assert_eq!(trials["tries"].as_array().map(Vec::len), Some(5));
    assert_eq!(result["summary"]["trials"]["total"], json!(10));
    assert_eq!(result["summary"]["trials"]["flaky"], json!(1));
    let cost = result["summary"]["estimatedCostUsd"].as_f64().unwrap();
    assert!((cost - 0.1).abs() < 1e-9, "{cost}");
}

#[test]
fn aligns_columns_in_ascii() {
    let server = ScriptedServer::start(json!({"a": steps("ppepf"), "b": steps("fffff")}));
    let output = project_with_cases().run(["run", "--trials=5", "--ascii", "--agent-endpoint", &server.endpoint()]);
    insta::assert_snapshot!(normalise_padding(&output.filtered_stdout()), @"
    === x - golden evals ==============================================
      ERR  gs-x-001  says a                           3/5 flaky [TIME]
        -> error: 1 of 5 trials errored, 1 failed: the agent returned HTTP 500
           Internal Server Error: boom
      FAIL gs-x-002  says b                           0/5 [TIME]
        -> 5 of 5 trials failed: responseContains: expected 'ok' in response but not
           found
          message  b
          answer   no
          calls    none
    -------------------------------------------------------------------
      0/2 passed | 1 failed | 1 errored | 0 skipped assertions | [TIME] total
      at least $0.0900
      3/10 trials passed, 1 errored (33% of 9 verdicts, 95% interval 12-65%)
      1 flaky

    not passed:
      FAIL gs-x-002 (evals/x.golden.json:14): 5 of 5 trials failed:
           responseContains: expected 'ok' in response but not found
      ERR  gs-x-001 (evals/x.golden.json:2): 1 of 5 trials errored, 1 failed: the
           agent returned HTTP 500 Internal Server Error: boom
    ");
    assert!(output.stdout.is_ascii(), "{}", output.stdout);
}

#[test]
fn gates_decide_the_exit_code() {
    let server = ScriptedServer::start(json!({"a": steps("ppppf"), "b": steps("ppppp")}));
    let config = json!({
        "agentEndpoint": server.endpoint(), "trials": 5,
        "gates": {"passRate": 0.9, "maxCostUsd": 0.1, "p95LatencyMs": 60000},
    });
    let project = project_with_cases().file("karat.json", config);
    let held = project.run(["run", "--report", "markdown=held.md"]);
    insta::assert_snapshot!(normalise_padding(&held.filtered()), @"
    exit: 0
    ----- stdout -----
    ═══ x — golden evals ══════════════════════════════════════════════
      ✗ gs-x-001  says a                              4/5 flaky [TIME]
        → 1 of 5 trials failed: responseContains: expected 'ok' in response but not
          found
          message  a
          answer   no
          calls    none
      ✓ gs-x-002  says b                              5/5 [TIME]
    ───────────────────────────────────────────────────────────────────
      1/2 passed | 1 failed | 0 skipped assertions | [TIME] total | $0.100
      9/10 trials passed (90%, 95% interval 60–98%) | 1 flaky

    not passed:
      ✗ gs-x-001 (evals/x.golden.json:2): 1 of 5 trials failed: responseContains:
        expected 'ok' in response but not found

    gates:
      ✓ passRate      0.9, at least 0.9
      ✓ maxCostUsd    $0.1, at most $0.1
      ✓ p95LatencyMs  [TIME], at most [TIME]
    ----- stderr -----
    run [RUN_ID]: 1 result file in evals/results
    to rerun what did not pass: karat run --report 'markdown=held.md' --id gs-x-001
    ");
    let page = project.read("held.md");
    assert!(page.starts_with("## ✅ karat: 1/2 passed, 1 failed, 9/10 trials passed (90%, "), "{page}");
    assert!(page.contains("- ✅ passRate: 0.9, at least 0.9\n"), "{page}");

    server.reset(json!({"a": steps("ppppf"), "b": steps("pppfp")}));
    let broken = project.run(["run", "--format", "json", "--report", "markdown=broken.md"]);
    assert_eq!(broken.code, Some(1), "{}", broken.both());
    let document: Value = serde_json::from_str(&broken.stdout).unwrap();
    let gate = &document["totals"]["gates"][0];
    assert_eq!(gate, &json!({"gate": "passRate", "limit": 0.9, "actual": 0.8, "held": false}));
    let page = project.read("broken.md");
    assert!(page.starts_with("## ❌ karat: "), "{page}");
    assert!(page.contains("- ❌ passRate: 0.8, at least 0.9\n"), "{page}");
}

#[test]
fn a_gate_without_data_fails() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok"}}));
    let project = project_with_cases().file("karat.json", json!({"agentEndpoint": server.endpoint()}));
    let output = project
        .command(["run", "--quiet", "--gates", r#"{"maxCostUsd": 1, "maxRegressions": 0, "rubricScore": 0.5}"#])
        .env("GITHUB_ACTIONS", "true")
        .run();
    insta::assert_snapshot!(output.filtered_stdout(), @"
    ::error title=gate maxCostUsd could not be checked::maxCostUsd: not checked, at most $1: the cost of an answer is unknown
    ::error title=gate maxRegressions could not be checked::maxRegressions: not checked, at most 0: there is no baseline
    ::error title=gate rubricScore could not be checked::rubricScore: not checked, at least 0.5: no rubric was judged
    ::notice title=karat::2/2 passed
    1 suite: 2/2 passed | 0 failed | 0 skipped assertions
    gates:
      ! maxCostUsd      not checked, at most $1: the cost of an answer is unknown
      ! maxRegressions  not checked, at most 0: there is no baseline
      ! rubricScore     not checked, at least 0.5: no rubric was judged
    ");
    assert_eq!(output.code, Some(3), "{}", output.both());
    let errored = {
        server.reset(json!({"a": steps("e"), "b": steps("p")}));
        project.run(["run", "--gates", r#"{"passRate": 0.5}"#])
    };
    assert_eq!(errored.code, Some(3), "an error overrides a passed gate");
    let partial = {
        server.reset(json!({"a": steps("f"), "b": steps("p")}));
        project.run(["run", "--fail-fast", "--gates", r#"{"passRate": 0}"#])
    };
    assert_eq!(partial.code, Some(3), "a partial run has no pass rate: {}", partial.both());
}

#[test]
fn rejects_invalid_trials_and_gates() {
    let project = project_with_cases().file("karat.json", json!({"agentEndpoint": "http://127.0.0.1:9/", "trials": 3}));
    let assert_rejected = |arguments: &[&str], expected: &str| {
        let output = project.run(arguments.iter().copied());
        assert_eq!((output.code, output.stderr.contains(expected)), (Some(2), true), "{}", output.stderr);
    };
    assert_rejected(&["run", "--trials", "0"], "--trials must be an integer of at least 1");
    assert_rejected(&["run", "--trials", "10001"], "--trials must be at most 10000");
    assert_rejected(&["run", "--gates", r#"{"passRate": 95}"#], "did you mean 0.95?");
    assert_rejected(&["run", "--gates", r#"{"maxCost": 1}"#], "did you mean 'maxCostUsd'?");
    assert_rejected(&["run", "--gates", "0.9"], "--gates must be an object");
    let output = project.command(["run"]).env("KARAT_TRIALS", "many").run();
    assert!(output.stderr.contains("KARAT_TRIALS must be a number, found 'many'"), "{}", output.stderr);
    let output = project.command(["run"]).env("KARAT_GATES", "{\"passRate\": \"all\"}").run();
    assert_eq!(output.code, Some(2));
    project.write("karat.json", json!({"gates": {"passrate": 1}}));
    assert_rejected(&["run"], "did you mean 'passRate'?");
}

#[test]
fn five_trials_separate_regressions_from_flakiness() {
    let server = ScriptedServer::start(json!({}));
    let project = project_with_cases();
    let before = run_five_trials(&project, &server, "ppppp", "pfppp");
    let now = run_five_trials(&project, &server, "fffff", "fpfpp");
    let diff = project.run(["diff", &before, &now]);
    insta::assert_snapshot!(diff.filtered(), @"
    exit: 1
    ----- stdout -----
    [RUN_ID] → [RUN_ID]

    x — golden evals
      1 regression
        gs-x-001  5/5 → 0/5 p = 0.008  5 of 5 trials failed: responseContains:
                                       expected 'ok' in response but not found
      1 flaky
        gs-x-002  4/5 → 3/5 p = 1.000  2 of 5 trials failed: responseContains:
                                       expected 'ok' in response but not found
      0 still passing
      overall: 2 worse, 0 better: too few changes to tell a trend from chance (p = 0.500)

    ----- stderr -----
    ");
    let document: Value =
        serde_json::from_str(&project.run(["diff", &before, &now, "--format", "json"]).stdout).unwrap();
    let suite = &document["suites"][0];
    assert_eq!((&suite["overall"]["verdict"], &suite["overall"]["worse"]), (&json!("notEnoughData"), &json!(2)));
    assert_eq!(suite["cases"][0]["change"], json!("regression"));
    assert_eq!(suite["cases"][1]["change"], json!("flaky"));
    assert_eq!(suite["cases"][1]["nowTrials"], json!({"passed": 3, "failed": 2, "errored": 0}));
    assert_eq!(project.run(["diff", &before, &before]).code, Some(0));

    // A run with a baseline reports the same.
    server.reset(json!({"a": steps("fffff"), "b": steps("fpfpp")}));
    let arguments = ["run", "--trials", "5", "--baseline-run-id", &before, "--gates", "{\"maxRegressions\": 0}"];
    let again = project.command(arguments).env("KARAT_AGENT_ENDPOINT", server.endpoint()).run();
    assert_eq!(again.code, Some(1), "{}", again.both());
    assert_eq!(newest_result(&project, "evals/results")["regressions"], json!(["gs-x-001"]));
}

#[test]
fn three_trials_detect_only_complete_failures() {
    let server = ScriptedServer::start(json!({}));
    let project = project_with_cases();
    let run = |first: &str, second: &str| {
        server.reset(json!({"a": steps(first), "b": steps(second)}));
        project.run(["run", "--trials", "3", "--agent-endpoint", &server.endpoint()]);
        newest_result(&project, "evals/results")["runId"].as_str().unwrap().to_owned()
    };
    let (before, now) = (run("ppp", "ppp"), run("fff", "fpf"));
    insta::assert_snapshot!(project.run(["diff", &before, &now, "--ascii"]).filtered(), @"
    exit: 1
    ----- stdout -----
    [RUN_ID] -> [RUN_ID]

    x - golden evals
      1 regression
        gs-x-001  3/3 -> 0/3 p = 0.100  3 of 3 trials failed: responseContains:
                                        expected 'ok' in response but not found
      1 without enough data
        gs-x-002  3/3 -> 1/3 p = 0.400  2 of 3 trials failed: responseContains:
                                        expected 'ok' in response but not found
      0 still passing
      overall: 2 worse, 0 better: too few changes to tell a trend from chance (p = 0.500)

    ----- stderr -----
    ");
}

fn result(run_id: &str, agent: &str, passed: bool) -> Value {
    json!({
        "runId": run_id, "timestamp": "2026-01-01T00:00:00Z", "tier": "golden", "toolName": "x",
        "agentEndpoint": agent, "metadata": {"evalFile": "evals/x.golden.json"},
        "cases": [{"id": "gs-x-001", "passed": passed}],
    })
}

#[test]
fn compares_each_agent_with_its_own_results() {
    let project = project()
        .file("one.json", json!({"replies": {}, "otherwise": {"response": "ok"}}))
        .file("two.json", json!({"replies": {}, "otherwise": {"response": "no"}}))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a")]))
        .file("saved/x-golden-r1.json", result("r1", "scripted:one.json", false))
        .file("saved/x-golden-r1-2.json", result("r1", "scripted:two.json", true))
        .file("saved/x-golden-r2.json", result("r2", "scripted:one.json", true))
        .file("saved/x-golden-r2-2.json", result("r2", "scripted:two.json", false))
        .file(
            "saved/x-rubric-r1.json",
            json!({"runId": "r1", "tier": "rubric", "toolName": "x", "cases": [{"id": "q"}]}),
        );
    let changes = |agent: &str| {
        project.run(["run", "--baseline", "saved", "--agent-endpoint", agent]);
        let result = newest_result(&project, "evals/results");
        (result["regressions"].clone(), result["newPasses"].clone())
    };
    assert_eq!(changes("scripted:one.json"), (json!([]), json!([])), "it passed in its own newest run");
    assert_eq!(changes("scripted:two.json"), (json!([]), json!([])), "it failed in its own newest run");
    insta::assert_snapshot!(project.run(["diff", "r1", "r2", "--output-dir", "saved"]).filtered(), @"
    exit: 1
    ----- stdout -----
    r1 → r2

    x — golden evals of scripted:two.json
      1 regression
        gs-x-001
      0 still passing
      overall: 1 worse, 0 better: too few changes to tell a trend from chance (p = 1.000)

    x — golden evals of scripted:one.json
      1 new pass
        gs-x-001
      0 still passing
      overall: 0 worse, 1 better: too few changes to tell a trend from chance (p = 1.000)

    ----- stderr -----
    ");
    let failed = project.run(["run", "--only-failed", "--baseline", "saved", "--agent-endpoint", "scripted:one.json"]);
    assert_eq!(failed.code, Some(0), "a case that failed with one agent is run again: {}", failed.both());
}
