//! Shows how far the traces are judged, on stderr.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::environment::Environment;
use crate::printer::Printer;

/// Nobody reads faster.
const INTERVAL: Duration = Duration::from_millis(100);

/// A bar where it is known how much there is to do, else a spinner.
pub(super) struct JudgingProgress {
    bar: ProgressBar,
    shown: Instant,
}

impl JudgingProgress {
    /// Makes one where somebody is there to see it; the total is in bytes, or whatever is counted.
    pub(super) fn new(environment: &Environment, printer: &Printer, total: Option<u64>) -> Option<Self> {
        if !environment.stderr_is_terminal || environment.process.ci {
            return None;
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        let (chars, template) = match (total.is_some(), printer.symbols.ascii) {
            (true, true) => ("=> ", "[{bar:30}] {percent}% {msg}, {eta} left"),
            (true, false) => ("━╸─", "{bar:30} {percent}% {msg}, {eta} left"),
            (false, _) => ("=> ", "{msg} in {elapsed}"),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars(chars));
        bar.enable_steady_tick(Duration::from_millis(200));
        printer.show_above(Some(bar.clone()));
        Some(Self { bar, shown: Instant::now() })
    }

    /// Shows how much was judged with which outcomes (passed, failed, errored), and how much of the total is done.
    pub(super) fn show(&mut self, judged: u64, (passed, failed, errored): (u64, u64, u64), done: u64) {
        if self.shown.elapsed() < INTERVAL {
            return;
        }
        self.shown = Instant::now();
        let errored = if errored > 0 { format!(", {errored} errored") } else { String::new() };
        self.bar.set_message(format!("{judged} traces: {passed} passed, {failed} failed{errored}"));
        self.bar.set_position(done);
    }

    pub(super) fn end(self, printer: &Printer) {
        self.bar.finish_and_clear();
        printer.show_above(None);
    }
}
