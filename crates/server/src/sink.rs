//! Who keeps what is sent.

use karat_core::port::{Pending, StoreError};
use karat_traces::TraceParts;

/// Keeps traces.
pub trait TraceSink: Send + Sync {
    /// Stores all of these and returns when they are on disk, with those that cannot be stored whatever is done. An error
    /// means that nothing was stored, and that trying again later may help.
    ///
    /// The same trace may be there several times, with other spans.
    fn store(&self, parts: Vec<TraceParts>) -> Pending<'_, Result<Vec<RefusedTrace>, StoreError>>;

    /// Is told of a request that was not taken, or not all of it.
    fn refused(&self, _refusal: &RefusedRequest) {}
}

/// A trace that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTrace {
    pub trace_id: String,
    /// A lower-case fragment.
    pub message: String,
}

/// A request that was not taken, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRequest {
    /// The answer's status: 200 where only a part was refused.
    pub status: u16,
    /// How many spans or log records were refused, where the others were taken.
    pub rejected: u64,
    /// A lower-case fragment, as it was sent; it can quote what the request said.
    pub message: String,
}

impl RefusedRequest {
    /// Tells whether nothing at all was taken.
    pub fn is_whole(&self) -> bool {
        self.status != 200
    }
}
