//! Traces.

use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::{ExpectedState, NewTrace, PutOutcome, TraceFilter};
use karat_evals::port::{EvalStore, FeedbackStore};
use karat_store::{Store, raw_hash};
use serde_json::json;

use super::{Case, contract};
use crate::support::{CODE_HASH, Kind, at, document, execution, feedback_by, trace, trace_of, version};

contract! {
    traces_are_returned_as_stored
    reports_the_id_of_an_unreadable_payload
    storing_an_equal_trace_changes_nothing
    a_new_document_replaces_the_old_one
    outdated_writers_get_a_conflict
    duplicates_in_a_batch_are_stored_once
    a_raw_payload_equal_to_the_document_is_stored_once
    finds_ids_by_prefix
    finds_ids_of_runs_by_a_shorter_run
    lists_missing_traces
    lists_the_newest_first
    filters_traces
    updates_tools_after_a_change
    pages_cover_all_traces
    stores_unusual_texts
    limits_the_length_of_ids
    executions_follow_the_day_of_their_trace
}

async fn put(store: &Store, traces: &[NewTrace]) -> Vec<PutOutcome> {
    store.put_traces(traces, at(1000)).await.expect("stored")
}

async fn listed(store: &Store, filter: TraceFilter) -> Vec<String> {
    let listed = store.list_traces(&filter).await.expect("a list");
    let ids: Vec<String> = listed.into_iter().map(|trace| trace.head.trace_id).collect();
    // Listing, counting and reading agree.
    assert_eq!(store.count_traces(&filter).await.expect("a number"), ids.len() as u64);
    let mut sorted = ids.clone();
    sorted.sort();
    let read = store.read_traces(&filter, None, 1000).await.expect("traces");
    assert_eq!(read.into_iter().map(|trace| trace.head.trace_id).collect::<Vec<_>>(), sorted);
    ids
}

async fn traces_are_returned_as_stored(Case { store, .. }: Case<'_>) {
    let new = trace("t-1", "hello");
    assert_eq!(put(store, std::slice::from_ref(&new)).await, [PutOutcome::Added]);
    let stored = store.trace("t-1").await.expect("read").expect("a trace");
    assert_eq!((&stored.head, &stored.text), (&new.head, &new.document));
    assert_eq!((stored.source.as_str(), stored.imported_at), ("karat", at(1000)));
    assert_eq!(store.raw("t-1").await.expect("read"), new.raw);
    assert_eq!(store.trace("t-2").await.expect("read"), None);
    assert_eq!(store.raw("t-2").await.expect("read"), None);
    assert_eq!(put(store, &[]).await, []);
}

async fn reports_the_id_of_an_unreadable_payload(Case { store, database }: Case<'_>) {
    put(store, &[trace("t-1", "hello"), trace("t-2", "hello")]).await;
    let bytes = match database.kind() {
        Kind::Sqlite => "x'00'",
        Kind::Postgres => "'\\x00'::bytea",
    };
    let broken = format!("update trace_payloads set document = {bytes}, raw = {bytes} where trace_id = 't-2'");
    database.execute(&broken).await.expect("a broken row");
    let single = store.trace("t-2").await.expect_err("unreadable");
    let all = store.read_traces(&TraceFilter::default(), None, 10).await.expect_err("unreadable");
    let raw = store.raw("t-2").await.expect_err("unreadable");
    for error in [single, all, raw] {
        assert!(error.message.starts_with("cannot read the payload of the trace 't-2': "), "{error}");
    }
}

async fn storing_an_equal_trace_changes_nothing(Case { store, database }: Case<'_>) {
    let traces = [trace("a", "one"), trace("b", "two")];
    put(store, &traces).await;
    let all = "select trace_id || changed_at || hash from traces order by 1";
    let before = database.rows(all).await;
    let puts = store.put_traces(&traces, at(2000)).await.expect("stored");
    assert_eq!(puts, [PutOutcome::Unchanged, PutOutcome::Unchanged]);
    assert_eq!(database.rows(all).await, before);
}

async fn a_new_document_replaces_the_old_one(Case { store, .. }: Case<'_>) {
    put(store, &[trace("a", "one")]).await;
    let other = trace("a", "two");
    let puts = store.put_traces(std::slice::from_ref(&other), at(2000)).await.expect("stored");
    assert_eq!(puts, [PutOutcome::Changed]);
    let stored = store.trace("a").await.expect("read").expect("a trace");
    assert_eq!((stored.text, stored.head), (other.document, other.head));
    assert_eq!(stored.imported_at, at(1000), "the first import counts");
    assert_eq!(store.raw("a").await.expect("read"), other.raw);
}

