//! Rubric suites.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_cases::{Dimension, RubricCase, RubricFile};
use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::exit::ExitStatus;
use karat_core::gate::{Gate, GateResult, Gates};
use karat_core::port::{AgentError, BoxFuture, WaitObserver};
use karat_core::rubric::{RubricCaseResult, RubricOutcome, RubricResult, RubricSuite};
use karat_core::staleness::CurrentTool;
use karat_core::trace::{Trace, Usage};
use karat_runner::{Plan, RubricPlan, Rubrics};
use rstest::rstest;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::support::{Act, FakeAgent, FinishedRun, case, cases, plan, run_plan, run_until, suite};
use karat_core::event::RunEvent;
use karat_core::redact::Redactor;

/// Answers by dimension and records its prompts.
#[derive(Default)]
struct FakeJudge {
    prompts: Arc<Mutex<Vec<ChatPrompt>>>,
}

impl ChatModel for FakeJudge {
    fn identity(&self) -> String {
        "fake:judge".to_owned()
    }

    fn parameters(&self) -> Map<String, Value> {
        json!({ "temperature": 0 }).as_object().cloned().unwrap()
    }

    fn complete<'a>(
        &'a self,
        prompt: &'a ChatPrompt,
        _wait_observer: &'a dyn WaitObserver,
    ) -> BoxFuture<'a, Result<ChatReply, AgentError>> {
        self.prompts.lock().unwrap().push(prompt.clone());
        let prompt: Value = serde_json::from_str(&prompt.user).unwrap();
        Box::pin(async move {
            let value = match prompt["dimension"].as_str().unwrap() {
                "full" => json!({ "score": prompt["maxScore"], "reason": "complete" }),
                "none" => json!({ "score": 0, "reason": "empty" }),
                "beyond" => json!({ "score": 99, "reason": "too good" }),
                "half" => json!({ "score": 0.5, "reason": "half" }),
                "echo" => json!({ "score": 0, "reason": prompt["response"] }),
                "broken" => return Err(AgentError::new("overloaded", Duration::ZERO)),
                "last" => return Err(AgentError::budget("budget")),
                "panic" => panic!("the judge panics"),
                "slow" => {
                    sleep(Duration::from_hours(1)).await;
                    Value::Null
                }
                other => panic!("{other}"),
            };
            let cost_usd = Some(0.25);
            let usage = Usage { input_tokens: Some(10), output_tokens: Some(1), cost_usd, ..Usage::default() };
            Ok(ChatReply { value, usage: Some(usage), latency_ms: 1.0 })
        })
    }
}

fn rubric_case(message: &str, dimensions: &[&str]) -> RubricCase {
    let dimension =
        |name: &&str| Dimension { dimension: (*name).to_owned(), max_score: 2, criteria: "2 if complete".to_owned() };
    let rubric = dimensions.iter().map(dimension).collect();
    let reference = json!({ "truth": 1 }).as_object().cloned();
    let mut case = case(&format!("rb-{message}"), message);
    case.expect = karat_cases::Expectation::default();
    RubricCase { case, reference_data: reference, rubric }
}

fn rubric(tool: &str, cases: Vec<RubricCase>) -> RubricPlan {
    let file = RubricFile { metadata: None, tool_name: tool.to_owned(), hash: "0123456789ab".to_owned(), cases };
    let (path, project_path) = (format!("./evals/{tool}.rubric.json"), format!("evals/{tool}.rubric.json"));
    RubricPlan { path, project_path, agent: 0, file, skipped: Vec::new(), current: CurrentTool::default() }
}

fn rubrics_with_judge(suites: Vec<RubricPlan>) -> Rubrics {
    Rubrics { suites, judge: Some(Arc::new(FakeJudge::default())) }
}

fn finished_rubrics(run: &FinishedRun) -> Vec<&RubricSuite> {
    let mut suites = Vec::new();
    for event in &run.events {
        if let RunEvent::RubricFinished { suite } = event {
            suites.push(suite.as_ref());
        }
    }
    suites
}

fn result(run: &FinishedRun) -> &RubricResult {
    let [suite] = finished_rubrics(run)[..] else { panic!("expected one rubric suite") };
    suite.result().unwrap_or_else(|| panic!("{:?}", suite.outcome))
}

