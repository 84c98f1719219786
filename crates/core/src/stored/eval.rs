//! Evals, their versions, and what they said.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::judgement::ErrorKind;

/// A version on its way into the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVersion {
    /// The function's name.
    pub eval_id: String,
    pub code: String,
    pub code_hash: String,
    pub guest_hash: String,
    /// Why there is this version, where somebody says.
    pub note: Option<String>,
    pub created_at: Timestamp,
}

/// One version of an eval. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvalVersion {
    pub eval_id: String,
    /// From 1.
    pub version: u64,
    pub code: String,
    pub code_hash: String,
    /// Of the Python that validated it.
    pub guest_hash: String,
    pub note: Option<String>,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
}

/// What came of adding a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedVersion {
    pub version: u64,
    /// The newest version has the same code already, so that none was added.
    pub was_there: bool,
}

/// An eval and what its newest version said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvalSummary {
    pub eval_id: String,
    pub newest_version: u64,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// When the newest version was added.
    #[schemars(with = "String")]
    pub updated_at: Timestamp,
    pub passed: u64,
    pub failed: u64,
    pub errored: u64,
}

/// What a version of an eval said of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoredExecution {
    pub id: String,
    pub eval_id: String,
    pub eval_version: u64,
    pub trace_id: String,
    /// Of the trace's text as it was judged.
    pub trace_hash: String,
    /// Null: there is no verdict, and `error` says why.
    pub result: Option<bool>,
    pub reason: Option<String>,
    pub execution_time_ms: u64,
    pub error: Option<String>,
    pub error_kind: Option<ErrorKind>,
    pub stdout: String,
    pub stderr: String,
    pub code_hash: String,
    pub guest_hash: Option<String>,
    #[schemars(with = "String")]
    pub executed_at: Timestamp,
}
