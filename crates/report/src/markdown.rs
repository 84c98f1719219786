//! A Markdown summary for pull requests.
//!
//! Text from models and eval files cannot become markup: inline text uses character references, and longer text is in
//! fences that it cannot close.

use std::fmt::Write;

use karat_core::event::{ReportError, Reporter};
use karat_core::event::{RunEvent, RunTotals};
use karat_core::exit::ExitStatus;
use karat_core::gate::GateResult;
use karat_core::result::{Outcome, SkippedCase};
use karat_core::rubric::{RubricCaseResult, RubricOutcome, RubricSuite, RubricTotals};
use karat_core::run_report::{Matrix, MatrixCell, MatrixRow};
use karat_json::text::shorten;

use crate::call_alignment::AlignmentRenderer;
use crate::call_text::{call_text, no_calls_text};
use crate::console::rubric::percent;
use crate::destination::Destination;
use crate::duration::duration_text;
use crate::matrix::{BEST_LEGEND, best_value_line, figure_rows, matrix_of};
use crate::record::{
    CaseRecord, Kind, RunRecord, SuiteRecord, baseline_missing_texts, escape_invisible, group_by_reason,
    unreachable_text, unreported_calls_text,
};
use crate::security::security_line;
use crate::simulated_user::simulated_users_line;
use crate::transcript::transcript;
use crate::trials::{is_flaky, passed_trials, trials_line};

/// Maximum size of a summary in bytes. GitHub does not show more than 1 MiB.
pub const LIMIT: usize = 900_000;

/// Space for titles and notes about omissions after the last item that fits.
const RESERVE: usize = 2_000;

/// Maximum length of the text of a case, in characters.
const CASE_LIMIT: usize = 4_000;

/// Maximum lengths of the parts of that text, in characters.
const REASON_LIMIT: usize = 2_000;
const MESSAGE_LIMIT: usize = 300;
const ANSWER_LIMIT: usize = 600;

/// Maximum number of cases or calls that are listed in one line.
const MAX_INLINE_ITEMS: usize = 10;

/// Maximum length of a name, a description or a warning, in characters.
const INLINE_LIMIT: usize = 500;

/// Writes the summary at the end of the run.
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
            .map_err(|source| ReportError { target: format!("the Markdown report to {}", self.destination), source })
    }
}

/// Renders the summary in up to [`LIMIT`] bytes.
pub fn render(run: &RunRecord) -> String {
    render_within(run, LIMIT)
}

/// Renders the summary in up to `limit` bytes. The headline is always included.
pub fn render_within(run: &RunRecord, limit: usize) -> String {
    let cases: Vec<CaseRecord<'_>> = run.cases().collect();
    let of_kind = |kind: Kind| cases.iter().filter(move |case| case.kind() == kind);

    let mut page = Page { text: format!("## {} karat: {}\n", mark(&run.totals), totals_line(&run.totals)), limit };
    page.section("Gates", "", run.totals.gates.iter().map(gate));
    page.section("Regressions", "", of_kind(Kind::Regressed).map(regression));
    if let Some(matrix) = matrix_of(run) {
        matrix_sections(&matrix, &mut page);
    }
    if run.totals.trials.is_some() {
        page.section("Suites", TRIALS_TABLE_HEAD, run.suites.iter().map(|suite| table_row(suite, true)));
    } else {
        page.section("Suites", TABLE_HEAD, run.suites.iter().map(|suite| table_row(suite, false)));
    }
    page.section("Warnings", "", warnings(run).into_iter());
    let failures = if run.totals.regressions > 0 { "Other failures" } else { "Failures" };
    page.section(failures, "", of_kind(Kind::Failed).map(|case| details("❌", case)));
    let errors = group_by_reason(of_kind(Kind::Errored).copied());
    page.section("Errors: no verdict", "", errors.iter().map(|(first, others)| error_group(first, others)));
    let skipped = run.suites.iter().filter_map(|suite| suite.result.as_ref()).flat_map(|result| &result.skipped);
    page.section("Skipped", "", skipped.map(skipped_case));
    page.section("Rubrics", RUBRIC_HEAD, run.rubrics.iter().map(|suite| rubric_row(suite)));
    page.section("Rubrics: errors and lost points", "", run.rubrics.iter().flat_map(|suite| rubric_cases(suite)));
    page.text
}

