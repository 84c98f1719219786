//! Stores what is received, and lets it be told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use karat_core::port::{Pending, StoreError};
use karat_server::{RefusedRequest, RefusedTrace, TraceSink};
use karat_store::Store;
use karat_traces::{Piece, TraceParts};
use tokio::sync::mpsc;

use crate::ingest::{Ingest, Taken};
use karat_workflows::context::clock::SystemClock;

/// What happened.
pub(super) enum Told {
    Stored { taken: Taken, spans: u64, log_records: u64 },
    Refused(RefusedRequest),
}

/// How much was refused, told or not.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    requests: AtomicU64,
    rejected: AtomicU64,
}

impl Refusals {
    /// Returns how many requests were refused, and how many spans and log records of others.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.rejected.load(Ordering::Relaxed))
    }

    fn add(&self, refusal: &RefusedRequest) {
        if refusal.is_whole() {
            self.requests.fetch_add(1, Ordering::Relaxed);
        } else {
            self.rejected.fetch_add(refusal.rejected, Ordering::Relaxed);
        }
    }
}

/// Writes into the store.
pub(super) struct StoreSink {
    store: Store,
    with_feedback: bool,
    refusals: Arc<Refusals>,
    told: mpsc::Sender<Told>,
}

impl StoreSink {
    pub(super) fn new(store: Store, with_feedback: bool, refusals: Arc<Refusals>, told: mpsc::Sender<Told>) -> Self {
        Self { store, with_feedback, refusals, told }
    }
}

impl TraceSink for StoreSink {
    fn store(&self, parts: Vec<TraceParts>) -> Pending<'_, Result<Vec<RefusedTrace>, StoreError>> {
        Box::pin(async move {
            let sizes: Vec<(String, u64, u64)> = parts
                .iter()
                .map(|part| (part.trace_id.clone(), part.spans.len() as u64, part.logs.len() as u64))
                .collect();
            let pieces = parts.into_iter().map(|part| Piece::Parts(Box::new(part))).collect();
            let ingest = Ingest::new(&self.store, &SystemClock).with_feedback(self.with_feedback);
            let taken = ingest.take(pieces).await?;
            let (mut spans, mut log_records) = (0, 0);
            for (trace_id, of_spans, of_logs) in &sizes {
                if !taken.refused.iter().any(|refused| refused.trace_id == *trace_id) {
                    spans += of_spans;
                    log_records += of_logs;
                }
            }
            let refused = taken
                .refused
                .iter()
                .map(|refused| RefusedTrace { trace_id: refused.trace_id.clone(), message: refused.message.clone() });
            let refused = refused.collect();
            // Nobody listens any more when it ends.
            let _ = self.told.send(Told::Stored { taken, spans, log_records }).await;
            Ok(refused)
        })
    }

    fn refused(&self, refusal: &RefusedRequest) {
        self.refusals.add(refusal);
        // Those who send nonsense faster than it can be told are not all told of.
        let _ = self.told.try_send(Told::Refused(refusal.clone()));
    }
}
