//! `karat forge` at a terminal, with a model behind an HTTP server.

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::forge::forge_project;
use crate::forge_terminal::TerminalSession;

const GOLDEN: &str = "evals/get-weather.golden.json";

/// Returns valid cases, one for each slot of the golden batch.
fn good_cases(project: &TempProject) -> Vec<Value> {
    let output = project.run(["forge", "get_weather", "--brief", "--tier", "golden", "--format", "json"]);
    let brief: Value = serde_json::from_str(&output.stdout).expect("valid brief");
    let case = |(number, slot): (usize, &Value)| {
        json!({
            "id": slot["id"],
            "description": slot["purpose"],
            "input": {"message": format!("Question {number} of the {number}th kind: is it windy in town {number}?")},
            "expect": {
                "toolsCalled": ["get_weather"],
                "noToolErrors": true,
                "responseNonEmpty": true,
                "responseContains": ["21.5 °C", "north-west"],
                "responseNotContains": ["I don't know"],
            },
        })
    };
    brief["slots"].as_array().expect("slots").iter().enumerate().map(case).collect()
}

/// Returns an answer with the cases, each changed.
fn with_change(cases: &[Value], change: fn(&mut Value)) -> Value {
    let mut cases = cases.to_vec();
    cases.iter_mut().for_each(change);
    json!({"structured": {"cases": cases}})
}

fn wrong_tools(cases: &[Value]) -> Value {
    with_change(cases, |case| case["expect"]["toolsCalled"] = json!(["get_wether"]))
}

fn same_message(cases: &[Value]) -> Value {
    with_change(cases, |case| case["input"]["message"] = json!("Show me the weather of Paris"))
}

fn unknown_field(cases: &[Value]) -> Value {
    with_change(cases, |case| case["expect"]["toolsExpected"] = json!(["get_weather"]))
}

fn no_json(_: &[Value]) -> Value {
    json!({"rawStructured": "With pleasure! Here are your cases."})
}

fn truncated_json(_: &[Value]) -> Value {
    json!({"rawStructured": "{\"cases\": [{\"id\": \"gs-get-weather-001\", \"inp"})
}

fn refusal(_: &[Value]) -> Value {
    json!({"refusal": "I cannot help with that."})
}

fn too_many_requests(_: &[Value]) -> Value {
    json!({"status": 429, "text": "slow down", "headers": {"retry-after": "0"}})
}

fn start_forge(project: &TempProject, server: &ScriptedServer) -> TerminalSession {
    let base = format!("{}/v1", server.base_url());
    let variables = [("OPENAI_BASE_URL", base.as_str()), ("OPENAI_API_KEY", "sk-test-0123456789")];
    TerminalSession::forge_with_env(
        project,
        &["get_weather", "--tier", "golden", "--model", "openai:test-model"],
        &variables,
    )
}

#[test]
fn shows_valid_drafts() {
    let project = forge_project(3);
    let cases = good_cases(&project);
    let server = ScriptedServer::start(json!({"*": {"structured": {"cases": cases}, "usage": [900, 400]}}));
    let mut terminal = start_forge(&project, &server);
    terminal.expect_output("gs-get-weather-001");
    terminal.expect_output("'north-west'");
    terminal.answer("a");
    terminal.expect_output("tokens used: 900 input, 400 output");
    terminal.expect_output("wrote evals/get-weather.golden.json");
    terminal.expect_exit(0);
    let file = project.read_json(GOLDEN);
    assert_eq!(file["cases"].as_array().map(Vec::len), Some(cases.len()));
    assert_eq!(file["metadata"]["approvals"][0]["drafter"], "model");
    assert_eq!(file["metadata"]["approvals"][0]["model"], "openai:test-model");
    assert_eq!((server.request_count(), server.refusals()), (1, Vec::new()));
}

#[rstest]
#[case::wrong_tools(wrong_tools, "get_wether")]
#[case::same_message(same_message, "gs-get-weather-001")]
#[case::unknown_field(unknown_field, "toolsExpected")]
#[case::no_json(no_json, "With pleasure!")]
#[case::truncated_json(truncated_json, "gs-get-weather-001")]
#[case::refusal(refusal, "I cannot help with that.")]
#[case::too_many_requests(too_many_requests, "")]
fn returns_invalid_drafts_to_the_model_with_the_reason(#[case] first: fn(&[Value]) -> Value, #[case] reason: &str) {
    let project = forge_project(3);
    let cases = good_cases(&project);
    let server = ScriptedServer::start(json!({"*": {"queue": [first(&cases), {"structured": {"cases": cases}}]}}));
    let mut terminal = start_forge(&project, &server);
    terminal.answer("a");
    terminal.expect_output("wrote evals/get-weather.golden.json");
    terminal.expect_exit(0);
    assert_eq!(project.read_json(GOLDEN)["cases"].as_array().map(Vec::len), Some(cases.len()));
    assert_eq!((server.request_count(), server.refusals()), (2, Vec::new()));
    assert!(server.bodies()[1].to_string().contains(reason), "{}", server.bodies()[1]);
}

/// After two retries, the drafts are shown with their errors, cannot be approved and are not written.
#[rstest]
#[case::wrong_tools(wrong_tools, "the registry has no tool 'get_wether'")]
#[case::unknown_field(unknown_field, "unknown key 'toolsExpected'")]
#[case::no_json(no_json, "the answer is not valid JSON")]
#[case::refusal(refusal, "I cannot help with that.")]
fn shows_drafts_that_still_fail(#[case] answer: fn(&[Value]) -> Value, #[case] expected: &str) {
    let project = forge_project(3);
    let server = ScriptedServer::start(json!({"*": answer(&good_cases(&project))}));
    let mut terminal = start_forge(&project, &server);
    terminal.expect_output("gs-get-weather-001");
    terminal.expect_output(expected);
    terminal.answer("a");
    terminal.expect_output("not approved because of errors: 1, 2, 3");
    terminal.answer("q");
    terminal.expect_output("to continue: karat forge get_weather --resume");
    terminal.expect_exit(0);
    assert!(!project.path().join(GOLDEN).exists());
    assert_eq!(server.request_count(), 3);
}

#[test]
fn an_unavailable_model_keeps_the_session() {
    let project = forge_project(3);
    let server = ScriptedServer::start(json!({"*": too_many_requests(&[])}));
    let mut terminal = start_forge(&project, &server);
    terminal.expect_output("429");
    terminal.expect_output("Try again?");
    terminal.send_line("n");
    terminal.expect_output("to continue: karat forge get_weather --resume");
    terminal.expect_exit(0);
    assert!(!project.path().join(GOLDEN).exists());
}
