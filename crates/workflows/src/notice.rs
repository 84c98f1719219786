//! What a workflow says beside its result.

use karat_core::registry::Gap;

/// Takes warnings and notes as they come. A surface shows them; a test collects them.
pub trait Notices: Send + Sync {
    fn warn(&self, text: &str);

    fn note(&self, text: &str);

    /// A part of the tools that could not be read.
    fn gap(&self, gap: &Gap);
}
