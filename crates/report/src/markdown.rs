//! A summary for pull requests, and what all reports gather that are written when a run has ended.
//!
//! Nothing a model or an eval file says can become markup: inline it is spelled in character references, and what is
//! longer stands in fences that it cannot close.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use karat_core::event::{RunEvent, RunTotals, SuiteHeader};
use karat_core::port::{ReportError, Reporter};
use karat_core::result::{CaseResult, Outcome, SuiteResult};
use karat_core::staleness::Staleness;
use karat_core::text::shorten;

use crate::destination::Destination;
use crate::terminal_text::printable;

/// GitHub refuses a summary of more than 1 MiB; what is left over is for other steps of the same job.
pub const LIMIT: usize = 900_000;

/// What titles and the words about omissions may take up after the last item that fits.
const RESERVE: usize = 2_000;

/// How many characters of one case's failures are shown.
const CASE_LIMIT: usize = 2_000;

/// How many characters of a name, a description or a warning are shown.
const INLINE_LIMIT: usize = 500;

/// Writes the summary when the run has ended.
#[derive(Debug)]
pub struct MarkdownReporter {
    destination: Destination,
    run: RunRecord,
}

impl MarkdownReporter {
    pub fn new(destination: Destination) -> Self {
        Self { destination, run: RunRecord::default() }
    }
}

impl Reporter for MarkdownReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if !self.run.observe(event) {
            return Ok(());
        }
        self.destination
            .write(&render(&self.run))
            .map_err(|source| ReportError { what: format!("the Markdown report to {}", self.destination), source })
    }
}

/// Returns the whole summary, cut to [`LIMIT`] bytes.
pub fn render(run: &RunRecord) -> String {
    render_within(run, LIMIT)
}

/// Returns the summary cut to `limit` bytes; the headline stays, however low the limit.
pub fn render_within(run: &RunRecord, limit: usize) -> String {
    let cases: Vec<CaseRecord<'_>> = run.cases().collect();
    let of_kind = |kind: Kind| cases.iter().filter(move |case| case.kind() == kind);

    let mut page = Page { text: format!("## {} karat: {}\n", mark(&run.totals), totals_line(&run.totals)), limit };
    page.section("Regressions", "", of_kind(Kind::Regressed).map(regression));
    page.section("Suites", TABLE_HEAD, run.suites.iter().map(table_row));
    page.section("Warnings", "", warnings(run).into_iter());
    let failures = if run.totals.regressions > 0 { "Other failures" } else { "Failures" };
    page.section(failures, "", of_kind(Kind::Failed).map(|case| details("❌", case)));
    page.section("Errors: no verdict", "", of_kind(Kind::Errored).map(|case| details("❗", case)));
    page.text
}

/// A text that grows section by section up to a limit.
struct Page {
    text: String,
    limit: usize,
}

impl Page {
    /// Adds a title and as many items as fit, and says how many did not; without items, nothing.
    fn section(&mut self, title: &str, head: &str, items: impl Iterator<Item = String>) {
        let mut items = items.peekable();
        if items.peek().is_none() {
            return;
        }
        let _ = write!(self.text, "\n### {title}\n\n{head}");
        let mut left_out = 0;
        for item in items {
            // Once one is left out so are those after it, since a gap in the middle would go unseen.
            if left_out > 0 || self.text.len() + item.len() + RESERVE > self.limit {
                left_out += 1;
            } else {
                self.text.push_str(&item);
            }
        }
        self.text.truncate(self.text.trim_end().len());
        self.text.push('\n');
        if left_out > 0 {
            let _ = writeln!(self.text, "\n_{left_out} more left out to keep this report within its limit of size._");
        }
    }
}

const TABLE_HEAD: &str = "\
| Tool | Tier | Passed | Failed | Errored | Skipped assertions | Duration |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
";

fn table_row(suite: &SuiteRecord) -> String {
    let (tool, tier) = (inline(&suite.header.tool_name), suite.header.tier);
    let Some(result) = &suite.result else {
        return format!("| {tool} | {tier} | – | – | – | – | not finished |\n");
    };
    let summary = &result.summary;
    format!(
        "| {tool} | {tier} | {} | {} | {} | {} | {} |\n",
        summary.passed,
        summary.failed.saturating_sub(summary.errored),
        summary.errored,
        summary.skipped_assertions,
        duration(result.wall_clock_ms),
    )
}

fn regression(case: &CaseRecord<'_>) -> String {
    format!("**❌ {}** {}\n\n{}\n", code(&case.result.id), place(case), fenced(&case.reason()))
}

fn details(mark: &str, case: &CaseRecord<'_>) -> String {
    let (id, description) = (code(&case.result.id), inline(&case.result.description));
    let summary = format!("{mark} {id} {description}");
    let (place, reason) = (code(&case.location()), fenced(&case.reason()));
    format!("<details>\n<summary>{}</summary>\n\n{place}\n\n{reason}\n</details>\n\n", summary.trim_end())
}

