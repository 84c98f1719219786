//! Renders expected and actual calls side by side.

use karat_core::assertion::{CallAlignment, CallDifference, CallPair, CallPart, CallState};
use karat_core::trace::ToolCall;

use crate::call_text::call_text;
use crate::style::{Palette, Symbols};
use crate::terminal_text::{pad, printable, truncate, width, wrap};

/// Maximum number of lines of a cell, and of pairs, unless rendered in full.
const MAX_CELL_LINES: usize = 2;
const MAX_PAIRS: usize = 8;

/// Minimum width of a column.
const MIN_COLUMNS: usize = 12;
const SEPARATOR: &str = "  ";

/// Renders an alignment as a table with two columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AlignmentRenderer {
    /// The width of all lines.
    pub(crate) columns: usize,
    pub(crate) symbols: Symbols,
    pub(crate) palette: Palette,
    /// Whether nothing is left out.
    pub(crate) is_full: bool,
}

impl AlignmentRenderer {
    /// For reports without a terminal.
    pub(crate) const PLAIN: Self =
        Self { columns: 100, symbols: Symbols::UNICODE, palette: Palette { color: false }, is_full: false };

    /// Renders an alignment, one call per row, with each difference below its call.
    pub(crate) fn lines(self, alignment: &CallAlignment, calls: &[ToolCall]) -> Vec<String> {
        let is_long = !self.is_full && alignment.pairs.len() > MAX_PAIRS;
        let shown: Vec<&CallPair> =
            alignment.pairs.iter().filter(|pair| !is_long || is_shown(alignment, pair)).collect();
        let limit = if is_long { shown.len().min(MAX_PAIRS) } else { shown.len() };
        let mut lines = Vec::new();
        self.add_row("", "expected", "actual", |line| self.palette.dim(line), &mut lines);
        for pair in &shown[..limit] {
            self.add_pair(pair, calls, &mut lines);
        }
        let hidden = alignment.pairs.len() - limit;
        if hidden > 0 {
            let problems = shown.len() - limit;
            let problems = if problems > 0 { format!(", {problems} of them wrong") } else { String::new() };
            lines.push(format!("{} {hidden} more{problems}", self.symbols.ellipsis));
        }
        lines
    }

    fn add_pair(self, pair: &CallPair, calls: &[ToolCall], lines: &mut Vec<String>) {
        let Symbols { passed, failed, dash, .. } = self.symbols;
        let call = pair.call.and_then(|index| Some(format!("{} {}", index + 1, call_text(calls.get(index)?, false))));
        let actual = call.as_deref();
        let expected = pair.expected.as_deref().unwrap_or_default();
        let plain = |line: &str| line.to_owned();
        let marked = |line: &str| self.palette.failure(line);
        let dim = |line: &str| self.palette.dim(line);
        match pair.state {
            CallState::Matched => self.add_row(passed, expected, actual.unwrap_or_default(), plain, lines),
            CallState::Different => {
                self.add_row(failed, expected, actual.unwrap_or_default(), plain, lines);
                for difference in &pair.differences {
                    self.add_difference(difference, lines);
                }
            }
            CallState::Missing => self.add_row(failed, expected, "(missing)", marked, lines),
            CallState::Unexpected => self.add_row(failed, "(not expected)", actual.unwrap_or_default(), marked, lines),
            CallState::Unused => self.add_row(dash, expected, "(not made)", dim, lines),
            CallState::Extra => self.add_row(dash, "(any other)", actual.unwrap_or_default(), dim, lines),
        }
    }

    fn add_difference(self, difference: &CallDifference, lines: &mut Vec<String>) {
        let CallDifference { part, pointer, expected, actual } = difference;
        let label = match part {
            CallPart::Arguments if pointer.is_empty() => "arguments".to_owned(),
            CallPart::Arguments => pointer.clone(),
            CallPart::Result => format!("result{pointer}"),
            CallPart::Success => "success".to_owned(),
            CallPart::Step => "step".to_owned(),
        };
        let absent = if *part == CallPart::Success { "(not reported)" } else { "(absent)" };
        let expected = format!("  {label}: {}", expected.as_deref().unwrap_or("(none)"));
        let actual = format!("  {}", actual.as_deref().unwrap_or(absent));
        let mark = if self.symbols.ascii { "!=" } else { "≠" };
        self.add_row(mark, &expected, &actual, |line| self.palette.failure(line), lines);
    }

