//! Hooks and state sources: order, errors, cases that run alone.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_cases::{Case, Expectation, Turn, UnchangedState};
use karat_core::port::{BoxFuture, Hook, HookError, Hooks, StateSources};
use karat_core::redact::Redactor;
use karat_core::result::{Cause, Outcome};
use karat_runner::Plan;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{Act, FakeAgent, FinishedRun, case, plan, run_plan, run_until, suite};

/// Hooks and sources that keep a log, with a delay of 10 ms each, and fail at one of its entries.
#[derive(Debug, Default)]
struct System {
    log: Mutex<Vec<String>>,
    /// The entries that fail, with a number if an earlier one succeeds.
    fails_at: Vec<&'static str>,
    isolated: bool,
}

impl System {
    async fn enter(&self, entry: String) -> Result<(), HookError> {
        sleep(Duration::from_millis(10)).await;
        let mut log = self.log.lock().unwrap();
        let count = log.iter().filter(|other| **other == entry).count() + 1;
        log.push(entry.clone());
        let numbered = format!("{entry} {count}");
        if self.fails_at.iter().any(|at| *at == entry || *at == numbered) {
            return Err(HookError(format!("{entry} failed with s3cret")));
        }
        Ok(())
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl StateSources for System {
    fn capture<'a>(&'a self, source: &'a str, _case_id: &'a str) -> BoxFuture<'a, Result<Value, HookError>> {
        Box::pin(async move {
            self.enter(format!("capture {source}")).await?;
            Ok(json!({"n": self.log().len()}))
        })
    }

    fn is_isolated(&self, _source: &str) -> bool {
        self.isolated
    }

    fn definition(&self, source: &str) -> Value {
        json!({"file": source})
    }
}

impl Hooks for System {
    fn run<'a>(&'a self, hook: Hook, case_id: Option<&'a str>) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(self.enter([hook.name(), case_id.unwrap_or_default()].join(" ")))
    }
}

fn unchanged(except: &str) -> Vec<UnchangedState> {
    vec![UnchangedState { source: "db".to_owned(), except: vec![except.to_owned()] }]
}

fn state_case(id: &str, message: &str) -> Case {
    let case = case(id, message);
    Case { expect: Expectation { state_unchanged: Some(unchanged("/n")), ..case.expect }, ..case }
}

fn plan_with(system: &Arc<System>, cases: Vec<Case>) -> Plan {
    let (sources, hooks) = (Arc::clone(system) as Arc<dyn StateSources>, Arc::clone(system) as Arc<dyn Hooks>);
    Plan { state_sources: Some(sources), hooks: Some(hooks), ..plan(vec![suite("a", cases)]) }
}

fn system(fails_at: &[&'static str]) -> Arc<System> {
    Arc::new(System { fails_at: fails_at.to_vec(), ..System::default() })
}

#[tokio::test(start_paused = true)]
async fn hooks_and_captures_surround_the_messages() {
    let system = system(&[]);
    let run = run_plan(plan_with(&system, vec![state_case("a", "a")]), FakeAgent::default()).await;
    assert_eq!(system.log(), ["beforeCase a", "capture db", "capture db", "afterCase a"]);
    let result = &run.suite().cases[0];
    assert_eq!((result.outcome, result.assertions_run), (Outcome::Passed, 2));
}

#[tokio::test(start_paused = true)]
async fn hooks_and_captures_count_neither_as_latency_nor_towards_the_timeout() {
    let system = system(&[]);
    let agent = FakeAgent::default().on("a", 15, Act::reply("ok"));
    let plan = Plan { timeout: Duration::from_millis(16), ..plan_with(&system, vec![state_case("a", "a")]) };
    let run = run_plan(plan, agent).await;
    let result = &run.suite().cases[0];
    assert_eq!((result.outcome, result.duration_ms), (Outcome::Passed, 15));
}

fn conversation(id: &str, messages: &[&str]) -> Case {
    let turn = |message: &&str| Turn { message: (*message).to_owned(), expect: None, stubs: None };
    let turns = messages.iter().map(turn).collect();
    Case { input: None, turns: Some(turns), ..state_case(id, "") }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_captured_once_before_and_once_after() {
    let system = system(&[]);
    let plan = Plan { timeout: Duration::from_millis(25), ..plan_with(&system, vec![conversation("a", &["1", "2"])]) };
    let agent = FakeAgent::default().on("1", 12, Act::reply("ok")).on("2", 12, Act::reply("ok"));
    let run = run_plan(plan, agent).await;
    assert_eq!(system.log(), ["beforeCase a", "capture db", "capture db", "afterCase a"]);
    assert_eq!(run.suite().cases[0].outcome, Outcome::Passed, "{:?}", run.suite().cases[0].error);
}

#[rstest]
#[case::before_case(&["beforeCase a"], "beforeCase a failed with s3cret", &["beforeCase a", "afterCase a"], 0)]
#[case::first_capture(
    &["capture db 1"], "capture db failed with s3cret", &["beforeCase a", "capture db", "afterCase a"], 0
)]
#[case::second_capture(
    &["capture db 2"], "capture db failed with s3cret",
    &["beforeCase a", "capture db", "capture db", "afterCase a"], 1
)]
#[case::after_case(
    &["afterCase a"], "afterCase a failed with s3cret",
    &["beforeCase a", "capture db", "capture db", "afterCase a"], 1
)]
#[tokio::test(start_paused = true)]
async fn a_failure_makes_the_case_errored(
    #[case] fails_at: &[&'static str],
    #[case] error: &str,
    #[case] log: &[&str],
    #[case] messages: usize,
    #[values(false, true)] is_conversation: bool,
) {
    let system = system(fails_at);
    let case = if is_conversation { conversation("a", &["a"]) } else { state_case("a", "a") };
    let run = run_plan(plan_with(&system, vec![case]), FakeAgent::default()).await;
    let result = &run.suite().cases[0];
    assert_eq!((result.outcome, result.cause), (Outcome::Errored, Some(Cause::Hook)));
    assert_eq!(result.error.as_deref(), Some(error));
    assert_eq!((system.log(), run.log.started.len()), (log.iter().map(ToString::to_string).collect(), messages));
    assert_eq!(result.details.response, if messages == 0 { "" } else { "ok" });
    assert_eq!(run.totals.status(), karat_core::exit::ExitStatus::Errored);
}

