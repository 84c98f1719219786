//! A list of runs, one per line.

use karat_core::result::{RunList, RunSummary};

use super::format_start;
use crate::console::ConsoleSettings;
use crate::table::Table;
use crate::terminal_text::{printable, truncate_middle, width};

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

/// The titles for narrow terminals.
const SHORT_TITLES: [&str; 11] =
    ["run", "started", "passed", "fail", "err", "left", "skip", "regr", "rubrics", "bad", "missing"];

/// Minimum width of the agent column.
const MIN_AGENT_WIDTH: usize = 12;

/// Renders a list of runs. `ids` are the shortened ids, in list order.
pub fn run_list_text(list: &RunList, ids: &[String], settings: ConsoleSettings) -> String {
    let rows: Vec<[String; 11]> = list.runs.iter().zip(ids).map(|(run, id)| row(run, id)).collect();
    let table = Table::new(TITLES, 2, &rows);
    let is_too_wide = table.width() + MIN_AGENT_WIDTH > settings.columns;
    let table = if is_too_wide { Table::new(SHORT_TITLES, 2, &rows) } else { table };
    // The agent comes last, so that it takes the rest of the line.
    let available = settings.columns.saturating_sub(table.width()).max(MIN_AGENT_WIDTH);
    let mut out = table.heading("agent", settings);
    for (row, run) in rows.iter().zip(&list.runs) {
        out.push_str(&table.line(row, &agents_text(&run.agents, available, settings.symbols.ellipsis)));
        out.push('\n');
    }
    out
}

/// Lists the agents, or names the first one and the number of others if they do not fit.
fn agents_text(agents: &[String], available: usize, ellipsis: &str) -> String {
    let all = agents.join(", ");
    let all = printable(&all);
    match agents {
        [first, others @ ..] if !others.is_empty() && width(&all) > available => {
            let more = format!(" +{}", others.len());
            let first = printable(first);
            format!("{}{more}", truncate_middle(&first, available.saturating_sub(width(&more)), ellipsis))
        }
        _ => truncate_middle(&all, available, ellipsis).into_owned(),
    }
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
    use karat_core::result::Incomplete;

    use super::*;
    use crate::console::Verbosity;
    use crate::style::{Palette, Symbols};

    fn settings() -> ConsoleSettings {
        ConsoleSettings {
            columns: 80,
            symbols: Symbols::UNICODE,
            palette: Palette { color: false },
            verbosity: Verbosity::Normal,
        }
    }

    #[test]
    fn uses_short_titles_to_fit_80_columns() {
        let run = RunSummary {
            timestamp: "2026-11-18T10:00:59.5Z".to_owned(),
            agents: vec!["python:agent.main:answer".to_owned(), "python:agent.other:answer".to_owned()],
            suites: 1,
            cases: 600,
            passed: 580,
            failed: 20,
            errored: 3,
            skipped: 12,
            regressions: Some(2),
            incomplete: Some(Incomplete { cases_not_run: 10, missing_files: 0 }),
            ..RunSummary::default()
        };
        let list = RunList { total: 1, runs: vec![run] };
        let text = run_list_text(&list, &["019a0000".to_owned()], settings());
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        insta::assert_snapshot!(text, @r"
        run       started            passed  fail  err  left  skip  regr  agent
        019a0000  2026-11-18 10:00  580/600    20    3    10    12     2  pytho…nswer +1
        ");
    }

    #[test]
    fn lists_runs_without_empty_columns() {
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
        let text = run_list_text(&list, &["019a0000".to_owned(), "019a0001".to_owned()], settings());
        insta::assert_snapshot!(text, @r"
        run       started           passed  failed  regressions  agent
        019a0000  2026-11-18 10:00   58/60       2               http://loca…t:3000/chat
        019a0001  then               58/60       2            0  http://loca…t:3000/chat
        ");
    }
}
