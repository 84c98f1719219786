//! `karat check`.

use serde_json::{Value, json};

use crate::support::{case, ok_case, project};

#[test]
fn reports_contract_examples_that_echo_the_prompt() {
    let project = project()
        .file("evals/get-weather.golden.json", include_str!("fixtures/tool-forge/get-weather.golden.json"))
        .file("evals/get-weather.labeled.json", include_str!("fixtures/tool-forge/get-weather.labeled.json"));
    let output = project.run(["check", "--format", "json"]);
    assert_eq!(output.code, Some(0));
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let count = |rule: &str| report["issues"].as_array().unwrap().iter().filter(|issue| issue["rule"] == rule).count();
    assert_eq!((count("proof-echoes-prompt"), count("invalid")), (11, 0));
    assert_eq!(project.run(["check", "--strict"]).code, Some(1));
}

#[test]
fn shows_findings_in_their_source() {
    let description = "Fetches the current weather of a city. Use when the user asks how it is outside.";
    let tools = json!([{"name": "get_weather", "description": description, "version": "2.0.0"}]);
    let project = project().file("tools.json", tools).file(
        "evals/get-weather.labeled.json",
        json!({"metadata": {"toolName": "get_weather", "toolVersion": "1.0.0"}, "cases": [{
            "id": "ls-get-weather-1", "difficulty": "edge", "input": {"message": "m"},
            "expect": {"toolsCalled": ["get_wether"], "toolsAcceptable": [["get_weather"]]},
        }]}),
    );
    insta::assert_snapshot!(project.run(["check", "--tool-registry-path", "tools.json"]).filtered(), @r#"
    exit: 1
    ----- stdout -----
      × ls-get-weather-1: the registry has no tool 'get_wether' (did you mean
      │ 'get_weather'?) (unknown-tool)
        ╭─[evals/get-weather.labeled.json:15:6]
     15 │      "get_wether"
        ·      ────────────
        ╰────

      × ls-get-weather-1: use 'toolsCalled' or 'toolsAcceptable', not both
      │ (both-routing-kinds)
        ╭─[evals/get-weather.labeled.json:17:5]
     17 │     "toolsAcceptable": [
        ·     ─────────────────
        ╰────

      ⚠ Tool get_weather is version 2.0.0, evals were generated for 1.0.0. Schema
      │ may have changed. (stale)
       ╭─[evals/get-weather.labeled.json:2:2]
     2 │  "metadata": {
       ·  ──────────
       ╰────
      help: review the cases, then set 'toolVersion' to "2.0.0"

      ⚠ ls-get-weather-1: ids of labeled cases look like 'ls-get-weather-001'
      │ (id-form)
       ╭─[evals/get-weather.labeled.json:8:4]
     8 │    "id": "ls-get-weather-1",
       ·    ────
       ╰────

      ⚠ ls-get-weather-1: an edge case asserts that something does not
      │ happen ('toolsNotCalled', 'responseNotContains', or no tool called)
      │ (edge-without-negative)
        ╭─[evals/get-weather.labeled.json:13:4]
     13 │    "expect": {
        ·    ────────
        ╰────

    1 tool, 1 file, 1 case: 0 invalid, 2 errors, 3 warnings
    ----- stderr -----
    "#);
}

#[test]
fn exit_code_ranks_invalid_above_errors_above_warnings() {
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    assert_eq!(project.run(["check"]).code, Some(0));
    project.write(
        "evals/x.golden.json",
        json!([case("gs-x-001", "m", json!({"toolsCalled": [], "toolsAcceptable": [[]]}))]),
    );
    assert_eq!(project.run(["check"]).code, Some(1));
    project.write("evals/y.golden.json", json!([{"id": "gs-y-001"}]));
    let output = project.run(["check", "--format", "json"]);
    assert_eq!(output.code, Some(2));
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let invalid: Vec<&Value> =
        report["issues"].as_array().unwrap().iter().filter(|issue| issue["rule"] == "invalid").collect();
    assert_eq!(invalid.len(), 2, "{invalid:?}");
    assert_eq!((&invalid[0]["file"], &invalid[0]["line"]), (&json!("evals/y.golden.json"), &json!(2)));
}

#[test]
fn detects_an_edited_regression_case() {
    let regression = json!({
        "id": "rg-x-001", "description": "regression — was empty", "difficulty": "regression",
        "createdAt": "2026-01-01T00:00:00Z", "bugRef": "#1", "input": {"message": "m"}, "expect": {"responseNonEmpty": true},
    });
    let hash = karat_json::canonical::canonical_hash(&regression);
    let mut file = json!({"metadata": {"caseHashes": {"rg-x-001": hash}}, "cases": [regression]});
    let project = project().file("evals/x.regression.json", file.clone());
    assert_eq!(project.run(["check"]).code, Some(0));
    file["cases"][0]["input"]["message"] = json!("n");
    project.write("evals/x.regression.json", file);
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("was edited after it was created"), "{}", output.stdout);
}

#[test]
fn names_the_file_that_is_empty_cut_off_or_not_an_eval_file() {
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("evals/empty.golden.json", "\n")
        .file("evals/cut.golden.json", "[\n  {\"id\": \"gs-x-001\",\n   \"input\": {\"message\": \"hel")
        .file("evals/products.csv", "name,price\nkettle,39.90\n");
    let error = |file: &str| {
        let output = project.run(["run", file]);
        assert_eq!(output.code, Some(2), "{}", output.both());
        output.stderr
    };
    let empty = error("evals/empty.golden.json");
    assert!(empty.contains("evals/empty.golden.json: the file is empty") && !empty.contains('│'), "{empty}");
    let cut = error("evals/cut.golden.json");
    assert!(cut.contains("the file ends in the middle of a string"), "{cut}");
    assert!(cut.contains("[evals/cut.golden.json:3:28]") && cut.contains("{\"message\": \"hel\n"), "{cut}");
    let table = error("evals/products.csv");
    assert!(table.contains("not an eval file: expected JSON") && table.contains("name,price"), "{table}");
}

/// A file for several tools, whose name is not one of them.
#[test]
fn reports_once_that_a_file_names_no_tool() {
    let case = |id: &str| {
        json!({"id": id, "difficulty": "straightforward", "createdAt": "2026-01-01", "input": {"message": id},
               "expect": {"toolsCalled": ["get_weather"], "noToolErrors": true, "responseNonEmpty": true}})
    };
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:a.json", "toolRegistryPath": "tools.json"}))
        .file("tools.json", json!({"tools": [{"name": "get_weather", "inputSchema": {"type": "object"}}]}))
        .file("evals/routing.labeled.json", json!([case("one"), case("two")]));
    let report = || -> Value { serde_json::from_str(&project.run(["check", "--format", "json"]).stdout).unwrap() };
    let in_file = |report: &Value| -> Vec<String> {
        let issues = report["issues"].as_array().unwrap().iter();
        let issues = issues.filter(|issue| issue["file"] == "evals/routing.labeled.json");
        issues.map(|issue| issue["rule"].as_str().unwrap().to_owned()).collect()
    };
    let first = report();
    assert_eq!(in_file(&first), ["file-tool"], "{first:#}");
    let metadata = json!({"toolName": "get_weather", "tier": "labeled"});
    project.write("evals/routing.labeled.json", json!({"metadata": metadata, "cases": [case("ls-get-weather-001")]}));
    assert_eq!(in_file(&report()), ["straightforward-tools"]);
}

#[test]
fn reports_only_findings_about_the_tools_of_the_given_files() {
    let tool = |name: &str| json!({"name": name, "description": "Does it.", "inputSchema": {"type": "object"}});
    let case = case("gs-get-weather-001", "Rain?", json!({"toolsCalled": ["get_weather"]}));
    let project = project()
        .file("karat.json", json!({"toolRegistryPath": "tools.json"}))
        .file("tools.json", json!({"tools": [tool("get_weather"), tool("get_news")]}))
        .file("evals/get-weather.golden.json", json!([case]));
    let tools = |arguments: &[&str]| -> Vec<String> {
        let output = project.run(["check", "--format", "json"].iter().chain(arguments).copied());
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        let tools = report["issues"].as_array().unwrap().iter().filter_map(|issue| issue["tool"].as_str());
        let mut tools: Vec<String> = tools.map(str::to_owned).collect();
        tools.dedup();
        tools
    };
    assert_eq!(tools(&[]), ["get_weather", "get_news"]);
    assert_eq!(tools(&["evals/get-weather.golden.json"]), ["get_weather"]);
    let quiet = project.run(["check", "-q"]);
    assert_eq!(quiet.stdout.lines().count(), 1, "{}", quiet.stdout);
    let strict = project.run(["check", "-q", "--strict"]);
    assert!(strict.code == Some(1) && strict.stdout.lines().count() > 1, "{}", strict.both());
}

#[test]
fn invalid_files_and_errors_come_first() {
    let warned = case("gs-a-001", "hi", json!({"toolsCalled": ["t"]}));
    let mut wrong = case("gs-b-001", "hi", json!({"toolsCalled": ["t"], "toolsNotCalled": ["t"]}));
    wrong["description"] = json!("contradicts itself");
    let project = project()
        .file("evals/a.golden.json", json!([warned]))
        .file("evals/b.golden.json", json!([wrong]))
        .file("evals/c.golden.json", "[");
    let stdout = project.run(["check"]).stdout;
    let position = |text: &str| stdout.find(text).unwrap_or_else(|| panic!("no {text} in {stdout}"));
    assert!(position("c.golden.json") < position("(contradiction)"), "{stdout}");
    assert!(position("(contradiction)") < position("a.golden.json"), "{stdout}");
}

#[test]
fn a_placeholder_stub_is_a_warning() {
    let mut stubbed = case("gs-t-001", "hi", json!({"toolsCalled": ["t"]}));
    stubbed["stubs"] = json!({"t": {"result": "replace this with the tool's result"}});
    let project = project().file("evals/t.golden.json", json!([stubbed]));
    let output = project.run(["check"]);
    assert!(output.stdout.contains("(placeholder-stub)"), "{}", output.stdout);
}
