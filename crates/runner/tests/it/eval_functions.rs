//! Cases with eval functions.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_cases::token::TokenSources;
use karat_cases::{Case, EvalEntry};
use karat_core::assertion::Strictness;
use karat_core::exit::ExitStatus;
use karat_core::judgement::{Conclusion, ErrorKind, EvalContext, EvalError, Judgement};
use karat_core::port::EvalFunctions;
use karat_core::redact::Redactor;
use karat_core::result::Outcome;
use karat_runner::Plan;
use serde_json::{Value, json};

use crate::support::{Act, FakeAgent, case, plan, run_plan, run_until, suite};

const SECRET: &str = "s3cr3t-of-the-house";

/// Scripted functions by name, with a log of their calls.
#[derive(Default)]
struct FakeFunctions {
    behaviours: HashMap<&'static str, Behaviour>,
    calls: Mutex<Vec<(String, Value)>>,
    contexts: Mutex<Vec<EvalContext>>,
}

enum Behaviour {
    Judge(Judgement),
    Panic,
    /// Blocks until a signal is received.
    Wait(Mutex<Receiver<()>>),
}

impl FakeFunctions {
    fn on(mut self, name: &'static str, behaviour: Behaviour) -> Self {
        self.behaviours.insert(name, behaviour);
        self
    }

    fn called_names(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }
}

impl EvalFunctions for FakeFunctions {
    fn judge(&self, name: &str, trace: &Value, context: &EvalContext) -> Judgement {
        self.calls.lock().unwrap().push((name.to_owned(), trace.clone()));
        self.contexts.lock().unwrap().push(context.clone());
        match &self.behaviours[name] {
            Behaviour::Judge(judgement) => judgement.clone(),
            Behaviour::Panic => panic!("{name} is broken"),
            Behaviour::Wait(signal) => {
                let _ = signal.lock().unwrap().recv_timeout(Duration::from_secs(20));
                judgement(Conclusion::Verdict { passed: true, reason: String::new() })
            }
        }
    }
}

fn judgement(conclusion: Conclusion) -> Judgement {
    Judgement {
        conclusion,
        score: None,
        elapsed: Duration::from_secs(3),
        stdout: "printed".to_owned(),
        stderr: String::new(),
    }
}

fn verdict(passed: bool, reason: &str) -> Behaviour {
    Behaviour::Judge(judgement(Conclusion::Verdict { passed, reason: reason.to_owned() }))
}

fn error(kind: ErrorKind, message: &str) -> Behaviour {
    Behaviour::Judge(judgement(Conclusion::Error(EvalError::new(kind, message))))
}

/// A case that expects `ok` in the response and the functions to pass.
fn eval_case(message: &str, functions: &[&str]) -> Case {
    let mut case = case(message, message);
    case.expect.evals = Some(functions.iter().map(|name| EvalEntry::new(*name)).collect());
    case
}

fn plan_with(functions: &Arc<FakeFunctions>, cases: Vec<Case>) -> Plan {
    let functions: Arc<dyn EvalFunctions> = Arc::<FakeFunctions>::clone(functions);
    Plan { functions: Some(functions), ..plan(vec![suite("a", cases)]) }
}

