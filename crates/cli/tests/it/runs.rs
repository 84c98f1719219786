//! `karat runs` and `karat show`.

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::support::{case, newest_result, ok_case, project, script};

/// A project with two runs: in the second, a case regresses and another errors.
fn project_with_runs() -> TempProject {
    let expect = json!({"responseContains": ["ok"], "responseNonEmpty": true, "maxLength": 100});
    let project = project()
        .file("agent.json", script(&[("a", "ok"), ("b", "ok")]))
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("evals/x.golden.json", json!([case("gs-x-001", "a", expect), ok_case("gs-x-002", "b")]));
    assert_eq!(project.run(["run"]).code, Some(0));
    let calls = json!([{"name": "get_weather", "params": {"city": "Rome"}, "success": true}]);
    let replies = json!({"a": {"response": "no", "toolCalls": calls}, "b": {"error": "HTTP 500"}});
    project.write("agent.json", json!({ "replies": replies }));
    assert_eq!(project.run(["run", "--baseline", "latest"]).code, Some(3));
    project
}

#[test]
fn lists_and_prunes_runs() {
    let project = project_with_runs();
    let list: Value = serde_json::from_str(&project.run(["runs", "--format", "json"]).stdout).unwrap();
    assert_eq!(list["total"], json!(2));
    let newest = &list["runs"][0];
    let counts = ["cases", "passed", "failed", "errored", "regressions"].map(|key| newest[key].as_u64());
    assert_eq!(counts, [2, 0, 1, 1, 1].map(Some));
    assert_eq!((&newest["name"], &newest["agents"]), (&json!("latest"), &json!(["scripted:agent.json"])));
    assert_eq!(list["runs"][1]["regressions"], Value::Null);
    let text = project.run(["runs"]).stdout;
    assert_eq!(text.lines().count(), 3, "{text}");
    // A printed id can be pasted back.
    let id = text.lines().nth(2).unwrap().split_whitespace().next().unwrap().to_owned();
    assert!(project.run(["show", &id]).stdout.starts_with(&format!("run {id}")));
    let planned = project.run(["runs", "prune", "--keep", "1", "--dry-run"]);
    assert_eq!(planned.stdout, "would delete 1 run (1 file); 1 kept\n");
    let pruned = project.run(["runs", "prune", "--keep", "1"]);
    assert_eq!(pruned.stdout, "deleted 1 run (1 file); 1 kept\n");
    assert_eq!(project.files_in("evals/results", ".json").len(), 1);
    assert_eq!(project.run(["show", &id]).code, Some(2));
}

#[test]
fn prune_keeps_the_baseline() {
    let project = project_with_runs();
    project.write("karat.json", json!({"baselineRunId": "latest~1"}));
    assert_eq!(project.run(["runs", "prune", "--keep", "0"]).stdout, "deleted 1 run (1 file); 1 kept\n");
}

