//! The console summary of a run, in the form that the spec prescribes.

pub(crate) mod case_details;
mod matrix;
pub(crate) mod rubric;
mod summary;
mod totals;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use karat_core::assertion::NearMiss;
use karat_core::cost::dollars;
use karat_core::event::{ReportError, Reporter};
use karat_core::event::{RunEvent, RunTotals, SuiteHeader};
use karat_core::result::{CaseResult, Outcome, SuiteResult};

use self::summary::FailureSummary;
use self::totals::count_parts;
use crate::duration::duration_text;
use crate::record::{RunRecord, case_reasons};
use crate::security::{injection_text, outcome_name};
use crate::style::{Palette, Symbols};
use crate::terminal_text::{pad, printable, truncate, width, wrap, wrap_truncated};
use crate::trials::{is_flaky, passed_trials};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Every case, with its message, answer and calls.
    Full,
    /// Every case; those that did not pass with their message, answer and calls.
    Normal,
    /// Only totals, and cases that did not pass, are vacuous or have a near miss.
    Quiet,
}

#[derive(Debug, Clone, Copy)]
pub struct ConsoleSettings {
    /// The width of the terminal.
    pub columns: usize,
    pub symbols: Symbols,
    pub palette: Palette,
    pub verbosity: Verbosity,
}

/// Prints finished lines, above any progress bar.
pub type Output = Box<dyn FnMut(&str) -> io::Result<()> + Send>;

/// Prints cases in file order, as soon as they and those before them have finished.
pub struct ConsoleReporter {
    page: Page,
    output: Output,
    suites: Vec<Arc<SuiteHeader>>,
    /// The current suite.
    suite: usize,
    next: usize,
    is_header_printed: bool,
    /// The error of the last printed case, and the cases after it that errored for the same reason.
    repeated_error: Option<RepeatedError>,
    /// Whether a suite was left out, so that the totals are needed.
    is_suite_hidden: bool,
    failures: FailureSummary,
    /// Finished cases that wait for earlier ones.
    waiting: BTreeMap<(usize, usize), Arc<CaseResult>>,
    /// The run so far, if it has several agents, which are shown side by side at the end.
    matrix: Option<RunRecord>,
    /// Rendered output that is not printed yet.
    buffer: String,
}

impl ConsoleReporter {
    pub fn new(settings: ConsoleSettings, output: Output) -> Self {
        Self {
            page: Page { settings, layout: Layout::default(), has_annotations: false },
            output,
            suites: Vec::new(),
            suite: 0,
            next: 0,
            is_header_printed: false,
            repeated_error: None,
            is_suite_hidden: false,
            failures: FailureSummary::default(),
            waiting: BTreeMap::new(),
            matrix: None,
            buffer: String::new(),
        }
    }

    /// Omits the details of failures and the list at the end, which annotations in the same output repeat. Cases that
    /// are shown in full keep their details.
    #[must_use]
    pub fn with_annotations(mut self) -> Self {
        self.page.has_annotations = true;
        self
    }

    fn print_ready(&mut self, out: &mut String) {
        // Regressions are shown first, but are known only at the end.
        if self.suites.get(self.suite).is_some_and(|suite| suite.has_baseline) {
            return;
        }
        while let Some(case) = self.waiting.remove(&(self.suite, self.next)) {
            self.print_case(&case, false, out);
            self.next += 1;
        }
    }

    /// Prints a case, unless it is hidden or repeats the error of the previous case.
    fn print_case(&mut self, case: &CaseResult, is_regression: bool, out: &mut String) {
        if self.page.settings.verbosity == Verbosity::Quiet && case.is_plain_pass() && !case.has_near_miss() {
            return;
        }
        let error = case.error.as_ref().filter(|_| case.outcome == Outcome::Errored);
        if let Some(same) = &mut self.repeated_error
            && Some(&same.error) == error
        {
            same.others += 1;
            return;
        }
        self.finish_repeated_error(out);
        self.print_header(out);
        self.page.case(case, &self.suites[self.suite], is_regression, out);
        self.repeated_error = error.map(|error| RepeatedError { error: error.clone(), others: 0 });
    }

    /// Prints how many cases repeated the last error.
    fn finish_repeated_error(&mut self, out: &mut String) {
        if let Some(same) = self.repeated_error.take() {
            self.page.repeated_error(same.others, out);
        }
    }

    fn print_header(&mut self, out: &mut String) {
        if !self.is_header_printed {
            self.page.header(&self.suites[self.suite], out);
            self.is_header_printed = true;
        }
    }

