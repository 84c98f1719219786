//! Rubric suites: when they run, what is asked, and what is left of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_core::case::{Dimension, RubricCase, RubricFile};
use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::exit::ExitStatus;
use karat_core::gate::{Gate, GateResult, Gates};
use karat_core::port::{AgentError, Pending, Waiting};
use karat_core::rubric::{RubricCaseResult, RubricOutcome, RubricResult, RubricSuite};
use karat_core::staleness::CurrentTool;
use karat_core::trace::{Trace, Usage};
use karat_runner::{Plan, RubricPlan, Rubrics};
use rstest::rstest;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::support::{Act, FakeAgent, Ran, case, cases, plan, play, play_until, suite};
use karat_core::event::RunEvent;
use karat_core::redact::Redactor;

/// Answers by dimension, and remembers what it was asked.
#[derive(Default)]
struct FakeJudge {
    asked: Arc<Mutex<Vec<ChatPrompt>>>,
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
        _waiting: &'a dyn Waiting,
    ) -> Pending<'a, Result<ChatReply, AgentError>> {
        self.asked.lock().unwrap().push(prompt.clone());
        let question: Value = serde_json::from_str(&prompt.user).unwrap();
        Box::pin(async move {
            let value = match question["dimension"].as_str().unwrap() {
                "full" => json!({ "score": question["maxScore"], "reason": "all there" }),
                "none" => json!({ "score": 0, "reason": "nothing there" }),
                "beyond" => json!({ "score": 99, "reason": "too good" }),
                "half" => json!({ "score": 0.5, "reason": "half" }),
                "echo" => json!({ "score": 0, "reason": question["response"] }),
                "broken" => return Err(AgentError::new("overloaded", Duration::ZERO)),
                "last" => return Err(AgentError::budget("budget")),
                "panic" => panic!("no judge"),
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
    let dimension = |name: &&str| Dimension {
        dimension: (*name).to_owned(),
        max_score: 2,
        criteria: "2 if all is there".to_owned(),
    };
    let rubric = dimensions.iter().map(dimension).collect();
    let reference = json!({ "truth": 1 }).as_object().cloned();
    let mut asked = case(&format!("rb-{message}"), message);
    asked.expect = karat_core::case::Expectation::default();
    RubricCase { case: asked, reference_data: reference, rubric }
}

fn rubric(tool: &str, cases: Vec<RubricCase>) -> RubricPlan {
    let file = RubricFile { metadata: None, tool_name: tool.to_owned(), hash: "0123456789ab".to_owned(), cases };
    let (path, project_path) = (format!("./evals/{tool}.rubric.json"), format!("evals/{tool}.rubric.json"));
    RubricPlan { path, project_path, agent: 0, file, current: CurrentTool::default() }
}

fn judged(suites: Vec<RubricPlan>) -> Rubrics {
    Rubrics { suites, judge: Some(Arc::new(FakeJudge::default())) }
}

fn ended(ran: &Ran) -> Vec<&RubricSuite> {
    let mut suites = Vec::new();
    for event in &ran.events {
        if let RunEvent::RubricFinished { suite } = event {
            suites.push(suite.as_ref());
        }
    }
    suites
}

fn result(ran: &Ran) -> &RubricResult {
    let [suite] = ended(ran)[..] else { panic!("not one rubric suite") };
    suite.result().unwrap_or_else(|| panic!("{:?}", suite.outcome))
}

fn skipped(ran: &Ran) -> Vec<Option<&str>> {
    ended(ran).into_iter().map(reason_of).collect()
}

fn reason_of(suite: &RubricSuite) -> Option<&str> {
    match &suite.outcome {
        RubricOutcome::Skipped(reason) => Some(reason),
        RubricOutcome::Result(_) => None,
    }
}

fn only(result: &RubricResult) -> &RubricCaseResult {
    let [case] = &result.cases[..] else { panic!("{} cases", result.cases.len()) };
    case
}

#[tokio::test(start_paused = true)]
async fn scores_are_kept_with_what_they_were_given_for() {
    let agent = FakeAgent::default().on("m", 20, Act::say("Rome is warmer"));
    let judge = FakeJudge::default();
    let asked = Arc::clone(&judge.asked);
    let rubrics =
        Rubrics { suites: vec![rubric("a", vec![rubric_case("m", &["full", "none"])])], judge: Some(Arc::new(judge)) };
    let ran = play(Plan { rubrics, ..plan(vec![suite("a", cases(&["1"]))]) }, agent).await;
    assert_eq!(ran.story(), ["run", "1", "suite 0", "rubric a", "end"]);
    let result = result(&ran);
    assert_eq!((result.judge.identity.as_str(), &result.judge.parameters["temperature"]), ("fake:judge", &json!(0)));
    assert_eq!((result.metadata.eval_file.as_str(), result.warnings.len()), ("evals/a.rubric.json", 0));
    let case = only(result);
    assert_eq!((case.score, case.max_score, case.duration_ms), (Some(2), 4, 20));
    assert_eq!(case.details.response, "Rome is warmer");
    let kept: Vec<(&str, u64, u64, &str, &str)> = case
        .dimensions
        .iter()
        .map(|one| (one.dimension.as_str(), one.score, one.max_score, one.criteria.as_str(), one.reason.as_str()))
        .collect();
    assert_eq!(
        kept,
        [("full", 2, 2, "2 if all is there", "all there"), ("none", 0, 2, "2 if all is there", "nothing there")]
    );
    assert_eq!(result.summary.score_share, Some(0.5));
    assert_eq!(result.summary.judge_usage.as_ref().and_then(|usage| usage.input_tokens), Some(20));
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2, "one dimension at a time");
    let question: Value = serde_json::from_str(&asked[0].user).unwrap();
    assert_eq!((&question["response"], &question["referenceData"]), (&json!("Rome is warmer"), &json!({ "truth": 1 })));
    // A low score changes neither what passed nor the exit code.
    assert_eq!((ran.totals.cases, ran.totals.passed, ran.totals.suites), (1, 1, 1));
    let totals = ran.totals.rubric.as_ref().unwrap();
    assert_eq!((totals.suites, totals.judged, totals.errored, totals.skipped), (1, 1, 0, 0));
    assert_eq!(ran.totals.status(), ExitStatus::Success);
}

#[rstest]
#[case("f", Act::say("no"))]
#[case("e", Act::Break("broken".to_owned(), Duration::ZERO))]
#[tokio::test(start_paused = true)]
async fn a_tool_is_scored_only_when_its_other_suites_passed(#[case] bad: &str, #[case] act: Act) {
    let suites = vec![suite("get-a", cases(&["1"])), suite("get_a", cases(&["2", bad])), suite("b", cases(&["3"]))];
    let rubrics = judged(vec![
        rubric("get_a", vec![rubric_case("x", &["full"])]),
        rubric("b", vec![rubric_case("y", &["full"])]),
    ]);
    let ran = play(Plan { rubrics, ..plan(suites) }, FakeAgent::default().on(bad, 0, act)).await;
    let reason = "not all cases of ./evals/get_a.golden.json passed, and only what passes is scored";
    assert_eq!(skipped(&ran), [Some(reason), None]);
    assert!(!ran.begun().contains(&"x".to_owned()), "nobody is asked for nothing");
    let totals = ran.totals.rubric.as_ref().unwrap();
    assert_eq!((totals.suites, totals.skipped_suites, totals.judged, totals.skipped), (1, 1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn without_a_judge_nothing_is_asked() {
    let rubrics = Rubrics { suites: vec![rubric("a", vec![rubric_case("x", &["full"])])], judge: None };
    let ran = play(Plan { rubrics, ..plan(vec![suite("a", cases(&["1"]))]) }, FakeAgent::default()).await;
    assert_eq!(skipped(&ran), [Some("no judge is configured: set 'judge' in karat.json, or give --judge")]);
    assert_eq!(ran.begun(), ["1"]);
    assert_eq!(ran.totals.status(), ExitStatus::Success);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_at_all_ran_there_is_no_verdict() {
    let rubrics = Rubrics { suites: vec![rubric("a", vec![rubric_case("x", &["full"])])], judge: None };
    let ran = play(Plan { rubrics, ..plan(Vec::new()) }, FakeAgent::default()).await;
    assert_eq!(ran.totals.status(), ExitStatus::Errored);
}

#[tokio::test(start_paused = true)]
async fn alone_it_is_scored_with_a_warning() {
    let rubrics = judged(vec![rubric("a", vec![rubric_case("x", &["full"])])]);
    let ran = play(Plan { rubrics, ..plan(vec![suite("b", cases(&["1"]))]) }, FakeAgent::default()).await;
    let text = "scored although no golden, labeled or regression suite of this tool was in the run";
    assert_eq!(result(&ran).warnings, [text]);
}

#[rstest]
#[case("beyond", "the judge's answer for 'beyond' cannot be used: the score 99 is out of range: at most 2")]
#[case("half", "the judge's answer for 'half' cannot be used: 'score' must be a whole number from 0, found 0.5")]
#[case("broken", "the judge gave no score for 'broken': overloaded")]
#[case("panic", "the judge gave no score for 'panic': internal error, please report it: no judge")]
#[case("slow", "the judge gave no score for 'slow': timeout")]
#[tokio::test(start_paused = true)]
async fn a_judge_that_errs_gives_no_score(#[case] dimension: &str, #[case] error: &str) {
    let rubrics = judged(vec![rubric("a", vec![rubric_case("x", &["full", dimension]), rubric_case("y", &["full"])])]);
    let ran = play(Plan { rubrics, ..plan(vec![suite("a", cases(&["1"]))]) }, FakeAgent::default()).await;
    let result = result(&ran);
    let case = &result.cases[0];
    assert_eq!(case.error.as_deref(), Some(error));
    assert_eq!((case.score, case.dimensions.len(), case.max_score), (None, 0, 4));
    assert_eq!(case.details.response, "ok", "what the agent said is not lost");
    assert_eq!((result.summary.judged, result.summary.errored), (1, 1));
    assert_eq!((result.summary.score, result.summary.max_score), (2, 2), "an error counts for nothing");
    assert_eq!((ran.totals.failed, ran.totals.errored), (0, 0));
    assert_eq!(ran.totals.status(), ExitStatus::Errored);
}

#[rstest]
#[case("beyond", Some(30))]
#[case("broken", None)]
#[case("slow", None)]
#[tokio::test(start_paused = true)]
async fn what_the_judge_used_in_vain_is_not_forgotten(#[case] dimension: &str, #[case] tokens: Option<u64>) {
    let rubrics = judged(vec![rubric("a", vec![rubric_case("x", &["full", dimension]), rubric_case("y", &["full"])])]);
    let ran = play(Plan { rubrics, ..plan(Vec::new()) }, FakeAgent::default()).await;
    let input = |usage: &Option<Usage>| usage.as_ref().and_then(|usage| usage.input_tokens);
    assert_eq!(input(&result(&ran).summary.judge_usage), tokens);
    assert_eq!(input(&result(&ran).cases[0].judge_usage), tokens.map(|all| all - 10));
    // Who was never asked used nothing.
    let rubrics = judged(vec![rubric("a", vec![rubric_case("x", &["full"]), rubric_case("y", &["full"])])]);
    let agent = FakeAgent::default().on("x", 0, Act::Break("no connection".to_owned(), Duration::ZERO));
    let ran = play(Plan { rubrics, ..plan(Vec::new()) }, agent).await;
    assert_eq!(input(&result(&ran).summary.judge_usage), Some(10));
}

fn paid(cost_usd: f64) -> Act {
    let usage = Some(Usage { cost_usd: Some(cost_usd), ..Usage::default() });
    Act::Answer(Box::new(Trace { response: "ok".to_owned(), usage, ..Trace::default() }))
}

fn gate(ran: &Ran, gate: Gate) -> &GateResult {
    ran.totals.gates.iter().find(|result| result.gate == gate).expect("a gate")
}

#[rstest]
#[case(&["full", "none"], Some(1.625), Some(false))]
#[case(&["full", "broken"], None, None)]
#[tokio::test(start_paused = true)]
async fn rubrics_are_paid_for_too(#[case] dimensions: &[&str], #[case] cost: Option<f64>, #[case] held: Option<bool>) {
    let gates = Some(Gates { max_cost_usd: Some(1.5), ..Gates::default() });
    let agent = || FakeAgent::default().on("1", 0, paid(1.0)).on("x", 0, paid(0.125));
    let rubrics = || judged(vec![rubric("a", vec![rubric_case("x", dimensions)])]);
    let suites = || vec![suite("a", cases(&["1"]))];
    let ran = play(Plan { rubrics: rubrics(), gates: gates.clone(), ..plan(suites()) }, agent()).await;
    assert_eq!((gate(&ran, Gate::MaxCostUsd).actual, gate(&ran, Gate::MaxCostUsd).held), (cost, held));
    let alone = play(Plan { rubrics: rubrics(), gates: gates.clone(), ..plan(Vec::new()) }, agent()).await;
    assert_eq!(gate(&alone, Gate::MaxCostUsd).actual, cost.map(|cost| cost - 1.0));
    let silent = FakeAgent::default().on("1", 0, paid(1.0));
    let ran = play(Plan { rubrics: rubrics(), gates, ..plan(suites()) }, silent).await;
    assert_eq!(gate(&ran, Gate::MaxCostUsd).actual, None, "what the agent's answer cost is not known");
}

#[tokio::test(start_paused = true)]
async fn the_score_of_a_part_of_the_rubrics_is_no_score() {
    let gates = Some(Gates { rubric_score: Some(0.5), ..Gates::default() });
    let suites = || vec![suite("a", cases(&["1"])), suite("b", cases(&["f"]))];
    let rubrics =
        |tools: &[&str]| judged(tools.iter().map(|tool| rubric(tool, vec![rubric_case("x", &["full"])])).collect());
    let agent = || FakeAgent::default().on("f", 0, Act::say("no"));
    let ran = play(Plan { rubrics: rubrics(&["a"]), gates: gates.clone(), ..plan(suites()) }, agent()).await;
    assert_eq!((gate(&ran, Gate::RubricScore).actual, ran.totals.status()), (Some(1.0), ExitStatus::Success));
    let ran = play(Plan { rubrics: rubrics(&["a", "b"]), gates, ..plan(suites()) }, agent()).await;
    let found = gate(&ran, Gate::RubricScore);
    assert_eq!(
        (found.held, found.to_string().as_str()),
        (None, "not checked, at least 0.5: 1 of 2 cases have no score")
    );
    assert_eq!(ran.totals.status(), ExitStatus::Errored);
}

#[rstest]
#[case(10, Act::Break("no connection".to_owned(), Duration::from_millis(7)), "no connection", 7)]
#[case(u64::MAX, Act::say("ok"), "timeout", 1000)]
#[case(0, Act::PanicAtOnce("oh".to_owned()), "internal error, please report it: oh", 0)]
#[tokio::test(start_paused = true)]
async fn an_agent_that_errs_is_not_judged(
    #[case] after: u64,
    #[case] act: Act,
    #[case] error: &str,
    #[case] duration: u64,
) {
    let rubrics = judged(vec![rubric("a", vec![rubric_case("x", &["full"])])]);
    let ran = play(Plan { rubrics, ..plan(Vec::new()) }, FakeAgent::default().on("x", after, act)).await;
    let case = only(result(&ran));
    assert_eq!((case.error.as_deref(), case.score, case.duration_ms), (Some(error), None, duration));
    assert_eq!(result(&ran).summary.score_share, None);
    assert_eq!(ran.totals.status(), ExitStatus::Errored);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_no_other_case_would_escape_is_the_last() {
    let cases = vec![rubric_case("1", &["full"]), rubric_case("2", &["last"]), rubric_case("3", &["full"])];
    let rubrics = judged(vec![rubric("a", cases), rubric("b", vec![rubric_case("4", &["full"])])]);
    let ran = play(Plan { rubrics, ..plan(Vec::new()) }, FakeAgent::default()).await;
    assert_eq!(ran.begun(), ["1", "2"]);
    let summary = &ended(&ran)[0].result().unwrap().summary;
    assert_eq!((summary.judged, summary.errored, summary.not_run), (1, 1, 1));
    assert_eq!(skipped(&ran), [None, Some("the run stopped before")]);
}

#[tokio::test(start_paused = true)]
async fn fail_fast_reaches_the_rubrics_too() {
    let rubrics = judged(vec![rubric("b", vec![rubric_case("x", &["full"])])]);
    let agent = FakeAgent::default().on("f", 0, Act::say("no"));
    let ran = play(Plan { rubrics, fail_fast: true, ..plan(vec![suite("a", cases(&["f"]))]) }, agent).await;
    assert_eq!(skipped(&ran), [Some("the run stopped before")]);
}

#[tokio::test(start_paused = true)]
async fn cases_run_at_once_and_stand_in_the_files_order() {
    let messages = ["40", "30", "20", "10"];
    let agent = messages
        .iter()
        .fold(FakeAgent::default(), |agent, message| agent.on(message, message.parse().unwrap(), Act::say("ok")));
    let cases = messages.iter().map(|message| rubric_case(message, &["full"])).collect();
    let rubrics = judged(vec![rubric("a", cases)]);
    let ran = play(Plan { rubrics, concurrency: 3, ..plan(Vec::new()) }, agent).await;
    let ids: Vec<&str> = result(&ran).cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["rb-40", "rb-30", "rb-20", "rb-10"]);
    assert_eq!((ran.log.peak, result(&ran).wall_clock_ms), (3, 40));
}

#[tokio::test(start_paused = true)]
async fn interrupted_what_was_scored_is_reported() {
    let cases = ["1", "2", "3"].map(|message| rubric_case(message, &["full"])).to_vec();
    let agent = ["1", "2", "3"].iter().fold(FakeAgent::default(), |agent, one| agent.on(one, 10, Act::say("ok")));
    let rubrics = judged(vec![rubric("a", cases), rubric("b", vec![rubric_case("4", &["full"])])]);
    let ran = play_until(25, Plan { rubrics, ..plan(Vec::new()) }, agent).await;
    assert_eq!(ran.begun(), ["1", "2", "3"]);
    let summary = &ended(&ran)[0].result().unwrap().summary;
    assert_eq!((summary.judged, summary.not_run), (2, 1));
    assert_eq!(skipped(&ran), [None, Some("the run was interrupted")]);
    assert!(ran.totals.interrupted);
    assert_eq!(ran.totals.status(), ExitStatus::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn secrets_reach_neither_the_judge_nor_the_result() {
    const SECRET: &str = "sk-very-secret-key";
    let redactor = Redactor::default();
    redactor.add(SECRET);
    let judge = FakeJudge::default();
    let asked = Arc::clone(&judge.asked);
    let cases = vec![rubric_case("x", &["echo"]), rubric_case("y", &["full"])];
    let rubrics = Rubrics { suites: vec![rubric("a", cases)], judge: Some(Arc::new(judge)) };
    let agent = FakeAgent::default()
        .called(format!("https://agent.test/?key={SECRET}"))
        .on("x", 0, Act::say(&format!("the key is {SECRET}")))
        .on("y", 0, Act::Break(format!("refused {SECRET}"), Duration::ZERO));
    let ran = play(Plan { rubrics, redactor, ..plan(Vec::new()) }, agent).await;
    let text = format!("{:?} {:?}", ran.events, asked.lock().unwrap());
    assert!(!text.contains(SECRET), "{text}");
    assert_eq!(result(&ran).cases[0].dimensions[0].reason, "the key is ***");
}
