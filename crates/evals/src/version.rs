//! Evals, their versions and executions.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::execution::{Execution, GuestFunction, JudgedTrace};
use karat_core::judgement::{ErrorKind, EvalOptions, Judgement};
use karat_json::hash::long_hash;
use karat_json::text::shorten;

/// A version to add to the store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVersion {
    /// The function's name.
    pub eval_id: String,
    pub code: String,
    pub options: EvalOptions,
    pub code_hash: String,
    pub guest_hash: String,
    /// Why the version was added.
    pub note: Option<String>,
    pub created_at: Timestamp,
    /// Version that must still be the newest, for optimistic locking.
    pub after: Option<u64>,
}

/// One version of an eval. Immutable.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EvalVersion {
    pub eval_id: String,
    /// 1-based.
    pub version: u64,
    pub code: String,
    /// The optional features that the function uses, with its helper modules.
    #[serde(default, skip_serializing_if = "EvalOptions::is_default")]
    pub options: EvalOptions,
    pub code_hash: String,
    /// Hash of the Python guest that validated it.
    pub guest_hash: String,
    pub note: Option<String>,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
}

impl EvalVersion {
    /// Whether a model wrote the version. Only the note records it.
    pub fn is_refined(&self) -> bool {
        self.note.as_deref().is_some_and(|note| note.starts_with(RefinedNote::PREFIX))
    }
}

/// Maximum length of the model's explanation in a note, in characters.
const MAX_EXPLANATION_LENGTH: usize = 200;

/// The note of a version that a model wrote and a person approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefinedNote<'n> {
    pub model: &'n str,
    pub approver: &'n str,
    /// The model's explanation; may be empty.
    pub explanation: &'n str,
}

impl RefinedNote<'_> {
    const PREFIX: &'static str = "refined by ";
}

impl fmt::Display for RefinedNote<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, approver, explanation } = self;
        write!(out, "{}{model}, approved by {approver}", Self::PREFIX)?;
        match shorten(explanation, MAX_EXPLANATION_LENGTH) {
            explanation if explanation.is_empty() => Ok(()),
            explanation => write!(out, ": {explanation}"),
        }
    }
}

/// Result of adding a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedVersion {
    /// Added under this number.
    Added(u64),
    /// The newest version, with this number, has the same code; nothing was added.
    Unchanged(u64),
    /// The newest version is not the expected one; nothing was added. `None`: the eval has no version.
    Conflict(Option<u64>),
}

/// An eval and the verdict counts of its newest version.
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
    /// Executions in which the function was not applicable.
    pub not_applicable: u64,
    pub errored: u64,
}

/// Verdict counts of a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VersionCounts {
    pub version: u64,
    pub passed: u64,
    pub failed: u64,
    /// Executions in which the function was not applicable.
    pub not_applicable: u64,
    /// Executions without a verdict.
    pub errored: u64,
}

/// One judgement of one trace by one version of an eval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoredExecution {
    pub id: String,
    pub eval_id: String,
    pub eval_version: u64,
    pub trace_id: String,
    /// Hash of the trace's text when it was judged.
    pub trace_hash: String,
    /// Null if the function is not applicable, or there is no verdict; `error` gives the reason.
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
    /// False if the function is not applicable to the trace.
    pub applicable: bool,
    /// The score, if the function gave one.
    pub score: Option<f64>,
}

impl StoredExecution {
    /// Creates a row. The id depends on the version and the trace only, so it is reproducible. It does not depend on
    /// the code, because a later version can have the same code as an earlier one.
    pub fn new(
        function: GuestFunction<'_>,
        version: u64,
        (trace_id, trace_hash): (&str, &str),
        judgement: Judgement,
        executed_at: Timestamp,
    ) -> Self {
        let identity = [function.eval_id, &version.to_string(), trace_id, trace_hash].join("\0");
        let trace = JudgedTrace { id: Some(trace_id), hash: trace_hash };
        let row = Execution::new(function, trace, judgement, String::new());
        Self {
            id: long_hash(identity.as_bytes()),
            eval_id: row.eval_id,
            eval_version: version,
            trace_id: trace_id.to_owned(),
            trace_hash: trace_hash.to_owned(),
            result: row.result,
            applicable: row.applicable,
            score: row.score,
            reason: row.reason,
            execution_time_ms: row.execution_time_ms,
            error: row.error,
            error_kind: row.error_kind,
            stdout: row.stdout,
            stderr: row.stderr,
            code_hash: row.code_hash,
            guest_hash: row.guest_hash,
            executed_at,
        }
    }
}

impl From<StoredExecution> for Execution {
    fn from(stored: StoredExecution) -> Self {
        Self {
            id: stored.id,
            eval_id: stored.eval_id,
            eval_version: Some(stored.eval_version),
            trace_id: Some(stored.trace_id),
            result: stored.result,
            applicable: stored.applicable,
            score: stored.score,
            reason: stored.reason,
            execution_time_ms: stored.execution_time_ms,
            error: stored.error,
            error_kind: stored.error_kind,
            stdout: stored.stdout,
            stderr: stored.stderr,
            code_hash: stored.code_hash,
            guest_hash: stored.guest_hash,
            executed_at: stored.executed_at.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use karat_core::judgement::Conclusion;

    #[test]
    fn versions_with_the_same_code_have_different_ids() {
        let row = |version, hash| {
            let conclusion = Conclusion::Verdict { passed: true, reason: "ok".to_owned() };
            let judgement = Judgement {
                conclusion,
                score: None,
                elapsed: Duration::from_millis(2),
                stdout: String::new(),
                stderr: String::new(),
            };
            let function = GuestFunction { eval_id: "eval_x", code_hash: "c", guest_hash: "g" };
            StoredExecution::new(function, version, ("t", hash), judgement, Timestamp::UNIX_EPOCH)
        };
        assert_eq!(row(1, "h"), row(1, "h"));
        assert_ne!(row(1, "h").id, row(3, "h").id);
        assert_ne!(row(1, "h").id, row(1, "i").id);
        let execution = Execution::from(row(3, "h"));
        assert_eq!(
            (execution.eval_version, execution.trace_id.as_deref(), execution.result),
            (Some(3), Some("t"), Some(true))
        );
        assert_eq!(execution.executed_at, "1970-01-01T00:00:00Z");
    }

    #[test]
    fn recognises_a_refined_version_by_its_note() {
        let version = |note: Option<String>| EvalVersion {
            eval_id: "eval_x".to_owned(),
            version: 2,
            code: String::new(),
            options: EvalOptions::default(),
            code_hash: String::new(),
            guest_hash: String::new(),
            note,
            created_at: Timestamp::UNIX_EPOCH,
        };
        let note = RefinedNote { model: "m", approver: "ann", explanation: "counts words" }.to_string();
        assert_eq!(note, "refined by m, approved by ann: counts words");
        assert_eq!(
            RefinedNote { model: "m", approver: "ann", explanation: "" }.to_string(),
            "refined by m, approved by ann"
        );
        assert!(version(Some(note)).is_refined());
        assert!(!version(Some("by hand".to_owned())).is_refined() && !version(None).is_refined());
    }
}
