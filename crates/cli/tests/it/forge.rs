//! `karat forge` without a terminal.

use std::collections::BTreeSet;

use karat_testkit::project::TempProject;
use rstest::rstest;
use serde_json::{Map, Value, json};

use crate::support::project;

/// The description of the first tool, which overlaps with several others.
const FIRST_DESCRIPTION: &str = "Fetches the weather of a city and returns its details. Use when the user asks about the weather. For \
    the forecast, use get_forecast instead. For the calendar, use get_calendar instead. For mail, use get_mail instead.";

/// Returns `count` tools whose descriptions follow the contract.
pub(crate) fn tools(count: usize) -> Value {
    let subjects =
        ["weather", "forecast", "calendar", "mail", "contact", "invoice", "ticket", "flight", "hotel", "note"];
    let tool = |number: usize| {
        let subject = format!(
            "{}{}",
            subjects[number % subjects.len()],
            if number < 10 { String::new() } else { number.to_string() }
        );
        let other = subjects[(number + 1) % subjects.len()];
        json!({
            "name": format!("get_{subject}"),
            "version": "1.2.0",
            "category": "read",
            "description": if number == 0 { FIRST_DESCRIPTION.to_owned() } else { format!(
                "Fetches the {subject} of a city and returns its details. Use when the user asks about the {subject}. For \
                 the {other}, use get_{other} instead."
            ) },
            "triggerPhrases": [
                format!("Show me the {subject} of Paris"),
                format!("Which {subject} is there in London?"),
                format!("I want to see the {subject} of Rome"),
            ],
            "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "examples": ["Paris"]}}},
        })
    };
    json!({"tools": (0..count).map(tool).collect::<Vec<Value>>()})
}

/// Returns a map in which the first tool overlaps the next ones and is in clusters of three tools.
fn overlaps(neighbours: usize, clusters: usize) -> Value {
    let names = ["get_weather", "get_forecast", "get_calendar", "get_mail"];
    let mut map = Map::new();
    for other in &names[1..=neighbours] {
        map.insert((*other).to_owned(), json!({"overlaps": ["get_weather"]}));
    }
    let cluster: Vec<Value> = (0..clusters).map(|_| json!(names[..3])).collect();
    map.insert("get_weather".to_owned(), json!({"overlaps": names[1..=neighbours], "clusters": cluster}));
    Value::Object(map)
}

/// Creates a project with `count` tools.
pub(crate) fn forge_project(count: usize) -> TempProject {
    project()
        .file("karat.json", json!({"toolRegistryPath": "tools.json"}))
        .file("tools.json", tools(count))
        .file("evals/overlap-map.json", json!({"get_weather": {}}))
        .env("GIT_AUTHOR_NAME", "Ada")
}

fn case_count(project: &TempProject, path: &str) -> usize {
    project.read_json(path)["cases"].as_array().expect("cases").len()
}