async fn outdated_writers_get_a_conflict(Case { store, .. }: Case<'_>) {
    let expecting = |message: &str, expected: ExpectedState| NewTrace { expected, ..trace("a", message) };
    let seen = |trace: &NewTrace| ExpectedState::RawHash(raw_hash(trace.raw.as_deref().unwrap_or_default()));
    let first = expecting("one", ExpectedState::Absent);
    assert_eq!(
        put(store, &[expecting("one", seen(&first))]).await,
        [PutOutcome::Conflict],
        "the trace does not exist yet"
    );
    assert_eq!(put(store, std::slice::from_ref(&first)).await, [PutOutcome::Added]);
    assert_eq!(put(store, std::slice::from_ref(&first)).await, [PutOutcome::Unchanged], "an equal trace exists");
    let second = expecting("two", seen(&first));
    let puts = put(store, &[expecting("two", ExpectedState::Absent), trace("b", "another")]).await;
    assert_eq!(puts, [PutOutcome::Conflict, PutOutcome::Added], "a conflict does not affect other traces");
    assert_eq!(put(store, std::slice::from_ref(&second)).await, [PutOutcome::Changed]);
    assert_eq!(put(store, &[expecting("three", seen(&first))]).await, [PutOutcome::Conflict]);
    let stored = store.trace("a").await.expect("read").expect("a trace");
    assert_eq!(stored.text, second.document);
}

async fn duplicates_in_a_batch_are_stored_once(Case { store, .. }: Case<'_>) {
    let traces = [trace("a", "one"), trace("a", "one"), trace("a", "two"), trace("b", "three")];
    assert_eq!(
        put(store, &traces).await,
        [PutOutcome::Added, PutOutcome::Unchanged, PutOutcome::Changed, PutOutcome::Added]
    );
    assert_eq!(store.trace("a").await.expect("read").expect("a trace").text, traces[2].document);
}

async fn a_raw_payload_equal_to_the_document_is_stored_once(Case { store, database }: Case<'_>) {
    let plain = trace("a", "one");
    let new = NewTrace { raw: Some(plain.document.clone().into_bytes()), ..plain };
    put(store, std::slice::from_ref(&new)).await;
    assert_eq!(store.raw("a").await.expect("read"), new.raw);
    assert_eq!(database.rows("select trace_id from trace_payloads where raw is null").await.len(), 1);
    assert_eq!(put(store, &[new]).await, [PutOutcome::Unchanged]);
}

async fn finds_ids_by_prefix(Case { store, .. }: Case<'_>) {
    let ids = ["abc", "abd", "ab", "b", "B", "a%c", "äb"];
    put(store, &ids.map(|id| trace(id, "x"))).await;
    let find_ids = async |prefix: &str, limit| store.trace_ids(prefix, limit).await.expect("ids");
    assert_eq!(find_ids("ab", 10).await, ["ab", "abc", "abd"]);
    assert_eq!(find_ids("ab", 2).await, ["ab", "abc"]);
    assert_eq!(find_ids("a%", 2).await, ["a%c"]);
    assert_eq!(find_ids("b", 10).await, ["b"]);
    assert_eq!(find_ids("", 10).await, ["B", "a%c", "ab", "abc", "abd", "b", "äb"]);
    assert_eq!(find_ids("zz", 10).await, [""; 0]);
}

async fn finds_ids_of_runs_by_a_shorter_run(Case { store, .. }: Case<'_>) {
    let ids = ["0a1-x:1:c_1:1", "0a1-x:1:cX1:1", "0a1-x:2:1:c_1:1", "0a2-y:1:c_1:1", "0a2-y:1:C_1:1"];
    put(store, &ids.map(|id| trace(id, "x"))).await;
    let find_ids = async |abbreviated: &str, limit| store.trace_ids(abbreviated, limit).await.expect("ids");
    assert_eq!(find_ids("0a1:1:c_1:1", 10).await, ["0a1-x:1:c_1:1"]);
    assert_eq!(find_ids("0a:1:c_1:1", 10).await, ["0a1-x:1:c_1:1", "0a2-y:1:c_1:1"]);
    assert_eq!(find_ids("0a:1:c_1:1", 1).await, ["0a1-x:1:c_1:1"]);
    assert_eq!(find_ids("0a1:1:c_1", 10).await, [""; 0]);
}

