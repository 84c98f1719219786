//! Feedback, as text.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io;

use karat_cases::csv::escape_formula;
use karat_core::rating::Rating;
use karat_evals::feedback::Feedback;
use karat_workflows::feedback::{FeedbackChange, FeedbackImportReport, FeedbackList};

use crate::console::ConsoleSettings;
use crate::record::escape_invisible;
use crate::style::{Palette, Symbols};
use crate::terminal_text::{pad, printable, truncate, width};
use crate::tools::counted;
use crate::traces::format_minute;

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
            settings.palette.dim(format_minute(feedback.created_at)),
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
    let cell = format!("{sign}{}", pad(feedback.rating_label(), RATING_WIDTH));
    match feedback.rating {
        Some(Rating::Positive) => palette.success(cell),
        Some(Rating::Negative) => palette.failure(cell),
        Some(Rating::Neutral) => cell,
        None => palette.dim(cell),
    }
}

/// Returns the notes before and after a list of ratings: why it is empty, and whether there are more.
pub fn feedback_list_notes(list: &FeedbackList, history: bool) -> (Option<String>, Option<String>) {
    let before = match (list.is_store_empty, list.feedback.is_empty()) {
        (true, _) => Some("no ratings yet; run 'karat feedback add TRACE RATING' or 'karat review'"),
        (false, true) if history => Some("no ratings match the filters"),
        (false, true) => Some("no current ratings match; pass --history to include replaced and retracted ones"),
        (false, false) => None,
    };
    let after = list.more.then(|| {
        let ratings = match list.feedback.len() {
            1 => "rating".to_owned(),
            count => format!("{count} ratings"),
        };
        format!("showing only the newest {ratings}; pass --limit N for more")
    });
    (before.map(str::to_owned), after)
}

/// Renders a new, changed or retracted rating.
pub fn feedback_change_text(change: &FeedbackChange) -> String {
    let Some(now) = &change.now else { return String::new() };
    let (author, rating) = (printable(&now.author), now.rating_label());
    let rated = if now.rating.is_some() { format!("rated {rating}") } else { rating.to_owned() };
    let before = change.before.as_ref().filter(|before| before.rating.is_some()).map(Feedback::rating_label);
    let message = match (change.added, before) {
        (false, _) => format!("already {rated} by {author}"),
        (true, None) => format!("{rated} by {author}"),
        (true, Some(before)) if before == rating => format!("{rated} by {author}, with a new note"),
        (true, Some(before)) => format!("{rated} by {author} (was {before})"),
    };
    let mut text = format!("{}: {message}\n", printable(&now.trace_id));
    if change.authors > 1
        && let Some(rating) = change.rating
    {
        let _ = writeln!(text, "overall rating by {} authors: {rating}", change.authors);
    }
    text
}

/// Renders the number of imported, unchanged and invalid rows of a file.
pub fn feedback_import_text(report: &FeedbackImportReport, name: &str) -> String {
    let action = if report.written { "imported" } else { "would import" };
    let mut text = format!("{action} {} from {name}", counted(report.added, "rating"));
    if report.unchanged > 0 {
        let _ = write!(text, "; {} unchanged", counted(report.unchanged, "row"));
    }
    if !report.invalid.is_empty() {
        let _ = write!(text, "; {} left out", counted(report.rows - report.added - report.unchanged, "row"));
    }
    text + "\n"
}

/// Renders ratings as a table that can be imported again.
pub fn feedback_csv(list: &[Feedback]) -> io::Result<String> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let header = ["trace_id", "rating", "note", "author", "created_at", "source"];
    table.write_record(header)?;
    for feedback in list {
        let (note, time) = (feedback.note.as_deref().unwrap_or_default(), feedback.created_at.to_string());
        let row: [&str; 6] =
            [&feedback.trace_id, feedback.rating_name(), note, &feedback.author, &time, &feedback.source];
        // Notes and authors may contain formulas or control characters.
        let row = row.map(|text| escape_formula(&escape_invisible(text)).into_owned());
        table.write_record(row)?;
    }
    let bytes = table.into_inner().map_err(csv::IntoInnerError::into_error)?;
    String::from_utf8(bytes).map_err(io::Error::other)
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
