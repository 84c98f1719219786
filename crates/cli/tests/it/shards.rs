//! Tables of rows, shards and their merging.

use std::fmt::Write as _;

use karat_testkit::project::{Output, TempProject};
use serde_json::{Value, json};

use crate::support::{only_result, project};

const ROWS: usize = 1000;

/// A message with a quote, a separator and a line break.
fn message(number: usize) -> String {
    format!("row \"{number}\", line one\nline two")
}

/// A table in CSV. Every seventh answer is wrong.
fn project_with_table() -> TempProject {
    let mut table = "name,message,answer\n".to_owned();
    let mut replies = serde_json::Map::new();
    for number in 1..=ROWS {
        let quoted = message(number).replace('"', "\"\"");
        writeln!(table, "n{number},\"{quoted}\",\"<{number}>\"").unwrap();
        let response = if number % 7 == 0 { "wrong".to_owned() } else { format!("it is <{number}>") };
        replies.insert(message(number), json!({"response": response}));
    }
    let case = json!({
        "id": "gs-t-001",
        "description": "row {{row:name}}",
        "input": {"message": "{{row:message}}"},
        "stubs": {"t": {"value": "{{row:answer}}"}},
        "expect": {"responseContains": ["{{row:answer}}", "{{seed:none}}"]},
        "each": {"file": "rows.csv"},
    });
    let skipped = json!({"id": "gs-t-002", "input": {"message": "x"}, "expect": {}, "skip": "later"});
    project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("agent.json", json!({"replies": replies}))
        .file("evals/rows.csv", table)
        .file("evals/t.golden.json", json!([case, skipped]))
}

fn run(project: &TempProject, arguments: &[&str]) -> Output {
    project.run(["run", "--quiet", "--no-store"].iter().chain(arguments).copied())
}

/// Replaces ids and times, and returns the text of the result.
fn comparable(project: &TempProject, folder: &str) -> String {
    fn erase(value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    if ["runId", "timestamp", "durationMs", "totalDurationMs", "wallClockMs"].contains(&key.as_str()) {
                        *member = Value::Null;
                    }
                    erase(member);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(erase),
            _ => {}
        }
    }
    let mut result = only_result(project, folder);
    erase(&mut result);
    serde_json::to_string_pretty(&result).unwrap()
}

#[test]
fn four_merged_shards_equal_the_whole_run() {
    let project = project_with_table();
    assert_eq!(run(&project, &["--output-dir", "whole"]).code, Some(1));
    let whole = only_result(&project, "whole");
    assert_eq!(whole["summary"]["totalCases"], ROWS);
    assert_eq!(whole["summary"]["failed"], ROWS / 7);
    assert_eq!(whole["cases"][41]["id"], "gs-t-001#n42");
    for number in 1..=4 {
        let shard = format!("{number}/4");
        let output = run(&project, &["--output-dir", &format!("shards/{number}"), "--shard", &shard]);
        assert_eq!(output.code, Some(1), "{}", output.both());
    }
    let merged = project.run(["runs", "merge", "shards", "--output-dir", "merged"]);
    assert_eq!(merged.code, Some(1), "{}", merged.both());
    similar_asserts(&comparable(&project, "merged"), &comparable(&project, "whole"));
}

#[test]
fn a_merged_run_is_compared_with_a_baseline() {
    let case = |id: &str| json!({"id": id, "input": {"message": id}, "expect": {"responseContains": ["ok"]}});
    let cases = ["gs-t-001", "gs-t-002", "gs-t-003", "gs-t-004"].map(case);
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("agent.json", json!({"replies": {"gs-t-004": {"response": "no"}}, "otherwise": {"response": "ok"}}))
        .file("evals/t.golden.json", format!("[\n{}\n]", lines.join(",\n")));
    assert_eq!(run(&project, &["--output-dir", "baseline"]).code, Some(1));
    project.write("agent.json", json!({"replies": {"gs-t-002": {"response": "no"}}, "otherwise": {"response": "ok"}}));
    for shard in ["1/2", "2/2"] {
        run(&project, &["--output-dir", "shards", "--shard", shard]);
    }
    let gates = ["--gates", "{\"maxRegressions\": 1, \"passRate\": 0.7}"];
    let merge = ["runs", "merge", "shards", "--quiet", "--output-dir", "merged", "--report", "github=-"];
    let merged = project.run(merge.iter().chain(&["--baseline", "baseline"]).chain(&gates).copied());
    assert_eq!(merged.code, Some(0), "{}", merged.both());
    let result = only_result(&project, "merged");
    assert_eq!((&result["regressions"], &result["newPasses"]), (&json!(["gs-t-002"]), &json!(["gs-t-004"])));
    assert_eq!(result["baselineRunId"], only_result(&project, "baseline")["runId"]);
    assert!(merged.stdout.contains("maxRegressions  1, at most 1"), "{}", merged.stdout);
    // The cases come before the annotations.
    assert!(merged.stdout.find("gs-t-002").unwrap() < merged.stdout.find("::error").unwrap(), "{}", merged.stdout);
    // The second case is in the third line.
    assert!(merged.stdout.contains("::error file=evals/t.golden.json,line=3,"), "{}", merged.stdout);

    let shard = ["runs", "merge", "shards", "--output-dir", "shards", "--baseline", "latest"];
    let refused = project.run(shard);
    assert_eq!(refused.code, Some(2), "{}", refused.both());
    assert!(refused.stderr.contains("is one of the shards"), "{}", refused.stderr);
}

/// Compares long texts without printing all of them.
fn similar_asserts(left: &str, right: &str) {
    let different = left.lines().zip(right.lines()).find(|(left, right)| left != right);
    assert_eq!(different, None);
    assert_eq!(left.len(), right.len());
}

#[test]
fn an_incomplete_shard_is_not_merged() {
    let project = project_with_table();
    run(&project, &["--output-dir", "shards", "--shard", "1/2"]);
    run(&project, &["--output-dir", "shards", "--shard", "2/2", "--fail-fast"]);
    let merged = project.run(["runs", "merge", "shards"]);
    assert_eq!(merged.code, Some(2), "{}", merged.both());
    assert!(merged.stderr.contains("shard 2/2 is incomplete"), "{}", merged.stderr);
}

#[test]
fn lists_cases_of_a_shard_without_running_them() {
    let project = project_with_table();
    let list = |shard: &str| -> Vec<String> {
        let output = project.run(["run", "--list", "--format", "json", "--shard", shard]);
        let list: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.both()));
        let cases = list["suites"][0]["cases"].as_array().unwrap();
        cases.iter().map(|case| case["id"].as_str().unwrap().to_owned()).collect()
    };
    let (first, second) = (list("1/2"), list("2/2"));
    assert_eq!(first.len() + second.len(), ROWS);
    assert!(first.iter().all(|id| !second.contains(id)));
    assert!(project.files_in("evals/results", ".json").is_empty());
}

#[test]
fn a_failed_row_becomes_a_regression_case() {
    let project = project_with_table();
    run(&project, &[]);
    let arguments = ["regress", "add", "--from-run", "latest", "--case", "gs-t-001#n7", "--bug-ref", "12"];
    let output = project.run(arguments);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let added = &project.read_json("evals/t.regression.json")["cases"][0];
    assert_eq!(added["input"]["message"], message(7));
    assert_eq!(added["expect"]["responseContains"][0], "<7>");
    assert_eq!(added.get("each"), None);
}
