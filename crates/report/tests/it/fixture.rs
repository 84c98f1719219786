//! Runs to report on.

use std::sync::Arc;

use karat_cases::Tier;
use karat_core::assertion::{AssertionOutcome, AssertionVerdict, Failure, NearMiss};
use karat_core::event::{ReportError, Reporter};
use karat_core::event::{RunEvent, RunTotals, SuiteHeader};
use karat_core::gate::{Gate, GateResult};
use karat_core::result::combine;
use karat_core::result::{CaseDetails, CaseResult, Cause, Outcome, ResultMetadata, SkippedCase, SuiteResult, Summary};
use karat_core::rubric::{
    Judge, RubricCaseResult, RubricMetadata, RubricOutcome, RubricResult, RubricScore, RubricSuite, RubricSummary,
    RubricVerdict,
};
use karat_core::staleness::Staleness;
use karat_core::trace::ToolCall;
use karat_report::RunRecord;
use karat_report::destination::Destination;
use proptest::prelude::*;

/// Text that tries to break out of every format.
pub(crate) const HOSTILE: &str = "\u{0}\u{1b}[31mred ]]> <script>alert(1)</script> <img src=x onerror=alert(1)> & \u{fffe}\r\n::add-mask::x %0A::stop-commands::y ```\n</details> | ![i](http://evil.test/i.png) www.evil.test @octocat #1 \u{202e}end";

/// A suite of a run.
pub(crate) struct Suite {
    pub(crate) header: SuiteHeader,
    /// Each with its index among the selected cases.
    pub(crate) cases: Vec<(usize, CaseResult)>,
    pub(crate) regressions: Vec<String>,
    pub(crate) still_failing: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) baseline_run_id: Option<String>,
    pub(crate) skipped: Vec<SkippedCase>,
}

impl Suite {
    pub(crate) fn new(path: &str, tool_name: &str, tier: Tier, lines: &[usize]) -> Self {
        let header = SuiteHeader {
            path: path.to_owned(),
            tool_name: tool_name.to_owned(),
            tier,
            agent: None,
            selected: lines.len(),
            trials: 1,
            timeout_ms: Some(60_000),
            lines: lines.to_vec(),
            staleness: Vec::new(),
            has_baseline: false,
            id_columns: 0,
            description_columns: 0,
        };
        let (cases, skipped) = (Vec::new(), Vec::new());
        let (regressions, still_failing, warnings) = (Vec::new(), Vec::new(), Vec::new());
        Self { header, cases, skipped, regressions, still_failing, warnings, baseline_run_id: None }
    }

    fn result(&self) -> SuiteResult {
        let cases: Vec<Arc<CaseResult>> = self.cases.iter().map(|(_, case)| Arc::new(case.clone())).collect();
        let summary = Summary::from_cases(&cases, self.header.selected, self.skipped.len());
        SuiteResult {
            run_id: "run-7".to_owned(),
            timestamp: "2026-03-04T05:06:07.089Z".to_owned(),
            tier: self.header.tier,
            tool_name: self.header.tool_name.clone(),
            agent_endpoint: self.header.agent.clone().unwrap_or_else(|| "https://agent.test/chat".to_owned()),
            metadata: ResultMetadata::default(),
            staleness_warnings: self.header.staleness.iter().map(Staleness::warning).collect(),
            stale: self.header.staleness.iter().any(Staleness::is_stale),
            warnings: self.warnings.clone(),
            wall_clock_ms: summary.total_duration_ms,
            suites: None,
            cases,
            skipped: self.skipped.clone(),
            not_run: Vec::new(),
            summary,
            baseline_run_id: self.baseline_run_id.clone(),
            regressions: self.regressions.clone(),
            new_passes: Vec::new(),
            still_failing: self.still_failing.clone(),
            baseline_missing: None,
            shard: None,
        }
    }
}

pub(crate) fn case(id: &str, description: &str, outcome: Outcome) -> CaseResult {
    CaseResult {
        id: id.to_owned(),
        description: description.to_owned(),
        message: format!("message of {id}"),
        passed: outcome == Outcome::Passed,
        outcome,
        duration_ms: 250,
        assertions_run: 2,
        assertions_skipped: 0,
        vacuous: false,
        cause: None,
        error: None,
        failures: Vec::new(),
        marks: Vec::new(),
        details: CaseDetails::default(),
        trials: None,
    }
}

