//! Evals, versions and executions.

use karat_core::judgement::{ErrorKind, EvalOptions};
use karat_core::port::TraceStore;
use karat_core::stored::{NewTrace, TraceFilter};
use karat_evals::port::{ComparisonStore, EvalStore};
use karat_evals::version::{AddedVersion, NewVersion, StoredExecution, VersionCounts};
use karat_store::Store;

use super::{Case, contract};
use crate::support::{CODE_HASH, at, execution, trace, version};

contract! {
    adds_versions
    a_version_conflicts_unless_it_follows_the_newest
    versions_are_immutable
    executions_are_returned_as_stored
    an_execution_replaces_the_previous_one
    finds_unjudged_traces
    a_changed_trace_is_judged_again
    late_verdicts_on_old_documents_replace_nothing
    rejects_executions_of_missing_traces_and_versions
    summaries_count_the_newest_version
    counts_every_version
    counts_not_applicable_executions_separately
    stores_many_executions
}

async fn traces(store: &Store, count: usize) -> Vec<NewTrace> {
    let traces: Vec<NewTrace> = (0..count).map(|number| trace(&format!("t-{number:05}"), "x")).collect();
    store.put_traces(&traces, at(0)).await.expect("stored");
    traces
}

async fn unjudged(store: &Store, eval_id: &str, version: u64) -> Vec<String> {
    let filter = TraceFilter::default();
    let traces = store.unjudged(eval_id, version, CODE_HASH, &filter, None, 1000).await.expect("traces");
    let count = store.count_unjudged(eval_id, version, CODE_HASH, &filter).await.expect("a number");
    assert_eq!(count, traces.len() as u64);
    traces.into_iter().map(|trace| trace.head.trace_id).collect()
}

async fn adds_versions(Case { store, .. }: Case<'_>) {
    let add = async |eval: &str, code: &str| store.add_version(&version(eval, code)).await.expect("added");
    assert_eq!(add("eval_b", "one").await, AddedVersion::Added(1));
    assert_eq!(add("eval_b", "one").await, AddedVersion::Unchanged(1));
    assert_eq!(add("eval_b", "two").await, AddedVersion::Added(2));
    assert_eq!(add("eval_b", "one").await, AddedVersion::Added(3), "back to the first code");
    assert_eq!(add("eval_a", "one").await, AddedVersion::Added(1));
    let versions = store.versions("eval_b").await.expect("versions");
    let codes: Vec<(u64, &str)> = versions.iter().map(|version| (version.version, version.code.as_str())).collect();
    assert_eq!(codes, [(1, "one"), (2, "two"), (3, "one")]);
    assert_eq!((versions[1].note.as_deref(), versions[1].created_at), (Some("because of two"), at(0)));
    assert_eq!(store.versions("eval_c").await.expect("versions"), []);
    let names: Vec<String> = store.evals().await.expect("evals").into_iter().map(|eval| eval.eval_id).collect();
    assert_eq!(names, ["eval_a", "eval_b"]);
}

