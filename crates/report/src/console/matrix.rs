//! A table of the agents of a run, shown instead of suites.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use karat_core::result::{CaseResult, Outcome};
use karat_core::run_report::{Matrix, MatrixCell, MatrixRow};

use super::{MIN_LINE_WIDTH, Page, Verbosity};
use crate::matrix::{BEST_LEGEND, FigureRow, best_value_line, columns, figure_rows, matrix_of};
use crate::record::RunRecord;
use crate::style::Symbols;
use crate::terminal_text::{pad, truncate, truncate_middle, width, wrap, wrap_truncated};

/// Space between two columns.
const GAP: usize = 2;

/// Minimum width of a truncated agent name.
const MIN_HEAD_WIDTH: usize = 12;

impl Page {
    /// Renders the table, the reasons of failures and the warnings.
    pub(super) fn matrix(&self, run: &RunRecord, out: &mut String) {
        let Some(matrix) = matrix_of(run) else {
            return;
        };
        let is_quiet = self.settings.verbosity == Verbosity::Quiet;
        let rows: Vec<&MatrixRow> = matrix.rows.iter().filter(|row| !is_quiet || !row.passed_everywhere()).collect();
        let figures = figure_rows(&matrix, self.settings.symbols.dash);
        let table = Table::new(self, &matrix, &rows, &figures);
        table.title(out);
        self.agent_changes(run, out);
        table.legend(out);
        for (number, block) in table.blocks.iter().enumerate() {
            if number > 0 {
                out.push('\n');
            }
            table.block(block, &rows, &figures, out);
        }
        let line = best_value_line(&matrix, |agent| self.clean(agent));
        let lines = wrap(&line, self.settings.columns.saturating_sub(2).max(20));
        if figures.iter().any(|row| row.best.contains(&true)) {
            let _ = writeln!(out, "  {BEST_LEGEND}");
        }
        let _ = writeln!(out, "  {}", lines.join("\n    "));
        let is_full = self.settings.verbosity == Verbosity::Full;
        table.reasons(&if is_full { results_by_agent(run) } else { Vec::new() }, out);
        self.remarks(run, &table, out);
        out.push('\n');
    }

    /// Shows regressions and new passes of each agent since the baseline.
    fn agent_changes(&self, run: &RunRecord, out: &mut String) {
        for suite in &run.suites {
            let Some(result) = suite.result.as_ref().filter(|result| result.baseline_run_id.is_some()) else {
                continue;
            };
            if !result.regressions.is_empty() || !result.new_passes.is_empty() {
                let (agent, path) = (suite.header.agent.as_deref().unwrap_or_default(), &suite.header.path);
                let _ = writeln!(out, "  {}", self.clean(&format!("{agent}, {path}:")));
                self.baseline_changes(result, out);
            }
        }
    }

    /// Shows staleness and warnings, once if they apply to all agents.
    fn remarks(&self, run: &RunRecord, table: &Table<'_>, out: &mut String) {
        let symbols = self.settings.symbols;
        let mut remarks: Vec<(String, Vec<usize>)> = Vec::new();
        for (agent, column) in columns(run).iter().enumerate() {
            for suite in &column.suites {
                let stale = suite.header.staleness.iter().map(karat_core::staleness::Staleness::console_line);
                for text in stale.chain(suite.warnings().iter().cloned()) {
                    match remarks.iter_mut().find(|(known, _)| *known == text) {
                        Some((_, agents)) if agents.last() == Some(&agent) => {}
                        Some((_, agents)) => agents.push(agent),
                        None => remarks.push((text, vec![agent])),
                    }
                }
            }
        }
        let indent = 3 + width(symbols.warning);
        for (text, agents) in remarks {
            let names: Vec<&str> = agents.iter().map(|agent| table.heads[*agent].as_str()).collect();
            let prefix =
                if agents.len() == table.heads.len() { String::new() } else { format!("{}: ", names.join(", ")) };
            let lines =
                wrap(&format!("{prefix}{}", self.clean(&text)), self.settings.columns.saturating_sub(indent).max(20));
            let joined = lines.join(&format!("\n{}", " ".repeat(indent)));
            let _ = writeln!(out, "  {} {joined}", self.settings.palette.warning(symbols.warning));
        }
    }

    /// Returns the text of a case's outcome, and its style.
    fn cell(&self, cell: Option<&MatrixCell>) -> (String, Paint) {
        let Some(cell) = cell else {
            return (self.settings.symbols.dash.to_owned(), Paint::Warning);
        };
        let (mark, paint) = self.mark(cell);
        let Some(trials) = cell.trials else {
            return (mark.to_owned(), paint);
        };
        let rate = format!("{}/{}", trials.passed, trials.total());
        // Errors and vacuous passes are not visible in the rate.
        match (trials.errored > 0, cell.vacuous) {
            (true, _) => (format!("{rate} {}", self.settings.symbols.errored.trim_end()), paint),
            (false, true) => (format!("{rate} {}", self.settings.symbols.warning.trim_end()), paint),
            (false, false) => (rate, paint),
        }
    }

