//! The `sqlite3` program, which may be older than our library, can read the store.

use std::process::Command;

use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_evals::port::{EvalStore, FeedbackStore};
use karat_store::Location;

use crate::support::{Kind, TestDatabase, at, execution, feedback_by, trace, version};

#[tokio::test]
#[ignore = "needs sqlite3"]
async fn sqlite3_reads_the_comparison() {
    let database = TestDatabase::new(Kind::Sqlite).await;
    let store = database.open().await;
    let new = trace("t-1", "x");
    store.put_traces(std::slice::from_ref(&new), at(0)).await.expect("stored");
    store.add_version(&version("eval_x", "one")).await.expect("added");
    store.put_executions(&[execution("eval_x", 1, &new, Some(false))]).await.expect("stored");
    store.add_feedback(&[feedback_by("ann", "t-1", Rating::Positive, 1)]).await.expect("stored");
    let Location::File(path) = &database.location else { panic!("a file") };
    let query = |statement: &str| {
        let output = Command::new("sqlite3")
            .arg("-header")
            .arg(path)
            .arg(statement)
            .output()
            .expect("cannot run sqlite3: install it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("a text")
    };
    let expected = "eval_id|trace_id|result|rating|is_contradiction|executed_at\n\
                    eval_x|t-1|0|positive|1|2026-09-21T14:15:00.000000Z\n";
    // With the store open and closed.
    assert_eq!(query("select * from eval_comparison"), expected);
    store.close().await;
    assert_eq!(query("select * from eval_comparison"), expected);
    let columns =
        "select eval_id, trace_id, result, reason, execution_time_ms, error, stdout, stderr from eval_executions";
    assert!(query(columns).contains("eval_x|t-1|0|because it is false|3||out"));
    assert_eq!(query("pragma integrity_check"), "integrity_check\nok\n");
}
