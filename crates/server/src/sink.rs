//! The receiver of traces.

use karat_core::port::{BoxFuture, StoreError};
use karat_traces::TraceParts;
use karat_workflows::receive_traces::{RefusedRequest, RefusedTrace, TraceReceiver};
use karat_workflows::telemetry::SpanCollector;

/// Stores traces.
pub trait TraceSink: Send + Sync {
    /// Stores traces and returns when they are on disk. Returns the traces that are refused permanently. After an error
    /// nothing is stored, and a retry may help.
    ///
    /// The same trace may occur several times, with different spans.
    fn store(&self, parts: Vec<TraceParts>) -> BoxFuture<'_, Result<Vec<RefusedTrace>, StoreError>>;

    /// Called for a request that is refused in whole or in part.
    fn on_refused(&self, _refusal: &RefusedRequest) {}
}

impl TraceSink for TraceReceiver {
    fn store(&self, parts: Vec<TraceParts>) -> BoxFuture<'_, Result<Vec<RefusedTrace>, StoreError>> {
        Box::pin(TraceReceiver::store(self, parts))
    }

    fn on_refused(&self, refusal: &RefusedRequest) {
        self.refuse(refusal);
    }
}

impl TraceSink for SpanCollector {
    fn store(&self, parts: Vec<TraceParts>) -> BoxFuture<'_, Result<Vec<RefusedTrace>, StoreError>> {
        self.add(parts);
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}
