//! Changes of the tools since they were locked.

use std::fmt::Write as _;

use karat_tools::lock::{FieldChange, IncomparableTool, LockDiff, LockedField, StaleFile, ToolsDiff};

use super::counted;
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{pad, printable, truncate_middle, wrap};

/// Width of the longest field name.
const FIELD_WIDTH: usize = 12;

/// Renders the changes, and the eval files that they make stale.
pub fn tools_diff_text(diff: &ToolsDiff, settings: ConsoleSettings) -> String {
    let mut out = changes_text(&diff.tools, settings);
    if settings.verbosity != Verbosity::Quiet {
        not_comparable(&diff.tools.not_comparable, settings, &mut out);
        stale_files(&diff.stale_files, settings, &mut out);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{}", total(diff, settings));
    out
}

fn total(diff: &ToolsDiff, settings: ConsoleSettings) -> String {
    let LockDiff { changed, added, removed, renamed, .. } = &diff.tools;
    let palette = settings.palette;
    let parts =
        [("changed", changed.len()), ("added", added.len()), ("removed", removed.len()), ("renamed", renamed.len())];
    let parts: Vec<String> =
        parts.iter().filter(|(_, count)| *count > 0).map(|(word, count)| format!("{count} {word}")).collect();
    let stale = match diff.stale_files.len() {
        0 => "no eval file is stale".to_owned(),
        1 => "1 eval file is stale".to_owned(),
        count => format!("{count} eval files are stale"),
    };
    let tools = counted(diff.tools.tools_now, "tool");
    let lock = printable(&diff.lock);
    let line = if parts.is_empty() {
        format!("{tools}: no changes since {lock}; {stale}")
    } else {
        format!("{tools}: {} since {lock}; {stale}", parts.join(", "))
    };
    let line = wrap(&line, settings.columns.max(20)).join("\n");
    if parts.is_empty() && diff.stale_files.is_empty() { palette.success(line) } else { palette.warning(line) }
}

/// Renders the changes of the tools, one block per tool.
pub fn changes_text(diff: &LockDiff, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    let palette = settings.palette;
    let arrow = settings.symbols.arrow;
    let name = |name: &str, available: usize| {
        truncate_middle(&printable(name), available, settings.symbols.ellipsis).into_owned()
    };
    let available = settings.columns.saturating_sub(9).max(20);
    for change in &diff.changed {
        let _ = writeln!(out, "{}  {}", palette.warning("changed"), palette.bold(name(&change.tool, available)));
        for field in &change.fields {
            let _ = writeln!(out, "{}", field_line(field, settings));
        }
    }
    for tool in &diff.added {
        let _ = writeln!(out, "{}    {}", palette.success("added"), palette.bold(name(tool, available)));
    }
    for tool in &diff.removed {
        let _ = writeln!(out, "{}  {}", palette.failure("removed"), palette.bold(name(tool, available)));
    }
    for pair in &diff.renamed {
        let half = available.saturating_sub(arrow.chars().count() + 2) / 2;
        let (before, now) = (name(&pair.before, half), name(&pair.now, half));
        let _ = writeln!(out, "{}  {before} {arrow} {}", palette.warning("renamed"), palette.bold(now));
        let _ = writeln!(out, "         {}", palette.dim("probably: description and schema are equal"));
    }
    out
}

fn field_line(change: &FieldChange, settings: ConsoleSettings) -> String {
    let symbols = settings.symbols;
    let available = settings.columns.saturating_sub(9 + FIELD_WIDTH + 20).max(24) / 2;
    let side = |value: &Option<String>| {
        let value = value.as_deref().unwrap_or("none");
        truncate_middle(&printable(value), available, symbols.ellipsis).into_owned()
    };
    let mark = match change {
        FieldChange { major: true, .. } => "  major",
        _ => "",
    };
    let field = pad(change.field.name(), FIELD_WIDTH);
    format!(
        "         {field}  {} {} {}{}",
        side(&change.before),
        symbols.arrow,
        side(&change.now),
        settings.palette.failure(mark)
    )
}

fn not_comparable(tools: &[IncomparableTool], settings: ConsoleSettings, out: &mut String) {
    for IncomparableTool { tool, fields } in tools {
        let fields: Vec<&str> = fields.iter().copied().map(LockedField::name).collect();
        let reason = if fields.is_empty() {
            "may be in a part of the registry that is known only at run time".to_owned()
        } else {
            format!("{} unknown, so changes cannot be detected", fields.join(" and "))
        };
        let available = settings.columns.saturating_sub(9).max(20);
        let name = printable(tool);
        let name = truncate_middle(&name, available, settings.symbols.ellipsis);
        let _ = writeln!(out, "{}  {name}", settings.palette.dim("unknown"));
        for line in wrap(&reason, available) {
            let _ = writeln!(out, "         {}", settings.palette.dim(line));
        }
    }
}

fn stale_files(files: &[StaleFile], settings: ConsoleSettings, out: &mut String) {
    if files.is_empty() {
        return;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{}", settings.palette.bold("Stale eval files"));
    for StaleFile { file, effects } in files {
        let _ = writeln!(out, "  {}", printable(file));
        for effect in effects {
            let sentence = effect.sentence();
            let lines = wrap(&printable(&sentence), settings.columns.saturating_sub(6).max(20));
            let _ = writeln!(out, "    {}", lines.join("\n      "));
        }
    }
}
