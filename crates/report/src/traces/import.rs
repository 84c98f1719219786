//! What came of an import.

use std::fmt::Write as _;

use karat_core::stored::{ImportReport, RefusedPiece};

use super::count;
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{cut, printable, wrap};

/// How many refusals are named; a program's report has all.
const MOST_REFUSED: usize = 10;

/// How many lines a refusal takes.
const MOST_LINES: usize = 4;

/// How many files that were passed over are named.
const MOST_PASSED_OVER: usize = 5;

/// Lays out what was imported, what was there, and what was refused.
pub fn import_text(report: &ImportReport, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    let palette = settings.palette;
    let sources: Vec<String> = report.sources.iter().map(|(kind, traces)| format!("{kind} {traces}")).collect();
    // A dry run does not look at what the store has, and cannot know what would be new there.
    let mut line = if report.dry_run {
        format!("{} read, none kept", count(report.traces(), "trace"))
    } else {
        let line = format!("{} added", count(report.added, "trace"));
        let line = if report.added > 0 { palette.good(line) } else { line };
        format!("{line}, {} changed, {} unchanged", report.changed, report.unchanged)
    };
    if !sources.is_empty() {
        let _ = write!(line, " ({})", sources.join(", "));
    }
    let _ = writeln!(out, "{line}");
    if settings.verbosity != Verbosity::Quiet && report.traces() > 0 {
        write_contents(report, settings, &mut out);
    }
    if report.superseded > 0 {
        let _ = writeln!(
            out,
            "  {} came more than once, not alike: the last one counts",
            count(report.superseded, "trace")
        );
    }
    write_refused(&report.refused, settings, &mut out);
    if !report.passed_over.is_empty() && settings.verbosity != Verbosity::Quiet {
        let mut names: Vec<String> =
            report.passed_over.iter().take(MOST_PASSED_OVER).map(|name| printable(name).into_owned()).collect();
        if report.passed_over.len() > MOST_PASSED_OVER {
            names.push(settings.symbols.ellipsis.to_owned());
        }
        let files = count(report.passed_over.len() as u64, "file");
        let line = format!("{files} passed over by name: {}", names.join(", "));
        let _ = writeln!(out, "{}", palette.dim(cut(&line, settings.columns, settings.symbols.ellipsis)));
    }
    if report.interrupted {
        let _ = writeln!(out, "interrupted: what is counted here was kept; the same command goes on");
    }
    out
}

fn write_contents(report: &ImportReport, settings: ConsoleSettings, out: &mut String) {
    let tools = match report.tools.len() {
        0 => String::new(),
        tools => format!(" of {}", count(tools as u64, "tool")),
    };
    let line = format!(
        "  {}, {}{tools}, {}",
        count(report.steps, "step"),
        count(report.tool_calls, "tool call"),
        count(report.errors, "error")
    );
    let _ = writeln!(out, "{}", settings.palette.dim(line));
    let feedback = report.feedback;
    if feedback.found > 0 {
        let said = count(feedback.found, "statement");
        let line = match (feedback.added, feedback.asked) {
            (_, false) => format!("  {said} of people not taken: --feedback does"),
            (added, true) if added == feedback.found => format!("  {said} of people added as feedback"),
            (added, true) => format!("  {said} of people, {added} of them new, as feedback"),
        };
        let _ = writeln!(out, "{}", settings.palette.dim(line));
    } else if feedback.asked {
        let _ = writeln!(out, "{}", settings.palette.dim("  no statements of people among them"));
    }
}

fn write_refused(refused: &[RefusedPiece], settings: ConsoleSettings, out: &mut String) {
    if refused.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}", settings.palette.bad(format!("{} refused", refused.len())));
    for piece in refused.iter().take(MOST_REFUSED) {
        let place = piece.place.as_ref().map(|place| format!(", {place}")).unwrap_or_default();
        let text = format!("{}{place}: {}", piece.file, piece.message);
        let text = printable(&text);
        let lines = wrap(&text, settings.columns.saturating_sub(6).max(20));
        for (number, line) in lines.iter().take(MOST_LINES).enumerate() {
            let indent = if number == 0 { 2 } else { 6 };
            let more =
                if number + 1 == MOST_LINES && lines.len() > MOST_LINES { settings.symbols.ellipsis } else { "" };
            let _ = writeln!(out, "{}{line}{more}", " ".repeat(indent));
        }
    }
    if refused.len() > MOST_REFUSED {
        let _ = writeln!(
            out,
            "  {} {} more (--format json has all)",
            settings.symbols.ellipsis,
            refused.len() - MOST_REFUSED
        );
    }
}
