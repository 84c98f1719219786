//! Concurrent use of one store.

use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::{ExpectedState, NewTrace, PutOutcome, TraceFilter};
use karat_evals::contradiction::ContradictionFilter;
use karat_evals::port::{ComparisonStore, EvalStore, FeedbackStore};
use karat_evals::version::{AddedVersion, NewVersion};
use karat_store::{Location, Store, raw_hash};
use rstest::rstest;

use crate::support::{Kind, TestDatabase, at, execution, feedback_by, trace, version};

const WRITERS: usize = 4;
/// Number of writes per writer.
const ROUNDS: usize = 12;

async fn run_writers<F, T>(location: &Location, work: F)
where
    F: Fn(Store, usize) -> T,
    T: Future<Output = ()> + Send + 'static,
{
    // Each writer has its own connections, like a separate process.
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let store = Store::open(location).await.expect("a store");
        tasks.push(tokio::spawn(work(store, writer)));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Kind::Postgres)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writes_are_all_stored(#[case] kind: Kind) {
    let database = TestDatabase::new(kind).await;
    let store = database.open().await;
    store.add_version(&version("eval_x", "one")).await.expect("added");
    run_writers(&database.location, |store, writer| async move {
        for round in 0..ROUNDS {
            let traces: Vec<NewTrace> =
                (0..5).map(|number| trace(&format!("{writer}-{round}-{number}"), "x")).collect();
            store.put_traces(&traces, at(0)).await.expect("stored");
            let executions: Vec<_> = traces.iter().map(|trace| execution("eval_x", 1, trace, Some(true))).collect();
            store.put_executions(&executions).await.expect("stored");
            store.count_traces(&TraceFilter::default()).await.expect("readers are not blocked");
        }
        store.close().await;
    })
    .await;
    let all = (WRITERS * ROUNDS * 5) as u64;
    assert_eq!(store.count_traces(&TraceFilter::default()).await.expect("a number"), all);
    assert_eq!(store.agreement("eval_x", 1).await.expect("counts").unrated, all);
    database.remove(store).await;
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Kind::Postgres)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_updates_of_one_trace_are_merged(#[case] kind: Kind) {
    let database = TestDatabase::new(kind).await;
    let store = database.open().await;
    // Every writer appends words to the same trace.
    run_writers(&database.location, |store, writer| async move {
        for round in 0..ROUNDS {
            loop {
                let before = store.raw("t").await.expect("read");
                let mut words = before.clone().unwrap_or_default();
                words.extend(format!("{writer}.{round} ").into_bytes());
                let new = NewTrace {
                    expected: before.map_or(ExpectedState::Absent, |before| ExpectedState::RawHash(raw_hash(&before))),
                    raw: Some(words.clone()),
                    ..trace("t", &String::from_utf8(words).expect("words"))
                };
                match store.put_traces(&[new], at(0)).await.expect("stored")[0] {
                    PutOutcome::Conflict => tokio::task::yield_now().await,
                    PutOutcome::Added | PutOutcome::Changed => break,
                    PutOutcome::Unchanged => panic!("the trace has one more word"),
                }
            }
        }
        store.close().await;
    })
    .await;
    let words = String::from_utf8(store.raw("t").await.expect("read").expect("a trace")).expect("words");
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.sort_unstable();
    let mut expected: Vec<String> =
        (0..WRITERS).flat_map(|writer| (0..ROUNDS).map(move |round| format!("{writer}.{round}"))).collect();
    expected.sort_unstable();
    assert_eq!(words, expected);
    database.remove(store).await;
}

/// Feedback that arrives while evals run must reach their executions, in either order and with any default isolation
/// level of the server.
#[rstest]
#[case::sqlite(Kind::Sqlite, "")]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Kind::Postgres, "")]
#[ignore = "needs PostgreSQL"]
#[case::serializable(Kind::Postgres, "%20-cdefault_transaction_isolation%3Dserializable")]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_ratings_reach_executions(#[case] kind: Kind, #[case] options: &str) {
    let mut database = TestDatabase::new(kind).await;
    if let Location::Postgres(url) = &mut database.location {
        // The URL ends with its options.
        url.push_str(options);
    }
    let store = database.open().await;
    store.add_version(&version("eval_x", "one")).await.expect("added");
    let count = WRITERS / 2 * ROUNDS;
    let traces: Vec<NewTrace> = (0..count).map(|number| trace(&format!("t-{number:03}"), "x")).collect();
    store.put_traces(&traces, at(0)).await.expect("stored");
    run_writers(&database.location, |store, writer| async move {
        for round in 0..ROUNDS {
            let id = format!("t-{:03}", writer / 2 * ROUNDS + round);
            if writer % 2 == 0 {
                store.put_executions(&[execution("eval_x", 1, &trace(&id, "x"), Some(false))]).await.expect("stored");
            } else {
                store.add_feedback(&[feedback_by("ann", &id, Rating::Positive, 1)]).await.expect("stored");
            }
        }
        store.close().await;
    })
    .await;
    assert_eq!(store.agreement("eval_x", 1).await.expect("counts").failed_positive, count as u64);
    let contradictions = store.contradictions(&ContradictionFilter::default()).await.expect("contradictions");
    assert_eq!(contradictions.len(), count);
    database.remove(store).await;
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Kind::Postgres)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_versions_conflict(#[case] kind: Kind) {
    let database = TestDatabase::new(kind).await;
    let store = database.open().await;
    store.add_version(&version("eval_x", "first")).await.expect("added");
    run_writers(&database.location, |store, writer| async move {
        for round in 0..ROUNDS {
            loop {
                let newest = store.evals().await.expect("evals")[0].newest_version;
                let new = version("eval_x", &format!("{writer}.{round}"));
                match store.add_version(&NewVersion { after: Some(newest), ..new }).await.expect("a result") {
                    AddedVersion::Added(number) => {
                        assert_eq!(number, newest + 1);
                        break;
                    }
                    AddedVersion::Conflict(now) => assert!(now > Some(newest)),
                    AddedVersion::Unchanged(_) => panic!("the code is new"),
                }
            }
        }
        store.close().await;
    })
    .await;
    assert_eq!(store.evals().await.expect("evals")[0].newest_version, (WRITERS * ROUNDS) as u64 + 1);
    database.remove(store).await;
}
