//! The interfaces of the store: one trait per kind of data.
//!
//! Each write is atomic, and durable when the method returns.

use jiff::Timestamp;

use super::BoxFuture;
use crate::stored::{NewTrace, PutOutcome, StoredCase, StoredRun, StoredTrace, TraceFilter, TraceListItem};

/// The end of the message of a store without space.
pub const DISK_FULL: &str = "no space left on device";

/// Why a store operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// A lower-case fragment without the database's password.
    pub message: String,
    pub hint: Option<String>,
}

impl StoreError {
    /// Whether there is no space for the data.
    pub fn is_disk_full(&self) -> bool {
        self.message.ends_with(DISK_FULL)
    }
}

/// The return type of store methods.
pub type StoreFuture<'s, T> = BoxFuture<'s, Result<T, StoreError>>;

/// Traces.
pub trait TraceStore: Send + Sync {
    /// Writes traces in one transaction and returns the outcome of each, in order.
    fn put_traces<'s>(&'s self, traces: &'s [NewTrace], now: Timestamp) -> StoreFuture<'s, Vec<PutOutcome>>;

    fn trace<'s>(&'s self, id: &'s str) -> StoreFuture<'s, Option<StoredTrace>>;

    /// Returns the trace as the source sent it.
    fn raw<'s>(&'s self, id: &'s str) -> StoreFuture<'s, Option<Vec<u8>>>;

    /// Returns up to `limit` ids that an abbreviation stands for, sorted: those with this prefix or, if there are none
    /// and it is `RUN:REST`, those of traces of runs that begin with `RUN`, followed by exactly `:REST`.
    fn trace_ids<'s>(&'s self, abbreviated: &'s str, limit: u64) -> StoreFuture<'s, Vec<String>>;

    /// Returns the ids that belong to no trace.
    fn missing_traces<'s>(&'s self, ids: &'s [String]) -> StoreFuture<'s, Vec<String>>;

    /// Returns traces, the newest first.
    fn list_traces<'s>(&'s self, filter: &'s TraceFilter) -> StoreFuture<'s, Vec<TraceListItem>>;

    fn count_traces<'s>(&'s self, filter: &'s TraceFilter) -> StoreFuture<'s, u64>;

    /// Returns up to `limit` traces after this id, in id order, for pagination.
    fn read_traces<'s>(
        &'s self,
        filter: &'s TraceFilter,
        after: Option<&'s str>,
        limit: u64,
    ) -> StoreFuture<'s, Vec<StoredTrace>>;
}

/// Runs of eval files.
pub trait RunStore: Send + Sync {
    /// Writes a run, or updates its totals when it has ended.
    fn put_run<'s>(&'s self, run: &'s StoredRun) -> StoreFuture<'s, ()>;

    /// Writes trials of cases with their traces.
    fn put_cases<'s>(&'s self, cases: &'s [StoredCase], traces: &'s [NewTrace], now: Timestamp) -> StoreFuture<'s, ()>;

    /// Returns runs, the newest first.
    fn runs(&self, limit: u64) -> StoreFuture<'_, Vec<StoredRun>>;

    /// Returns the trials of a run, in order of completion.
    fn cases_of_run<'s>(&'s self, run_id: &'s str) -> StoreFuture<'s, Vec<StoredCase>>;
}
