//! Workflow commands for GitHub Actions annotations, and the step summary.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use karat_core::event::RunEvent;
use karat_core::event::{ReportError, Reporter};
use karat_core::rubric::{RubricOutcome, RubricSuite};
use karat_json::text::shorten;

use crate::destination::Destination;
use crate::markdown::{self, reason_and_answer, totals_line};
use crate::record::{
    CaseRecord, Kind, RunRecord, baseline_missing_texts, escape_invisible, group_by_reason, unreported_calls_text,
};

/// GitHub truncates longer titles.
const TITLE_LIMIT: usize = 200;

/// Maximum length of a message, in characters.
const MESSAGE_LIMIT: usize = 4_000;

/// Writes the commands at the end of the run.
#[derive(Debug)]
pub struct GithubReporter {
    destination: Destination,
    /// The directory of the run, relative to the repository root.
    folder: String,
    run: RunRecord,
}

impl GithubReporter {
    /// Creates a reporter. GitHub only processes commands on standard output.
    pub fn new(destination: Destination) -> Self {
        Self { destination, folder: String::new(), run: RunRecord::default() }
    }

    /// Makes file paths relative to the repository root.
    #[must_use]
    pub fn with_folder(mut self, folder: String) -> Self {
        self.folder = folder;
        self
    }
}

impl Reporter for GithubReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if !self.run.observe(event) {
            return Ok(());
        }
        self.destination.write_commands(&render(&self.run, &self.folder)).map_err(|source| ReportError {
            target: format!("GitHub's workflow commands to {}", self.destination),
            source,
        })
    }
}

/// Appends the summary to the step summary at the end of the run.
#[derive(Debug)]
pub struct StepSummaryReporter {
    path: PathBuf,
    run: RunRecord,
}

impl StepSummaryReporter {
    /// Creates a reporter for the file in `GITHUB_STEP_SUMMARY`.
    pub fn new(path: PathBuf) -> Self {
        Self { path, run: RunRecord::default() }
    }
}

impl Reporter for StepSummaryReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if !self.run.observe(event) {
            return Ok(());
        }
        append_summary(&self.path, &self.run).map_err(|source| ReportError {
            target: format!("GitHub's step summary to {}", self.path.display()),
            source,
        })
    }
}

fn append_summary(path: &Path, run: &RunRecord) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    // The limit applies to everything a step writes, and GitHub does not show a larger summary at all.
    let before = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let separator = if before == 0 { "" } else { "\n\n" };
    let text = markdown::render_within(run, markdown::LIMIT.saturating_sub(before));
    file.write_all(format!("{separator}{text}").as_bytes())
}

/// Returns the commands: failed gates, regressions, new failures, errors, failures that the baseline has too, warnings,
/// totals.
pub fn render(run: &RunRecord, folder: &str) -> String {
    let mut out = String::new();
    // GitHub shows only ten errors per step, so the most important come first.
    let regressions = run.cases().filter(|case| case.kind() == Kind::Regressed);
    let failures = |is_known: bool| {
        run.cases().filter(move |case| case.kind() == Kind::Failed && case.is_still_failing == is_known)
    };
    let errors = group_by_reason(run.cases().filter(|case| case.kind() == Kind::Errored));
    push_gates(&mut out, run);
    for case in regressions.chain(failures(false)) {
        push_case(&mut out, &case, 0, folder);
    }
    for (case, others) in &errors {
        push_case(&mut out, case, others.len(), folder);
    }
    for case in failures(true) {
        push_case(&mut out, &case, 0, folder);
    }
    run.rubrics.iter().for_each(|suite| push_rubric(&mut out, suite, folder));
    push_warnings(&mut out, run, folder);
    let totals = totals_line(&run.totals);
    Annotation { level: "notice", file: None, line: None, title: "karat", message: &totals }.push_to(&mut out);
    out
}

fn push_gates(out: &mut String, run: &RunRecord) {
    for result in run.totals.gates.iter().filter(|result| result.held != Some(true)) {
        let of = result.agent.as_ref().map(|agent| format!(" of {agent}")).unwrap_or_default();
        let state = if result.held.is_none() { "could not be checked" } else { "failed" };
        let title = format!("gate {} {state}", result.gate.name());
        let message = format!("{}{of}: {result}", result.gate.name());
        Annotation { level: "error", file: None, line: None, title: &title, message: &message }.push_to(out);
    }
}

