//! Results of cases: verdicts, timeouts and errors.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_cases::Expectation;
use karat_cases::registry::{Registry, Tool};
use karat_core::assertion::Strictness;
use karat_core::result::{CaseDetails, Cause, Outcome};
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::{Trace, Usage};
use karat_runner::Plan;
use rstest::rstest;
use serde_json::json;

use crate::support::{Act, FakeAgent, cases, plan, run_plan, suite};

#[tokio::test(start_paused = true)]
async fn a_timeout_fails_one_case_only() {
    let agent = FakeAgent::default().on("hangs", 3_600_000, Act::reply("ok")).on("late", 101, Act::reply("ok")).on(
        "just",
        99,
        Act::reply("ok"),
    );
    let suites = vec![suite("a", cases(&["hangs", "late", "just", "quick"]))];
    let run = run_plan(Plan { timeout: Duration::from_millis(100), ..plan(suites) }, agent).await;
    for id in ["hangs", "late"] {
        let case = run.case(id);
        assert_eq!(case.error.as_deref(), Some("timeout"));
        assert_eq!((case.outcome, case.passed, case.duration_ms), (Outcome::Failed, false, 100));
        assert_eq!((case.assertions_run, case.vacuous, &case.failures[..]), (0, false, &[][..]));
        assert_eq!(case.details, CaseDetails::default());
    }
    assert_eq!((run.case("just").passed, run.case("just").duration_ms), (true, 99));
    assert!(run.case("quick").passed);
    assert_eq!((run.totals.failed, run.totals.errored, run.totals.passed), (2, 0, 2));
    assert_eq!(run.suite().wall_clock_ms, 299);
}

