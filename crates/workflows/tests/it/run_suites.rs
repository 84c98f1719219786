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
