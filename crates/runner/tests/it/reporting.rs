//! What a suite's result says, and who gets to hear it.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_core::case::Metadata;
use karat_core::event::RunEvent;
use karat_core::event::{ReportError, Reporter};
use karat_core::result::{EarlierCase, Outcome};
use karat_core::staleness::CurrentTool;
use karat_core::token::TokenSources;
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::{ToolCall, Trace};
use karat_runner::{Baseline, Plan, SuitePlan};
use rstest::rstest;
use serde_json::{Map, json};

use crate::support::{Act, FakeAgent, case, cases, plan, play, play_until, play_with, suite};

/// A call that says nothing but its name.
pub(crate) fn call(name: &str) -> ToolCall {
    ToolCall { name: name.to_owned(), ..ToolCall::default() }
}

fn before(id: &str, outcome: Outcome) -> EarlierCase {
    EarlierCase { id: id.to_owned(), description: String::new(), outcome, error: None, trials: None }
}

/// A suite that was run before with these outcomes.
fn compared(cases: &[&str], earlier: Vec<EarlierCase>) -> SuitePlan {
    let baseline = Some(Baseline { run_id: "run-0".to_owned(), cases: earlier });
    SuitePlan { baseline, ..suite("a", crate::support::cases(cases)) }
}

fn mixed() -> FakeAgent {
    FakeAgent::default()
        .on("fails", 1, Act::say("no"))
        .on("fails-2", 1, Act::say("no"))
        .on("errors", 1, Act::Break("broken".to_owned(), Duration::ZERO))
        .on("late", 5_000, Act::say("ok"))
}

