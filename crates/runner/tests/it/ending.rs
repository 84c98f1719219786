//! How a case ends: a verdict, too late, or none.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_core::assertion::Strictness;
use karat_core::case::Expectation;
use karat_core::registry::{Registry, Tool};
use karat_core::result::{CaseDetails, Outcome};
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::{Trace, Usage};
use karat_runner::Plan;
use rstest::rstest;
use serde_json::json;

use crate::support::{Act, FakeAgent, cases, plan, play, suite};

#[tokio::test(start_paused = true)]
async fn a_case_that_takes_too_long_fails_and_the_others_go_on() {
    let agent = FakeAgent::default().on("hangs", 3_600_000, Act::say("ok")).on("late", 101, Act::say("ok")).on(
        "just",
        99,
        Act::say("ok"),
    );
    let suites = vec![suite("a", cases(&["hangs", "late", "just", "quick"]))];
    let ran = play(Plan { timeout: Duration::from_millis(100), ..plan(suites) }, agent).await;
    for id in ["hangs", "late"] {
        let case = ran.case(id);
        assert_eq!(case.error.as_deref(), Some("timeout"));
        assert_eq!((case.outcome, case.passed, case.duration_ms), (Outcome::Failed, false, 100));
        assert_eq!((case.assertions_run, case.vacuous, &case.failures[..]), (0, false, &[][..]));
        assert_eq!(case.details, CaseDetails::default());
    }
    assert_eq!((ran.case("just").passed, ran.case("just").duration_ms), (true, 99));
    assert!(ran.case("quick").passed);
    assert_eq!((ran.totals.failed, ran.totals.errored, ran.totals.passed), (2, 0, 2));
    assert_eq!(ran.suite().wall_clock_ms, 299);
}

