//! Shows a spinner while a model or an agent is working.

use std::ops::ControlFlow;

use karat_workflows::EventSink;
use karat_workflows::forge::Event;

use super::Forge;
use crate::progress::Progress;
use crate::surface::Surface;

/// Shows the last event until it is dropped.
pub(super) struct Spinner<'f> {
    surface: &'f Surface<'f>,
    line: Option<Progress<'f>>,
}

impl<'f> Spinner<'f> {
    pub(super) fn new(forge: &Forge<'f>) -> Self {
        Self { surface: forge.surface, line: None }
    }
}

impl EventSink<Event> for Spinner<'_> {
    fn emit(&mut self, event: Event) -> ControlFlow<()> {
        let message = match event {
            Event::Drafting { model } => format!("drafting with {model}"),
            Event::Verifying { agent, drafts } => format!("running drafts against {agent} ({drafts})"),
        };
        // Clears the line of the last event first.
        self.line = None;
        self.line = Progress::line(self.surface, "{msg} {elapsed}", &message);
        ControlFlow::Continue(())
    }
}
