//! Progress of an import, on stderr.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::environment::Environment;
use crate::printer::Printer;
use crate::progress::time_left;

/// A bar if the total is known, else a spinner.
pub(super) struct ImportProgress {
    bar: ProgressBar,
}

impl ImportProgress {
    /// Creates one if stderr is an interactive terminal.
    pub(super) fn new(environment: &Environment, printer: &Printer, bytes: Option<u64>) -> Option<Self> {
        if !environment.stderr_is_terminal || environment.process.ci {
            return None;
        }
        let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::stderr());
        let (chars, template) = match (bytes.is_some(), printer.symbols.ascii) {
            (true, true) => ("=> ", "[{bar:30}] {percent}% {msg}{left}"),
            (true, false) => ("━╸─", "{bar:30} {percent}% {msg}{left}"),
            (false, _) => ("=> ", "{msg} in {elapsed}"),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("left", time_left).progress_chars(chars));
        bar.set_message("0 traces");
        bar.enable_steady_tick(Duration::from_millis(200));
        printer.set_progress_bar(Some(bar.clone()));
        Some(Self { bar })
    }

    pub(super) fn show(&self, traces: usize, refused: usize, read: u64) {
        let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
        self.bar.set_message(format!("{traces} traces{refused}"));
        self.bar.set_position(read);
    }

    pub(super) fn end(self, printer: &Printer) {
        self.bar.finish_and_clear();
        printer.set_progress_bar(None);
    }
}
