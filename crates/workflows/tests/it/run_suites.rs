use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use karat_core::event::{ReportError, Reporter, RunEvent};
use karat_core::port::RunStore;
use karat_workflows::run_suites::{Outcome, Request, SelectionRequest, run_suites};
use karat_workflows::{CancellationToken, Error, ErrorKind};
use serde_json::json;

use crate::project::TestProject;

fn project() -> TestProject {
    let case = |id: &str, text: &str| {
        json!({
            "id": id,
            "description": "asks for the weather",
            "input": { "message": id },
            "expect": { "toolsCalled": ["get_weather"], "responseContains": [text] },
        })
    };
    let reply = json!({ "response": "18 degrees", "toolCalls": [{ "name": "get_weather", "success": true }] });
    let script = json!({ "replies": { "gs-weather-001": reply, "gs-weather-002": reply } });
    TestProject::new()
        .file("evals/weather.golden.json", json!([case("gs-weather-001", "18"), case("gs-weather-002", "20")]))
        .file("agent.json", script)
        .file("karat.json", json!({ "agentEndpoint": "scripted:agent.json" }))
}

/// Collects the ids of finished cases.
#[derive(Clone, Default)]
struct FinishedCases(Arc<Mutex<Vec<(String, bool)>>>);

impl Reporter for FinishedCases {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if let RunEvent::CaseFinished { result, .. } = event {
            self.0.lock().unwrap().push((result.id.clone(), result.passed));
        }
        Ok(())
    }
}

async fn run(
    project: &TestProject,
    store: bool,
    cancel: &CancellationToken,
) -> Result<(Outcome, FinishedCases), Error> {
    let request =
        Request { paths: vec![PathBuf::from("evals")], selection: SelectionRequest::default(), store, telemetry: None };
    let finished = FinishedCases::default();
    let reporter = finished.clone();
    let reporters = move |_| Ok(vec![Box::new(reporter) as Box<dyn Reporter>]);
    let outcome = run_suites(request, &project.context(), reporters, cancel).await?;
    Ok((outcome, finished))
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_the_same_with_and_without_a_store() {
    let project = project();
    for store in [false, true] {
        let (outcome, finished) = run(&project, store, &CancellationToken::new()).await.unwrap();
        assert_eq!((outcome.totals.passed, outcome.totals.failed, outcome.totals.errored), (1, 1, 0));
        assert!(outcome.report_errors.is_empty() && outcome.store_error.is_none() && outcome.not_stored.is_empty());
        let mut finished = finished.0.lock().unwrap().clone();
        finished.sort();
        assert_eq!(finished, [("gs-weather-001".to_owned(), true), ("gs-weather-002".to_owned(), false)]);
        if store {
            let store = project.context().open_store().await.unwrap();
            let cases = store.cases_of_run(&outcome.run_id).await.unwrap();
            assert_eq!(cases.len(), 2);
            assert!(cases.iter().all(|case| case.trace_id.is_some()));
            assert!(store.runs(1).await.unwrap()[0].ended_at.is_some());
            store.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_error_kinds_for_runs_that_cannot_start() {
    let cancel = CancellationToken::new();
    let error = run(&TestProject::new(), false, &cancel).await.map(drop).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Invalid | ErrorKind::NothingSelected), "{error:?}");
    cancel.cancel();
    let ended = run(&project(), true, &cancel).await;
    match ended {
        Ok((outcome, _)) => assert!(outcome.totals.interrupted),
        Err(error) => assert_eq!(error.kind, ErrorKind::Cancelled),
    }
}

/// A project whose hooks write their names to a log; the given one fails.
#[cfg(unix)]
fn project_with_hooks(failing: &str) -> TestProject {
    let hook = |name: &str| {
        let status = u8::from(name == failing);
        json!(["sh", "-c", format!("echo {name} >> log; echo no database >&2; exit {status}")])
    };
    let hooks = ["beforeRun", "beforeCase", "afterCase", "afterRun"].map(|name| (name.to_owned(), hook(name)));
    let hooks: serde_json::Map<String, serde_json::Value> = hooks.into_iter().collect();
    project().file("karat.json", json!({ "agentEndpoint": "scripted:agent.json", "hooks": hooks }))
}

#[cfg(unix)]
fn log(project: &TestProject) -> Vec<String> {
    project.files.read("log").lines().map(str::to_owned).collect()
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn calls_hooks_around_the_run_and_each_case() {
    let project = project_with_hooks("");
    let (outcome, _) = run(&project, true, &CancellationToken::new()).await.unwrap();
    assert_eq!((outcome.totals.passed, outcome.hook_error), (1, None));
    let expected = ["beforeRun", "beforeCase", "afterCase", "beforeCase", "afterCase", "afterRun"];
    assert_eq!(log(&project), expected);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_prepared_has_no_verdict_and_is_not_stored() {
    let project = project_with_hooks("beforeRun");
    let error = run(&project, true, &CancellationToken::new()).await.map(drop).unwrap_err();
    let message = "the hook beforeRun failed: sh ended with exit status 1; its stderr: no database";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::NoVerdict, message));
    assert_eq!(log(&project), ["beforeRun", "afterRun"]);
    let store = project.context().open_store().await.unwrap();
    assert!(store.runs(1).await.unwrap().is_empty());
    store.close().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_cleaned_up_keeps_its_results() {
    let project = project_with_hooks("afterRun");
    let (outcome, finished) = run(&project, false, &CancellationToken::new()).await.unwrap();
    let error = outcome.hook_error.unwrap();
    assert!(error.starts_with("the hook afterRun failed: ") && error.ends_with("no database"), "{error}");
    assert_eq!(finished.0.lock().unwrap().len(), 2);
}