    fn finish_suite(&mut self, result: &SuiteResult, out: &mut String) {
        self.failures.mark_regressions(self.suite, result);
        let regressions: HashSet<&str> = result.regressions.iter().map(String::as_str).collect();
        if !regressions.is_empty() || !result.new_passes.is_empty() {
            self.print_header(out);
            self.page.baseline_changes(result, out);
        }
        // An interrupted suite has gaps: show the cases after them as well.
        let rest: Vec<_> = self.waiting.range((self.suite, 0)..(self.suite + 1, 0)).map(|(key, _)| *key).collect();
        for key in rest {
            if let Some(case) = self.waiting.remove(&key) {
                self.print_case(&case, regressions.contains(case.id.as_str()), out);
            }
        }
        self.finish_repeated_error(out);
        let is_quiet = self.page.settings.verbosity == Verbosity::Quiet;
        if !result.skipped.is_empty() && !is_quiet {
            self.print_header(out);
            self.page.skipped(result, out);
        }
        let has_warnings = !self.suites[self.suite].staleness.is_empty() || !result.warnings.is_empty();
        // The totals are enough for a suite in which nothing ran, or of which nothing is shown.
        let is_hidden = !self.is_header_printed && (result.cases.is_empty() || is_quiet) && !has_warnings;
        if is_hidden {
            self.is_suite_hidden = true;
        } else {
            self.print_header(out);
            self.page.footer(result, &self.suites[self.suite], out);
        }
        self.suite += 1;
        self.next = 0;
        self.is_header_printed = false;
    }
}

impl Reporter for ConsoleReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        let mut out = std::mem::take(&mut self.buffer);
        if let RunEvent::RunStarted { suites, .. } = event {
            self.matrix = suites.iter().any(|suite| suite.agent.is_some()).then(RunRecord::default);
        }
        if let Some(run) = &mut self.matrix {
            run.observe(event);
        }
        match event {
            RunEvent::RunStarted { suites, .. } => {
                self.suites.clone_from(suites);
                self.page.layout = Layout::new(self.page.settings, suites);
            }
            RunEvent::CaseFinished { .. } | RunEvent::SuiteFinished { .. } if self.matrix.is_some() => {}
            RunEvent::CaseFinished { suite, index, result } => {
                self.failures.add(*suite, *index, result, &self.suites[*suite]);
                self.waiting.insert((*suite, *index), Arc::clone(result));
                self.print_ready(&mut out);
            }
            RunEvent::SuiteFinished { result, .. } => {
                self.finish_suite(result, &mut out);
                self.print_ready(&mut out);
            }
            RunEvent::RubricFinished { suite } => self.page.rubric(suite, &mut out),
            RunEvent::RunFinished { totals, .. } => {
                if let Some(run) = self.matrix.take() {
                    self.page.matrix(&run, &mut out);
                }
                self.page.failure_summary(std::mem::take(&mut self.failures), &mut out);
                self.page.unreachable(totals, &mut out);
                self.page.unreported_calls(totals, &mut out);
                self.page.baseline_missing(totals, &mut out);
                if self.suites.len() > 1 || self.is_suite_hidden {
                    self.page.totals(totals, &mut out);
                }
                if let Some(rubric) = totals.rubric.as_ref().filter(|rubric| rubric.suites + rubric.skipped_suites > 1)
                {
                    self.page.rubric_totals(rubric, &mut out);
                }
                self.page.gates(totals, &mut out);
            }
        }
        self.buffer = out;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ReportError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let printed = (self.output)(&self.buffer);
        self.buffer.clear();
        printed.map_err(|source| ReportError { target: "the summary".to_owned(), source })
    }
}

/// An error of several consecutive cases.
struct RepeatedError {
    error: String,
    /// The number of cases after the first.
    others: usize,
}

/// Width of durations.
const DURATION_WIDTH: usize = 7;
/// Minimum width of a frame.
const MIN_LINE_WIDTH: usize = 67;

/// The column widths, equal for all suites of a run.
#[derive(Default)]
struct Layout {
    id: usize,
    description: usize,
    /// Zero without repeated trials.
    trials: usize,
    line: usize,
}

