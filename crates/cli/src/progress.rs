//! Progress on stderr, if it is an interactive terminal.

use std::fmt::Write;
use std::io;
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};
use karat_core::event::RunEvent;
use karat_core::event::{ReportError, Reporter};
use karat_core::result::Outcome;

use crate::printer::{DEFAULT_COLUMNS, Printer};
use crate::surface::Surface;

/// Minimum time between updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Frames per second.
const REFRESH_RATE: u8 = 20;

/// Columns at the end of a line that stay free. indicatif fills the rest with spaces, and a line that fills the terminal
/// would wrap, at the latest when the terminal echoes ^C.
const FREE_COLUMNS: u16 = 3;

/// Columns for the text after a bar.
const TEXT_COLUMNS: usize = 62;
const MIN_BAR_COLUMNS: usize = 5;
const MAX_BAR_COLUMNS: usize = 30;

/// A bar or a line, which is cleared on drop.
pub(crate) struct Progress<'p> {
    bar: ProgressBar,
    printer: &'p Printer,
    updated: Instant,
}

impl<'p> Progress<'p> {
    /// Shows a bar if the total is known, else the elapsed time.
    pub(crate) fn bar(surface: &Surface<'p>, total: Option<u64>, message: &str) -> Option<Self> {
        let template = if total.is_some() { "{percent}% {msg}{left}" } else { "{msg} in {elapsed}" };
        Self::new(surface, total, template, message)
    }

    /// Shows a line.
    pub(crate) fn line(surface: &Surface<'p>, template: &str, message: &str) -> Option<Self> {
        Self::new(surface, None, template, message)
    }

    fn new(surface: &Surface<'p>, total: Option<u64>, template: &str, message: &str) -> Option<Self> {
        let bar = start(surface, total, template, message)?;
        Some(Self { bar, printer: surface.printer, updated: Instant::now() })
    }

    /// Shows how much is done, at most once per `UPDATE_INTERVAL`.
    pub(crate) fn show(&mut self, done: u64, message: impl FnOnce() -> String) {
        if self.updated.elapsed() >= UPDATE_INTERVAL {
            self.updated = Instant::now();
            self.bar.set_message(message());
            self.bar.set_position(done);
        }
    }

    /// Replaces the message.
    pub(crate) fn set(&self, message: String) {
        self.bar.set_message(message);
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.printer.set_progress_bar(None);
    }
}

fn start(surface: &Surface<'_>, total: Option<u64>, template: &str, message: &str) -> Option<ProgressBar> {
    let Surface { environment, printer, .. } = surface;
    if !environment.stderr_is_terminal || environment.process.ci {
        return None;
    }
    let columns = environment.stderr_columns.unwrap_or(DEFAULT_COLUMNS);
    let width = columns.saturating_sub(TEXT_COLUMNS).clamp(MIN_BAR_COLUMNS, MAX_BAR_COLUMNS);
    let (chars, bar) = if printer.symbols.ascii {
        ("=> ", format!("[{{bar:{width}}}] "))
    } else {
        ("━╸─", format!("{{bar:{width}}} "))
    };
    let template = format!("{}{template}", if total.is_some() { bar.as_str() } else { "" });
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let terminal = Box::new(NarrowTerminal(Term::buffered_stderr()));
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::term_like_with_hz(terminal, REFRESH_RATE));
    bar.set_style(style.with_key("left", time_left).progress_chars(chars));
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    printer.set_progress_bar(Some(bar.clone()));
    Some(bar)
}

/// Standard error, without its last columns.
#[derive(Debug)]
struct NarrowTerminal(Term);

impl TermLike for NarrowTerminal {
    fn width(&self) -> u16 {
        self.0.size().1.saturating_sub(FREE_COLUMNS)
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.0.move_cursor_up(lines)
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.0.move_cursor_down(lines)
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.0.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.0.move_cursor_left(columns)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.0.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes the estimated time left, which is unknown before anything is done.
fn time_left(state: &ProgressState, out: &mut dyn Write) {
    if state.pos() > 0 {
        let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
    }
}

/// Shows how many cases passed, failed and errored so far.
pub(crate) struct ProgressReporter {
    bar: ProgressBar,
    passed: usize,
    failed: usize,
    errored: usize,
}

impl ProgressReporter {
    pub(crate) fn new(surface: &Surface<'_>, cases: usize) -> Option<Self> {
        if cases < 2 {
            return None;
        }
        let bar = start(surface, Some(cases as u64), "{pos}/{len} {msg}{left}", "0 passed, 0 failed")?;
        Some(Self { bar, passed: 0, failed: 0, errored: 0 })
    }
}

impl Reporter for ProgressReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        match event {
            RunEvent::CaseFinished { result, .. } => {
                match result.outcome {
                    Outcome::Passed => self.passed += 1,
                    Outcome::Failed => self.failed += 1,
                    Outcome::Errored => self.errored += 1,
                }
                let errored = if self.errored > 0 { format!(", {} errored", self.errored) } else { String::new() };
                self.bar.set_message(format!("{} passed, {} failed{errored}", self.passed, self.failed));
                self.bar.inc(1);
            }
            RunEvent::RubricFinished { suite } => self.bar.inc(suite.selected as u64),
            RunEvent::RunFinished { .. } => self.bar.finish_and_clear(),
            RunEvent::RunStarted { .. } | RunEvent::SuiteFinished { .. } => {}
        }
        Ok(())
    }
}
