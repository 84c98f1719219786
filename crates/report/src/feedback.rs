//! What people said, for a person.

use std::collections::HashSet;
use std::fmt::Write as _;

use jiff::Timestamp;
use karat_core::rating::Rating;
use karat_evals::feedback::Feedback;

use crate::console::ConsoleSettings;
use crate::style::{Palette, Symbols};
use crate::terminal_text::{cut, pad, printable, width};

/// Longer names stand out of their column, lest one of them moves all others apart.
const WIDEST_AUTHOR: usize = 24;

/// As long as the longest of the ratings' names.
const WIDEST_WORD: usize = 9;

/// Lays out statements as they are given, the newest first, each with its note below it; of an author's statements on a
/// trace the first is what counts. Without a screen no note is cut, for the sake of whoever searches in them. An id is
/// never cut: it is to be copied.
pub fn feedback_list_text(list: &[Feedback], settings: ConsoleSettings, screen: Option<usize>) -> String {
    let mut out = String::new();
    let authors: Vec<String> = list.iter().map(|feedback| printable(&feedback.author).into_owned()).collect();
    let widest = authors.iter().map(|author| width(author)).filter(|width| *width <= WIDEST_AUTHOR).max().unwrap_or(0);
    let mut known = HashSet::new();
    for (feedback, author) in list.iter().zip(&authors) {
        let is_current = known.insert((&feedback.trace_id, &feedback.author));
        let earlier = if is_current { "" } else { "  (earlier)" };
        let _ = writeln!(
            out,
            "{}  {}  {}  {}{}",
            settings.palette.dim(minute(feedback.created_at)),
            rating_cell(feedback, settings.palette, settings.symbols),
            pad(author, widest),
            printable(&feedback.trace_id),
            settings.palette.dim(earlier),
        );
        if let Some(note) = &feedback.note {
            let note = printable(note);
            let note = match screen {
                Some(columns) => cut(&note, columns.saturating_sub(NOTE_INDENT.len()), settings.symbols.ellipsis),
                None => note,
            };
            let _ = writeln!(out, "{NOTE_INDENT}{note}");
        }
    }
    out
}

/// Notes stand below the rating that they explain.
const NOTE_INDENT: &str = "                  ";

fn rating_cell(feedback: &Feedback, palette: Palette, symbols: Symbols) -> String {
    let sign = match feedback.rating {
        Some(Rating::Positive) => symbols.passed,
        Some(Rating::Negative) => symbols.failed,
        Some(Rating::Neutral) => symbols.dash,
        None => "",
    };
    // Their words are enough where signs are words too.
    let sign = if symbols.ascii { String::new() } else { pad(sign, 2) };
    let cell = format!("{sign}{}", pad(feedback.word(), WIDEST_WORD));
    match feedback.rating {
        Some(Rating::Positive) => palette.good(cell),
        Some(Rating::Negative) => palette.bad(cell),
        Some(Rating::Neutral) => cell,
        None => palette.dim(cell),
    }
}

/// Returns a time in UTC, to the minute.
fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Verbosity;

    fn said(trace: &str, rating: Option<Rating>, note: Option<&str>) -> Feedback {
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
            said("t1", Some(Rating::Negative), Some("asked twice\nfor the \u{1b}[31msame thing, and again")),
            said("t2", None, None),
            said("t1", Some(Rating::Positive), None),
            said("t3", Some(Rating::Neutral), None),
        ];
        let palette = Palette { color: false };
        feedback_list_text(
            &list,
            ConsoleSettings { columns: 80, symbols, palette, verbosity: Verbosity::Normal },
            screen,
        )
    }

    #[test]
    fn what_counts_can_be_told_from_what_was() {
        insta::assert_snapshot!(list(Some(60), Symbols::UNICODE), @r"
        2026-11-16 12:00  ✗ negative   Ada    t1
                          asked twice\nfor the \u{1b}[31msame thing…
        2026-11-16 12:00    retracted  Grace  t2
        2026-11-16 12:00  ✓ positive   Ada    t1  (earlier)
        2026-11-16 12:00  — neutral    Ada    t3
        ");
    }

    #[test]
    fn nothing_is_cut_without_a_screen() {
        insta::assert_snapshot!(list(None, Symbols::ASCII), @r"
        2026-11-16 12:00  negative   Ada    t1
                          asked twice\nfor the \u{1b}[31msame thing, and again
        2026-11-16 12:00  retracted  Grace  t2
        2026-11-16 12:00  positive   Ada    t1  (earlier)
        2026-11-16 12:00  neutral    Ada    t3
        ");
    }
}
