//! Several who use one store at once.

use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::{Expected, NewTrace, Put, TraceFilter};
use karat_evals::contradiction::ContradictionFilter;
use karat_evals::port::{ComparisonStore, EvalStore, FeedbackStore};
use karat_evals::version::{AddedVersion, NewVersion};
use karat_store::{Location, Store, raw_hash};
use rstest::rstest;

use crate::support::{Kind, Place, at, execution, says, trace, version};

/// How many write, and how often each.
const WRITERS: usize = 4;
const ROUNDS: usize = 12;

async fn spread<F, T>(location: &Location, work: F)
where
    F: Fn(Store, usize) -> T,
    T: Future<Output = ()> + Send + 'static,
{
    // Each has connections of its own, as another process has.
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
async fn everything_that_somebody_wrote_is_there(#[case] kind: Kind) {
    let place = Place::new(kind).await;
    let store = place.open().await;
    store.add_version(&version("eval_x", "one")).await.expect("added");
    spread(&place.location, |store, writer| async move {
        for round in 0..ROUNDS {
            let traces: Vec<NewTrace> =
                (0..5).map(|number| trace(&format!("{writer}-{round}-{number}"), "x")).collect();
            store.put_traces(&traces, at(0)).await.expect("stored");
            let said: Vec<_> = traces.iter().map(|one| execution("eval_x", 1, one, Some(true))).collect();
            store.put_executions(&said).await.expect("stored");
            store.count_traces(&TraceFilter::default()).await.expect("readers read on");
        }
        store.close().await;
    })
    .await;
    let all = (WRITERS * ROUNDS * 5) as u64;
    assert_eq!(store.count_traces(&TraceFilter::default()).await.expect("a number"), all);
    assert_eq!(store.agreement("eval_x", 1).await.expect("counts").unrated, all);
    place.remove(store).await;
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Kind::Postgres)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parts_of_one_trace_are_all_merged(#[case] kind: Kind) {
    let place = Place::new(kind).await;
    let store = place.open().await;
    // Everybody adds words to the same trace, each after what is there.
    spread(&place.location, |store, writer| async move {
        for round in 0..ROUNDS {
            loop {
                let before = store.raw("t").await.expect("read");
                let mut words = before.clone().unwrap_or_default();
                words.extend(format!("{writer}.{round} ").into_bytes());
                let new = NewTrace {
                    expected: before.map_or(Expected::Nothing, |before| Expected::Raw(raw_hash(&before))),
                    raw: Some(words.clone()),
                    ..trace("t", &String::from_utf8(words).expect("words"))
                };
                match store.put_traces(&[new], at(0)).await.expect("stored")[0] {
                    Put::Conflict => tokio::task::yield_now().await,
                    Put::Added | Put::Changed => break,
                    Put::Unchanged => panic!("there is a word more"),
                }
            }
        }
        store.close().await;
    })
    .await;
    let words = String::from_utf8(store.raw("t").await.expect("read").expect("there")).expect("words");
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.sort_unstable();
    let mut expected: Vec<String> =
        (0..WRITERS).flat_map(|writer| (0..ROUNDS).map(move |round| format!("{writer}.{round}"))).collect();
    expected.sort_unstable();
    assert_eq!(words, expected);
    place.remove(store).await;
}

/// Feedback that arrives while evals run must reach their executions, whoever comes first, and whatever a server's
/// transactions are by default.
#[rstest]
#[case::sqlite(Kind::Sqlite, "")]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Kind::Postgres, "")]
#[ignore = "needs PostgreSQL"]
#[case::serializable(Kind::Postgres, "%20-cdefault_transaction_isolation%3Dserializable")]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ratings_reach_executions_that_arrive_at_the_same_time(#[case] kind: Kind, #[case] options: &str) {
    let mut place = Place::new(kind).await;
    if let Location::Postgres(url) = &mut place.location {
        // They stand last in it.
        url.push_str(options);
    }
    let store = place.open().await;
    store.add_version(&version("eval_x", "one")).await.expect("added");
    let count = WRITERS / 2 * ROUNDS;
    let traces: Vec<NewTrace> = (0..count).map(|number| trace(&format!("t-{number:03}"), "x")).collect();
    store.put_traces(&traces, at(0)).await.expect("stored");
    spread(&place.location, |store, writer| async move {
        for round in 0..ROUNDS {
            let id = format!("t-{:03}", writer / 2 * ROUNDS + round);
            if writer % 2 == 0 {
                store.put_executions(&[execution("eval_x", 1, &trace(&id, "x"), Some(false))]).await.expect("stored");
            } else {
                store.add_feedback(&[says("ann", &id, Rating::Positive, 1)]).await.expect("kept");
            }
        }
        store.close().await;
    })
    .await;
    assert_eq!(store.agreement("eval_x", 1).await.expect("counts").failed_positive, count as u64);
    let found = store.contradictions(&ContradictionFilter::default()).await.expect("contradictions");
    assert_eq!(found.len(), count);
    place.remove(store).await;
}

/// Whoever follows a version at the same time as others is told that somebody else was first.
#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Kind::Postgres)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_version_follows_another(#[case] kind: Kind) {
    let place = Place::new(kind).await;
    let store = place.open().await;
    store.add_version(&version("eval_x", "the first")).await.expect("added");
    spread(&place.location, |store, writer| async move {
        for round in 0..ROUNDS {
            loop {
                let newest = store.evals().await.expect("evals")[0].newest_version;
                let new = version("eval_x", &format!("{writer}.{round}"));
                match store.add_version(&NewVersion { after: Some(newest), ..new }).await.expect("an answer") {
                    AddedVersion::Added(number) => {
                        assert_eq!(number, newest + 1);
                        break;
                    }
                    AddedVersion::Conflict(now) => assert!(now > Some(newest)),
                    AddedVersion::Unchanged(_) => panic!("nobody else has this code"),
                }
            }
        }
        store.close().await;
    })
    .await;
    assert_eq!(store.evals().await.expect("evals")[0].newest_version, (WRITERS * ROUNDS) as u64 + 1);
    place.remove(store).await;
}
