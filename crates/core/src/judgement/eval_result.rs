//! The result of one eval function for a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ErrorKind, EvalContext, Judgement};

/// The result of one Python eval function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalResult {
    /// The function's name.
    pub name: String,
    /// The parameters that it was called with.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// The reference that it was called with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Value>,
    /// True: passed. False: failed. Null: not applicable, or no verdict: see `error`.
    pub result: Option<bool>,
    /// Whether the function is applicable; absent means true.
    #[serde(default = "is_applicable_by_default", skip_serializing_if = "is_true")]
    pub applicable: bool,
    /// The score, if the function gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    pub reason: Option<String>,
    /// May have several lines, such as a traceback.
    pub error: Option<String>,
    pub error_kind: Option<ErrorKind>,
    pub execution_time_ms: u64,
    /// The output of the function; ends with a note if it was truncated.
    pub stdout: String,
    pub stderr: String,
}

impl EvalResult {
    pub fn new(name: &str, context: EvalContext, judgement: Judgement) -> Self {
        let Judgement { conclusion, score, elapsed, stdout, stderr } = judgement;
        let applicable = conclusion.is_applicable();
        let (result, reason, error) = conclusion.into_parts();
        let (error, error_kind) = error.map(|error| (error.message, error.kind)).unzip();
        let execution_time_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        Self {
            name: name.to_owned(),
            params: context.params,
            reference: context.reference,
            result,
            applicable,
            score,
            reason,
            error,
            error_kind,
            execution_time_ms,
            stdout,
            stderr,
        }
    }
}

fn is_applicable_by_default() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "signature required by serde")]
fn is_true(flag: &bool) -> bool {
    *flag
}
