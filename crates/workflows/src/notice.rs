//! Warnings and notes of a workflow.

use karat_cases::registry::Gap;

/// Receives warnings and notes as they occur. A surface prints them; a test collects them.
pub trait Notices: Send + Sync {
    fn warn(&self, text: &str);

    fn note(&self, text: &str);

    /// Reports a part of the tool registry that could not be read.
    fn gap(&self, gap: &Gap);
}
