//! A writer that is killed at any time leaves complete batches.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::{NewTrace, TraceFilter};
use karat_evals::port::{ComparisonStore, EvalStore, FeedbackStore};
use karat_store::{Location, Store};

use crate::support::{Kind, TestDatabase, at, execution, feedback_by, trace, version};

/// Environment variable that makes a process the writer and names its store.
const STORE_VARIABLE: &str = "KARAT_TEST_KILL_STORE";
const BATCH_TRACES: u64 = 20;

/// Writes batches of traces with executions and feedback forever. Prints a line after each batch of traces.
#[expect(clippy::print_stdout, reason = "the parent process reads it")]
async fn write(path: String) {
    let store = Store::open(&Location::File(path.into())).await.expect("a store");
    store.add_version(&version("eval_x", "one")).await.expect("added");
    let done = store.count_traces(&TraceFilter::default()).await.expect("a number") / BATCH_TRACES;
    for batch in done.. {
        let traces: Vec<NewTrace> =
            (0..BATCH_TRACES).map(|number| trace(&format!("{batch:06}-{number:02}"), "x")).collect();
        store.put_traces(&traces, at(0)).await.expect("stored");
        println!("\nwritten {batch}");
        let executions: Vec<_> =
            traces.iter().map(|trace| execution("eval_x", 1, trace, Some(batch % 2 == 0))).collect();
        store.put_executions(&executions).await.expect("stored");
        let feedback: Vec<_> =
            traces.iter().map(|trace| feedback_by("ann", &trace.head.trace_id, Rating::Positive, 1)).collect();
        store.add_feedback(&feedback).await.expect("stored");
    }
}

#[tokio::test]
async fn a_killed_writer_leaves_complete_batches() {
    if let Ok(path) = std::env::var(STORE_VARIABLE) {
        return write(path).await;
    }
    let database = TestDatabase::new(Kind::Sqlite).await;
    let Location::File(path) = &database.location else { panic!("a file") };
    let mut random = 1_u64;
    let mut acknowledged = 0;
    for round in 0..20 {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "kill::a_killed_writer_leaves_complete_batches", "--nocapture"])
            .env(STORE_VARIABLE, path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a writer");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines().map_while(Result::ok);
        // Kill it sometimes while it opens the store, sometimes while it writes.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let batches = random >> 33 & 3;
        let written =
            lines.by_ref().filter(|line| line.starts_with("written ")).take(batches.try_into().expect("small"));
        for line in written {
            acknowledged = line["written ".len()..].parse::<u64>().expect("a number") + 1;
        }
        tokio::time::sleep(Duration::from_micros(random >> 20 & 0x3fff)).await;
        child.kill().expect("killed");
        child.wait().expect("exited");
        for line in lines.filter(|line| line.starts_with("written ")) {
            acknowledged = line["written ".len()..].parse::<u64>().expect("a number") + 1;
        }

        assert_eq!(
            database.rows("select * from pragma_integrity_check").await,
            [[Some("ok".to_owned())]],
            "round {round}"
        );
        let broken = database.rows("select \"table\" from pragma_foreign_key_check").await;
        assert!(broken.is_empty(), "round {round}: {broken:?}");
        let store = database.open().await;
        let traces = store.count_traces(&TraceFilter::default()).await.expect("a number");
        assert_eq!(traces % BATCH_TRACES, 0, "round {round}: incomplete batch");
        assert!(
            traces >= acknowledged * BATCH_TRACES,
            "round {round}: {acknowledged} batches were acknowledged, found {traces} traces"
        );
        let counts = store.agreement("eval_x", 1).await.expect("counts");
        assert_eq!(counts.executions() % BATCH_TRACES, 0, "round {round}: {counts:?}");
        assert_eq!(counts.compared() % BATCH_TRACES, 0, "round {round}: {counts:?}");
        let recount = "select cast(count(*) as text), cast(sum(rating is not null) as text) from eval_executions";
        if counts.executions() > 0 {
            let rows = database.rows(recount).await;
            let expected = [counts.executions(), counts.compared()].map(|count| Some(count.to_string()));
            assert_eq!(rows[0], expected, "round {round}");
        }
        store.close().await;
    }
    assert!(acknowledged > 0, "no batch was written");
}
