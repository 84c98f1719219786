//! Suite results and reporters.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_cases::Metadata;
use karat_cases::token::TokenSources;
use karat_core::event::RunEvent;
use karat_core::event::{ReportError, Reporter};
use karat_core::result::{EarlierCase, Outcome};
use karat_core::staleness::CurrentTool;
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::{ToolCall, Trace};
use karat_runner::{Baseline, Plan, SuitePlan};
use rstest::rstest;
use serde_json::{Map, json};

use crate::support::{Act, FakeAgent, case, cases, plan, run_plan, run_until, run_with, suite};

/// A tool call with only a name.
pub(crate) fn call(name: &str) -> ToolCall {
    ToolCall { name: name.to_owned(), ..ToolCall::default() }
}

fn earlier_case(id: &str, outcome: Outcome) -> EarlierCase {
    EarlierCase { id: id.to_owned(), description: String::new(), outcome, error: None, trials: None }
}

/// A suite with a baseline.
fn suite_with_baseline(cases: &[&str], earlier: Vec<EarlierCase>) -> SuitePlan {
    let baseline = Some(Baseline { run_id: "run-0".to_owned(), cases: earlier, ..Baseline::default() });
    SuitePlan { baseline, ..suite("a", crate::support::cases(cases)) }
}

fn mixed_agent() -> FakeAgent {
    FakeAgent::default()
        .on("fails", 1, Act::reply("no"))
        .on("fails-2", 1, Act::reply("no"))
        .on("errors", 1, Act::Fail("broken".to_owned(), Duration::ZERO))
        .on("late", 5_000, Act::reply("ok"))
}

