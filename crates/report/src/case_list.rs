//! The list of `karat run --list`.

use std::fmt::Write as _;

use karat_core::case_list::{CaseEntry, CaseList, SuiteCases};

use crate::console::ConsoleSettings;
use crate::terminal_text::{pad, printable, width};
use crate::tools::counted;

/// Renders the cases of each file, then the skipped ones with their reasons, and the totals. Nothing is truncated, so
/// that ids can be copied.
pub fn case_list_text(list: &CaseList, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    for suite in &list.suites {
        write_suite(suite, settings, &mut out);
    }
    let skipped = if list.skipped > 0 { format!(", {} skipped", list.skipped) } else { String::new() };
    let _ = writeln!(out, "{} in {}{skipped}", counted(list.cases, "case"), counted(list.suites.len(), "file"));
    out
}

fn write_suite(suite: &SuiteCases, settings: ConsoleSettings, out: &mut String) {
    let palette = settings.palette;
    let _ = writeln!(out, "{}", palette.bold(printable(&suite.eval_file)));
    let ids = suite.cases.iter().map(|case| &case.id).chain(suite.skipped.iter().map(|case| &case.id));
    let columns = ids.map(|id| width(&printable(id))).max().unwrap_or(0);
    let mut line = |id: &str, text: String| {
        let line = format!("  {}  {text}", pad(&printable(id), columns));
        let _ = writeln!(out, "{}", line.trim_end());
    };
    for case in &suite.cases {
        line(&case.id, case_text(case, settings));
    }
    for case in &suite.skipped {
        line(&case.id, palette.warning(format_args!("skipped: {}", printable(&case.reason))));
    }
    out.push('\n');
}

fn case_text(case: &CaseEntry, settings: ConsoleSettings) -> String {
    let description = printable(&case.description);
    if case.tags.is_empty() {
        return description.into_owned();
    }
    let tags = settings.palette.dim(format_args!("[{}]", printable(&case.tags.join(", "))));
    if description.is_empty() { tags } else { format!("{description} {tags}") }
}
