//! Comparison of verdicts with ratings.

use karat_core::port::{RunStore, TraceStore};
use karat_core::rating::Rating;
use karat_core::result::Outcome;
use karat_evals::agreement::AgreementCounts;
use karat_evals::contradiction::{ContradictionFilter, Resolution, ResolutionKind};
use karat_evals::port::{ComparisonStore, EvalStore, FeedbackStore};
use karat_store::Store;

use super::runs::{case, run};
use super::{Case, contract};
use crate::support::{at, document, execution, feedback_by, trace, trace_of, version};

contract! {
    counts_verdicts_by_rating
    counts_each_day_separately
    counts_traces_of_test_runs_apart
    skips_invalid_days
    finds_contradictions
    only_the_newest_version_contradicts
    lists_the_newest_contradictions_first
    a_resolution_applies_to_its_verdict_and_rating
    eval_wrong_applies_to_one_version
    a_resolution_applies_to_its_document
    disputed_ratings_apply_to_every_version
    compares_versions
    stale_verdicts_are_not_compared
    the_view_has_the_documented_columns
}

async fn judge(store: &Store, eval: &str, version: u64, id: &str, result: Option<bool>) {
    store.put_executions(&[execution(eval, version, &trace(id, "x"), result)]).await.expect("stored");
}

async fn rate(store: &Store, id: &str, rating: Rating, seconds: i64) {
    store.add_feedback(&[feedback_by("ann", id, rating, seconds)]).await.expect("stored");
}

async fn prepare(store: &Store, ids: &[&str]) {
    let traces: Vec<_> = ids.iter().map(|id| trace(id, "x")).collect();
    store.put_traces(&traces, at(0)).await.expect("stored");
    store.add_version(&version("eval_x", "one")).await.expect("added");
}

async fn open(store: &Store, filter: ContradictionFilter) -> Vec<String> {
    let contradictions = store.contradictions(&filter).await.expect("contradictions");
    let count = store.count_contradictions(&filter).await.expect("a number");
    assert_eq!(count, contradictions.len() as u64, "{filter:?}");
    contradictions.into_iter().map(|row| format!("{}/{} {}", row.eval_id, row.eval_version, row.trace_id)).collect()
}

