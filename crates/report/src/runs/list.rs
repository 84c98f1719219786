//! A list of runs, one per line.

use karat_core::result::{RunList, RunSummary};

use super::started;
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{pad, printable, truncate_middle, width};

const TITLES: [&str; 9] =
    ["run", "started", "passed", "failed", "errored", "skipped", "regressions", "rubrics", "unreadable"];

/// Minimum width of the agent.
const MIN_AGENT_WIDTH: usize = 12;

/// The columns before the first number.
const TEXT_COLUMNS: usize = 2;

/// Renders a list of runs. `ids` are the shortened ids, in list order.
pub fn run_list_text(list: &RunList, ids: &[String], settings: ConsoleSettings) -> String {
    let rows: Vec<[String; 9]> = list.runs.iter().zip(ids).map(|(run, id)| row(run, id)).collect();
    // Leave out empty columns.
    let shown: Vec<usize> =
        (0..TITLES.len()).filter(|&column| rows.iter().any(|row| !row[column].is_empty())).collect();
    let column_width = |column: usize| {
        let cells = rows.iter().map(|row| width(&row[column]));
        cells.max().unwrap_or(0).max(TITLES[column].len())
    };
    let widths: Vec<usize> = (0..TITLES.len()).map(column_width).collect();
    let render = |cells: &[&str], agent: &str| {
        let mut line = String::new();
        for &column in &shown {
            let cell = cells[column];
            if column < TEXT_COLUMNS {
                line.push_str(&pad(cell, widths[column]));
            } else {
                line.push_str(&" ".repeat(widths[column].saturating_sub(width(cell))));
                line.push_str(cell);
            }
            line.push_str("  ");
        }
        // The agent comes last, so that it takes the rest of the line.
        let available = settings.columns.saturating_sub(width(&line)).max(MIN_AGENT_WIDTH);
        line.push_str(&truncate_middle(agent, available, settings.symbols.ellipsis));
        line.trim_end().to_owned() + "\n"
    };
    let mut out = String::new();
    if settings.verbosity != Verbosity::Quiet {
        let titles = render(&TITLES, "agent");
        out.push_str(&settings.palette.dim(titles.trim_end()));
        out.push('\n');
    }
    for (row, run) in rows.iter().zip(&list.runs) {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        out.push_str(&render(&cells, &printable(&run.agents.join(", "))));
    }
    out
}

fn row(run: &RunSummary, id: &str) -> [String; 9] {
    let non_zero = |number: usize| if number == 0 { String::new() } else { number.to_string() };
    let has_verdicts = run.suites > 0;
    [
        printable(id).into_owned(),
        started(&run.timestamp),
        if has_verdicts { format!("{}/{}", run.passed, run.cases) } else { String::new() },
        if has_verdicts { run.failed.to_string() } else { String::new() },
        non_zero(run.errored),
        non_zero(run.skipped),
        run.regressions.map(|count| count.to_string()).unwrap_or_default(),
        non_zero(run.rubric_suites),
        non_zero(run.unreadable),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{Palette, Symbols};

    #[test]
    fn lists_runs_without_empty_columns() {
        let settings = ConsoleSettings {
            columns: 80,
            symbols: Symbols::UNICODE,
            palette: Palette { color: false },
            verbosity: Verbosity::Normal,
        };
        let run = RunSummary {
            timestamp: "2026-11-18T10:00:59.5Z".to_owned(),
            agents: vec!["http://localhost:3000/chat".to_owned()],
            suites: 1,
            cases: 60,
            passed: 58,
            failed: 2,
            ..RunSummary::default()
        };
        let older = RunSummary { regressions: Some(0), timestamp: "then".to_owned(), ..run.clone() };
        let list = RunList { total: 2, runs: vec![run, older] };
        let text = run_list_text(&list, &["019a0000".to_owned(), "019a0001".to_owned()], settings);
        insta::assert_snapshot!(text, @r"
        run       started           passed  failed  regressions  agent
        019a0000  2026-11-18 10:00   58/60       2               http://loca…t:3000/chat
        019a0001  then               58/60       2            0  http://loca…t:3000/chat
        ");
    }
}