    fn mark(&self, cell: &MatrixCell) -> (&'static str, Paint) {
        let Symbols { passed, failed, errored, warning, .. } = self.settings.symbols;
        let (mark, paint) = match cell.outcome {
            Outcome::Passed if cell.vacuous => (warning, Paint::Warning),
            Outcome::Passed => (passed, Paint::Success),
            Outcome::Failed => (failed, Paint::Failure),
            Outcome::Errored => (errored, Paint::Error),
        };
        (mark.trim_end(), paint)
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        let palette = self.settings.palette;
        match paint {
            Paint::Success => palette.success(text),
            Paint::Failure => palette.failure(text),
            Paint::Error => palette.error(text),
            Paint::Warning => palette.warning(text),
            Paint::Best => palette.bold(text),
            Paint::Plain => text.to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Paint {
    Success,
    Failure,
    Error,
    Warning,
    Best,
    Plain,
}

/// A table that fits the terminal.
struct Table<'t> {
    page: &'t Page,
    matrix: &'t Matrix,
    /// The head of each column: the agent's name, truncated or not, or a number.
    heads: Vec<String>,
    has_legend: bool,
    label: usize,
    widths: Vec<usize>,
    /// The columns that are shown side by side.
    blocks: Vec<Range<usize>>,
}

impl<'t> Table<'t> {
    fn new(page: &'t Page, matrix: &'t Matrix, rows: &[&MatrixRow], figures: &[FigureRow]) -> Self {
        let (columns, ellipsis) = (page.settings.columns, page.settings.symbols.ellipsis);
        let names: Vec<String> = matrix.agents.iter().map(|agent| page.clean(&agent.agent)).collect();
        let ids = rows.iter().map(|row| width(&page.clean(&row.id)));
        let labels = ids.chain(figures.iter().map(|row| width(row.name)));
        let label = (2 + labels.max().unwrap_or(0)).min((columns * 2 / 5).max(16));
        // After each value there is room for the star.
        let min_widths: Vec<usize> = (0..names.len())
            .map(|agent| {
                let cells = rows.iter().map(|row| width(&page.cell(row.cells[agent].as_ref()).0));
                1 + cells.chain(figures.iter().map(|row| width(&row.values[agent]))).max().unwrap_or(0)
            })
            .collect();
        let available = columns.saturating_sub(label);
        let fitted = |heads: &[String]| -> Vec<usize> {
            heads.iter().zip(&min_widths).map(|(head, min_width)| width(head).max(*min_width)).collect()
        };
        let fits = |heads: &[String]| fitted(heads).iter().map(|width| GAP + width).sum::<usize>() <= available;
        let share = (available / names.len().max(1)).saturating_sub(GAP);
        let short: Vec<String> = names.iter().map(|name| truncate_middle(name, share, ellipsis).into_owned()).collect();
        let is_distinct = |heads: &[String]| {
            share >= MIN_HEAD_WIDTH && (1..heads.len()).all(|index| !heads[..index].contains(&heads[index]))
        };
        let numbers: Vec<String> = (1..=names.len()).map(|number| format!("[{number}]")).collect();
        let (heads, has_legend) = if fits(&names) {
            (names, false)
        } else if is_distinct(&short) && fits(&short) {
            (short, false)
        } else {
            (numbers, true)
        };
        let widths = fitted(&heads);
        Self { page, matrix, blocks: blocks(&widths, available), heads, has_legend, label, widths }
    }

    fn line_width(&self) -> usize {
        let block = |block: &Range<usize>| self.widths[block.clone()].iter().map(|width| GAP + width).sum::<usize>();
        let widest = self.blocks.iter().map(block).max().unwrap_or(0);
        (self.label + widest).max(MIN_LINE_WIDTH).min(self.page.settings.columns)
    }

    fn title(&self, out: &mut String) {
        let Symbols { double_rule, dash, .. } = self.page.settings.symbols;
        let (agents, cases) = (self.matrix.agents.len(), self.matrix.rows.len());
        let plural = if cases == 1 { "" } else { "s" };
        let start = double_rule.to_string().repeat(3);
        let title = format!("{start} {agents} agents {dash} {cases} case{plural} ");
        let fill = double_rule.to_string().repeat(self.line_width().saturating_sub(width(&title)));
        let _ = writeln!(out, "{}", self.page.settings.palette.bold(format_args!("{title}{fill}")));
    }

    fn legend(&self, out: &mut String) {
        if !self.has_legend {
            return;
        }
        let widest = self.heads.iter().map(|head| width(head)).max().unwrap_or(0);
        for (head, agent) in self.heads.iter().zip(&self.matrix.agents) {
            let available = self.page.settings.columns.saturating_sub(widest + 3);
            let name = self.page.clean(&agent.agent);
            let name = truncate_middle(&name, available, self.page.settings.symbols.ellipsis);
            let _ = writeln!(out, "  {} {name}", pad(head, widest));
        }
    }

    fn block(&self, block: &Range<usize>, rows: &[&MatrixRow], figures: &[FigureRow], out: &mut String) {
        let heads = block.clone().map(|agent| (self.heads[agent].clone(), Paint::Best));
        self.row("", heads, block, out);
        let mut group: Option<&MatrixRow> = None;
        for row in rows {
            if group.is_none_or(|before| before.path != row.path) {
                self.group(row, out);
                group = Some(row);
            }
            let cells = block.clone().map(|agent| {
                let (text, paint) = self.page.cell(row.cells[agent].as_ref());
                (format!("{text} "), paint)
            });
            self.row(&self.page.clean(&row.id), cells, block, out);
        }
        let _ = writeln!(out, "{}", self.page.settings.symbols.rule.to_string().repeat(self.line_width()));
        for row in figures {
            let values = block.clone().map(|agent| {
                let (star, paint) = if row.best[agent] { ("*", Paint::Best) } else { (" ", Paint::Plain) };
                (format!("{}{star}", row.values[agent]), paint)
            });
            self.row(row.name, values, block, out);
        }
    }

    /// Writes the title of an eval file's rows.
    fn group(&self, row: &MatrixRow, out: &mut String) {
        let is_same = |other: &&MatrixRow| other.tool_name == row.tool_name && other.tier == row.tier;
        let is_unique = self.matrix.rows.iter().filter(is_same).all(|other| other.path == row.path);
        let title = format!("{} {} {}", row.tool_name, self.page.settings.symbols.dash, row.tier.evals());
        let title = if is_unique { title } else { format!("{title}, {}", row.path) };
        let title = self.page.clean(&title);
        let _ = writeln!(out, "{}", truncate(&title, self.page.settings.columns, self.page.settings.symbols.ellipsis));
    }

    /// Writes the label and its cells, on lines of their own if the label does not fit: an id is never truncated. The
    /// last character of a cell is the star or a space.
    fn row(&self, label: &str, cells: impl Iterator<Item = (String, Paint)>, block: &Range<usize>, out: &mut String) {
        let is_long = width(label) > self.label - 2;
        if is_long {
            let lines = wrap(label, self.page.settings.columns.saturating_sub(2).max(20));
            let _ = writeln!(out, "  {}", lines.join("\n  "));
        }
        let mut line = format!("  {}", pad(if is_long { "" } else { label }, self.label - 2));
        for ((text, paint), agent) in cells.zip(block.clone()) {
            let fill = " ".repeat(GAP + self.widths[agent].saturating_sub(width(&text)));
            let trimmed = text.trim_end();
            let rest = " ".repeat(text.len() - trimmed.len());
            let _ = write!(line, "{fill}{}{rest}", self.page.paint(paint, trimmed));
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }

    /// Prints the reasons of cases that did not pass, by case and agent; with the results of the agents, also their answers.
    fn reasons(&self, results: &[ResultsByCase<'_>], out: &mut String) {
        let page = self.page;
        let Symbols { ellipsis, .. } = page.settings.symbols;
        let mut is_first = true;
        // If every case is shown in full, equal errors are not grouped.
        let groups = if results.is_empty() { ErrorGroups::new(&self.matrix.rows) } else { ErrorGroups::default() };
        for row in &self.matrix.rows {
            let mut reasons = reasons_by_agents(row);
            // Skip errors that were printed with an earlier case.
            reasons.retain(|reason| groups.is_first(row, reason));
            if reasons.is_empty() {
                continue;
            }
            if is_first {
                out.push('\n');
                is_first = false;
            }
            let title = page.clean(&format!("{}  {}", row.id, row.description));
            let lines = wrap_truncated(title.trim_end(), page.settings.columns.saturating_sub(2).max(20), ellipsis);
            let _ = writeln!(out, "  {}", lines.join("\n  "));
            for (cell, reason, agents) in reasons {
                let others = groups.others(cell, reason, &agents);
                let (mark, paint) = page.mark(cell);
                let heads: Vec<&str> = agents.iter().map(|agent| self.heads[*agent].as_str()).collect();
                let owner = if heads.len() == self.heads.len() { "all".to_owned() } else { heads.join(", ") };
                let prefix = if cell.regression { "regression: " } else { "" };
                let text = page.clean(&format!("{owner}: {prefix}{reason}"));
                let indent = 5 + width(mark);
                let available = page.settings.columns.saturating_sub(indent).max(20);
                let lines = wrap_truncated(&text, available, ellipsis);
                let lines = lines.join(&format!("\n{}", " ".repeat(indent)));
                let _ = writeln!(out, "    {} {lines}", page.paint(paint, mark));
                if others > 0 {
                    let cases = if others == 1 { "1 more case".to_owned() } else { format!("{others} more cases") };
                    let _ = writeln!(out, "{}and {cases} with the same error", " ".repeat(indent));
                }
                for (agent, head) in agents.iter().zip(&heads) {
                    let case = results.get(*agent).and_then(|cases| cases.get(&(row.path.as_str(), row.id.as_str())));
                    let Some(case) = case else { continue };
                    if heads.len() > 1 {
                        let _ = writeln!(out, "      {}:", page.clean(head));
                    }
                    page.case_details(case, out);
                }
            }
        }
    }
}

/// The results of one agent, by path and id.
type ResultsByCase<'r> = HashMap<(&'r str, &'r str), &'r CaseResult>;

fn results_by_agent(run: &RunRecord) -> Vec<ResultsByCase<'_>> {
    let mut agents = Vec::new();
    for column in columns(run) {
        let mut results = ResultsByCase::new();
        for suite in column.suites {
            for case in suite.cases() {
                results.insert((suite.header.path.as_str(), case.result.id.as_str()), case.result);
            }
        }
        agents.push(results);
    }
    agents
}

/// Returns the reasons why a case did not pass, each with its agents.
fn reasons_by_agents(row: &MatrixRow) -> Vec<(&MatrixCell, &str, Vec<usize>)> {
    let mut reasons: Vec<(&MatrixCell, &str, Vec<usize>)> = Vec::new();
    for (agent, cell) in row.cells.iter().enumerate() {
        let Some((cell, reason)) = cell.as_ref().and_then(|cell| Some((cell, cell.reason.as_deref()?))) else {
            continue;
        };
        let is_same = |(other, known, _): &&mut (&MatrixCell, &str, Vec<usize>)| {
            *known == reason && other.outcome == cell.outcome && other.regression == cell.regression
        };
        match reasons.iter_mut().find(is_same) {
            Some((_, _, agents)) => agents.push(agent),
            None => reasons.push((cell, reason, vec![agent])),
        }
    }
    reasons
}

/// The errors of a run: how many cases each has, and in which it occurs first. Only errors are grouped, since equal
/// failures of different cases are different problems.
#[derive(Default)]
struct ErrorGroups<'m> {
    groups: HashMap<(&'m str, Vec<usize>), (&'m str, &'m str, usize)>,
}

impl<'m> ErrorGroups<'m> {
    fn new(rows: &'m [MatrixRow]) -> Self {
        let mut groups = HashMap::new();
        for row in rows {
            for (cell, reason, agents) in reasons_by_agents(row) {
                if cell.outcome == Outcome::Errored {
                    let (.., count) = groups.entry((reason, agents)).or_insert((row.path.as_str(), row.id.as_str(), 0));
                    *count += 1;
                }
            }
        }
        Self { groups }
    }

    /// Whether this is the first case with the error, or not an error.
    fn is_first(&self, row: &MatrixRow, (cell, reason, agents): &(&MatrixCell, &str, Vec<usize>)) -> bool {
        let group = self.groups.get(&(*reason, agents.clone())).filter(|_| cell.outcome == Outcome::Errored);
        group.is_none_or(|(path, id, _)| (*path, *id) == (row.path.as_str(), row.id.as_str()))
    }

    /// Returns the number of further cases with the error.
    fn others(&self, cell: &MatrixCell, reason: &str, agents: &[usize]) -> usize {
        let group = self.groups.get(&(reason, agents.to_vec())).filter(|_| cell.outcome == Outcome::Errored);
        group.map_or(0, |(.., count)| count - 1)
    }
}

/// Groups columns into blocks that fit the width, with at least one column each.
fn blocks(widths: &[usize], available: usize) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut used = 0;
    for (index, width) in widths.iter().enumerate() {
        used += GAP + width;
        if let Some(block) = blocks.last_mut().filter(|_| used <= available) {
            block.end = index + 1;
        } else {
            blocks.push(index..index + 1);
            used = GAP + width;
        }
    }
    blocks
}
