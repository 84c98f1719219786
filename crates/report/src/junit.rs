//! `JUnit` XML.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use karat_core::event::RunEvent;
use karat_core::event::{ReportError, Reporter};
use karat_core::result::{CaseDetails, CaseResult, Cause, SkippedCase};
use karat_json::text::shorten;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::call_alignment::AlignmentRenderer;
use crate::destination::Destination;
use crate::record::{CaseRecord, Kind, RunRecord, SuiteRecord, escape_invisible};
use crate::security::outcome_name;
use crate::transcript::transcript;
use crate::trials::{is_flaky, passed_trials};

/// Maximum length of a response, in characters.
const RESPONSE_LIMIT: usize = 2_000;

/// Maximum length of a failure's message, in characters.
const MESSAGE_LIMIT: usize = 300;

/// Writes the file at the end of the run.
#[derive(Debug)]
pub struct JunitReporter {
    destination: Destination,
    run: RunRecord,
}

impl JunitReporter {
    pub fn new(destination: Destination) -> Self {
        Self { destination, run: RunRecord::default() }
    }
}

impl Reporter for JunitReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if !self.run.observe(event) {
            return Ok(());
        }
        render(&self.run)
            .and_then(|text| self.destination.write(&text))
            .map_err(|source| ReportError { target: format!("the JUnit report to {}", self.destination), source })
    }
}

/// Renders the file.
pub fn render(run: &RunRecord) -> io::Result<String> {
    let mut report = Report::new("karat");
    report.set_time(Duration::from_millis(run.totals.wall_clock_ms));
    for suite in &run.suites {
        let suite = test_suite(run, suite);
        report.timestamp = report.timestamp.or(suite.timestamp);
        report.add_test_suite(suite);
    }
    report.to_string().map_err(io::Error::other)
}

fn test_suite(run: &RunRecord, suite: &SuiteRecord) -> TestSuite {
    let header = &suite.header;
    let mut out = TestSuite::new(xml(&suite.with_agent(&header.path)));
    let mut add = |name: &str, value: &str| {
        out.add_property((name, xml(value).as_str()));
    };
    add("tool", &header.tool_name);
    add("tier", header.tier.name());
    add("runId", &run.run_id);
    if let Some(result) = &suite.result {
        add("agentEndpoint", &result.agent_endpoint);
    }
    add("stale", if suite.is_stale() { "true" } else { "false" });
    suite.staleness().iter().for_each(|text| add("stalenessWarning", text));
    suite.warnings().iter().for_each(|text| add("warning", text));
    add("notRun", &suite.not_run().to_string());

    if let Some(result) = &suite.result {
        // An invalid time is left out rather than failing the report.
        out.timestamp = result.timestamp.parse().ok();
        out.set_time(Duration::from_millis(result.wall_clock_ms));
    }
    out.add_test_cases(suite.cases().map(|case| test_case(&case)));
    let skipped = suite.result.iter().flat_map(|result| &result.skipped);
    out.add_test_cases(skipped.map(|case| skipped_case(case, suite)));
    out
}

fn skipped_case(case: &SkippedCase, suite: &SuiteRecord) -> TestCase {
    let mut status = TestCaseStatus::skipped();
    status.set_message(xml(&shorten(&case.reason, MESSAGE_LIMIT)));
    let mut out = TestCase::new(xml(&case.id), status);
    out.set_classname(class_name(suite));
    if !case.description.is_empty() {
        out.add_property(("description", xml(&case.description).as_str()));
    }
    out
}

fn class_name(suite: &SuiteRecord) -> String {
    xml(&suite.with_agent(&format!("{}.{}", suite.header.tool_name, suite.header.tier)))
}

fn test_case(case: &CaseRecord<'_>) -> TestCase {
    let result = case.result;
    let mut out = TestCase::new(xml(&result.id), status(case));
    out.set_classname(class_name(case.suite));
    out.set_assertions(result.assertions_run);
    out.set_time(Duration::from_millis(result.duration_ms));
    if !result.description.is_empty() {
        out.add_property(("description", xml(&result.description).as_str()));
    }
    if case.kind() == Kind::Regressed {
        out.add_property(("regression", "true"));
    }
    if let Some(passed) = passed_trials(result) {
        out.add_property(("trialsPassed", passed.as_str()));
    }
    if is_flaky(result) {
        out.add_property(("flaky", "true"));
    }
    if case.is_vacuous_pass() {
        out.add_property(("vacuous", vacuous_message(result).as_str()));
    }
    if let Some(fault) = result.details.simulated_user.as_ref().and_then(|user| user.fault.as_ref()) {
        out.add_property(("simulatedUserFault", xml(&fault.to_string()).as_str()));
    }
    if let Some(security) = &result.details.security {
        out.add_property(("utility", outcome_name(security.utility)));
        if let Some(safety) = security.safety {
            out.add_property(("safety", outcome_name(safety)));
        }
    }
    if result.all_details().any(CaseDetails::has_unjudged_calls) {
        out.add_property(("callsUnreported", "true"));
    }
    let output = match result.details.turns.as_slice() {
        [] => Cow::Borrowed(&result.details.response),
        turns => Cow::Owned(transcript(turns, MESSAGE_LIMIT)),
    };
    if !output.is_empty() {
        out.set_system_out(xml(&shorten(&output, RESPONSE_LIMIT)));
    }
    out
}

fn status(case: &CaseRecord<'_>) -> TestCaseStatus {
    let (kind, type_name) = match case.kind() {
        Kind::Passed if case.is_vacuous_pass() => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(vacuous_message(case.result));
            return status;
        }
        Kind::Passed => return TestCaseStatus::success(),
        Kind::Regressed | Kind::Failed => (NonSuccessKind::Failure, failure_type(case.result)),
        Kind::Errored => (NonSuccessKind::Error, "errored"),
    };
    let mut status = TestCaseStatus::non_success(kind);
    let reason = case.reason();
    let first_line = reason.lines().next().unwrap_or_default();
    status.set_type(xml(type_name));
    status.set_message(xml(&shorten(first_line, MESSAGE_LIMIT)));
    status.set_description(xml(&full_reason(case)));
    status
}

fn vacuous_message(result: &CaseResult) -> String {
    format!("{}, so this pass proves nothing", result.vacuous_reason())
}

/// Returns the name of the assertion that failed the case.
fn failure_type(result: &CaseResult) -> &str {
    match (result.failures.first(), result.cause) {
        (Some(failure), _) => &failure.assertion,
        (None, Some(Cause::Timeout)) => "timeout",
        (None, _) => "failed",
    }
}

/// Returns every failure with its location in the case, or the reason for the missing verdict.
fn full_reason(case: &CaseRecord<'_>) -> String {
    let texts: Vec<String> = case
        .reasons()
        .into_iter()
        .map(|(message, pointer)| match pointer {
            Some(pointer) => format!("{message}\n    at {pointer}"),
            None => message.into_owned(),
        })
        .collect();
    let mut text = texts.join("\n");
    let details = &case.result.details;
    let of_turns = details.turns.iter().filter_map(|turn| Some((turn.calls.as_ref()?, &turn.tool_calls)));
    let of_case = details.calls.as_ref().map(|alignment| (alignment, &details.tool_calls));
    for (alignment, calls) in of_turns.chain(of_case) {
        let lines = AlignmentRenderer::PLAIN.lines(alignment, calls);
        let _ = write!(text, "\n\n{}", lines.join("\n"));
    }
    text
}

/// Prepares text for the XML writer, which drops tabs and everything after an unterminated escape sequence.
fn xml(text: &str) -> String {
    escape_invisible(text).replace('\t', "    ")
}
