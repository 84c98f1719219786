//! The output of `karat contradictions`.

use std::fmt::Write as _;

use karat_core::rating::Rating;
use karat_evals::agreement::{ContradictionList, ResolvedContradiction};
use karat_evals::contradiction::{Contradiction, ResolutionKind};

use super::verdict;
use crate::console::ConsoleSettings;
use crate::terminal_text::{pad, printable, truncate, width, wrap};
use crate::tools::counted;

/// Maximum number of lines of a reason or a note.
const MAX_LINES: usize = 6;

/// Renders contradictions, with the verdict on the left and the rating on the right.
pub fn contradictions_text(list: &ContradictionList, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    for contradiction in &list.contradictions {
        write_contradiction(contradiction, settings, &mut out);
        out.push('\n');
    }
    let _ = writeln!(out, "{}", total(list, settings));
    out
}

fn write_contradiction(contradiction: &Contradiction, settings: ConsoleSettings, out: &mut String) {
    let (palette, ellipsis) = (settings.palette, settings.symbols.ellipsis);
    let id = printable(&contradiction.trace_id);
    let name = printable(&contradiction.eval_id);
    let when = contradiction.executed_at.strftime("%Y-%m-%d %H:%M").to_string();
    // Ids are never truncated or wrapped, so that they can be copied.
    let gap = settings.columns.checked_sub(width(&id) + width(&when)).filter(|gap| *gap >= 2);
    let separator = gap.map_or_else(|| "\n  ".to_owned(), |gap| " ".repeat(gap));
    let _ = writeln!(out, "{}{separator}{}", palette.bold(&id), palette.dim(&when));
    if !contradiction.input_preview.is_empty() {
        let preview = format!("\"{}\"", printable(&contradiction.input_preview));
        let _ = writeln!(out, "  {}", palette.dim(truncate(&preview, settings.columns.saturating_sub(2), ellipsis)));
    }
    let column = settings.columns.saturating_sub(5) / 2;
    let outcome = verdict(Some(contradiction.result));
    let title = format!("{outcome}: {name} version {}", contradiction.eval_version);
    let author = contradiction.author.as_deref().map(|author| format!(", {}", printable(author))).unwrap_or_default();
    let left = lines(&title, contradiction.reason.as_deref(), column, ellipsis);
    let right = lines(&format!("{}{author}", contradiction.rating), contradiction.note.as_deref(), column, ellipsis);
    let bar = if settings.symbols.ascii { '|' } else { '│' };
    for row in 0..left.len().max(right.len()) {
        let cell = |side: &[String]| side.get(row).cloned().unwrap_or_default();
        let (left, right) = (pad(&cell(&left), column), cell(&right));
        let line = if row == 0 {
            // Pad before painting: colour codes have no width.
            format!("  {} {bar} {}", paint(settings, contradiction.result, &left), palette.bold(right))
        } else {
            format!("  {left} {bar} {right}")
        };
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if let Some(resolution) = &contradiction.resolution {
        let note = resolution.note.as_deref().map(|note| format!(": {}", printable(note))).unwrap_or_default();
        let line = format!("resolved as {} by {}{note}", resolution.kind.name(), printable(&resolution.author));
        let lines = wrap(&line, settings.columns.saturating_sub(2).max(20));
        let _ = writeln!(out, "  {}", lines.join("\n  "));
    }
}

fn paint(settings: ConsoleSettings, passed: bool, text: &str) -> String {
    if passed { settings.palette.success(text) } else { settings.palette.failure(text) }
}

/// Returns the lines of a column: a title, and a reason or note below it.
fn lines(title: &str, text: Option<&str>, column: usize, ellipsis: &str) -> Vec<String> {
    let mut lines = wrap(title, column);
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return lines;
    };
    let mut wrapped = wrap(&printable(text), column);
    if wrapped.len() > MAX_LINES {
        wrapped.truncate(MAX_LINES);
        if let Some(last) = wrapped.last_mut() {
            let shorter = truncate(&format!("{last} {}", " ".repeat(column)), column, ellipsis).into_owned();
            *last = shorter;
        }
    }
    lines.extend(wrapped);
    lines
}

fn total(list: &ContradictionList, settings: ConsoleSettings) -> String {
    let count = list.contradictions.len() as u64;
    let all = counted(list.total, "contradiction");
    let mut line = if count < list.total { format!("{count} of {all} (see --limit)") } else { all };
    if list.resolved > 0 {
        let _ = write!(line, "; {} resolved (see --all)", list.resolved);
    }
    if list.total == 0 { settings.palette.success(line) } else { line }
}

/// Returns the commands to show and resolve the first open contradiction.
pub fn contradiction_notes(list: &ContradictionList) -> Vec<String> {
    let first = list.contradictions.iter().find(|contradiction| contradiction.resolution.is_none());
    first.map_or_else(Vec::new, |first| {
        let (trace, name) = (shell_words::quote(&first.trace_id), &first.eval_id);
        vec![
            format!("to show the first:     karat trace show {trace}"),
            format!("to resolve the first:  karat contradictions resolve {name} {trace} RESOLUTION"),
        ]
    })
}

