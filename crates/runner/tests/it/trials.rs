//! Trials and gates.

use std::sync::Arc;
use std::time::Duration;

use karat_cases::Case;
use karat_core::exit::ExitStatus;
use karat_core::gate::{Gate, Gates};
use karat_core::result::{EarlierCase, Outcome};
use karat_core::trace::{ToolCall, Trace, Usage};
use karat_core::trials::TrialCounts;
use karat_runner::{Baseline, Plan, Reporters, SuitePlan, run};
use karat_testkit::clock::FixedClock;
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use crate::support::{Act, FakeAgent, case, cases, plan, run_plan, run_until, suite};

fn with_trials(plan: Plan, count: usize) -> Plan {
    Plan { trials: count, ..plan }
}

#[tokio::test(start_paused = true)]
async fn trials_are_in_order_of_their_start() {
    // The first trial ends last.
    let agent = FakeAgent::default()
        .on_sample("m", 0, 30, Act::reply("ok first"))
        .on_sample("m", 1, 20, Act::reply("no second"))
        .on_sample("m", 2, 10, Act::reply("ok third"));
    let run = run_plan(Plan { concurrency: 3, ..with_trials(plan(vec![suite("a", cases(&["m"]))]), 3) }, agent).await;
    assert_eq!(run.completed(), ["m"], "a case is reported once");
    let result = run.case("m");
    let trials = result.trials.as_ref().unwrap();
    let responses: Vec<&str> = trials.attempts.iter().map(|trial| trial.details.response.as_str()).collect();
    assert_eq!(responses, ["ok first", "no second", "ok third"]);
    assert_eq!((trials.passed, trials.failed, trials.flaky, trials.planned), (2, 1, true, 3));
    assert_eq!((result.outcome, result.duration_ms), (Outcome::Failed, 60));
    let error = result.error.as_deref().unwrap();
    assert_eq!(error, "1 of 3 trials failed: responseContains: expected 'ok' in response but not found");
    assert_eq!(result.details.response, "no second");
    let summary = run.totals.trials.as_ref().unwrap();
    assert_eq!((summary.total, summary.passed, summary.flaky), (3, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn equal_requests_have_different_samples() {
    // For this agent, requests with the same message are equal.
    let second = Case { max_turns: Some(2), stubs: Some(Map::new()), ..case("2", "m") };
    let suites = vec![suite("a", vec![case("1", "m"), second])];
    let agent = (0..4).fold(FakeAgent::default(), |agent, sample| {
        agent.on_sample("m", sample, 1, Act::reply(&format!("ok {sample}")))
    });
    let run = run_plan(with_trials(plan(suites), 2), agent).await;
    let responses =
        |id: &str| -> Vec<String> { run.case(id).all_details().map(|details| details.response.clone()).collect() };
    assert_eq!(
        (responses("1"), responses("2")),
        (vec!["ok 0".into(), "ok 1".into()], vec!["ok 2".into(), "ok 3".into()])
    );
}

#[tokio::test(start_paused = true)]
async fn finished_trials_are_reported_after_cancellation() {
    let agent = FakeAgent::default().on("1", 10, Act::reply("ok")).on("2", 10, Act::reply("ok"));
    let run = run_until(55, with_trials(plan(vec![suite("a", cases(&["1", "2", "3"]))]), 4), agent).await;
    assert_eq!(run.event_labels(), ["run", "1", "2", "suite 0", "end"]);
    let trials = run.case("2").trials.as_ref().unwrap();
    assert_eq!((trials.planned, trials.attempts.len(), trials.passed), (4, 1, 1));
    assert_eq!((run.totals.cases, run.totals.not_run, run.totals.interrupted), (2, 1, true));
    assert_eq!(run.totals.trials.as_ref().map(|trials| trials.total), Some(5));
}

#[tokio::test(start_paused = true)]
async fn fail_fast_stops_after_a_failed_trial() {
    let agent = FakeAgent::default().on_sample("1", 1, 10, Act::reply("no"));
    let plan = Plan { fail_fast: true, ..with_trials(plan(vec![suite("a", cases(&["1", "2"]))]), 5) };
    let run = run_plan(plan, agent).await;
    assert_eq!(run.started(), ["1", "1"]);
    let trials = run.case("1").trials.as_ref().unwrap();
    assert_eq!((trials.passed, trials.failed), (1, 1));
    assert_eq!((run.totals.failed, run.totals.not_run), (1, 1));
    assert_eq!(run.totals.status(), ExitStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_run_does_not_pass_even_if_its_gates_do() {
    let agent = FakeAgent::default().on_sample("m", 1, 10, Act::reply("no"));
    let gates = Some(Gates { pass_rate: Some(0.5), ..Gates::default() });
    let plan = Plan { fail_fast: true, gates, ..with_trials(plan(vec![suite("a", cases(&["m"]))]), 5) };
    let run = run_plan(plan, agent).await;
    assert_eq!((run.totals.not_run, run.totals.gates[0].held), (0, Some(true)));
    assert_eq!(run.totals.trials.as_ref().map(|trials| trials.not_run), Some(3));
    assert_eq!(run.totals.status(), ExitStatus::Errored);
}

#[tokio::test(start_paused = true)]
async fn an_error_in_a_trial_makes_the_case_errored() {
    let agent = FakeAgent::default()
        .on_sample("m", 1, 5, Act::Fail("HTTP 503".to_owned(), Duration::from_millis(5)))
        .on_sample("m", 2, 5, Act::Panic("boom".to_owned()));
    let run = run_plan(with_trials(plan(vec![suite("a", cases(&["m"]))]), 4), agent).await;
    let result = run.case("m");
    assert_eq!(result.outcome, Outcome::Errored);
    assert_eq!(result.error.as_deref(), Some("2 of 4 trials errored: HTTP 503"));
    assert_eq!(result.trials.as_ref().unwrap().pass_rate, Some(1.0));
    assert_eq!(run.totals.status(), ExitStatus::Errored);
}

fn earlier_case(id: &str, passed: usize, failed: usize) -> EarlierCase {
    EarlierCase {
        id: id.to_owned(),
        description: String::new(),
        outcome: if failed == 0 { Outcome::Passed } else { Outcome::Failed },
        error: None,
        trials: Some(TrialCounts { passed, failed, errored: 0 }),
    }
}

#[tokio::test(start_paused = true)]
async fn reports_regressions_with_few_trials() {
    let earlier = vec![earlier_case("shaky", 3, 0), earlier_case("broken", 3, 0), earlier_case("fixed", 0, 3)];
    let baseline = Some(Baseline { run_id: "run-0".to_owned(), cases: earlier, ..Baseline::default() });
    let suite_plan = SuitePlan { baseline, ..suite("a", cases(&["shaky", "broken", "fixed"])) };
    let agent = FakeAgent::default().on_sample("shaky", 1, 1, Act::reply("no")).on("broken", 1, Act::reply("no"));
    let gates = Some(Gates { max_regressions: Some(0), ..Gates::default() });
    let run = run_plan(Plan { gates, ..with_trials(plan(vec![suite_plan]), 3) }, agent).await;
    assert_eq!(
        (&run.suite().regressions[..], &run.suite().new_passes[..]),
        (&["broken".into()][..], &["fixed".into()][..])
    );
    let message = run.totals.gates[0].to_string();
    assert_eq!(message, "1, at most 0; 1 case passes less often, with too few trials to be significant");
    assert_eq!(run.totals.status(), ExitStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_flaky_case_is_not_a_regression() {
    let earlier = vec![earlier_case("shaky", 5, 0), earlier_case("broken", 5, 0), earlier_case("fixed", 0, 5)];
    let baseline = Some(Baseline { run_id: "run-0".to_owned(), cases: earlier, ..Baseline::default() });
    let suite_plan = SuitePlan { baseline, ..suite("a", cases(&["shaky", "broken", "fixed"])) };
    let agent = FakeAgent::default().on_sample("shaky", 3, 1, Act::reply("no")).on("broken", 1, Act::reply("no"));
    let run = run_plan(with_trials(plan(vec![suite_plan]), 5), agent).await;
    assert_eq!(run.suite().regressions, ["broken"]);
    assert_eq!(run.suite().new_passes, ["fixed"]);
}

#[tokio::test(start_paused = true)]
async fn warns_about_assertions_skipped_in_any_trial() {
    let call = ToolCall { name: "mute".to_owned(), ..ToolCall::default() };
    let silent = Trace { response: "ok".to_owned(), tool_calls: vec![call], ..Trace::default() };
    let agent = FakeAgent::default().on_sample("m", 1, 1, Act::Answer(Box::new(silent)));
    let mut case = case("c", "m");
    case.expect.no_tool_errors = Some(true);
    let run = run_plan(with_trials(plan(vec![suite("a", vec![case])]), 2), agent).await;
    assert_eq!(run.case("c").details.warnings, Vec::<String>::new(), "the case shows the details of its first trial");
    assert_eq!(run.suite().warnings, ["noToolErrors: the agent does not report whether 'mute' succeeded"]);
}

fn paid_reply(response: &str, cost_usd: f64) -> Act {
    let usage = Some(Usage { cost_usd: Some(cost_usd), ..Usage::default() });
    Act::Answer(Box::new(Trace { response: response.to_owned(), usage, ..Trace::default() }))
}

#[tokio::test(start_paused = true)]
async fn gates_count_every_trial() {
    let agent = FakeAgent::default().on("m", 10, paid_reply("ok", 0.1)).on_sample("m", 3, 500, paid_reply("no", 0.1));
    let gates = Gates {
        pass_rate: Some(0.75),
        max_cost_usd: Some(0.4),
        p95_latency_ms: Some(499.0),
        max_regressions: Some(0),
        rubric_score: None,
        safety_rate: None,
    };
    let plan = Plan { gates: Some(gates), ..with_trials(plan(vec![suite("a", cases(&["m"]))]), 4) };
    let run = run_plan(plan, agent).await;
    let results: Vec<_> = run.totals.gates.iter().map(|result| (result.gate, result.actual, result.held)).collect();
    assert_eq!(
        results,
        [
            (Gate::PassRate, Some(0.75), Some(true)),
            (Gate::MaxCostUsd, Some(0.4), Some(true)),
            (Gate::P95LatencyMs, Some(500.0), Some(false)),
            (Gate::MaxRegressions, None, None),
        ]
    );
    assert_eq!(run.totals.status(), ExitStatus::Errored, "an unchecked gate does not pass");
}

#[tokio::test(start_paused = true)]
async fn the_cost_is_unknown_if_any_suite_has_none() {
    let gates = Some(Gates { max_cost_usd: Some(10.0), ..Gates::default() });
    let suites = || vec![suite("a", cases(&["1"])), suite("b", cases(&["2"]))];
    let known = FakeAgent::default().on("1", 1, paid_reply("ok", 1.0)).on("2", 1, paid_reply("ok", 2.0));
    let run = run_plan(Plan { gates: gates.clone(), ..plan(suites()) }, known).await;
    assert_eq!(run.totals.gates[0].actual, Some(3.0));
    for silent in ["1", "2"] {
        let known = if silent == "1" { "2" } else { "1" };
        let agent = FakeAgent::default().on(known, 1, paid_reply("ok", 1.0));
        let run = run_plan(Plan { gates: gates.clone(), ..plan(suites()) }, agent).await;
        assert_eq!((run.totals.gates[0].actual, run.totals.gates[0].held), (None, None));
    }
}

#[tokio::test]
async fn each_agent_has_its_own_gates() {
    let good = FakeAgent::default().with_identity("good");
    let bad = FakeAgent::default().with_identity("bad").on("m", 0, Act::reply("no"));
    let suites = vec![suite("a", cases(&["m"])), SuitePlan { agent: 1, ..suite("a", cases(&["m"])) }];
    let gates = Some(Gates { pass_rate: Some(0.9), ..Gates::default() });
    let mut reporters = Reporters::default();
    let plan = Plan { gates, ..plan(suites) };
    let totals = run(
        plan,
        vec![Arc::new(good), Arc::new(bad)],
        &FixedClock::default(),
        &CancellationToken::new(),
        &mut reporters,
    )
    .await;
    let results: Vec<_> = totals.gates.iter().map(|result| (result.agent.as_deref(), result.held)).collect();
    assert_eq!(results, [(Some("good"), Some(true)), (Some("bad"), Some(false))]);
    assert_eq!(totals.status(), ExitStatus::Failed);
}
