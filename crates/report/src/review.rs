//! The screen of `karat review`: a trace, the progress, and the keys.

use karat_core::rating::Rating;
use karat_evals::review::{Decision, ReviewQueue};
use karat_evals::version::StoredExecution;
use karat_workflows::review::{CommandOutcome, ReviewedTrace};

use crate::console::ConsoleSettings;
use crate::terminal_text::{pad, printable, truncate, truncate_middle, truncate_start, width, wrap};
use crate::traces::{Length, conversation_text};

/// Minimum number of rows for showing the rules.
const MIN_ROWS_WITH_RULES: usize = 9;

/// Maximum number of lines of a reason.
const MAX_REASON_LINES: usize = 3;

/// The last line, widest variant first; `?` shows what does not fit.
const KEYS: [&str; 5] = [
    "g good  b bad  n neutral  s skip  u undo  t note  ↑↓ scroll  ? help  q quit",
    "g good  b bad  n neutral  s skip  u undo  t note  ? help  q quit",
    "g/b/n rate  s skip  u undo  t note  ? q",
    "g b n s u t ? q",
    "? help",
];

const END_KEYS: [&str; 2] = ["u undo  q quit", "u q"];
const NOTE_KEYS: [&str; 2] = ["Enter saves the note  Esc discards it", "Enter  Esc"];
const HELP_KEYS: [&str; 2] = ["any key returns to the trace", "any key"];
/// If the help does not fit.
const LONG_HELP_KEYS: [&str; 3] =
    ["↑↓ scroll  any other key returns to the trace", "↑↓ scroll  any other key back", "↑↓"];

const HELP: [(&str, &str); 12] = [
    ("g", "rate good and continue"),
    ("b", "rate bad and continue"),
    ("n", "rate neutral and continue"),
    ("s", "skip; the trace is shown again next time"),
    ("u", "undo the last rating or skip"),
    ("t", "write a note to store with the rating"),
    ("f", "switch between the full and the shortened trace"),
    ("down, Enter, j", "one line down"),
    ("up, k", "one line up"),
    ("space, PgDn", "one page down"),
    ("PgUp, Home, End", "one page up, to the top, to the end"),
    ("q", "quit; all ratings are already stored"),
];

/// The main part of the screen.
#[derive(Debug, Clone, Copy)]
pub enum ReviewPage<'p> {
    /// The lines of the trace, wrapped to the screen, and the index of the first visible one.
    Trace {
        lines: &'p [String],
        top: usize,
    },
    Help {
        top: usize,
    },
    /// All traces are decided.
    End,
}