#[tokio::test(start_paused = true)]
async fn a_function_passes_fails_or_errors() {
    let functions = FakeFunctions::default()
        .on("eval_good", verdict(true, "fine"))
        .on("eval_bad", verdict(false, "rude"))
        .on("eval_slow", error(ErrorKind::Timeout, "took longer than 5000 ms"));
    let functions = Arc::new(functions);
    let cases = vec![
        eval_case("good", &["eval_good"]),
        eval_case("bad", &["eval_good", "eval_bad", "eval_slow"]),
        eval_case("slow", &["eval_good", "eval_slow", "eval_bad"]),
        eval_case("decided", &["eval_slow"]),
    ];
    let agent = FakeAgent::default().on("good", 7, Act::reply("ok")).on("decided", 1, Act::reply("no"));
    let run = run_plan(plan_with(&functions, cases), agent).await;

    let good = run.case("good");
    assert_eq!((good.outcome, good.assertions_run, good.error.as_deref()), (Outcome::Passed, 2, None));
    assert_eq!(good.duration_ms, 7, "the duration does not include eval functions");
    assert_eq!(
        serde_json::to_value(&good.details.evals).unwrap(),
        json!([{
            "name": "eval_good", "result": true, "reason": "fine", "error": null, "errorKind": null,
            "executionTimeMs": 3000, "stdout": "printed", "stderr": ""
        }])
    );
    let bad = run.case("bad");
    assert_eq!((bad.outcome, bad.error.as_deref()), (Outcome::Failed, Some("evals: eval_bad failed: rude")));
    assert_eq!(bad.failures[0].pointer, "/expect/evals/1");
    let slow = run.case("slow");
    assert_eq!(slow.outcome, Outcome::Errored);
    assert_eq!(slow.error.as_deref(), Some("evals: eval_slow errored (timeout): took longer than 5000 ms"));
    assert!(slow.failures.is_empty() && slow.details.evals.len() == 2, "{slow:?}");
    assert_eq!(slow.details.response, "ok", "the answer is reported in any case");
    assert_eq!(run.case("decided").outcome, Outcome::Failed);
    assert_eq!(functions.called_names(), ["eval_good", "eval_good", "eval_bad", "eval_good", "eval_slow"]);
    assert_eq!((run.totals.passed, run.totals.failed, run.totals.errored), (1, 3, 1));
    assert_eq!(run.totals.status(), ExitStatus::Errored);
}

#[tokio::test(start_paused = true)]
async fn a_function_gets_the_case_and_the_resolved_parameters() {
    let functions = Arc::new(FakeFunctions::default().on("eval_good", verdict(true, "")));
    let mut case = case("hello", "hello");
    case.expect.evals = Some(vec![EvalEntry {
        params: json!({"min": "{{seed:min}}"}).as_object().unwrap().clone(),
        reference: Some(json!("near {{seed:city}}")),
        ..EvalEntry::new("eval_good")
    }]);
    let seed = Some(json!({"min": 3, "city": SECRET}));
    let redactor = Redactor::default();
    redactor.add(SECRET);
    let plan =
        Plan { tokens: TokenSources { seed, snapshot: None }, redactor, ..plan_with(&functions, vec![case.clone()]) };
    let run = run_plan(plan, FakeAgent::default()).await;
    let contexts = functions.contexts.lock().unwrap();
    assert_eq!(contexts[0].case.as_ref().unwrap()["expect"]["evals"][0]["params"]["min"], "{{seed:min}}");
    assert_eq!(
        (&contexts[0].params["min"], &contexts[0].reference),
        (&json!(3), &Some(json!(format!("near {SECRET}"))))
    );
    let eval = &run.case("hello").details.evals[0];
    assert_eq!((&eval.params["min"], &eval.reference), (&json!(3), &Some(json!("near ***"))));
}

#[tokio::test(start_paused = true)]
async fn a_function_gets_the_trace_of_the_case() {
    let functions = Arc::new(FakeFunctions::default().on("eval_good", verdict(true, "")));
    run_plan(plan_with(&functions, vec![eval_case("hello", &["eval_good"])]), FakeAgent::default()).await;
    let calls = functions.calls.lock().unwrap();
    let step = json!({
        "input": { "message": "hello" }, "output": { "response": "ok" }, "tool_calls": [], "error": null
    });
    assert_eq!(calls[0].1, json!({ "trace_id": "hello", "steps": [step] }));
}

