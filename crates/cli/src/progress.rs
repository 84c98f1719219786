//! Progress bar of a run, on stderr.

use std::fmt::Write;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use karat_core::event::RunEvent;
use karat_core::event::{ReportError, Reporter};
use karat_core::result::Outcome;

use crate::environment::Environment;
use crate::printer::Printer;

/// Shows how many cases passed, failed and errored so far.
pub(crate) struct ProgressReporter {
    bar: ProgressBar,
    passed: usize,
    failed: usize,
    errored: usize,
}

impl ProgressReporter {
    /// Creates a bar if stderr is an interactive terminal.
    pub(crate) fn new(environment: &Environment, printer: &Printer, cases: usize) -> Option<Self> {
        if !environment.stderr_is_terminal || environment.process.ci || cases < 2 {
            return None;
        }
        let bar = ProgressBar::with_draw_target(Some(cases as u64), ProgressDrawTarget::stderr());
        let (chars, template) = if printer.symbols.ascii {
            ("=> ", "[{bar:30}] {pos}/{len} {msg}{left}")
        } else {
            ("━╸─", "{bar:30} {pos}/{len} {msg}{left}")
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("left", time_left).progress_chars(chars));
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        printer.set_progress_bar(Some(bar.clone()));
        let progress = Self { bar, passed: 0, failed: 0, errored: 0 };
        progress.show();
        Some(progress)
    }

    fn show(&self) {
        let mut message = format!("{} passed, {} failed", self.passed, self.failed);
        if self.errored > 0 {
            let _ = write!(message, ", {} errored", self.errored);
        }
        self.bar.set_message(message);
    }
}

/// Writes the estimated time left, which is unknown at the start.
pub(crate) fn time_left(state: &ProgressState, out: &mut dyn Write) {
    if state.pos() > 0 {
        let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
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
                self.show();
                self.bar.inc(1);
            }
            RunEvent::RubricFinished { suite } => self.bar.inc(suite.selected as u64),
            RunEvent::RunFinished { .. } => self.bar.finish_and_clear(),
            RunEvent::RunStarted { .. } | RunEvent::SuiteFinished { .. } => {}
        }
        Ok(())
    }
}