fn place(case: &CaseRecord<'_>) -> String {
    let (description, location) = (inline(&case.result.description), code(&case.location()));
    if description.is_empty() { location } else { format!("{description} · {location}") }
}

fn warnings(run: &RunRecord) -> Vec<String> {
    let mut found = Vec::new();
    if run.totals.interrupted {
        found.push("- ⚠️ The run was interrupted.\n".to_owned());
    }
    for suite in &run.suites {
        let path = code(&suite.header.path);
        let mut warn = |text: &str| found.push(format!("- ⚠️ {path}: {text}\n"));
        for text in suite.staleness().iter().chain(suite.warnings()) {
            warn(&inline(text));
        }
        for case in suite.cases().filter(CaseRecord::shows_nothing) {
            warn(&format!("{} passed, but no assertion ran, so it shows nothing.", code(&case.result.id)));
        }
        match suite.not_run() {
            0 => {}
            1 => warn("1 selected case was not run."),
            count => warn(&format!("{count} selected cases were not run.")),
        }
    }
    found
}

/// Returns the sign of a whole run: a warning where there may be failures that nobody saw.
fn mark(totals: &RunTotals) -> &'static str {
    if totals.failed > totals.errored || totals.regressions > 0 {
        "❌"
    } else if totals.errored + totals.not_run + totals.vacuous > 0 || totals.interrupted || totals.cases == 0 {
        "⚠️"
    } else {
        "✅"
    }
}

