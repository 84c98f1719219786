//! Coverage as a self-contained HTML page without scripts or requests.

use std::collections::HashMap;
use std::io;

use askama::Template;
use karat_cases::NO_TOOL;
use karat_tools::coverage::{Amount, ConfusedPair, ConfusionMatrix, Coverage, DifficultySpread, Ratio, ToolCoverage};

use super::{
    Figure, Section, State, counted, figures, incomplete, left_out, not_applicable, percent, sections, tool_label,
};
use crate::terminal_text::{printable, truncate, truncate_middle};

/// Maximum number of tools in the table.
const MAX_TOOLS: usize = 1000;
/// Maximum number of lines of a section.
const MAX_LINES: usize = 15;
/// Maximum number of confused pairs.
const MAX_PAIRS: usize = 20;
/// Maximum number of tools in the matrix.
const MAX_COLUMNS: usize = 24;
/// Maximum width of a tool's name.
const MAX_NAME_WIDTH: usize = 48;
/// Maximum width of a column head of the matrix.
const MAX_HEAD_WIDTH: usize = 28;
/// Maximum width of a line.
const MAX_LINE_WIDTH: usize = 300;

const STYLE: &str = include_str!("../../templates/coverage.css");
/// The hash of the style in the page's content security policy; checked by a test.
const STYLE_HASH: &str = "sha256-PFHX/n+1HK90Xkiija++6oYARe4nMKb7Me969g3OZTs=";

/// Renders the coverage as an HTML page.
pub fn coverage_page(coverage: &Coverage) -> io::Result<String> {
    Page::of(coverage).render().map_err(io::Error::other)
}

#[derive(Template)]
#[template(path = "coverage.html")]
struct Page {
    style: &'static str,
    style_hash: &'static str,
    tools_counted: String,
    suites_counted: String,
    figures: Vec<FigureView>,
    gaps: Vec<GapView>,
    has_map: bool,
    tools: Vec<ToolView>,
    more_tools: usize,
    confusion: Option<ConfusionView>,
}

impl Page {
    fn of(coverage: &Coverage) -> Self {
        let totals = &coverage.totals;
        let at_least = if coverage.registry.complete { "" } else { "at least " };
        let complete = coverage.tools.iter().filter(|tool| tool.complete);
        let tools: Vec<&ToolCoverage> = incomplete(coverage).into_iter().chain(complete).collect();
        let has_map = coverage.overlap_map_version.is_some();
        Self {
            style: STYLE,
            style_hash: STYLE_HASH,
            tools_counted: format!("{at_least}{}", counted(coverage.registry.tools, "tool", "tools")),
            suites_counted: format!(
                "by {} with {}: {} golden, {} labeled, {} regression, {} rubric{}",
                counted(totals.files, "eval file", "eval files"),
                counted(totals.cases, "case", "cases"),
                totals.golden_cases,
                totals.labeled_cases,
                totals.regression_cases,
                totals.rubric_cases,
                if totals.other_cases > 0 { format!(", {} other", totals.other_cases) } else { String::new() }
            ),
            figures: figures(coverage).iter().map(|figure| FigureView::of(figure, has_map)).collect(),
            gaps: sections(coverage).iter().map(GapView::of).collect(),
            has_map,
            more_tools: tools.len().saturating_sub(MAX_TOOLS),
            tools: tools.into_iter().take(MAX_TOOLS).map(|tool| ToolView::of(tool, has_map)).collect(),
            confusion: coverage.confusion.as_ref().map(ConfusionView::of),
        }
    }
}

/// A name, possibly truncated.
struct Name {
    text: String,
    /// The longer name, if it was truncated.
    title: String,
}

impl Name {
    fn new(name: &str, max_width: usize) -> Self {
        let clean = printable(name);
        let text = truncate_middle(&clean, max_width, "…").into_owned();
        let title = if text == *clean { String::new() } else { truncate(&clean, MAX_LINE_WIDTH, "…").into_owned() };
        Self { text, title }
    }

    fn of_tool(name: &str, max_width: usize) -> Self {
        Self::new(tool_label(name), max_width)
    }
}

impl State {
    fn class(self) -> &'static str {
        match self {
            State::Complete => "whole",
            State::NotApplicable => "nothing",
            State::Partial => "partial",
            State::Missing => "missing",
            State::Unknown => "unknown",
        }
    }

    /// Returns the label that goes with the colour.
    fn label(self) -> &'static str {
        match self {
            State::Complete => "complete",
            State::NotApplicable | State::Partial => "",
            State::Missing => "required",
            State::Unknown => "unknown",
        }
    }
}