#[test]
fn selects_nothing_without_runs() {
    insta::assert_snapshot!(project().run(["runs"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no runs in evals/results
    hint: run 'karat run' first
    ");
}

#[test]
fn shows_a_case_in_full() {
    let project = project_with_runs();
    let output = project.run(["show", "gs-x-001"]);
    let text = output.filtered_stdout();
    for expected in [
        "✗ gs-x-001  regression",
        "  message\n    a\n",
        "  tool calls\n    → get_weather({\"city\": \"Rome\"})\n  answer after [TIME]\n    no\n",
        "    ✓ responseNonEmpty\n    ✗ responseContains: expected 'ok' in response but not found\n",
        "    — maxLength: not judged, since an earlier assertion failed\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(!text.contains("gs-x-002"), "{text}");
    let document: Value =
        serde_json::from_str(&project.run(["show", "latest~1", "gs-x-001", "--format", "json"]).stdout).unwrap();
    let case = &document["suites"][0]["cases"][0];
    assert_eq!((&case["outcome"], &case["message"]), (&json!("passed"), &json!("a")));
    assert_eq!(case["trials"][0]["assertions"].as_array().unwrap().len(), 3);
    let failed = project.run(["show", "--failed"]).stdout;
    assert!(failed.contains("gs-x-001") && failed.contains("gs-x-002") && failed.contains("HTTP 500"), "{failed}");
    assert!(failed.contains("\n2 cases: 0 passed, 1 failed, 1 errored\n"), "{failed}");
    insta::assert_snapshot!(project.run(["show", "latest", "gs-x-003"]).filtered_stderr(), @"
    error: run [RUN_ID] has no case 'gs-x-003'
    hint: did you mean 'gs-x-001'?
    ");
}

#[test]
fn lists_and_shows_skipped_cases() {
    let skipped = json!({"id": "gs-x-002", "input": {"message": "b"}, "expect": {}, "skip": "needs an account"});
    let project = project()
        .file("agent.json", script(&[("a", "ok")]))
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), skipped]));
    assert_eq!(project.run(["run"]).code, Some(0));
    let text = project.run(["show", "gs-x-002"]).stdout;
    assert!(text.contains("needs an account") && !text.contains("gs-x-001"), "{text}");
    let list: Value = serde_json::from_str(&project.run(["runs", "--format", "json"]).stdout).unwrap();
    assert_eq!((&list["runs"][0]["cases"], &list["runs"][0]["skipped"]), (&json!(1), &json!(1)));
}

/// A project with a complete run, and one that stopped at the first failure, which is fixed later.
fn project_with_incomplete_run() -> TempProject {
    let cases = |tool: &str| json!([ok_case(&format!("gs-{tool}-001"), "a"), ok_case(&format!("gs-{tool}-002"), "b")]);
    let project = project()
        .file("agent.json", script(&[("a", "ok"), ("b", "ok")]))
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json", "concurrency": 1}))
        .file("evals/x.golden.json", cases("x"))
        .file("evals/y.golden.json", cases("y"));
    assert_eq!(project.run(["run"]).code, Some(0));
    project.write("agent.json", script(&[("a", "ok"), ("b", "no")]));
    assert_eq!(project.run(["run", "--fail-fast"]).code, Some(1));
    project
}

#[test]
fn an_incomplete_run_is_marked() {
    let project = project_with_incomplete_run();
    let list = project.run(["runs"]).stdout;
    let words = |line: usize| list.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>();
    assert!(list.lines().next().unwrap().contains("failed  not run  agent"), "{list}");
    assert_eq!((words(1)[3..6].to_vec(), words(2)[3..5].to_vec()), (vec!["1/2", "1", "2"], vec!["4/4", "0"]), "{list}");
    let document: Value = serde_json::from_str(&project.run(["runs", "--format", "json"]).stdout).unwrap();
    assert_eq!(document["runs"][0]["incomplete"], json!({"casesNotRun": 2, "missingFiles": 0}));
    assert_eq!(document["runs"][1]["incomplete"], Value::Null);

    let shown = project.run(["show"]).filtered_stdout();
    assert!(shown.contains("\n⚠ incomplete: 2 cases did not run\n"), "{shown}");
    assert!(shown.contains("  not run\n    gs-y-001, gs-y-002\n"), "{shown}");
    assert!(!project.run(["show", "latest~1"]).stdout.contains("incomplete"));
    insta::assert_snapshot!(project.run(["show", "gs-y-001"]).filtered_stderr(), @"
    error: case 'gs-y-001' was selected in run [RUN_ID],
      but did not run
    ");

    let diff = project.run(["diff"]);
    insta::assert_snapshot!(diff.filtered_stdout(), @"
    [RUN_ID] → [RUN_ID]
    ⚠ run [RUN_ID] is incomplete: 2 cases did not run

    x — golden evals
      1 regression
        gs-x-002  responseContains: expected 'ok' in response but not found
      1 still passing
      overall: 1 worse, 0 better: too few changes to tell a trend from chance (p = 1.000)

    y — golden evals
      2 not run now
        gs-y-001  says a
        gs-y-002  says b
      overall: nothing to compare
    ");
    let document: Value = serde_json::from_str(&project.run(["diff", "--format", "json"]).stdout).unwrap();
    assert_eq!(document["nowIncomplete"]["casesNotRun"], 2);
    let case = &document["suites"][1]["cases"][0];
    assert_eq!((&case["change"], &case["notRun"]), (&json!("removed"), &json!(true)));
    let reversed = project.run(["diff", "latest", "latest~1"]).stdout;
    assert!(reversed.contains("2 not run before"), "{reversed}");
}

#[test]
fn an_incomplete_baseline_is_warned_about() {
    let project = project_with_incomplete_run();
    let run_id = newest_result(&project, "evals/results")["runId"].as_str().unwrap().to_owned();
    let warning = "is incomplete: 2 cases did not run";
    for arguments in [&["run", "--baseline", "latest"][..], &["run", "--only-failed=latest~1"]] {
        let output = project.run(arguments);
        assert!(output.unwrapped_stderr().contains(warning), "{}", output.both());
        assert!(output.stderr.contains(&run_id), "{}", output.both());
    }
    // The run of the second case of x is complete.
    assert!(!project.run(["run", "--baseline", "latest"]).stderr.contains("incomplete"));
}

#[test]
fn a_missing_result_file_is_noticed() {
    let project = project_with_runs();
    project.write("agent.json", script(&[("a", "ok"), ("b", "ok"), ("c", "ok")]));
    project.write("evals/y.golden.json", json!([ok_case("gs-y-001", "c")]));
    assert_eq!(project.run(["run"]).code, Some(0));
    let is_of_y = |path: &std::path::PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("y-");
    let files = project.files_in("evals/results", ".json");
    std::fs::remove_file(files.iter().find(|path| is_of_y(path)).unwrap()).unwrap();
    let list = project.run(["runs"]).stdout;
    assert!(list.contains("  missing  "), "{list}");
    assert_eq!(project.run(["show", "--failed"]).code, Some(4));
    insta::assert_snapshot!(project.run(["show", "--failed"]).filtered_stderr(), @"
    error: every case that ran passed in run [RUN_ID],
      but it is incomplete: 1 result file is missing
    ");
    let diff = project.run(["diff", "latest~1", "latest"]).stdout;
    assert!(diff.contains("is incomplete: 1 result file is"), "{diff}");
    // A copied file is all that a baseline needs.
    let output = project.run(["run", "--baseline", "latest", "evals/x.golden.json"]);
    assert!(output.unwrapped_stderr().contains("is incomplete: 1 result file is missing"), "{}", output.both());
}