impl Layout {
    /// Fits the columns to their content, so that lines stay short on a wide terminal.
    fn new(settings: ConsoleSettings, suites: &[Arc<SuiteHeader>]) -> Self {
        let widest = |columns: fn(&SuiteHeader) -> usize| suites.iter().map(|suite| columns(suite)).max().unwrap_or(0);
        let planned = widest(|suite| suite.trials);
        let trials = if planned > 1 { " / flaky".len() + 2 * planned.to_string().len() } else { 0 };
        // Two spaces, mark, space, id, two spaces, description, trials, space, duration.
        let fixed = 2 + width(settings.symbols.passed) + 1 + 2 + trials + 1 + DURATION_WIDTH;
        let available = settings.columns.saturating_sub(fixed);
        // Ids are never truncated, so that they can be copied.
        let id = widest(|suite| suite.id_columns);
        // The frame is at least as wide as the line of totals.
        let min_width = MIN_LINE_WIDTH.saturating_sub(fixed + id);
        let description = widest(|suite| suite.description_columns).max(min_width).min(available.saturating_sub(id));
        Self { id, description, trials, line: (fixed + id + description).min(settings.columns) }
    }
}

/// Renders lines.
struct Page {
    settings: ConsoleSettings,
    layout: Layout,
    /// Whether annotations of the failures follow in the same output.
    has_annotations: bool,
}

impl Page {
    fn header(&self, suite: &SuiteHeader, out: &mut String) {
        let Symbols { double_rule, dash, .. } = self.settings.symbols;
        let name = self.clean(&suite.tool_name);
        let start = double_rule.to_string().repeat(3);
        let title = format!("{start} {name} {dash} {} ", suite.tier.evals());
        let fill = double_rule.to_string().repeat(self.layout.line.saturating_sub(width(&title)));
        let _ = writeln!(out, "{}", self.settings.palette.bold(format_args!("{title}{fill}")));
    }

    fn case(&self, case: &CaseResult, suite: &SuiteHeader, is_regression: bool, out: &mut String) {
        let ConsoleSettings { symbols, palette, .. } = self.settings;
        let mark = match case.outcome {
            Outcome::Passed if case.vacuous => palette.warning(symbols.warning),
            Outcome::Passed => palette.success(symbols.passed),
            Outcome::Failed if is_regression => palette.alert(symbols.failed),
            Outcome::Failed => palette.failure(symbols.failed),
            Outcome::Errored => palette.error(symbols.errored),
        };
        let duration = duration_text(case.duration_ms);
        let Layout { id: id_width, description: text_width, trials: trials_width, .. } = self.layout;
        let id = self.clean(&case.id);
        let text = truncate(&self.clean(&case.description), text_width, symbols.ellipsis).into_owned();
        let mut trials = String::new();
        if trials_width > 0 {
            let passed = passed_trials(case).unwrap_or_default();
            let flaky = if is_flaky(case) { " flaky" } else { "" };
            let column = pad(&format!(" {passed}{flaky}"), trials_width);
            trials = if is_flaky(case) { palette.warning(column) } else { column };
        }
        let _ = writeln!(
            out,
            "  {mark} {}  {}{trials} {}",
            pad(&id, id_width),
            pad(&text, text_width),
            palette.dim(format_args!("{duration:>DURATION_WIDTH$}")),
        );
        self.reasons(case, suite, is_regression, out);
        self.case_details(case, out);
    }

    fn repeated_error(&self, others: usize, out: &mut String) {
        if others > 0 {
            let mark = self.settings.palette.error(self.settings.symbols.errored);
            let cases = if others == 1 { "1 more case".to_owned() } else { format!("{others} more cases") };
            let _ = writeln!(out, "  {mark} {cases} with the same error");
        }
    }

    fn skipped(&self, result: &SuiteResult, out: &mut String) {
        let ConsoleSettings { symbols, palette, .. } = self.settings;
        for case in &result.skipped {
            let text = format!("{}  {}", self.clean(&case.id), self.clean(&case.description));
            let _ = writeln!(out, "  {} {}", palette.dim(symbols.dash), text.trim_end());
            self.reason(&format!("skipped: {}", case.reason), out);
        }
    }

    fn reasons(&self, case: &CaseResult, suite: &SuiteHeader, is_regression: bool, out: &mut String) {
        if case.vacuous && case.outcome == Outcome::Passed {
            self.reason(&format!("{}, so this proves nothing", case.vacuous_reason()), out);
        }
        for (index, (message, _)) in case_reasons(case, suite).iter().enumerate() {
            let prefix = match case.outcome {
                Outcome::Errored => "error: ",
                _ if is_regression && index == 0 => "regression: ",
                _ => "",
            };
            self.reason(&format!("{prefix}{message}"), out);
        }
        self.security_reasons(case, out);
        let near_misses: BTreeSet<String> =
            case.all_details().flat_map(|details| &details.near_misses).map(NearMiss::message).collect();
        for message in near_misses {
            self.below_case(self.settings.symbols.warning, &message, out);
        }
    }