async fn lists_missing_traces(Case { store, .. }: Case<'_>) {
    put(store, &[trace("a", "x"), trace("b", "x")]).await;
    let many: Vec<String> = (0..2500).map(|number| format!("t{number}")).collect();
    let ids: Vec<String> = ["b", "c", "a", ""].map(str::to_owned).into_iter().chain(many.clone()).collect();
    let missing = store.missing_traces(&ids).await.expect("ids");
    assert_eq!(missing[..2], ["c", ""]);
    assert_eq!(missing[2..], many);
    assert_eq!(store.missing_traces(&[]).await.expect("ids"), [""; 0]);
}

async fn lists_the_newest_first(Case { store, .. }: Case<'_>) {
    let mut untimed = document("untimed", "x", 0);
    untimed.as_object_mut().expect("an object").remove("started_at");
    let traces = [
        trace_of("old", &document("old", "x", 10)),
        trace_of("new", &document("new", "x", 30)),
        trace_of("a-tie", &document("a-tie", "x", 30)),
        trace_of("untimed", &untimed),
    ];
    // Without a start time, the import time counts, which is between the others.
    store.put_traces(&traces, at(20)).await.expect("stored");
    assert_eq!(listed(store, TraceFilter::default()).await, ["a-tie", "new", "untimed", "old"]);
    assert_eq!(listed(store, TraceFilter { limit: Some(3), ..Default::default() }).await, ["a-tie", "new", "untimed"]);
    assert_eq!(
        listed(store, TraceFilter { since: Some(at(20)), ..Default::default() }).await,
        ["a-tie", "new", "untimed"]
    );
    assert_eq!(listed(store, TraceFilter { until: Some(at(20)), ..Default::default() }).await, ["old"]);
}

async fn filters_traces(Case { store, .. }: Case<'_>) {
    let mut broken = document("broken", "It RAINS Ünder 100% of_it", 5);
    broken["steps"][0]["error"] = json!("late");
    broken["steps"][0]["tool_calls"] = json!([{ "name": "search" }, { "name": "mail" }]);
    broken["model"] = json!("m-2");
    let traces = [
        trace_of("broken", &broken),
        trace_of("fine", &document("fine", "all well", 3)),
        NewTrace { source: "otlp".to_owned(), ..trace_of("other", &document("other", "all under well", 1)) },
    ];
    put(store, &traces).await;
    store.add_feedback(&[feedback_by("ann", "fine", Rating::Positive, 1)]).await.expect("stored");
    let filter = TraceFilter::default;
    let text = |text: &str| TraceFilter { text: Some(text.to_owned()), ..TraceFilter::default() };
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let expected: [(TraceFilter, &[&str]); 18] = [
        (TraceFilter { ids: texts(&["fine", "broken", "none"]), ..filter() }, &["broken", "fine"]),
        (TraceFilter { sources: texts(&["otlp", "x"]), ..filter() }, &["other"]),
        (TraceFilter { tools: texts(&["search"]), ..filter() }, &["broken", "fine", "other"]),
        (TraceFilter { tools: texts(&["search", "mail"]), ..filter() }, &["broken"]),
        (TraceFilter { model: Some("m-2".to_owned()), ..filter() }, &["broken"]),
        (TraceFilter { session: Some("session of fine".to_owned()), ..filter() }, &["fine"]),
        (TraceFilter { errors: Some(true), ..filter() }, &["broken"]),
        (TraceFilter { errors: Some(false), ..filter() }, &["fine", "other"]),
        (TraceFilter { rating: Some(Rating::Positive), ..filter() }, &["fine"]),
        (TraceFilter { rating: Some(Rating::Negative), ..filter() }, &[]),
        (TraceFilter { rated: Some(true), ..filter() }, &["fine"]),
        (TraceFilter { rated: Some(false), ..filter() }, &["broken", "other"]),
        (text("rains ün"), &["broken"]),
        (text("ALL WELL"), &["fine"]),
        (text("100%"), &["broken"]),
        (text("of_it"), &["broken"]),
        (text("o%it"), &[]),
        (TraceFilter { errors: Some(false), limit: Some(1), ..filter() }, &["fine"]),
    ];
    for (filter, ids) in expected {
        assert_eq!(listed(store, filter.clone()).await, ids, "{filter:?}");
    }
    let all = store.list_traces(&filter()).await.expect("a list");
    assert_eq!(all.iter().map(|item| item.rating).collect::<Vec<_>>(), [None, Some(Rating::Positive), None]);
}

