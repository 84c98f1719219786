//! Console output of rubric suites.

use std::fmt::Write as _;

use karat_core::rubric::{RubricCaseResult, RubricOutcome, RubricResult, RubricScore, RubricSuite, RubricTotals};

use super::{MIN_LINE_WIDTH, Page, Verbosity};
use crate::duration::duration_text;
use crate::style::Symbols;
use crate::terminal_text::{pad, width, wrap, wrap_truncated};

impl Page {
    /// Renders a finished rubric suite.
    pub(super) fn rubric(&self, suite: &RubricSuite, out: &mut String) {
        let Symbols { double_rule, dash, rule, .. } = self.settings.symbols;
        let start = double_rule.to_string().repeat(3);
        let title = format!("{start} {} {dash} rubric ", self.clean(&suite.tool_name));
        let line = self.layout.line.max(MIN_LINE_WIDTH).max(width(&title)).min(self.settings.columns.max(20));
        let fill = double_rule.to_string().repeat(line.saturating_sub(width(&title)));
        let _ = writeln!(out, "{}", self.settings.palette.bold(format!("{title}{fill}").trim_end()));
        match &suite.outcome {
            RubricOutcome::Skipped(reason) => self.warning(&format!("skipped: {reason}"), out),
            RubricOutcome::Result(result) => {
                result.cases.iter().for_each(|case| self.rubric_case(case, out));
                let _ = writeln!(out, "{}", rule.to_string().repeat(line));
                self.numbers("  ", &self.score_parts(result), out);
                let answered = suite.agent.as_ref().map(|agent| format!("answered by {agent}, ")).unwrap_or_default();
                self.dim_note(&format!("{answered}judged by {}", result.judge.identity), out);
                result.warnings.iter().for_each(|text| self.warning(text, out));
            }
        }
        out.push('\n');
    }

    fn rubric_case(&self, case: &RubricCaseResult, out: &mut String) {
        let Symbols { errored, ellipsis, .. } = self.settings.symbols;
        let palette = self.settings.palette;
        let is_full = case.score == Some(case.max_score);
        if self.settings.verbosity == Verbosity::Quiet && is_full {
            return;
        }
        let plain = case.score.map_or_else(|| errored.trim().to_owned(), |score| format!("{score}/{}", case.max_score));
        let mark = match case.score {
            Some(_) if is_full => palette.success(&plain),
            Some(_) => palette.warning(&plain),
            None => palette.error(&plain),
        };
        let gap = " ".repeat(5_usize.saturating_sub(width(&plain)));
        let duration = duration_text(case.duration_ms);
        let available =
            self.settings.columns.saturating_sub(2 + width(&plain).max(5) + 1 + 1 + width(&duration)).max(20);
        let text = format!("{}  {}", self.clean(&case.id), self.clean(&case.description));
        let mut lines = wrap_truncated(text.trim_end(), available, ellipsis).into_iter();
        let line = self.layout.line.max(MIN_LINE_WIDTH);
        let columns = line.saturating_sub(2 + 5 + 1 + 1 + width(&duration)).min(available);
        let first = pad(&lines.next().unwrap_or_default(), columns);
        let _ = writeln!(out, "  {mark}{gap} {first} {}", palette.dim(duration));
        let indent = " ".repeat(2 + width(&plain).max(5) + 1);
        for line in lines {
            let _ = writeln!(out, "{indent}{line}");
        }
        if case.dimensions.len() > 1 {
            let scores: Vec<String> = case.dimensions.iter().map(score_text).collect();
            self.dim_note(&scores.join(", "), out);
        }
        if let Some(error) = &case.error {
            self.reason(&format!("error: {error}"), out);
        }
        for dimension in case.dimensions.iter().filter(|dimension| dimension.score < dimension.max_score) {
            self.reason(&format!("{}: {}", score_text(dimension), dimension.reason), out);
        }
    }

    fn score_parts(&self, result: &RubricResult) -> Vec<String> {
        let summary = &result.summary;
        let totals = RubricTotals {
            judged: summary.judged,
            errored: summary.errored,
            not_run: summary.not_run,
            score: summary.score,
            max_score: summary.max_score,
            score_share: summary.score_share,
            ..RubricTotals::default()
        };
        self.rubric_parts(&totals)
    }

    fn rubric_parts(&self, totals: &RubricTotals) -> Vec<String> {
        let palette = self.settings.palette;
        let mut parts = vec![format!("{} judged", totals.judged)];
        parts.extend(
            totals
                .score_share
                .map(|share| format!("{}/{} points ({})", totals.score, totals.max_score, percent(share))),
        );
        if totals.errored > 0 {
            parts.push(palette.error(format_args!("{} errored", totals.errored)));
        }
        if totals.not_run > 0 {
            parts.push(palette.warning(format_args!("{} not run", totals.not_run)));
        }
        if totals.skipped > 0 {
            parts.push(palette.warning(format_args!("{} skipped", totals.skipped)));
        }
        parts
    }

    pub(super) fn rubric_totals(&self, totals: &RubricTotals, out: &mut String) {
        let count = totals.suites + totals.skipped_suites;
        let title = self.settings.palette.bold(format_args!("{count} rubric suites:"));
        self.numbers(&format!("{title} "), &self.rubric_parts(totals), out);
    }

    fn dim_note(&self, text: &str, out: &mut String) {
        let lines = wrap(&self.clean(text), self.settings.columns.saturating_sub(4).max(20));
        for line in lines {
            let _ = writeln!(out, "    {}", self.settings.palette.dim(line));
        }
    }

    fn warning(&self, text: &str, out: &mut String) {
        let symbol = self.settings.symbols.warning;
        let indent = 3 + width(symbol);
        let lines = wrap(&self.clean(text), self.settings.columns.saturating_sub(indent).max(20));
        let joined = lines.join(&format!("\n{}", " ".repeat(indent)));
        let _ = writeln!(out, "  {} {joined}", self.settings.palette.warning(symbol));
    }
}

fn score_text(score: &RubricScore) -> String {
    format!("{} {}/{}", score.dimension, score.score, score.max_score)
}

/// Formats a share in percent; only exact values are shown as 0% or 100%.
pub(crate) fn percent(share: f64) -> String {
    let rounded = (share * 100.0).round();
    let clamped = if share > 0.0 && rounded < 1.0 {
        1.0
    } else if share < 1.0 && rounded > 99.0 {
        99.0
    } else {
        rounded
    };
    format!("{clamped:.0}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_shares_are_0_or_100_percent() {
        let shares = [0.0, 0.001, 0.8, 2.0 / 3.0, 0.999, 1.0];
        assert_eq!(shares.map(percent), ["0%", "1%", "80%", "67%", "99%", "100%"]);
    }
}