#[tokio::test(start_paused = true)]
async fn all_failures_run_all_functions() {
    let functions = FakeFunctions::default()
        .on("eval_bad", verdict(false, "rude"))
        .on("eval_broken", error(ErrorKind::Exception, "KeyError: 'x'\nTraceback"))
        .on("eval_good", verdict(true, ""));
    let functions = Arc::new(functions);
    let strictness = Strictness { all_failures: true, strict: false };
    let cases = vec![eval_case("m", &["eval_broken", "eval_bad", "eval_good"])];
    let agent = FakeAgent::default().on("m", 1, Act::reply("no"));
    let run = run_plan(Plan { strictness, ..plan_with(&functions, cases) }, agent).await;
    let case = run.case("m");
    assert_eq!((case.outcome, case.failures.len(), case.assertions_run), (Outcome::Failed, 2, 3));
    assert_eq!(case.details.warnings, ["evals: eval_broken errored (exception): KeyError: 'x'"]);
    assert_eq!(case.details.evals[0].error.as_deref(), Some("KeyError: 'x'\nTraceback"));
}

#[tokio::test(start_paused = true)]
async fn a_case_with_functions_errors_if_the_run_has_none() {
    let run = run_plan(plan(vec![suite("a", vec![eval_case("m", &["eval_x"])])]), FakeAgent::default()).await;
    let error = run.case("m").error.as_deref();
    assert_eq!(error, Some("evals: eval_x errored (validation): this run has no eval functions"));
    assert_eq!(run.case("m").outcome, Outcome::Errored);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_function_makes_the_case_errored() {
    let functions =
        Arc::new(FakeFunctions::default().on("eval_x", Behaviour::Panic).on("eval_good", verdict(true, "")));
    let cases = vec![eval_case("1", &["eval_x"]), eval_case("2", &["eval_good"])];
    let run = run_plan(plan_with(&functions, cases), FakeAgent::default()).await;
    let error = run.case("1").error.as_deref();
    assert_eq!(error, Some("internal error, please report it: eval_x is broken"));
    assert_eq!((run.totals.errored, run.totals.passed), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn function_output_is_redacted() {
    let mut leak = judgement(Conclusion::Verdict { passed: false, reason: format!("{}{SECRET}", "é".repeat(590)) });
    leak.stdout = format!("print {SECRET}");
    leak.stderr = format!("warn {SECRET}");
    let functions = FakeFunctions::default()
        .on("eval_leaks", Behaviour::Judge(leak))
        .on("eval_raises", error(ErrorKind::Exception, &format!("E: {SECRET}\n{SECRET}")));
    let functions = Arc::new(functions);
    let redactor = Redactor::default();
    redactor.add(SECRET);
    let cases = vec![eval_case("1", &["eval_leaks"]), eval_case("2", &["eval_raises"])];
    let run = run_plan(Plan { redactor, ..plan_with(&functions, cases) }, FakeAgent::default()).await;
    let events = serde_json::to_string(&run.events).unwrap();
    assert!(!events.contains("s3cr"), "{events}");
    assert_eq!(run.case("1").details.evals[0].stdout, "print ***");
    assert_eq!(run.case("2").error.as_deref(), Some("evals: eval_raises errored (exception): E: ***"));
}

/// On a single thread, a slow function must delay neither other cases nor cancellation.
#[tokio::test]
async fn a_running_function_does_not_block_cancellation() {
    let (sender, signal) = channel();
    let functions = Arc::new(
        FakeFunctions::default()
            .on("eval_waits", Behaviour::Wait(Mutex::new(signal)))
            .on("eval_good", verdict(true, "")),
    );
    let cases = vec![eval_case("1", &["eval_waits", "eval_good"]), eval_case("2", &["eval_good"])];
    let plan = Plan { concurrency: 2, timeout: Duration::from_millis(100), ..plan_with(&functions, cases) };
    let run = run_until(400, plan, FakeAgent::default()).await;
    assert_eq!(run.completed(), ["2"]);
    assert!(run.totals.interrupted && run.totals.wall_clock_ms < 10_000, "{:?}", run.totals);
    drop(sender);
}