/// Renders a resolved contradiction.
pub fn resolution_text(resolved: &ResolvedContradiction, kind: ResolutionKind) -> String {
    let contradiction = &resolved.contradiction;
    let before = match resolved.before {
        None => String::new(),
        Some(before) if before == kind => " (as before)".to_owned(),
        Some(before) => format!(" (was {})", before.name()),
    };
    let (eval, trace) = (printable(&contradiction.eval_id), printable(&contradiction.trace_id));
    format!("{eval} on {trace}: {}{before}\n", kind.name())
}

/// Returns the next step: a resolution changes neither the verdict nor the rating.
pub fn resolution_note(contradiction: &Contradiction, kind: ResolutionKind) -> String {
    let trace = shell_words::quote(&contradiction.trace_id);
    match kind {
        ResolutionKind::LabelWrong => {
            let corrected = if contradiction.rating == Rating::Positive { Rating::Negative } else { Rating::Positive };
            format!("the rating still counts; to correct it: karat feedback add {trace} {corrected}")
        }
        ResolutionKind::EvalWrong => "the verdict still counts; fix the eval and add a new version".to_owned(),
        ResolutionKind::Dismissed => "the contradiction still counts in 'karat eval agreement'".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use karat_core::rating::Rating;
    use karat_evals::contradiction::{Resolution, ResolutionKind};

    use super::*;
    use crate::console::Verbosity;
    use crate::style::{Palette, Symbols};

    fn settings(columns: usize, symbols: Symbols) -> ConsoleSettings {
        ConsoleSettings { columns, symbols, palette: Palette { color: false }, verbosity: Verbosity::Normal }
    }

    fn list() -> ContradictionList {
        let time = |text: &str| text.parse().expect("a time");
        let first = Contradiction {
            eval_id: "eval_books_a_flight".to_owned(),
            eval_version: 2,
            trace_id: "tau-bench-airline-12-0".to_owned(),
            result: false,
            reason: Some("book_reservation was never called, though the user said yes to the offer".to_owned()),
            rating: Rating::Positive,
            note: Some("right: the policy forbids this booking".to_owned()),
            author: Some("ada".to_owned()),
            executed_at: time("2026-11-16T12:00:00Z"),
            input_preview: "Hi! I'm looking to book a flight from New York to Seattle on May 20th, in economy."
                .to_owned(),
            resolution: None,
        };
        let hostile = Contradiction {
            trace_id: "\u{1b}[31m".repeat(6),
            result: true,
            reason: Some("word\u{202e} ".repeat(100)),
            rating: Rating::Negative,
            note: None,
            author: None,
            input_preview: String::new(),
            resolution: Some(Resolution {
                kind: ResolutionKind::LabelWrong,
                note: Some("slipped".to_owned()),
                author: "bob".to_owned(),
                resolved_at: time("2026-11-16T13:00:00Z"),
            }),
            ..first.clone()
        };
        ContradictionList { contradictions: vec![first, hostile], total: 7, resolved: 0 }
    }

    #[test]
    fn shows_both_sides_in_columns() {
        let text = contradictions_text(&list(), settings(80, Symbols::UNICODE));
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        assert_snapshot!(text, @r#"
        tau-bench-airline-12-0                                          2026-11-16 12:00
          "Hi! I'm looking to book a flight from New York to Seattle on May 20th, in ec…
          failed: eval_books_a_flight version 2 │ good, ada
          book_reservation was never called,    │ right: the policy forbids this
          though the user said yes to the offer │ booking

        \u{1b}[31m\u{1b}[31m\u{1b}[31m\u{1b}[31m\u{1b}[31m\u{1b}[31m    2026-11-16 12:00
          passed: eval_books_a_flight version 2 │ bad
          word\u{202e} word\u{202e}             │
          word\u{202e} word\u{202e}             │
          word\u{202e} word\u{202e}             │
          word\u{202e} word\u{202e}             │
          word\u{202e} word\u{202e}             │
          word\u{202e} word\u{202e}…            │
          resolved as label-wrong by bob: slipped

        2 of 7 contradictions (see --limit)
        "#);
    }

    #[test]
    fn fits_a_narrow_terminal_without_control_characters() {
        let text = contradictions_text(&list(), settings(40, Symbols::ASCII));
        // An id that is wider than the terminal has a line of its own.
        let wide_id = r"\u{1b}[31m".repeat(6);
        assert!(text.is_ascii() && text.lines().all(|line| width(line) <= 40 || line == wide_id), "{text}");
        assert!(text.contains(&format!("\n{wide_id}\n  2026-11-16 12:00\n")), "{text}");
        let none = ContradictionList { contradictions: Vec::new(), total: 0, resolved: 3 };
        let text = contradictions_text(&none, settings(80, Symbols::ASCII));
        assert_eq!(text, "0 contradictions; 3 resolved (see --all)\n");
    }
}
