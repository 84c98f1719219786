//! Stopping before the end: on request, or at the first case that does not pass.

use std::time::Duration;

use karat_core::exit::ExitStatus;
use karat_runner::Plan;
use rstest::rstest;

use crate::support::{Act, FakeAgent, cases, plan, play, play_until, suite};

/// Each of these takes ten milliseconds; what begins with `f` fails, `e` errors, `p` panics, `t` takes for ever.
fn tens(messages: &[&str]) -> FakeAgent {
    messages.iter().fold(FakeAgent::default(), |agent, message| match message.as_bytes()[0] {
        b'f' => agent.on(message, 10, Act::say("no")),
        b'e' => agent.on(message, 10, Act::Break("broken".to_owned(), Duration::ZERO)),
        b'p' => agent.on(message, 10, Act::Panic("broken".to_owned())),
        b't' => agent.on(message, u64::MAX, Act::say("ok")),
        _ => agent.on(message, 10, Act::say("ok")),
    })
}

#[tokio::test(start_paused = true)]
async fn what_finished_is_reported() {
    let suites = vec![suite("a", cases(&["1", "2"])), suite("b", cases(&["3", "4", "5"])), suite("c", cases(&["6"]))];
    let ran = play_until(35, plan(suites), tens(&["1", "2", "3", "4", "5", "6"])).await;
    assert_eq!(ran.story(), ["run", "1", "2", "suite 0", "3", "suite 1", "suite 2", "end"]);
    assert_eq!(ran.begun(), ["1", "2", "3", "4"], "the fourth was under way, the fifth did not begin");
    let not_run: Vec<usize> = ran.suites().iter().map(|suite| suite.summary.not_run).collect();
    assert_eq!(not_run, [0, 2, 1]);
    assert_eq!((ran.totals.cases, ran.totals.passed, ran.totals.not_run), (3, 3, 3));
    assert!(ran.totals.interrupted);
    assert_eq!(ran.totals.status(), ExitStatus::Interrupted);
    assert!((35..45).contains(&ran.totals.wall_clock_ms), "{}", ran.totals.wall_clock_ms);
}

#[tokio::test(start_paused = true)]
async fn all_that_are_under_way_are_let_go() {
    let messages = ["t1", "t2", "3", "t4", "t5", "t6"];
    let plan = Plan { concurrency: 4, timeout: Duration::MAX, ..plan(vec![suite("a", cases(&messages))]) };
    let ran = play_until(1_000_000, plan, tens(&messages)).await;
    assert_eq!(ran.completed(), ["3"]);
    assert_eq!((ran.log.begun.len(), ran.log.under_way), (5, 0));
    assert_eq!((ran.totals.not_run, ran.totals.interrupted), (5, true));
}

#[tokio::test(start_paused = true)]
async fn cancelled_before_the_first_nothing_is_asked() {
    let suites = vec![suite("a", cases(&["1", "2"])), suite("b", cases(&["3"]))];
    let ran = play_until(0, Plan { concurrency: 8, ..plan(suites) }, tens(&["1", "2", "3"])).await;
    assert_eq!(ran.story(), ["run", "suite 0", "suite 1", "end"]);
    assert!(ran.log.begun.is_empty());
    assert_eq!((ran.totals.cases, ran.totals.not_run, ran.totals.interrupted), (0, 3, true));
    assert_eq!(ran.suites()[0].wall_clock_ms, 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_stop_that_comes_too_late_changes_nothing() {
    let ran = play_until(100, plan(vec![suite("a", cases(&["1"]))]), tens(&["1"])).await;
    assert_eq!((ran.totals.passed, ran.totals.interrupted), (1, false));
}

#[rstest]
#[case("f")]
#[case("e")]
#[case("p")]
#[case("t")]
#[tokio::test(start_paused = true)]
async fn one_at_a_time_nothing_begins_after_the_first_that_does_not_pass(#[case] bad: &str) {
    let suites = vec![suite("a", cases(&["1", bad, "2"])), suite("b", cases(&["3"]))];
    let ran = play(Plan { fail_fast: true, ..plan(suites) }, tens(&["1", bad, "2", "3"])).await;
    assert_eq!(ran.begun(), ["1", bad]);
    assert_eq!(ran.story(), ["run", "1", bad, "suite 0", "suite 1", "end"]);
    assert_eq!((ran.totals.passed, ran.totals.failed, ran.totals.not_run), (1, 1, 2));
    assert!(!ran.totals.interrupted, "nobody asked it to stop");
}

#[tokio::test(start_paused = true)]
async fn many_at_a_time_those_under_way_end() {
    let messages = ["1", "2", "f", "slow-f", "slow", "6", "7", "8", "9", "10"];
    let agent =
        tens(&messages).on("f", 5, Act::say("no")).on("slow-f", 30, Act::say("no")).on("slow", 50, Act::say("ok"));
    let plan = Plan { concurrency: 8, fail_fast: true, ..plan(vec![suite("a", cases(&messages))]) };
    let ran = play(plan, agent).await;
    assert_eq!(ran.begun(), messages[..8]);
    assert_eq!((ran.totals.passed, ran.totals.failed, ran.totals.not_run), (6, 2, 2));
    assert_eq!(ran.completed().last(), Some(&"slow"));
    assert_eq!(ran.totals.status(), ExitStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn without_it_a_failure_stops_nothing() {
    let ran = play(plan(vec![suite("a", cases(&["f", "e", "1"]))]), tens(&["f", "e", "1"])).await;
    assert_eq!((ran.totals.cases, ran.totals.not_run), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn stopped_by_both_it_was_interrupted() {
    let messages = ["f", "t", "1"];
    let plan = Plan { concurrency: 2, fail_fast: true, ..plan(vec![suite("a", cases(&messages))]) };
    let ran = play_until(100, plan, tens(&messages)).await;
    assert_eq!(ran.begun(), ["f", "t"]);
    assert_eq!((ran.totals.failed, ran.totals.not_run, ran.totals.interrupted), (1, 2, true));
}
