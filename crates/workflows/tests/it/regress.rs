//! Tests of adding, sealing and archiving regression cases.

use karat_workflows::regress::{AddRequest, ArchiveRequest, Outcome, SealOutcome, Source, add, archive, seal};
use karat_workflows::{ErrorKind, Hint};
use serde_json::{Map, Value, json};

use crate::project::TestProject;
use crate::project_store::ProjectStore;

const FILE: &str = "evals/get-weather.regression.json";

fn with_tools() -> TestProject {
    let tools = json!([{"name": "get_weather", "description": "Fetches the weather."}]);
    TestProject::new().file("karat.json", json!({"toolRegistryPath": "tools.json"})).file("tools.json", tools)
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn request() -> AddRequest {
    AddRequest {
        tool: Some("get-weather".to_owned()),
        bug_ref: Some("#7".to_owned()),
        message: Some("Weather in Oslo?".to_owned()),
        expect: object(json!({"toolsCalled": ["get_weather"]})),
        ..AddRequest::default()
    }
}

#[tokio::test]
async fn adds_a_case_to_a_new_file() {
    let project = with_tools();
    let added = add(request(), &project.context()).await.unwrap();
    assert_eq!(added.outcome, Outcome::Added { new_file: true });
    assert_eq!((added.case.id.as_str(), added.case.path.as_str()), ("rg-get-weather-001", FILE));
    let file = project.files.read_json(FILE);
    assert_eq!(file["cases"][0]["createdAt"], "2026-01-02T03:04:05Z");
    assert_eq!(file["metadata"]["caseHashes"]["rg-get-weather-001"], json!(added.case.hash));
    assert!(added.into_report().written);
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let project = with_tools();
    let added = add(AddRequest { dry_run: true, ..request() }, &project.context()).await.unwrap();
    assert_eq!(added.outcome, Outcome::Planned { new_file: true });
    assert!(!project.files.path().join("evals").exists());
}

#[tokio::test]
async fn rejects_unknown_tools_runs_and_cases_that_always_pass() {
    let project = with_tools();
    let context = project.context();
    let error = add(AddRequest { tool: Some("get_wether".to_owned()), ..request() }, &context).await.unwrap_err();
    assert_eq!((error.kind, error.hints), (ErrorKind::NotFound, vec![Hint::from("did you mean 'get_weather'?")]));
    let source = Source::Run { run: "latest".to_owned(), case: "x".to_owned(), even_if_passed: false };
    let error = add(AddRequest { source: Some(source), ..request() }, &context).await.unwrap_err();
    assert_eq!((error.kind, error.hints), (ErrorKind::NotFound, vec![Hint::RunEvals]));
    let error = add(AddRequest { expect: Map::new(), ..request() }, &context).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
}

#[test]
fn seals_valid_files_and_reports_invalid_ones() {
    let case = json!({"id": "a", "input": {"message": "hi"}, "expect": {"toolsCalled": []}});
    let project = with_tools().file(FILE, json!({"metadata": {}, "cases": [case]}));
    project.files.write("evals/broken.regression.json", "{");
    let SealOutcome { report, failures } = seal(&[], &project.context()).unwrap();
    assert_eq!(report.cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(
        failures.iter().map(|error| (error.kind, error.files.len())).collect::<Vec<_>>(),
        [(ErrorKind::Invalid, 1)]
    );
}

#[tokio::test]
async fn archives_a_case_and_warns_about_an_edit() {
    let project = with_tools();
    let context = project.context();
    add(request(), &context).await.unwrap();
    project.files.write(FILE, project.files.read(FILE).replace("Oslo", "Bergen"));
    let id = "rg-get-weather-001".to_owned();
    let report = archive(ArchiveRequest { id: id.clone(), reason: None, file: None }, &context).unwrap();
    assert_eq!(report.cases[0].archive.as_deref(), Some("evals/get-weather.regression.archived.json"));
    assert_eq!(project.files.read_json(FILE)["cases"], json!([]));
    assert!(project.notices().iter().any(|notice| notice.contains("was edited after it was sealed")));
    let error = archive(ArchiveRequest { id, reason: None, file: None }, &context).unwrap_err();
    assert!(error.message.ends_with("is already archived"), "{error}");
}

#[tokio::test]
async fn rejects_an_unreadable_trace() {
    let project = with_tools();
    let context = project.context();
    let store = ProjectStore::open(&context).await;
    store.add_text("t-broken", "{\"steps\": [").await;
    store.close().await;
    let source = Source::Trace { trace: "t-broken".to_owned(), step: None };
    let error = add(AddRequest { source: Some(source), ..request() }, &context).await.unwrap_err();
    let message = "cannot create a case from trace t-broken: not valid JSON: EOF while parsing a list at column 11";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Invalid, message));
}
