//! `karat trace import` killed at any moment: the store is whole, and the next import ends as if nothing had happened.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::json;

use crate::store_project::{Database, StoreProject};

/// How often an import is killed, each time one of a file of its own.
const KILLS: u32 = 20;
/// How many traces a file has: more than are written together.
const TRACES: u32 = 1200;

fn traces(file: u32) -> String {
    let one = |number: u32| {
        let call =
            json!({"name": format!("tool_{}", number % 7), "arguments": {"n": number}, "result": "x".repeat(400)});
        let step = json!({"input": {"message": format!("question {number}")}, "output": {"response": "answer"},
                          "tool_calls": [call], "error": null});
        let id = format!("t-{file:02}-{number:05}");
        let trace = json!({"trace_id": id, "started_at": "2026-11-16T12:00:00Z", "steps": [step]});
        format!("{trace}\n")
    };
    (0..TRACES).map(one).collect()
}

fn with_files(database: Database) -> StoreProject {
    let store = StoreProject::new(database);
    for file in 1..=KILLS {
        store.project.write(&format!("traces/{file:02}.jsonl"), traces(file));
    }
    store
}

#[rstest]
#[ignore = "slow: 24,000 traces, killed twenty times"]
#[case::sqlite(Database::Sqlite)]
#[ignore = "slow, and needs PostgreSQL"]
#[case::postgres(Database::Postgres)]
fn a_killed_import_is_finished_by_the_next(#[case] database: Database) {
    let undisturbed = with_files(database);
    let started = Instant::now();
    let output = undisturbed.project.run(["trace", "import", "traces/01.jsonl"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let takes = started.elapsed();
    let all = undisturbed.project.command(["trace", "import", "traces"]).timeout(Duration::from_mins(5)).run();
    assert_eq!(all.code, Some(0), "{}", all.both());
    let expected = undisturbed.rows();
    assert_eq!(expected.len(), (TRACES * KILLS) as usize);
    let whole: BTreeSet<_> = expected.iter().collect();

    let store = with_files(database);
    let (mut killed, mut partly) = (0, 0);
    let mut before = 0;
    for file in 1..=KILLS {
        let running = store.project.command(["trace", "import", &format!("traces/{file:02}.jsonl")]).start();
        // Some begin to read then, some write, some end.
        std::thread::sleep(takes.mul_f64(f64::from((file * 37) % KILLS + 1) / f64::from(KILLS)));
        running.signal("KILL");
        killed += u32::from(running.wait().expect("it is gone").code.is_none());
        store.assert_whole();
        let there = store.rows();
        assert!(there.iter().all(|row| whole.contains(row)), "a trace is not as it came");
        let new = there.len() - before;
        before = there.len();
        partly += u32::from(new > 0 && new < TRACES as usize);
    }
    assert!(killed >= KILLS / 2, "only {killed} of them were killed while they worked");
    assert!(partly > 0, "none was killed in the middle");
    let rest = store.project.command(["trace", "import", "traces"]).timeout(Duration::from_mins(5)).run();
    assert_eq!(rest.code, Some(0), "{}", rest.both());
    assert!(store.rows() == expected, "the rows are not those of an undisturbed import");
    store.assert_whole();
}
