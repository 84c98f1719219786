//! The port for consumers of run events.

use super::RunEvent;

/// Consumes run events, usually to write a report.
pub trait Reporter: Send {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError>;

    /// Writes buffered output; called when no further event is pending.
    fn flush(&mut self) -> Result<(), ReportError> {
        Ok(())
    }
}

/// A report that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {target}: {source}")]
pub struct ReportError {
    /// The output that was being written.
    pub target: String,
    pub source: std::io::Error,
}