#[test]
fn shows_the_plan_as_in_the_contract() {
    let project = forge_project(3).file("evals/overlap-map.json", overlaps(1, 1));
    let output = project.run(["forge", "get_weather", "--plan"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    Eval batch plan for get_weather:
      Registry: 3 tools | Overlaps: 1 | Clusters: 1
      Straightforward: 13 cases (3 batches)
      Ambiguous:       28 cases (6 batches)
      Edge:            6 cases (2 batches)
      Total:           47 cases (11 batches)
    ----- stderr -----
    this plan gives full coverage; to start smaller, pass --tier golden or review
      only the first batches
    ");
    assert!(!project.path().join(".karat").exists());
    let report: Value =
        serde_json::from_str(&project.run(["forge", "get-weather", "--plan", "--format", "json"]).stdout)
            .expect("valid JSON");
    assert_eq!((&report["tool"], &report["plan"]["tools"]), (&json!("get_weather"), &json!(3)));
}

#[test]
fn warns_about_more_than_five_trigger_phrases() {
    let project = forge_project(3);
    let phrases: Vec<String> = (1..=6).map(|number| format!("Is it warm in town {number}?")).collect();
    let flags = phrases.iter().flat_map(|phrase| ["--trigger", phrase.as_str()]);
    let run =
        |count: usize| project.run(["forge", "get_weather", "--plan"].into_iter().chain(flags.clone().take(2 * count)));
    let warning = "'get_weather' has 6 trigger phrases, expected 3 to 5";
    assert!(run(6).stderr.contains(warning), "{}", run(6).both());
    assert!(!run(5).stderr.contains("trigger phrases"), "{}", run(5).both());
}

/// Without a model, only trigger phrases and edge messages are drafted; the other slots remain open.
#[rstest]
#[case(1, 0, 0, "2 golden, 25 ambiguous", 5)]
#[case(3, 1, 1, "3 golden, 13 straightforward, 28 ambiguous", 6)]
#[case(12, 3, 1, "4 golden, 22 straightforward, 32 ambiguous", 9)]
#[case(60, 2, 1, "4 golden, 70 straightforward, 30 ambiguous, 6 edge", 19)]
fn template_drafts_pass_a_check(
    #[case] registry: usize,
    #[case] neighbours: usize,
    #[case] clusters: usize,
    #[case] open: &str,
    #[case] edge: usize,
) {
    let project = forge_project(registry).file("evals/overlap-map.json", overlaps(neighbours, clusters));
    let output = project.run(["forge", "get_weather", "--approve-all"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains(&format!("still open: {open}\n")), "{}", output.stdout);
    let (golden, labeled) = ("evals/get-weather.golden.json", "evals/get-weather.labeled.json");
    assert_eq!((case_count(&project, golden), case_count(&project, labeled)), (4, edge));
    let checked = project.run(["check", golden, labeled, "--format", "json"]);
    let report: Value = serde_json::from_str(&checked.stdout).expect("valid JSON");
    let issues = report["issues"].as_array().expect("issues").iter();
    let of_cases: BTreeSet<&str> =
        issues.filter(|issue| issue["caseId"].is_string()).filter_map(|issue| issue["rule"].as_str()).collect();
    let expected = BTreeSet::from(["few-proof-values"]);
    assert_eq!(of_cases, expected, "a draft without a model knows no value of the answer, and check says so");
    assert!(output.stderr.contains("--verify"), "{}", output.stderr);
    assert!(!project.path().join(".karat/forge/get-weather.json").exists());
    // A second run changes nothing.
    let before = (project.read(golden), project.read(labeled));
    let again = project.run(["forge", "get_weather", "--approve-all"]);
    assert_eq!(again.code, Some(0), "{}", again.both());
    assert!(again.stdout.contains("still open"), "{}", again.stdout);
    assert_eq!((project.read(golden), project.read(labeled)), before);
}

#[test]
fn records_approvals_in_the_file() {
    let project = forge_project(3);
    project.run(["forge", "get_weather", "--approve-all", "--tier", "golden", "--author", "Grace"]);
    let metadata = &project.read_json("evals/get-weather.golden.json")["metadata"];
    let approval = &metadata["approvals"][0];
    assert_eq!((&approval["approvedBy"], &approval["drafter"]), (&json!("Grace (--approve-all)"), &json!("template")));
    assert_eq!(approval["cases"].as_array().expect("ids").len(), case_count(&project, "evals/get-weather.golden.json"));
    let keys = ["toolName", "toolVersion", "tier", "descriptionHash", "registrySize", "overlapMapVersion"];
    assert!(keys.iter().all(|key| metadata[*key].is_string() || metadata[*key].is_number()), "{metadata}");
    assert!(!project.path().join("evals/get-weather.labeled.json").exists());
}

#[test]
fn extends_an_existing_file_without_changing_its_cases() {
    let existing = "{\n    \"metadata\": {\"toolName\": \"get_weather\", \"descriptionHash\": \"000000000000\"},\n    \"cases\": [\n        { \"id\": \"gs-get_weather-007\",  \"input\": {\"message\": \"Is it hot?\"}, \"expect\": {\"toolsCalled\": [\"get_weather\"]} }\n    ]\n}\n";
    let project = forge_project(3).file("evals/mine.golden.json", existing);
    let output = project.run(["forge", "get_weather", "--approve-all", "--tier", "golden"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.unwrapped_stderr().contains("written for another description"), "{}", output.stderr);
    let text = project.read("evals/mine.golden.json");
    assert!(text.contains(existing.lines().nth(3).expect("a case")), "{text}");
    let ids: Vec<String> = project.read_json("evals/mine.golden.json")["cases"]
        .as_array()
        .expect("cases")
        .iter()
        .map(|case| case["id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(&ids[..2], ["gs-get_weather-007", "gs-get-weather-008"]);
    assert!(!project.path().join("evals/get-weather.golden.json").exists());
}

#[test]
fn a_dry_run_writes_nothing() {
    let project = forge_project(3);
    let output = project.run(["forge", "get_weather", "--dry-run", "--tier", "golden"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("gs-get-weather-001"), "{}", output.stdout);
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{}", output.stdout);
    let json = project.run(["forge", "get_weather", "--dry-run", "--format", "json"]);
    let report: Value = serde_json::from_str(&json.stdout).expect("valid JSON");
    assert_eq!(report["batches"][0]["drafts"][0]["case"]["id"], "gs-get-weather-001");
    assert_eq!((report["drafter"].as_str(), report["files"].as_array().map(Vec::len)), (Some("template"), Some(0)));
    assert!(!project.path().join(".karat").exists());
    assert_eq!(project.files_in("evals", ".json").len(), 1);
}

#[test]
fn rejects_a_vague_description() {
    let project = forge_project(3)
        .file("tools.json", json!([{"name": "get_weather", "description": "Helps with stuff."}, {"name": "nothing"}]));
    insta::assert_snapshot!(project.run(["forge", "get_weather", "--approve-all"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: get_weather (tools.json:4:18): The tool description is too vague for
      reliable eval generation. Fix the description first.
      description-trigger: the description does not say when to use the tool:
        missing 'Use when …'
        add a sentence that says when to call it: Use when the user asks ….
      description-vague: vague wording: 'stuff'
        be specific: name the data, its source, and what the tool does with it
      suggested description: Helps with stuff <which ones, whose, from where>. Use
        when the user asks ….
      to draft anyway, add this to karat.json: {"silence": {"get_weather":
        ["description-trigger", "description-vague"]}}
    "#);
    insta::assert_snapshot!(project.run(["forge", "nothing", "--plan"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: nothing (tools.json:6:2): The tool description is too vague for reliable
      eval generation. Fix the description first.
      description-missing: missing description: a model can only guess what the tool
        is for
        write: <What it does>. Use when the user asks …. <If tools overlap: For …,
          use OTHER instead.>
      suggested description: <What it does>. Use when the user asks ….
      to draft anyway, add this to karat.json: {"silence": {"nothing":
        ["description-missing"]}}
    "#);
    assert_eq!(project.files_in("evals", ".json").len(), 1);
    // Silenced findings do not block.
    let silenced = project.run(["forge", "get_weather", "--plan", "--silence", r#"{"get_weather": "*"}"#]);
    assert_eq!(silenced.code, Some(0), "{}", silenced.both());
}

#[test]
fn errors_have_hints() {
    let project = forge_project(3);
    let without_triggers = json!([{"name": "get_weather", "description": tools(1)["tools"][0]["description"]}]);
    let cases: [(&[&str], i32, &str); 8] = [
        (&["forge", "get_wether", "--plan"], 2, "did you mean 'get_weather'?"),
        (&["forge", "get_weather"], 2, "approving drafts needs a terminal"),
        (&["forge"], 2, "karat forge TOOL"),
        (&["forge", "--resume", "--approve-all"], 4, "to start one: karat forge TOOL"),
        (&["forge", "get_weather", "--resume", "--approve-all"], 4, "to start one: karat forge get_weather"),
        (&["forge", "get_weather", "--dry-run", "--drafter", "traces"], 4, "--traces FILE.jsonl"),
        (&["forge", "get_weather", "--dry-run", "--drafter", "model"], 2, "pass --model PROVIDER:MODEL"),
        (&["forge", "get_weather", "--dry-run", "--model", "unknown:m"], 2, "'unknown:m' is not a valid drafter"),
    ];
    for (arguments, code, expected) in cases {
        let output = project.run(arguments.iter().copied());
        assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.both());
        assert!(output.stderr.contains(expected), "{arguments:?}: {}", output.stderr);
    }
    project.write("tools.json", without_triggers);
    let output = project.run(["forge", "get_weather", "--dry-run", "--trigger", "one", "--trigger", "ONE "]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("has 1 trigger phrase; at least 3"), "{}", output.stderr);
    let with_triggers =
        ["forge", "get_weather", "--dry-run", "--trigger", "one", "--trigger", "two", "--trigger", "three"];
    assert_eq!(project.run(with_triggers).code, Some(0));
}

#[test]
fn a_brief_without_trigger_phrases_warns() {
    let tool = json!({"name": "get_weather", "description": tools(1)["tools"][0]["description"]});
    let project = forge_project(1).file("tools.json", json!([tool]));
    let output = project.run(["forge", "get_weather", "--brief"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.unwrapped_stderr().contains("0 trigger phrases, but golden cases need 3 to 5"), "{}", output.stderr);
    let with_triggers =
        ["forge", "get_weather", "--brief", "--trigger", "one", "--trigger", "two", "--trigger", "three"];
    for arguments in [&with_triggers[..], &["forge", "get_weather", "--brief", "--tier", "labeled"]] {
        let output = project.run(arguments.iter().copied());
        assert!(!output.stderr.contains("trigger phrases"), "{}", output.stderr);
    }
}

#[test]
fn does_not_modify_a_broken_file() {
    let project = forge_project(3).file("evals/get-weather.golden.json", "{\"cases\": [");
    let output = project.run(["forge", "get_weather", "--approve-all"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("cannot add cases to"), "{}", output.stderr);
    assert_eq!(project.read("evals/get-weather.golden.json"), "{\"cases\": [");
}

/// The model gives the same answer to every request, so only the first slot gets a case.
#[test]
fn lists_and_leaves_out_drafts_with_errors() {
    let good = json!({"id": "gs-get-weather-001", "input": {"message": "Show me the weather of Paris"}, "expect": {
        "toolsCalled": ["get_weather"], "noToolErrors": true, "responseNonEmpty": true,
        "responseContains": ["21.5 °C", "north-west"],
        "responseNotContains": ["I don't know"],
    }});
    let script = json!({"replies": [], "otherwise": {"value": {"cases": [good]}}});
    let project = forge_project(3).file("model.json", script);
    let arguments = ["forge", "get_weather", "--approve-all", "--tier", "golden", "--model", "scripted:model.json"];
    let output = project.run(arguments);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("wrote evals/get-weather.golden.json: 1 golden case"), "{}", output.both());
    assert!(output.stdout.contains("left out: "), "{}", output.stdout);
    assert!(output.stdout.contains("gs-get-weather-002: "), "{}", output.stdout);
    let metadata = &project.read_json("evals/get-weather.golden.json")["metadata"];
    assert_eq!(metadata["approvals"][0]["drafter"], "model");
    assert_eq!(metadata["approvals"][0]["model"], "scripted:model.json");
}

/// Without a session, a script can just try again.
#[test]
fn a_failed_model_leaves_no_session() {
    let script = json!({"replies": [], "otherwise": {"error": "out of order"}});
    let project = forge_project(3).file("model.json", script);
    let failed = project.run(["forge", "get_weather", "--approve-all", "--model", "scripted:model.json"]);
    assert_eq!(failed.code, Some(3), "{}", failed.both());
    assert!(failed.stderr.contains("out of order"), "{}", failed.stderr);
    assert!(!failed.stderr.contains("--resume"), "{}", failed.stderr);
    let again = project.run(["forge", "get_weather", "--approve-all"]);
    assert_eq!(again.code, Some(0), "{}", again.both());
    assert_eq!(project.run(["check"]).code, Some(0));
}

#[test]
fn reports_other_errors_before_a_missing_terminal() {
    let project = forge_project(3);
    let unknown = project.run(["forge", "get_wether"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.both());
    assert!(unknown.stderr.contains("get_wether") && !unknown.stderr.contains("terminal"), "{}", unknown.stderr);
    let output = project.run(["forge", "get_weather"]);
    assert!(output.stderr.contains("approving drafts needs a terminal"), "{}", output.stderr);
}

#[test]
fn verify_runs_drafts_against_the_agent() {
    let script = json!({"replies": {}, "otherwise": {"response": "no idea", "toolCalls": []}});
    let project = forge_project(3).file("agent.json", script);
    let arguments = [
        "forge",
        "get_weather",
        "--dry-run",
        "--tier",
        "golden",
        "--verify",
        "--agent-endpoint",
        "scripted:agent.json",
    ];
    let output = project.run(arguments);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("the agent fails: toolsCalled"), "{}", output.both());
    let without = project.run(["forge", "get_weather", "--dry-run", "--verify"]);
    assert_eq!(without.code, Some(2), "{}", without.both());
    assert!(without.stderr.contains("no agent is configured"), "{}", without.stderr);
}

#[test]
fn drafts_cases_from_traces() {
    let trace = |number: usize, message: &str| {
        let call = json!({"name": "get_weather", "arguments": {"city": "Oslo"}, "result": {"degrees": format!("{number}1.5")}});
        let output = format!("It is {number}1.5 degrees in Oslo.");
        let step = json!({"input": message, "output": output, "tool_calls": [call]});
        json!({"trace_id": format!("t{number}"), "steps": [step]}).to_string()
    };
    let traces = [trace(1, "How cold is it up in Oslo today?"), "no trace".to_owned()].join("\n");
    let project = forge_project(3).file("traces.jsonl", traces);
    let output = project.run(["forge", "get_weather", "--dry-run", "--tier", "golden", "--traces", "traces.jsonl"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stderr.contains("skipped line 2 of the traces"), "{}", output.stderr);
    assert!(output.stderr.contains("1 different messages are usable"), "{}", output.stderr);
    assert!(output.stdout.contains("How cold is it up in Oslo today?"), "{}", output.stdout);
    project.write("empty.jsonl", "\n");
    let output = project.run(["forge", "get_weather", "--dry-run", "--tier", "golden", "--traces", "empty.jsonl"]);
    assert_eq!(output.code, Some(4), "{}", output.both());
    assert!(output.stderr.contains("no traces in empty.jsonl"), "{}", output.stderr);
}
