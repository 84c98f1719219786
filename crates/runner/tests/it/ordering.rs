//! Order of events, and concurrency.

use std::time::Duration;

use karat_runner::Plan;
use rstest::rstest;

use crate::support::{Act, FakeAgent, cases, plan, run_plan, suite};

/// Each message is its delay in milliseconds.
fn delayed_agent(messages: &[&str]) -> FakeAgent {
    messages
        .iter()
        .fold(FakeAgent::default(), |agent, message| agent.on(message, message.parse().unwrap(), Act::reply("ok")))
}

#[tokio::test(start_paused = true)]
async fn results_are_in_file_order_and_events_in_order_of_completion() {
    let messages = ["40", "10", "30", "20"];
    let run =
        run_plan(Plan { concurrency: 4, ..plan(vec![suite("a", cases(&messages))]) }, delayed_agent(&messages)).await;
    assert_eq!(run.completed(), ["10", "20", "30", "40"]);
    let ids: Vec<&str> = run.suite().cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, messages);
    assert_eq!(run.suite().cases.iter().map(|case| case.duration_ms).collect::<Vec<_>>(), [40, 10, 30, 20]);
    assert_eq!(run.suite().wall_clock_ms, 40);
    assert_eq!(run.suite().summary.total_duration_ms, 100);
}

#[rstest]
#[case(1, 1, 600)]
#[case(4, 4, 150)]
#[case(6, 6, 100)]
#[case(100, 12, 50)]
#[case(0, 1, 600)]
#[tokio::test(start_paused = true)]
async fn limits_concurrency(#[case] allowed: usize, #[case] peak: usize, #[case] wall_clock: u64) {
    let messages = ["50"; 12];
    let plan = Plan { concurrency: allowed, ..plan(vec![suite("a", cases(&messages))]) };
    let run = run_plan(plan, delayed_agent(&messages)).await;
    assert_eq!(run.log.peak, peak);
    assert_eq!(run.suite().wall_clock_ms, wall_clock);
    // Events are batched, which may extend the run slightly.
    assert!((wall_clock..wall_clock + 10).contains(&run.totals.wall_clock_ms), "{}", run.totals.wall_clock_ms);
}

#[tokio::test(start_paused = true)]
async fn cases_start_in_file_order_across_suites() {
    let suites = vec![suite("a", cases(&["20", "5"])), suite("b", cases(&["6", "7"]))];
    let run = run_plan(Plan { concurrency: 2, ..plan(suites) }, delayed_agent(&["20", "5", "6", "7"])).await;
    assert_eq!(run.started(), ["20", "5", "6", "7"]);
}

#[tokio::test(start_paused = true)]
async fn suites_are_reported_in_order() {
    let suites = vec![suite("a", cases(&["50", "10"])), suite("b", cases(&["20"])), suite("c", cases(&["60"]))];
    let run = run_plan(Plan { concurrency: 8, ..plan(suites) }, delayed_agent(&["50", "10", "20", "60"])).await;
    assert_eq!(run.event_labels(), ["run", "10", "20", "50", "suite 0", "suite 1", "60", "suite 2", "end"]);
    let spans: Vec<u64> = run.suites().iter().map(|suite| suite.wall_clock_ms).collect();
    assert_eq!(spans, [50, 20, 60]);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_suite_excludes_reporting() {
    // The second case ends during the batch delay of the first one.
    let run = run_plan(plan(vec![suite("a", cases(&["10", "1"]))]), delayed_agent(&["10", "1"])).await;
    assert_eq!(run.suite().wall_clock_ms, 11);
}

#[tokio::test(start_paused = true)]
async fn suites_without_cases_are_reported() {
    let suites = vec![suite("a", cases(&[])), suite("b", cases(&["1"])), suite("c", cases(&[]))];
    let run = run_plan(plan(suites), delayed_agent(&["1"])).await;
    assert_eq!(run.event_labels(), ["run", "1", "suite 0", "suite 1", "suite 2", "end"]);
    assert_eq!((run.suites()[0].summary.total_cases, run.suites()[0].wall_clock_ms), (0, 0));
    assert_eq!(run.suites()[0].summary.estimated_cost_usd, None);
}

#[rstest]
#[case(0)]
#[case(1)]
#[case(3)]
#[tokio::test(start_paused = true)]
async fn a_run_without_cases_ends_immediately(#[case] count: usize) {
    let suites = (0..count).map(|_| suite("a", Vec::new())).collect();
    let run = run_plan(Plan { concurrency: 4, ..plan(suites) }, FakeAgent::default()).await;
    assert_eq!(run.events.len(), 2 + count);
    assert_eq!((run.totals.suites, run.totals.cases, run.totals.interrupted), (count, 0, false));
    assert_eq!(run.totals.wall_clock_ms, 0);
}

/// Runs more cases than fit into a batch, on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_case_is_lost_between_threads() {
    let messages: Vec<String> = (0..3000).map(|number| format!("m{number:04}")).collect();
    let names: Vec<&str> = messages.iter().map(String::as_str).collect();
    let suites = names.chunks(700).map(|names| suite("a", cases(names))).collect();
    let slow = names.iter().step_by(100).fold(FakeAgent::default(), |agent, name| agent.on(name, 1, Act::reply("no")));
    let plan = Plan { concurrency: 64, timeout: Duration::from_mins(1), ..plan(suites) };
    let run = run_plan(plan, slow).await;
    assert_eq!((run.totals.cases, run.totals.passed, run.totals.failed), (3000, 2970, 30));
    assert!(run.log.peak <= 64, "{}", run.log.peak);
    let ids: Vec<&str> = run.suites().iter().flat_map(|suite| &suite.cases).map(|case| case.id.as_str()).collect();
    assert_eq!(ids, names);
}
