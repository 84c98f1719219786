//! The cases that did not pass, printed at the end of a run with regressions first.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use karat_core::event::{RunTotals, SuiteHeader};
use karat_core::result::{CaseResult, Outcome, SuiteResult};
use karat_json::text::shorten;

use super::Page;
use crate::record::{baseline_missing_texts, case_reasons, unreachable_text, unreported_calls_text};
use crate::terminal_text::{width, wrap};

/// Maximum number of cases or groups of cases that are listed.
const MAX_LISTED: usize = 50;

/// Maximum length of a reason, in characters; it is printed in full below its case.
const MAX_REASON_CHARS: usize = 300;

/// The cases that did not pass so far.
#[derive(Default)]
pub(super) struct FailureSummary {
    cases: Vec<FailureEntry>,
}

struct FailureEntry {
    suite: usize,
    index: usize,
    id: String,
    location: String,
    outcome: Outcome,
    reason: String,
    is_regression: bool,
}

impl FailureSummary {
    pub(super) fn add(&mut self, suite: usize, index: usize, case: &CaseResult, header: &SuiteHeader) {
        if case.outcome == Outcome::Passed {
            return;
        }
        let reason = case_reasons(case, header).into_iter().next().map(|(reason, _)| reason).unwrap_or_default();
        let line = header.lines.get(index).map(|line| format!(":{line}")).unwrap_or_default();
        self.cases.push(FailureEntry {
            suite,
            index,
            id: case.id.clone(),
            location: format!("{}{line}", header.path),
            outcome: case.outcome,
            reason: shorten(&reason, MAX_REASON_CHARS).into_owned(),
            is_regression: false,
        });
    }

    pub(super) fn mark_regressions(&mut self, suite: usize, result: &SuiteResult) {
        let regressions: HashSet<&str> = result.regressions.iter().map(String::as_str).collect();
        for case in self.cases.iter_mut().filter(|case| case.suite == suite) {
            case.is_regression = regressions.contains(case.id.as_str());
        }
    }

    /// Returns the cases in order, each with the number of further ones that errored for the same reason.
    fn groups(mut self) -> Vec<(FailureEntry, usize)> {
        // Cases finish in any order.
        self.cases.sort_by_key(|case| (!case.is_regression, case.outcome == Outcome::Errored, case.suite, case.index));
        let mut groups: Vec<(FailureEntry, usize)> = Vec::new();
        let mut errors: HashMap<String, usize> = HashMap::new();
        for case in self.cases {
            if case.outcome == Outcome::Errored {
                if let Some(known) = errors.get(&case.reason) {
                    groups[*known].1 += 1;
                    continue;
                }
                errors.insert(case.reason.clone(), groups.len());
            }
            groups.push((case, 0));
        }
        groups
    }
}

impl Page {
    /// Lists the cases that did not pass.
    pub(super) fn failure_summary(&self, cases: FailureSummary, out: &mut String) {
        let (symbols, palette) = (self.settings.symbols, self.settings.palette);
        let groups = cases.groups();
        if groups.is_empty() || self.has_annotations {
            return;
        }
        let _ = writeln!(out, "{}", palette.bold("not passed:"));
        for (case, others) in groups.iter().take(MAX_LISTED) {
            let mark = if case.outcome == Outcome::Errored { symbols.errored } else { symbols.failed };
            let subject = match others {
                0 => format!("{} ({})", case.id, case.location),
                count => format!("{} ({}) and {count} more", case.id, case.location),
            };
            let regression = if case.is_regression { "regression: " } else { "" };
            let text = self.clean(&format!("{subject}: {regression}{}", case.reason));
            let indent = 3 + width(mark);
            let lines = wrap(&text, self.settings.columns.saturating_sub(indent).max(20));
            let lines = lines.join(&format!("\n{}", " ".repeat(indent)));
            let painted = match case.outcome {
                Outcome::Errored => palette.error(mark),
                _ if case.is_regression => palette.alert(mark),
                _ => palette.failure(mark),
            };
            let _ = writeln!(out, "  {painted} {lines}");
        }
        let rest = &groups[groups.len().min(MAX_LISTED)..];
        if !rest.is_empty() {
            let count: usize = rest.iter().map(|(_, others)| 1 + others).sum();
            let _ = writeln!(out, "  {} and {count} more", symbols.ellipsis);
        }
        out.push('\n');
    }

    /// Prints the agents that are unreachable.
    pub(super) fn unreachable(&self, totals: &RunTotals, out: &mut String) {
        let mark = self.settings.symbols.errored.trim_end();
        for text in totals.unreachable.iter().filter_map(unreachable_text) {
            self.run_note(mark, &self.settings.palette.error(mark), &text, out);
        }
    }

    /// Explains how to read the tool calls of an agent that does not seem to report them.
    pub(super) fn unreported_calls(&self, totals: &RunTotals, out: &mut String) {
        let mark = self.settings.symbols.warning.trim_end();
        if let Some(text) = unreported_calls_text(totals) {
            self.run_note(mark, &self.settings.palette.warning(mark), &text, out);
        }
    }

    /// Lists the cases of the baseline that have no result.
    pub(super) fn baseline_missing(&self, totals: &RunTotals, out: &mut String) {
        let mark = self.settings.symbols.warning.trim_end();
        for text in baseline_missing_texts(totals) {
            self.run_note(mark, &self.settings.palette.warning(mark), &text, out);
        }
    }

    /// Writes a message about the whole run after a symbol.
    fn run_note(&self, mark: &str, painted: &str, text: &str, out: &mut String) {
        let indent = 1 + width(mark);
        let lines = wrap(&self.clean(text), self.settings.columns.saturating_sub(indent).max(20));
        let lines = lines.join(&format!("\n{}", " ".repeat(indent)));
        let _ = writeln!(out, "{painted} {lines}");
    }
}
