//! The message, answer and calls of a case, printed below it.

use std::fmt::Write as _;

use karat_core::assertion::{CallAlignment, Field};
use karat_core::result::{CaseResult, Cause, Outcome, TurnOutcome};
use karat_core::trace::{MAX_TURNS_REACHED, ToolCall};
use karat_json::text::text_form;
use serde_json::Value;

use super::{Page, Verbosity};
use crate::call_alignment::AlignmentRenderer;
use crate::call_text::{call_text, no_calls_text};
use crate::excerpt::{Excerpt, Row, excerpt};
use crate::terminal_text::{printable, truncate, width};
use crate::transcript::{not_run_text, turns_that_ran};

/// Width of the labels, with the space after them.
const LABEL_WIDTH: usize = 9;

/// Maximum number of lines, unless cases are shown in full.
const MAX_MESSAGE_ROWS: usize = 2;
const MAX_ANSWER_ROWS: usize = 4;
const MAX_CALL_ROWS: usize = 2;

/// Shown if a model reached the maximum number of turns without an answer.
pub(crate) const MAX_TURNS_TEXT: &str = "stopped after the last turn, still calling tools: see 'maxTurns'";

/// Maximum number of calls, unless cases are shown in full.
const MAX_CALLS: usize = 5;

/// Calls to print.
#[derive(Clone, Copy)]
struct Calls<'c> {
    list: &'c [ToolCall],
    is_unreported: bool,
    /// Whether the results of successful calls are shown too.
    with_results: bool,
}

impl<'c> Calls<'c> {
    fn of_case(case: &'c CaseResult) -> Self {
        let details = &case.details;
        let with_results = has_wrong_response(case);
        Self { list: &details.tool_calls, is_unreported: details.calls_unreported, with_results }
    }
}

impl Page {
    /// Shows the message, the answer and the calls of a case that did not pass, or of every case if shown in full.
    pub(super) fn case_details(&self, case: &CaseResult, out: &mut String) {
        let is_full = self.settings.verbosity == Verbosity::Full;
        let has_answer = case.has_answer();
        // An error without an answer has nothing to compare the message with.
        let did_not_pass = case.outcome == Outcome::Failed || case.outcome == Outcome::Errored && has_answer;
        let is_shown = is_full || did_not_pass && !self.has_annotations;
        if !is_shown || case.cause == Some(Cause::NotRun) {
            return;
        }
        if !case.details.turns.is_empty() {
            return self.write_conversation(case, is_full, out);
        }
        let rows = |max_rows| if is_full { usize::MAX } else { max_rows };
        self.write_labelled("message", &case.message, &[], rows(MAX_MESSAGE_ROWS), out);
        if !has_answer {
            return;
        }
        self.write_labelled("answer", &case.details.response, &case.marks, rows(MAX_ANSWER_ROWS), out);
        if let Some(alignment) = &case.details.calls {
            self.write_alignment(alignment, &case.details.tool_calls, is_full, out);
        } else {
            self.write_calls(&Calls::of_case(case), is_full, out);
        }
        if case.details.stop_reason.as_deref() == Some(MAX_TURNS_REACHED) {
            self.write_labelled("stop", MAX_TURNS_TEXT, &[], MAX_MESSAGE_ROWS, out);
        }
    }

    fn write_alignment(&self, alignment: &CallAlignment, calls: &[ToolCall], is_full: bool, out: &mut String) {
        let columns = self.settings.columns.saturating_sub(6 + LABEL_WIDTH);
        let renderer =
            AlignmentRenderer { columns, symbols: self.settings.symbols, palette: self.settings.palette, is_full };
        for (index, line) in renderer.lines(alignment, calls).iter().enumerate() {
            let label = if index == 0 { "calls" } else { "" };
            let _ = writeln!(out, "      {}{line}", self.settings.palette.dim(format_args!("{label:<LABEL_WIDTH$}")));
        }
    }

