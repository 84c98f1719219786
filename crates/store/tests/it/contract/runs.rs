//! Runs of eval files.

use karat_core::port::{RunStore, TraceStore};
use karat_core::result::Outcome;
use karat_core::stored::{StoredCase, StoredRun};

use super::{Case, contract};
use crate::support::{at, trace};

contract! {
    runs_are_stored
    cases_are_stored_with_their_traces
    accepts_long_names_and_equal_agents
}

pub(super) fn run(id: &str, seconds: i64) -> StoredRun {
    StoredRun {
        run_id: id.to_owned(),
        started_at: at(seconds),
        ended_at: None,
        agents: vec!["http://b".to_owned(), "http://a".to_owned()],
        suites: 2,
        cases: 3,
        passed: 0,
        failed: 0,
        errored: 0,
        interrupted: false,
    }
}

pub(super) fn case(run_id: &str, position: u64, case_id: &str, outcome: Outcome, trace_id: Option<&str>) -> StoredCase {
    StoredCase {
        run_id: run_id.into(),
        suite: 1,
        position,
        eval_file: "evals/search.golden.json".into(),
        tool_name: "search".into(),
        tier: "golden".into(),
        agent: "http://a".into(),
        case_id: case_id.to_owned(),
        trial: 1,
        outcome,
        error: (outcome != Outcome::Passed).then(|| "toolsCalled".to_owned()),
        duration_ms: 12,
        trace_id: trace_id.map(str::to_owned),
    }
}

async fn runs_are_stored(Case { store, .. }: Case<'_>) {
    let (first, second) = (run("r-1", 1), run("r-2", 2));
    store.put_run(&first).await.expect("stored");
    store.put_run(&second).await.expect("stored");
    let ended = StoredRun { ended_at: Some(at(9)), passed: 2, errored: 1, interrupted: true, ..first };
    store.put_run(&ended).await.expect("stored");
    assert_eq!(store.runs(10).await.expect("runs"), [second.clone(), ended]);
    assert_eq!(store.runs(1).await.expect("runs"), [second]);
}

async fn cases_are_stored_with_their_traces(Case { store, .. }: Case<'_>) {
    store.put_run(&run("r-1", 1)).await.expect("stored");
    let cases = [
        case("r-1", 2, "gs-b", Outcome::Passed, Some("r-1:search:gs-b:1")),
        case("r-1", 1, "gs-a", Outcome::Failed, None),
        case("r-1", 3, "gs-c", Outcome::Errored, None),
    ];
    let traces = [trace("r-1:search:gs-b:1", "x")];
    store.put_cases(&cases[..2], &traces, at(3)).await.expect("stored");
    store.put_cases(&cases[2..], &[], at(4)).await.expect("stored");
    store.put_cases(&cases[..1], &traces, at(5)).await.expect("stored again");
    assert_eq!(store.cases_of_run("r-1").await.expect("cases"), cases);
    assert_eq!(store.cases_of_run("r-2").await.expect("cases"), []);
    assert!(store.trace("r-1:search:gs-b:1").await.expect("read").is_some());
    let result = store.put_cases(&[case("r-1", 4, "gs-d", Outcome::Passed, Some("nowhere"))], &[], at(6)).await;
    result.expect_err("a missing trace");
}

async fn accepts_long_names_and_equal_agents(Case { store, .. }: Case<'_>) {
    store.put_run(&run("r-1", 1)).await.expect("stored");
    // Hashes, since an index may compress repeated text.
    let long: String = (0..100).map(|number: u32| karat_json::hash::long_hash(&number.to_be_bytes())).collect();
    let first = case("r-1", 1, &long, Outcome::Passed, None);
    let first = StoredCase { agent: long.as_str().into(), eval_file: long.as_str().into(), ..first };
    // The same file, case and trial of another agent with the same name.
    let second = StoredCase { suite: 2, outcome: Outcome::Failed, ..first.clone() };
    let cases = [first, second];
    store.put_cases(&cases, &[], at(3)).await.expect("stored");
    assert_eq!(store.cases_of_run("r-1").await.expect("cases"), cases);
}
