//! Sends every event to every reporter.

use karat_core::event::RunEvent;
use karat_core::event::{ReportError, Reporter};

/// The reporters of a run. An error in one does not affect the others.
#[derive(Default)]
pub struct Reporters {
    reporters: Vec<Box<dyn Reporter>>,
    errors: Vec<ReportError>,
}

impl Reporters {
    pub fn new(reporters: Vec<Box<dyn Reporter>>) -> Self {
        Self { reporters, errors: Vec::new() }
    }

    pub fn add(&mut self, reporter: Box<dyn Reporter>) {
        self.reporters.push(reporter);
    }

    /// Returns the errors of all reporters.
    pub fn into_errors(self) -> Vec<ReportError> {
        self.errors
    }

    pub fn report(&mut self, event: &RunEvent) {
        self.errors.extend(self.reporters.iter_mut().filter_map(|reporter| reporter.on_event(event).err()));
    }

    pub fn flush(&mut self) {
        self.errors.extend(self.reporters.iter_mut().filter_map(|reporter| reporter.flush().err()));
    }
}
