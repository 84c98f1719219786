//! Kills `karat trace import` at random moments: the store remains consistent, and the next import completes it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::json;

use crate::store_project::{Database, StoreProject};

/// Number of killed imports, each of another file.
const KILL_COUNT: u32 = 20;
/// More than one batch.
const TRACES_PER_FILE: u32 = 1200;

fn traces(file: u32) -> String {
    let line = |number: u32| {
        let call =
            json!({"name": format!("tool_{}", number % 7), "arguments": {"n": number}, "result": "x".repeat(400)});
        let step = json!({"input": {"message": format!("question {number}")}, "output": {"response": "answer"},
                          "tool_calls": [call], "error": null});
        let id = format!("t-{file:02}-{number:05}");
        let trace = json!({"trace_id": id, "started_at": "2026-11-16T12:00:00Z", "steps": [step]});
        format!("{trace}\n")
    };
    (0..TRACES_PER_FILE).map(line).collect()
}

fn project_with_files(database: Database) -> StoreProject {
    let store = StoreProject::new(database);
    for file in 1..=KILL_COUNT {
        store.project.write(&format!("traces/{file:02}.jsonl"), traces(file));
    }
    store
}

#[rstest]
#[ignore = "slow: 24,000 traces, killed twenty times"]
#[case::sqlite(Database::Sqlite)]
#[ignore = "slow, and needs PostgreSQL"]
#[case::postgres(Database::Postgres)]
fn the_next_import_completes_a_killed_one(#[case] database: Database) {
    let uninterrupted = project_with_files(database);
    let started = Instant::now();
    let output = uninterrupted.project.run(["trace", "import", "traces/01.jsonl"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let duration = started.elapsed();
    let all = uninterrupted.project.command(["trace", "import", "traces"]).timeout(Duration::from_mins(5)).run();
    assert_eq!(all.code, Some(0), "{}", all.both());
    let expected = uninterrupted.rows();
    assert_eq!(expected.len(), (TRACES_PER_FILE * KILL_COUNT) as usize);
    let expected_rows: BTreeSet<_> = expected.iter().collect();

    let store = project_with_files(database);
    let (mut killed, mut partial) = (0, 0);
    let mut before = 0;
    for file in 1..=KILL_COUNT {
        let running = store.project.command(["trace", "import", &format!("traces/{file:02}.jsonl")]).start();
        // Some imports are reading, some writing, some finished.
        std::thread::sleep(duration.mul_f64(f64::from((file * 37) % KILL_COUNT + 1) / f64::from(KILL_COUNT)));
        running.signal("KILL");
        killed += u32::from(running.wait().expect("karat exits").code.is_none());
        store.assert_integrity();
        let rows = store.rows();
        assert!(rows.iter().all(|row| expected_rows.contains(row)), "a stored trace is incomplete or changed");
        let new = rows.len() - before;
        before = rows.len();
        partial += u32::from(new > 0 && new < TRACES_PER_FILE as usize);
    }
    assert!(killed >= KILL_COUNT / 2, "only {killed} imports were killed while running");
    assert!(partial > 0, "no import was killed halfway");
    let rest = store.project.command(["trace", "import", "traces"]).timeout(Duration::from_mins(5)).run();
    assert_eq!(rest.code, Some(0), "{}", rest.both());
    assert!(store.rows() == expected, "the rows differ from those of an uninterrupted import");
    store.assert_integrity();
}