struct FigureView {
    name: &'static str,
    number: String,
    description: &'static str,
    class: &'static str,
    label: &'static str,
    percent: usize,
    fill: &'static str,
}

impl FigureView {
    fn of(figure: &Figure, has_map: bool) -> Self {
        let Ratio { count, of } = figure.part;
        let is_not_applicable = figure.state == State::NotApplicable;
        let description =
            if is_not_applicable { not_applicable(figure.requirement, has_map) } else { figure.description };
        let bar = Bar::of(count, of);
        Self {
            name: figure.requirement.name(),
            number: bar.text,
            description,
            class: figure.state.class(),
            label: figure.state.label(),
            percent: bar.percent,
            fill: bar.fill,
        }
    }
}

struct GapView {
    class: &'static str,
    label: &'static str,
    title: String,
    advice: &'static str,
    lines: Vec<String>,
    more: usize,
}

impl GapView {
    fn of(section: &Section) -> Self {
        let line = |line: &String| truncate(&printable(line), MAX_LINE_WIDTH, "…").into_owned();
        Self {
            class: section.state.class(),
            label: section.state.label(),
            title: section.title.clone(),
            advice: section.advice,
            lines: section.lines.iter().take(MAX_LINES).map(line).collect(),
            more: section.lines.len().saturating_sub(MAX_LINES),
        }
    }
}

/// The length and style of a bar.
struct Bar {
    text: String,
    percent: usize,
    fill: &'static str,
}

impl Bar {
    fn of(count: usize, target: usize) -> Self {
        if (count, target) == (0, 0) {
            return Self { text: "–".to_owned(), percent: 0, fill: "partial" };
        }
        let percent = (100 * count).checked_div(target).unwrap_or(100).min(100);
        Self { text: format!("{count}/{target}"), percent, fill: if percent == 100 { "whole" } else { "partial" } }
    }

    fn of_amount(Amount { count, wanted }: Amount) -> Self {
        Self::of(count, wanted)
    }

    fn of_part(Ratio { count, of }: Ratio) -> Self {
        Self::of(count, of)
    }
}

struct Note {
    text: String,
    class: &'static str,
}

struct ToolView {
    name: Name,
    notes: Vec<Note>,
    amounts: Vec<Bar>,
    spread: Option<SpreadView>,
    parts: Vec<Bar>,
    regression: usize,
    rubric: usize,
}

impl ToolView {
    fn of(tool: &ToolCoverage, has_map: bool) -> Self {
        let mut notes = Vec::new();
        if tool.never_tested {
            notes.push(Note { text: "never tested".to_owned(), class: "missing" });
        }
        if !tool.stale_files.is_empty() {
            let text = counted(tool.stale_files.len(), "stale file", "stale files");
            notes.push(Note { text, class: "partial" });
        }
        if tool.complete {
            notes.push(Note { text: "complete".to_owned(), class: "whole" });
        }
        let amounts = [tool.golden, tool.straightforward, tool.ambiguous, tool.edge];
        let parts = if has_map { vec![tool.overlaps, tool.clusters] } else { Vec::new() };
        Self {
            name: Name::new(&tool.name, MAX_NAME_WIDTH),
            notes,
            amounts: amounts.into_iter().map(Bar::of_amount).collect(),
            spread: tool.spread.map(SpreadView::of),
            parts: parts.into_iter().map(Bar::of_part).collect(),
            regression: tool.regression,
            rubric: tool.rubric,
        }
    }
}

/// The three parts of a bar.
struct SpreadView {
    text: String,
    first: u32,
    second: u32,
    start_of_third: u32,
    third: u32,
}

impl SpreadView {
    fn of(spread: DifficultySpread) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is between 0 and 1")]
        let percent = |share: f64| (share * 100.0).round() as u32;
        let (first, start_of_third) =
            (percent(spread.straightforward), percent(spread.straightforward + spread.ambiguous));
        let (second, third) = (start_of_third - first, 100_u32.saturating_sub(start_of_third));
        Self { text: format!("{first}·{second}·{third} %"), first, second, start_of_third, third }
    }
}

struct ConfusionView {
    has_answers: bool,
    source: String,
    left_out: String,
    pairs: Vec<PairView>,
    more_pairs: usize,
    heads: Vec<Name>,
    rows: Vec<RowView>,
    more_tools: usize,
}

