//! Feedback, as text.

use std::collections::HashSet;
use std::fmt::Write as _;

use jiff::Timestamp;
use karat_core::rating::Rating;
use karat_evals::feedback::Feedback;

use crate::console::ConsoleSettings;
use crate::style::{Palette, Symbols};
use crate::terminal_text::{pad, printable, truncate, width};

/// Maximum width of the author column; longer names overflow it.
const MAX_AUTHOR_WIDTH: usize = 24;

/// Width of the longest rating, "retracted".
const RATING_WIDTH: usize = 9;

/// Renders ratings, newest first, each with its note below. An author's newest rating of a trace counts. `ids` are the
/// shortened ids, in list order. Notes are truncated only on a terminal, so that they can be searched.
pub fn feedback_list_text(
    list: &[Feedback],
    ids: &[String],
    settings: ConsoleSettings,
    screen: Option<usize>,
) -> String {
    let mut out = String::new();
    let authors: Vec<String> = list.iter().map(|feedback| printable(&feedback.author).into_owned()).collect();
    let widest =
        authors.iter().map(|author| width(author)).filter(|width| *width <= MAX_AUTHOR_WIDTH).max().unwrap_or(0);
    let mut known = HashSet::new();
    for ((feedback, author), id) in list.iter().zip(&authors).zip(ids) {
        let is_current = known.insert((&feedback.trace_id, &feedback.author));
        let earlier = if is_current { "" } else { "  (earlier)" };
        let _ = writeln!(
            out,
            "{}  {}  {}  {}{}",
            settings.palette.dim(minute(feedback.created_at)),
            rating_cell(feedback, settings.palette, settings.symbols),
            pad(author, widest),
            printable(id),
            settings.palette.dim(earlier),
        );
        if let Some(note) = &feedback.note {
            let note = printable(note);
            let note = match screen {
                Some(columns) => truncate(&note, columns.saturating_sub(NOTE_INDENT.len()), settings.symbols.ellipsis),
                None => note,
            };
            let _ = writeln!(out, "{NOTE_INDENT}{note}");
        }
    }
    out
}

/// Aligns notes with the rating.
const NOTE_INDENT: &str = "                  ";

fn rating_cell(feedback: &Feedback, palette: Palette, symbols: Symbols) -> String {
    let sign = match feedback.rating {
        Some(Rating::Positive) => symbols.passed,
        Some(Rating::Negative) => symbols.failed,
        Some(Rating::Neutral) => symbols.dash,
        None => "",
    };
    // In ASCII the signs are words and would be redundant.
    let sign = if symbols.ascii { String::new() } else { pad(sign, 2) };
    let cell = format!("{sign}{}", pad(feedback.rating_word(), RATING_WIDTH));
    match feedback.rating {
        Some(Rating::Positive) => palette.success(cell),
        Some(Rating::Negative) => palette.failure(cell),
        Some(Rating::Neutral) => cell,
        None => palette.dim(cell),
    }
}

/// Formats a time in UTC, to the minute.
fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Verbosity;

    fn feedback(trace: &str, rating: Option<Rating>, note: Option<&str>) -> Feedback {
        Feedback {
            trace_id: trace.to_owned(),
            author: if trace == "t2" { "Grace".to_owned() } else { "Ada".to_owned() },
            rating,
            note: note.map(str::to_owned),
            source: "cli".to_owned(),
            created_at: "2026-11-16T12:00:00Z".parse().expect("a time"),
        }
    }

    fn list(screen: Option<usize>, symbols: Symbols) -> String {
        let list = [
            feedback("t1", Some(Rating::Negative), Some("asked twice\nfor the \u{1b}[31msame thing, and again")),
            feedback("t2", None, None),
            feedback("t1", Some(Rating::Positive), None),
            feedback("t3", Some(Rating::Neutral), None),
        ];
        let palette = Palette { color: false };
        feedback_list_text(
            &list,
            &["t1", "t2", "t1", "t3"].map(str::to_owned),
            ConsoleSettings { columns: 80, symbols, palette, verbosity: Verbosity::Normal },
            screen,
        )
    }

    #[test]
    fn marks_earlier_ratings() {
        insta::assert_snapshot!(list(Some(60), Symbols::UNICODE), @r"
        2026-11-16 12:00  ✗ bad        Ada    t1
                          asked twice\nfor the \u{1b}[31msame thing…
        2026-11-16 12:00    retracted  Grace  t2
        2026-11-16 12:00  ✓ good       Ada    t1  (earlier)
        2026-11-16 12:00  — neutral    Ada    t3
        ");
    }

    #[test]
    fn truncates_nothing_without_a_terminal() {
        insta::assert_snapshot!(list(None, Symbols::ASCII), @r"
        2026-11-16 12:00  bad        Ada    t1
                          asked twice\nfor the \u{1b}[31msame thing, and again
        2026-11-16 12:00  retracted  Grace  t2
        2026-11-16 12:00  good       Ada    t1  (earlier)
        2026-11-16 12:00  neutral    Ada    t3
        ");
    }
}