/// Adds a case that did not pass; `others` is the number of further cases with the same error. A failure that the
/// baseline has too is only a warning, so that new ones stand out.
fn push_case(out: &mut String, case: &CaseRecord<'_>, others: usize, folder: &str) {
    let (id, description) = (&case.result.id, &case.result.description);
    let title = match case.kind() {
        Kind::Errored if others > 0 => format!("{id} and {others} more errored"),
        Kind::Errored => format!("{id} errored"),
        _ if description.is_empty() => id.clone(),
        _ => format!("{id}: {description}"),
    };
    let title = case.suite.with_agent(&title);
    let reason = reason_and_answer(case);
    let (level, message) = match case.kind() {
        Kind::Regressed => ("error", format!("regression: {reason}")),
        Kind::Failed if case.is_still_failing => ("warning", format!("fails in the baseline too: {reason}")),
        _ => ("error", reason),
    };
    let file = path_from_root(&case.suite.header.path, folder);
    Annotation { level, file: Some(&file), line: case.line(), title: &title, message: &message }.push_to(out);
}

/// A low score is not an error, but a missing score is.
fn push_rubric(out: &mut String, suite: &RubricSuite, folder: &str) {
    let file = path_from_root(&suite.path, folder);
    let result = match &suite.outcome {
        RubricOutcome::Result(result) => result,
        RubricOutcome::Skipped(reason) => {
            let title = "rubric skipped";
            Annotation { level: "warning", file: Some(&file), line: None, title, message: reason }.push_to(out);
            return;
        }
    };
    for case in &result.cases {
        let Some(message) = &case.error else { continue };
        let title = format!("{} errored", case.id);
        let line = suite.lines.iter().find(|(id, _)| *id == case.id).map(|(_, line)| *line);
        Annotation { level: "error", file: Some(&file), line, title: &title, message }.push_to(out);
    }
    for message in &result.warnings {
        Annotation { level: "warning", file: Some(&file), line: None, title: "karat", message }.push_to(out);
    }
}

/// Makes a path relative to the repository root; absolute paths are unchanged.
pub fn path_from_root(path: &str, folder: &str) -> String {
    if folder.is_empty() || Path::new(path).is_absolute() { path.to_owned() } else { format!("{folder}/{path}") }
}

fn push_warnings(out: &mut String, run: &RunRecord, folder: &str) {
    if let Some(message) = unreported_calls_text(&run.totals) {
        let title = "tool calls are not reported";
        Annotation { level: "warning", file: None, line: None, title, message: &message }.push_to(out);
    }
    for message in baseline_missing_texts(&run.totals) {
        let title = "baseline";
        Annotation { level: "warning", file: None, line: None, title, message: &message }.push_to(out);
    }
    for suite in &run.suites {
        let file = path_from_root(&suite.header.path, folder);
        let mut warn = |line, title: &str, message: &str| {
            let title = suite.with_agent(title);
            Annotation { level: "warning", file: Some(&file), line, title: &title, message }.push_to(out);
        };
        suite.staleness().iter().for_each(|text| warn(None, "staleness", text));
        suite.warnings().iter().for_each(|text| warn(None, "karat", text));
        for case in suite.cases().filter(CaseRecord::is_vacuous_pass) {
            let title = format!("{} is vacuous", case.result.id);
            warn(case.line(), &title, &format!("passed, but {}, so it proves nothing", case.result.vacuous_reason()));
        }
        for case in suite.cases() {
            for message in case.near_misses() {
                warn(case.line(), &case.result.id, &message);
            }
        }
    }
}

/// A workflow command that annotates a file.
#[derive(Debug, Clone, Copy)]
pub struct Annotation<'c> {
    /// `error`, `warning` or `notice`.
    pub level: &'static str,
    pub file: Option<&'c str>,
    pub line: Option<usize>,
    pub title: &'c str,
    pub message: &'c str,
}

impl Annotation<'_> {
    /// Appends the command, with everything escaped.
    pub fn push_to(&self, out: &mut String) {
        let _ = write!(out, "::{} ", self.level);
        if let Some(file) = self.file {
            let _ = write!(out, "file={},", property(&escape_invisible(file)));
        }
        if let Some(line) = self.line {
            let _ = write!(out, "line={line},");
        }
        let title = escape_invisible(&shorten(self.title, TITLE_LIMIT)).replace('\n', " ");
        let message = escape_invisible(&shorten(self.message, MESSAGE_LIMIT));
        let _ = writeln!(out, "title={}::{}", property(&title), data(&message));
    }
}

/// Escapes the value of a command.
fn data(text: &str) -> Cow<'_, str> {
    escape(text, &['%', '\r', '\n'])
}

/// Escapes a property of a command.
fn property(text: &str) -> Cow<'_, str> {
    escape(text, &['%', '\r', '\n', ':', ','])
}

fn escape<'t>(text: &'t str, special: &[char]) -> Cow<'t, str> {
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if special.contains(&character) {
            let _ = write!(out, "%{:02X}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}
