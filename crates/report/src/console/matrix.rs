//! The agents of a run side by side: one table in place of the suites.

use std::fmt::Write as _;
use std::ops::Range;

use karat_core::result::Outcome;

use super::{NARROWEST, Page, Verbosity};
use crate::matrix::{FigureRow, Matrix, MatrixCell, MatrixRow, best_value_line, columns, figure_rows};
use crate::record::RunRecord;
use crate::style::Symbols;
use crate::terminal_text::{cut, cut_middle, pad, width, wrap};

/// What stands between two columns.
const GAP: usize = 2;

/// A name that is cut to less says nothing.
const SHORTEST_HEAD: usize = 12;

impl Page {
    /// Lays out the whole table, and what a person should know beside it.
    pub(super) fn matrix(&self, run: &RunRecord, out: &mut String) {
        let Some(matrix) = Matrix::of(run) else {
            return;
        };
        let is_quiet = self.settings.verbosity == Verbosity::Quiet;
        let rows: Vec<&MatrixRow> = matrix.rows.iter().filter(|row| !is_quiet || !row.passed_everywhere()).collect();
        let figures = figure_rows(&matrix, self.settings.symbols.dash);
        let table = Table::new(self, &matrix, &rows, &figures);
        table.title(out);
        self.moves(run, out);
        table.legend(out);
        for (number, block) in table.blocks.iter().enumerate() {
            if number > 0 {
                out.push('\n');
            }
            table.block(block, &rows, &figures, out);
        }
        let line = best_value_line(&matrix, |agent| self.clean(agent));
        let lines = wrap(&line, self.settings.columns.saturating_sub(2).max(20));
        let _ = writeln!(out, "  {}", lines.join("\n    "));
        table.reasons(out);
        self.remarks(run, &table, out);
        out.push('\n');
    }

    /// Says of each agent what broke since the baseline.
    fn moves(&self, run: &RunRecord, out: &mut String) {
        for suite in &run.suites {
            let Some(result) = suite.result.as_ref().filter(|result| result.baseline_run_id.is_some()) else {
                continue;
            };
            if !result.regressions.is_empty() || !result.new_passes.is_empty() {
                let (agent, path) = (suite.header.agent.as_deref().unwrap_or_default(), &suite.header.path);
                let _ = writeln!(out, "  {}", self.clean(&format!("{agent}, {path}:")));
                self.moved(result, out);
            }
        }
    }

