//! The port of whatever consumes events.

use super::RunEvent;

/// Turns events into bytes somewhere.
pub trait Reporter: Send {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError>;

    /// Shows what was held back; called when no further event is at hand.
    fn flush(&mut self) -> Result<(), ReportError> {
        Ok(())
    }
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[error("could not write {what}: {source}")]
pub struct ReportError {
    /// What was to be written.
    pub what: String,
    pub source: std::io::Error,
}
