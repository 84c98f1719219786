//! Cancellation and fail-fast.

use std::time::Duration;

use karat_core::exit::ExitStatus;
use karat_runner::Plan;
use rstest::rstest;

use crate::support::{Act, FakeAgent, cases, plan, run_plan, run_until, suite};

/// Each message takes ten milliseconds; `f…` fails, `e…` errors, `p…` panics, `t…` times out.
fn agent_for(messages: &[&str]) -> FakeAgent {
    messages.iter().fold(FakeAgent::default(), |agent, message| match message.as_bytes()[0] {
        b'f' => agent.on(message, 10, Act::reply("no")),
        b'e' => agent.on(message, 10, Act::Fail("broken".to_owned(), Duration::ZERO)),
        b'p' => agent.on(message, 10, Act::Panic("broken".to_owned())),
        b't' => agent.on(message, u64::MAX, Act::reply("ok")),
        _ => agent.on(message, 10, Act::reply("ok")),
    })
}

#[tokio::test(start_paused = true)]
async fn finished_cases_are_reported() {
    let suites = vec![suite("a", cases(&["1", "2"])), suite("b", cases(&["3", "4", "5"])), suite("c", cases(&["6"]))];
    let run = run_until(35, plan(suites), agent_for(&["1", "2", "3", "4", "5", "6"])).await;
    assert_eq!(run.event_labels(), ["run", "1", "2", "suite 0", "3", "suite 1", "suite 2", "end"]);
    assert_eq!(run.started(), ["1", "2", "3", "4"], "the fourth was in flight, the fifth did not start");
    let not_run: Vec<usize> = run.suites().iter().map(|suite| suite.summary.not_run).collect();
    assert_eq!(not_run, [0, 2, 1]);
    assert_eq!((run.totals.cases, run.totals.passed, run.totals.not_run), (3, 3, 3));
    assert!(run.totals.interrupted);
    assert_eq!(run.totals.status(), ExitStatus::Interrupted);
    assert!((35..45).contains(&run.totals.wall_clock_ms), "{}", run.totals.wall_clock_ms);
}

#[tokio::test(start_paused = true)]
async fn cases_in_flight_are_dropped() {
    let messages = ["t1", "t2", "3", "t4", "t5", "t6"];
    let plan = Plan { concurrency: 4, timeout: Duration::MAX, ..plan(vec![suite("a", cases(&messages))]) };
    let run = run_until(1_000_000, plan, agent_for(&messages)).await;
    assert_eq!(run.completed(), ["3"]);
    assert_eq!((run.log.started.len(), run.log.in_flight), (5, 0));
    assert_eq!((run.totals.not_run, run.totals.interrupted), (5, true));
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_if_cancelled_before_the_start() {
    let suites = vec![suite("a", cases(&["1", "2"])), suite("b", cases(&["3"]))];
    let run = run_until(0, Plan { concurrency: 8, ..plan(suites) }, agent_for(&["1", "2", "3"])).await;
    assert_eq!(run.event_labels(), ["run", "suite 0", "suite 1", "end"]);
    assert!(run.log.started.is_empty());
    assert_eq!((run.totals.cases, run.totals.not_run, run.totals.interrupted), (0, 3, true));
    assert_eq!(run.suites()[0].wall_clock_ms, 0);
}

#[tokio::test(start_paused = true)]
async fn cancellation_after_the_end_has_no_effect() {
    let run = run_until(100, plan(vec![suite("a", cases(&["1"]))]), agent_for(&["1"])).await;
    assert_eq!((run.totals.passed, run.totals.interrupted), (1, false));
}

#[rstest]
#[case("f")]
#[case("e")]
#[case("p")]
#[case("t")]
#[tokio::test(start_paused = true)]
async fn fail_fast_starts_no_case_after_a_failure(#[case] bad: &str) {
    let suites = vec![suite("a", cases(&["1", bad, "2"])), suite("b", cases(&["3"]))];
    let run = run_plan(Plan { fail_fast: true, ..plan(suites) }, agent_for(&["1", bad, "2", "3"])).await;
    assert_eq!(run.started(), ["1", bad]);
    assert_eq!(run.event_labels(), ["run", "1", bad, "suite 0", "suite 1", "end"]);
    assert_eq!((run.totals.passed, run.totals.failed, run.totals.not_run), (1, 1, 2));
    assert!(!run.totals.interrupted, "fail-fast is not an interruption");
}

#[tokio::test(start_paused = true)]
async fn fail_fast_finishes_cases_in_flight() {
    let messages = ["1", "2", "f", "slow-f", "slow", "6", "7", "8", "9", "10"];
    let agent = agent_for(&messages).on("f", 5, Act::reply("no")).on("slow-f", 30, Act::reply("no")).on(
        "slow",
        50,
        Act::reply("ok"),
    );
    let plan = Plan { concurrency: 8, fail_fast: true, ..plan(vec![suite("a", cases(&messages))]) };
    let run = run_plan(plan, agent).await;
    assert_eq!(run.started(), messages[..8]);
    assert_eq!((run.totals.passed, run.totals.failed, run.totals.not_run), (6, 2, 2));
    assert_eq!(run.completed().last(), Some(&"slow"));
    assert_eq!(run.totals.status(), ExitStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn without_fail_fast_a_failure_stops_nothing() {
    let run = run_plan(plan(vec![suite("a", cases(&["f", "e", "1"]))]), agent_for(&["f", "e", "1"])).await;
    assert_eq!((run.totals.cases, run.totals.not_run), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn fail_fast_and_cancellation_count_as_interrupted() {
    let messages = ["f", "t", "1"];
    let plan = Plan { concurrency: 2, fail_fast: true, ..plan(vec![suite("a", cases(&messages))]) };
    let run = run_until(100, plan, agent_for(&messages)).await;
    assert_eq!(run.started(), ["f", "t"]);
    assert_eq!((run.totals.failed, run.totals.not_run, run.totals.interrupted), (1, 2, true));
}