    /// Says what is out of date and what else a person should know, once where it is so for all agents.
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
            let whose =
                if agents.len() == table.heads.len() { String::new() } else { format!("{}: ", names.join(", ")) };
            let lines =
                wrap(&format!("{whose}{}", self.clean(&text)), self.settings.columns.saturating_sub(indent).max(20));
            let joined = lines.join(&format!("\n{}", " ".repeat(indent)));
            let _ = writeln!(out, "  {} {joined}", self.settings.palette.doubtful(symbols.warning));
        }
    }

    /// Returns what stands for a case's fate, and how it is painted.
    fn cell(&self, cell: Option<&MatrixCell>) -> (String, Paint) {
        let Some(cell) = cell else {
            return (self.settings.symbols.dash.to_owned(), Paint::Doubtful);
        };
        let (mark, paint) = self.mark(cell);
        let Some(tries) = cell.tries else {
            return (mark.to_owned(), paint);
        };
        let shown = format!("{}/{}", tries.passed, tries.total());
        // What no rate counts must not go unseen.
        match (tries.errored > 0, cell.vacuous) {
            (true, _) => (format!("{shown} {}", self.settings.symbols.errored.trim_end()), paint),
            (false, true) => (format!("{shown} {}", self.settings.symbols.warning.trim_end()), paint),
            (false, false) => (shown, paint),
        }
    }

    fn mark(&self, cell: &MatrixCell) -> (&'static str, Paint) {
        let Symbols { passed, failed, errored, warning, .. } = self.settings.symbols;
        let (mark, paint) = match cell.outcome {
            Outcome::Passed if cell.vacuous => (warning, Paint::Doubtful),
            Outcome::Passed => (passed, Paint::Good),
            Outcome::Failed => (failed, Paint::Bad),
            Outcome::Errored => (errored, Paint::Broken),
        };
        (mark.trim_end(), paint)
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        let palette = self.settings.palette;
        match paint {
            Paint::Good => palette.good(text),
            Paint::Bad => palette.bad(text),
            Paint::Broken => palette.broken(text),
            Paint::Doubtful => palette.doubtful(text),
            Paint::Best => palette.bold(text),
            Paint::Plain => text.to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Paint {
    Good,
    Bad,
    Broken,
    Doubtful,
    Best,
    Plain,
}

/// A table that fits the screen.
struct Table<'t> {
    page: &'t Page,
    matrix: &'t Matrix,
    /// What stands above each column: the agent's name, a part of it, or a number.
    heads: Vec<String>,
    has_legend: bool,
    label: usize,
    widths: Vec<usize>,
    /// The columns that stand side by side.
    blocks: Vec<Range<usize>>,
}

impl<'t> Table<'t> {
    fn new(page: &'t Page, matrix: &'t Matrix, rows: &[&MatrixRow], figures: &[FigureRow]) -> Self {
        let (columns, ellipsis) = (page.settings.columns, page.settings.symbols.ellipsis);
        let names: Vec<String> = matrix.agents.iter().map(|agent| page.clean(&agent.agent)).collect();
        let ids = rows.iter().map(|row| width(&page.clean(&row.id)));
        let labels = ids.chain(figures.iter().map(|row| width(row.name)));
        let label = (2 + labels.max().unwrap_or(0)).min((columns * 2 / 5).max(16));
        // Behind each value there is room for the star.
        let least: Vec<usize> = (0..names.len())
            .map(|agent| {
                let cells = rows.iter().map(|row| width(&page.cell(row.cells[agent].as_ref()).0));
                1 + cells.chain(figures.iter().map(|row| width(&row.values[agent]))).max().unwrap_or(0)
            })
            .collect();
        let room = columns.saturating_sub(label);
        let fitted = |heads: &[String]| -> Vec<usize> {
            heads.iter().zip(&least).map(|(head, least)| width(head).max(*least)).collect()
        };
        let fits = |heads: &[String]| fitted(heads).iter().map(|width| GAP + width).sum::<usize>() <= room;
        let share = (room / names.len().max(1)).saturating_sub(GAP);
        let short: Vec<String> = names.iter().map(|name| cut_middle(name, share, ellipsis).into_owned()).collect();
        let is_telling = |heads: &[String]| {
            share >= SHORTEST_HEAD && (1..heads.len()).all(|place| !heads[..place].contains(&heads[place]))
        };
        let numbers: Vec<String> = (1..=names.len()).map(|number| format!("[{number}]")).collect();
        let (heads, has_legend) = if fits(&names) {
            (names, false)
        } else if is_telling(&short) && fits(&short) {
            (short, false)
        } else {
            (numbers, true)
        };
        let widths = fitted(&heads);
        Self { page, matrix, blocks: blocks(&widths, room), heads, has_legend, label, widths }
    }

    fn line(&self) -> usize {
        let block = |block: &Range<usize>| self.widths[block.clone()].iter().map(|width| GAP + width).sum::<usize>();
        let widest = self.blocks.iter().map(block).max().unwrap_or(0);
        (self.label + widest).max(NARROWEST).min(self.page.settings.columns)
    }

    fn title(&self, out: &mut String) {
        let Symbols { double_rule, dash, .. } = self.page.settings.symbols;
        let (agents, cases) = (self.matrix.agents.len(), self.matrix.rows.len());
        let plural = if cases == 1 { "" } else { "s" };
        let start = double_rule.to_string().repeat(3);
        let title = format!("{start} {agents} agents {dash} {cases} case{plural} ");
        let fill = double_rule.to_string().repeat(self.line().saturating_sub(width(&title)));
        let _ = writeln!(out, "{}", self.page.settings.palette.bold(format_args!("{title}{fill}")));
    }

    fn legend(&self, out: &mut String) {
        if !self.has_legend {
            return;
        }
        let widest = self.heads.iter().map(|head| width(head)).max().unwrap_or(0);
        for (head, agent) in self.heads.iter().zip(&self.matrix.agents) {
            let room = self.page.settings.columns.saturating_sub(widest + 3);
            let name = self.page.clean(&agent.agent);
            let name = cut_middle(&name, room, self.page.settings.symbols.ellipsis);
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
        let _ = writeln!(out, "{}", self.page.settings.symbols.rule.to_string().repeat(self.line()));
        for row in figures {
            let values = block.clone().map(|agent| {
                let (star, paint) = if row.best[agent] { ("*", Paint::Best) } else { (" ", Paint::Plain) };
                (format!("{}{star}", row.values[agent]), paint)
            });
            self.row(row.name, values, block, out);
        }
    }

    /// Names the eval file of the rows that follow.
    fn group(&self, row: &MatrixRow, out: &mut String) {
        let same = |other: &&MatrixRow| other.tool_name == row.tool_name && other.tier == row.tier;
        let is_alone = self.matrix.rows.iter().filter(same).all(|other| other.path == row.path);
        let title = format!("{} {} {} evals", row.tool_name, self.page.settings.symbols.dash, row.tier);
        let title = if is_alone { title } else { format!("{title}, {}", row.path) };
        let title = self.page.clean(&title);
        let _ = writeln!(out, "{}", cut(&title, self.page.settings.columns, self.page.settings.symbols.ellipsis));
    }

    /// Writes one line; a text's last space is the star's place.
    fn row(&self, label: &str, cells: impl Iterator<Item = (String, Paint)>, block: &Range<usize>, out: &mut String) {
        let label = cut_middle(label, self.label - 2, self.page.settings.symbols.ellipsis);
        let mut line = format!("  {}", pad(&label, self.label - 2));
        for ((text, paint), agent) in cells.zip(block.clone()) {
            let fill = " ".repeat(GAP + self.widths[agent].saturating_sub(width(&text)));
            let shown = text.trim_end();
            let rest = " ".repeat(text.len() - shown.len());
            let _ = write!(line, "{fill}{}{rest}", self.page.paint(paint, shown));
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }

    /// Says why cases did not pass, case by case and agent by agent.
    fn reasons(&self, out: &mut String) {
        let page = self.page;
        let Symbols { ellipsis, .. } = page.settings.symbols;
        let mut is_first = true;
        for row in &self.matrix.rows {
            let told = told(row);
            if told.is_empty() {
                continue;
            }
            if is_first {
                out.push('\n');
                is_first = false;
            }
            let title = page.clean(&format!("{}  {}", row.id, row.description));
            let _ = writeln!(out, "  {}", cut(title.trim_end(), page.settings.columns.saturating_sub(2), ellipsis));
            for (cell, reason, agents) in told {
                let (mark, paint) = page.mark(cell);
                let heads: Vec<&str> = agents.iter().map(|agent| self.heads[*agent].as_str()).collect();
                let whose = if heads.len() == self.heads.len() { "all".to_owned() } else { heads.join(", ") };
                let what = if cell.regression { "regression: " } else { "" };
                let text = page.clean(&format!("{whose}: {what}{reason}"));
                let indent = 5 + width(mark);
                let room = page.settings.columns.saturating_sub(indent).max(20);
                let lines = wrap(&cut(&text, 2 * room, ellipsis), room);
                let lines = lines.join(&format!("\n{}", " ".repeat(indent)));
                let _ = writeln!(out, "    {} {lines}", page.paint(paint, mark));
            }
        }
    }
}

/// Returns the reasons for which a case did not pass, each with the agents that it is true of.
fn told(row: &MatrixRow) -> Vec<(&MatrixCell, &str, Vec<usize>)> {
    let mut told: Vec<(&MatrixCell, &str, Vec<usize>)> = Vec::new();
    for (agent, cell) in row.cells.iter().enumerate() {
        let Some((cell, reason)) = cell.as_ref().and_then(|cell| Some((cell, cell.reason.as_deref()?))) else {
            continue;
        };
        let is_same = |(other, known, _): &&mut (&MatrixCell, &str, Vec<usize>)| {
            *known == reason && other.outcome == cell.outcome && other.regression == cell.regression
        };
        match told.iter_mut().find(is_same) {
            Some((_, _, agents)) => agents.push(agent),
            None => told.push((cell, reason, vec![agent])),
        }
    }
    told
}

/// Puts as many columns side by side as there is room for, one at least.
fn blocks(widths: &[usize], room: usize) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut used = 0;
    for (place, width) in widths.iter().enumerate() {
        used += GAP + width;
        if let Some(block) = blocks.last_mut().filter(|_| used <= room) {
            block.end = place + 1;
        } else {
            blocks.push(place..place + 1);
            used = GAP + width;
        }
    }
    blocks
}
