//! Hands every event to every reporter.

use karat_core::event::RunEvent;
use karat_core::port::{ReportError, Reporter};

/// The reporters of a run. One that cannot write does not keep the others from it.
#[derive(Default)]
pub struct Reporters {
    reporters: Vec<Box<dyn Reporter>>,
    errors: Vec<ReportError>,
}

impl Reporters {
    pub fn add(&mut self, reporter: Box<dyn Reporter>) {
        self.reporters.push(reporter);
    }

    /// Returns what could not be written.
    pub fn into_errors(self) -> Vec<ReportError> {
        self.errors
    }

    pub(crate) fn emit(&mut self, event: &RunEvent) {
        for reporter in &mut self.reporters {
            if let Err(error) = reporter.on_event(event) {
                self.errors.push(error);
            }
        }
    }
}
