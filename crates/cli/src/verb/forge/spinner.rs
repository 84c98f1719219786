//! Shows a spinner while a model or an agent is working.

use std::ops::ControlFlow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use karat_workflows::EventSink;
use karat_workflows::forge::Event;

use super::Forge;
use crate::printer::Printer;

/// Shows the last event until it is dropped.
pub(super) struct Spinner<'f> {
    printer: &'f Printer,
    is_shown: bool,
    bar: Option<ProgressBar>,
}

impl<'f> Spinner<'f> {
    pub(super) fn new(forge: &Forge<'f>) -> Self {
        let is_shown = forge.environment.stderr_is_terminal && !forge.environment.process.ci;
        Self { printer: forge.printer, is_shown, bar: None }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
            self.printer.set_progress_bar(None);
        }
    }
}

impl EventSink<Event> for Spinner<'_> {
    fn emit(&mut self, event: Event) -> ControlFlow<()> {
        self.clear();
        if self.is_shown {
            let message = match event {
                Event::Drafting { model } => format!("drafting with {model}"),
                Event::Verifying { agent, drafts } => format!("running drafts against {agent} ({drafts})"),
            };
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style =
                ProgressStyle::with_template("{msg} {elapsed}").unwrap_or_else(|_| ProgressStyle::default_spinner());
            bar.set_style(style);
            bar.set_message(message);
            bar.enable_steady_tick(Duration::from_millis(200));
            self.printer.set_progress_bar(Some(bar.clone()));
            self.bar = Some(bar);
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Spinner<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}
