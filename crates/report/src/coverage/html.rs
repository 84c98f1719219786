//! Coverage as a page: one file that needs nothing else, fetches nothing and runs nothing.

use std::collections::HashMap;
use std::io;

use askama::Template;
use karat_core::case::NO_TOOL;
use karat_tools::coverage::{Amount, ConfusedPair, ConfusionMatrix, Coverage, DifficultySpread, Part, ToolCoverage};

use super::{Figure, Section, State, counted, figures, incomplete, left_out, nothing, percent, sections, shown_tool};
use crate::terminal_text::{cut, cut_middle, printable};

/// How many tools the table shows.
const MOST_TOOLS: usize = 1000;
/// How many lines tell of one thing that is missing.
const MOST_LINES: usize = 15;
/// How many confused pairs are listed.
const MOST_PAIRS: usize = 20;
/// How many tools the matrix shows.
const MOST_COLUMNS: usize = 24;
/// How long a tool's name is shown, in columns.
const LONGEST_NAME: usize = 48;
/// How long the name above a column of the matrix is.
const LONGEST_HEAD: usize = 28;
/// How long a line is.
const LONGEST_LINE: usize = 300;

const STYLE: &str = include_str!("../../templates/coverage.css");
/// What the page's policy knows the style by; a test compares it.
const STYLE_HASH: &str = "sha256-PFHX/n+1HK90Xkiija++6oYARe4nMKb7Me969g3OZTs=";

/// Returns the coverage as one HTML file.
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
            more_tools: tools.len().saturating_sub(MOST_TOOLS),
            tools: tools.into_iter().take(MOST_TOOLS).map(|tool| ToolView::of(tool, has_map)).collect(),
            confusion: coverage.confusion.as_ref().map(ConfusionView::of),
        }
    }
}

/// A name that may be too long to be shown.
struct Name {
    text: String,
    /// More of it, where it was cut.
    title: String,
}

impl Name {
    fn of(name: &str, longest: usize) -> Self {
        let clean = printable(name);
        let text = cut_middle(&clean, longest, "…").into_owned();
        let title = if text == *clean { String::new() } else { cut(&clean, LONGEST_LINE, "…").into_owned() };
        Self { text, title }
    }

    fn of_tool(name: &str, longest: usize) -> Self {
        Self::of(shown_tool(name), longest)
    }
}

impl State {
    fn class(self) -> &'static str {
        match self {
            State::Whole => "whole",
            State::Nothing => "nothing",
            State::Partial => "partial",
            State::Missing => "missing",
            State::Unknown => "unknown",
        }
    }

    /// Says what the colour says.
    fn word(self) -> &'static str {
        match self {
            State::Whole => "complete",
            State::Nothing | State::Partial => "",
            State::Missing => "required",
            State::Unknown => "not known",
        }
    }
}

struct FigureView {
    name: &'static str,
    number: String,
    what: &'static str,
    class: &'static str,
    word: &'static str,
    percent: usize,
    fill: &'static str,
}

impl FigureView {
    fn of(figure: &Figure, has_map: bool) -> Self {
        let Part { count, of } = figure.part;
        let is_nothing = figure.state == State::Nothing;
        let what = if is_nothing { nothing(figure.requirement, has_map) } else { figure.what };
        let bar = Bar::of(count, of);
        Self {
            name: figure.requirement.name(),
            number: bar.text,
            what,
            class: figure.state.class(),
            word: figure.state.word(),
            percent: bar.percent,
            fill: bar.fill,
        }
    }
}

struct GapView {
    class: &'static str,
    word: &'static str,
    title: String,
    advice: &'static str,
    lines: Vec<String>,
    more: usize,
}

impl GapView {
    fn of(section: &Section) -> Self {
        let line = |line: &String| cut(&printable(line), LONGEST_LINE, "…").into_owned();
        Self {
            class: section.state.class(),
            word: section.state.word(),
            title: section.title.clone(),
            advice: section.advice,
            lines: section.lines.iter().take(MOST_LINES).map(line).collect(),
            more: section.lines.len().saturating_sub(MOST_LINES),
        }
    }
}

