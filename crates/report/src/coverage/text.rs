//! Coverage for the terminal.

use std::fmt::Write as _;

use karat_tools::coverage::{Amount, ConfusionMatrix, Coverage, Ratio, ToolCoverage};

use super::{State, counted, figures, incomplete, left_out, not_applicable, percent, sections, tool_label};
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{pad, printable, truncate, truncate_middle, width, wrap};

/// Maximum number of tools in the table.
const MAX_TOOLS: usize = 20;
/// Maximum number of lines of a section.
const MAX_LINES: usize = 8;
/// Maximum number of confused pairs.
const MAX_PAIRS: usize = 10;
/// Maximum number of tools in the matrix.
const MAX_COLUMNS: usize = 9;
/// Space between two columns.
const GAP: usize = 2;
/// Minimum width of names.
const MIN_NAME_WIDTH: usize = 12;

/// Renders the coverage for a terminal.
pub fn coverage_text(coverage: &Coverage, settings: ConsoleSettings) -> String {
    let page = Page { coverage, settings };
    let is_quiet = settings.verbosity == Verbosity::Quiet;
    let mut out = String::new();
    page.summary(&mut out);
    if !is_quiet {
        page.table(&mut out);
    }
    page.missing(is_quiet, &mut out);
    if !is_quiet {
        page.confusion(&mut out);
    }
    out
}

struct Page<'p> {
    coverage: &'p Coverage,
    settings: ConsoleSettings,
}

