//! What is asked of a store: one trait for each kind of thing that is kept.
//!
//! Whatever a method writes is written whole or not at all, and is on disk when it returns.

use jiff::Timestamp;

use super::Pending;
use crate::stored::{NewTrace, Put, StoredCase, StoredRun, StoredTrace, TraceFilter, TraceListed};

/// Why the store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// A lower-case fragment; a database's password is not in it.
    pub message: String,
    pub hint: Option<String>,
}

/// What a method of a store returns.
pub type Stored<'s, T> = Pending<'s, Result<T, StoreError>>;

/// Traces.
pub trait TraceStore: Send + Sync {
    /// Puts traces in, all of them together, and says what came of each, in order.
    fn put_traces<'s>(&'s self, traces: &'s [NewTrace], now: Timestamp) -> Stored<'s, Vec<Put>>;

    fn trace<'s>(&'s self, id: &'s str) -> Stored<'s, Option<StoredTrace>>;

    /// Returns what the source said, as it said it.
    fn raw<'s>(&'s self, id: &'s str) -> Stored<'s, Option<Vec<u8>>>;

    /// Returns ids that begin so, sorted, at most this many: people shorten ids.
    fn trace_ids<'s>(&'s self, beginning: &'s str, limit: u64) -> Stored<'s, Vec<String>>;

    /// Returns which of these ids are no trace's.
    fn missing_traces<'s>(&'s self, ids: &'s [String]) -> Stored<'s, Vec<String>>;

    /// Returns traces, the newest first.
    fn list_traces<'s>(&'s self, filter: &'s TraceFilter) -> Stored<'s, Vec<TraceListed>>;

    fn count_traces<'s>(&'s self, filter: &'s TraceFilter) -> Stored<'s, u64>;

    /// Returns traces by their ids' order, those after this id, at most this many: how all of them are gone through.
    fn read_traces<'s>(
        &'s self,
        filter: &'s TraceFilter,
        after: Option<&'s str>,
        limit: u64,
    ) -> Stored<'s, Vec<StoredTrace>>;
}

/// Runs of eval files.
pub trait RunStore: Send + Sync {
    /// Puts a run in, or its numbers when it has ended.
    fn put_run<'s>(&'s self, run: &'s StoredRun) -> Stored<'s, ()>;

    /// Puts tries of cases in, with their traces.
    fn put_cases<'s>(&'s self, cases: &'s [StoredCase], traces: &'s [NewTrace], now: Timestamp) -> Stored<'s, ()>;

    /// Returns runs, the newest first.
    fn runs(&self, limit: u64) -> Stored<'_, Vec<StoredRun>>;

    /// Returns a run's tries, in the order in which they ended.
    fn cases_of_run<'s>(&'s self, run_id: &'s str) -> Stored<'s, Vec<StoredCase>>;
}
