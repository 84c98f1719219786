//! A writer that is killed at any moment leaves whole batches and nothing else.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::{NewTrace, TraceFilter};
use karat_evals::port::{ComparisonStore, EvalStore, FeedbackStore};
use karat_store::{Location, Store};

use crate::support::{Kind, Place, at, execution, says, trace, version};

/// Tells a process that runs this test that it is the writer, and where the store is.
const STORE: &str = "KARAT_TEST_KILL_STORE";
/// How many traces are in a batch.
const BATCH: u64 = 20;

/// Writes for ever: whole batches of traces, their executions and their feedback. It says when one is done.
#[expect(clippy::print_stdout, reason = "the one who kills it listens")]
async fn write(path: String) {
    let store = Store::open(&Location::File(path.into())).await.expect("a store");
    store.add_version(&version("eval_x", "one")).await.expect("added");
    let done = store.count_traces(&TraceFilter::default()).await.expect("a number") / BATCH;
    for batch in done.. {
        let traces: Vec<NewTrace> = (0..BATCH).map(|number| trace(&format!("{batch:06}-{number:02}"), "x")).collect();
        store.put_traces(&traces, at(0)).await.expect("stored");
        println!("\nwritten {batch}");
        let said: Vec<_> = traces.iter().map(|one| execution("eval_x", 1, one, Some(batch % 2 == 0))).collect();
        store.put_executions(&said).await.expect("stored");
        let found: Vec<_> = traces.iter().map(|one| says("ann", &one.head.trace_id, Rating::Positive, 1)).collect();
        store.add_feedback(&found).await.expect("kept");
    }
}

#[tokio::test]
async fn a_killed_writer_leaves_whole_batches() {
    if let Ok(path) = std::env::var(STORE) {
        return write(path).await;
    }
    let place = Place::new(Kind::Sqlite).await;
    let Location::File(path) = &place.location else { panic!("a file") };
    let mut random = 1_u64;
    let mut acknowledged = 0;
    for round in 0..20 {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "kill::a_killed_writer_leaves_whole_batches", "--nocapture"])
            .env(STORE, path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a writer");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines().map_while(Result::ok);
        // Sometimes while it opens the store, sometimes in the middle of its work.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let batches = random >> 33 & 3;
        let written =
            lines.by_ref().filter(|line| line.starts_with("written ")).take(batches.try_into().expect("small"));
        for line in written {
            acknowledged = line["written ".len()..].parse::<u64>().expect("a number") + 1;
        }
        tokio::time::sleep(Duration::from_micros(random >> 20 & 0x3fff)).await;
        child.kill().expect("killed");
        child.wait().expect("gone");
        for line in lines.filter(|line| line.starts_with("written ")) {
            acknowledged = line["written ".len()..].parse::<u64>().expect("a number") + 1;
        }

        assert_eq!(
            place.rows("select * from pragma_integrity_check").await,
            [[Some("ok".to_owned())]],
            "round {round}"
        );
        let broken = place.rows("select \"table\" from pragma_foreign_key_check").await;
        assert!(broken.is_empty(), "round {round}: {broken:?}");
        let store = place.open().await;
        let traces = store.count_traces(&TraceFilter::default()).await.expect("a number");
        assert_eq!(traces % BATCH, 0, "round {round}: a half batch");
        assert!(
            traces >= acknowledged * BATCH,
            "round {round}: {acknowledged} batches were acknowledged, {traces} traces are there"
        );
        let counts = store.agreement("eval_x", 1).await.expect("counts");
        assert_eq!(counts.executions() % BATCH, 0, "round {round}: {counts:?}");
        assert_eq!(counts.compared() % BATCH, 0, "round {round}: {counts:?}");
        let recount = "select cast(count(*) as text), cast(sum(rating is not null) as text) from eval_executions";
        if counts.executions() > 0 {
            let rows = place.rows(recount).await;
            let expected = [counts.executions(), counts.compared()].map(|count| Some(count.to_string()));
            assert_eq!(rows[0], expected, "round {round}");
        }
        store.close().await;
    }
    assert!(acknowledged > 0, "something was written at all");
}