impl Page<'_> {
    fn clean(&self, text: &str) -> String {
        let text = printable(text);
        if !self.settings.symbols.ascii {
            return text.into_owned();
        }
        text.chars().map(|character| if character.is_ascii() { character } else { '?' }).collect()
    }

    fn mark(&self, state: State) -> String {
        let (symbols, palette) = (self.settings.symbols, self.settings.palette);
        let mark = |text: &str| pad(text.trim_end(), self.mark_width());
        match state {
            State::Complete => palette.success(mark(symbols.passed)),
            State::NotApplicable => mark(symbols.dash),
            State::Partial => palette.warning(mark(symbols.warning)),
            State::Missing => palette.failure(mark(symbols.failed)),
            State::Unknown => palette.error(mark(symbols.errored)),
        }
    }

    fn mark_width(&self) -> usize {
        let symbols = self.settings.symbols;
        [symbols.passed, symbols.warning, symbols.failed, symbols.errored]
            .map(|mark| width(mark.trim_end()))
            .into_iter()
            .max()
            .unwrap_or(1)
    }

    fn summary(&self, out: &mut String) {
        let totals = &self.coverage.totals;
        let at_least = if self.coverage.registry.complete { "" } else { "at least " };
        let title = format!(
            "Coverage of {at_least}{} by {}, {}",
            counted(self.coverage.registry.tools, "tool", "tools"),
            counted(totals.files, "eval file", "eval files"),
            counted(totals.cases, "case", "cases"),
        );
        let _ = writeln!(out, "{}\n", self.settings.palette.bold(title));
        let figures = figures(self.coverage);
        let numbers: Vec<String> = figures.iter().map(|figure| part(figure.part)).collect();
        let widest = numbers.iter().map(|number| width(number)).max().unwrap_or_default();
        for (figure, number) in figures.iter().zip(&numbers) {
            let number = if figure.state == State::NotApplicable { "" } else { number };
            let has_map = self.coverage.overlap_map_version.is_some();
            let is_not_applicable = figure.state == State::NotApplicable;
            let description =
                if is_not_applicable { not_applicable(figure.requirement, has_map) } else { figure.description };
            let name = pad(figure.requirement.name(), 8);
            let fill = " ".repeat(widest.saturating_sub(width(number)));
            let mark = self.mark(figure.state);
            let _ = writeln!(out, "  {mark} {name}  {fill}{number}  {}", self.settings.palette.dim(description));
        }
    }

    fn table(&self, out: &mut String) {
        let tools = incomplete(self.coverage);
        let complete = self.coverage.tools.len() - tools.len();
        if !tools.is_empty() {
            out.push('\n');
            Table::new(self, &tools[..tools.len().min(MAX_TOOLS)]).write(out);
            self.more(tools.len(), MAX_TOOLS, out);
        }
        if complete > 0 {
            let line = format!("{} complete", counted(complete, "tool is", "tools are"));
            let _ = writeln!(out, "\n  {} {line}", self.mark(State::Complete));
        }
    }

    fn more(&self, count: usize, printed: usize, out: &mut String) {
        if count > printed {
            let ellipsis = self.settings.symbols.ellipsis;
            let _ = writeln!(out, "    {ellipsis} and {} more (pass --format json to list all)", count - printed);
        }
    }

    /// Lists what is missing, or only what is required.
    fn missing(&self, required_only: bool, out: &mut String) {
        let columns = self.settings.columns;
        for section in sections(self.coverage) {
            // The table already shows it.
            if section.state == State::Partial && (required_only || section.is_in_table) {
                continue;
            }
            let title = match section.state {
                State::Missing => self.settings.palette.failure(&section.title),
                State::Unknown => self.settings.palette.error(&section.title),
                _ => self.settings.palette.bold(&section.title),
            };
            let _ = writeln!(out, "\n  {} {title}", self.mark(section.state));
            let indent = " ".repeat(3 + self.mark_width());
            for line in wrap(section.advice, columns.saturating_sub(indent.len())) {
                let _ = writeln!(out, "{indent}{}", self.settings.palette.dim(line));
            }
            let available = columns.saturating_sub(indent.len() + 4).max(20);
            for line in section.lines.iter().take(MAX_LINES) {
                let line = self.clean(line);
                let lines = wrap(&truncate(&line, 3 * available, self.settings.symbols.ellipsis), available);
                let _ = writeln!(out, "{indent}  {}", lines.join(&format!("\n{indent}    ")));
            }
            if section.lines.len() > MAX_LINES {
                let more = section.lines.len() - MAX_LINES;
                let ellipsis = self.settings.symbols.ellipsis;
                let _ = writeln!(out, "{indent}  {ellipsis} and {more} more (pass --format json to list all)");
            }
        }
    }

    fn confusion(&self, out: &mut String) {
        let Some(matrix) = &self.coverage.confusion else {
            let _ = writeln!(out, "\n  {}", self.settings.palette.dim("No stored results to measure confusion."));
            return;
        };
        let answers = usize::try_from(matrix.answers).unwrap_or(usize::MAX);
        let title = format!(
            "Confusion in {} from {}",
            counted(answers, "answer", "answers"),
            counted(matrix.results, "result", "results")
        );
        let _ = writeln!(out, "\n{}", self.settings.palette.bold(title));
        if answers > 0 && matrix.worst.is_empty() {
            let _ = writeln!(out, "  {} no tool was called in place of another", self.mark(State::Complete));
        } else if answers > 0 {
            self.pairs(matrix, out);
            self.matrix(matrix, out);
        }
        let left_out = left_out(&matrix.left_out);
        if !left_out.is_empty() {
            let lines = wrap(&format!("left out: {}", left_out.join("; ")), self.settings.columns.saturating_sub(2));
            let _ = writeln!(out, "\n  {}", self.settings.palette.dim(lines.join("\n    ")));
        }
    }

    /// Lists confused pairs, worst first.
    fn pairs(&self, matrix: &ConfusionMatrix, out: &mut String) {
        let pairs = &matrix.worst[..matrix.worst.len().min(MAX_PAIRS)];
        let names = |name: &str| self.clean(tool_label(name));
        let arrow = self.settings.symbols.arrow;
        let has_map = self.coverage.overlap_map_version.is_some();
        let note = if has_map { "  not declared" } else { "" };
        let fixed = 2 + 1 + width(arrow) + 1 + GAP + 5 + GAP + 4 + note.len();
        let available = (self.settings.columns.saturating_sub(fixed) / 2).max(MIN_NAME_WIDTH);
        let widest = |name: fn(&karat_tools::coverage::ConfusedPair) -> &str, title: &str| {
            let all = pairs.iter().map(|pair| width(&names(name(pair))));
            all.chain([width(title)]).max().unwrap_or_default().min(available)
        };
        let expected = widest(|pair| &pair.expected, "expected");
        let called = widest(|pair| &pair.called, "called instead");
        let _ = writeln!(
            out,
            "  {}",
            self.settings.palette.dim(format_args!(
                "{}{}{}  times  rate",
                pad("expected", expected),
                " ".repeat(width(arrow) + 2),
                pad("called instead", called)
            ))
        );
        let ellipsis = self.settings.symbols.ellipsis;
        for pair in pairs {
            let cell =
                |name: &str, available: usize| pad(&truncate_middle(&names(name), available, ellipsis), available);
            let rate = percent(pair.rate);
            let is_between_tools = [&pair.expected, &pair.called].iter().all(|name| *name != karat_cases::NO_TOOL);
            let note = if has_map && !pair.declared && is_between_tools { note } else { "" };
            let _ = writeln!(
                out,
                "  {} {arrow} {}  {:>5}  {rate:>4}{}",
                cell(&pair.expected, expected),
                cell(&pair.called, called),
                pair.count,
                self.settings.palette.warning(note)
            );
        }
        self.more(matrix.worst.len(), MAX_PAIRS, out);
    }

    /// Renders the matrix if it is small. A single pair is already listed.
    fn matrix(&self, matrix: &ConfusionMatrix, out: &mut String) {
        let tools = matrix.tools();
        if matrix.worst.len() < 2 || tools.len() > MAX_COLUMNS {
            return;
        }
        let cells: Vec<Vec<String>> = tools
            .iter()
            .map(|expected| {
                let count = |called: &&str| match matrix.count(expected, called) {
                    0 => ".".to_owned(),
                    count => count.to_string(),
                };
                tools.iter().map(count).collect()
            })
            .collect();
        let cell = cells.iter().flatten().map(String::len).max().unwrap_or(1).max(3);
        let available = self.settings.columns.saturating_sub(6 + (cell + GAP) * tools.len());
        if available < MIN_NAME_WIDTH {
            return;
        }
        let names: Vec<String> = tools.iter().map(|tool| self.clean(tool_label(tool))).collect();
        let title = "expected (rows), called (columns)";
        let label = names.iter().map(|name| width(name)).max().unwrap_or_default().max(8).min(available);
        let _ = writeln!(out, "\n  {}", self.settings.palette.dim(title));
        let mut heads = " ".repeat(label + 5);
        for number in 1..=tools.len() {
            let _ = write!(heads, "{number:>width$}", width = cell + GAP);
        }
        let _ = writeln!(out, "{heads}");
        for (index, (name, row)) in names.iter().zip(&cells).enumerate() {
            let name = pad(&truncate_middle(name, label, self.settings.symbols.ellipsis), label);
            let mut line = format!("  {} {name} ", index + 1);
            for (column, text) in row.iter().enumerate() {
                let fill = " ".repeat((cell + GAP).saturating_sub(text.len()));
                let painted = match (text.as_str(), index == column) {
                    (".", _) => self.settings.palette.dim(text),
                    (_, true) => self.settings.palette.success(text),
                    (_, false) => self.settings.palette.failure(text),
                };
                let _ = write!(line, "{fill}{painted}");
            }
            let _ = writeln!(out, "{line}");
        }
    }
}

