//! Tests of listing and showing stored traces.

use karat_core::rating::Rating;
use karat_workflows::trace_filter::TraceFilterRequest;
use karat_workflows::traces::{ListRequest, list, raw, show};
use karat_workflows::{ErrorKind, Hint};

use crate::project::TestProject;
use crate::project_store::ProjectStore;

fn request(filter: TraceFilterRequest) -> ListRequest {
    let now = "2026-01-02T03:04:05Z".parse().expect("valid time");
    ListRequest { filter: filter.resolve(now).expect("valid filter"), limit: None, short_ids: true }
}

#[tokio::test]
async fn lists_with_filter_limit_and_short_ids() {
    let project = TestProject::new();
    let store = ProjectStore::open(&project.context()).await;
    for id in ["conversation-1", "conversation-2", "other"] {
        store.add_trace(id, "Hello").await;
    }
    store.close().await;
    let all = ListRequest { limit: Some(2), ..request(TraceFilterRequest::default()) };
    let listed = list(all, &project.context()).await.unwrap();
    assert_eq!((listed.list.total, listed.list.traces.len(), listed.short_ids.len()), (3, 2, 2));
    assert!(listed.empty_error.is_none() && listed.short_ids.iter().all(|id| id.len() >= 5));
    let old = TraceFilterRequest { until: Some("7d".to_owned()), ..TraceFilterRequest::default() };
    let listed = list(request(old), &project.context()).await.unwrap();
    assert_eq!((listed.list.total, listed.empty_error.map(|error| error.kind)), (0, Some(ErrorKind::NothingSelected)));
}

#[tokio::test]
async fn distinguishes_an_empty_from_a_missing_store() {
    let project = TestProject::new();
    let all = || request(TraceFilterRequest::default());
    let error = list(all(), &project.context()).await.unwrap_err();
    assert_eq!(error.hints, [Hint::CreateStore]);
    ProjectStore::open(&project.context()).await.close().await;
    let error = list(all(), &project.context()).await.unwrap().empty_error.expect("an error");
    assert_eq!((error.kind, error.hints), (ErrorKind::NothingSelected, vec![Hint::ImportOrReceiveTraces]));
}

#[tokio::test]
async fn shows_a_trace_with_verdicts_and_ratings() {
    let project = TestProject::new();
    let store = ProjectStore::open(&project.context()).await;
    store.add_trace("conversation-1", "Hello").await;
    let version = store.add_version("eval_tone", "code").await;
    store.add_verdict("eval_tone", version, "conversation-1", true).await;
    store.add_rating("ada", "conversation-1", Rating::Positive).await;
    store.close().await;
    let context = project.context();
    let details = show("conv", &context).await.unwrap();
    assert_eq!((details.executions.len(), details.feedback.len()), (1, 1));
    assert_eq!(raw("conv", &context).await.unwrap(), details.document.text().as_bytes());
    let error = show("unknown", &context).await.unwrap_err();
    assert_eq!((error.kind, error.hints), (ErrorKind::NotFound, vec![Hint::ListTraces]));
}

#[tokio::test]
async fn reports_the_id_of_an_unreadable_document() {
    let project = TestProject::new();
    let store = ProjectStore::open(&project.context()).await;
    store.add_text("not-json", "{\"steps\": [").await;
    store.add_text("not-a-trace", "{\"trace_id\": \"not-a-trace\"}").await;
    store.close().await;
    let context = project.context();
    for (id, reason) in [
        ("not-json", "not valid JSON: EOF while parsing a list at column 11"),
        ("not-a-trace", "the trace has no 'steps' list"),
    ] {
        let error = show(id, &context).await.unwrap_err();
        assert_eq!(error.message, format!("cannot read the document of trace '{id}': {reason}"));
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert_eq!(error.hints, [Hint::ShowRawTrace { trace: id.to_owned() }]);
    }
    assert_eq!(raw("not-json", &context).await.unwrap(), b"{\"steps\": [");
}
