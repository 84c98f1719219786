//! What comes before what, and how much at once.

use std::time::Duration;

use karat_runner::Plan;
use rstest::rstest;

use crate::support::{Act, FakeAgent, cases, plan, play, suite};

/// Each message is its own delay in milliseconds.
fn delays(messages: &[&str]) -> FakeAgent {
    messages
        .iter()
        .fold(FakeAgent::default(), |agent, message| agent.on(message, message.parse().unwrap(), Act::say("ok")))
}

#[tokio::test(start_paused = true)]
async fn results_keep_the_files_order_and_events_the_order_of_completion() {
    let messages = ["40", "10", "30", "20"];
    let ran = play(Plan { concurrency: 4, ..plan(vec![suite("a", cases(&messages))]) }, delays(&messages)).await;
    assert_eq!(ran.completed(), ["10", "20", "30", "40"]);
    let ids: Vec<&str> = ran.suite().cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, messages);
    assert_eq!(ran.suite().cases.iter().map(|case| case.duration_ms).collect::<Vec<_>>(), [40, 10, 30, 20]);
    assert_eq!(ran.suite().wall_clock_ms, 40);
    assert_eq!(ran.suite().summary.total_duration_ms, 100);
}

#[rstest]
#[case(1, 1, 600)]
#[case(4, 4, 150)]
#[case(6, 6, 100)]
#[case(100, 12, 50)]
#[case(0, 1, 600)]
#[tokio::test(start_paused = true)]
async fn as_many_at_once_as_allowed_and_no_more(#[case] allowed: usize, #[case] peak: usize, #[case] wall_clock: u64) {
    let messages = ["50"; 12];
    let plan = Plan { concurrency: allowed, ..plan(vec![suite("a", cases(&messages))]) };
    let ran = play(plan, delays(&messages)).await;
    assert_eq!(ran.log.peak, peak);
    assert_eq!(ran.suite().wall_clock_ms, wall_clock);
    // Reports are gathered for a moment, which the run as a whole may show.
    assert!((wall_clock..wall_clock + 10).contains(&ran.totals.wall_clock_ms), "{}", ran.totals.wall_clock_ms);
}

#[tokio::test(start_paused = true)]
async fn cases_begin_in_the_files_order_across_suites() {
    let suites = vec![suite("a", cases(&["20", "5"])), suite("b", cases(&["6", "7"]))];
    let ran = play(Plan { concurrency: 2, ..plan(suites) }, delays(&["20", "5", "6", "7"])).await;
    assert_eq!(ran.begun(), ["20", "5", "6", "7"]);
}

#[tokio::test(start_paused = true)]
async fn a_suite_that_ends_early_waits_for_those_before_it() {
    let suites = vec![suite("a", cases(&["50", "10"])), suite("b", cases(&["20"])), suite("c", cases(&["60"]))];
    let ran = play(Plan { concurrency: 8, ..plan(suites) }, delays(&["50", "10", "20", "60"])).await;
    assert_eq!(ran.story(), ["run", "10", "20", "50", "suite 0", "suite 1", "60", "suite 2", "end"]);
    let spans: Vec<u64> = ran.suites().iter().map(|suite| suite.wall_clock_ms).collect();
    assert_eq!(spans, [50, 20, 60]);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_suite_ends_with_its_last_case_not_with_the_report_of_it() {
    // The second ends while the report of the first still gathers others.
    let ran = play(plan(vec![suite("a", cases(&["10", "1"]))]), delays(&["10", "1"])).await;
    assert_eq!(ran.suite().wall_clock_ms, 11);
}

#[tokio::test(start_paused = true)]
async fn suites_without_cases_are_told_of() {
    let suites = vec![suite("a", cases(&[])), suite("b", cases(&["1"])), suite("c", cases(&[]))];
    let ran = play(plan(suites), delays(&["1"])).await;
    assert_eq!(ran.story(), ["run", "1", "suite 0", "suite 1", "suite 2", "end"]);
    assert_eq!((ran.suites()[0].summary.total_cases, ran.suites()[0].wall_clock_ms), (0, 0));
    assert_eq!(ran.suites()[0].summary.estimated_cost_usd, None);
}

#[rstest]
#[case(0)]
#[case(1)]
#[case(3)]
#[tokio::test(start_paused = true)]
async fn a_run_without_cases_ends_at_once(#[case] count: usize) {
    let suites = (0..count).map(|_| suite("a", Vec::new())).collect();
    let ran = play(Plan { concurrency: 4, ..plan(suites) }, FakeAgent::default()).await;
    assert_eq!(ran.events.len(), 2 + count);
    assert_eq!((ran.totals.suites, ran.totals.cases, ran.totals.interrupted), (count, 0, false));
    assert_eq!(ran.totals.wall_clock_ms, 0);
}

/// More cases than are reported at a time, on threads that race each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_between_threads() {
    let messages: Vec<String> = (0..3000).map(|number| format!("m{number:04}")).collect();
    let names: Vec<&str> = messages.iter().map(String::as_str).collect();
    let suites = names.chunks(700).map(|names| suite("a", cases(names))).collect();
    let slow = names.iter().step_by(100).fold(FakeAgent::default(), |agent, name| agent.on(name, 1, Act::say("no")));
    let plan = Plan { concurrency: 64, timeout: Duration::from_mins(1), ..plan(suites) };
    let ran = play(plan, slow).await;
    assert_eq!((ran.totals.cases, ran.totals.passed, ran.totals.failed), (3000, 2970, 30));
    assert!(ran.log.peak <= 64, "{}", ran.log.peak);
    let ids: Vec<&str> = ran.suites().iter().flat_map(|suite| &suite.cases).map(|case| case.id.as_str()).collect();
    assert_eq!(ids, names);
}