/// Sections of text, up to a size limit.
struct Page {
    text: String,
    limit: usize,
}

impl Page {
    /// Adds a section with as many items as fit, and the number of those left out. Without items it adds nothing.
    fn section(&mut self, title: &str, head: &str, items: impl Iterator<Item = String>) {
        let mut items = items.peekable();
        if items.peek().is_none() {
            return;
        }
        let _ = write!(self.text, "\n### {title}\n\n{head}");
        let mut left_out = 0;
        for item in items {
            // After the first omitted item all are omitted, to avoid hidden gaps.
            if left_out > 0 || self.text.len() + item.len() + RESERVE > self.limit {
                left_out += 1;
            } else {
                self.text.push_str(&item);
            }
        }
        self.text.truncate(self.text.trim_end().len());
        self.text.push('\n');
        if left_out > 0 {
            let _ = writeln!(self.text, "\n_{left_out} more left out to limit the size of this report._");
        }
    }
}

/// Maximum number of cases in the matrix. If there are more, cases that passed everywhere are left out.
const MATRIX_LIMIT: usize = 300;

/// Adds the figures of the agents, and their outcomes by case.
fn matrix_sections(matrix: &Matrix, page: &mut Page) {
    let names: Vec<String> = matrix.agents.iter().map(|agent| code(&shorten(&agent.agent, 80))).collect();
    let line = "| --- |".to_owned() + &" ---: |".repeat(names.len());
    let rows = figure_rows(matrix, "–");
    let has_best = rows.iter().any(|row| row.best.contains(&true));
    let figures = rows.into_iter().map(|row| {
        let value =
            |(value, is_best): (&String, &bool)| if *is_best { format!("**{value}** \\*") } else { value.clone() };
        let values: Vec<String> = row.values.iter().zip(&row.best).map(value).collect();
        // Text between two dollar signs would be rendered as a formula.
        format!("| {} | {} |\n", row.name, values.join(" | ").replace('$', "&#36;"))
    });
    // Comes after the table and is never left out.
    let best = best_value_line(matrix, |agent| code(&shorten(agent, 80)));
    page.section("Agents", &format!("| | {} |\n{line}\n", names.join(" | ")), figures);
    if has_best {
        let _ = writeln!(page.text, "\n{}", BEST_LEGEND.replace('*', "\\*"));
    }
    let _ = writeln!(page.text, "\n{}", best.replace('$', "&#36;"));
    let is_short = matrix.rows.len() <= MATRIX_LIMIT;
    let rows: Vec<&MatrixRow> = matrix.rows.iter().filter(|row| is_short || !row.passed_everywhere()).collect();
    let lines = rows.iter().take(MATRIX_LIMIT).map(|row| {
        let cells: Vec<String> = row.cells.iter().map(|cell| matrix_cell(cell.as_ref())).collect();
        format!("| {} {} | {} |\n", code(&row.id), inline(&row.description), cells.join(" | "))
    });
    page.section("Cases", &format!("| Case | {} |\n{line}\n", names.join(" | ")), lines);
    let left_out = matrix.rows.len() - rows.len().min(MATRIX_LIMIT);
    if left_out > 0 {
        let did_not_pass = rows.len().saturating_sub(MATRIX_LIMIT);
        let passed = left_out - did_not_pass;
        let _ = writeln!(page.text, "\n_Not listed: {passed} that passed everywhere, {did_not_pass} that did not._");
    }
}

fn matrix_cell(cell: Option<&MatrixCell>) -> String {
    let Some(cell) = cell else {
        return "–".to_owned();
    };
    let mark = match cell.outcome {
        Outcome::Passed if cell.vacuous => "⚠️",
        Outcome::Passed => "✅",
        Outcome::Failed => "❌",
        Outcome::Errored => "❗",
    };
    match cell.trials {
        Some(trials) => format!("{mark} {}/{}", trials.passed, trials.total()),
        None => mark.to_owned(),
    }
}

const TABLE_HEAD: &str = "\
| Tool | Tier | Passed | Failed | Errored | Skipped assertions | Total time |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
";

