//! What happens while traces are received.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Put, TraceHead};

/// Something that happened; a line of `karat trace receive --format jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[schemars(title = "karat trace receive event")]
pub enum ReceiveEvent {
    /// From here on traces are taken.
    Listening {
        /// What `OTEL_EXPORTER_OTLP_ENDPOINT` is to be.
        url: String,
        /// Where traces are kept.
        store: String,
    },
    /// A trace is in the store with all that has come of it so far; more of it may come.
    Stored {
        change: Change,
        #[serde(flatten)]
        head: Box<TraceHead>,
    },
    /// A request was not taken, or not all of it.
    Refused {
        /// What it was answered with: 200 where the rest of it was taken.
        status: u16,
        /// How many of its spans or log records were refused, where the rest was taken.
        rejected: u64,
        message: String,
    },
    /// Nothing is taken any more.
    Stopped(ReceiveTotals),
}

/// What came of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was not there before.
    Added,
    /// More of it came, or something else.
    Changed,
    /// All of it was there already.
    Unchanged,
}

impl From<Put> for Change {
    fn from(put: Put) -> Self {
        match put {
            Put::Added => Self::Added,
            Put::Changed => Self::Changed,
            // A conflict is made anew until it is none.
            Put::Unchanged | Put::Conflict => Self::Unchanged,
        }
    }
}

/// What came in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReceiveTotals {
    /// Different traces; the next three are how many of them were new, grew, and were there already.
    pub traces: u64,
    pub added: u64,
    pub changed: u64,
    pub unchanged: u64,
    /// What was stored, the same as often as it came.
    pub spans: u64,
    pub log_records: u64,
    /// Requests of which nothing was taken.
    pub refused_requests: u64,
    /// Spans and log records that were refused where the rest of their request was taken.
    pub rejected: u64,
}
