//! `karat runs` and `karat show`.

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::support::{case, ok_case, project, script};

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
        "    no\n    → get_weather({\"city\": \"Rome\"})\n",
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
