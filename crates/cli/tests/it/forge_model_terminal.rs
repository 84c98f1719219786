//! `karat forge` with a model behind a real HTTP server, in a conversation on a real terminal.

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::forge::forge_project;
use crate::forge_terminal::Person;

const GOLDEN: &str = "evals/get-weather.golden.json";

/// Returns cases as a good model drafts them, one for each place of the golden batch.
fn good_cases(project: &TempProject) -> Vec<Value> {
    let output = project.run(["forge", "get_weather", "--brief", "--tier", "golden", "--format", "json"]);
    let brief: Value = serde_json::from_str(&output.stdout).expect("a brief");
    let case = |(number, slot): (usize, &Value)| {
        json!({
            "id": slot["id"],
            "description": slot["purpose"],
            "input": {"message": format!("Question {number} of the {number}th kind: is it windy in town {number}?")},
            "expect": {
                "toolsCalled": ["get_weather"],
                "responseContains": ["21.5 °C", "north-west"],
                "responseNotContains": ["I don't know"],
            },
        })
    };
    brief["slots"].as_array().expect("slots").iter().enumerate().map(case).collect()
}

/// Returns the same cases, each changed.
fn changed(cases: &[Value], change: fn(&mut Value)) -> Value {
    let mut cases = cases.to_vec();
    cases.iter_mut().for_each(change);
    json!({"structured": {"cases": cases}})
}

fn wrong_tools(cases: &[Value]) -> Value {
    changed(cases, |case| case["expect"]["toolsCalled"] = json!(["get_wether"]))
}

fn same_message(cases: &[Value]) -> Value {
    changed(cases, |case| case["input"]["message"] = json!("Show me the weather of Paris"))
}

fn unknown_field(cases: &[Value]) -> Value {
    changed(cases, |case| case["expect"]["toolsExpected"] = json!(["get_weather"]))
}

fn no_json(_: &[Value]) -> Value {
    json!({"rawStructured": "With pleasure! Here are your cases."})
}

fn half_a_json(_: &[Value]) -> Value {
    json!({"rawStructured": "{\"cases\": [{\"id\": \"gs-get-weather-001\", \"inp"})
}

fn refusal(_: &[Value]) -> Value {
    json!({"refusal": "I cannot help with that."})
}

fn too_many_requests(_: &[Value]) -> Value {
    json!({"status": 429, "text": "slow down", "headers": {"retry-after": "0"}})
}

fn at_the_terminal(project: &TempProject, server: &ScriptedServer) -> Person {
    let base = format!("{}/v1", server.base());
    let variables = [("OPENAI_BASE_URL", base.as_str()), ("OPENAI_API_KEY", "sk-test-0123456789")];
    Person::with(project, &["get_weather", "--tier", "golden", "--model", "openai:test-model"], &variables)
}

#[test]
fn good_drafts_are_shown_at_once() {
    let project = forge_project(3);
    let cases = good_cases(&project);
    let server = ScriptedServer::start(json!({"*": {"structured": {"cases": cases}, "usage": [900, 400]}}));
    let mut ada = at_the_terminal(&project, &server);
    ada.reads("gs-get-weather-001");
    ada.reads("'north-west'");
    ada.decides("a");
    ada.reads("the model read 900 and wrote 400 tokens");
    ada.reads("wrote evals/get-weather.golden.json");
    ada.leaves_with(0);
    let file = project.read_json(GOLDEN);
    assert_eq!(file["cases"].as_array().map(Vec::len), Some(cases.len()));
    assert_eq!(file["metadata"]["approvals"][0]["drafter"], "model");
    assert_eq!(file["metadata"]["approvals"][0]["model"], "openai:test-model");
    assert_eq!((server.request_count(), server.refusals()), (1, Vec::new()));
}

/// What does not hold goes back to the model with the reason, and a person sees what came then.
#[rstest]
#[case::wrong_tools(wrong_tools, "get_wether")]
#[case::same_message(same_message, "gs-get-weather-001")]
#[case::unknown_field(unknown_field, "toolsExpected")]
#[case::no_json(no_json, "With pleasure!")]
#[case::half_a_json(half_a_json, "gs-get-weather-001")]
#[case::refusal(refusal, "I cannot help with that.")]
#[case::too_many_requests(too_many_requests, "")]
fn what_does_not_hold_goes_back(#[case] first: fn(&[Value]) -> Value, #[case] told: &str) {
    let project = forge_project(3);
    let cases = good_cases(&project);
    let server = ScriptedServer::start(json!({"*": {"queue": [first(&cases), {"structured": {"cases": cases}}]}}));
    let mut ada = at_the_terminal(&project, &server);
    ada.decides("a");
    ada.reads("wrote evals/get-weather.golden.json");
    ada.leaves_with(0);
    assert_eq!(project.read_json(GOLDEN)["cases"].as_array().map(Vec::len), Some(cases.len()));
    assert_eq!((server.request_count(), server.refusals()), (2, Vec::new()));
    assert!(server.bodies()[1].to_string().contains(told), "{}", server.bodies()[1]);
}

/// After two more tries it is shown as failed: it cannot be approved, and nothing of it is written.
#[rstest]
#[case::wrong_tools(wrong_tools, "the registry has no tool 'get_wether'")]
#[case::unknown_field(unknown_field, "unknown key 'toolsExpected'")]
#[case::no_json(no_json, "the answer is no JSON")]
#[case::refusal(refusal, "I cannot help with that.")]
fn what_still_fails_is_shown(#[case] answer: fn(&[Value]) -> Value, #[case] shown: &str) {
    let project = forge_project(3);
    let server = ScriptedServer::start(json!({"*": answer(&good_cases(&project))}));
    let mut ada = at_the_terminal(&project, &server);
    ada.reads("gs-get-weather-001");
    ada.reads(shown);
    ada.decides("a");
    ada.reads("not approved, since there are errors: 1, 2, 3");
    ada.decides("q");
    ada.reads("--resume goes on here");
    ada.leaves_with(0);
    assert!(!project.path().join(GOLDEN).exists());
    assert_eq!(server.request_count(), 3);
}

/// A model that is not to be had costs nothing: the session is kept, and says so.
#[test]
fn a_model_that_stays_busy_is_told() {
    let project = forge_project(3);
    let server = ScriptedServer::start(json!({"*": too_many_requests(&[])}));
    let mut ada = at_the_terminal(&project, &server);
    ada.reads("429");
    ada.reads("Try again?");
    ada.types("n");
    ada.reads("--resume goes on here");
    ada.leaves_with(0);
    assert!(!project.path().join(GOLDEN).exists());
}