/// Creates a case that fails with these assertions and messages.
pub(crate) fn failed(id: &str, description: &str, failures: &[(&str, &str)]) -> CaseResult {
    let failures: Vec<Failure> = failures
        .iter()
        .map(|(assertion, problem)| Failure {
            assertion: (*assertion).to_owned(),
            message: format!("{assertion}: {problem}"),
            pointer: format!("/expect/{assertion}"),
        })
        .collect();
    let error = failures.first().map(|failure| failure.message.clone());
    let cause = Some(Cause::Assertion);
    CaseResult { cause, error, failures, ..case(id, description, Outcome::Failed) }
}

/// Creates a case that passed with a near miss.
pub(crate) fn near_miss(id: &str, expected: &str, found: &str) -> CaseResult {
    let pointer = "/expect/responseNotContains/0".to_owned();
    let near_miss = NearMiss { pointer, expected: expected.to_owned(), found: found.to_owned() };
    let details = CaseDetails { near_misses: vec![near_miss], ..CaseDetails::default() };
    CaseResult { details, ..case(id, "", Outcome::Passed) }
}

/// Creates a case whose assertion about calls was skipped, since the agent does not report them.
pub(crate) fn unreported_calls(id: &str) -> CaseResult {
    let verdict = AssertionOutcome::Skipped;
    let assertions = vec![AssertionVerdict { assertion: "toolsCalled".into(), verdict }];
    let details =
        CaseDetails { calls_unreported: true, assertions, response: "Sunny.".to_owned(), ..CaseDetails::default() };
    CaseResult { details, assertions_skipped: 1, ..case(id, "", Outcome::Passed) }
}

pub(crate) fn errored(id: &str, description: &str, error: &str) -> CaseResult {
    let (cause, error) = (Some(Cause::Agent), Some(error.to_owned()));
    CaseResult { cause, error, assertions_run: 0, ..case(id, description, Outcome::Errored) }
}

pub(crate) fn timed_out(id: &str, description: &str) -> CaseResult {
    let (cause, error) = (Some(Cause::Timeout), Some(Cause::TIMEOUT_TEXT.to_owned()));
    CaseResult { cause, error, ..case(id, description, Outcome::Failed) }
}

/// Returns the events of a run; cases finish in reverse file order.
pub(crate) fn events_of(suites: &[Suite]) -> Vec<RunEvent> {
    let headers: Vec<_> = suites.iter().map(|suite| Arc::new(suite.header.clone())).collect();
    let total_cases = headers.iter().map(|header| header.selected).sum();
    let mut events = vec![RunEvent::RunStarted { run_id: "run-7".to_owned(), suites: headers, total_cases }];
    let mut totals = RunTotals { wall_clock_ms: 61_234, ..RunTotals::default() };
    for (suite, fixture) in suites.iter().enumerate() {
        let finished = fixture.cases.iter().rev();
        events.extend(finished.map(|(index, case)| RunEvent::CaseFinished {
            suite,
            index: *index,
            result: Arc::new(case.clone()),
        }));
        let result = Arc::new(fixture.result());
        totals.add(&result);
        events.push(RunEvent::SuiteFinished { suite, result });
    }
    events.push(RunEvent::RunFinished { run_id: "run-7".to_owned(), totals });
    events
}