/// How long a bar is, and how it is painted.
struct Bar {
    text: String,
    percent: usize,
    fill: &'static str,
}

impl Bar {
    fn of(count: usize, wanted: usize) -> Self {
        if (count, wanted) == (0, 0) {
            return Self { text: "–".to_owned(), percent: 0, fill: "partial" };
        }
        let percent = (100 * count).checked_div(wanted).unwrap_or(100).min(100);
        Self { text: format!("{count}/{wanted}"), percent, fill: if percent == 100 { "whole" } else { "partial" } }
    }

    fn of_amount(Amount { count, wanted }: Amount) -> Self {
        Self::of(count, wanted)
    }

    fn of_part(Part { count, of }: Part) -> Self {
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
            name: Name::of(&tool.name, LONGEST_NAME),
            notes,
            amounts: amounts.into_iter().map(Bar::of_amount).collect(),
            spread: tool.spread.map(SpreadView::of),
            parts: parts.into_iter().map(Bar::of_part).collect(),
            regression: tool.regression,
            rubric: tool.rubric,
        }
    }
}

/// Three parts that fill a bar.
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
        let whole = |share: f64| (share * 100.0).round() as u32;
        let (first, start_of_third) = (whole(spread.straightforward), whole(spread.straightforward + spread.ambiguous));
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
        let shown = &tools[..tools.len().min(MOST_COLUMNS)];
        let pairs: HashMap<(&str, &str), &ConfusedPair> =
            matrix.worst.iter().map(|pair| ((pair.expected.as_str(), pair.called.as_str()), pair)).collect();
        // What was never expected has no row, what was never called no column.
        let is_there = |expected: &str, called: &str| {
            pairs.contains_key(&(expected, called)) || expected == called && matrix.count(expected, called) > 0
        };
        let expected = shown.iter().filter(|expected| shown.iter().any(|called| is_there(expected, called)));
        let called: Vec<&&str> =
            shown.iter().filter(|called| shown.iter().any(|expected| is_there(expected, called))).collect();
        let row = |expected: &&str| RowView {
            name: Name::of_tool(expected, LONGEST_NAME),
            cells: called.iter().map(|called| cell(matrix, expected, called, &pairs)).collect(),
        };
        let answers = usize::try_from(matrix.answers).unwrap_or(usize::MAX);
        Self {
            has_answers: answers > 0,
            source: source(matrix, answers),
            left_out: left_out(&matrix.left_out).join("; "),
            pairs: matrix.worst.iter().take(MOST_PAIRS).map(PairView::of).collect(),
            more_pairs: matrix.worst.len().saturating_sub(MOST_PAIRS),
            heads: called.iter().map(|tool| Name::of_tool(tool, LONGEST_HEAD)).collect(),
            rows: expected.map(row).collect(),
            more_tools: tools.len() - shown.len(),
        }
    }
}

/// Says where the answers are from.
fn source(matrix: &ConfusionMatrix, answers: usize) -> String {
    let results = counted(matrix.results, "stored result", "stored results");
    let by = match matrix.agents.as_slice() {
        [] => String::new(),
        [agent] => format!(", given by {}", cut(&printable(agent), LONGEST_NAME, "…")),
        agents => format!(", given by {} agents", agents.len()),
    };
    format!("{} of {results}{by}.", counted(answers, "answer", "answers"))
}

impl PairView {
    fn of(pair: &ConfusedPair) -> Self {
        let is_between_tools = pair.expected != NO_TOOL && pair.called != NO_TOOL;
        Self {
            expected: Name::of_tool(&pair.expected, LONGEST_NAME),
            called: Name::of_tool(&pair.called, LONGEST_NAME),
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
    let name = |name: &str| Name::of_tool(name, LONGEST_NAME).text;
    CellView {
        class: heat(pair.rate),
        text: pair.count.to_string(),
        title: format!("expected {}, called {}: {}", name(expected), name(called), percent(pair.rate)),
    }
}

/// Returns how red a cell is.
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
    fn the_policy_allows_the_style_and_no_other() {
        assert_eq!(STYLE_HASH, format!("sha256-{}", STANDARD.encode(Sha256::digest(STYLE))));
    }
}
