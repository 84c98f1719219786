//! Cases that Python eval functions judge, by functions that say what a test lets them say.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_core::assertion::Strictness;
use karat_core::case::Case;
use karat_core::exit::ExitStatus;
use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement};
use karat_core::port::EvalFunctions;
use karat_core::redact::Redactor;
use karat_core::result::Outcome;
use karat_runner::Plan;
use serde_json::{Value, json};

use crate::support::{Act, FakeAgent, case, plan, play, play_until, suite};

/// Functions by name, and what they were asked.
#[derive(Default)]
struct Scripted {
    says: HashMap<&'static str, Say>,
    asked: Mutex<Vec<(String, Value)>>,
}

enum Say {
    Judge(Judgement),
    Panic,
    /// Says nothing before it is let.
    Wait(Mutex<Receiver<()>>),
}

impl Scripted {
    fn on(mut self, name: &'static str, say: Say) -> Self {
        self.says.insert(name, say);
        self
    }

    fn names(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }
}

impl EvalFunctions for Scripted {
    fn judge(&self, name: &str, trace: &Value) -> Judgement {
        self.asked.lock().unwrap().push((name.to_owned(), trace.clone()));
        match &self.says[name] {
            Say::Judge(judgement) => judgement.clone(),
            Say::Panic => panic!("{name} is broken"),
            Say::Wait(told) => {
                let _ = told.lock().unwrap().recv_timeout(Duration::from_secs(20));
                judgement(Conclusion::Verdict { passed: true, reason: String::new() })
            }
        }
    }
}

fn judgement(conclusion: Conclusion) -> Judgement {
    Judgement { conclusion, elapsed: Duration::from_secs(3), stdout: "printed".to_owned(), stderr: String::new() }
}

fn verdict(passed: bool, reason: &str) -> Say {
    Say::Judge(judgement(Conclusion::Verdict { passed, reason: reason.to_owned() }))
}

fn error(kind: ErrorKind, message: &str) -> Say {
    Say::Judge(judgement(Conclusion::Error(EvalError::new(kind, message))))
}

/// A case that wants `ok` in the response, and that these functions pass it.
fn judged(message: &str, functions: &[&str]) -> Case {
    let mut case = case(message, message);
    case.expect.evals = Some(functions.iter().map(|name| (*name).to_owned()).collect());
    case
}

fn with(functions: &Arc<Scripted>, cases: Vec<Case>) -> Plan {
    let functions: Arc<dyn EvalFunctions> = Arc::<Scripted>::clone(functions);
    Plan { functions: Some(functions), ..plan(vec![suite("a", cases)]) }
}

#[tokio::test(start_paused = true)]
async fn a_function_passes_fails_or_breaks() {
    let functions = Scripted::default()
        .on("eval_good", verdict(true, "fine"))
        .on("eval_bad", verdict(false, "rude"))
        .on("eval_slow", error(ErrorKind::Timeout, "took longer than 5000 ms"));
    let functions = Arc::new(functions);
    let cases = vec![
        judged("good", &["eval_good"]),
        judged("bad", &["eval_good", "eval_bad", "eval_slow"]),
        judged("slow", &["eval_good", "eval_slow", "eval_bad"]),
        judged("decided", &["eval_slow"]),
    ];
    let agent = FakeAgent::default().on("good", 7, Act::say("ok")).on("decided", 1, Act::say("no"));
    let ran = play(with(&functions, cases), agent).await;

    let good = ran.case("good");
    assert_eq!((good.outcome, good.assertions_run, good.error.as_deref()), (Outcome::Passed, 2, None));
    assert_eq!(good.duration_ms, 7, "a function's time is not the agent's");
    assert_eq!(
        serde_json::to_value(&good.details.evals).unwrap(),
        json!([{
            "name": "eval_good", "result": true, "reason": "fine", "error": null, "errorKind": null,
            "executionTimeMs": 3000, "stdout": "printed", "stderr": ""
        }])
    );
    let bad = ran.case("bad");
    assert_eq!((bad.outcome, bad.error.as_deref()), (Outcome::Failed, Some("evals: eval_bad failed: rude")));
    assert_eq!(bad.failures[0].pointer, "/expect/evals/1");
    let slow = ran.case("slow");
    assert_eq!(slow.outcome, Outcome::Errored);
    assert_eq!(slow.error.as_deref(), Some("evals: eval_slow errored (timeout): took longer than 5000 ms"));
    assert!(slow.failures.is_empty() && slow.details.evals.len() == 2, "{slow:?}");
    assert_eq!(slow.details.response, "ok", "what the agent did is told all the same");
    assert_eq!(ran.case("decided").outcome, Outcome::Failed);
    assert_eq!(functions.names(), ["eval_good", "eval_good", "eval_bad", "eval_good", "eval_slow"]);
    assert_eq!((ran.totals.passed, ran.totals.failed, ran.totals.errored), (1, 3, 1));
    assert_eq!(ran.totals.status(), ExitStatus::Errored);
}