/// Returns a run with every kind of outcome.
pub(crate) fn events() -> Vec<RunEvent> {
    let mut weather =
        Suite::new("evals/get_weather.golden.json", "get_weather", Tier::Golden, &[4, 15, 26, 37, 48, 59]);
    weather.header.staleness = vec![Staleness::DescriptionChanged {
        tool: "get_weather".to_owned(),
        generated: "aaaaaaaaaaaa".to_owned(),
        current: "bbbbbbbbbbbb".to_owned(),
    }];
    let mut passed = case("gs-get-weather-001", "Rain in Zürich ☂ 東京", Outcome::Passed);
    passed.details.response.push_str("Es regnet in Zürich.");
    passed.assertions_skipped = 1;
    let two = [
        ("responseContains", "expected 'Tokyo' in response but not found"),
        ("maxLatencyMs", "expected at most 100 ms, took 250 ms"),
    ];
    let mut vacuous = case("gs-get-weather-006", "Nothing to check", Outcome::Passed);
    (vacuous.vacuous, vacuous.assertions_run, vacuous.assertions_skipped) = (true, 0, 2);
    let timeout = timed_out("gs-get-weather-005", "Too slow");
    weather.cases = vec![
        (0, passed),
        (1, failed("gs-get-weather-002", "Names the city", &two)),
        // The third was selected but not run.
        (3, errored("gs-get-weather-004", "Answers at all", "HTTP 500: Internal Server Error")),
        (4, timeout),
        (5, vacuous),
    ];

    let mut flight = Suite::new("evals/book_flight.labeled.json", "book_flight", Tier::Labeled, &[3, 14, 25]);
    let routing = [("toolsCalled", "expected ['book_flight'] but got ['get_weather']")];
    let mut hostile = failed("ls-book-flight-002", HOSTILE, &[("responseNotContains", HOSTILE)]);
    hostile.details.response.push_str(HOSTILE);
    flight.cases = vec![
        (0, failed("ls-book-flight-001", "Books, and nothing else", &routing)),
        (1, hostile),
        (2, case("ls-book-flight-003", "", Outcome::Passed)),
    ];
    flight.regressions = vec!["ls-book-flight-001".to_owned()];
    flight.warnings = vec!["stubs do not apply to an endpoint agent".to_owned()];
    events_of(&[weather, flight])
}

/// Returns a run with several trials per case, and gates of every kind.
pub(crate) fn events_with_trials() -> Vec<RunEvent> {
    let trial = |letter: char| match letter {
        'p' => case("gs-x-001", "Sometimes", Outcome::Passed),
        't' => timed_out("gs-x-001", "Sometimes"),
        'e' => errored("gs-x-001", "Sometimes", "HTTP 500"),
        _ => failed("gs-x-001", "Sometimes", &[("toolsCalled", "expected 'a'"), ("minLength", "expected 5")]),
    };
    let trials = |id: &str, letters: &str| {
        let combined = combine(letters.chars().map(trial).collect(), 3).expect("trials");
        CaseResult { id: id.to_owned(), ..combined }
    };
    let mut suite = Suite::new("evals/x.golden.json", "x", Tier::Golden, &[4, 15, 26, 37]);
    suite.header.trials = 3;
    suite.cases = vec![
        (0, trials("gs-x-001", "ppp")),
        (1, trials("gs-x-002", "pfp")),
        (2, trials("gs-x-003", "ppt")),
        (3, trials("gs-x-004", "fep")),
    ];
    let mut events = events_of(&[suite]);
    if let Some(RunEvent::RunFinished { totals, .. }) = events.last_mut() {
        let agent = || Some("openai:<b>m</b>".to_owned());
        totals.gates = vec![
            GateResult {
                gate: Gate::PassRate,
                agent: agent(),
                limit: 0.7,
                actual: Some(0.75),
                held: Some(true),
                note: None,
            },
            GateResult {
                gate: Gate::P95LatencyMs,
                agent: agent(),
                limit: 200.0,
                actual: Some(250.0),
                held: Some(false),
                note: None,
            },
            GateResult { gate: Gate::MaxRegressions, agent: None, limit: 0.0, actual: None, held: None, note: None },
        ];
    }
    events
}

/// Returns a run with the same text in every field.
pub(crate) fn events_with_text(text: &str) -> Vec<RunEvent> {
    let mut suite = Suite::new(text, text, Tier::Golden, &[1, 2, 3, 4]);
    suite.header.staleness = vec![Staleness::ToolMissing { tool: text.to_owned() }];
    suite.warnings = vec![text.to_owned()];
    let mut failing = failed(text, text, &[(text, text)]);
    failing.message.push_str(text);
    failing.marks.push(text.to_owned());
    failing.details.response.push_str(text);
    let call = ToolCall { name: text.to_owned(), error: Some(text.to_owned()), ..ToolCall::default() };
    failing.details.tool_calls.push(call);
    let vacuous = CaseResult { vacuous: true, ..case(&format!("{text}3"), text, Outcome::Passed) };
    suite.cases = vec![
        (0, failing),
        (1, errored(&format!("{text}1"), text, text)),
        (2, failed(&format!("{text}2"), text, &[(text, text)])),
        (3, vacuous),
    ];
    suite.regressions = vec![format!("{text}2")];
    let mut events = events_of(&[suite]);
    let rubrics = [scored(text), RubricSuite { outcome: RubricOutcome::Skipped(text.to_owned()), ..scored(text) }];
    let ended = rubrics.map(|suite| RunEvent::RubricFinished { suite: Arc::new(suite) });
    let end = events.len() - 1;
    events.splice(end..end, ended);
    events
}

