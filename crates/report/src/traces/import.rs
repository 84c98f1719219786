//! The report of an import.

use std::fmt::Write as _;

use karat_core::stored::{ImportReport, RefusedPiece};

use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{printable, truncate, wrap};
use crate::tools::counted;

/// Maximum number of refused pieces; the JSON report has all.
const MAX_REJECTED: usize = 10;

/// Maximum number of lines of a refusal.
const MAX_LINES: usize = 4;

/// Maximum number of skipped files.
const MAX_SKIPPED: usize = 5;

/// Renders the counts of imported, unchanged and refused traces.
pub fn import_text(report: &ImportReport, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    let palette = settings.palette;
    let sources: Vec<String> = report.sources.iter().map(|(kind, traces)| format!("{kind} {traces}")).collect();
    // A dry run does not read the store, so it cannot know which traces are new.
    let mut line = if report.dry_run {
        format!("{} read, none stored", counted(report.traces(), "trace"))
    } else {
        let line = format!("{} added", counted(report.added, "trace"));
        let line = if report.added > 0 { palette.success(line) } else { line };
        format!("{line}, {} changed, {} unchanged", report.changed, report.unchanged)
    };
    if !sources.is_empty() {
        let _ = write!(line, " ({})", sources.join(", "));
    }
    let _ = writeln!(out, "{line}");
    if settings.verbosity != Verbosity::Quiet && report.traces() > 0 {
        write_contents(report, settings, &mut out);
    }
    if report.unread_tool_calls > 0 {
        let line = format!(
            "  {} not understood: listed in metadata.unread_tool_calls of the traces",
            count_entries(report.unread_tool_calls)
        );
        let _ = writeln!(out, "{}", palette.warning(line));
    }
    if report.superseded > 0 {
        let _ = writeln!(
            out,
            "  {} occurred more than once with different content: the last one is stored",
            counted(report.superseded, "trace")
        );
    }
    write_refused(&report.refused, settings, &mut out);
    if !report.passed_over.is_empty() && settings.verbosity != Verbosity::Quiet {
        let mut names: Vec<String> =
            report.passed_over.iter().take(MAX_SKIPPED).map(|name| printable(name).into_owned()).collect();
        if report.passed_over.len() > MAX_SKIPPED {
            names.push(settings.symbols.ellipsis.to_owned());
        }
        let files = counted(report.passed_over.len(), "file");
        let line = format!("{files} skipped by name: {}", names.join(", "));
        let _ = writeln!(out, "{}", palette.dim(truncate(&line, settings.columns, settings.symbols.ellipsis)));
    }
    if report.interrupted {
        let text = "interrupted: the traces counted here are stored; run the same command again to continue";
        let _ = writeln!(out, "{}", wrap(text, settings.columns).join("\n"));
    }
    out
}

fn count_entries(number: u64) -> String {
    match number {
        1 => "1 entry of 'tool_calls'".to_owned(),
        number => format!("{number} entries of 'tool_calls'"),
    }
}

fn write_contents(report: &ImportReport, settings: ConsoleSettings, out: &mut String) {
    let tools = match report.tools.len() {
        0 => String::new(),
        tools => format!(" to {}", counted(tools, "tool")),
    };
    let line = format!(
        "  {}, {}{tools}, {}",
        counted(report.steps, "step"),
        counted(report.tool_calls, "tool call"),
        counted(report.errors, "error")
    );
    let _ = writeln!(out, "{}", settings.palette.dim(line));
    let feedback = report.feedback;
    if feedback.found > 0 {
        let ratings = counted(feedback.found, "rating");
        let line = match (feedback.added, feedback.asked) {
            (_, false) => format!("  {ratings} found; pass --feedback to import them"),
            (added, true) if added == feedback.found => format!("  {ratings} imported as feedback"),
            (added, true) => format!("  {ratings} imported as feedback, {added} of them new"),
        };
        let _ = writeln!(out, "{}", settings.palette.dim(line));
    } else if feedback.asked {
        let _ = writeln!(out, "{}", settings.palette.dim("  no ratings found"));
    }
}

fn write_refused(refused: &[RefusedPiece], settings: ConsoleSettings, out: &mut String) {
    if refused.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}", settings.palette.failure(format!("{} refused", refused.len())));
    for piece in refused.iter().take(MAX_REJECTED) {
        let location = piece.location.as_ref().map(|location| format!(", {location}")).unwrap_or_default();
        let text = format!("{}{location}: {}", piece.file, piece.message);
        let text = printable(&text);
        let lines = wrap(&text, settings.columns.saturating_sub(6).max(20));
        for (number, line) in lines.iter().take(MAX_LINES).enumerate() {
            let indent = if number == 0 { 2 } else { 6 };
            let more = if number + 1 == MAX_LINES && lines.len() > MAX_LINES { settings.symbols.ellipsis } else { "" };
            let _ = writeln!(out, "{}{line}{more}", " ".repeat(indent));
        }
    }
    if refused.len() > MAX_REJECTED {
        let _ = writeln!(
            out,
            "  {} {} more (pass --format json to list all)",
            settings.symbols.ellipsis,
            refused.len() - MAX_REJECTED
        );
    }
}