#[tokio::test(start_paused = true)]
async fn the_error_replaces_a_failure_which_becomes_a_warning() {
    let system = system(&["capture db 2", "afterCase a"]);
    let agent = FakeAgent::default().on("a", 0, Act::reply("no"));
    let run = run_plan(plan_with(&system, vec![state_case("a", "a")]), agent).await;
    let result = &run.suite().cases[0];
    assert_eq!(result.error.as_deref(), Some("capture db failed with s3cret"));
    assert_eq!(result.failures, []);
    let warnings = &result.details.warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("would not pass: responseContains: "), "{warnings:?}");
    assert_eq!(warnings[1], "afterCase a failed with s3cret");
}

#[tokio::test(start_paused = true)]
async fn errors_are_redacted() {
    let redactor = Redactor::default();
    redactor.add("s3cret");
    let plan = Plan { redactor, ..plan_with(&system(&["beforeCase a"]), vec![state_case("a", "a")]) };
    let run = run_plan(plan, FakeAgent::default()).await;
    let error = run.suite().cases[0].error.clone().unwrap();
    assert!(error.starts_with("beforeCase a failed with ") && !error.contains("s3cret"), "{error}");
}

#[rstest]
#[case::timeout(Act::reply("ok"), 2000, Outcome::Failed)]
#[case::error(Act::Fail("HTTP 500".to_owned(), Duration::ZERO), 0, Outcome::Errored)]
#[case::panic(Act::Panic("bug".to_owned()), 0, Outcome::Errored)]
#[tokio::test(start_paused = true)]
async fn after_case_runs_however_the_case_ends(#[case] act: Act, #[case] delay: u64, #[case] outcome: Outcome) {
    let system = system(&[]);
    let run = run_plan(plan_with(&system, vec![state_case("a", "a")]), FakeAgent::default().on("a", delay, act)).await;
    assert_eq!(run.suite().cases[0].outcome, outcome);
    assert_eq!(system.log(), ["beforeCase a", "capture db", "afterCase a"], "nothing is captured without an answer");
}

#[rstest]
#[case::during_the_message(100, &["beforeCase a", "capture db", "afterCase a"])]
#[case::during_the_hook(5, &["afterCase a"])]
#[tokio::test(start_paused = true)]
async fn after_case_runs_when_the_run_is_cancelled(#[case] millis: u64, #[case] log: &[&str]) {
    let system = system(&[]);
    let agent = FakeAgent::default().on("a", 500, Act::reply("ok"));
    let run = run_until(millis, plan_with(&system, vec![state_case("a", "a"), state_case("b", "b")]), agent).await;
    assert!(run.totals.interrupted && run.suite().cases.is_empty());
    assert_eq!(system.log(), log);
}