/// Returns the numbers of a run in one line, what matters most first.
pub(crate) fn totals_line(totals: &RunTotals) -> String {
    let mut parts = Vec::new();
    match totals.regressions {
        0 => {}
        1 => parts.push("1 regression".to_owned()),
        count => parts.push(format!("{count} regressions")),
    }
    parts.push(format!("{}/{} passed", totals.passed, totals.cases));
    let rest = [
        (totals.failed.saturating_sub(totals.errored), "failed"),
        (totals.errored, "errored"),
        (totals.vacuous, "vacuous"),
        (totals.not_run, "not run"),
    ];
    parts.extend(rest.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")));
    parts.join(", ")
}

fn duration(milliseconds: u64) -> String {
    let (seconds, tenths) = (milliseconds / 1_000, milliseconds % 1_000 / 100);
    match seconds {
        0 => format!("{milliseconds} ms"),
        1..60 => format!("{seconds}.{tenths} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// Spells a text so that it is one line of plain text wherever it stands: in a paragraph, a table, a tag.
///
/// Character references never form markup. Links and mentions that a page finds in the text after that are broken by
/// a space of no width.
fn inline(text: &str) -> String {
    const NO_WIDTH: &str = "&#8203;";
    let text = visible(&shorten(text, INLINE_LIMIT));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(text.len());
    for (place, character) in text.char_indices() {
        match character {
            '.' | '/' if is_inside_address(&text[..place]) => {
                out.push_str(NO_WIDTH);
                out.push(character);
            }
            ' ' | '.' | ',' | ';' | '/' | '-' | '+' | '=' | '%' | '?' => out.push(character),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' | '#' => {
                let _ = write!(out, "&#{};{NO_WIDTH}", u32::from(character));
            }
            // Between letters it is no markup, and names such as `get_weather` stay readable.
            '_' if is_inside_word(&text, place) => out.push('_'),
            _ if character.is_ascii_punctuation() => {
                let _ = write!(out, "&#{};", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out
}

/// Tells whether a text ends in what makes an address of the words after it: `www` or `http:`.
fn is_inside_address(before: &str) -> bool {
    before.ends_with(':') || before.len() >= 3 && before.as_bytes()[before.len() - 3..].eq_ignore_ascii_case(b"www")
}

fn is_inside_word(text: &str, place: usize) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    place > 0 && is_letter(bytes.get(place - 1)) && is_letter(bytes.get(place + 1))
}

/// Spells a text as [`inline`] does, in the letters of code.
fn code(text: &str) -> String {
    format!("<code>{}</code>", inline(text))
}

/// Puts a text between fences that are longer than any run of backticks in it.
fn fenced(text: &str) -> String {
    let text = visible(&shorten(text, CASE_LIMIT));
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

/// Spells out the characters that steer a terminal, turn text around, end a line unseen or are forbidden in XML; only
/// line ends and tabs stay.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => out.push(character),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            _ => out.push_str(&printable(character.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

/// A run as its events told it, for reports that are written when it has ended.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    pub run_id: String,
    /// In the order in which they are reported.
    pub suites: Vec<SuiteRecord>,
    pub totals: RunTotals,
}

impl RunRecord {
    /// Takes an event in; returns whether it was the run's last.
    pub fn observe(&mut self, event: &RunEvent) -> bool {
        match event {
            RunEvent::RunStarted { run_id, suites, .. } => {
                self.run_id.clone_from(run_id);
                self.suites = suites.iter().map(SuiteRecord::new).collect();
            }
            RunEvent::CaseFinished { suite, index, result } => {
                if let Some(suite) = self.suites.get_mut(*suite) {
                    suite.observe_case(*index, result);
                }
            }
            RunEvent::SuiteFinished { suite, result } => {
                if let Some(suite) = self.suites.get_mut(*suite) {
                    suite.result = Some(Arc::clone(result));
                }
            }
            RunEvent::RunFinished { totals, .. } => {
                self.totals = totals.clone();
                return true;
            }
        }
        false
    }

    /// Returns all cases that ran, suite by suite in the files' order.
    pub fn cases(&self) -> impl Iterator<Item = CaseRecord<'_>> {
        self.suites.iter().flat_map(SuiteRecord::cases)
    }
}

/// One suite of a run.
#[derive(Debug, Clone)]
pub struct SuiteRecord {
    pub header: Arc<SuiteHeader>,
    /// Absent when the run ended before the suite did.
    pub result: Option<Arc<SuiteResult>>,
    /// By id, for cases that a report points at: a result does not say which of the selected cases ran.
    lines: HashMap<String, usize>,
}

impl SuiteRecord {
    fn new(header: &Arc<SuiteHeader>) -> Self {
        Self { header: Arc::clone(header), result: None, lines: HashMap::new() }
    }

    fn observe_case(&mut self, index: usize, case: &CaseResult) {
        let is_plain = case.outcome() == Outcome::Passed && !case.vacuous;
        if let Some(line) = self.header.lines.get(index)
            && !is_plain
        {
            self.lines.insert(case.id.clone(), *line);
        }
    }

    /// Returns the cases that ran, in the file's order.
    pub fn cases(&self) -> impl Iterator<Item = CaseRecord<'_>> {
        let result = self.result.as_deref();
        let regressions: HashSet<&str> =
            result.iter().flat_map(|result| &result.regressions).map(String::as_str).collect();
        result.into_iter().flat_map(|result| &result.cases).map(move |case| CaseRecord {
            suite: self,
            result: case,
            is_regression: regressions.contains(case.id.as_str()),
        })
    }

    /// Returns what is known of the suite being out of date.
    pub(crate) fn staleness(&self) -> Vec<String> {
        match &self.result {
            Some(result) => result.staleness_warnings.clone(),
            None => self.header.staleness.iter().map(Staleness::warning).collect(),
        }
    }

    /// Tells whether the suite is known to be out of date.
    pub(crate) fn is_stale(&self) -> bool {
        match &self.result {
            Some(result) => result.stale,
            None => self.header.staleness.iter().any(Staleness::is_stale),
        }
    }

    /// Returns what else a person should know.
    pub(crate) fn warnings(&self) -> &[String] {
        self.result.as_ref().map_or(&[], |result| &result.warnings)
    }

    /// Returns how many selected cases have no result.
    pub(crate) fn not_run(&self) -> usize {
        self.result.as_ref().map_or(self.header.selected, |result| result.summary.not_run)
    }
}

/// What a report does with a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Passed,
    /// Passed in the baseline and fails now.
    Regressed,
    Failed,
    Errored,
}

/// One case of a run.
#[derive(Debug, Clone, Copy)]
pub struct CaseRecord<'r> {
    pub suite: &'r SuiteRecord,
    pub result: &'r CaseResult,
    /// The baseline's comparison lists it.
    pub is_regression: bool,
}

impl CaseRecord<'_> {
    pub(crate) fn kind(&self) -> Kind {
        match self.result.outcome() {
            Outcome::Passed => Kind::Passed,
            Outcome::Failed if self.is_regression => Kind::Regressed,
            Outcome::Failed => Kind::Failed,
            Outcome::Errored => Kind::Errored,
        }
    }

    /// Tells whether the case passed without a check.
    pub(crate) fn shows_nothing(&self) -> bool {
        self.result.vacuous && self.kind() == Kind::Passed
    }

    /// Returns the line in the eval file, known for cases that did not plainly pass.
    pub(crate) fn line(&self) -> Option<usize> {
        self.suite.lines.get(&self.result.id).copied()
    }

    fn location(&self) -> String {
        let path = &self.suite.header.path;
        self.line().map_or_else(|| path.clone(), |line| format!("{path}:{line}"))
    }

    /// Returns why the case did not pass, in one text.
    pub(crate) fn reason(&self) -> String {
        let messages: Vec<&str> = self.reasons().into_iter().map(|(message, _)| message).collect();
        messages.join("\n")
    }

    /// Returns every failure with its place in the case, or why there is no verdict.
    pub(crate) fn reasons(&self) -> Vec<(&str, Option<&str>)> {
        let error = self.result.error.as_deref();
        if self.kind() == Kind::Errored {
            return vec![(error.unwrap_or("no verdict could be reached"), None)];
        }
        let failures = self.result.failures.iter();
        // The error repeats the first failure, but a timeout or another runner's result has no list.
        let alone = error.filter(|error| !failures.clone().any(|failure| failure.message == *error));
        let listed = failures.map(|failure| (failure.message.as_str(), Some(failure.pointer.as_str())));
        let reasons: Vec<_> = alone.map(|error| (error, None)).into_iter().chain(listed).collect();
        if reasons.is_empty() { vec![("failed without a reason", None)] } else { reasons }
    }
}