async fn counts_verdicts_by_rating(Case { store, .. }: Case<'_>) {
    let ids: Vec<String> = (0..12).map(|number| format!("t-{number:02}")).collect();
    prepare(store, &ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let results = [Some(true), Some(false), None];
    let ratings = [Some(Rating::Positive), Some(Rating::Negative), Some(Rating::Neutral), None];
    for (index, id) in ids.iter().enumerate() {
        // Half are rated before they are judged, half afterwards.
        let (result, rating) = (results[index % 3], ratings[index / 3]);
        let first = index % 2 == 0;
        for rated in [first, !first] {
            match rating {
                Some(rating) if rated => rate(store, id, rating, 1).await,
                _ if !rated => judge(store, "eval_x", 1, id, result).await,
                _ => {}
            }
        }
    }
    let expected = AgreementCounts {
        passed_positive: 1,
        passed_negative: 1,
        failed_positive: 1,
        failed_negative: 1,
        neutral: 2,
        unrated: 2,
        not_applicable: 0,
        errored: 4,
    };
    assert_eq!(store.agreement("eval_x", 1).await.expect("counts"), expected);
    assert_eq!(store.agreement("eval_x", 2).await.expect("counts"), AgreementCounts::default());
    assert_eq!(open(store, ContradictionFilter::default()).await.len(), 2);
}

async fn counts_each_day_separately(Case { store, .. }: Case<'_>) {
    store.add_version(&version("eval_x", "one")).await.expect("added");
    let day = 24 * 60 * 60;
    let traces: Vec<_> = [0, 1, 1, 3]
        .into_iter()
        .enumerate()
        .map(|(index, days)| trace_of(&format!("t-{index}"), &document(&format!("t-{index}"), "x", days * day)))
        .collect();
    store.put_traces(&traces, at(0)).await.expect("stored");
    let executions: Vec<_> = traces.iter().map(|trace| execution("eval_x", 1, trace, Some(true))).collect();
    store.put_executions(&executions).await.expect("stored");
    rate(store, "t-1", Rating::Positive, 1).await;
    let days = store.agreement_by_day("eval_x", 1).await.expect("days");
    let seen: Vec<_> = days.iter().map(|day| (day.counts.unrated, day.counts.passed_positive)).collect();
    assert_eq!(seen, [(1, 0), (1, 1), (1, 0)]);
    assert!(days.is_sorted_by_key(|day| day.day));
}

async fn counts_traces_of_test_runs_apart(Case { store, .. }: Case<'_>) {
    store.add_version(&version("eval_x", "one")).await.expect("added");
    let traces = [trace("production", "x"), trace("tested", "x")];
    store.put_traces(&traces, at(0)).await.expect("stored");
    store.put_run(&run("r-1", 1)).await.expect("stored");
    let cases = [case("r-1", 1, "gs-a", Outcome::Passed, Some("tested"))];
    store.put_cases(&cases, &[], at(1)).await.expect("stored");
    let executions = traces.each_ref().map(|trace| execution("eval_x", 1, trace, Some(false)));
    store.put_executions(&executions).await.expect("stored");
    rate(store, "tested", Rating::Positive, 1).await;
    let days = store.agreement_of_runs_by_day("eval_x", 1).await.expect("days");
    let seen: Vec<_> = days.iter().map(|day| (day.counts.unrated, day.counts.failed_positive)).collect();
    assert_eq!(seen, [(0, 1)]);
    let all = store.agreement("eval_x", 1).await.expect("counts");
    let production = all.without(&days[0].counts);
    assert_eq!((production.executions(), production.unrated), (1, 1));
}

async fn skips_invalid_days(Case { store, .. }: Case<'_>) {
    store.add_version(&version("eval_x", "one")).await.expect("added");
    let mut invalid = trace("a", "x");
    invalid.head.started_at = Some("-000044-03-15T12:00:00Z".parse().expect("a time"));
    let traces = [invalid, trace("b", "x")];
    store.put_traces(&traces, at(0)).await.expect("stored");
    let executions = traces.each_ref().map(|trace| execution("eval_x", 1, trace, Some(true)));
    store.put_executions(&executions).await.expect("stored");
    let days = store.agreement_by_day("eval_x", 1).await.expect("days");
    assert_eq!(days.iter().map(|day| day.counts.unrated).collect::<Vec<_>>(), [1]);
    assert_eq!(store.agreement("eval_x", 1).await.expect("counts").unrated, 2);
}

async fn finds_contradictions(Case { store, .. }: Case<'_>) {
    prepare(store, &["a", "b"]).await;
    judge(store, "eval_x", 1, "a", Some(false)).await;
    judge(store, "eval_x", 1, "b", Some(false)).await;
    rate(store, "a", Rating::Positive, 1).await;
    store
        .add_feedback(&[feedback_by("bob", "a", Rating::Positive, 2), feedback_by("eve", "a", Rating::Neutral, 3)])
        .await
        .expect("stored");
    let contradictions = store.contradictions(&ContradictionFilter::default()).await.expect("contradictions");
    let contradiction = &contradictions[0];
    assert_eq!(contradictions.len(), 1);
    assert_eq!(
        (contradiction.eval_id.as_str(), contradiction.eval_version, contradiction.trace_id.as_str()),
        ("eval_x", 1, "a")
    );
    assert_eq!(
        (contradiction.result, contradiction.rating, contradiction.executed_at),
        (false, Rating::Positive, at(100))
    );
    assert_eq!(contradiction.reason.as_deref(), Some("because it is false"));
    assert_eq!(contradiction.note.as_deref(), Some("bob rates it good"), "the newest feedback with this rating");
    assert_eq!((contradiction.author.as_deref(), contradiction.input_preview.as_str()), (Some("bob"), "x"));
    assert_eq!(contradiction.resolution, None);
    // Contradictions follow changed ratings.
    rate(store, "a", Rating::Negative, 4).await;
    store.add_feedback(&[feedback_by("bob", "a", Rating::Negative, 5)]).await.expect("stored");
    assert_eq!(open(store, ContradictionFilter::default()).await, [""; 0]);
    judge(store, "eval_x", 1, "a", Some(true)).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, ["eval_x/1 a"]);
    judge(store, "eval_x", 1, "a", None).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, [""; 0]);
}

async fn only_the_newest_version_contradicts(Case { store, .. }: Case<'_>) {
    prepare(store, &["a", "b"]).await;
    rate(store, "a", Rating::Positive, 1).await;
    judge(store, "eval_x", 1, "a", Some(false)).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, ["eval_x/1 a"]);
    store.add_version(&version("eval_x", "two")).await.expect("added");
    assert_eq!(open(store, ContradictionFilter::default()).await, [""; 0]);
    judge(store, "eval_x", 2, "a", Some(false)).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, ["eval_x/2 a"]);
    assert_eq!(store.agreement("eval_x", 1).await.expect("counts").contradictions(), 1, "it is still stored");
}

