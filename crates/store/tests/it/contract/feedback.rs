//! Feedback.

use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_evals::agreement::RatingPattern;
use karat_evals::feedback::Feedback;
use karat_evals::port::{EvalStore, FeedbackStore};
use karat_store::Store;

use super::{Case, contract};
use crate::support::{at, execution, feedback_by, trace, version};

contract! {
    feedback_is_returned_as_stored
    equal_feedback_is_stored_once
    rejects_feedback_on_missing_traces
    the_newest_rating_of_each_author_counts
    feedback_is_immutable
    filters_lists
    lists_unrated_traces_for_review
    lists_traces_of_one_eval_for_review
    withdrawn_ratings_do_not_count
}

async fn traces(store: &Store, ids: &[&str]) {
    let traces: Vec<_> = ids.iter().map(|id| trace(id, "x")).collect();
    store.put_traces(&traces, at(0)).await.expect("stored");
}

async fn add(store: &Store, feedback: &[Feedback]) -> Vec<bool> {
    store.add_feedback(feedback).await.expect("stored")
}

async fn rating(store: &Store, id: &str) -> Option<Rating> {
    let filter = TraceFilter { ids: vec![id.to_owned()], ..TraceFilter::default() };
    store.list_traces(&filter).await.expect("a list")[0].rating
}

async fn feedback_is_returned_as_stored(Case { store, .. }: Case<'_>) {
    traces(store, &["a", "b"]).await;
    let feedback = [feedback_by("ann", "a", Rating::Positive, 2), feedback_by("bob", "a", Rating::Negative, 1)];
    assert_eq!(add(store, &feedback).await, [true, true]);
    assert_eq!(store.feedback_of("a").await.expect("feedback"), [feedback[1].clone(), feedback[0].clone()]);
    assert_eq!(store.feedback_of("b").await.expect("feedback"), []);
    assert_eq!(add(store, &[]).await, [false; 0]);
}

async fn equal_feedback_is_stored_once(Case { store, .. }: Case<'_>) {
    traces(store, &["a"]).await;
    let original = feedback_by("ann", "a", Rating::Positive, 1);
    let other_note = Feedback { note: None, ..original.clone() };
    let empty_note = Feedback { note: Some(String::new()), ..original.clone() };
    let feedback = [original.clone(), original.clone(), other_note, empty_note];
    assert_eq!(add(store, &feedback).await, [true, false, true, false]);
    assert_eq!(add(store, &[original]).await, [false]);
    assert_eq!(store.feedback_of("a").await.expect("feedback").len(), 2);
}

async fn rejects_feedback_on_missing_traces(Case { store, .. }: Case<'_>) {
    traces(store, &["a"]).await;
    let feedback = [feedback_by("ann", "a", Rating::Positive, 1), feedback_by("ann", "nowhere", Rating::Positive, 1)];
    let error = store.add_feedback(&feedback).await.expect_err("an error");
    assert_eq!(error.message, "trace 'nowhere' not found in the store");
    assert_eq!(store.feedback_of("a").await.expect("feedback"), [], "all or nothing");
    assert_eq!(rating(store, "a").await, None);
}

async fn the_newest_rating_of_each_author_counts(Case { store, .. }: Case<'_>) {
    traces(store, &["a", "b"]).await;
    add(store, &[feedback_by("ann", "a", Rating::Positive, 5), feedback_by("ann", "b", Rating::Positive, 5)]).await;
    assert_eq!(rating(store, "a").await, Some(Rating::Positive));
    add(store, &[feedback_by("ann", "a", Rating::Negative, 4)]).await;
    assert_eq!(rating(store, "a").await, Some(Rating::Positive), "older feedback that arrived later");
    add(store, &[feedback_by("bob", "a", Rating::Negative, 4)]).await;
    assert_eq!(rating(store, "a").await, Some(Rating::Neutral), "the authors disagree");
    add(store, &[feedback_by("ann", "a", Rating::Neutral, 6)]).await;
    assert_eq!(rating(store, "a").await, Some(Rating::Negative));
    // With equal times, the last one added counts.
    add(store, &[feedback_by("bob", "a", Rating::Positive, 4)]).await;
    assert_eq!(rating(store, "a").await, Some(Rating::Positive));
    let ratings = [("ann".to_owned(), Rating::Neutral), ("bob".to_owned(), Rating::Positive)].into();
    let expected = [RatingPattern { ratings, traces: 1 }];
    assert_eq!(store.rating_patterns().await.expect("ratings"), expected, "only one author rated b");
    assert_eq!(store.feedback_of("a").await.expect("feedback").len(), 5, "the history is complete");
}

async fn feedback_is_immutable(Case { store, database }: Case<'_>) {
    traces(store, &["a"]).await;
    add(store, &[feedback_by("ann", "a", Rating::Positive, 5)]).await;
    for statement in ["update feedback set rating = 'negative'", "delete from feedback"] {
        let error = database.execute(statement).await.expect_err("an error").to_string();
        assert!(error.contains("never"), "{error}");
    }
}

