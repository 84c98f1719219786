//! Cases with a simulated user: what it says is sent, its faults are errors, and its cost is apart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_cases::Case;
use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::gate::Gates;
use karat_core::port::{AgentError, BoxFuture, WaitObserver};
use karat_core::result::{Cause, Outcome, TurnOutcome};
use karat_core::simulated_user::{FaultRule, SimulationEnd};
use karat_core::trace::{ToolCall, Trace, Usage};
use karat_runner::Plan;
use serde_json::{Map, Value, json};

use crate::support::{Act, FakeAgent, FinishedRun, plan, run_plan, suite};

/// Replies in order; a string is a message, null means that the user is done, an object is an error.
struct FakeUser {
    replies: Mutex<Vec<Value>>,
    prompts: Arc<Mutex<Vec<ChatPrompt>>>,
}

impl ChatModel for FakeUser {
    fn identity(&self) -> String {
        "fake:user".to_owned()
    }

    fn parameters(&self) -> Map<String, Value> {
        Map::new()
    }

    fn complete<'a>(
        &'a self,
        prompt: &'a ChatPrompt,
        _wait_observer: &'a dyn WaitObserver,
    ) -> BoxFuture<'a, Result<ChatReply, AgentError>> {
        self.prompts.lock().unwrap().push(prompt.clone());
        let reply = self.replies.lock().unwrap().remove(0);
        Box::pin(async move {
            // Longer than the timeout of the agent.
            tokio::time::sleep(Duration::from_millis(900)).await;
            let value = match reply {
                Value::Object(error) => return Err(AgentError::new(error["error"].to_string(), Duration::ZERO)),
                Value::Null => json!({"message": "", "done": true}),
                message => json!({"message": message, "done": false}),
            };
            let usage = Usage { input_tokens: Some(10), cost_usd: Some(0.25), ..Usage::default() };
            Ok(ChatReply { value, usage: Some(usage), latency_ms: 900.0 })
        })
    }
}

fn simulated(fields: Value) -> Case {
    let mut case = json!({
        "id": "ls-shop-001",
        "user": {"goal": "cancel order 4411", "facts": {"name": "Ada"}},
        "expect": {"toolsCalled": ["cancel"], "responseContains": ["done"]},
    });
    let Value::Object(fields) = fields else { panic!("expected an object") };
    case.as_object_mut().unwrap().extend(fields);
    Case::read_one(&case).unwrap()
}

fn agent() -> FakeAgent {
    let usage = Some(Usage { cost_usd: Some(0.5), ..Usage::default() });
    let call = ToolCall { name: "cancel".to_owned(), success: Some(true), ..ToolCall::default() };
    let done = Trace {
        response: "done, code 77".to_owned(),
        tool_calls: vec![call],
        usage: usage.clone(),
        ..Trace::default()
    };
    let ask = Trace { response: "Which order?".to_owned(), usage, ..Trace::default() };
    FakeAgent::default()
        .on("Please cancel it", 10, Act::Answer(Box::new(ask)))
        .on("It is 4411", 20, Act::Answer(Box::new(done)))
        .on("crash", 0, Act::Fail("HTTP 500".to_owned(), Duration::ZERO))
}

async fn run_user(case: Case, replies: Value, plan: Plan) -> (FinishedRun, Vec<ChatPrompt>) {
    let prompts = Arc::default();
    let Value::Array(replies) = replies else { panic!("expected a list") };
    let user = FakeUser { replies: Mutex::new(replies), prompts: Arc::clone(&prompts) };
    let mut simulated_users: BTreeMap<Option<String>, Arc<dyn ChatModel>> = BTreeMap::new();
    simulated_users.insert(None, Arc::new(user));
    let plan = Plan { suites: vec![suite("shop", vec![case])], simulated_users, ..plan };
    let run = run_plan(plan, agent()).await;
    let prompts = std::mem::take(&mut *prompts.lock().unwrap());
    (run, prompts)
}

#[tokio::test(start_paused = true)]
async fn sends_what_the_user_says_and_judges_the_whole_conversation() {
    let replies = json!(["Please cancel it", "It is 4411", null]);
    let (run, prompts) = run_user(simulated(json!({})), replies, plan(Vec::new())).await;
    let case = run.case("ls-shop-001");
    assert_eq!((case.outcome, case.error.as_deref()), (Outcome::Passed, None));
    assert_eq!(run.started(), ["Please cancel it", "It is 4411"]);
    let messages: Vec<&str> = case.details.turns.iter().map(|turn| turn.message.as_str()).collect();
    assert_eq!(messages, ["Please cancel it", "It is 4411"]);
    assert_eq!((case.duration_ms, case.assertions_run), (30, 2), "the user's time is not latency");
    let user = case.details.simulated_user.as_deref().unwrap();
    assert_eq!((user.model.as_str(), user.messages, user.end), ("fake:user", 2, SimulationEnd::Done));
    assert_eq!(prompts.len(), 3);
    let document: Value = serde_json::from_str(&prompts[1].user).unwrap();
    assert_eq!(document["conversation"], json!([{"user": "Please cancel it", "agent": "Which order?"}]));
}