async fn lists_the_newest_contradictions_first(Case { store, .. }: Case<'_>) {
    prepare(store, &["a", "b", "c", "d"]).await;
    store.add_version(&version("eval_y", "one")).await.expect("added");
    for (seconds, eval, id) in [(5, "eval_x", "a"), (7, "eval_y", "b"), (7, "eval_x", "c"), (6, "eval_y", "d")] {
        let execution = execution(eval, 1, &trace(id, "x"), Some(true));
        let execution = karat_evals::version::StoredExecution { executed_at: at(seconds), ..execution };
        store.put_executions(&[execution]).await.expect("stored");
        rate(store, id, Rating::Negative, 1).await;
    }
    let filter = ContradictionFilter::default;
    assert_eq!(open(store, filter()).await, ["eval_x/1 c", "eval_y/1 b", "eval_y/1 d", "eval_x/1 a"]);
    let limited = ContradictionFilter { limit: Some(2), ..filter() };
    assert_eq!(open(store, limited).await, ["eval_x/1 c", "eval_y/1 b"]);
    let of_eval = ContradictionFilter { eval_id: Some("eval_y".to_owned()), ..filter() };
    assert_eq!(open(store, of_eval).await, ["eval_y/1 b", "eval_y/1 d"]);
    let of_trace = ContradictionFilter { trace_id: Some("a".to_owned()), ..filter() };
    assert_eq!(open(store, of_trace).await, ["eval_x/1 a"]);
    let of_none = ContradictionFilter { eval_id: Some("eval_z".to_owned()), ..filter() };
    assert_eq!(open(store, of_none).await, [""; 0]);
    // The traces of these tests have one source.
    let source = Some(store.trace("a").await.expect("a result").expect("a trace").source);
    let of_source = ContradictionFilter { source: source.clone(), limit: Some(2), ..filter() };
    assert_eq!(open(store, of_source.clone()).await, ["eval_x/1 c", "eval_y/1 b"]);
    assert_eq!(
        store.count_contradictions(&ContradictionFilter { limit: None, ..of_source }).await.expect("a count"),
        4
    );
    let of_others = ContradictionFilter { excluded_source: source, ..filter() };
    assert_eq!(open(store, of_others.clone()).await, [""; 0]);
    assert_eq!(store.count_contradictions(&of_others).await.expect("a count"), 0);
}

fn decide(kind: ResolutionKind, seconds: i64) -> Resolution {
    Resolution { kind, note: Some("looked twice".to_owned()), author: "ann".to_owned(), resolved_at: at(seconds) }
}

async fn a_resolution_applies_to_its_verdict_and_rating(Case { store, .. }: Case<'_>) {
    prepare(store, &["a"]).await;
    let all = ContradictionFilter { resolved: true, ..ContradictionFilter::default() };
    let dismissed = decide(ResolutionKind::Dismissed, 9);
    assert!(!store.resolve("eval_x", "a", &dismissed).await.expect("a result"), "no contradiction yet");
    judge(store, "eval_x", 1, "a", Some(false)).await;
    rate(store, "a", Rating::Positive, 1).await;
    assert!(store.resolve("eval_x", "a", &dismissed).await.expect("a result"));
    assert_eq!(open(store, ContradictionFilter::default()).await, [""; 0]);
    assert_eq!(open(store, all.clone()).await, ["eval_x/1 a"]);
    let contradictions = store.contradictions(&all).await.expect("contradictions");
    assert_eq!(contradictions[0].resolution, Some(dismissed));
    let wrong = decide(ResolutionKind::LabelWrong, 10);
    assert!(store.resolve("eval_x", "a", &wrong).await.expect("a result"), "the resolution is revised");
    assert_eq!(store.contradictions(&all).await.expect("contradictions")[0].resolution, Some(wrong));
    // The same verdict of another version is the same contradiction.
    store.add_version(&version("eval_x", "two")).await.expect("added");
    judge(store, "eval_x", 2, "a", Some(false)).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, [""; 0]);
    // Another verdict with another rating is a new contradiction.
    judge(store, "eval_x", 2, "a", Some(true)).await;
    rate(store, "a", Rating::Negative, 2).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, ["eval_x/2 a"]);
    assert_eq!(store.contradictions(&all).await.expect("contradictions")[0].resolution, None);
    // The resolution applies again when both return.
    judge(store, "eval_x", 2, "a", Some(false)).await;
    rate(store, "a", Rating::Positive, 3).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, [""; 0]);
    assert_eq!(store.agreement("eval_x", 2).await.expect("counts").failed_positive, 1, "it still disagrees");
}