async fn updates_tools_after_a_change(Case { store, .. }: Case<'_>) {
    put(store, &[trace("a", "x")]).await;
    let mut other = document("a", "x", 0);
    let long = "very_long_".repeat(100);
    other["steps"][0]["tool_calls"] = json!([{ "name": "mail" }, { "name": long }]);
    put(store, &[trace_of("a", &other)]).await;
    let with = |tool: &str| TraceFilter { tools: vec![tool.to_owned()], ..TraceFilter::default() };
    assert_eq!(listed(store, with("search")).await, [""; 0]);
    assert_eq!(listed(store, with("mail")).await, ["a"]);
    assert_eq!(listed(store, with(&long)).await, ["a"]);
}

async fn pages_cover_all_traces(Case { store, .. }: Case<'_>) {
    let traces: Vec<NewTrace> = (0..300).map(|number| trace(&format!("t-{number:03}"), "x")).collect();
    assert!(put(store, &traces).await.iter().all(|put| *put == PutOutcome::Added));
    let (mut after, mut seen) = (None::<String>, 0);
    loop {
        let page = store.read_traces(&TraceFilter::default(), after.as_deref(), 70).await.expect("a page");
        for (index, trace) in page.iter().enumerate() {
            assert_eq!(trace.head.trace_id, format!("t-{:03}", seen + index));
        }
        seen += page.len();
        let Some(last) = page.last() else { break };
        after = Some(last.head.trace_id.clone());
    }
    assert_eq!(seen, 300);
}

async fn stores_unusual_texts(Case { store, .. }: Case<'_>) {
    let message = "zero \0, quote ' \" ? $1 \u{1F600} \u{feff}\u{202e}; drop table traces; --";
    let id = "strange \u{1F600} ' id \0?";
    let new = trace(id, message);
    assert_eq!(put(store, std::slice::from_ref(&new)).await, [PutOutcome::Added]);
    assert_eq!(put(store, std::slice::from_ref(&new)).await, [PutOutcome::Unchanged]);
    let stored = store.trace(id).await.expect("read").expect("a trace");
    assert_eq!(stored.text, new.document, "the document is stored unchanged");
    assert_eq!(store.raw(id).await.expect("read"), new.raw);
    assert!(stored.head.input_preview.starts_with("zero \u{2400},"), "{}", stored.head.input_preview);
    store.add_version(&version("eval_x", "x")).await.expect("added");
    store.put_executions(&[execution("eval_x", 1, &new, Some(true))]).await.expect("stored");
    store.add_feedback(&[feedback_by("ann \0", id, Rating::Negative, 1)]).await.expect("stored");
    let unjudged = store.count_unjudged("eval_x", 1, CODE_HASH, &TraceFilter::default()).await.expect("a number");
    assert_eq!(unjudged, 0);
}

async fn limits_the_length_of_ids(Case { store, .. }: Case<'_>) {
    let longest = "x".repeat(1000);
    assert_eq!(put(store, &[trace(&longest, "x")]).await, [PutOutcome::Added]);
    for id in [String::new(), "x".repeat(1001)] {
        let error = store.put_traces(&[trace("good", "x"), trace(&id, "x")], at(0)).await.expect_err("an error");
        assert!(error.message.starts_with("trace id "), "{error}");
    }
    assert_eq!(store.trace("good").await.expect("read"), None, "all or nothing");
}

async fn executions_follow_the_day_of_their_trace(Case { store, .. }: Case<'_>) {
    use karat_evals::port::ComparisonStore;
    store.add_version(&version("eval_x", "x")).await.expect("added");
    let day_of = async |new: NewTrace| {
        put(store, std::slice::from_ref(&new)).await;
        assert_eq!(store.agreement_by_day("eval_x", 1).await.expect("days"), [], "the new document is not judged");
        store.put_executions(&[execution("eval_x", 1, &new, Some(true))]).await.expect("stored");
        store.agreement_by_day("eval_x", 1).await.expect("days")
    };
    let before = day_of(trace("a", "x")).await;
    let after = day_of(trace_of("a", &document("a", "x", -200_000))).await;
    assert_eq!((before.len(), after.len(), before[0].counts), (1, 1, after[0].counts));
    assert_eq!(before[0].day.since(after[0].day).expect("days").get_days(), 2);
}
