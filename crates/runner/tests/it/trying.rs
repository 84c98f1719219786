//! Cases that are tried several times, and limits that a run must keep.

use std::sync::Arc;
use std::time::Duration;

use karat_core::case::Case;
use karat_core::exit::ExitStatus;
use karat_core::gate::{Gate, Gates};
use karat_core::result::{EarlierCase, Outcome};
use karat_core::trace::{ToolCall, Trace, Usage};
use karat_core::trials::TrialCounts;
use karat_runner::{Baseline, Plan, Reporters, SuitePlan, run};
use karat_testkit::clock::FixedClock;
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use crate::support::{Act, FakeAgent, case, cases, plan, play, play_until, suite};

fn tries(plan: Plan, count: usize) -> Plan {
    Plan { trials: count, ..plan }
}

#[tokio::test(start_paused = true)]
async fn tries_stand_in_the_order_in_which_they_began() {
    // The first try ends last.
    let agent = FakeAgent::default()
        .on_sample("m", 0, 30, Act::say("ok first"))
        .on_sample("m", 1, 20, Act::say("no second"))
        .on_sample("m", 2, 10, Act::say("ok third"));
    let ran = play(Plan { concurrency: 3, ..tries(plan(vec![suite("a", cases(&["m"]))]), 3) }, agent).await;
    assert_eq!(ran.completed(), ["m"], "a case is told of once");
    let result = ran.case("m");
    let trials = result.trials.as_ref().unwrap();
    let said: Vec<&str> = trials.tries.iter().map(|one| one.details.response.as_str()).collect();
    assert_eq!(said, ["ok first", "no second", "ok third"]);
    assert_eq!((trials.passed, trials.failed, trials.flaky, trials.planned), (2, 1, true, 3));
    assert_eq!((result.outcome, result.duration_ms), (Outcome::Failed, 60));
    let error = result.error.as_deref().unwrap();
    assert_eq!(error, "1 of 3 trials failed: responseContains: expected 'ok' in response but not found");
    assert_eq!(result.details.response, "no second");
    let summary = ran.totals.trials.as_ref().unwrap();
    assert_eq!((summary.total, summary.passed, summary.flaky), (3, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn equal_questions_are_never_the_same_sample() {
    // To this agent, as to most, nothing but the message makes a question.
    let second = Case { max_turns: Some(2), stubs: Some(Map::new()), ..case("2", "m") };
    let asked = vec![suite("a", vec![case("1", "m"), second])];
    let agent = (0..4)
        .fold(FakeAgent::default(), |agent, sample| agent.on_sample("m", sample, 1, Act::say(&format!("ok {sample}"))));
    let ran = play(tries(plan(asked), 2), agent).await;
    let said = |id: &str| -> Vec<String> { ran.case(id).all_details().map(|one| one.response.clone()).collect() };
    assert_eq!((said("1"), said("2")), (vec!["ok 0".into(), "ok 1".into()], vec!["ok 2".into(), "ok 3".into()]));
}

#[tokio::test(start_paused = true)]
async fn an_interruption_keeps_the_tries_that_ended() {
    let agent = FakeAgent::default().on("1", 10, Act::say("ok")).on("2", 10, Act::say("ok"));
    let ran = play_until(55, tries(plan(vec![suite("a", cases(&["1", "2", "3"]))]), 4), agent).await;
    assert_eq!(ran.story(), ["run", "1", "2", "suite 0", "end"]);
    let trials = ran.case("2").trials.as_ref().unwrap();
    assert_eq!((trials.planned, trials.tries.len(), trials.passed), (4, 1, 1));
    assert_eq!((ran.totals.cases, ran.totals.not_run, ran.totals.interrupted), (2, 1, true));
    assert_eq!(ran.totals.trials.as_ref().map(|trials| trials.total), Some(5));
}

#[tokio::test(start_paused = true)]
async fn the_first_bad_try_stops_a_fast_failing_run() {
    let agent = FakeAgent::default().on_sample("1", 1, 10, Act::say("no"));
    let plan = Plan { fail_fast: true, ..tries(plan(vec![suite("a", cases(&["1", "2"]))]), 5) };
    let ran = play(plan, agent).await;
    assert_eq!(ran.begun(), ["1", "1"]);
    let trials = ran.case("1").trials.as_ref().unwrap();
    assert_eq!((trials.passed, trials.failed), (1, 1));
    assert_eq!((ran.totals.failed, ran.totals.not_run), (1, 1));
    assert_eq!(ran.totals.status(), ExitStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn gates_that_a_part_of_the_tries_kept_are_not_enough() {
    let agent = FakeAgent::default().on_sample("m", 1, 10, Act::say("no"));
    let gates = Some(Gates { pass_rate: Some(0.5), ..Gates::default() });
    let plan = Plan { fail_fast: true, gates, ..tries(plan(vec![suite("a", cases(&["m"]))]), 5) };
    let ran = play(plan, agent).await;
    assert_eq!((ran.totals.not_run, ran.totals.gates[0].held), (0, Some(true)));
    assert_eq!(ran.totals.trials.as_ref().map(|trials| trials.not_run), Some(3));
    assert_eq!(ran.totals.status(), ExitStatus::Errored);
}

#[tokio::test(start_paused = true)]
async fn one_error_leaves_a_case_without_a_verdict_but_not_its_tries() {
    let agent = FakeAgent::default()
        .on_sample("m", 1, 5, Act::Break("HTTP 503".to_owned(), Duration::from_millis(5)))
        .on_sample("m", 2, 5, Act::Panic("boom".to_owned()));
    let ran = play(tries(plan(vec![suite("a", cases(&["m"]))]), 4), agent).await;
    let result = ran.case("m");
    assert_eq!(result.outcome, Outcome::Errored);
    assert_eq!(result.error.as_deref(), Some("2 of 4 trials errored: HTTP 503"));
    assert_eq!(result.trials.as_ref().unwrap().pass_rate, Some(1.0));
    assert_eq!(ran.totals.status(), ExitStatus::Errored);
}

fn earlier(id: &str, passed: usize, failed: usize) -> EarlierCase {
    EarlierCase {
        id: id.to_owned(),
        description: String::new(),
        outcome: if failed == 0 { Outcome::Passed } else { Outcome::Failed },
        error: None,
        trials: Some(TrialCounts { passed, failed, errored: 0 }),
    }
}

#[tokio::test(start_paused = true)]
async fn few_tries_hide_no_regression() {
    let before = vec![earlier("shaky", 3, 0), earlier("broken", 3, 0), earlier("mended", 0, 3)];
    let baseline = Some(Baseline { run_id: "run-0".to_owned(), cases: before });
    let asked = SuitePlan { baseline, ..suite("a", cases(&["shaky", "broken", "mended"])) };
    let agent = FakeAgent::default().on_sample("shaky", 1, 1, Act::say("no")).on("broken", 1, Act::say("no"));
    let gates = Some(Gates { max_regressions: Some(0), ..Gates::default() });
    let ran = play(Plan { gates, ..tries(plan(vec![asked]), 3) }, agent).await;
    assert_eq!(
        (&ran.suite().regressions[..], &ran.suite().new_passes[..]),
        (&["broken".into()][..], &["mended".into()][..])
    );
    let said = ran.totals.gates[0].to_string();
    assert_eq!(said, "1, at most 0; 1 case passes less often, with too few tries to tell that from chance");
    assert_eq!(ran.totals.status(), ExitStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_case_that_often_passes_has_not_regressed() {
    let before = vec![earlier("shaky", 5, 0), earlier("broken", 5, 0), earlier("mended", 0, 5)];
    let baseline = Some(Baseline { run_id: "run-0".to_owned(), cases: before });
    let asked = SuitePlan { baseline, ..suite("a", cases(&["shaky", "broken", "mended"])) };
    let agent = FakeAgent::default().on_sample("shaky", 3, 1, Act::say("no")).on("broken", 1, Act::say("no"));
    let ran = play(tries(plan(vec![asked]), 5), agent).await;
    assert_eq!(ran.suite().regressions, ["broken"]);
    assert_eq!(ran.suite().new_passes, ["mended"]);
}

#[tokio::test(start_paused = true)]
async fn what_any_try_skipped_is_told() {
    let call = ToolCall { name: "mute".to_owned(), ..ToolCall::default() };
    let silent = Trace { response: "ok".to_owned(), tool_calls: vec![call], ..Trace::default() };
    let agent = FakeAgent::default().on_sample("m", 1, 1, Act::Answer(Box::new(silent)));
    let mut asked = case("c", "m");
    asked.expect.no_tool_errors = Some(true);
    let ran = play(tries(plan(vec![suite("a", vec![asked])]), 2), agent).await;
    assert_eq!(ran.case("c").details.warnings, Vec::<String>::new(), "the case is told as its first try");
    assert_eq!(ran.suite().warnings, ["noToolErrors: the agent does not say whether 'mute' succeeded"]);
}

fn paid(response: &str, cost_usd: f64) -> Act {
    let usage = Some(Usage { cost_usd: Some(cost_usd), ..Usage::default() });
    Act::Answer(Box::new(Trace { response: response.to_owned(), usage, ..Trace::default() }))
}

#[tokio::test(start_paused = true)]
async fn gates_count_every_try() {
    let agent = FakeAgent::default().on("m", 10, paid("ok", 0.1)).on_sample("m", 3, 500, paid("no", 0.1));
    let gates = Gates {
        pass_rate: Some(0.75),
        max_cost_usd: Some(0.4),
        p95_latency_ms: Some(499.0),
        max_regressions: Some(0),
        rubric_score: None,
    };
    let plan = Plan { gates: Some(gates), ..tries(plan(vec![suite("a", cases(&["m"]))]), 4) };
    let ran = play(plan, agent).await;
    let found: Vec<_> = ran.totals.gates.iter().map(|result| (result.gate, result.actual, result.held)).collect();
    assert_eq!(
        found,
        [
            (Gate::PassRate, Some(0.75), Some(true)),
            (Gate::MaxCostUsd, Some(0.4), Some(true)),
            (Gate::P95LatencyMs, Some(500.0), Some(false)),
            (Gate::MaxRegressions, None, None),
        ]
    );
    assert_eq!(ran.totals.status(), ExitStatus::Errored, "what was not checked did not hold");
}

#[tokio::test(start_paused = true)]
async fn a_cost_that_is_not_known_of_every_suite_is_not_known() {
    let gates = Some(Gates { max_cost_usd: Some(10.0), ..Gates::default() });
    let suites = || vec![suite("a", cases(&["1"])), suite("b", cases(&["2"]))];
    let known = FakeAgent::default().on("1", 1, paid("ok", 1.0)).on("2", 1, paid("ok", 2.0));
    let ran = play(Plan { gates: gates.clone(), ..plan(suites()) }, known).await;
    assert_eq!(ran.totals.gates[0].actual, Some(3.0));
    for silent in ["1", "2"] {
        let known = if silent == "1" { "2" } else { "1" };
        let agent = FakeAgent::default().on(known, 1, paid("ok", 1.0));
        let ran = play(Plan { gates: gates.clone(), ..plan(suites()) }, agent).await;
        assert_eq!((ran.totals.gates[0].actual, ran.totals.gates[0].held), (None, None));
    }
}

#[tokio::test]
async fn each_agent_has_its_own_gates() {
    let good = FakeAgent::default().called("good");
    let bad = FakeAgent::default().called("bad").on("m", 0, Act::say("no"));
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
    let found: Vec<_> = totals.gates.iter().map(|result| (result.agent.as_deref(), result.held)).collect();
    assert_eq!(found, [(Some("good"), Some(true)), (Some("bad"), Some(false))]);
    assert_eq!(totals.status(), ExitStatus::Failed);
}