/// Returns a rubric suite with a case of each kind, and the same text in every field.
pub(crate) fn scored(text: &str) -> RubricSuite {
    let score = |score| RubricScore {
        dimension: text.to_owned(),
        criteria: text.to_owned(),
        max_score: 3,
        score,
        reason: text.to_owned(),
    };
    let judged = |scores: Vec<RubricScore>| RubricCaseResult {
        id: text.to_owned(),
        description: text.to_owned(),
        outcome: RubricVerdict::Judged,
        duration_ms: 250,
        error: None,
        score: Some(scores.iter().map(|score| score.score).sum()),
        max_score: 6,
        dimensions: scores,
        judge_usage: None,
        judge_called: true,
        details: CaseDetails::default(),
    };
    let errored = RubricCaseResult {
        outcome: RubricVerdict::Errored,
        error: Some(text.to_owned()),
        score: None,
        ..judged(Vec::new())
    };
    let cases = vec![judged(vec![score(3), score(1)]), judged(vec![score(3), score(3)]), errored];
    let result = RubricResult {
        run_id: "run-7".to_owned(),
        timestamp: "2026-03-04T05:06:07.089Z".to_owned(),
        tier: Tier::Rubric,
        tool_name: text.to_owned(),
        agent_endpoint: "https://agent.test/chat".to_owned(),
        judge: Judge { identity: text.to_owned(), parameters: serde_json::Map::new() },
        metadata: RubricMetadata::default(),
        warnings: vec![text.to_owned()],
        summary: RubricSummary::from_cases(&cases, 4),
        cases,
        wall_clock_ms: 750,
    };
    RubricSuite {
        path: text.to_owned(),
        tool_name: text.to_owned(),
        agent: None,
        selected: 4,
        lines: vec![(text.to_owned(), 3)],
        outcome: RubricOutcome::Result(Arc::new(result)),
    }
}

pub(crate) fn record(events: &[RunEvent]) -> RunRecord {
    let mut record = RunRecord::default();
    for event in events {
        record.observe(event);
    }
    record
}

/// Reports a run. Returns the written file, and asserts that it was written only at the end.
pub(crate) fn report<R: Reporter>(events: &[RunEvent], make: impl FnOnce(Destination) -> R) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("reports/report");
    let mut reporter = make(Destination::File(path.clone()));
    for event in events {
        assert!(!path.exists(), "written before the end of the run");
        reporter.on_event(event).expect("a writable folder");
    }
    std::fs::read_to_string(path).expect("a report")
}

/// Reports a run to a read-only file.
pub(crate) fn report_read_only<R: Reporter>(make: impl FnOnce(Destination) -> R) -> ReportError {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("report");
    std::fs::write(&path, "before").expect("a new file");
    let mut permissions = std::fs::metadata(&path).expect("the file").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).expect("permissions");

    let mut reporter = make(Destination::File(path.clone()));
    let error = events().iter().find_map(|event| reporter.on_event(event).err()).expect("read-only");
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), "before");
    error
}

/// Any text, mostly with characters that are special in some format.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        "<",
        ">",
        "&",
        "\"",
        "'",
        "]]>",
        "<script>",
        "<!--",
        "`",
        "```",
        "````",
        "~~~",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "\t",
        "::",
        "::error::",
        "%",
        "%0A",
        ",",
        ":",
        "|",
        "\\",
        "\\|",
        "*",
        "**",
        "_",
        "#",
        "@you",
        "http://a.test",
        "www.a.test",
        "![](x)",
        "[a](b)",
        "</details>",
        "</code>",
        "    ",
        "- ",
        "$x$",
        "\u{0}",
        "\u{1b}[31m",
        "\u{1b}]",
        "\u{9b}",
        "\u{fffe}",
        "\u{ffff}",
        "\u{2028}",
        "\u{202e}",
        "é",
        "日本",
        "🦀",
        "word",
        " ",
        "##[command]",
    ]);
    let part = prop_oneof![4 => special.prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}
