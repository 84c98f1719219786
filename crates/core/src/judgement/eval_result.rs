//! The result of one eval function for a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Conclusion, ErrorKind, Judgement};

/// The result of one Python eval function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalResult {
    /// The function's name.
    pub name: String,
    /// True: passed. False: failed. Null: no verdict, see `error`.
    pub result: Option<bool>,
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
    pub fn new(name: &str, judgement: Judgement) -> Self {
        let Judgement { conclusion, elapsed, stdout, stderr } = judgement;
        let (result, reason, error) = match conclusion {
            Conclusion::Verdict { passed, reason } => (Some(passed), Some(reason), None),
            Conclusion::Error(error) => (None, None, Some(error)),
        };
        let (error, error_kind) = error.map(|error| (error.message, error.kind)).unzip();
        let execution_time_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        Self { name: name.to_owned(), result, reason, error, error_kind, execution_time_ms, stdout, stderr }
    }
}
