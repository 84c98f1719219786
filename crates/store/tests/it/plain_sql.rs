//! The store is read with plain SQL, by a SQLite that is older than ours.

use std::process::Command;

use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_evals::port::{EvalStore, FeedbackStore};
use karat_store::Location;

use crate::support::{Kind, Place, at, execution, says, trace, version};

#[tokio::test]
#[ignore = "needs sqlite3"]
async fn sqlite3_reads_the_comparison() {
    let place = Place::new(Kind::Sqlite).await;
    let store = place.open().await;
    let new = trace("t-1", "x");
    store.put_traces(std::slice::from_ref(&new), at(0)).await.expect("stored");
    store.add_version(&version("eval_x", "one")).await.expect("added");
    store.put_executions(&[execution("eval_x", 1, &new, Some(false))]).await.expect("stored");
    store.add_feedback(&[says("ann", "t-1", Rating::Positive, 1)]).await.expect("kept");
    let Location::File(path) = &place.location else { panic!("a file") };
    let asked = |statement: &str| {
        let output = Command::new("sqlite3")
            .arg("-header")
            .arg(path)
            .arg(statement)
            .output()
            .expect("sqlite3 cannot be started: install it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("a text")
    };
    let expected = "eval_id|trace_id|result|rating|is_contradiction|executed_at\n\
                    eval_x|t-1|0|positive|1|2026-09-21T14:15:00.000000Z\n";
    // While the store is open, and when nobody has it open.
    assert_eq!(asked("select * from eval_comparison"), expected);
    store.close().await;
    assert_eq!(asked("select * from eval_comparison"), expected);
    let columns =
        "select eval_id, trace_id, result, reason, execution_time_ms, error, stdout, stderr from eval_executions";
    assert!(asked(columns).contains("eval_x|t-1|0|because it is false|3||out"));
    assert_eq!(asked("pragma integrity_check"), "integrity_check\nok\n");
}