    /// Shows the turns that ran. Turns that passed are shortened, unless cases are shown in full.
    fn write_conversation(&self, case: &CaseResult, is_full: bool, out: &mut String) {
        let symbols = self.settings.symbols;
        let (ran, not_run) = turns_that_ran(&case.details.turns);
        for (number, turn) in (1..).zip(ran) {
            let is_shortened = turn.passed() && number < ran.len() && !is_full;
            let rows = |max_rows: usize| match (is_full, is_shortened) {
                (true, _) => usize::MAX,
                (false, true) => 1,
                (false, false) => max_rows,
            };
            let symbol = match turn.outcome {
                TurnOutcome::Passed => symbols.passed,
                TurnOutcome::Failed => symbols.failed,
                TurnOutcome::Errored | TurnOutcome::NotRun => symbols.errored,
            };
            let message = format!("{} {}", symbol.trim_end(), turn.message);
            self.write_labelled(&format!("turn {number}"), &message, &[], rows(MAX_MESSAGE_ROWS), out);
            let Some(response) = &turn.response else { continue };
            let marks = if turn.passed() { &[][..] } else { &case.marks };
            self.write_labelled("answer", response, marks, rows(MAX_ANSWER_ROWS), out);
            if let Some(alignment) = &turn.calls {
                self.write_alignment(alignment, &turn.tool_calls, is_full, out);
            } else if !is_shortened || !turn.tool_calls.is_empty() {
                let calls = Calls { with_results: false, list: &turn.tool_calls, is_unreported: turn.calls_unreported };
                self.write_calls(&calls, is_full, out);
            }
            if turn.stop_reason.as_deref() == Some(MAX_TURNS_REACHED) {
                self.write_labelled("stop", MAX_TURNS_TEXT, &[], MAX_MESSAGE_ROWS, out);
            }
        }
        if not_run > 0 {
            self.write_rows("", vec![Row { text: not_run_text(not_run), carets: String::new() }], out);
        }
        if let Some(alignment) = &case.details.calls {
            self.write_alignment(alignment, &case.details.tool_calls, is_full, out);
        }
    }

    fn write_calls(&self, calls: &Calls<'_>, is_full: bool, out: &mut String) {
        let Calls { list: calls, is_unreported, with_results } = *calls;
        let rows = |max_rows| if is_full { usize::MAX } else { max_rows };
        let limit = if is_full { calls.len() } else { calls.len().min(MAX_CALLS) };
        if calls.is_empty() {
            let text = no_calls_text(is_unreported).to_owned();
            self.write_rows("calls", vec![Row { text, carets: String::new() }], out);
        }
        for (index, call) in calls[..limit].iter().enumerate() {
            let label = if index == 0 { "calls" } else { "" };
            self.write_labelled(label, &call_text(call, is_full), &[], rows(MAX_CALL_ROWS), out);
            let is_shown = !is_full && with_results && succeeded(call);
            if let Some(result) = call.result.as_ref().filter(|_| is_shown) {
                self.write_result(result, out);
            }
        }
        if limit < calls.len() {
            let text = format!("{} {} more", self.settings.symbols.ellipsis, calls.len() - limit);
            self.write_rows("", vec![Row { text, carets: String::new() }], out);
        }
    }

    /// Shows the result of a call in one line.
    fn write_result(&self, result: &Value, out: &mut String) {
        let columns = self.settings.columns.saturating_sub(6 + LABEL_WIDTH).max(20);
        let text = format!("-> {}", text_form(result));
        let text = truncate(&printable(&text), columns, self.settings.symbols.ellipsis).into_owned();
        self.write_rows("", vec![Row { text, carets: String::new() }], out);
    }

    fn write_labelled(&self, label: &str, text: &str, marks: &[String], max_rows: usize, out: &mut String) {
        let ellipsis = self.settings.symbols.ellipsis;
        let columns = self.settings.columns.saturating_sub(6 + LABEL_WIDTH).max(20);
        let Excerpt { mut rows, cut_before, cut_after } = excerpt(text, marks, columns, max_rows);
        let cut = || Row { text: ellipsis.to_owned(), carets: String::new() };
        if text.trim().is_empty() {
            rows = vec![Row { text: "(empty)".to_owned(), carets: String::new() }];
        }
        if cut_before {
            rows.insert(0, cut());
        }
        if cut_after {
            let last = rows.last_mut().filter(|row| row.carets.is_empty() && width(&row.text) + 1 < columns);
            match last {
                Some(row) => {
                    let _ = write!(row.text, " {ellipsis}");
                }
                None => rows.push(cut()),
            }
        }
        self.write_rows(label, rows, out);
    }

    /// Writes rows of printable text after a label.
    fn write_rows(&self, label: &str, rows: Vec<Row>, out: &mut String) {
        let palette = self.settings.palette;
        for (index, row) in rows.into_iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let line = format!("      {}{}", palette.dim(format_args!("{label:<LABEL_WIDTH$}")), self.clean(&row.text));
            let _ = writeln!(out, "{}", line.trim_end());
            if !row.carets.is_empty() {
                let indent = " ".repeat(6 + LABEL_WIDTH);
                let _ = writeln!(out, "{indent}{}", palette.failure(row.carets));
            }
        }
    }
}

/// Whether an assertion on the response failed, which the results of calls may explain.
fn has_wrong_response(case: &CaseResult) -> bool {
    let fields = [
        Field::ResponseContains,
        Field::ResponseContainsAny,
        Field::ResponseNotContains,
        Field::ResponseMatches,
        Field::ResponseJsonSchema,
        Field::NumbersGrounded,
    ];
    case.failures.iter().any(|failure| fields.iter().any(|field| field.name() == failure.assertion))
}

/// Whether a call has a result that [`call_text`] does not show.
fn succeeded(call: &ToolCall) -> bool {
    call.error.is_none() && call.success != Some(false)
}
