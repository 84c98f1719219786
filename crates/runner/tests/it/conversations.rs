//! Cases with several turns.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_cases::Case;
use karat_core::assertion::Strictness;
use karat_core::judgement::{Conclusion, EvalContext, Judgement};
use karat_core::port::EvalFunctions;
use karat_core::redact::Redactor;
use karat_core::result::{CaseResult, Outcome, TurnOutcome};
use karat_core::trace::{ToolCall, Trace, Usage};
use karat_runner::Plan;
use serde_json::{Value, json};

use crate::support::{Act, FakeAgent, FinishedRun, plan, run_plan, suite};

/// `fields` are further fields of the case.
fn conversation(turns: &Value, fields: &Value) -> Case {
    let mut case = json!({"id": "ls-a-001", "turns": turns});
    case.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Case::read_one(&case).unwrap()
}

async fn run_case(case: Case, agent: FakeAgent, strictness: Strictness) -> FinishedRun {
    run_plan(Plan { strictness, ..plan(vec![suite("a", vec![case])]) }, agent).await
}

fn outcomes(case: &CaseResult) -> Vec<TurnOutcome> {
    case.details.turns.iter().map(|turn| turn.outcome).collect()
}

fn answer(response: &str, tool: &str, result: Value) -> Act {
    let call = ToolCall { name: tool.to_owned(), success: Some(true), result: Some(result), ..ToolCall::default() };
    let usage = Usage { input_tokens: Some(2), output_tokens: Some(1), ..Usage::default() };
    let trace = Trace { response: response.to_owned(), tool_calls: vec![call], usage: Some(usage), ..Trace::default() };
    Act::Answer(Box::new(trace))
}