#[tokio::test(start_paused = true)]
async fn a_function_sees_the_case_s_trace() {
    let functions = Arc::new(Scripted::default().on("eval_good", verdict(true, "")));
    play(with(&functions, vec![judged("hello", &["eval_good"])]), FakeAgent::default()).await;
    let asked = functions.asked.lock().unwrap();
    let step = json!({
        "input": { "message": "hello" }, "output": { "response": "ok" }, "tool_calls": [], "error": null
    });
    assert_eq!(asked[0].1, json!({ "trace_id": "hello", "steps": [step] }));
}

#[tokio::test(start_paused = true)]
async fn all_failures_run_all_functions() {
    let functions = Scripted::default()
        .on("eval_bad", verdict(false, "rude"))
        .on("eval_broken", error(ErrorKind::Exception, "KeyError: 'x'\nTraceback"))
        .on("eval_good", verdict(true, ""));
    let functions = Arc::new(functions);
    let strictness = Strictness { all_failures: true, fail_vacuous: false };
    let cases = vec![judged("m", &["eval_broken", "eval_bad", "eval_good"])];
    let agent = FakeAgent::default().on("m", 1, Act::say("no"));
    let ran = play(Plan { strictness, ..with(&functions, cases) }, agent).await;
    let case = ran.case("m");
    assert_eq!((case.outcome, case.failures.len(), case.assertions_run), (Outcome::Failed, 2, 3));
    assert_eq!(case.details.warnings, ["evals: eval_broken errored (exception): KeyError: 'x'"]);
    assert_eq!(case.details.evals[0].error.as_deref(), Some("KeyError: 'x'\nTraceback"));
}

/// Nothing may pass because nobody looked.
#[tokio::test(start_paused = true)]
async fn without_anybody_to_run_functions_a_case_errors() {
    let ran = play(plan(vec![suite("a", vec![judged("m", &["eval_x"])])]), FakeAgent::default()).await;
    let error = ran.case("m").error.as_deref();
    assert_eq!(error, Some("evals: eval_x errored (validation): this run was not given any eval functions"));
    assert_eq!(ran.case("m").outcome, Outcome::Errored);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_sandbox_is_an_error_of_the_case() {
    let functions = Arc::new(Scripted::default().on("eval_x", Say::Panic).on("eval_good", verdict(true, "")));
    let cases = vec![judged("1", &["eval_x"]), judged("2", &["eval_good"])];
    let ran = play(with(&functions, cases), FakeAgent::default()).await;
    let error = ran.case("1").error.as_deref();
    assert_eq!(error, Some("internal error, please report it: eval_x is broken"));
    assert_eq!((ran.totals.errored, ran.totals.passed), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_functions_say_holds_no_secret() {
    const SECRET: &str = "s3cr3t-of-the-house";
    let mut said = judgement(Conclusion::Verdict { passed: false, reason: format!("{}{SECRET}", "é".repeat(590)) });
    said.stdout = format!("print {SECRET}");
    said.stderr = format!("warn {SECRET}");
    let functions = Scripted::default()
        .on("eval_tells", Say::Judge(said))
        .on("eval_raises", error(ErrorKind::Exception, &format!("E: {SECRET}\n{SECRET}")));
    let functions = Arc::new(functions);
    let redactor = Redactor::default();
    redactor.add(SECRET);
    let cases = vec![judged("1", &["eval_tells"]), judged("2", &["eval_raises"])];
    let ran = play(Plan { redactor, ..with(&functions, cases) }, FakeAgent::default()).await;
    let told = serde_json::to_string(&ran.events).unwrap();
    assert!(!told.contains("s3cr"), "{told}");
    assert_eq!(ran.case("1").details.evals[0].stdout, "print ***");
    assert_eq!(ran.case("2").error.as_deref(), Some("evals: eval_raises errored (exception): E: ***"));
}

/// On one thread, a function that is long in coming must neither hold up others nor the end.
#[tokio::test]
async fn a_function_that_runs_does_not_keep_the_run_from_ending() {
    let (tell, told) = channel();
    let functions =
        Arc::new(Scripted::default().on("eval_waits", Say::Wait(Mutex::new(told))).on("eval_good", verdict(true, "")));
    let cases = vec![judged("1", &["eval_waits", "eval_good"]), judged("2", &["eval_good"])];
    let plan = Plan { concurrency: 2, timeout: Duration::from_millis(100), ..with(&functions, cases) };
    let ran = play_until(400, plan, FakeAgent::default()).await;
    assert_eq!(ran.completed(), ["2"]);
    assert!(ran.totals.interrupted && ran.totals.wall_clock_ms < 10_000, "{:?}", ran.totals);
    drop(tell);
}