#[tokio::test(start_paused = true)]
async fn a_case_that_is_not_run_has_no_hooks() {
    let system = system(&[]);
    let messages: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    let agent = messages.iter().fold(FakeAgent::default(), |agent, message| agent.on(message, 0, Act::Refuse));
    let cases = messages.iter().map(|message| case(message, message)).collect();
    let run = run_plan(plan_with(&system, cases), agent).await;
    let not_run = run.suite().cases.iter().filter(|case| case.cause == Some(Cause::NotRun)).count();
    assert!(not_run > 0);
    let started = system.log().iter().filter(|entry| entry.starts_with("beforeCase")).count();
    assert_eq!(started, 8 - not_run);
}

/// Runs state cases among others with 8 workers and returns the messages in flight at each start.
async fn run_mixed(trials: usize, isolated: bool) -> FinishedRun {
    let system = Arc::new(System { isolated, ..System::default() });
    let message =
        |number: usize| if number.is_multiple_of(3) { format!("state {number}") } else { format!("{number}") };
    let messages: Vec<String> = (0..24).map(message).collect();
    let make = |message: &String| {
        if message.starts_with("state") { state_case(message, message) } else { case(message, message) }
    };
    let agent = messages.iter().zip(0_u64..).fold(FakeAgent::default(), |agent, (message, number)| {
        agent.on(message, 20 + number % 7 * 5, Act::reply("ok"))
    });
    let cases = messages.iter().map(make).collect();
    run_plan(Plan { concurrency: 8, trials, ..plan_with(&system, cases) }, agent).await
}

#[rstest]
#[case::one_trial(1)]
#[case::trials(3)]
#[tokio::test(start_paused = true)]
async fn a_state_case_runs_alone_among_others(#[case] trials: usize) {
    let run = run_mixed(trials, false).await;
    assert_eq!(run.suite().cases.len(), 24);
    assert!(run.suite().cases.iter().all(|case| case.passed));
    // Hooks and captures take 10 ms each, so that another message within the duration of a state case would be seen.
    let started = &run.log.started;
    assert_eq!(started.len(), 24 * trials);
    for (index, (start, message)) in started.iter().enumerate().filter(|(_, (_, message))| message.starts_with("state"))
    {
        let number: u64 = message["state ".len()..].parse().unwrap();
        let before = *start - Duration::from_millis(20);
        let end = *start + Duration::from_millis(20 + number % 7 * 5 + 20);
        let others = started.iter().enumerate().filter(|(other, (at, _))| *other != index && *at > before && *at < end);
        assert_eq!(others.map(|(_, (_, other))| other).collect::<Vec<_>>(), Vec::<&String>::new(), "beside {message}");
    }
    assert!(run.log.peak > 1, "the others run in parallel");
}

#[tokio::test(start_paused = true)]
async fn cases_with_isolated_sources_run_in_parallel() {
    let run = run_mixed(1, true).await;
    assert_eq!(run.log.peak, 8);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_run_starts_no_waiting_case() {
    let system = system(&[]);
    let cases = vec![state_case("a", "a"), state_case("b", "b"), case("c", "c")];
    let agent = FakeAgent::default().on("a", 5, Act::reply("no"));
    let run = run_plan(Plan { concurrency: 3, fail_fast: true, ..plan_with(&system, cases) }, agent).await;
    assert_eq!(run.suite().cases.len(), 1);
    assert_eq!(system.log().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_case_without_its_sources_is_errored() {
    let run = run_plan(plan(vec![suite("a", vec![state_case("a", "a")])]), FakeAgent::default()).await;
    assert_eq!(run.suite().cases[0].error.as_deref(), Some("this run has no state source 'db'"));
}

#[tokio::test(start_paused = true)]
async fn safety_may_be_about_the_state_also_after_a_failed_turn() {
    let system = system(&[]);
    let case = Case::read_one(&json!({
        "id": "a",
        "turns": [{"message": "1", "expect": {"responseContains": ["42"]}}, {"message": "2"}],
        "safety": {"stateUnchanged": [{"source": "db"}]},
    }))
    .unwrap();
    let run = run_plan(plan_with(&system, vec![case]), FakeAgent::default()).await;
    assert_eq!(system.log(), ["beforeCase a", "capture db", "capture db", "afterCase a"]);
    let result = &run.suite().cases[0];
    let security = result.details.security.as_deref().unwrap();
    assert_eq!((security.utility, security.safety), (Outcome::Failed, Some(Outcome::Failed)));
    let pointers: Vec<&str> = result.failures.iter().map(|failure| failure.pointer.as_str()).collect();
    assert_eq!(pointers, ["/turns/0/expect/responseContains/0", "/safety/stateUnchanged/0"]);
}
