//! Evals, their versions, and what they said.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::execution::{Execution, Judge, JudgedTrace};
use karat_core::judgement::{ErrorKind, Judgement};
use karat_json::hash::long_hash;
use karat_json::text::shorten;

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
    /// Which version must be the newest, where that matters to whoever adds this one.
    pub after: Option<u64>,
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

impl EvalVersion {
    /// Returns whether a model wrote the version. The note says so, and nothing else that is stored.
    pub fn is_refined(&self) -> bool {
        self.note.as_deref().is_some_and(|note| note.starts_with(RefinedNote::BEGINNING))
    }
}

/// The longest explanation of a model that a note keeps, in characters.
const MAX_WHY_LENGTH: usize = 200;

/// The note of a version that a model wrote and a person approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefinedNote<'n> {
    pub model: &'n str,
    pub approver: &'n str,
    /// What the model says of it; may be empty.
    pub why: &'n str,
}

impl RefinedNote<'_> {
    const BEGINNING: &'static str = "refined by ";
}

impl fmt::Display for RefinedNote<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, approver, why } = self;
        write!(out, "{}{model}, approved by {approver}", Self::BEGINNING)?;
        match shorten(why, MAX_WHY_LENGTH) {
            why if why.is_empty() => Ok(()),
            why => write!(out, ": {why}"),
        }
    }
}

/// What came of adding a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedVersion {
    /// It is the newest now, under this number.
    Added(u64),
    /// The newest version, which is this one, has the same code: none was added.
    Unchanged(u64),
    /// The newest is not the one that was expected: none was added. None: there is no version at all.
    Conflict(Option<u64>),
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

/// How often a version said what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VersionCounts {
    pub version: u64,
    pub passed: u64,
    pub failed: u64,
    /// Executions without a verdict.
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

impl StoredExecution {
    /// Makes a row. Its id depends on the version and the trace only, so that it is the same whenever it is made; not on
    /// the code, for a later version may have an earlier one's.
    pub fn new(
        judge: Judge<'_>,
        version: u64,
        (trace_id, trace_hash): (&str, &str),
        judgement: Judgement,
        executed_at: Timestamp,
    ) -> Self {
        let identity = [judge.eval_id, &version.to_string(), trace_id, trace_hash].join("\0");
        let trace = JudgedTrace { id: Some(trace_id), hash: trace_hash };
        let row = Execution::new(judge, trace, judgement, String::new());
        Self {
            id: long_hash(identity.as_bytes()),
            eval_id: row.eval_id,
            eval_version: version,
            trace_id: trace_id.to_owned(),
            trace_hash: trace_hash.to_owned(),
            result: row.result,
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
    fn from(kept: StoredExecution) -> Self {
        Self {
            id: kept.id,
            eval_id: kept.eval_id,
            eval_version: Some(kept.eval_version),
            trace_id: Some(kept.trace_id),
            result: kept.result,
            reason: kept.reason,
            execution_time_ms: kept.execution_time_ms,
            error: kept.error,
            error_kind: kept.error_kind,
            stdout: kept.stdout,
            stderr: kept.stderr,
            code_hash: kept.code_hash,
            guest_hash: kept.guest_hash,
            executed_at: kept.executed_at.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use karat_core::judgement::Conclusion;

    #[test]
    fn a_version_with_an_earlier_ones_code_has_rows_of_its_own() {
        let row = |version, hash| {
            let conclusion = Conclusion::Verdict { passed: true, reason: "ok".to_owned() };
            let judgement = Judgement {
                conclusion,
                elapsed: Duration::from_millis(2),
                stdout: String::new(),
                stderr: String::new(),
            };
            let judge = Judge { eval_id: "eval_x", code_hash: "c", guest_hash: "g" };
            StoredExecution::new(judge, version, ("t", hash), judgement, Timestamp::UNIX_EPOCH)
        };
        assert_eq!(row(1, "h"), row(1, "h"));
        assert_ne!(row(1, "h").id, row(3, "h").id);
        assert_ne!(row(1, "h").id, row(1, "i").id);
        let shown = Execution::from(row(3, "h"));
        assert_eq!((shown.eval_version, shown.trace_id.as_deref(), shown.result), (Some(3), Some("t"), Some(true)));
        assert_eq!(shown.executed_at, "1970-01-01T00:00:00Z");
    }

    #[test]
    fn a_refined_version_is_known_by_its_note() {
        let version = |note: Option<String>| EvalVersion {
            eval_id: "eval_x".to_owned(),
            version: 2,
            code: String::new(),
            code_hash: String::new(),
            guest_hash: String::new(),
            note,
            created_at: Timestamp::UNIX_EPOCH,
        };
        let note = RefinedNote { model: "m", approver: "ann", why: "counts words" }.to_string();
        assert_eq!(note, "refined by m, approved by ann: counts words");
        assert_eq!(RefinedNote { model: "m", approver: "ann", why: "" }.to_string(), "refined by m, approved by ann");
        assert!(version(Some(note)).is_refined());
        assert!(!version(Some("by hand".to_owned())).is_refined() && !version(None).is_refined());
    }
}
