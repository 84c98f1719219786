//! One judgement of a trace, as written to output and to the store.

use karat_core::judgement::{ErrorKind, Judgement};
use schemars::JsonSchema;
use serde::Serialize;

use crate::tally::EvalRunSummary;

/// One row of `eval_executions`: the judgement of a trace by an eval function.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat eval execution")]
pub struct Execution {
    /// Equal for the same code and trace, so that programs can deduplicate.
    pub id: String,
    /// The function's name.
    pub eval_id: String,
    /// Version in the store; null for a file.
    pub eval_version: Option<u64>,
    /// The trace's id; null if it has none or could not be read.
    pub trace_id: Option<String>,
    /// True: passed. False: failed. Null: not applicable, or no verdict; `error` gives the reason.
    pub result: Option<bool>,
    pub reason: Option<String>,
    pub execution_time_ms: u64,
    pub error: Option<String>,
    pub error_kind: Option<ErrorKind>,
    pub stdout: String,
    pub stderr: String,
    /// Hash of the function's code, of its optional features, and of the guest.
    pub code_hash: String,
    /// First twelve hex digits of the SHA-256 of the Python guest; null if the function did not run.
    pub guest_hash: Option<String>,
    /// ISO 8601.
    pub executed_at: String,
    /// False if the function is not applicable to the trace: `result` and `error` are null.
    pub applicable: bool,
    /// The score, if the function gave one.
    pub score: Option<f64>,
}

/// Output of `karat eval run --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat eval run")]
pub struct EvalRun {
    /// By trace, then by function, both in the order given.
    pub executions: Vec<Execution>,
    pub summary: EvalRunSummary,
}

use karat_json::hash::{long_hash, short_hash};

/// An eval function and the Python guest that runs it.
#[derive(Debug, Clone, Copy)]
pub struct GuestFunction<'f> {
    pub eval_id: &'f str,
    /// Hash of the function alone.
    pub code_hash: &'f str,
    pub guest_hash: &'f str,
}

impl GuestFunction<'_> {
    /// Returns the hash of everything but the trace that a verdict depends on.
    pub fn execution_hash(&self) -> String {
        short_hash([self.code_hash, self.guest_hash].join("\0").as_bytes())
    }
}

/// A judged trace.
#[derive(Debug, Clone, Copy)]
pub struct JudgedTrace<'t> {
    pub id: Option<&'t str>,
    /// Hash of the trace's text.
    pub hash: &'t str,
}

impl Execution {
    /// Creates a row. The id depends on the function and the trace only, so it is reproducible.
    pub fn new(function: GuestFunction<'_>, trace: JudgedTrace<'_>, judgement: Judgement, executed_at: String) -> Self {
        let identity = [function.eval_id, function.code_hash, trace.id.unwrap_or_default(), trace.hash].join("\0");
        let applicable = judgement.conclusion.is_applicable();
        let (result, reason, error) = judgement.conclusion.into_parts();
        let error_kind = error.as_ref().map(|error| error.kind);
        // Invalid input is rejected before the function runs.
        let has_run = error_kind != Some(ErrorKind::Validation);
        Self {
            id: long_hash(identity.as_bytes()),
            eval_id: function.eval_id.to_owned(),
            eval_version: None,
            trace_id: trace.id.map(str::to_owned),
            result,
            reason,
            execution_time_ms: u64::try_from(judgement.elapsed.as_millis()).unwrap_or(u64::MAX),
            error: error.map(|error| error.message),
            error_kind,
            stdout: judgement.stdout,
            stderr: judgement.stderr,
            code_hash: function.execution_hash(),
            guest_hash: has_run.then(|| function.guest_hash.to_owned()),
            executed_at,
            applicable,
            score: judgement.score,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use karat_core::judgement::{Conclusion, EvalError};

    fn row(code_hash: &str, conclusion: Conclusion, executed_at: &str) -> Execution {
        let function = GuestFunction { eval_id: "eval_x", code_hash, guest_hash: "cafe" };
        let judgement = Judgement {
            conclusion,
            score: Some(0.5),
            elapsed: Duration::from_micros(1999),
            stdout: "out".to_owned(),
            stderr: String::new(),
        };
        Execution::new(function, JudgedTrace { id: Some("t1"), hash: "beef" }, judgement, executed_at.to_owned())
    }

    #[test]
    fn the_id_depends_on_function_and_trace_only() {
        let passed = || Conclusion::Verdict { passed: true, reason: "fine".to_owned() };
        let first = row("a", passed(), "yesterday");
        assert_eq!(first.id, row("a", passed(), "today").id);
        assert_ne!(first.id, row("b", passed(), "yesterday").id);
        assert_eq!(first.id.len(), 32);
        assert_eq!((first.result, first.reason.as_deref(), first.execution_time_ms), (Some(true), Some("fine"), 1));
        assert_eq!((first.error, first.guest_hash.as_deref()), (None, Some("cafe")));
    }

    #[test]
    fn the_code_hash_covers_function_and_guest() {
        let hash = |code_hash, guest_hash| GuestFunction { eval_id: "eval_x", code_hash, guest_hash }.execution_hash();
        let row = row("a", Conclusion::NotApplicable { reason: String::new() }, "now");
        assert_eq!(row.code_hash, hash("a", "cafe"));
        assert_ne!(row.code_hash, hash("b", "cafe"));
        assert_ne!(row.code_hash, hash("a", "beef"));
    }

    #[test]
    fn a_function_may_be_not_applicable() {
        let row = row("a", Conclusion::NotApplicable { reason: String::new() }, "now");
        assert_eq!((row.applicable, row.result, row.reason, row.error), (false, None, None, None));
        assert_eq!((row.guest_hash.as_deref(), row.score), (Some("cafe"), Some(0.5)));
    }

    #[test]
    fn an_error_has_no_result() {
        let row = row("a", Conclusion::Error(EvalError::new(ErrorKind::Validation, "line 2: invalid JSON")), "now");
        assert_eq!((row.result, row.reason, row.guest_hash, row.applicable), (None, None, None, true));
        assert_eq!((row.error.as_deref(), row.error_kind), (Some("line 2: invalid JSON"), Some(ErrorKind::Validation)));
    }
}
