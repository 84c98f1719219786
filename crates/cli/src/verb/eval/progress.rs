//! Progress of judging traces, on stderr.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::environment::Environment;
use crate::printer::Printer;
use crate::progress::time_left;

/// Minimum time between updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// A bar if the total is known, else a spinner.
pub(super) struct JudgingProgress {
    bar: ProgressBar,
    updated: Instant,
}

impl JudgingProgress {
    /// Creates one if stderr is an interactive terminal; the total is in bytes or traces.
    pub(super) fn new(environment: &Environment, printer: &Printer, total: Option<u64>) -> Option<Self> {
        if !environment.stderr_is_terminal || environment.process.ci {
            return None;
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        let (chars, template) = match (total.is_some(), printer.symbols.ascii) {
            (true, true) => ("=> ", "[{bar:30}] {percent}% {msg}{left}"),
            (true, false) => ("━╸─", "{bar:30} {percent}% {msg}{left}"),
            (false, _) => ("=> ", "{msg} in {elapsed}"),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("left", time_left).progress_chars(chars));
        bar.set_message("0 judged");
        bar.enable_steady_tick(Duration::from_millis(200));
        printer.set_progress_bar(Some(bar.clone()));
        Some(Self { bar, updated: Instant::now() })
    }

    /// Shows the number of judged traces, their outcomes (passed, failed, errored), and how much of the total is done.
    pub(super) fn show(&mut self, judged: u64, (passed, failed, errored): (u64, u64, u64), done: u64) {
        if self.updated.elapsed() < UPDATE_INTERVAL {
            return;
        }
        self.updated = Instant::now();
        let errored = if errored > 0 { format!(", {errored} errored") } else { String::new() };
        self.bar.set_message(format!("{judged} judged: {passed} passed, {failed} failed{errored}"));
        self.bar.set_position(done);
    }

    pub(super) fn end(self, printer: &Printer) {
        self.bar.finish_and_clear();
        printer.set_progress_bar(None);
    }
}