    /// Says which part failed, and what the injections of a failed part try.
    fn security_reasons(&self, case: &CaseResult, out: &mut String) {
        let Some(security) = case.details.security.as_ref().filter(|_| case.outcome != Outcome::Passed) else {
            return;
        };
        let safety = security.safety.map_or("not asserted", outcome_name);
        self.reason(&format!("utility: {}; safety: {safety}", outcome_name(security.utility)), out);
        if security.safety == Some(Outcome::Failed) {
            for injection in &security.injections {
                self.reason(&format!("attack: {}", injection_text(injection)), out);
            }
        }
    }

    fn reason(&self, text: &str, out: &mut String) {
        self.below_case(self.settings.symbols.arrow, text, out);
    }

    /// Prints a line below a case, after a symbol.
    fn below_case(&self, symbol: &str, text: &str, out: &mut String) {
        let indent = " ".repeat(5 + width(symbol));
        let clean = self.clean(text);
        let columns = self.settings.columns.saturating_sub(indent.len()).max(20);
        let lines = wrap_truncated(&clean, columns, self.settings.symbols.ellipsis);
        for (index, line) in lines.iter().enumerate() {
            let start = if index == 0 { format!("    {symbol} ") } else { indent.clone() };
            let _ = writeln!(out, "{start}{line}");
        }
    }

    fn footer(&self, result: &SuiteResult, suite: &SuiteHeader, out: &mut String) {
        let ConsoleSettings { columns, symbols, palette, .. } = self.settings;
        let _ = writeln!(out, "{}", symbols.rule.to_string().repeat(self.layout.line));
        let summary = &result.summary;
        let mut totals = RunTotals::default();
        totals.add(result);
        let mut parts = count_parts(&totals, palette);
        parts.push(format!("{} total", duration_text(summary.total_duration_ms)));
        parts.extend(cost_text(result));
        self.numbers("  ", &parts, out);
        self.trials(&totals, "  ", out);
        self.security(&totals, out);
        let warning = palette.warning(symbols.warning);
        for staleness in &suite.staleness {
            let _ = writeln!(out, "  {warning} {}", self.clean(&staleness.console_line()));
        }
        for text in &result.warnings {
            let indent = 3 + width(symbols.warning);
            let lines = wrap(&self.clean(text), columns.saturating_sub(indent).max(20));
            let joined = lines.join(&format!("\n{}", " ".repeat(indent)));
            let _ = writeln!(out, "  {warning} {joined}");
        }
        out.push('\n');
    }

    /// Shows regressions and new passes since the baseline.
    fn baseline_changes(&self, result: &SuiteResult, out: &mut String) {
        let palette = self.settings.palette;
        let Some(baseline) = &result.baseline_run_id else {
            return;
        };
        if !result.regressions.is_empty() {
            let count = result.regressions.len();
            let title = format!("{count} regression{} since {}", plural(count), self.clean(baseline));
            let _ = writeln!(out, "  {}", palette.alert(title));
        }
        if !result.new_passes.is_empty() {
            let ids = self.clean(&result.new_passes.join(", "));
            let count = result.new_passes.len();
            let text = format!("{count} new pass{}: {ids}", if count == 1 { "" } else { "es" });
            let lines = wrap(&text, self.settings.columns.saturating_sub(4).max(20));
            let _ = writeln!(out, "  {}", palette.success(lines.join("\n    ")));
        }
    }

    fn clean(&self, text: &str) -> String {
        let text = printable(text);
        if !self.settings.symbols.ascii || text.is_ascii() {
            return text.into_owned();
        }
        text.chars()
            .map(|character| match character {
                '—' | '–' => '-',
                '→' => '>',
                '…' => '.',
                '‘' | '’' => '\'',
                '“' | '”' => '"',
                plain if plain.is_ascii() => plain,
                _ => '?',
            })
            .collect()
    }
}

/// Returns the cost of a suite, or a lower bound if the cost of some answers is unknown.
fn cost_text(result: &SuiteResult) -> Option<String> {
    if let Some(cost) = result.summary.estimated_cost_usd {
        return Some(dollars(cost));
    }
    let usages = result.cases.iter().flat_map(|case| case.all_details()).filter_map(|details| details.usage.as_ref());
    let known: f64 = usages.filter_map(|usage| usage.cost_usd).sum();
    (known > 0.0).then(|| format!("at least {}", dollars(known)))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
