//! Events and totals of the trace receiver.

use schemars::JsonSchema;
use serde::Serialize;

use super::{PutOutcome, TraceHead};

/// An event; one line of `karat trace receive --format jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[schemars(title = "karat trace receive event")]
pub enum ReceiveEvent {
    /// Traces are accepted from now on.
    Listening {
        /// The value for `OTEL_EXPORTER_OTLP_ENDPOINT`.
        url: String,
        /// Location of the store.
        store: String,
    },
    /// A trace was stored with everything received so far; more may follow.
    Stored {
        change: Change,
        #[serde(flatten)]
        head: Box<TraceHead>,
    },
    /// A request was rejected, in whole or in part.
    Refused {
        /// The HTTP status of the response: 200 if the rest of the request was accepted.
        status: u16,
        /// Number of rejected spans or log records, if the rest was accepted.
        rejected: u64,
        message: String,
    },
    /// No more traces are accepted.
    Stopped(ReceiveTotals),
}

/// How a stored trace changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Added,
    /// Its content changed, usually because more of it was received.
    Changed,
    /// All of it was already stored.
    Unchanged,
}

impl From<PutOutcome> for Change {
    fn from(put: PutOutcome) -> Self {
        match put {
            PutOutcome::Added => Self::Added,
            PutOutcome::Changed => Self::Changed,
            // A conflicting write is retried until it succeeds.
            PutOutcome::Unchanged | PutOutcome::Conflict => Self::Unchanged,
        }
    }
}

/// Totals of the receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReceiveTotals {
    /// Distinct traces; the next three fields count those that are new, that changed, and that were already stored.
    pub traces: u64,
    pub added: u64,
    pub changed: u64,
    pub unchanged: u64,
    /// Stored spans, including repeated ones.
    pub spans: u64,
    pub log_records: u64,
    /// Requests that were rejected as a whole.
    pub refused_requests: u64,
    /// Spans and log records that were rejected while the rest of their request was accepted.
    pub rejected: u64,
}