async fn filters_lists(Case { store, .. }: Case<'_>) {
    traces(store, &["a", "b"]).await;
    let feedback = [
        feedback_by("ann", "a", Rating::Positive, 1),
        feedback_by("ann", "a", Rating::Negative, 2),
        feedback_by("bob", "b", Rating::Neutral, 3),
        feedback_by("ann", "b", Rating::Positive, 4),
    ];
    add(store, &feedback).await;
    let listed = async |author, only_current, limit| {
        let listed = store.list_feedback(author, only_current, limit).await.expect("feedback");
        listed
            .iter()
            .map(|entry| feedback.iter().position(|other| other == entry).expect("added above"))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(None, false, None).await, [3, 2, 1, 0]);
    assert_eq!(listed(None, true, None).await, [3, 2, 1]);
    assert_eq!(listed(Some("ann"), false, Some(2)).await, [3, 1]);
    assert_eq!(listed(Some("ann"), true, None).await, [3, 1]);
    assert_eq!(listed(Some("eve"), false, None).await, [0; 0]);
}

async fn lists_unrated_traces_for_review(Case { store, .. }: Case<'_>) {
    traces(store, &["a", "b", "c"]).await;
    for (eval, code) in [("eval_x", "one"), ("eval_x", "two"), ("eval_y", "one")] {
        store.add_version(&version(eval, code)).await.expect("added");
    }
    let (a, b) = (trace("a", "x"), trace("b", "x"));
    let executions = [
        execution("eval_x", 1, &a, Some(true)),
        execution("eval_x", 2, &a, Some(false)),
        execution("eval_y", 1, &a, Some(true)),
        execution("eval_y", 1, &b, None),
    ];
    store.put_executions(&executions).await.expect("stored");
    add(store, &[feedback_by("ann", "c", Rating::Positive, 1), feedback_by("bob", "a", Rating::Positive, 1)]).await;
    let candidates = async |author: &str, filter: TraceFilter| {
        let candidates = store.review_candidates(author, None, &filter).await.expect("candidates");
        candidates
            .into_iter()
            .map(|counts| (counts.trace_id, counts.passed, counts.failed, counts.errored))
            .collect::<Vec<_>>()
    };
    let (a, b, c) = (("a".to_owned(), 1, 1, 0), ("b".to_owned(), 0, 0, 1), ("c".to_owned(), 0, 0, 0));
    assert_eq!(candidates("ann", TraceFilter::default()).await, [a, b.clone()]);
    assert_eq!(candidates("bob", TraceFilter::default()).await, [b.clone(), c]);
    assert_eq!(candidates("ann", TraceFilter { rated: Some(false), ..TraceFilter::default() }).await, [b]);
}

async fn lists_traces_of_one_eval_for_review(Case { store, .. }: Case<'_>) {
    traces(store, &["a", "b", "c"]).await;
    for (eval, code) in [("eval_x", "one"), ("eval_x", "two"), ("eval_y", "one")] {
        store.add_version(&version(eval, code)).await.expect("added");
    }
    let (a, b, c) = (trace("a", "x"), trace("b", "x"), trace("c", "x"));
    let executions = [
        execution("eval_x", 1, &c, Some(true)),
        execution("eval_x", 2, &a, Some(false)),
        execution("eval_x", 2, &b, None),
        execution("eval_y", 1, &a, Some(true)),
        execution("eval_y", 1, &c, Some(true)),
    ];
    store.put_executions(&executions).await.expect("stored");
    let candidates = store.review_candidates("ann", Some("eval_x"), &TraceFilter::default()).await.expect("candidates");
    let candidates: Vec<_> =
        candidates.into_iter().map(|counts| (counts.trace_id, counts.passed, counts.failed, counts.errored)).collect();
    assert_eq!(
        candidates,
        [("a".to_owned(), 0, 1, 0), ("b".to_owned(), 0, 0, 1)],
        "only traces that its newest version judged"
    );
}

async fn withdrawn_ratings_do_not_count(Case { store, database }: Case<'_>) {
    traces(store, &["a", "b"]).await;
    store.add_version(&version("eval_x", "one")).await.expect("added");
    store.put_executions(&[execution("eval_x", 1, &trace("a", "x"), Some(false))]).await.expect("stored");
    let contradictions = async || {
        let rows = database.rows("select trace_id, rating from eval_comparison where is_contradiction = 1").await;
        rows.len()
    };
    let feedback = feedback_by("ann", "a", Rating::Positive, 1);
    let withdrawn = Feedback { rating: None, note: None, created_at: at(2), ..feedback.clone() };
    add(store, std::slice::from_ref(&feedback)).await;
    assert_eq!((rating(store, "a").await, contradictions().await), (Some(Rating::Positive), 1));
    assert_eq!(add(store, &[withdrawn.clone(), withdrawn.clone()]).await, [true, false]);
    assert_eq!((rating(store, "a").await, contradictions().await), (None, 0));
    assert_eq!(store.feedback_of("a").await.expect("feedback"), [feedback, withdrawn], "the history is complete");
    assert_eq!(store.list_feedback(None, true, None).await.expect("feedback"), []);
    assert_eq!(store.list_feedback(None, false, None).await.expect("feedback").len(), 2);
    let candidates = store.review_candidates("ann", None, &TraceFilter::default()).await.expect("candidates");
    assert_eq!(candidates.len(), 2, "it can be reviewed again");
    // Ratings of other authors remain.
    add(store, &[feedback_by("bob", "a", Rating::Negative, 1)]).await;
    assert_eq!(rating(store, "a").await, Some(Rating::Negative));
    assert_eq!(store.rating_patterns().await.expect("ratings"), [], "only one author is left");
    add(store, &[feedback_by("ann", "a", Rating::Negative, 3)]).await;
    assert_eq!(store.rating_patterns().await.expect("ratings").len(), 1);
}
