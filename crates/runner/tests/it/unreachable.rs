//! An agent that is down is called a few times only.

use karat_core::event::UnreachableAgent;
use karat_core::exit::ExitStatus;
use karat_core::result::Cause;
use karat_runner::Plan;

use crate::support::{Act, FakeAgent, cases, plan, run_plan, suite};

/// Messages that start with `r` are refused.
fn agent_for(messages: &[&str]) -> FakeAgent {
    let refused = messages.iter().filter(|message| message.starts_with('r'));
    refused.fold(FakeAgent::default(), |agent, message| agent.on(message, 10, Act::Refuse))
}

#[tokio::test(start_paused = true)]
async fn stops_after_five_connection_failures() {
    let messages = ["r1", "r2", "r3", "r4", "r5", "r6", "7"];
    let suites = vec![suite("a", cases(&messages[..4])), suite("b", cases(&messages[4..]))];
    let run = run_plan(plan(suites), agent_for(&messages).with_identity("http://agent")).await;
    assert_eq!(run.started(), messages[..5]);
    assert_eq!((run.totals.cases, run.totals.errored, run.totals.not_run), (7, 7, 0));
    let (asked, not_asked) = (run.case("r5"), run.case("7"));
    assert_eq!((asked.cause, asked.error.as_deref()), (Some(Cause::Agent), Some("connection refused")));
    let text = "not run: the agent cannot be reached";
    assert_eq!((not_asked.cause, not_asked.error.as_deref()), (Some(Cause::NotRun), Some(text)));
    let unreachable =
        UnreachableAgent { agent: "http://agent".to_owned(), error: "connection refused".to_owned(), not_run: 2 };
    assert_eq!(run.totals.unreachable, [unreachable]);
    assert_eq!(run.totals.status(), ExitStatus::Errored);
}

#[tokio::test(start_paused = true)]
async fn continues_if_the_agent_has_replied() {
    let messages = ["1", "r2", "r3", "r4", "r5", "r6", "r7", "8"];
    let run = run_plan(plan(vec![suite("a", cases(&messages))]), agent_for(&messages)).await;
    assert_eq!(run.started(), messages);
    assert_eq!((run.totals.passed, run.totals.errored, run.totals.unreachable.len()), (2, 6, 0));
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_finish() {
    let messages: Vec<String> = (0..40).map(|number| format!("r{number}")).collect();
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let plan = Plan { concurrency: 8, ..plan(vec![suite("a", cases(&messages))]) };
    let run = run_plan(plan, agent_for(&messages)).await;
    let started = run.started().len();
    assert!((5..16).contains(&started), "{started}");
    assert_eq!(run.totals.unreachable[0].not_run, 40 - started);
}