/// The call is dropped before the next one starts.
#[tokio::test(start_paused = true)]
async fn a_timed_out_call_is_dropped() {
    let messages = ["a", "b", "c"];
    let agent = messages.iter().fold(FakeAgent::default(), |agent, name| agent.on(name, 500, Act::reply("ok")));
    let plan = Plan { timeout: Duration::from_millis(100), ..plan(vec![suite("a", cases(&messages))]) };
    let run = run_plan(plan, agent).await;
    assert_eq!((run.log.peak, run.totals.failed), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn an_agent_error_makes_the_case_errored() {
    let broken = Act::Fail("the agent returned HTTP 500".to_owned(), Duration::from_millis(7));
    let agent = FakeAgent::default().on("broken", 40, broken).on("wrong", 20, Act::reply("no"));
    let run = run_plan(plan(vec![suite("a", cases(&["broken", "wrong", "fine"]))]), agent).await;
    let case = run.case("broken");
    assert_eq!(case.error.as_deref(), Some("the agent returned HTTP 500"));
    assert_eq!((case.outcome, case.passed), (Outcome::Errored, false));
    assert_eq!(case.duration_ms, 7, "as reported by the agent, without delays between retries");
    let case = run.case("wrong");
    assert_eq!(case.error.as_deref(), Some("responseContains: expected 'ok' in response but not found"));
    assert_eq!((case.outcome, case.passed, case.duration_ms), (Outcome::Failed, false, 20));
    assert_eq!((run.totals.passed, run.totals.failed, run.totals.errored), (1, 2, 1));
}

#[rstest]
#[case::while_answering(Act::Panic("boom".to_owned()), 30, "boom")]
#[case::before_answering(Act::PanicImmediately("boom".to_owned()), 0, "boom")]
#[case::while_judged(Act::PanicInMode, 30, "no verdict on bad")]
#[tokio::test(start_paused = true)]
async fn a_panic_affects_one_case_only(
    #[case] act: Act,
    #[case] duration: u64,
    #[case] message: &str,
    #[values(1, 3)] concurrency: usize,
    #[values(None, Some(vec!["o.".to_owned()]))] patterns: Option<Vec<String>>,
) {
    let agent = FakeAgent::default().on("bad", 30, act).on("slow", 50, Act::reply("ok"));
    let mut suites = vec![suite("a", cases(&["first", "bad", "slow"])), suite("b", cases(&["last"]))];
    // Patterns are judged on a blocking thread.
    suites.iter_mut().flat_map(|suite| &mut suite.file.cases).for_each(|case| {
        case.expect.response_matches.clone_from(&patterns);
    });
    let run = run_plan(Plan { concurrency, ..plan(suites) }, agent).await;
    let case = run.case("bad");
    assert_eq!(case.error, Some(format!("internal error, please report it: {message}")));
    assert_eq!((case.outcome, case.passed, case.duration_ms), (Outcome::Errored, false, duration));
    assert_eq!((run.totals.cases, run.totals.passed, run.totals.errored), (4, 3, 1));
    assert_eq!((run.totals.not_run, run.totals.interrupted), (0, false));
}

#[tokio::test(start_paused = true)]
async fn judging_on_a_blocking_thread_gives_the_same_verdicts() {
    let mut matching = cases(&["1", "2", "3", "4"]);
    for (case, pattern) in matching.iter_mut().zip(["^o", "^k$", "k", "("]) {
        case.expect.response_matches = Some(vec![pattern.to_owned()]);
    }
    let agent = FakeAgent::default().on("1", 20, Act::reply("ok")).on("2", 10, Act::reply("ok"));
    let run = run_plan(Plan { concurrency: 4, ..plan(vec![suite("a", matching)]) }, agent).await;
    let passed: Vec<bool> = run.suite().cases.iter().map(|case| case.passed).collect();
    assert_eq!(passed, [true, false, true, false]);
    let error = run.case("2").error.as_deref().unwrap();
    assert!(error.starts_with("responseMatches: expected"), "{error}");
    assert_eq!((run.case("2").outcome, run.case("2").assertions_run), (Outcome::Failed, 2));
    assert_eq!(run.case("4").outcome, Outcome::Failed, "{:?}", run.case("4").error);
    assert_eq!(run.suite().wall_clock_ms, 20);
}

/// On a single thread, slow judging must not delay other answers.
#[tokio::test]
async fn slow_judging_does_not_block_other_cases() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let agent = FakeAgent::default().on("long", 0, Act::JudgeAfterSignal(Arc::new(Mutex::new(receiver)))).on(
        "short",
        20,
        Act::Signal(sender),
    );
    let mut pair = cases(&["long", "short"]);
    pair[0].expect.response_matches = Some(vec!["k".to_owned()]);
    let run = run_plan(Plan { concurrency: 2, ..plan(vec![suite("a", pair)]) }, agent).await;
    assert_eq!(run.completed(), ["short", "long"]);
    assert_eq!(run.totals.passed, 2, "{:?}", run.case("long").error);
}

/// There are more panics than workers, so a panic must not end a worker.
#[tokio::test(start_paused = true)]
async fn a_run_survives_an_agent_that_always_panics() {
    let messages: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let names: Vec<&str> = messages.iter().map(String::as_str).collect();
    let agent = names.iter().fold(FakeAgent::default(), |agent, name| {
        agent.on(
            name,
            1,
            if name.len() == 1 { Act::Panic("p".to_owned()) } else { Act::PanicImmediately("q".to_owned()) },
        )
    });
    let run = run_plan(Plan { concurrency: 2, ..plan(vec![suite("a", cases(&names))]) }, agent).await;
    assert_eq!((run.totals.cases, run.totals.errored, run.totals.not_run), (20, 20, 0));
}

#[tokio::test(start_paused = true)]
async fn the_result_contains_the_answer() {
    let trace = Trace {
        response: "ok: größer".to_owned(),
        tool_calls: vec![crate::suite_results::call("search"), crate::suite_results::call("read")],
        usage: Some(Usage {
            input_tokens: Some(3),
            output_tokens: Some(4),
            cached_input_tokens: None,
            cost_usd: Some(0.25),
        }),
        model: Some("m-1".to_owned()),
        stop_reason: Some("final".to_owned()),
        first_token_ms: Some(5.5),
        stderr: Some("log".to_owned()),
        ..Trace::default()
    };
    let agent = FakeAgent::default().on("a", 12, Act::Answer(Box::new(trace.clone())));
    let run = run_plan(plan(vec![suite("a", cases(&["a"]))]), agent).await;
    let case = run.case("a");
    assert_eq!((case.outcome, case.passed, case.error.as_deref()), (Outcome::Passed, true, None));
    assert_eq!((case.assertions_run, case.duration_ms, case.description.as_str()), (1, 12, "about a"));
    let details = &case.details;
    assert_eq!(details.tools_called, ["search", "read"]);
    assert_eq!((details.response.as_str(), details.response_length), ("ok: größer", 10));
    assert_eq!((&details.tool_calls, details.usage.as_deref()), (&trace.tool_calls, trace.usage.as_ref()));
    assert_eq!((&details.model, &details.stop_reason), (&trace.model, &trace.stop_reason));
    assert_eq!((details.first_token_ms, details.calls_unreported), (Some(5.5), false));
    assert_eq!(run.suite().summary.estimated_cost_usd, Some(0.25));
}

#[rstest]
#[case(false, Outcome::Passed, None)]
#[case(true, Outcome::Errored, Some(Cause::UnreportedCalls))]
#[tokio::test(start_paused = true)]
async fn cases_with_unreported_calls_are_counted_and_strictly_errored(
    #[case] strict: bool,
    #[case] outcome: Outcome,
    #[case] cause: Option<Cause>,
) {
    let mut test_cases = cases(&["a", "b", "c"]);
    test_cases[0].expect.tools_called = Some(vec!["search".to_owned()]);
    test_cases[2].expect.tools_called = Some(vec!["search".to_owned()]);
    let trace = Trace { response: "ok".to_owned(), calls_unreported: true, ..Trace::default() };
    let called = Trace { tool_calls: vec![crate::suite_results::call("search")], ..trace.clone() };
    let called = Trace { calls_unreported: false, ..called };
    let act = |trace: &Trace| Act::Answer(Box::new(trace.clone()));
    let agent = FakeAgent::default().on("a", 1, act(&trace)).on("b", 1, act(&trace)).on("c", 1, act(&called));
    let strictness = Strictness { strict, ..Strictness::default() };
    let run = run_plan(Plan { strictness, ..plan(vec![suite("a", test_cases)]) }, agent).await;
    assert_eq!((run.case("a").outcome, run.case("a").cause), (outcome, cause));
    assert_eq!(run.case("a").failures, []);
    assert!(run.case("a").has_answer() && run.case("a").details.calls_unreported);
    assert_eq!((run.case("b").outcome, run.case("c").outcome), (Outcome::Passed, Outcome::Passed));
    assert_eq!(run.totals.calls_unreported, 1, "only one case asserts something about calls that are not reported");
    assert_eq!(run.totals.errored, usize::from(strict));
}

/// The cost of a suite is known only if the cost of every case is; a timed-out case has none.
#[tokio::test(start_paused = true)]
async fn the_cost_is_unknown_if_any_case_has_none() {
    let usage = Some(Usage { cost_usd: Some(0.5), ..Usage::default() });
    let paid = Act::Answer(Box::new(Trace { response: "ok".to_owned(), usage, ..Trace::default() }));
    let agent = || FakeAgent::default().on("a", 1, paid.clone()).on("b", 1, paid.clone()).on("c", 5000, paid.clone());
    let known = run_plan(plan(vec![suite("a", cases(&["a", "b"]))]), agent()).await;
    assert_eq!(known.suite().summary.estimated_cost_usd, Some(1.0));
    let unknown = run_plan(plan(vec![suite("a", cases(&["a", "b", "c"]))]), agent()).await;
    assert_eq!(unknown.suite().summary.estimated_cost_usd, None);
}

#[tokio::test(start_paused = true)]
async fn judging_uses_the_registry_and_tokenizer_of_the_plan() {
    let schema = json!({"type": "object", "required": ["city"]});
    let tool = Tool { name: "search".to_owned(), input_schema: Some(schema).into(), ..Tool::default() };
    let mut test_cases = cases(&["a", "b"]);
    test_cases[0].expect.tool_args_valid = Some(true);
    test_cases[1].expect.max_tokens = Some(1);
    let trace = Trace {
        response: "ok, quite a few words".to_owned(),
        tool_calls: vec![crate::suite_results::call("search")],
        ..Trace::default()
    };
    let answer = Act::Answer(Box::new(trace));
    let agent = FakeAgent::default().on("a", 1, answer.clone()).on("b", 1, answer);
    let registry = Some(Registry::from_tools([tool]));
    let plan = Plan { registry, tokenizer: Tokenizer::Cl100kBase, ..plan(vec![suite("a", test_cases)]) };
    let run = run_plan(plan, agent).await;
    let error = run.case("a").error.as_deref().unwrap();
    assert!(error.starts_with("toolArgsValid: the arguments of 'search' do not match its schema"), "{error}");
    let error = run.case("b").error.as_deref().unwrap();
    assert!(error.starts_with("maxTokens: expected at most 1 tokens") && error.contains("cl100k_base"), "{error}");
}

#[rstest]
#[case(Strictness::default(), true, 0)]
#[case(Strictness { strict: true, ..Strictness::default() }, false, 1)]
#[tokio::test(start_paused = true)]
async fn a_case_without_assertions_is_vacuous(
    #[case] strictness: Strictness,
    #[case] passed: bool,
    #[case] failures: usize,
) {
    let mut empty = cases(&["a"]);
    empty[0].expect = Expectation::default();
    let run = run_plan(Plan { strictness, ..plan(vec![suite("a", empty)]) }, FakeAgent::default()).await;
    let case = run.case("a");
    assert_eq!((case.passed, case.vacuous, case.failures.len()), (passed, true, failures));
    assert_eq!((run.totals.vacuous, run.totals.failed), (1, failures));
}

#[rstest]
#[case(false, 1)]
#[case(true, 3)]
#[tokio::test(start_paused = true)]
async fn all_failures_are_reported_if_enabled(#[case] all_failures: bool, #[case] count: usize) {
    let mut strict = cases(&["a"]);
    strict[0].expect.response_contains = Some(["x", "y", "z", "ok"].map(str::to_owned).to_vec());
    let strictness = Strictness { all_failures, ..Strictness::default() };
    let run = run_plan(Plan { strictness, ..plan(vec![suite("a", strict)]) }, FakeAgent::default()).await;
    let case = run.case("a");
    assert_eq!(case.failures.len(), count);
    assert_eq!(case.error.as_deref(), Some("responseContains: expected 'x' in response but not found"));
    assert_eq!(case.error.as_ref(), Some(&case.failures[0].message));
}