#[tokio::test(start_paused = true)]
async fn expectations_of_the_case_apply_to_all_turns() {
    let turns = json!([
        {"message": "a", "expect": {"toolsCalled": ["find"], "maxLatencyMs": 60}},
        {"message": "b", "expect": {"toolsCalled": ["pay"]}},
    ]);
    let expect = json!({"toolsCalled": ["find", "pay"], "responseContains": ["paid"], "maxLatencyMs": 119});
    let agent = FakeAgent::default().on("a", 50, answer("found", "find", json!(1))).on(
        "b",
        70,
        answer("paid", "pay", json!(2)),
    );
    let run = run_case(conversation(&turns, &json!({"expect": expect})), agent, Strictness::default()).await;
    let case = run.case("ls-a-001");
    assert_eq!(case.error.as_deref(), Some("maxLatencyMs: expected at most 119 ms but it took 120 ms"));
    assert_eq!(case.failures[0].pointer, "/expect/maxLatencyMs");
    assert_eq!(outcomes(case), [TurnOutcome::Passed, TurnOutcome::Passed]);
    assert_eq!((case.assertions_run, case.duration_ms), (6, 120));
    assert_eq!(case.details.tools_called, ["find", "pay"]);
    assert_eq!(case.details.usage.as_ref().and_then(|usage| usage.input_tokens), Some(4));
    assert_eq!(run.started(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn numbers_of_earlier_turns_are_grounded() {
    let grounded = json!({"numbersGrounded": true});
    let turns = json!([{"message": "Order 4411?"}, {"message": "And now?", "expect": grounded}]);
    let agent = FakeAgent::default().on("Order 4411?", 0, answer("5 left", "find", json!({"left": 5}))).on(
        "And now?",
        0,
        Act::reply("4411 has 5 left and 7 more"),
    );
    let run = run_case(conversation(&turns, &json!({})), agent, Strictness::default()).await;
    let error = run.case("ls-a-001").error.as_deref().unwrap();
    assert!(error.starts_with("turn 2: numbersGrounded: ") && error.contains("'7'"), "{error}");
    assert!(!error.contains("'5'") && !error.contains("'4411'"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_timeout_covers_the_whole_conversation() {
    let turns = json!([{"message": "a"}, {"message": "b"}, {"message": "c"}]);
    let agent = FakeAgent::default().on("a", 600, Act::reply("ok")).on("b", 600, Act::reply("ok"));
    let run = run_case(conversation(&turns, &json!({"expect": {}})), agent, Strictness::default()).await;
    let case = run.case("ls-a-001");
    assert_eq!((case.error.as_deref(), case.outcome), (Some("timeout"), Outcome::Failed));
    assert_eq!(outcomes(case), [TurnOutcome::Passed, TurnOutcome::Failed, TurnOutcome::NotRun]);
    assert_eq!((case.duration_ms, case.details.turns[1].duration_ms), (1000, 400));
    assert_eq!((run.log.peak, run.log.in_flight), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_errored_turn_ends_the_conversation() {
    let expecting = |expect: Value| {
        let turns = json!([{"message": "a", "expect": expect}, {"message": "b"}, {"message": "c"}]);
        conversation(&turns, &json!({"onTurnFailure": "continue"}))
    };
    let broken = || FakeAgent::default().on("b", 1, Act::Fail("HTTP 500".to_owned(), Duration::from_millis(3)));
    let run = run_case(expecting(json!({"responseContains": ["ok"]})), broken(), Strictness::default()).await;
    let case = run.case("ls-a-001");
    assert_eq!((case.outcome, case.error.as_deref()), (Outcome::Errored, Some("turn 2: HTTP 500")));
    assert_eq!(outcomes(case), [TurnOutcome::Passed, TurnOutcome::Errored, TurnOutcome::NotRun]);
    assert_eq!(case.duration_ms, 3);

    let run = run_case(expecting(json!({"responseContains": ["no"]})), broken(), Strictness::default()).await;
    let case = run.case("ls-a-001");
    assert_eq!(case.outcome, Outcome::Failed, "an earlier turn failed");
    assert_eq!(case.error.as_deref(), Some("turn 1: responseContains: expected 'no' in response but not found"));
    assert_eq!(outcomes(case), [TurnOutcome::Failed, TurnOutcome::Errored, TurnOutcome::NotRun]);
    assert_eq!(case.details.warnings, ["turn 2: HTTP 500"]);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_without_checks_is_vacuous() {
    let turns = json!([{"message": "a", "expect": {}}, {"message": "b"}]);
    let strict = |strict| Strictness { strict, ..Strictness::default() };
    let run = run_case(conversation(&turns.clone(), &json!({})), FakeAgent::default(), strict(false)).await;
    assert!(run.case("ls-a-001").is_vacuous_pass());
    let run = run_case(conversation(&turns, &json!({})), FakeAgent::default(), strict(true)).await;
    assert_eq!(run.case("ls-a-001").error.as_deref(), Some("strict: no assertion ran"));
}

#[tokio::test(start_paused = true)]
async fn secrets_are_redacted_in_turns() {
    let turns = json!([{"message": "my key is s3cr3t", "expect": {"maxLength": 3}}]);
    let agent = FakeAgent::default().on("my key is s3cr3t", 0, answer("s3cr3t", "find", json!("s3cr3t")));
    let redactor = Redactor::default();
    redactor.add("s3cr3t");
    let suites = vec![suite("a", vec![conversation(&turns, &json!({}))])];
    let run = run_plan(Plan { redactor, ..plan(suites) }, agent).await;
    let text = serde_json::to_string(run.case("ls-a-001")).unwrap();
    assert!(!text.contains("s3cr3t") && text.contains("maxLength"), "{text}");
}

/// Passes every trace and records it.
#[derive(Default)]
struct TraceRecorder(Mutex<Vec<(String, Value)>>);

impl EvalFunctions for TraceRecorder {
    fn judge(&self, name: &str, trace: &Value, _context: &EvalContext) -> Judgement {
        self.0.lock().unwrap().push((name.to_owned(), trace.clone()));
        Judgement {
            conclusion: Conclusion::Verdict { passed: true, reason: String::new() },
            score: None,
            elapsed: Duration::ZERO,
            stdout: String::new(),
            stderr: String::new(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn steps_have_the_number_of_their_turn() {
    let turns = json!([{"message": "a"}, {"message": "b", "expect": {"evals": ["eval_turn"]}}]);
    let case = conversation(&turns, &json!({"expect": {"evals": ["eval_all"]}}));
    let recorder = Arc::new(TraceRecorder::default());
    let functions: Arc<dyn EvalFunctions> = Arc::<TraceRecorder>::clone(&recorder);
    let plan = Plan { functions: Some(functions), ..plan(vec![suite("a", vec![case])]) };
    let run = run_plan(plan, FakeAgent::default()).await;
    assert!(run.case("ls-a-001").passed);
    let seen = recorder.0.lock().unwrap();
    let steps = |index: usize| {
        let (name, trace): &(String, Value) = &seen[index];
        let steps = trace["steps"].as_array().unwrap().iter();
        (name.as_str(), steps.map(|step| (step["turn"].clone(), step["input"]["message"].clone())).collect::<Vec<_>>())
    };
    assert_eq!(steps(0), ("eval_turn", vec![(json!(1), json!("b"))]));
    assert_eq!(steps(1), ("eval_all", vec![(json!(0), json!("a")), (json!(1), json!("b"))]));
}
