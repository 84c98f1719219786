//! Where received traces go.

use karat_core::port::{Pending, StoreError};
use karat_traces::TraceParts;
use karat_workflows::receive_traces::{RefusedRequest, RefusedTrace, TraceReceiver};

/// Stores traces.
pub trait TraceSink: Send + Sync {
    /// Stores all of these and returns when they are on disk, with those that cannot be stored however often they are sent.
    /// An error means that nothing was stored, and that trying again later may help.
    ///
    /// The same trace may be there several times, with other spans.
    fn store(&self, parts: Vec<TraceParts>) -> Pending<'_, Result<Vec<RefusedTrace>, StoreError>>;

    /// Learns of a request that was not taken, or not all of it.
    fn refused(&self, _refusal: &RefusedRequest) {}
}

impl TraceSink for TraceReceiver {
    fn store(&self, parts: Vec<TraceParts>) -> Pending<'_, Result<Vec<RefusedTrace>, StoreError>> {
        Box::pin(TraceReceiver::store(self, parts))
    }

    fn refused(&self, refusal: &RefusedRequest) {
        self.refuse(refusal);
    }
}