fn skip_reasons(run: &FinishedRun) -> Vec<Option<&str>> {
    finished_rubrics(run).into_iter().map(skip_reason).collect()
}

fn skip_reason(suite: &RubricSuite) -> Option<&str> {
    match &suite.outcome {
        RubricOutcome::Skipped(reason) => Some(reason),
        RubricOutcome::Result(_) => None,
    }
}

fn only_case(result: &RubricResult) -> &RubricCaseResult {
    let [case] = &result.cases[..] else { panic!("{} cases", result.cases.len()) };
    case
}

#[tokio::test(start_paused = true)]
async fn results_contain_scores_with_criteria_and_reasons() {
    let agent = FakeAgent::default().on("m", 20, Act::reply("Rome is warmer"));
    let judge = FakeJudge::default();
    let prompts = Arc::clone(&judge.prompts);
    let rubrics =
        Rubrics { suites: vec![rubric("a", vec![rubric_case("m", &["full", "none"])])], judge: Some(Arc::new(judge)) };
    let run = run_plan(Plan { rubrics, ..plan(vec![suite("a", cases(&["1"]))]) }, agent).await;
    assert_eq!(run.event_labels(), ["run", "1", "suite 0", "rubric a", "end"]);
    let result = result(&run);
    assert_eq!((result.judge.identity.as_str(), &result.judge.parameters["temperature"]), ("fake:judge", &json!(0)));
    assert_eq!((result.metadata.eval_file.as_str(), result.warnings.len()), ("evals/a.rubric.json", 0));
    let case = only_case(result);
    assert_eq!((case.score, case.max_score, case.duration_ms), (Some(2), 4, 20));
    assert_eq!(case.details.response, "Rome is warmer");
    let scores: Vec<(&str, u64, u64, &str, &str)> = case
        .dimensions
        .iter()
        .map(|score| {
            (score.dimension.as_str(), score.score, score.max_score, score.criteria.as_str(), score.reason.as_str())
        })
        .collect();
    assert_eq!(scores, [("full", 2, 2, "2 if complete", "complete"), ("none", 0, 2, "2 if complete", "empty")]);
    assert_eq!(result.summary.score_share, Some(0.5));
    assert_eq!(result.summary.judge_usage.as_ref().and_then(|usage| usage.input_tokens), Some(20));
    let prompts = prompts.lock().unwrap();
    assert_eq!(prompts.len(), 2, "one prompt per dimension");
    let prompt: Value = serde_json::from_str(&prompts[0].user).unwrap();
    assert_eq!((&prompt["response"], &prompt["referenceData"]), (&json!("Rome is warmer"), &json!({ "truth": 1 })));
    // A low score affects neither the totals nor the exit code.
    assert_eq!((run.totals.cases, run.totals.passed, run.totals.suites), (1, 1, 1));
    let totals = run.totals.rubric.as_ref().unwrap();
    assert_eq!((totals.suites, totals.judged, totals.errored, totals.skipped), (1, 1, 0, 0));
    assert_eq!(run.totals.status(), ExitStatus::Success);
}

