//! Tests of adding, retracting, listing and importing feedback.

use karat_core::rating::Rating;
use karat_workflows::feedback::{ImportRequest, ListRequest, RateRequest, import, list, rate};
use karat_workflows::{ErrorKind, Hint};

use crate::project::TestProject;
use crate::project_store::ProjectStore;

async fn with_trace() -> TestProject {
    let project = TestProject::new();
    let store = ProjectStore::open(&project.context()).await;
    store.add_trace("conversation-1", "Hello").await;
    store.close().await;
    project
}

fn request(rating: Option<Rating>) -> RateRequest {
    RateRequest { trace: "conv".to_owned(), rating, note: None, author: "ada".to_owned(), source: "cli" }
}

#[tokio::test]
async fn adds_a_rating_once_and_retracts_it() {
    let project = with_trace().await;
    let context = project.context();
    let error = rate(request(None), &context).await.unwrap_err();
    assert_eq!((error.kind, error.hints), (ErrorKind::Invalid, vec![Hint::ListFeedback]));
    let change = rate(request(Some(Rating::Negative)), &context).await.unwrap();
    assert_eq!((change.added, change.rating, change.authors), (true, Some(Rating::Negative), 1));
    assert!(!rate(request(Some(Rating::Negative)), &context).await.unwrap().added);
    // The newer feedback counts even with the same clock time.
    let change = rate(request(None), &context).await.unwrap();
    assert_eq!((change.added, change.rating, change.authors), (true, None, 0));
    let counts = list(ListRequest::default(), &context).await.unwrap();
    assert!(counts.feedback.is_empty() && !counts.is_store_empty);
    let history = ListRequest { history: true, limit: Some(1), ..ListRequest::default() };
    let history = list(history, &context).await.unwrap();
    assert_eq!((history.feedback.len(), history.more), (1, true));
}

#[tokio::test]
async fn imports_all_rows_or_skips_invalid_ones() {
    let project = with_trace().await;
    let context = project.context();
    let text = "trace_id,rating,author\nconversation-1,positive,ada\nunknown,negative,ada\n";
    let request = ImportRequest {
        name: "labels.csv".to_owned(),
        bytes: text.as_bytes().to_vec(),
        unknown_trace_help: Some("list the traces".to_owned()),
        ..ImportRequest::default()
    };
    let imported = import(request.clone(), &context).await.unwrap();
    let refused = imported.refused.expect("one row is invalid");
    assert_eq!((refused.kind, refused.hints), (ErrorKind::Invalid, vec![Hint::SkipInvalidRows]));
    assert_eq!(refused.files[0].findings[0].help.as_deref(), Some("list the traces"));
    assert!(!imported.report.written && list(ListRequest::default(), &context).await.unwrap().is_store_empty);
    let valid = ImportRequest { skip_invalid: true, ..request };
    let report = import(valid.clone(), &context).await.unwrap().report;
    assert_eq!((report.written, report.rows, report.added, report.invalid.len()), (true, 2, 1, 1));
    let report = import(valid, &context).await.unwrap().report;
    assert_eq!((report.added, report.unchanged), (0, 1));
}
