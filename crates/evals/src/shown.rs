//! Traces as programs are shown them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::feedback::Feedback;
use crate::version::StoredExecution;
use karat_core::document::TraceDocument;
use karat_core::stored::TraceListed;

/// Some of the traces that are meant.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat trace list")]
pub struct TraceList {
    /// How many are meant, shown or not.
    pub total: u64,
    /// The newest first.
    pub traces: Vec<TraceListed>,
}

/// A trace with all that is known of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "karat trace show")]
pub struct ShownTrace {
    #[serde(flatten)]
    pub listed: TraceListed,
    /// What eval functions are given, as it is kept.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub document: TraceDocument,
    /// What evals said of it, by name and version.
    pub executions: Vec<StoredExecution>,
    /// What people said of it, the oldest first.
    pub feedback: Vec<Feedback>,
}
