//! A list of runs, one per line.

use karat_core::result::{RunList, RunSummary};

use super::format_start;
use crate::console::ConsoleSettings;
use crate::table::Table;
use crate::terminal_text::{printable, truncate_middle};

const TITLES: [&str; 11] = [
    "run",
    "started",
    "passed",
    "failed",
    "errored",
    "not run",
    "skipped",
    "regressions",
    "rubrics",
    "unreadable",
    "missing files",
];

/// Minimum width of the agent column.
const MIN_AGENT_WIDTH: usize = 12;

/// Renders a list of runs. `ids` are the shortened ids, in list order.
pub fn run_list_text(list: &RunList, ids: &[String], settings: ConsoleSettings) -> String {
    let rows: Vec<[String; 11]> = list.runs.iter().zip(ids).map(|(run, id)| row(run, id)).collect();
    let table = Table::new(TITLES, 2, &rows);
    // The agent comes last, so that it takes the rest of the line.
    let available = settings.columns.saturating_sub(table.width()).max(MIN_AGENT_WIDTH);
    let mut out = table.heading("agent", settings);
    for (row, run) in rows.iter().zip(&list.runs) {
        let agents = run.agents.join(", ");
        out.push_str(&table.line(row, &truncate_middle(&printable(&agents), available, settings.symbols.ellipsis)));
        out.push('\n');
    }
    out
}

fn row(run: &RunSummary, id: &str) -> [String; 11] {
    let non_zero = |number: usize| if number == 0 { String::new() } else { number.to_string() };
    let has_verdicts = run.suites > 0;
    let incomplete = run.incomplete.unwrap_or_default();
    [
        printable(id).into_owned(),
        format_start(&run.timestamp),
        if has_verdicts { format!("{}/{}", run.passed, run.cases) } else { String::new() },
        if has_verdicts { run.failed.to_string() } else { String::new() },
        non_zero(run.errored),
        non_zero(incomplete.cases_not_run),
        non_zero(run.skipped),
        run.regressions.map(|count| count.to_string()).unwrap_or_default(),
        non_zero(run.rubric_suites),
        non_zero(run.unreadable),
        non_zero(incomplete.missing_files),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Verbosity;
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