fn part(part: Ratio) -> String {
    fraction(part.count, part.of)
}

fn amount(amount: Amount) -> String {
    fraction(amount.count, amount.wanted)
}

/// Formats a fraction, or a dash if there is nothing to count.
fn fraction(count: usize, of: usize) -> String {
    if (count, of) == (0, 0) { "-".to_owned() } else { format!("{count}/{of}") }
}

/// The tools, each with its numbers.
struct Table<'t> {
    page: &'t Page<'t>,
    tools: &'t [&'t ToolCoverage],
    columns: Vec<Column>,
}

/// A column with a number for each tool.
struct Column {
    /// The two lines of the head.
    head: [&'static str; 2],
    /// The number of each tool, and whether it is enough.
    cells: Vec<(String, bool)>,
}

impl Column {
    fn width(&self) -> usize {
        let heads = self.head.iter().map(|head| head.len());
        heads.chain(self.cells.iter().map(|(text, _)| text.len())).max().unwrap_or_default()
    }
}

impl<'t> Table<'t> {
    fn new(page: &'t Page<'t>, tools: &'t [&'t ToolCoverage]) -> Self {
        let amounts = |head, of: fn(&ToolCoverage) -> Amount| Column {
            head,
            cells: tools.iter().map(|tool| (amount(of(tool)), of(tool).is_enough())).collect(),
        };
        let parts = |head, of: fn(&ToolCoverage) -> Ratio| Column {
            head,
            cells: tools.iter().map(|tool| (part(of(tool)), of(tool).is_complete())).collect(),
        };
        let mut columns = vec![
            amounts(["", "golden"], |tool| tool.golden),
            amounts(["straight-", "forward"], |tool| tool.straightforward),
            amounts(["ambi-", "guous"], |tool| tool.ambiguous),
            amounts(["", "edge"], |tool| tool.edge),
        ];
        // Without declarations for these tools, the columns would be all zeros.
        if tools.iter().any(|tool| tool.overlaps.of > 0) {
            columns.push(parts(["over-", "laps"], |tool| tool.overlaps));
        }
        if tools.iter().any(|tool| tool.clusters.of > 0) {
            columns.push(parts(["clus-", "ters"], |tool| tool.clusters));
        }
        if tools.iter().any(|tool| !tool.stale_files.is_empty()) {
            let stale = |tool: &&ToolCoverage| match tool.stale_files.len() {
                0 => (String::new(), true),
                count => (count.to_string(), false),
            };
            columns.push(Column { head: ["", "stale"], cells: tools.iter().map(stale).collect() });
        }
        Self { page, tools, columns }
    }