async fn a_version_conflicts_unless_it_follows_the_newest(Case { store, .. }: Case<'_>) {
    let add = async |code: &str, after: Option<u64>| {
        store.add_version(&NewVersion { after, ..version("eval_a", code) }).await.expect("a result")
    };
    assert_eq!(add("one", Some(1)).await, AddedVersion::Conflict(None), "there is no version to follow");
    assert_eq!(add("one", None).await, AddedVersion::Added(1));
    assert_eq!(add("two", Some(1)).await, AddedVersion::Added(2));
    assert_eq!(add("three", Some(1)).await, AddedVersion::Conflict(Some(2)));
    assert_eq!(add("two", Some(1)).await, AddedVersion::Conflict(Some(2)), "even with unchanged code");
    assert_eq!(add("two", Some(2)).await, AddedVersion::Unchanged(2));
    let versions = store.versions("eval_a").await.expect("versions");
    assert_eq!(versions.iter().map(|version| version.code.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(store.evals().await.expect("evals")[0].newest_version, 2);
}

async fn versions_are_immutable(Case { store, database }: Case<'_>) {
    store.add_version(&version("eval_a", "one")).await.expect("added");
    for statement in ["update eval_versions set code = 'x'", "delete from eval_versions"] {
        let error = database.execute(statement).await.expect_err("an error").to_string();
        assert!(error.contains("never"), "{error}");
    }
    assert_eq!(store.versions("eval_a").await.expect("versions")[0].code, "one");
}

async fn executions_are_returned_as_stored(Case { store, .. }: Case<'_>) {
    let traces = traces(store, 3).await;
    store.add_version(&version("eval_a", "one")).await.expect("added");
    let results = [Some(true), Some(false), None];
    let executions: Vec<StoredExecution> =
        traces.iter().zip(results).map(|(trace, result)| execution("eval_a", 1, trace, result)).collect();
    store.put_executions(&executions).await.expect("stored");
    assert_eq!(store.executions("eval_a", 1, None, 10).await.expect("executions"), executions);
    assert_eq!(store.executions("eval_a", 1, Some("t-00000"), 1).await.expect("executions"), executions[1..2]);
    assert_eq!(store.executions("eval_a", 2, None, 10).await.expect("executions"), []);
    assert_eq!(store.executions_of_trace("t-00002").await.expect("executions"), executions[2..]);
}

async fn an_execution_replaces_the_previous_one(Case { store, .. }: Case<'_>) {
    let traces = traces(store, 1).await;
    store.add_version(&version("eval_a", "one")).await.expect("added");
    let (first, second) = (execution("eval_a", 1, &traces[0], Some(true)), execution("eval_a", 1, &traces[0], None));
    store.put_executions(std::slice::from_ref(&first)).await.expect("stored");
    store.put_executions(&[first.clone(), second.clone()]).await.expect("stored");
    assert_eq!(store.executions("eval_a", 1, None, 10).await.expect("executions"), [second]);
    store.put_executions(std::slice::from_ref(&first)).await.expect("stored");
    assert_eq!(store.executions("eval_a", 1, None, 10).await.expect("executions"), [first]);
}

async fn finds_unjudged_traces(Case { store, .. }: Case<'_>) {
    let traces = traces(store, 4).await;
    store.add_version(&version("eval_a", "one")).await.expect("added");
    store.add_version(&version("eval_a", "two")).await.expect("added");
    store.put_executions(&[execution("eval_a", 1, &traces[1], None)]).await.expect("stored");
    assert_eq!(unjudged(store, "eval_a", 1).await, ["t-00000", "t-00002", "t-00003"]);
    assert_eq!(unjudged(store, "eval_a", 2).await.len(), 4);
    let other_code = store.count_unjudged("eval_a", 1, "other", &TraceFilter::default()).await;
    assert_eq!(other_code.expect("a number"), 4);
    let newest_two = TraceFilter { limit: Some(2), ..TraceFilter::default() };
    assert_eq!(store.count_unjudged("eval_a", 1, CODE_HASH, &newest_two).await.expect("a number"), 1);
    let page =
        store.unjudged("eval_a", 1, CODE_HASH, &TraceFilter::default(), Some("t-00000"), 1).await.expect("a page");
    assert_eq!(page.iter().map(|trace| trace.head.trace_id.as_str()).collect::<Vec<_>>(), ["t-00002"]);
    assert_eq!(page[0].text, traces[2].document);
}

async fn a_changed_trace_is_judged_again(Case { store, .. }: Case<'_>) {
    let traces = traces(store, 2).await;
    store.add_version(&version("eval_a", "one")).await.expect("added");
    let executions = [0, 1].map(|index| execution("eval_a", 1, &traces[index], Some(true)));
    store.put_executions(&executions).await.expect("stored");
    assert_eq!(unjudged(store, "eval_a", 1).await, [""; 0]);
    let other = trace("t-00001", "something else");
    store.put_traces(std::slice::from_ref(&other), at(5)).await.expect("stored");
    assert_eq!(unjudged(store, "eval_a", 1).await, ["t-00001"]);
    store.put_executions(&[execution("eval_a", 1, &other, Some(false))]).await.expect("stored");
    assert_eq!(unjudged(store, "eval_a", 1).await, [""; 0]);
}

async fn late_verdicts_on_old_documents_replace_nothing(Case { store, .. }: Case<'_>) {
    let traces = traces(store, 2).await;
    store.add_version(&version("eval_a", "one")).await.expect("added");
    let new = trace("t-00000", "something else");
    store.put_traces(std::slice::from_ref(&new), at(5)).await.expect("stored");
    let late = execution("eval_a", 1, &traces[0], Some(true));
    let current = execution("eval_a", 1, &new, Some(false));
    let other = execution("eval_a", 1, &traces[1], Some(true));
    let stored = async || store.executions("eval_a", 1, None, 10).await.expect("executions");
    // Without a current verdict, the late one is stored.
    store.put_executions(std::slice::from_ref(&late)).await.expect("stored");
    assert_eq!(stored().await, std::slice::from_ref(&late));
    store.put_executions(std::slice::from_ref(&current)).await.expect("stored");
    store.put_executions(&[late.clone(), other.clone()]).await.expect("a late verdict is not an error");
    assert_eq!(stored().await, [current.clone(), other.clone()]);
    assert_eq!(unjudged(store, "eval_a", 1).await, [""; 0]);
    // A missing trace is still reported.
    let nowhere = execution("eval_a", 1, &trace("nowhere", "x"), Some(true));
    let error = store.put_executions(&[late, nowhere]).await.expect_err("an error");
    assert!(error.message.starts_with("trace 'nowhere' not found"), "{error}");
    assert_eq!(stored().await, [current, other]);
}

async fn rejects_executions_of_missing_traces_and_versions(Case { store, .. }: Case<'_>) {
    let traces = traces(store, 1).await;
    store.add_version(&version("eval_a", "one")).await.expect("added");
    let good = execution("eval_a", 1, &traces[0], Some(true));
    let no_trace = execution("eval_a", 1, &trace("nowhere", "x"), Some(true));
    let error = store.put_executions(&[good.clone(), no_trace]).await.expect_err("an error");
    assert_eq!(error.message, "trace 'nowhere' not found in the store");
    let no_version = execution("eval_a", 2, &traces[0], Some(true));
    store.put_executions(&[good, no_version]).await.expect_err("an error");
    assert_eq!(store.executions("eval_a", 1, None, 10).await.expect("executions"), [], "all or nothing");
}

async fn summaries_count_the_newest_version(Case { store, .. }: Case<'_>) {
    let traces = traces(store, 3).await;
    store.add_version(&version("eval_a", "one")).await.expect("added");
    let judge = async |version: u64, results: [Option<bool>; 3]| {
        let executions = traces.iter().zip(results).map(|(trace, result)| execution("eval_a", version, trace, result));
        store.put_executions(&executions.collect::<Vec<_>>()).await.expect("stored");
    };
    judge(1, [Some(true), Some(true), None]).await;
    let summary = async || {
        let summary = store.evals().await.expect("evals").remove(0);
        (summary.newest_version, summary.passed, summary.failed, summary.errored)
    };
    assert_eq!(summary().await, (1, 2, 0, 1));
    store.add_version(&version("eval_a", "two")).await.expect("added");
    assert_eq!(summary().await, (2, 0, 0, 0));
    judge(2, [Some(false), Some(true), Some(false)]).await;
    judge(2, [Some(true), Some(true), Some(false)]).await;
    assert_eq!(summary().await, (2, 2, 1, 0));
}

async fn counts_every_version(Case { store, .. }: Case<'_>) {
    let traces = traces(store, 3).await;
    for code in ["one", "two", "three"] {
        store.add_version(&version("eval_a", code)).await.expect("added");
    }
    store.add_version(&version("eval_b", "one")).await.expect("added");
    let judge = async |eval: &str, version: u64, results: &[Option<bool>]| {
        let executions = traces.iter().zip(results).map(|(trace, result)| execution(eval, version, trace, *result));
        store.put_executions(&executions.collect::<Vec<_>>()).await.expect("stored");
    };
    judge("eval_a", 1, &[Some(true), None]).await;
    judge("eval_a", 3, &[Some(false), Some(false), Some(true)]).await;
    judge("eval_a", 3, &[Some(true)]).await;
    judge("eval_b", 1, &[Some(true)]).await;
    let counts =
        |version, passed, failed, errored| VersionCounts { version, passed, failed, not_applicable: 0, errored };
    let expected = [counts(1, 1, 0, 1), counts(3, 2, 1, 0)];
    assert_eq!(store.version_counts("eval_a").await.expect("counts"), expected);
    assert_eq!(store.version_counts("eval_c").await.expect("counts"), []);
}

async fn counts_not_applicable_executions_separately(Case { store, .. }: Case<'_>) {
    let traces = traces(store, 4).await;
    let options = EvalOptions {
        imports: vec!["math".to_owned()],
        threshold: Some(0.25),
        helpers: [("helpers".to_owned(), "X = 'é'\n".to_owned())].into(),
    };
    let new = NewVersion { options: options.clone(), ..version("eval_a", "one") };
    store.add_version(&new).await.expect("added");
    assert_eq!(store.versions("eval_a").await.expect("versions")[0].options, options);
    let results = [(Some(true), true), (Some(false), true), (None, false), (None, true)];
    let with_score = |(trace, (result, applicable)): (&NewTrace, (Option<bool>, bool))| StoredExecution {
        applicable,
        score: result.map(|passed| if passed { 0.75 } else { 0.1 }),
        error: (applicable && result.is_none()).then(|| "KeyError".to_owned()),
        error_kind: (applicable && result.is_none()).then_some(ErrorKind::Exception),
        ..execution("eval_a", 1, trace, result)
    };
    let mut executions: Vec<StoredExecution> = traces.iter().zip(results).map(with_score).collect();
    store.put_executions(&executions).await.expect("stored");
    assert_eq!(store.executions("eval_a", 1, None, 9).await.expect("executions"), executions);
    let counts = async || {
        let counts = store.version_counts("eval_a").await.expect("counts")[0];
        let summary = store.evals().await.expect("evals").remove(0);
        assert_eq!((summary.passed, summary.not_applicable), (counts.passed, counts.not_applicable));
        (counts.passed, counts.failed, counts.not_applicable, counts.errored)
    };
    assert_eq!(counts().await, (1, 1, 1, 1));
    assert_eq!(store.agreement("eval_a", 1).await.expect("counts").not_applicable, 1);
    // A later judgement moves the trace to another count.
    executions[3].applicable = false;
    executions[3].error = None;
    executions[3].error_kind = None;
    store.put_executions(&executions).await.expect("stored");
    assert_eq!(counts().await, (1, 1, 2, 0));
}

async fn stores_many_executions(Case { store, .. }: Case<'_>) {
    let traces = traces(store, 1500).await;
    store.add_version(&version("eval_a", "one")).await.expect("added");
    let executions: Vec<StoredExecution> =
        traces.iter().map(|trace| execution("eval_a", 1, trace, Some(true))).collect();
    store.put_executions(&executions).await.expect("stored");
    assert_eq!(store.executions("eval_a", 1, None, 2000).await.expect("executions"), executions);
    assert_eq!(unjudged(store, "eval_a", 1).await, [""; 0]);
}