const TRIALS_TABLE_HEAD: &str = "\
| Tool | Tier | Passed | Failed | Errored | Trials | Flaky | Skipped assertions | Total time |
| --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |
";

fn gate(result: &GateResult) -> String {
    let mark = match result.held {
        Some(true) => "✅",
        Some(false) => "❌",
        None => "❗",
    };
    let of = result.agent.as_ref().map(|agent| format!(" of {}", code(agent))).unwrap_or_default();
    format!("- {mark} {}{of}: {}\n", result.gate.name(), inline(&result.to_string()))
}

fn skipped_case(case: &SkippedCase) -> String {
    format!("- {} {}: {}\n", code(&case.id), inline(&case.description), inline(&shorten(&case.reason, INLINE_LIMIT)))
}

fn table_row(suite: &SuiteRecord, with_trials: bool) -> String {
    let (tool, tier) = (inline(&suite.with_agent(&suite.header.tool_name)), suite.header.tier);
    let Some(result) = &suite.result else {
        let trials = if with_trials { " – | – |" } else { "" };
        return format!("| {tool} | {tier} | – | – | – |{trials} – | not finished |\n");
    };
    let summary = &result.summary;
    let trials = match &summary.trials {
        Some(trials) => format!(" {} | {} |", inline(&trials_line(trials)), trials.flaky),
        None if with_trials => " – | – |".to_owned(),
        None => String::new(),
    };
    format!(
        "| {tool} | {tier} | {} | {} | {} |{trials} {} | {} |\n",
        summary.passed,
        summary.failed.saturating_sub(summary.errored),
        summary.errored,
        summary.skipped_assertions,
        duration_text(summary.total_duration_ms),
    )
}

const RUBRIC_HEAD: &str = "\
| Tool | Judge | Judged | Errored | Not run | Points |
| --- | --- | ---: | ---: | ---: | ---: |
";

fn rubric_row(suite: &RubricSuite) -> String {
    let tool = inline(&suite.tool_name);
    let result = match &suite.outcome {
        RubricOutcome::Skipped(reason) => return format!("| {tool} | skipped: {} | – | – | – | – |\n", inline(reason)),
        RubricOutcome::Result(result) => result,
    };
    let summary = &result.summary;
    let share = summary.score_share.map_or_else(|| "–".to_owned(), percent);
    format!(
        "| {tool} | {} | {} | {} | {} | {}/{} ({share}) |\n",
        inline(&result.judge.identity),
        summary.judged,
        summary.errored,
        summary.not_run,
        summary.score,
        summary.max_score,
    )
}

/// Returns the warnings of a rubric suite, and the cases below the best score.
fn rubric_cases(suite: &RubricSuite) -> Vec<String> {
    let Some(result) = suite.result() else {
        return Vec::new();
    };
    let warnings = result.warnings.iter().map(|text| format!("- ⚠️ {}: {}\n\n", code(&suite.path), inline(text)));
    let below = result.cases.iter().filter(|case| case.score != Some(case.max_score));
    warnings.chain(below.map(|case| rubric_case(suite, case))).collect()
}

fn rubric_case(suite: &RubricSuite, case: &RubricCaseResult) -> String {
    let (id, description) = (code(&case.id), inline(&case.description));
    let mark = case.score.map_or_else(|| "❗".to_owned(), |score| format!("{score}/{}", case.max_score));
    let mut reason = case.error.clone().unwrap_or_default();
    for dimension in &case.dimensions {
        let _ = writeln!(
            reason,
            "{} {}/{}: {}",
            dimension.dimension, dimension.score, dimension.max_score, dimension.reason
        );
    }
    let summary = format!("{mark} {id} {description}");
    let (location, reason) = (code(&suite.path), fenced(&reason));
    format!("<details>\n<summary>{}</summary>\n\n{location}\n\n{reason}\n</details>\n\n", summary.trim_end())
}

fn regression(case: &CaseRecord<'_>) -> String {
    format!(
        "**❌ {}** {}\n\n{}\n",
        code(&case.result.id),
        description_and_location(case),
        fenced(&reason_and_answer(case))
    )
}