    /// Adds the lines of two cells after a mark.
    fn add_row(self, mark: &str, left: &str, right: &str, paint: impl Fn(&str) -> String, lines: &mut Vec<String>) {
        let mark_columns = width(self.symbols.passed).max(width(self.symbols.failed)).max(width(self.symbols.dash));
        let columns = self.columns.saturating_sub(mark_columns + 1 + SEPARATOR.len()) / 2;
        let columns = columns.max(MIN_COLUMNS);
        let (left, right) = (self.cell(left, columns), self.cell(right, columns));
        for index in 0..left.len().max(right.len()) {
            let cell = |cell: &[String]| cell.get(index).cloned().unwrap_or_default();
            let text = format!("{}{SEPARATOR}{}", pad(&cell(&left), columns), cell(&right));
            let mark = if index == 0 { mark } else { "" };
            let mark = pad(mark, mark_columns);
            let mark = if mark.trim() == self.symbols.failed.trim() {
                self.palette.failure(mark)
            } else if mark.trim() == self.symbols.passed.trim() {
                self.palette.success(mark)
            } else {
                mark
            };
            lines.push(format!("{mark} {}", paint(text.trim_end())).trim_end().to_owned());
        }
    }

    /// Wraps text to a column.
    fn cell(self, text: &str, columns: usize) -> Vec<String> {
        let indent: String = text.chars().take_while(|character| *character == ' ').collect();
        let clean = printable(text.trim_start());
        let mut lines = wrap(&clean, columns.saturating_sub(indent.len()).max(1));
        if !self.is_full && lines.len() > MAX_CELL_LINES {
            lines.truncate(MAX_CELL_LINES);
            if let Some(last) = lines.last_mut() {
                let ellipsis = self.symbols.ellipsis;
                let space = columns.saturating_sub(indent.len() + width(ellipsis));
                *last = format!("{}{ellipsis}", truncate(last, space, "").trim_end());
            }
        }
        lines.into_iter().map(|line| format!("{indent}{line}")).collect()
    }
}

/// Whether a pair of a long alignment is rendered.
fn is_shown(alignment: &CallAlignment, pair: &CallPair) -> bool {
    pair.state.is_problem() || alignment.only_order_differs && pair.entry != pair.call
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn alignment(value: &serde_json::Value) -> CallAlignment {
        serde_json::from_value(value.clone()).expect("an alignment")
    }

    fn calls(value: &serde_json::Value) -> Vec<ToolCall> {
        serde_json::from_value(value.clone()).expect("calls")
    }

    #[test]
    fn renders_expected_and_actual_calls_in_65_columns() {
        let alignment = alignment(&json!({"match": "exact", "pairs": [
            {"state": "matched", "entry": 0, "call": 0, "expected": "find_order {\"user\":\"ada\"}"},
            {"state": "different", "entry": 1, "call": 1, "expected": "cancel_order {\"orderId\":\"4411\"} where /reason is a value that contains 'late'",
             "differences": [
                {"part": "arguments", "pointer": "/orderId", "expected": "\"4411\"", "actual": "\"4141\""},
                {"part": "arguments", "pointer": "/force", "actual": "true"},
                {"part": "result", "pointer": "/state", "expected": "\"cancelled\""},
                {"part": "success", "expected": "true"},
             ]},
            {"state": "missing", "entry": 2, "expected": "send_mail {\"to\":\"ada@example.com\"}"},
            {"state": "unexpected", "call": 2},
        ]}));
        let calls = calls(&json!([
            {"name": "find_order", "params": {"user": "ada"}},
            {"name": "cancel_order", "params": {"orderId": "4141", "force": true}},
            {"name": "refund\u{1b}[31m", "params": {"note": "one\ntwo"}},
        ]));
        let renderer = AlignmentRenderer { columns: 65, ..AlignmentRenderer::PLAIN };
        let lines = renderer.lines(&alignment, &calls);
        assert!(lines.iter().all(|line| width(line) <= 65), "{lines:#?}");
        insta::assert_snapshot!(lines.join("\n"), @r#"
          expected                        actual
        ✓ find_order {"user":"ada"}       1 find_order {"user":"ada"}
        ✗ cancel_order                    2 cancel_order
          {"orderId":"4411"} where…       {"orderId":"4141","force":tru…
        ≠   /orderId: "4411"                "4141"
        ≠   /force: (none)                  true
        ≠   result/state: "cancelled"       (absent)
        ≠   success: true                   (not reported)
        ✗ send_mail                       (missing)
          {"to":"ada@example.com"}
        ✗ (not expected)                  3 refund\u{1b}[31m
                                          {"note":"one\ntwo"}
        "#);
    }

    #[test]
    fn omits_matched_calls_of_a_long_alignment() {
        let pair = |index: usize| {
            let state = if index == 5 { "missing" } else { "matched" };
            json!({"state": state, "entry": index, "call": index, "expected": "f"})
        };
        let alignment = alignment(&json!({"match": "anyOrder", "pairs": (0..20).map(pair).collect::<Vec<_>>()}));
        let calls = vec![ToolCall::default(); 20];
        let lines = AlignmentRenderer::PLAIN.lines(&alignment, &calls);
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[2], "… 19 more");
        assert_eq!(AlignmentRenderer { is_full: true, ..AlignmentRenderer::PLAIN }.lines(&alignment, &calls).len(), 21);
    }
}