#[rstest]
#[case("f", Act::reply("no"))]
#[case("e", Act::Fail("broken".to_owned(), Duration::ZERO))]
#[tokio::test(start_paused = true)]
async fn a_tool_is_scored_only_if_its_other_suites_passed(#[case] bad: &str, #[case] act: Act) {
    let suites = vec![suite("get-a", cases(&["1"])), suite("get_a", cases(&["2", bad])), suite("b", cases(&["3"]))];
    let rubrics = rubrics_with_judge(vec![
        rubric("get_a", vec![rubric_case("x", &["full"])]),
        rubric("b", vec![rubric_case("y", &["full"])]),
    ]);
    let run = run_plan(Plan { rubrics, ..plan(suites) }, FakeAgent::default().on(bad, 0, act)).await;
    let reason = "not all cases of ./evals/get_a.golden.json passed";
    assert_eq!(skip_reasons(&run), [Some(reason), None]);
    assert!(!run.started().contains(&"x".to_owned()), "skipped cases are not run");
    let totals = run.totals.rubric.as_ref().unwrap();
    assert_eq!((totals.suites, totals.skipped_suites, totals.judged, totals.skipped), (1, 1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn rubrics_are_skipped_without_a_judge() {
    let rubrics = Rubrics { suites: vec![rubric("a", vec![rubric_case("x", &["full"])])], judge: None };
    let run = run_plan(Plan { rubrics, ..plan(vec![suite("a", cases(&["1"]))]) }, FakeAgent::default()).await;
    assert_eq!(skip_reasons(&run), [Some("no judge is configured: set 'judge' in karat.json, or pass --judge")]);
    assert_eq!(run.started(), ["1"]);
    assert_eq!(run.totals.status(), ExitStatus::Success);
}

#[tokio::test(start_paused = true)]
async fn a_run_with_only_skipped_rubrics_is_errored() {
    let rubrics = Rubrics { suites: vec![rubric("a", vec![rubric_case("x", &["full"])])], judge: None };
    let run = run_plan(Plan { rubrics, ..plan(Vec::new()) }, FakeAgent::default()).await;
    assert_eq!(run.totals.status(), ExitStatus::Errored);
}

#[tokio::test(start_paused = true)]
async fn warns_about_scores_without_other_suites() {
    let rubrics = rubrics_with_judge(vec![rubric("a", vec![rubric_case("x", &["full"])])]);
    let run = run_plan(Plan { rubrics, ..plan(vec![suite("b", cases(&["1"]))]) }, FakeAgent::default()).await;
    let text = "scored without a golden, labeled or regression suite of this tool in the run";
    assert_eq!(result(&run).warnings, [text]);
}

#[rstest]
#[case("beyond", "the judge's answer for 'beyond' is not valid: the score 99 is out of range: at most 2")]
#[case("half", "the judge's answer for 'half' is not valid: 'score' must be an integer of at least 0, found 0.5")]
#[case("broken", "the judge gave no score for 'broken': overloaded")]
#[case("panic", "the judge gave no score for 'panic': internal error, please report it: the judge panics")]
#[case("slow", "the judge gave no score for 'slow': timeout")]
#[tokio::test(start_paused = true)]
async fn a_judge_error_makes_the_case_errored(#[case] dimension: &str, #[case] error: &str) {
    let rubrics = rubrics_with_judge(vec![rubric(
        "a",
        vec![rubric_case("x", &["full", dimension]), rubric_case("y", &["full"])],
    )]);
    let run = run_plan(Plan { rubrics, ..plan(vec![suite("a", cases(&["1"]))]) }, FakeAgent::default()).await;
    let result = result(&run);
    let case = &result.cases[0];
    assert_eq!(case.error.as_deref(), Some(error));
    assert_eq!((case.score, case.dimensions.len(), case.max_score), (None, 0, 4));
    assert_eq!(case.details.response, "ok", "the answer is reported in any case");
    assert_eq!((result.summary.judged, result.summary.errored), (1, 1));
    assert_eq!((result.summary.score, result.summary.max_score), (2, 2), "errored cases do not count");
    assert_eq!((run.totals.failed, run.totals.errored), (0, 0));
    assert_eq!(run.totals.status(), ExitStatus::Errored);
}

#[rstest]
#[case("beyond", Some(30))]
#[case("broken", None)]
#[case("slow", None)]
#[tokio::test(start_paused = true)]
async fn usage_of_failed_judge_calls_is_counted(#[case] dimension: &str, #[case] tokens: Option<u64>) {
    let rubrics = rubrics_with_judge(vec![rubric(
        "a",
        vec![rubric_case("x", &["full", dimension]), rubric_case("y", &["full"])],
    )]);
    let run = run_plan(Plan { rubrics, ..plan(Vec::new()) }, FakeAgent::default()).await;
    let input = |usage: &Option<Usage>| usage.as_ref().and_then(|usage| usage.input_tokens);
    assert_eq!(input(&result(&run).summary.judge_usage), tokens);
    assert_eq!(input(&result(&run).cases[0].judge_usage), tokens.map(|all| all - 10));
    // A judge that is not called uses nothing.
    let rubrics = rubrics_with_judge(vec![rubric("a", vec![rubric_case("x", &["full"]), rubric_case("y", &["full"])])]);
    let agent = FakeAgent::default().on("x", 0, Act::Fail("no connection".to_owned(), Duration::ZERO));
    let run = run_plan(Plan { rubrics, ..plan(Vec::new()) }, agent).await;
    assert_eq!(input(&result(&run).summary.judge_usage), Some(10));
}

fn paid_reply(cost_usd: f64) -> Act {
    let usage = Some(Usage { cost_usd: Some(cost_usd), ..Usage::default() });
    Act::Answer(Box::new(Trace { response: "ok".to_owned(), usage, ..Trace::default() }))
}

fn gate(run: &FinishedRun, gate: Gate) -> &GateResult {
    run.totals.gates.iter().find(|result| result.gate == gate).expect("the gate is checked")
}

#[rstest]
#[case(&["full", "none"], Some(1.625), Some(false))]
#[case(&["full", "broken"], None, None)]
#[tokio::test(start_paused = true)]
async fn rubrics_count_towards_the_cost(
    #[case] dimensions: &[&str],
    #[case] cost: Option<f64>,
    #[case] held: Option<bool>,
) {
    let gates = Some(Gates { max_cost_usd: Some(1.5), ..Gates::default() });
    let agent = || FakeAgent::default().on("1", 0, paid_reply(1.0)).on("x", 0, paid_reply(0.125));
    let rubrics = || rubrics_with_judge(vec![rubric("a", vec![rubric_case("x", dimensions)])]);
    let suites = || vec![suite("a", cases(&["1"]))];
    let run = run_plan(Plan { rubrics: rubrics(), gates: gates.clone(), ..plan(suites()) }, agent()).await;
    assert_eq!((gate(&run, Gate::MaxCostUsd).actual, gate(&run, Gate::MaxCostUsd).held), (cost, held));
    let alone = run_plan(Plan { rubrics: rubrics(), gates: gates.clone(), ..plan(Vec::new()) }, agent()).await;
    assert_eq!(gate(&alone, Gate::MaxCostUsd).actual, cost.map(|cost| cost - 1.0));
    let silent = FakeAgent::default().on("1", 0, paid_reply(1.0));
    let run = run_plan(Plan { rubrics: rubrics(), gates, ..plan(suites()) }, silent).await;
    assert_eq!(gate(&run, Gate::MaxCostUsd).actual, None, "the cost of the agent's answer is unknown");
}

#[tokio::test(start_paused = true)]
async fn the_rubric_score_requires_all_cases() {
    let gates = Some(Gates { rubric_score: Some(0.5), ..Gates::default() });
    let suites = || vec![suite("a", cases(&["1"])), suite("b", cases(&["f"]))];
    let rubrics = |tools: &[&str]| {
        rubrics_with_judge(tools.iter().map(|tool| rubric(tool, vec![rubric_case("x", &["full"])])).collect())
    };
    let agent = || FakeAgent::default().on("f", 0, Act::reply("no"));
    let run = run_plan(Plan { rubrics: rubrics(&["a"]), gates: gates.clone(), ..plan(suites()) }, agent()).await;
    assert_eq!((gate(&run, Gate::RubricScore).actual, run.totals.status()), (Some(1.0), ExitStatus::Success));
    let run = run_plan(Plan { rubrics: rubrics(&["a", "b"]), gates, ..plan(suites()) }, agent()).await;
    let result = gate(&run, Gate::RubricScore);
    assert_eq!(
        (result.held, result.to_string().as_str()),
        (None, "not checked, at least 0.5: 1 of 2 cases have no score")
    );
    assert_eq!(run.totals.status(), ExitStatus::Errored);
}

#[rstest]
#[case(10, Act::Fail("no connection".to_owned(), Duration::from_millis(7)), "no connection", 7)]
#[case(u64::MAX, Act::reply("ok"), "timeout", 1000)]
#[case(0, Act::PanicImmediately("oh".to_owned()), "internal error, please report it: oh", 0)]
#[tokio::test(start_paused = true)]
async fn an_agent_error_is_not_judged(
    #[case] after: u64,
    #[case] act: Act,
    #[case] error: &str,
    #[case] duration: u64,
) {
    let rubrics = rubrics_with_judge(vec![rubric("a", vec![rubric_case("x", &["full"])])]);
    let run = run_plan(Plan { rubrics, ..plan(Vec::new()) }, FakeAgent::default().on("x", after, act)).await;
    let case = only_case(result(&run));
    assert_eq!((case.error.as_deref(), case.score, case.duration_ms), (Some(error), None, duration));
    assert_eq!(result(&run).summary.score_share, None);
    assert_eq!(run.totals.status(), ExitStatus::Errored);
}

#[tokio::test(start_paused = true)]
async fn a_budget_error_stops_the_run() {
    let cases = vec![rubric_case("1", &["full"]), rubric_case("2", &["last"]), rubric_case("3", &["full"])];
    let rubrics = rubrics_with_judge(vec![rubric("a", cases), rubric("b", vec![rubric_case("4", &["full"])])]);
    let run = run_plan(Plan { rubrics, ..plan(Vec::new()) }, FakeAgent::default()).await;
    assert_eq!(run.started(), ["1", "2"]);
    let summary = &finished_rubrics(&run)[0].result().unwrap().summary;
    assert_eq!((summary.judged, summary.errored, summary.not_run), (1, 1, 1));
    assert_eq!(skip_reasons(&run), [None, Some("the run was stopped")]);
}

#[tokio::test(start_paused = true)]
async fn fail_fast_skips_rubrics() {
    let rubrics = rubrics_with_judge(vec![rubric("b", vec![rubric_case("x", &["full"])])]);
    let agent = FakeAgent::default().on("f", 0, Act::reply("no"));
    let run = run_plan(Plan { rubrics, fail_fast: true, ..plan(vec![suite("a", cases(&["f"]))]) }, agent).await;
    assert_eq!(skip_reasons(&run), [Some("the run was stopped")]);
}

#[tokio::test(start_paused = true)]
async fn cases_run_concurrently_and_are_reported_in_file_order() {
    let messages = ["40", "30", "20", "10"];
    let agent = messages
        .iter()
        .fold(FakeAgent::default(), |agent, message| agent.on(message, message.parse().unwrap(), Act::reply("ok")));
    let cases = messages.iter().map(|message| rubric_case(message, &["full"])).collect();
    let rubrics = rubrics_with_judge(vec![rubric("a", cases)]);
    let run = run_plan(Plan { rubrics, concurrency: 3, ..plan(Vec::new()) }, agent).await;
    let ids: Vec<&str> = result(&run).cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["rb-40", "rb-30", "rb-20", "rb-10"]);
    assert_eq!((run.log.peak, result(&run).wall_clock_ms), (3, 40));
}

#[tokio::test(start_paused = true)]
async fn finished_scores_are_reported_after_cancellation() {
    let cases = ["1", "2", "3"].map(|message| rubric_case(message, &["full"])).to_vec();
    let agent = ["1", "2", "3"].iter().fold(FakeAgent::default(), |agent, one| agent.on(one, 10, Act::reply("ok")));
    let rubrics = rubrics_with_judge(vec![rubric("a", cases), rubric("b", vec![rubric_case("4", &["full"])])]);
    let run = run_until(25, Plan { rubrics, ..plan(Vec::new()) }, agent).await;
    assert_eq!(run.started(), ["1", "2", "3"]);
    let summary = &finished_rubrics(&run)[0].result().unwrap().summary;
    assert_eq!((summary.judged, summary.not_run), (2, 1));
    assert_eq!(skip_reasons(&run), [None, Some("the run was interrupted")]);
    assert!(run.totals.interrupted);
    assert_eq!(run.totals.status(), ExitStatus::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn secrets_reach_neither_the_judge_nor_the_result() {
    const SECRET: &str = "sk-very-secret-key";
    let redactor = Redactor::default();
    redactor.add(SECRET);
    let judge = FakeJudge::default();
    let prompts = Arc::clone(&judge.prompts);
    let cases = vec![rubric_case("x", &["echo"]), rubric_case("y", &["full"])];
    let rubrics = Rubrics { suites: vec![rubric("a", cases)], judge: Some(Arc::new(judge)) };
    let agent = FakeAgent::default()
        .with_identity(format!("https://agent.test/?key={SECRET}"))
        .on("x", 0, Act::reply(&format!("the key is {SECRET}")))
        .on("y", 0, Act::Fail(format!("refused {SECRET}"), Duration::ZERO));
    let run = run_plan(Plan { rubrics, redactor, ..plan(Vec::new()) }, agent).await;
    let text = format!("{:?} {:?}", run.events, prompts.lock().unwrap());
    assert!(!text.contains(SECRET), "{text}");
    assert_eq!(result(&run).cases[0].dimensions[0].reason, "the key is ***");
}
