use std::ops::ControlFlow;

use karat_core::judgement::Limits;
use karat_core::stored::TraceFilter;
use karat_sandbox::Isolation;
use karat_workflows::context::sandbox::SandboxOptions;
use karat_workflows::judge_stored::{Event, Outcome, Request, judge_stored};
use karat_workflows::{CancellationToken, Error, ErrorKind};

use crate::project::TestProject;
use crate::project_store::ProjectStore;

const CODE: &str = "def eval_hello(trace):\n    return 'hello' in str(trace), 'no greeting'\n";

fn request(again: bool) -> Request {
    let options = SandboxOptions { limits: Limits::default(), isolation: Isolation::default(), jobs: 2 };
    Request { evals: Vec::new(), version: None, filter: TraceFilter::default(), again, options }
}

async fn judge(project: &TestProject, again: bool) -> Result<(Outcome, Vec<(String, Option<bool>)>), Error> {
    let mut rows = Vec::new();
    let mut events = |event| {
        if let Event::Stored(execution) = event {
            rows.push((execution.trace_id, execution.result));
        }
        ControlFlow::Continue(())
    };
    let outcome = judge_stored(request(again), &project.context(), &mut events, &CancellationToken::new()).await?;
    Ok((outcome, rows))
}

#[tokio::test(flavor = "multi_thread")]
async fn judges_only_missing_traces_and_emits_stored_executions() {
    let project = TestProject::new();
    let store = ProjectStore::open(&project.context()).await;
    for number in 0..250 {
        let message = if number % 2 == 0 { "hello" } else { "bye" };
        store.add_trace(&format!("t-{number:03}"), message).await;
    }
    store.add_version("eval_hello", CODE).await;
    let (outcome, rows) = judge(&project, false).await.unwrap();
    assert!(outcome.error.is_none() && !outcome.summary.interrupted);
    let expected: Vec<_> = (0..250).map(|number| (format!("t-{number:03}"), Some(number % 2 == 0))).collect();
    assert_eq!(rows, expected, "each trace once, ordered by id");

    let (outcome, rows) = judge(&project, false).await.unwrap();
    assert_eq!((outcome.summary.judged, rows.len()), (0, 0), "nothing is missing");
    store.add_trace("t-250", "hello again").await;
    assert_eq!(judge(&project, false).await.unwrap().1, [("t-250".to_owned(), Some(true))]);
    assert_eq!(judge(&project, true).await.unwrap().1.len(), 251);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn judges_traces_again_after_a_change_of_code_or_guest() {
    let project = TestProject::new();
    let store = ProjectStore::open(&project.context()).await;
    store.add_trace("t", "hello").await;
    let version = store.add_version("eval_hello", CODE).await;
    // The code hash of this verdict is not the one of this function in this guest.
    store.add_verdict("eval_hello", version, "t", false).await;
    assert_eq!(judge(&project, false).await.unwrap().1, [("t".to_owned(), Some(true))]);
    assert_eq!(judge(&project, false).await.unwrap().1, []);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_error_kinds_for_a_cancelled_run_and_an_empty_store() {
    let project = TestProject::new();
    let error = judge(&project, false).await.map(drop).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NothingSelected);
    let store = ProjectStore::open(&project.context()).await;
    store.add_trace("t", "hello").await;
    store.add_version("eval_hello", CODE).await;
    store.close().await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let mut events = |_: Event| ControlFlow::Continue(());
    let result = judge_stored(request(false), &project.context(), &mut events, &cancel).await;
    match result {
        Ok(outcome) => assert!(outcome.summary.interrupted),
        Err(error) => assert_eq!(error.kind, ErrorKind::Cancelled),
    }
}