async fn eval_wrong_applies_to_one_version(Case { store, .. }: Case<'_>) {
    prepare(store, &["a"]).await;
    judge(store, "eval_x", 1, "a", Some(false)).await;
    rate(store, "a", Rating::Positive, 1).await;
    let wrong = decide(ResolutionKind::EvalWrong, 9);
    assert!(store.resolve("eval_x", "a", &wrong).await.expect("a result"));
    assert_eq!(open(store, ContradictionFilter::default()).await, [""; 0]);
    // The next version, which should fix it, gives the same verdict: a new contradiction.
    store.add_version(&version("eval_x", "two")).await.expect("added");
    judge(store, "eval_x", 2, "a", Some(false)).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, ["eval_x/2 a"]);
    let contradictions = store.contradictions(&ContradictionFilter::default()).await.expect("contradictions");
    assert_eq!(contradictions[0].resolution, None);
    // It remains open while ratings change, until it is resolved again.
    rate(store, "a", Rating::Neutral, 2).await;
    rate(store, "a", Rating::Positive, 3).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, ["eval_x/2 a"]);
    assert!(store.resolve("eval_x", "a", &decide(ResolutionKind::LabelWrong, 10)).await.expect("a result"));
    store.add_version(&version("eval_x", "three")).await.expect("added");
    judge(store, "eval_x", 3, "a", Some(false)).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, [""; 0], "the label is still wrong");
}

async fn a_resolution_applies_to_its_document(Case { store, .. }: Case<'_>) {
    prepare(store, &["a"]).await;
    judge(store, "eval_x", 1, "a", Some(false)).await;
    rate(store, "a", Rating::Positive, 1).await;
    assert!(store.resolve("eval_x", "a", &decide(ResolutionKind::Dismissed, 9)).await.expect("a result"));
    let other = trace("a", "another answer");
    store.put_traces(std::slice::from_ref(&other), at(5)).await.expect("changed");
    store.put_executions(&[execution("eval_x", 1, &other, Some(false))]).await.expect("stored");
    assert_eq!(open(store, ContradictionFilter::default()).await, ["eval_x/1 a"]);
}

async fn disputed_ratings_apply_to_every_version(Case { store, .. }: Case<'_>) {
    prepare(store, &["a", "b", "c", "d"]).await;
    store.add_version(&version("eval_y", "one")).await.expect("added");
    for id in ["d", "c", "b", "a"] {
        judge(store, "eval_x", 1, id, Some(false)).await;
        rate(store, id, Rating::Positive, 1).await;
    }
    let disputed = async |eval: &str| store.disputed_ratings(eval).await.expect("ids");
    assert_eq!(disputed("eval_x").await, [""; 0]);
    let decisions = [
        ("c", ResolutionKind::LabelWrong),
        ("a", ResolutionKind::EvalWrong),
        ("a", ResolutionKind::Dismissed),
        ("b", ResolutionKind::LabelWrong),
        // A revised resolution.
        ("b", ResolutionKind::EvalWrong),
    ];
    for (id, kind) in decisions {
        assert!(store.resolve("eval_x", id, &decide(kind, 9)).await.expect("a result"));
    }
    assert_eq!(disputed("eval_x").await, ["a", "c"]);
    assert_eq!(disputed("eval_y").await, [""; 0], "the resolution is for one eval");
    // A new version has no verdict yet, or agrees with the rating: the label is still wrong.
    store.add_version(&version("eval_x", "two")).await.expect("added");
    assert_eq!(disputed("eval_x").await, ["a", "c"]);
    judge(store, "eval_x", 2, "a", Some(true)).await;
    assert_eq!(disputed("eval_x").await, ["a", "c"]);
    // The resolution does not apply to another rating or document.
    rate(store, "a", Rating::Negative, 2).await;
    assert_eq!(disputed("eval_x").await, ["c"]);
    store.put_traces(&[trace("c", "another answer")], at(5)).await.expect("changed");
    assert_eq!(disputed("eval_x").await, [""; 0]);
    rate(store, "a", Rating::Positive, 3).await;
    assert_eq!(disputed("eval_x").await, ["a"]);
}