struct PairView {
    expected: Name,
    called: Name,
    count: u64,
    rate: String,
    declared: &'static str,
}

struct RowView {
    name: Name,
    cells: Vec<CellView>,
}

struct CellView {
    class: &'static str,
    text: String,
    title: String,
}

impl ConfusionView {
    fn of(matrix: &ConfusionMatrix) -> Self {
        let tools = matrix.tools();
        let columns = &tools[..tools.len().min(MAX_COLUMNS)];
        let pairs: HashMap<(&str, &str), &ConfusedPair> =
            matrix.worst.iter().map(|pair| ((pair.expected.as_str(), pair.called.as_str()), pair)).collect();
        // Tools that were never expected have no row, and tools that were never called have no column.
        let has_count = |expected: &str, called: &str| {
            pairs.contains_key(&(expected, called)) || expected == called && matrix.count(expected, called) > 0
        };
        let expected = columns.iter().filter(|expected| columns.iter().any(|called| has_count(expected, called)));
        let called: Vec<&&str> =
            columns.iter().filter(|called| columns.iter().any(|expected| has_count(expected, called))).collect();
        let row = |expected: &&str| RowView {
            name: Name::of_tool(expected, MAX_NAME_WIDTH),
            cells: called.iter().map(|called| cell(matrix, expected, called, &pairs)).collect(),
        };
        let answers = usize::try_from(matrix.answers).unwrap_or(usize::MAX);
        Self {
            has_answers: answers > 0,
            source: source(matrix, answers),
            left_out: left_out(&matrix.left_out).join("; "),
            pairs: matrix.worst.iter().take(MAX_PAIRS).map(PairView::of).collect(),
            more_pairs: matrix.worst.len().saturating_sub(MAX_PAIRS),
            heads: called.iter().map(|tool| Name::of_tool(tool, MAX_HEAD_WIDTH)).collect(),
            rows: expected.map(row).collect(),
            more_tools: tools.len() - columns.len(),
        }
    }
}

/// Describes the source of the answers.
fn source(matrix: &ConfusionMatrix, answers: usize) -> String {
    let results = counted(matrix.results, "stored result", "stored results");
    let by = match matrix.agents.as_slice() {
        [] => String::new(),
        [agent] => format!(", given by {}", truncate(&printable(agent), MAX_NAME_WIDTH, "…")),
        agents => format!(", given by {} agents", agents.len()),
    };
    format!("{} of {results}{by}.", counted(answers, "answer", "answers"))
}

impl PairView {
    fn of(pair: &ConfusedPair) -> Self {
        let is_between_tools = pair.expected != NO_TOOL && pair.called != NO_TOOL;
        Self {
            expected: Name::of_tool(&pair.expected, MAX_NAME_WIDTH),
            called: Name::of_tool(&pair.called, MAX_NAME_WIDTH),
            count: pair.count,
            rate: percent(pair.rate),
            declared: match (is_between_tools, pair.declared) {
                (false, _) => "",
                (true, true) => "declared",
                (true, false) => "not declared",
            },
        }
    }
}

fn cell(
    matrix: &ConfusionMatrix,
    expected: &str,
    called: &str,
    pairs: &HashMap<(&str, &str), &ConfusedPair>,
) -> CellView {
    if expected == called {
        let count = matrix.count(expected, called);
        if count > 0 {
            return CellView { class: "right", text: count.to_string(), title: String::new() };
        }
    }
    let Some(pair) = pairs.get(&(expected, called)) else {
        return CellView { class: "zero", text: "·".to_owned(), title: String::new() };
    };
    let name = |name: &str| Name::of_tool(name, MAX_NAME_WIDTH).text;
    CellView {
        class: heat(pair.rate),
        text: pair.count.to_string(),
        title: format!("expected {}, called {}: {}", name(expected), name(called), percent(pair.rate)),
    }
}

/// Returns the CSS class for the rate of a confusion.
fn heat(rate: f64) -> &'static str {
    match rate {
        rate if rate >= 0.5 => "heat-5",
        rate if rate >= 0.25 => "heat-4",
        rate if rate >= 0.1 => "heat-3",
        rate if rate >= 0.03 => "heat-2",
        _ => "heat-1",
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_has_the_hash_of_the_style() {
        assert_eq!(STYLE_HASH, format!("sha256-{}", STANDARD.encode(Sha256::digest(STYLE))));
    }
}