fn details(mark: &str, case: &CaseRecord<'_>) -> String {
    let (id, description) = (code(&case.result.id), inline(&case.result.description));
    let trials = passed_trials(case.result).map(|passed| format!(" {passed}")).unwrap_or_default();
    let flaky = if is_flaky(case.result) { " flaky" } else { "" };
    let summary = format!("{mark} {id}{trials}{flaky} {description}");
    let (location, reason) = (code(&case.suite.with_agent(&case.location())), fenced(&reason_and_answer(case)));
    format!("<details>\n<summary>{}</summary>\n\n{location}\n\n{reason}\n</details>\n\n", summary.trim_end())
}

/// Renders a case that errored, with the ids of those that errored for the same reason.
fn error_group(first: &CaseRecord<'_>, others: &[CaseRecord<'_>]) -> String {
    let text = details("❗", first);
    if others.is_empty() {
        return text;
    }
    let ids: Vec<String> = others.iter().take(MAX_INLINE_ITEMS).map(|case| code(&case.result.id)).collect();
    let more = if others.len() > MAX_INLINE_ITEMS {
        format!(" and {} more", others.len() - MAX_INLINE_ITEMS)
    } else {
        String::new()
    };
    format!("{text}The same error in {} more: {}{more}\n\n", others.len(), ids.join(", "))
}

/// Returns the reasons of a case, followed by its message, answer and calls.
pub(crate) fn reason_and_answer(case: &CaseRecord<'_>) -> String {
    let result = case.result;
    let mut text = shorten(&case.reason(), REASON_LIMIT).into_owned();
    if !result.has_answer() {
        return text;
    }
    if !result.details.turns.is_empty() {
        let _ = write!(text, "\n\n{}", transcript(&result.details.turns, MESSAGE_LIMIT));
        if let Some(alignment) = &result.details.calls {
            let lines = AlignmentRenderer::PLAIN.lines(alignment, &result.details.tool_calls);
            let _ = write!(text, "\ncalls of the whole conversation:\n{}", lines.join("\n"));
        }
        return text;
    }
    let answer = if result.details.response.trim().is_empty() { "(empty)" } else { result.details.response.trim() };
    let _ = write!(text, "\n\nmessage: {}", shorten(&result.message, MESSAGE_LIMIT));
    let _ = write!(text, "\nanswer: {}", shorten(answer, ANSWER_LIMIT));
    if let Some(alignment) = &result.details.calls {
        let lines = AlignmentRenderer::PLAIN.lines(alignment, &result.details.tool_calls);
        let _ = write!(text, "\ncalls:\n{}", lines.join("\n"));
        return text;
    }
    let calls: Vec<String> = result
        .details
        .tool_calls
        .iter()
        .take(MAX_INLINE_ITEMS)
        .map(|call| shorten(&call_text(call, false), 200).into_owned())
        .collect();
    let more = result.details.tool_calls.len().saturating_sub(MAX_INLINE_ITEMS);
    let calls =
        if calls.is_empty() { no_calls_text(result.details.calls_unreported).to_owned() } else { calls.join("; ") };
    let _ = write!(text, "\ncalls: {calls}");
    if more > 0 {
        let _ = write!(text, "; and {more} more");
    }
    text
}

fn description_and_location(case: &CaseRecord<'_>) -> String {
    let location = code(&case.suite.with_agent(&case.location()));
    let description = inline(&case.result.description);
    if description.is_empty() { location } else { format!("{description} · {location}") }
}

fn warnings(run: &RunRecord) -> Vec<String> {
    let mut warnings = Vec::new();
    if run.totals.interrupted {
        warnings.push("- ⚠️ The run was interrupted.\n".to_owned());
    }
    let notes = run.totals.unreachable.iter().filter_map(unreachable_text);
    for text in notes.chain(unreported_calls_text(&run.totals)).chain(baseline_missing_texts(&run.totals)) {
        warnings.push(format!("- ⚠️ {}\n", inline(&text)));
    }
    for suite in &run.suites {
        let path = code(&suite.with_agent(&suite.header.path));
        let mut warn = |text: &str| warnings.push(format!("- ⚠️ {path}: {text}\n"));
        for text in suite.staleness().iter().chain(suite.warnings()) {
            warn(&inline(text));
        }
        for case in suite.cases().filter(CaseRecord::is_vacuous_pass) {
            let reason = case.result.vacuous_reason();
            warn(&format!("{} passed, but {reason}, so it proves nothing.", code(&case.result.id)));
        }
        for case in suite.cases() {
            for message in case.near_misses() {
                warn(&format!("{}: {}", code(&case.result.id), inline(&message)));
            }
        }
        match suite.not_run() {
            0 => {}
            1 => warn("1 selected case was not run."),
            count => warn(&format!("{count} selected cases were not run.")),
        }
    }
    warnings
}