async fn compares_versions(Case { store, .. }: Case<'_>) {
    prepare(store, &["a", "b", "c"]).await;
    store.add_version(&version("eval_x", "two")).await.expect("added");
    for (version, id, result) in
        [(1, "a", Some(true)), (2, "a", Some(false)), (1, "b", None), (2, "b", Some(true)), (1, "c", Some(true))]
    {
        judge(store, "eval_x", version, id, result).await;
    }
    rate(store, "a", Rating::Negative, 1).await;
    let pairs = store.verdict_pairs("eval_x", 1, 2).await.expect("pairs");
    let seen: Vec<_> = pairs.iter().map(|pair| (pair.trace_id.as_str(), pair.before, pair.now, pair.rating)).collect();
    assert_eq!(seen, [("a", Some(true), Some(false), Some(Rating::Negative)), ("b", None, Some(true), None)]);
    let reasons = pairs.iter().map(|pair| (pair.before_reason.as_deref(), pair.now_reason.as_deref()));
    let expected = [
        (Some("because it is true"), Some("because it is false")),
        // Without a verdict, the error is the reason.
        (Some("KeyError: 'x'"), Some("because it is true")),
    ];
    assert_eq!(reasons.collect::<Vec<_>>(), expected);
}

async fn stale_verdicts_are_not_compared(Case { store, database }: Case<'_>) {
    prepare(store, &["a", "b"]).await;
    store.add_version(&version("eval_x", "two")).await.expect("added");
    for (version, id) in [(1, "a"), (2, "a"), (2, "b")] {
        judge(store, "eval_x", version, id, Some(false)).await;
    }
    rate(store, "a", Rating::Positive, 1).await;
    rate(store, "b", Rating::Positive, 1).await;
    let view = async || database.rows("select trace_id from eval_comparison order by trace_id").await.concat();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(view().await, [text("a"), text("b")]);
    store.put_traces(&[trace("a", "another answer")], at(5)).await.expect("changed");
    assert_eq!(view().await, [text("b")]);
    assert_eq!(open(store, ContradictionFilter::default()).await, ["eval_x/2 b"]);
    assert_eq!(store.agreement("eval_x", 2).await.expect("counts").executions(), 1);
    assert_eq!(store.version_counts("eval_x").await.expect("counts").len(), 1, "version 1 has only stale verdicts");
    assert_eq!(store.verdict_pairs("eval_x", 1, 2).await.expect("pairs"), []);
    let filter = karat_core::stored::TraceFilter::default();
    let candidates = store.review_candidates("bob", Some("eval_x"), &filter).await.expect("candidates");
    assert_eq!(candidates.iter().map(|candidate| candidate.trace_id.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(store.executions_of_trace("a").await.expect("executions").len(), 2, "it is still stored");
    // Neither a rating nor a late verdict creates a contradiction with the old document.
    rate(store, "a", Rating::Negative, 2).await;
    judge(store, "eval_x", 2, "a", Some(true)).await;
    assert_eq!(open(store, ContradictionFilter::default()).await, ["eval_x/2 b"]);
    // The trace has the judged document again.
    store.put_traces(&[trace("a", "x")], at(6)).await.expect("changed");
    assert_eq!(open(store, ContradictionFilter::default()).await, ["eval_x/2 a", "eval_x/2 b"]);
    assert_eq!(view().await, [text("a"), text("b")]);
}

async fn the_view_has_the_documented_columns(Case { store, database }: Case<'_>) {
    prepare(store, &["a", "b", "c"]).await;
    judge(store, "eval_x", 1, "a", Some(false)).await;
    judge(store, "eval_x", 1, "b", Some(true)).await;
    judge(store, "eval_x", 1, "c", None).await;
    rate(store, "a", Rating::Positive, 1).await;
    let view = database
        .rows(
            "select eval_id, trace_id, cast(result as text), rating, cast(is_contradiction as text), executed_at \
             from eval_comparison order by trace_id",
        )
        .await;
    let text = |text: &str| Some(text.to_owned());
    let time = || text("2026-09-21T14:15:00.000000Z");
    let expected = [
        vec![text("eval_x"), text("a"), text("0"), text("positive"), text("1"), time()],
        vec![text("eval_x"), text("b"), text("1"), None, text("0"), time()],
        vec![text("eval_x"), text("c"), None, None, text("0"), time()],
    ];
    assert_eq!(view, expected);
    let columns = "select eval_id, trace_id, reason, error, stdout, stderr from eval_executions where trace_id = 'c'";
    let row = &database.rows(columns).await[0];
    assert_eq!(row[2..], [None, text("KeyError: 'x'"), text("out\n"), text("")]);
}