#[tokio::test(start_paused = true)]
async fn reports_changes_since_the_baseline() {
    let passed = |id| earlier_case(id, Outcome::Passed);
    let failed = |id| earlier_case(id, Outcome::Failed);
    let errored = |id| earlier_case(id, Outcome::Errored);
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
    let suites = vec![suite_with_baseline(&["late", "fails", "fails-2", "errors", "p1", "p2", "p3", "new"], earlier)];
    let run = run_plan(plan(suites), mixed_agent()).await;
    assert_eq!(run.suite().baseline_run_id.as_deref(), Some("run-0"));
    assert_eq!(run.suite().regressions, ["late", "fails"], "in file order; an error is not a regression");
    assert_eq!(run.suite().new_passes, ["p1", "p3"], "a case that errored before is not a new pass");
    assert_eq!((run.totals.regressions, run.totals.new_passes), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn each_suite_has_its_own_baseline() {
    let passed = |id| earlier_case(id, Outcome::Passed);
    let suites = vec![
        suite_with_baseline(&["fails"], vec![passed("fails")]),
        suite("b", cases(&["fails"])),
        suite_with_baseline(&["fails", "p"], vec![passed("fails"), earlier_case("p", Outcome::Failed)]),
    ];
    let run = run_plan(Plan { concurrency: 3, ..plan(suites) }, mixed_agent()).await;
    let counts: Vec<_> = run.suites().iter().map(|suite| (suite.regressions.len(), suite.new_passes.len())).collect();
    assert_eq!(counts, [(1, 0), (0, 0), (1, 1)]);
    assert_eq!(run.suites()[1].baseline_run_id, None);
    assert_eq!((run.totals.regressions, run.totals.new_passes), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_case_that_did_not_run_is_not_a_regression() {
    let passed = |id| earlier_case(id, Outcome::Passed);
    let suites = vec![suite_with_baseline(&["fails", "late", "p"], vec![passed("fails"), passed("late"), passed("p")])];
    let run = run_until(50, plan(suites), mixed_agent()).await;
    assert_eq!((run.totals.cases, run.totals.not_run), (1, 2));
    assert_eq!(run.suite().regressions, ["fails"]);
}

#[rstest]
#[case(1, "1 case has unused stubs: the agent runs real tools")]
#[case(3, "3 cases have unused stubs: the agent runs real tools")]
#[tokio::test(start_paused = true)]
async fn warns_about_unused_stubs(#[case] count: usize, #[case] warning: &str) {
    let stubbed = || {
        let mut cases = cases(&["1", "2", "3", "4"]);
        cases[..count].iter_mut().for_each(|case| case.stubs = Some(Map::new()));
        plan(vec![suite("a", cases)])
    };
    assert_eq!(run_plan(stubbed(), FakeAgent::default()).await.suite().warnings, [warning]);
    let stubbed_agent = FakeAgent::default().stubbed();
    assert!(run_plan(stubbed(), stubbed_agent).await.suite().warnings.is_empty(), "the stubs are used");
}

#[tokio::test(start_paused = true)]
async fn warns_once_about_tokens_without_a_value() {
    let expecting = |id: &str, values: &[&str]| {
        let mut case = case(id, id);
        case.expect.response_contains = Some(values.iter().map(|value| (*value).to_owned()).collect());
        case
    };
    let tokens = TokenSources { seed: Some(json!({"known": "ok"})), snapshot: None };
    let one_missing = vec![expecting("a", &["{{seed:known}}", "{{seed:b}}"]), expecting("b", &["{{seed:b}}"])];
    let several_missing =
        vec![expecting("c", &["{{snapshot:z}} {{seed:b}}"]), expecting("d", &["{{seed:a[0].x}}", "{{seed:b}}"])];
    let plan =
        Plan { tokens, ..plan(vec![suite("a", one_missing), suite("b", several_missing), suite("c", cases(&["e"]))]) };
    let run = run_plan(plan, FakeAgent::default()).await;
    let warnings: Vec<_> = run.suites().iter().map(|suite| suite.warnings.join("|")).collect();
    assert_eq!(
        warnings,
        [
            "assertions skipped for 1 token without a value: {{seed:b}}",
            "assertions skipped for 3 tokens without a value: {{seed:a[0].x}}, {{seed:b}}, {{snapshot:z}}",
            "",
        ]
    );
    assert_eq!(run.case("a").details.skipped_tokens, ["{{seed:b}}"]);
    assert_eq!((run.case("a").assertions_run, run.case("a").assertions_skipped), (1, 1));
    assert_eq!((run.totals.skipped_assertions, run.totals.vacuous), (5, 3));
}

#[tokio::test(start_paused = true)]
async fn truncates_long_lists_of_tokens() {
    let mut many_tokens = cases(&["a"]);
    let tokens = (0..500).map(|number| format!("{{{{seed:number-{number:03}}}}}"));
    many_tokens[0].expect.response_contains = Some(tokens.collect());
    let run = run_plan(plan(vec![suite("a", many_tokens)]), FakeAgent::default()).await;
    let [warning] = &run.suite().warnings[..] else { panic!("{:?}", run.suite().warnings) };
    let start = "assertions skipped for 500 tokens without a value: {{seed:number-000}}, ";
    assert!(warning.starts_with(start) && warning.ends_with('…') && warning.len() < 300, "{warning}");
    assert_eq!(run.case("a").details.skipped_tokens.len(), 500);
}

#[tokio::test(start_paused = true)]
async fn limits_warnings_about_skipped_assertions() {
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
    let run = run_plan(Plan { concurrency: 30, ..plan(vec![suite("a", silent)]) }, agent).await;
    let expected: Vec<String> = names[..5]
        .iter()
        .map(|name| format!("noToolErrors: the agent does not report whether '{name}' succeeded"))
        .collect();
    assert_eq!(run.suite().warnings, expected);
}

#[tokio::test(start_paused = true)]
async fn serialises_a_suite_result() {
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
    let agent = mixed_agent().with_identity("fake:one");
    let run = run_plan(Plan { tokenizer: Tokenizer::Cl100kBase, ..plan(vec![suite]) }, agent).await;
    let failure = "responseContains: expected 'ok' in response but not found";
    let warning = "Evals for get_weather generated against description hash 000000000000, current is 111111111111. \
                   Results may not reflect current routing contract.";
    assert_eq!(
        serde_json::to_value(run.suite()).unwrap(),
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
                "message": "fails",
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
                    "assertions": [{"assertion": "responseContains", "verdict": "failed"}],
                },
            }],
            "skipped": [],
            "summary": {
                "totalCases": 1,
                "passed": 0,
                "failed": 1,
                "errored": 0,
                "vacuous": 0,
                "notRun": 0,
                "skipped": 0,
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
async fn the_start_event_describes_all_suites() {
    let mut long = cases(&["a", "bé-long", "c"]);
    long.iter_mut().zip([4, 9, 20]).for_each(|(case, line)| case.location.line = line);
    let current = CurrentTool { name: Some("Tool".to_owned()), ..CurrentTool::default() };
    let suites = vec![
        SuitePlan { current, ..suite("tool", long) },
        suite("b", Vec::new()),
        suite_with_baseline(&[], Vec::new()),
    ];
    let run = run_plan(plan(suites), FakeAgent::default()).await;
    let RunEvent::RunStarted { run_id, suites, total_cases } = &run.events[0] else {
        panic!("{:?}", run.event_labels())
    };
    assert_eq!((run_id.as_str(), *total_cases), ("run-1", 3));
    assert_eq!((suites[0].tool_name.as_str(), suites[0].path.as_str()), ("Tool", "./evals/tool.golden.json"));
    assert_eq!(suites[0].lines, [4, 9, 20]);
    assert_eq!(suites.iter().map(|suite| suite.has_baseline).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!((suites[0].id_columns, suites[0].description_columns), (7, 13), "maximum width in columns");
    assert_eq!((suites[1].tool_name.as_str(), suites[1].id_columns, suites[1].description_columns), ("b", 0, 0));
}

/// A reporter that always fails to write.
struct FullDisk {
    target: &'static str,
    at_flush: bool,
    events: Arc<Mutex<usize>>,
}

impl FullDisk {
    fn fail(&self) -> ReportError {
        ReportError { target: self.target.to_owned(), source: io::Error::from(io::ErrorKind::StorageFull) }
    }
}

impl Reporter for FullDisk {
    fn on_event(&mut self, _event: &RunEvent) -> Result<(), ReportError> {
        *self.events.lock().unwrap() += 1;
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
async fn a_failing_reporter_does_not_affect_others(#[case] at_flush: bool) {
    let events = Arc::new(Mutex::new(0));
    let broken = |target| Box::new(FullDisk { target, at_flush, events: Arc::clone(&events) }) as Box<dyn Reporter>;
    // Before the recorder, which must still receive everything.
    let others = vec![broken("the report"), broken("the log")];
    let run = run_with(plan(vec![suite("a", cases(&["1", "2"]))]), mixed_agent(), None, others).await;
    assert_eq!(run.event_labels(), ["run", "1", "2", "suite 0", "end"]);
    assert_eq!(*events.lock().unwrap(), 10, "failing reporters still receive events, since they may recover");
    let mut texts: Vec<String> = run.errors.iter().map(ToString::to_string).collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts, ["cannot write the log: no storage space", "cannot write the report: no storage space"]);
    assert!(run.errors.iter().all(|error| error.source.kind() == io::ErrorKind::StorageFull));
    assert_eq!((run.totals.passed, run.totals.failed), (2, 0), "report errors do not affect verdicts");
}

#[tokio::test(start_paused = true)]
async fn reporters_are_flushed_during_the_run() {
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
    let agent = FakeAgent::default().on("1", 10, Act::reply("ok")).on("2", 500, Act::reply("ok"));
    let plan = Plan { concurrency: 2, ..plan(vec![suite("a", cases(&["1", "2"]))]) };
    run_with(plan, agent, None, vec![Box::new(watcher)]).await;
    let seen = seen.lock().unwrap();
    assert_eq!(
        seen.first(),
        Some(&(10, 2)),
        "the start and the first case are flushed when the case finishes: {seen:?}"
    );
    assert_eq!(seen.last(), Some(&(500, 5)), "{seen:?}");
}
