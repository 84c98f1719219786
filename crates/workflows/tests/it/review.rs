//! Tests of reviews, driven by commands like a page or a script, with serialised state.

use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_workflows::feedback::{ListRequest, list};
use karat_workflows::review::{Command, CommandOutcome, Request, Review, ReviewSession, Step};
use karat_workflows::{Context, ErrorKind, Hint};
use serde_json::{Value, json};

use crate::project::TestProject;
use crate::project_store::ProjectStore;

fn by_ada() -> Request {
    Request { author: "ada".to_owned(), eval: None, filter: TraceFilter::default(), limit: None, show_verdicts: true }
}

/// Two evals disagree on the second of three traces.
async fn with_traces() -> TestProject {
    let project = TestProject::new();
    let store = ProjectStore::open(&project.context()).await;
    for id in ["t1", "t2", "t3"] {
        store.add_trace(id, "Hello").await;
    }
    for (eval, passed) in [("eval_a", true), ("eval_b", false)] {
        let version = store.add_version(eval, "code").await;
        store.add_verdict(eval, version, "t2", passed).await;
    }
    store.close().await;
    project
}

/// Applies each command in a separate session.
async fn apply(mut review: Review, commands: &[Value], context: &Context<'_>) -> (Review, Vec<CommandOutcome>) {
    let mut applied = Vec::new();
    for command in commands {
        let state = serde_json::from_str(&serde_json::to_string(&review).unwrap()).unwrap();
        let mut session = ReviewSession::resume(state, context).await.unwrap();
        let command: Command = serde_json::from_value(command.clone()).unwrap();
        applied.push(session.apply(command).await.unwrap());
        review = session.close().await;
    }
    (review, applied)
}

async fn ratings(context: &Context<'_>, history: bool) -> Vec<(String, Option<Rating>, Option<String>)> {
    let request = ListRequest { history, ..ListRequest::default() };
    let feedback = list(request, context).await.unwrap().feedback;
    feedback.into_iter().map(|feedback| (feedback.trace_id, feedback.rating, feedback.note)).collect()
}

#[tokio::test]
async fn a_review_survives_between_commands() {
    let project = with_traces().await;
    let context = project.context();
    let session = ReviewSession::start(by_ada(), &context).await.unwrap();
    assert_eq!(session.review().next(), Step::Rate { trace_id: "t2", note: None });
    let trace = session.current().await.unwrap().expect("a trace");
    assert_eq!((trace.document.trace_id().as_deref(), trace.verdicts.len()), (Some("t2"), 2));
    let review = session.close().await;

    let commands =
        [json!({"note": " rude "}), json!({"rate": "negative"}), json!("skip"), json!("undo"), json!("undo")];
    let (review, applied) = apply(review, &commands, &context).await;
    let rated = CommandOutcome::Rated { trace_id: "t2".to_owned(), rating: Rating::Negative };
    let undone = CommandOutcome::RatingUndone(Rating::Negative);
    assert_eq!(applied, [CommandOutcome::Noted, rated, CommandOutcome::Skipped, CommandOutcome::SkipUndone, undone]);
    // The note was retracted with the rating.
    assert_eq!(review.next(), Step::Rate { trace_id: "t2", note: None });
    assert_eq!((ratings(&context, false).await.len(), ratings(&context, true).await.len()), (0, 2));

    let commands =
        [json!({"rate": "neutral"}), json!("skip"), json!({"rate": "positive"}), json!({"rate": "positive"})];
    let (review, applied) = apply(review, &commands, &context).await;
    assert_eq!((applied.last(), review.next()), (Some(&CommandOutcome::Nothing), Step::End));
    assert_eq!((review.queue.rated(), review.queue.left()), (2, 0));
    let mut now = ratings(&context, false).await;
    now.sort_by(|left, right| left.0.cmp(&right.0));
    let neutral = ("t2".to_owned(), Some(Rating::Neutral), None);
    assert_eq!(now, [neutral, ("t3".to_owned(), Some(Rating::Positive), None)]);
}

#[tokio::test]
async fn does_not_review_rated_traces_again() {
    let project = with_traces().await;
    let context = project.context();
    let request = Request { eval: Some("a".to_owned()), ..by_ada() };
    let session = ReviewSession::start(request.clone(), &context).await.unwrap();
    assert_eq!(session.review().queue.len(), 1);
    apply(session.close().await, &[json!({"rate": "negative"})], &context).await;
    let error = ReviewSession::start(request, &context).await.err().unwrap();
    assert_eq!(
        (error.kind, error.hints),
        (ErrorKind::NothingSelected, vec![Hint::JudgeStored { eval: "a".to_owned() }])
    );
    let session = ReviewSession::start(Request { limit: Some(1), ..by_ada() }, &context).await.unwrap();
    let review = session.close().await;
    assert_eq!((review.queue.len(), review.queue.left()), (1, 2));
    let filter = TraceFilter { model: Some("none".to_owned()), ..TraceFilter::default() };
    let error = ReviewSession::start(Request { filter, ..by_ada() }, &context).await.err().unwrap();
    assert_eq!(error.message, "no trace matches the filters");
}