#[tokio::test(start_paused = true)]
async fn its_cost_is_apart_and_counts_towards_the_gate() {
    let gates = Some(Gates { max_cost_usd: Some(1.7), ..Gates::default() });
    let replies = json!(["Please cancel it", "It is 4411", null]);
    let (run, _) = run_user(simulated(json!({})), replies, Plan { gates, ..plan(Vec::new()) }).await;
    let summary = &run.suite().summary;
    assert_eq!(summary.estimated_cost_usd, Some(1.0));
    assert_eq!(summary.simulated_user.as_ref().and_then(|users| users.cost_usd), Some(0.75));
    let gate = &run.totals.gates[0];
    assert_eq!((gate.actual, gate.held), (Some(1.75), Some(false)));
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_errored_counted_and_not_sent() {
    let replies = json!(["Please cancel it", "It is 5512"]);
    let (run, _) = run_user(simulated(json!({})), replies, plan(Vec::new())).await;
    let case = run.case("ls-shop-001");
    assert_eq!((case.outcome, case.cause), (Outcome::Errored, Some(Cause::SimulatedUser)));
    let error = case.error.as_deref().unwrap();
    assert!(error.starts_with("turn 2: the simulated user invented the number '5512'"), "{error}");
    assert_eq!(run.started(), ["Please cancel it"]);
    assert_eq!(case.assertions_run, 0);
    let user = case.details.simulated_user.as_deref().unwrap();
    let fault = user.fault.as_ref().unwrap();
    assert_eq!((fault.rule, fault.message.as_str()), (FaultRule::Number, "It is 5512"));
    let summary = run.totals.simulated_user.as_ref().unwrap();
    assert_eq!((summary.trials, summary.faults, summary.fault_rate), (1, 1, Some(1.0)));
}

#[tokio::test(start_paused = true)]
async fn a_user_may_repeat_what_the_agent_said() {
    let replies = json!(["It is 4411", "Code 77, thanks", null]);
    let (run, _) = run_user(simulated(json!({"expect": {"numbersGrounded": true}})), replies, plan(Vec::new())).await;
    let case = run.case("ls-shop-001");
    assert_eq!((case.error.as_deref(), case.details.turns.len()), (None, 2));
}

#[tokio::test(start_paused = true)]
async fn ends_after_the_maximum_number_of_messages() {
    let user = json!({"goal": "cancel order 4411", "maxTurns": 2});
    let replies = json!(["Please cancel it", "Please cancel it", "It is 4411"]);
    let (run, prompts) = run_user(simulated(json!({"user": user})), replies, plan(Vec::new())).await;
    let case = run.case("ls-shop-001");
    assert_eq!((case.outcome, prompts.len()), (Outcome::Failed, 2));
    assert_eq!(case.details.simulated_user.as_deref().unwrap().end, SimulationEnd::MaxTurns);
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_message_is_errored_but_no_fault() {
    let replies = json!(["Please cancel it", {"error": "HTTP 503"}]);
    let (run, _) = run_user(simulated(json!({})), replies, plan(Vec::new())).await;
    let case = run.case("ls-shop-001");
    let error = case.error.as_deref().unwrap();
    assert!(error.starts_with("turn 2: the simulated user gave no message: "), "{error}");
    assert_eq!((case.outcome, case.cause), (Outcome::Errored, Some(Cause::SimulatedUser)));
    let summary = run.totals.simulated_user.as_ref().unwrap();
    assert_eq!((summary.faults, summary.cost_usd), (0, None));
}

#[tokio::test(start_paused = true)]
async fn a_user_who_is_done_at_once_is_at_fault() {
    let (run, _) = run_user(simulated(json!({})), json!([null]), plan(Vec::new())).await;
    let fault = run.case("ls-shop-001").details.simulated_user.as_deref().unwrap().fault.clone().unwrap();
    assert_eq!(fault.rule, FaultRule::Message);
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_an_answer_ends_the_conversation() {
    let user = json!({"goal": "crash"});
    let (run, prompts) = run_user(simulated(json!({"user": user})), json!(["crash"]), plan(Vec::new())).await;
    let case = run.case("ls-shop-001");
    assert_eq!((case.cause, case.error.as_deref()), (Some(Cause::Agent), Some("turn 1: HTTP 500")));
    assert_eq!((case.details.turns[0].outcome, prompts.len()), (TurnOutcome::Errored, 1));
    assert_eq!(case.details.simulated_user.as_deref().unwrap().end, SimulationEnd::NoAnswer);
}