/// The line above the keys.
#[derive(Debug, Clone, Copy)]
pub enum ReviewLine<'l> {
    Nothing,
    /// A message about the last action.
    Message(&'l str),
    /// The note for the rating.
    Note(&'l str),
    /// The note while it is being typed.
    Typing(&'l str),
}

/// The state of the screen.
#[derive(Debug, Clone, Copy)]
pub struct ReviewView<'v> {
    pub queue: &'v ReviewQueue,
    pub author: &'v str,
    pub page: ReviewPage<'v>,
    pub line: ReviewLine<'v>,
}

/// Returns the number of lines of a trace that fit on a screen with this number of rows.
pub fn review_height(rows: usize) -> usize {
    let other_rows = if rows >= MIN_ROWS_WITH_RULES { 5 } else { 3 };
    rows.saturating_sub(other_rows).max(1)
}

/// Renders the screen, one text per row, none wider than `settings.columns`.
pub fn review_screen(view: &ReviewView<'_>, settings: ConsoleSettings, rows: usize) -> Vec<String> {
    let columns = settings.columns;
    let height = review_height(rows);
    let body: Vec<String> = match view.page {
        ReviewPage::Trace { lines, top } => lines.iter().skip(top).take(height).cloned().collect(),
        ReviewPage::Help { top } => help(columns).into_iter().skip(top).take(height).collect(),
        ReviewPage::End => {
            let line = |line: &String| wrap(line, columns);
            review_summary(view.queue).iter().flat_map(line).take(height).collect()
        }
    };
    let mut screen = vec![title(view, settings)];
    if rows >= MIN_ROWS_WITH_RULES {
        screen.push(rule("", settings));
    }
    let blank = height.saturating_sub(body.len());
    screen.extend(body);
    screen.extend(std::iter::repeat_n(String::new(), blank));
    if rows >= MIN_ROWS_WITH_RULES {
        screen.push(rule(&position(&view.page, height, columns), settings));
    }
    screen.push(status_line(&view.line, settings));
    screen.push(settings.palette.dim(keys(view, height, settings)));
    screen.truncate(rows.max(1));
    screen
}

/// Renders a trace for review, with its verdicts if they are shown.
pub fn review_lines(trace: &ReviewedTrace, length: Length, settings: ConsoleSettings) -> Vec<String> {
    let mut lines = verdict_lines(&trace.verdicts, settings);
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.extend(conversation_text(&trace.document, length, settings).lines().map(str::to_owned));
    if lines.is_empty() {
        lines.push("this trace has no steps".to_owned());
    }
    lines
}

/// Renders the effect of a command.
pub fn review_message(applied: &CommandOutcome) -> String {
    match applied {
        CommandOutcome::Rated { trace_id, rating } => format!("{rating}, stored: {trace_id}"),
        CommandOutcome::Skipped => "skipped for now".to_owned(),
        CommandOutcome::RatingUndone(rating) => format!("undone: {rating}"),
        CommandOutcome::SkipUndone => "undone: skip".to_owned(),
        CommandOutcome::Noted => String::new(),
        CommandOutcome::Nothing => "nothing to undo".to_owned(),
    }
}

/// Renders the verdicts of a trace, each with its reason below.
fn verdict_lines(executions: &[StoredExecution], settings: ConsoleSettings) -> Vec<String> {
    let (palette, symbols) = (settings.palette, settings.symbols);
    let mut lines = Vec::new();
    for execution in executions {
        let (sign, text) = match execution.result {
            Some(true) => (palette.success(symbols.passed), execution.reason.as_deref()),
            Some(false) => (palette.failure(symbols.failed), execution.reason.as_deref()),
            None if !execution.applicable => {
                (palette.dim(symbols.dash), execution.reason.as_deref().or(Some("not applicable")))
            }
            None => (palette.error(symbols.errored), execution.error.as_deref()),
        };
        let available = settings.columns.saturating_sub(width(symbols.passed) + 1);
        lines.push(format!("{sign} {}", truncate(&printable(&execution.eval_id), available, symbols.ellipsis)));
        let reason = printable(text.unwrap_or_default()).into_owned();
        let wrapped = wrap(&reason, settings.columns.saturating_sub(2).max(10));
        lines.extend(
            wrapped.iter().filter(|line| !line.is_empty()).take(MAX_REASON_LINES).map(|line| format!("  {line}")),
        );
    }
    lines
}

/// Summarises a review in a few lines.
pub fn review_summary(queue: &ReviewQueue) -> Vec<String> {
    let of = |rating: Rating| queue.count(Decision::Rated(rating));
    let (good, bad, neutral) = (of(Rating::Positive), of(Rating::Negative), of(Rating::Neutral));
    let mut lines = vec![format!("rated: {} ({good} good, {bad} bad, {neutral} neutral)", queue.rated())];
    match queue.count(Decision::Skipped) {
        0 => {}
        skipped => lines.push(format!("skipped: {skipped} (shown again next time)")),
    }
    match queue.left() {
        0 => lines.push("left: nothing".to_owned()),
        left => lines.push(format!("left: {left}")),
    }
    lines
}

fn title(view: &ReviewView<'_>, settings: ConsoleSettings) -> String {
    let queue = view.queue;
    let dot = if settings.symbols.ascii { "-" } else { "·" };
    let counter = format!("{} of {} {dot} {} rated", queue.number(), queue.len(), queue.rated());
    let with_author = format!("{counter} {dot} {}", printable(view.author));
    let name = match (view.page, queue.current()) {
        (ReviewPage::Trace { .. }, Some(current)) => format!("trace {}", printable(&current.trace_id)),
        (ReviewPage::Help { .. }, _) => "help".to_owned(),
        _ => "review".to_owned(),
    };
    // Shorten names before numbers.
    let right = if width(&name) + width(&with_author) + 2 <= settings.columns { with_author } else { counter };
    let right = truncate(&right, settings.columns, settings.symbols.ellipsis);
    let available = settings.columns.saturating_sub(width(&right) + 2);
    let name = if available < 8 {
        String::new()
    } else {
        truncate_middle(&name, available, settings.symbols.ellipsis).into_owned()
    };
    let gap = settings.columns.saturating_sub(width(&name) + width(&right));
    format!("{}{}{right}", settings.palette.bold(&name), " ".repeat(gap))
}

fn rule(text: &str, settings: ConsoleSettings) -> String {
    let sign = settings.symbols.rule.to_string();
    let text = if text.is_empty() { String::new() } else { format!("{} {text} ", sign.repeat(2)) };
    let text = truncate(&text, settings.columns, "");
    let rest = settings.columns.saturating_sub(width(&text));
    settings.palette.dim(format!("{text}{}", sign.repeat(rest)))
}

fn position(page: &ReviewPage<'_>, height: usize, columns: usize) -> String {
    let (top, all) = match page {
        ReviewPage::Trace { lines, top } => (*top, lines.len()),
        ReviewPage::Help { top } => (*top, help_height(columns)),
        ReviewPage::End => return String::new(),
    };
    if all <= height {
        return String::new();
    }
    format!("lines {} to {} of {all}", top + 1, (top + height).min(all))
}

fn status_line(line: &ReviewLine<'_>, settings: ConsoleSettings) -> String {
    let (columns, ellipsis) = (settings.columns, settings.symbols.ellipsis);
    match line {
        ReviewLine::Nothing => String::new(),
        ReviewLine::Message(text) => truncate(&printable(text), columns, ellipsis).into_owned(),
        ReviewLine::Note(note) => truncate(&format!("note: {}", printable(note)), columns, ellipsis).into_owned(),
        // Show the end, where the user types, and leave a column for the cursor.
        ReviewLine::Typing(note) => {
            let available = columns.saturating_sub("note: ".len() + 1);
            format!("note: {}", truncate_start(&printable(note), available, ellipsis))
        }
    }
}

fn keys(view: &ReviewView<'_>, height: usize, settings: ConsoleSettings) -> String {
    let variants: &[&str] = match (view.line, view.page) {
        (ReviewLine::Typing(_), _) => &NOTE_KEYS,
        (_, ReviewPage::Help { .. }) if help_height(settings.columns) > height => &LONG_HELP_KEYS,
        (_, ReviewPage::Help { .. }) => &HELP_KEYS,
        (_, ReviewPage::End) => &END_KEYS,
        (_, ReviewPage::Trace { .. }) => &KEYS,
    };
    let plain =
        |keys: &&str| if settings.symbols.ascii { keys.replace("↑↓", "up/down") } else { (*keys).to_owned() };
    let fitting = variants.iter().map(plain).find(|keys| width(keys) <= settings.columns);
    let shortest = || variants.last().map(plain).unwrap_or_default();
    truncate(&fitting.unwrap_or_else(shortest), settings.columns, "").into_owned()
}

fn help(columns: usize) -> Vec<String> {
    let widest = HELP.iter().map(|(keys, _)| width(keys)).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (keys, description) in HELP {
        if columns >= 60 {
            lines.push(format!("{}  {description}", pad(keys, widest)));
        } else {
            lines.extend(wrap(&format!("{keys}: {description}"), columns.max(10)));
        }
    }
    lines
}

/// Returns the number of lines of the help, for scrolling.
pub fn help_height(columns: usize) -> usize {
    help(columns).len()
}

#[cfg(test)]
mod tests {
    use karat_evals::review::ReviewCandidate;
    use rstest::rstest;

    use super::*;
    use crate::console::Verbosity;
    use crate::style::{Palette, Symbols};

    fn settings(columns: usize, symbols: Symbols) -> ConsoleSettings {
        ConsoleSettings { columns, symbols, palette: Palette { color: false }, verbosity: Verbosity::Normal }
    }

    fn queue(count: usize) -> ReviewQueue {
        let candidate = |number: usize| ReviewCandidate {
            trace_id: format!("tau-bench-retail-trial-0-task-{number:03}"),
            passed: 0,
            failed: 0,
            errored: 0,
            started_at: None,
        };
        ReviewQueue::new((0..count).map(candidate).collect(), 0)
    }

    fn screen(columns: usize, rows: usize, page: ReviewPage<'_>, line: ReviewLine<'_>, symbols: Symbols) -> String {
        let mut queue = queue(40);
        for decision in [Decision::Rated(Rating::Positive), Decision::Skipped, Decision::Rated(Rating::Negative)] {
            queue.decide(decision);
        }
        let view = ReviewView { queue: &queue, author: "Ada", page, line };
        review_screen(&view, settings(columns, symbols), rows).join("\n")
    }

    fn lines(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("line {number}")).collect()
    }

    #[test]
    fn renders_a_screen_of_common_size() {
        let lines = lines(30);
        let page = ReviewPage::Trace { lines: &lines, top: 3 };
        insta::assert_snapshot!(screen(80, 12, page, ReviewLine::Note("too slow"), Symbols::UNICODE), @r"
        trace tau-bench-retail-trial-0-task-003                  4 of 40 · 2 rated · Ada
        ────────────────────────────────────────────────────────────────────────────────
        line 4
        line 5
        line 6
        line 7
        line 8
        line 9
        line 10
        ── lines 4 to 10 of 30 ─────────────────────────────────────────────────────────
        note: too slow
        g good  b bad  n neutral  s skip  u undo  t note  ↑↓ scroll  ? help  q quit
        ");
    }

    #[test]
    fn renders_a_small_screen() {
        let lines = lines(30);
        let page = ReviewPage::Trace { lines: &lines, top: 0 };
        insta::assert_snapshot!(screen(40, 8, page, ReviewLine::Message("rated good"), Symbols::ASCII), @r"
        trace tau...-task-003  4 of 40 - 2 rated
        line 1
        line 2
        line 3
        line 4
        line 5
        rated good
        g/b/n rate  s skip  u undo  t note  ? q
        ");
    }

    #[test]
    fn a_long_help_can_be_scrolled() {
        let text = screen(40, 10, ReviewPage::Help { top: 0 }, ReviewLine::Nothing, Symbols::UNICODE);
        assert!(text.contains("lines 1 to 5 of ") && text.ends_with("↑↓ scroll  any other key back"), "{text}");
        let text = screen(80, 24, ReviewPage::Help { top: 0 }, ReviewLine::Nothing, Symbols::UNICODE);
        assert!(!text.contains("lines 1") && text.ends_with("any key returns to the trace"), "{text}");
    }

    #[test]
    fn the_help_lists_every_key() {
        insta::assert_snapshot!(screen(80, 18, ReviewPage::Help { top: 0 }, ReviewLine::Nothing, Symbols::UNICODE), @r"
        help                                                     4 of 40 · 2 rated · Ada
        ────────────────────────────────────────────────────────────────────────────────
        g                rate good and continue
        b                rate bad and continue
        n                rate neutral and continue
        s                skip; the trace is shown again next time
        u                undo the last rating or skip
        t                write a note to store with the rating
        f                switch between the full and the shortened trace
        down, Enter, j   one line down
        up, k            one line up
        space, PgDn      one page down
        PgUp, Home, End  one page up, to the top, to the end
        q                quit; all ratings are already stored

        ────────────────────────────────────────────────────────────────────────────────

        any key returns to the trace
        ");
    }

    #[test]
    fn the_end_shows_a_summary() {
        insta::assert_snapshot!(screen(80, 10, ReviewPage::End, ReviewLine::Nothing, Symbols::UNICODE), @r"
        review                                                   4 of 40 · 2 rated · Ada
        ────────────────────────────────────────────────────────────────────────────────
        rated: 2 (1 good, 1 bad, 0 neutral)
        skipped: 1 (shown again next time)
        left: 37


        ────────────────────────────────────────────────────────────────────────────────

        u undo  q quit
        ");
    }

    #[rstest]
    fn every_row_fits(
        #[values(1, 5, 20, 39, 40, 80, 200)] columns: usize,
        #[values(1, 2, 3, 8, 9, 24)] rows: usize,
        #[values(Symbols::UNICODE, Symbols::ASCII)] symbols: Symbols,
    ) {
        let lines = wrap(&"some words of a trace ".repeat(40), columns);
        let typed = "日本 ".repeat(60);
        let trace = ReviewPage::Trace { lines: &lines, top: 2 };
        for page in [trace, ReviewPage::Help { top: 0 }, ReviewPage::End] {
            for line in [ReviewLine::Typing(&typed), ReviewLine::Note(&typed), ReviewLine::Message(&typed)] {
                let screen = screen(columns, rows, page, line, symbols);
                assert!(screen.lines().count() <= rows, "{screen}");
                let widest = screen.lines().map(width).max().unwrap_or(0);
                assert!(columns < 12 || widest <= columns, "{widest} of {columns}:\n{screen}");
            }
        }
    }
}
