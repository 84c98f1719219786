//! The evals in the store, as text.

use std::fmt::Write as _;

use karat_core::line_diff::LineChange;
use karat_evals::report::{EvalDetails, EvalHistory, EvalList, EvalsAdded};
use karat_evals::version::{EvalSummary, VersionCounts};

use super::run::not_applicable_text;
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{mask_control_chars, pad, printable, width, wrap};
use crate::tools::counted;

/// Width of the columns after the names.
const NUMBERS_WIDTH: usize = 2 + 7 + 2 + 16 + 3 * 9;

/// The format of times, in UTC.
const TIME_FORMAT: &str = "%Y-%m-%d %H:%M";

/// Renders the version of each added function.
pub fn evals_added_text(report: &EvalsAdded, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    if settings.verbosity == Verbosity::Quiet {
        return out;
    }
    let sign = settings.palette.success(settings.symbols.passed);
    for eval in &report.evals {
        let name = printable(&eval.eval_id);
        let _ = if eval.added {
            writeln!(out, "{sign} {name}: added version {} from {}", eval.version, printable(&eval.file))
        } else {
            writeln!(out, "{sign} {name}: version {} is unchanged", eval.version)
        };
    }
    out
}

/// Renders all evals with the verdicts of their newest versions.
pub fn eval_list_text(list: &EvalList, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    if list.evals.is_empty() {
        return out;
    }
    let names = list.evals.iter().map(|eval| width(&printable(&eval.eval_id))).max().unwrap_or(0);
    let available = names.clamp("eval".len(), settings.columns.saturating_sub(NUMBERS_WIDTH).max(20));
    let head = format!("{}  version  {:16}   passed   failed  errored", pad("eval", available), "added (UTC)");
    let _ = writeln!(out, "{}", settings.palette.dim(head));
    for eval in &list.evals {
        let EvalSummary { newest_version, updated_at, passed, failed, not_applicable, errored, .. } = eval;
        let mut name = printable(&eval.eval_id);
        // Not truncated, so that it can be copied.
        if width(&name) > available {
            let _ = writeln!(out, "{name}");
            name = "".into();
        }
        let name = pad(&name, available);
        let time = updated_at.strftime(TIME_FORMAT);
        let _ = writeln!(
            out,
            "{name}  {newest_version:>7}  {time}{passed:>9}{failed:>9}{errored:>9}{}",
            not_applicable_note(*not_applicable)
        );
    }
    let _ = writeln!(out, "\n{}", counted(list.evals.len(), "eval"));
    out
}

/// Renders one version: its metadata, the verdicts of all versions, and its code.
pub fn eval_details_text(eval: &EvalDetails, settings: ConsoleSettings) -> String {
    let version = &eval.version;
    let title = format!("{} version {} of {}", printable(&version.eval_id), version.version, eval.newest_version);
    let mut out = format!("{}\n", settings.palette.bold(title));
    write_labelled("added", &format!("{} UTC", version.created_at.strftime(TIME_FORMAT)), settings, &mut out);
    if let Some(note) = &version.note {
        write_labelled("note", &printable(note), settings, &mut out);
    }
    write_labelled("code", &printable(&version.code_hash), settings, &mut out);
    write_labelled("python", &printable(&version.guest_hash), settings, &mut out);
    for (index, counts) in eval.verdicts.iter().rev().enumerate() {
        let label = if index == 0 { "verdicts" } else { "" };
        write_labelled(label, &format!("version {}: {}", counts.version, verdict_counts(counts)), settings, &mut out);
    }
    let _ = writeln!(out, "\n{}", mask_control_chars(version.code.trim_end()));
    out
}

/// Renders all versions, newest first.
pub fn eval_history_text(history: &EvalHistory, settings: ConsoleSettings) -> String {
    let palette = settings.palette;
    let title = format!("{}: {}", printable(&history.eval_id), counted(history.versions.len(), "version"));
    let mut out = format!("{}\n", palette.bold(title));
    for past in &history.versions {
        let time = past.created_at.strftime(TIME_FORMAT);
        let line = format!("version {}, {time} UTC, {}", past.counts.version, changed(past.lines));
        let _ = writeln!(out, "\n{line}");
        for line in past.note.iter().flat_map(|note| wrap(&printable(note), settings.columns.saturating_sub(2).max(20)))
        {
            let _ = writeln!(out, "  {line}");
        }
        let _ = writeln!(out, "  {}", palette.dim(verdict_counts(&past.counts)));
    }
    out
}

fn write_labelled(label: &str, text: &str, settings: ConsoleSettings, out: &mut String) {
    for (index, line) in wrap(text, settings.columns.saturating_sub(12).max(20)).iter().enumerate() {
        let _ = writeln!(out, "  {:<8}  {line}", if index == 0 { label } else { "" });
    }
}

fn changed(lines: LineChange) -> String {
    match (lines.added, lines.removed) {
        (0, 0) => "no changed lines".to_owned(),
        (1, 0) => "+1 line".to_owned(),
        (added, 0) => format!("+{added} lines"),
        (0, 1) => "-1 line".to_owned(),
        (0, removed) => format!("-{removed} lines"),
        (added, removed) => format!("+{added} -{removed} lines"),
    }
}

fn verdict_counts(counts: &VersionCounts) -> String {
    let VersionCounts { passed, failed, not_applicable, errored, .. } = counts;
    let not_applicable_text = not_applicable_text(*not_applicable);
    match errored {
        0 if passed + failed + not_applicable == 0 => "no verdicts yet".to_owned(),
        0 => format!("{passed} passed, {failed} failed{not_applicable_text}"),
        _ => format!("{passed} passed, {failed} failed{not_applicable_text}, {errored} errored"),
    }
}

/// Returns a note on executions that were not applicable, after the columns.
fn not_applicable_note(not_applicable: u64) -> String {
    if not_applicable > 0 { format!("  + {not_applicable} not applicable") } else { String::new() }
}
