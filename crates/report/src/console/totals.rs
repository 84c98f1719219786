//! Totals and gates.

use std::fmt::Write as _;

use karat_core::event::RunTotals;
use karat_json::text::counted;

use super::{ConsoleSettings, Page, plural};
use crate::security::security_line;
use crate::simulated_user::simulated_users_line;
use crate::style::Palette;
use crate::terminal_text::{pad, width};
use crate::trials::trials_line;

impl Page {
    pub(super) fn totals(&self, totals: &RunTotals, out: &mut String) {
        let palette = self.settings.palette;
        let mut parts = count_parts(totals, palette);
        if totals.regressions > 0 {
            parts.insert(
                0,
                palette.alert(format_args!("{} regression{}", totals.regressions, plural(totals.regressions))),
            );
        }
        // The rubric above has no verdicts.
        let rubrics = if totals.rubric.is_some() { " without rubrics" } else { "" };
        let title = palette.bold(format_args!("{} suite{}{rubrics}:", totals.suites, plural(totals.suites)));
        self.numbers(&format!("{title} "), &parts, out);
        self.trials(totals, "  ", out);
        self.security(totals, out);
    }

    /// Shows what is counted apart: utility and safety, and simulated users.
    pub(super) fn security(&self, totals: &RunTotals, out: &mut String) {
        if let Some(users) = &totals.simulated_user {
            self.numbers("  ", &[self.clean(&simulated_users_line(users))], out);
        }
        if let Some(security) = &totals.security {
            self.numbers("  ", &[self.clean(&security_line(security))], out);
        }
    }

    pub(super) fn trials(&self, totals: &RunTotals, start: &str, out: &mut String) {
        let Some(trials) = &totals.trials else {
            return;
        };
        let mut parts = vec![self.clean(&trials_line(trials))];
        if trials.flaky > 0 {
            parts.push(self.settings.palette.warning(format_args!("{} flaky", trials.flaky)));
        }
        self.numbers(start, &parts, out);
    }

    /// Shows whether each gate passed.
    pub(super) fn gates(&self, totals: &RunTotals, out: &mut String) {
        let gates = &totals.gates;
        let ConsoleSettings { symbols, palette, .. } = self.settings;
        let widest = gates.iter().map(|result| result.gate.name().len()).max().unwrap_or(0);
        for (index, result) in gates.iter().enumerate() {
            if index == 0 || gates[index - 1].agent != result.agent {
                let suffix =
                    result.agent.as_ref().map(|agent| format!(" of {}", self.clean(agent))).unwrap_or_default();
                let _ = writeln!(out, "{}", palette.bold(format_args!("gates{suffix}:")));
            }
            let mark = match result.held {
                Some(true) => palette.success(symbols.passed),
                Some(false) => palette.failure(symbols.failed),
                None => palette.error(symbols.errored),
            };
            let _ = writeln!(out, "  {mark} {}  {result}", pad(result.gate.name(), widest));
        }
        if !gates.is_empty() && totals.is_incomplete() {
            let warning = palette.warning(symbols.warning);
            let _ = writeln!(out, "  {warning} the run is incomplete: a gate that passed may fail in a complete run");
        }
    }

    /// Writes the parts on as many lines as needed.
    pub(super) fn numbers(&self, start: &str, parts: &[String], out: &mut String) {
        let mut line = start.to_owned();
        let mut is_first = true;
        for part in parts {
            let separator = if is_first { "" } else { " | " };
            if !is_first && painted_width(&line) + painted_width(part) + 3 > self.settings.columns {
                let _ = writeln!(out, "{line}");
                "  ".clone_into(&mut line);
            } else {
                line.push_str(separator);
            }
            line.push_str(part);
            is_first = false;
        }
        let _ = writeln!(out, "{line}");
    }
}

/// Returns the counts of a suite or a run, with errors separate from failures.
pub(super) fn count_parts(totals: &RunTotals, palette: Palette) -> Vec<String> {
    let failures = totals.failed - totals.errored;
    let passed = format!("{}/{} passed", totals.passed, totals.cases);
    let failed = format!("{failures} failed");
    let mut parts = vec![
        if totals.passed == totals.cases { palette.success(passed) } else { passed },
        if failures > 0 { palette.failure(failed) } else { failed },
    ];
    if totals.errored > 0 {
        parts.push(palette.error(format_args!("{} errored", totals.errored)));
    }
    if totals.vacuous > 0 {
        parts.push(palette.warning(format_args!("{} vacuous", totals.vacuous)));
    }
    if totals.not_run > 0 {
        parts.push(palette.warning(format_args!("{} not run", totals.not_run)));
    }
    if totals.skipped > 0 {
        parts.push(palette.warning(format_args!("{} skipped", totals.skipped)));
    }
    parts.push(counted(totals.skipped_assertions, "skipped assertion"));
    parts
}

/// Returns the width of text without its colour codes.
fn painted_width(text: &str) -> usize {
    let mut rest = text;
    let mut columns = 0;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        columns += width(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    columns + width(rest)
}