#[tokio::test(start_paused = true)]
async fn what_moved_since_the_baseline() {
    let passed = |id| before(id, Outcome::Passed);
    let failed = |id| before(id, Outcome::Failed);
    let errored = |id| before(id, Outcome::Errored);
    let earlier = vec![
        passed("fails"),
        failed("fails-2"),
        passed("errors"),
        passed("late"),
        passed("gone"),
        failed("p1"),
        errored("p2"),
        failed("p3"),
    ];
    let suites = vec![compared(&["late", "fails", "fails-2", "errors", "p1", "p2", "p3", "new"], earlier)];
    let ran = play(plan(suites), mixed()).await;
    assert_eq!(ran.suite().baseline_run_id.as_deref(), Some("run-0"));
    assert_eq!(ran.suite().regressions, ["late", "fails"], "in the file's order; an error is no regression");
    assert_eq!(ran.suite().new_passes, ["p1", "p3"], "what errored before is no new pass");
    assert_eq!((ran.totals.regressions, ran.totals.new_passes), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn each_suite_has_its_own_baseline() {
    let passed = |id| before(id, Outcome::Passed);
    let suites = vec![
        compared(&["fails"], vec![passed("fails")]),
        suite("b", cases(&["fails"])),
        compared(&["fails", "p"], vec![passed("fails"), before("p", Outcome::Failed)]),
    ];
    let ran = play(Plan { concurrency: 3, ..plan(suites) }, mixed()).await;
    let counts: Vec<_> = ran.suites().iter().map(|suite| (suite.regressions.len(), suite.new_passes.len())).collect();
    assert_eq!(counts, [(1, 0), (0, 0), (1, 1)]);
    assert_eq!(ran.suites()[1].baseline_run_id, None);
    assert_eq!((ran.totals.regressions, ran.totals.new_passes), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_case_that_did_not_run_is_no_regression() {
    let passed = |id| before(id, Outcome::Passed);
    let suites = vec![compared(&["fails", "late", "p"], vec![passed("fails"), passed("late"), passed("p")])];
    let ran = play_until(50, plan(suites), mixed()).await;
    assert_eq!((ran.totals.cases, ran.totals.not_run), (1, 2));
    assert_eq!(ran.suite().regressions, ["fails"]);
}

#[rstest]
#[case(1, "1 case has stubs, which do not apply: real tools answer")]
#[case(3, "3 cases have stubs, which do not apply: real tools answer")]
#[tokio::test(start_paused = true)]
async fn stubs_that_do_not_apply_are_warned_of(#[case] count: usize, #[case] warning: &str) {
    let stubbed = || {
        let mut cases = cases(&["1", "2", "3", "4"]);
        cases[..count].iter_mut().for_each(|case| case.stubs = Some(Map::new()));
        plan(vec![suite("a", cases)])
    };
    assert_eq!(play(stubbed(), FakeAgent::default()).await.suite().warnings, [warning]);
    let driven = FakeAgent::default().stubbed();
    assert!(play(stubbed(), driven).await.suite().warnings.is_empty(), "the stubs answer for the tools");
}

#[tokio::test(start_paused = true)]
async fn tokens_without_a_value_are_warned_of_once() {
    let wants = |id: &str, values: &[&str]| {
        let mut case = case(id, id);
        case.expect.response_contains = Some(values.iter().map(|value| (*value).to_owned()).collect());
        case
    };
    let tokens = TokenSources { seed: Some(json!({"known": "ok"})), snapshot: None };
    let one = vec![wants("a", &["{{seed:known}}", "{{seed:b}}"]), wants("b", &["{{seed:b}}"])];
    let many = vec![wants("c", &["{{snapshot:z}} {{seed:b}}"]), wants("d", &["{{seed:a[0].x}}", "{{seed:b}}"])];
    let plan = Plan { tokens, ..plan(vec![suite("a", one), suite("b", many), suite("c", cases(&["e"]))]) };
    let ran = play(plan, FakeAgent::default()).await;
    let warnings: Vec<_> = ran.suites().iter().map(|suite| suite.warnings.join("|")).collect();
    assert_eq!(
        warnings,
        [
            "checks were skipped for 1 token without a value: {{seed:b}}",
            "checks were skipped for 3 tokens without a value: {{seed:a[0].x}}, {{seed:b}}, {{snapshot:z}}",
            "",
        ]
    );
    assert_eq!(ran.case("a").details.skipped_tokens, ["{{seed:b}}"]);
    assert_eq!((ran.case("a").assertions_run, ran.case("a").assertions_skipped), (1, 1));
    assert_eq!((ran.totals.skipped_assertions, ran.totals.vacuous), (5, 3));
}

#[tokio::test(start_paused = true)]
async fn many_tokens_without_a_value_make_no_long_warning() {
    let mut greedy = cases(&["a"]);
    let tokens = (0..500).map(|number| format!("{{{{seed:number-{number:03}}}}}"));
    greedy[0].expect.response_contains = Some(tokens.collect());
    let ran = play(plan(vec![suite("a", greedy)]), FakeAgent::default()).await;
    let [warning] = &ran.suite().warnings[..] else { panic!("{:?}", ran.suite().warnings) };
    let start = "checks were skipped for 500 tokens without a value: {{seed:number-000}}, ";
    assert!(warning.starts_with(start) && warning.ends_with('…') && warning.len() < 300, "{warning}");
    assert_eq!(ran.case("a").details.skipped_tokens.len(), 500);
}

/// A thousand cases with a reason each must not make a result of a thousand warnings.
#[tokio::test(start_paused = true)]
async fn reasons_for_skipped_checks_are_told_a_few_times() {
    let names: Vec<String> = (0..30).map(|number| format!("tool-{number:02}")).collect();
    let mut agent = FakeAgent::default();
    let mut silent = Vec::new();
    for name in names.iter().rev() {
        let trace = Trace { response: "ok".to_owned(), tool_calls: vec![call(name)], ..Trace::default() };
        agent = agent.on(name, 1, Act::Answer(Box::new(trace)));
        let mut case = case(name, name);
        case.expect.no_tool_errors = Some(true);
        silent.push(case);
    }
    let ran = play(Plan { concurrency: 30, ..plan(vec![suite("a", silent)]) }, agent).await;
    let expected: Vec<String> = names[..5]
        .iter()
        .map(|name| format!("noToolErrors: the agent does not say whether '{name}' succeeded"))
        .collect();
    assert_eq!(ran.suite().warnings, expected);
}

#[tokio::test(start_paused = true)]
async fn a_suites_result_tells_all() {
    let metadata = Metadata {
        description_hash: Some("000000000000".to_owned()),
        tool_version: Some("1.2.0".to_owned()),
        ..Metadata::default()
    };
    let current = CurrentTool {
        name: Some("get_weather".to_owned()),
        version: Some("1.9.0".to_owned()),
        description_hash: Some("111111111111".to_owned()),
        registry_size: Some(4),
        ..CurrentTool::default()
    };
    let mut suite = SuitePlan { current, ..suite("get-weather", cases(&["fails"])) };
    suite.file.metadata = Some(metadata);
    let agent = mixed().called("fake:one");
    let ran = play(Plan { tokenizer: Tokenizer::Cl100kBase, ..plan(vec![suite]) }, agent).await;
    let failure = "responseContains: expected 'ok' in response but not found";
    let warning = "Evals for get-weather generated against description hash 000000000000, current is 111111111111. \
                   Results may not reflect current routing contract.";
    assert_eq!(
        serde_json::to_value(ran.suite()).unwrap(),
        json!({
            "runId": "run-1",
            "timestamp": "2026-01-02T03:04:05Z",
            "tier": "golden",
            "toolName": "get_weather",
            "agentEndpoint": "fake:one",
            "metadata": {
                "toolVersion": "1.9.0",
                "descriptionHash": "111111111111",
                "registrySize": 4,
                "evalFileHash": "0123456789ab",
                "evalFile": "evals/get-weather.golden.json",
                "tokenizer": "cl100k_base",
            },
            "stalenessWarnings": [warning],
            "stale": true,
            "warnings": [],
            "cases": [{
                "id": "fails",
                "description": "about fails",
                "passed": false,
                "outcome": "failed",
                "durationMs": 1,
                "assertionsRun": 1,
                "assertionsSkipped": 0,
                "vacuous": false,
                "error": failure,
                "failures": [
                    {"assertion": "responseContains", "message": failure, "pointer": "/expect/responseContains/0"}
                ],
                "details": {
                    "toolsCalled": [],
                    "responseLength": 2,
                    "skippedTokens": [],
                    "response": "no",
                    "toolCalls": [],
                    "usage": null,
                    "model": null,
                    "stopReason": null,
                    "warnings": [],
                },
            }],
            "summary": {
                "totalCases": 1,
                "passed": 0,
                "failed": 1,
                "errored": 0,
                "vacuous": 0,
                "notRun": 0,
                "skippedAssertions": 0,
                "totalDurationMs": 1,
            },
            "wallClockMs": 1,
            "baselineRunId": null,
            "regressions": [],
            "newPasses": [],
        })
    );
}

#[tokio::test(start_paused = true)]
async fn the_start_tells_what_is_to_come() {
    let mut long = cases(&["a", "bé-long", "c"]);
    long.iter_mut().zip([4, 9, 20]).for_each(|(case, line)| case.line = line);
    let current = CurrentTool { name: Some("Tool".to_owned()), ..CurrentTool::default() };
    let suites = vec![SuitePlan { current, ..suite("tool", long) }, suite("b", Vec::new()), compared(&[], Vec::new())];
    let ran = play(plan(suites), FakeAgent::default()).await;
    let RunEvent::RunStarted { run_id, suites, total_cases } = &ran.events[0] else { panic!("{:?}", ran.story()) };
    assert_eq!((run_id.as_str(), *total_cases), ("run-1", 3));
    assert_eq!((suites[0].tool_name.as_str(), suites[0].path.as_str()), ("Tool", "./evals/tool.golden.json"));
    assert_eq!(suites[0].lines, [4, 9, 20]);
    assert_eq!(suites.iter().map(|suite| suite.has_baseline).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!((suites[0].id_columns, suites[0].description_columns), (7, 13), "the widest, in columns");
    assert_eq!((suites[1].tool_name.as_str(), suites[1].id_columns, suites[1].description_columns), ("b", 0, 0));
}

/// Fails at whatever it is asked to write.
struct FullDisk {
    what: &'static str,
    at_flush: bool,
    asked: Arc<Mutex<usize>>,
}

impl FullDisk {
    fn fail(&self) -> ReportError {
        ReportError { what: self.what.to_owned(), source: io::Error::from(io::ErrorKind::StorageFull) }
    }
}

impl Reporter for FullDisk {
    fn on_event(&mut self, _event: &RunEvent) -> Result<(), ReportError> {
        *self.asked.lock().unwrap() += 1;
        if self.at_flush { Ok(()) } else { Err(self.fail()) }
    }

    fn flush(&mut self) -> Result<(), ReportError> {
        if self.at_flush { Err(self.fail()) } else { Ok(()) }
    }
}

#[rstest]
#[case(false)]
#[case(true)]
#[tokio::test(start_paused = true)]
async fn a_reporter_that_fails_keeps_nobody_from_the_events(#[case] at_flush: bool) {
    let asked = Arc::new(Mutex::new(0));
    let broken = |what| Box::new(FullDisk { what, at_flush, asked: Arc::clone(&asked) }) as Box<dyn Reporter>;
    // Before the recorder, which must still hear everything.
    let others = vec![broken("the report"), broken("the log")];
    let ran = play_with(plan(vec![suite("a", cases(&["1", "2"]))]), mixed(), None, others).await;
    assert_eq!(ran.story(), ["run", "1", "2", "suite 0", "end"]);
    assert_eq!(*asked.lock().unwrap(), 10, "they may recover, so they are told on");
    let mut texts: Vec<String> = ran.errors.iter().map(ToString::to_string).collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts, ["could not write the log: no storage space", "could not write the report: no storage space"]);
    assert!(ran.errors.iter().all(|error| error.source.kind() == io::ErrorKind::StorageFull));
    assert_eq!((ran.totals.passed, ran.totals.failed), (2, 0), "a report is no verdict");
}

/// Whoever shows progress must not wait for the end of the run.
#[tokio::test(start_paused = true)]
async fn what_finished_is_flushed_while_others_run() {
    struct Watcher(Arc<Mutex<Vec<(u128, usize)>>>, tokio::time::Instant, usize);
    impl Reporter for Watcher {
        fn on_event(&mut self, _event: &RunEvent) -> Result<(), ReportError> {
            self.2 += 1;
            Ok(())
        }
        fn flush(&mut self) -> Result<(), ReportError> {
            self.0.lock().unwrap().push((self.1.elapsed().as_millis(), self.2));
            Ok(())
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watcher = Watcher(Arc::clone(&seen), tokio::time::Instant::now(), 0);
    let agent = FakeAgent::default().on("1", 10, Act::say("ok")).on("2", 500, Act::say("ok"));
    let plan = Plan { concurrency: 2, ..plan(vec![suite("a", cases(&["1", "2"]))]) };
    play_with(plan, agent, None, vec![Box::new(watcher)]).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.first(), Some(&(10, 2)), "the start and the first case are shown when it has ended: {seen:?}");
    assert_eq!(seen.last(), Some(&(500, 5)), "{seen:?}");
}
