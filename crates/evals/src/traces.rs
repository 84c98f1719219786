//! Traces with their executions and feedback, as reported.

use schemars::JsonSchema;
use serde::Serialize;

use crate::feedback::Feedback;
use crate::version::StoredExecution;
use karat_core::document::TraceDocument;
use karat_core::stored::TraceListItem;

/// A page of the selected traces.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat trace list")]
pub struct TraceList {
    /// Number of selected traces, shown or not.
    pub total: u64,
    /// Newest first.
    pub traces: Vec<TraceListItem>,
}

/// A trace with its executions and feedback.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "karat trace show")]
pub struct TraceDetails {
    #[serde(flatten)]
    pub item: TraceListItem,
    /// The stored document, as passed to eval functions.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub document: TraceDocument,
    /// By eval name and version.
    pub executions: Vec<StoredExecution>,
    /// Oldest first.
    pub feedback: Vec<Feedback>,
}