/// The answer that nobody waits for any more is dropped before the next one is asked for.
#[tokio::test(start_paused = true)]
async fn who_is_too_late_is_let_go() {
    let messages = ["a", "b", "c"];
    let agent = messages.iter().fold(FakeAgent::default(), |agent, name| agent.on(name, 500, Act::say("ok")));
    let plan = Plan { timeout: Duration::from_millis(100), ..plan(vec![suite("a", cases(&messages))]) };
    let ran = play(plan, agent).await;
    assert_eq!((ran.log.peak, ran.totals.failed), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_breaks_down_leaves_no_verdict() {
    let broken = Act::Break("the agent answered HTTP 500".to_owned(), Duration::from_millis(7));
    let agent = FakeAgent::default().on("broken", 40, broken).on("wrong", 20, Act::say("no"));
    let ran = play(plan(vec![suite("a", cases(&["broken", "wrong", "fine"]))]), agent).await;
    let case = ran.case("broken");
    assert_eq!(case.error.as_deref(), Some("the agent answered HTTP 500"));
    assert_eq!((case.outcome, case.passed), (Outcome::Errored, false));
    assert_eq!(case.duration_ms, 7, "as the agent says: its waiting between tries does not count");
    let case = ran.case("wrong");
    assert_eq!(case.error.as_deref(), Some("responseContains: expected 'ok' in response but not found"));
    assert_eq!((case.outcome, case.passed, case.duration_ms), (Outcome::Failed, false, 20));
    assert_eq!((ran.totals.passed, ran.totals.failed, ran.totals.errored), (1, 2, 1));
}

#[rstest]
#[case::while_answering(Act::Panic("boom".to_owned()), 30, "boom")]
#[case::before_answering(Act::PanicAtOnce("boom".to_owned()), 0, "boom")]
#[case::while_judged(Act::PanicAtMode, 30, "no verdict on bad")]
#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_verdict(
    #[case] act: Act,
    #[case] duration: u64,
    #[case] what: &str,
    #[values(1, 3)] concurrency: usize,
    #[values(None, Some(vec!["o.".to_owned()]))] patterns: Option<Vec<String>>,
) {
    let agent = FakeAgent::default().on("bad", 30, act).on("slow", 50, Act::say("ok"));
    let mut suites = vec![suite("a", cases(&["first", "bad", "slow"])), suite("b", cases(&["last"]))];
    // Patterns are judged on a thread apart.
    suites.iter_mut().flat_map(|suite| &mut suite.file.cases).for_each(|case| {
        case.expect.response_matches.clone_from(&patterns);
    });
    let ran = play(Plan { concurrency, ..plan(suites) }, agent).await;
    let case = ran.case("bad");
    assert_eq!(case.error, Some(format!("internal error, please report it: {what}")));
    assert_eq!((case.outcome, case.passed, case.duration_ms), (Outcome::Errored, false, duration));
    assert_eq!((ran.totals.cases, ran.totals.passed, ran.totals.errored), (4, 3, 1));
    assert_eq!((ran.totals.not_run, ran.totals.interrupted), (0, false));
}

#[tokio::test(start_paused = true)]
async fn what_is_judged_apart_is_judged_alike() {
    let mut matching = cases(&["1", "2", "3", "4"]);
    for (case, pattern) in matching.iter_mut().zip(["^o", "^k$", "k", "("]) {
        case.expect.response_matches = Some(vec![pattern.to_owned()]);
    }
    let agent = FakeAgent::default().on("1", 20, Act::say("ok")).on("2", 10, Act::say("ok"));
    let ran = play(Plan { concurrency: 4, ..plan(vec![suite("a", matching)]) }, agent).await;
    let passed: Vec<bool> = ran.suite().cases.iter().map(|case| case.passed).collect();
    assert_eq!(passed, [true, false, true, false]);
    let error = ran.case("2").error.as_deref().unwrap();
    assert!(error.starts_with("responseMatches: expected"), "{error}");
    assert_eq!((ran.case("2").outcome, ran.case("2").assertions_run), (Outcome::Failed, 2));
    assert_eq!(ran.case("4").outcome, Outcome::Failed, "{:?}", ran.case("4").error);
    assert_eq!(ran.suite().wall_clock_ms, 20);
}

/// On one thread, a verdict that is long in coming must not keep other answers from being received.
#[tokio::test]
async fn a_long_verdict_holds_up_nobody() {
    let (answered, waiting) = std::sync::mpsc::channel();
    let agent = FakeAgent::default().on("long", 0, Act::JudgedAfter(Arc::new(Mutex::new(waiting)))).on(
        "short",
        20,
        Act::Tell(answered),
    );
    let mut pair = cases(&["long", "short"]);
    pair[0].expect.response_matches = Some(vec!["k".to_owned()]);
    let ran = play(Plan { concurrency: 2, ..plan(vec![suite("a", pair)]) }, agent).await;
    assert_eq!(ran.completed(), ["short", "long"]);
    assert_eq!(ran.totals.passed, 2, "{:?}", ran.case("long").error);
}

/// As many panics as there are workers leave nobody to work, if a panic ends a worker.
#[tokio::test(start_paused = true)]
async fn agents_that_always_panic_do_not_end_the_run() {
    let messages: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let names: Vec<&str> = messages.iter().map(String::as_str).collect();
    let agent = names.iter().fold(FakeAgent::default(), |agent, name| {
        agent.on(name, 1, if name.len() == 1 { Act::Panic("p".to_owned()) } else { Act::PanicAtOnce("q".to_owned()) })
    });
    let ran = play(Plan { concurrency: 2, ..plan(vec![suite("a", cases(&names))]) }, agent).await;
    assert_eq!((ran.totals.cases, ran.totals.errored, ran.totals.not_run), (20, 20, 0));
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_kept_with_its_verdict() {
    let trace = Trace {
        response: "ok: größer".to_owned(),
        tool_calls: vec![crate::reporting::call("search"), crate::reporting::call("read")],
        usage: Some(Usage {
            input_tokens: Some(3),
            output_tokens: Some(4),
            cached_input_tokens: None,
            cost_usd: Some(0.25),
        }),
        model: Some("m-1".to_owned()),
        stop_reason: Some("final".to_owned()),
        stderr: Some("said".to_owned()),
        warnings: Vec::new(),
        latency_ms: 0.0,
    };
    let agent = FakeAgent::default().on("a", 12, Act::Answer(Box::new(trace.clone())));
    let ran = play(plan(vec![suite("a", cases(&["a"]))]), agent).await;
    let case = ran.case("a");
    assert_eq!((case.outcome, case.passed, case.error.as_deref()), (Outcome::Passed, true, None));
    assert_eq!((case.assertions_run, case.duration_ms, case.description.as_str()), (1, 12, "about a"));
    let details = &case.details;
    assert_eq!(details.tools_called, ["search", "read"]);
    assert_eq!((details.response.as_str(), details.response_length), ("ok: größer", 10));
    assert_eq!((&details.tool_calls, &details.usage), (&trace.tool_calls, &trace.usage));
    assert_eq!((&details.model, &details.stop_reason), (&trace.model, &trace.stop_reason));
    assert_eq!(ran.suite().summary.estimated_cost_usd, Some(0.25));
}

/// A cost is only known where every answer's is; a case that timed out has none.
#[tokio::test(start_paused = true)]
async fn a_cost_that_is_not_known_is_not_guessed() {
    let usage = Some(Usage { cost_usd: Some(0.5), ..Usage::default() });
    let paid = Act::Answer(Box::new(Trace { response: "ok".to_owned(), usage, ..Trace::default() }));
    let agent = || FakeAgent::default().on("a", 1, paid.clone()).on("b", 1, paid.clone()).on("c", 5000, paid.clone());
    let known = play(plan(vec![suite("a", cases(&["a", "b"]))]), agent()).await;
    assert_eq!(known.suite().summary.estimated_cost_usd, Some(1.0));
    let unknown = play(plan(vec![suite("a", cases(&["a", "b", "c"]))]), agent()).await;
    assert_eq!(unknown.suite().summary.estimated_cost_usd, None);
}

/// The registry and the vocabulary of the plan are those that the judge sees.
#[tokio::test(start_paused = true)]
async fn the_judge_sees_what_the_plan_says() {
    let schema = json!({"type": "object", "required": ["city"]});
    let tool = Tool { name: "search".to_owned(), input_schema: Some(schema).into(), ..Tool::default() };
    let mut wants = cases(&["a", "b"]);
    wants[0].expect.tool_args_valid = Some(true);
    wants[1].expect.max_tokens = Some(1);
    let trace = Trace {
        response: "ok, quite a few words".to_owned(),
        tool_calls: vec![crate::reporting::call("search")],
        ..Trace::default()
    };
    let answer = Act::Answer(Box::new(trace));
    let agent = FakeAgent::default().on("a", 1, answer.clone()).on("b", 1, answer);
    let registry = Some(Registry::of([tool]));
    let plan = Plan { registry, tokenizer: Tokenizer::Cl100kBase, ..plan(vec![suite("a", wants)]) };
    let ran = play(plan, agent).await;
    let error = ran.case("a").error.as_deref().unwrap();
    assert!(error.starts_with("toolArgsValid: the arguments of 'search' do not fit its schema"), "{error}");
    let error = ran.case("b").error.as_deref().unwrap();
    assert!(error.starts_with("maxTokens: expected at most 1 tokens") && error.contains("cl100k_base"), "{error}");
}

#[rstest]
#[case(Strictness::default(), true, 0)]
#[case(Strictness { fail_vacuous: true, ..Strictness::default() }, false, 1)]
#[tokio::test(start_paused = true)]
async fn a_case_that_shows_nothing_is_marked(
    #[case] strictness: Strictness,
    #[case] passed: bool,
    #[case] failures: usize,
) {
    let mut empty = cases(&["a"]);
    empty[0].expect = Expectation::default();
    let ran = play(Plan { strictness, ..plan(vec![suite("a", empty)]) }, FakeAgent::default()).await;
    let case = ran.case("a");
    assert_eq!((case.passed, case.vacuous, case.failures.len()), (passed, true, failures));
    assert_eq!((ran.totals.vacuous, ran.totals.failed), (1, failures));
}

#[rstest]
#[case(false, 1)]
#[case(true, 3)]
#[tokio::test(start_paused = true)]
async fn all_failures_are_looked_for_when_asked(#[case] all_failures: bool, #[case] count: usize) {
    let mut strict = cases(&["a"]);
    strict[0].expect.response_contains = Some(["x", "y", "z", "ok"].map(str::to_owned).to_vec());
    let strictness = Strictness { all_failures, ..Strictness::default() };
    let ran = play(Plan { strictness, ..plan(vec![suite("a", strict)]) }, FakeAgent::default()).await;
    let case = ran.case("a");
    assert_eq!(case.failures.len(), count);
    assert_eq!(case.error.as_deref(), Some("responseContains: expected 'x' in response but not found"));
    assert_eq!(case.error.as_ref(), Some(&case.failures[0].message));
}
