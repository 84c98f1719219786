//! A conversation as plain text, for reports without columns.

use std::fmt::Write as _;

use karat_core::result::{TurnDetails, TurnOutcome};
use karat_json::text::shorten;

use crate::call_alignment::AlignmentRenderer;
use crate::call_text::{call_text, no_calls_text};

/// Returns the turns that ran, and the number of the others.
pub(crate) fn turns_that_ran(turns: &[TurnDetails]) -> (&[TurnDetails], usize) {
    let ran = turns.iter().take_while(|turn| turn.outcome != TurnOutcome::NotRun).count();
    (&turns[..ran], turns.len() - ran)
}

/// Returns the outcome of a turn as text.
pub(crate) fn outcome_text(outcome: TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Passed => "passed",
        TurnOutcome::Failed => "failed",
        TurnOutcome::Errored => "errored",
        TurnOutcome::NotRun => "not run",
    }
}

/// Returns the note on turns that were not run.
pub(crate) fn not_run_text(count: usize) -> String {
    if count == 1 { "1 more turn was not run".to_owned() } else { format!("{count} more turns were not run") }
}

/// Returns the conversation up to its end, with texts of at most `limit` characters.
pub(crate) fn transcript(turns: &[TurnDetails], limit: usize) -> String {
    let (ran, not_run) = turns_that_ran(turns);
    let mut text = String::new();
    for (number, turn) in (1..).zip(ran) {
        if number > 1 {
            text.push('\n');
        }
        let _ = writeln!(text, "turn {number} ({}): {}", outcome_text(turn.outcome), shorten(&turn.message, limit));
        let Some(response) = turn.response.as_deref() else { continue };
        let answer = if response.trim().is_empty() { "(empty)" } else { response.trim() };
        let _ = writeln!(text, "answer: {}", shorten(answer, limit));
        if let Some(alignment) = &turn.calls {
            let _ =
                writeln!(text, "calls:\n{}", AlignmentRenderer::PLAIN.lines(alignment, &turn.tool_calls).join("\n"));
        } else {
            let calls: Vec<String> =
                turn.tool_calls.iter().map(|call| shorten(&call_text(call, false), limit).into_owned()).collect();
            let calls =
                if calls.is_empty() { no_calls_text(turn.calls_unreported).to_owned() } else { calls.join("; ") };
            let _ = writeln!(text, "calls: {calls}");
        }
    }
    if not_run > 0 {
        let _ = writeln!(text, "\n{}", not_run_text(not_run));
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use karat_core::trace::ToolCall;

    use super::*;

    #[test]
    fn omits_turns_that_did_not_run() {
        let answered = |message: &str, outcome, response: &str, tool: Option<&str>| TurnDetails {
            outcome,
            response: Some(response.to_owned()),
            tool_calls: tool
                .map(|name| ToolCall { name: name.to_owned(), ..ToolCall::default() })
                .into_iter()
                .collect(),
            ..TurnDetails::not_run(message)
        };
        let turns = [
            answered("Cancel it", TurnOutcome::Passed, "Which order?", None),
            answered("4411", TurnOutcome::Failed, " ", Some("cancel_order")),
            TurnDetails::not_run("Thanks"),
        ];
        let expected = "turn 1 (passed): Cancel it\nanswer: Which order?\ncalls: none\n\nturn 2 (failed): 4411\n\
                        answer: (empty)\ncalls: cancel_order {}\n\n1 more turn was not run";
        assert_eq!(transcript(&turns, 100), expected);
    }
}
