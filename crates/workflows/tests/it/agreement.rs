//! Tests of agreement between verdicts and ratings.

use karat_core::rating::Rating;
use karat_evals::agreement::Direction;
use karat_workflows::agreement::{CompareRequest, MeasureRequest, compare, measure};
use karat_workflows::trace_filter::TraceOrigin;
use karat_workflows::{ErrorKind, Hint};

use crate::project::TestProject;
use crate::project_store::ProjectStore;

/// Stores ten positive traces. The first version passes two of them, the second nine.
async fn store_judged_traces(project: &TestProject) {
    let store = ProjectStore::open(&project.context()).await;
    let (first, second) = (store.add_version("eval_tone", "one").await, store.add_version("eval_tone", "two").await);
    for number in 0..10 {
        let id = format!("t-{number}");
        store.add_trace(&id, "Hello").await;
        store.add_verdict("eval_tone", first, &id, number < 2).await;
        store.add_verdict("eval_tone", second, &id, number < 9).await;
        store.add_rating("ada", &id, Rating::Positive).await;
    }
    store.close().await;
}

#[tokio::test]
async fn measures_the_newest_or_a_given_version() {
    let project = TestProject::new();
    store_judged_traces(&project).await;
    for (version, contradictions) in [(None, 1), (Some(1), 8)] {
        let request = MeasureRequest { eval: Some("tone".to_owned()), version, origin: TraceOrigin::All };
        let report = measure(request, &project.context()).await.unwrap();
        let [eval] = report.evals.as_slice() else { panic!("{:?}", report.evals) };
        assert_eq!((eval.compared, eval.counts.contradictions()), (10, contradictions), "{version:?}");
        assert_eq!(eval.newest_version, 2);
    }
    assert_eq!(project.notices(), Vec::<String>::new());
}

#[tokio::test]
async fn compares_two_versions() {
    let project = TestProject::new();
    store_judged_traces(&project).await;
    let request = |versions: &[u64]| CompareRequest { eval: "eval_tone".to_owned(), versions: versions.to_vec() };
    let comparison = compare(request(&[]), &project.context()).await.unwrap();
    assert_eq!((comparison.common_traces, comparison.direction), (10, Direction::Better));
    let comparison = compare(request(&[2, 1]), &project.context()).await.unwrap();
    assert_eq!(comparison.direction, Direction::Worse);
    let error = compare(request(&[1, 7]), &project.context()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn hints_at_a_missing_store_or_eval() {
    let project = TestProject::new();
    let all = || MeasureRequest { eval: None, version: None, origin: TraceOrigin::default() };
    let error = measure(all(), &project.context()).await.unwrap_err();
    assert_eq!((error.kind, error.hints), (ErrorKind::NothingSelected, vec![Hint::CreateStore]));
    ProjectStore::open(&project.context()).await.close().await;
    let error = measure(all(), &project.context()).await.unwrap_err();
    assert_eq!((error.kind, error.hints), (ErrorKind::NothingSelected, vec![Hint::AddEval { file: None }]));
}