    fn write(&self, out: &mut String) {
        let settings = self.page.settings;
        let mark = self.page.mark_width();
        let widths: Vec<usize> = self.columns.iter().map(Column::width).collect();
        let taken = 2 + mark + 1 + widths.iter().map(|width| width + GAP).sum::<usize>();
        let names: Vec<String> = self.tools.iter().map(|tool| self.page.clean(&tool.name)).collect();
        let longest = names.iter().map(|name| width(name)).max().unwrap_or_default();
        let available = settings.columns.saturating_sub(taken).max(MIN_NAME_WIDTH);
        let label = longest.max(4).min(available);
        // Untested tools have no numbers and need no heads.
        let heads = if self.tools.iter().all(|tool| tool.never_tested) { &[][..] } else { &["", "tool"] };
        for (line, title) in heads.iter().enumerate() {
            let mut head = format!("{}{}", " ".repeat(3 + mark), pad(title, label));
            for (column, width) in self.columns.iter().zip(&widths) {
                let _ = write!(head, "{:>width$}", column.head[line], width = width + GAP);
            }
            let _ = writeln!(out, "{}", settings.palette.dim(head.trim_end()));
        }
        for (index, (tool, name)) in self.tools.iter().zip(&names).enumerate() {
            let state = if tool.never_tested { State::Missing } else { State::Partial };
            let name = pad(&truncate_middle(name, label, settings.symbols.ellipsis), label);
            let mut line = format!("  {} {name}", self.page.mark(state));
            if tool.never_tested {
                let _ = writeln!(out, "{line}  {}", settings.palette.failure("never tested"));
                continue;
            }
            for (column, width) in self.columns.iter().zip(&widths) {
                let (text, is_enough) = &column.cells[index];
                let fill = " ".repeat(GAP + width - text.len());
                let text = if *is_enough { text.clone() } else { settings.palette.warning(text) };
                let _ = write!(line, "{fill}{text}");
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
}