/// Returns the symbol of a run. It is a warning if failures may have gone unnoticed.
fn mark(totals: &RunTotals) -> &'static str {
    if !totals.gates.is_empty() {
        return match totals.status() {
            ExitStatus::Success => "✅",
            ExitStatus::Failed => "❌",
            _ => "⚠️",
        };
    }
    if totals.failed > totals.errored || totals.regressions > 0 {
        "❌"
    } else if totals.errored + totals.not_run + totals.vacuous > 0
        || totals.rubric.as_ref().is_some_and(|rubric| rubric.errored + rubric.not_run > 0)
        || totals.interrupted
        || totals.cases == 0
    {
        "⚠️"
    } else {
        "✅"
    }
}

/// Returns the totals of a run in one line, most important first.
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
        (totals.skipped, "skipped"),
    ];
    parts.extend(rest.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")));
    if let Some(trials) = &totals.trials {
        parts.push(trials_line(trials));
        if trials.flaky > 0 {
            parts.push(format!("{} flaky", trials.flaky));
        }
    }
    parts.extend(totals.security.as_ref().map(security_line));
    parts.extend(totals.simulated_user.as_ref().map(simulated_users_line));
    let passed_or_failed = parts.join(", ");
    match totals.rubric.as_ref().map(rubric_totals_line) {
        Some(rubric) if totals.cases + totals.not_run + totals.skipped == 0 => rubric,
        Some(rubric) => format!("{passed_or_failed}; {rubric}"),
        None => passed_or_failed,
    }
}

fn rubric_totals_line(totals: &RubricTotals) -> String {
    let share = totals.score_share.map(|share| format!(" with {} of the points", percent(share)));
    let mut parts = vec![format!("rubrics: {} judged{}", totals.judged, share.unwrap_or_default())];
    let rest = [(totals.errored, "errored"), (totals.not_run, "not run"), (totals.skipped, "skipped")];
    parts.extend(rest.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")));
    parts.join(", ")
}

/// Escapes text as one line of plain text for use in a paragraph, a table or a tag.
///
/// Character references never form markup. A zero-width space prevents links and mentions.
fn inline(text: &str) -> String {
    const ZERO_WIDTH_SPACE: &str = "&#8203;";
    let text = escape_invisible(&shorten(text, INLINE_LIMIT));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(text.len());
    for (offset, character) in text.char_indices() {
        match character {
            '.' | '/' if is_inside_url(&text[..offset]) => {
                out.push_str(ZERO_WIDTH_SPACE);
                out.push(character);
            }
            ' ' | '.' | ',' | ';' | '/' | '-' | '+' | '=' | '%' | '?' => out.push(character),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' | '#' => {
                let _ = write!(out, "&#{};{ZERO_WIDTH_SPACE}", u32::from(character));
            }
            // Between letters it is not markup, and names such as `get_weather` stay readable.
            '_' if is_inside_word(&text, offset) => out.push('_'),
            _ if character.is_ascii_punctuation() => {
                let _ = write!(out, "&#{};", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out
}

/// Whether text ends with the start of a URL: `www` or `http:`.
fn is_inside_url(before: &str) -> bool {
    before.ends_with(':') || before.len() >= 3 && before.as_bytes()[before.len() - 3..].eq_ignore_ascii_case(b"www")
}

fn is_inside_word(text: &str, offset: usize) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    offset > 0 && is_letter(bytes.get(offset - 1)) && is_letter(bytes.get(offset + 1))
}

/// Escapes text like [`inline`], as code.
fn code(text: &str) -> String {
    format!("<code>{}</code>", inline(text))
}

/// Encloses text in fences that are longer than any run of backticks in it.
fn fenced(text: &str) -> String {
    let text = escape_invisible(&shorten(text, CASE_LIMIT));
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}
