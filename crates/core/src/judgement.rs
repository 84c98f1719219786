//! The result of running an eval function on a trace.
//!
//! A function that raised or timed out gave no verdict: that is an error, never a failure.

mod context;
mod eval_result;
mod limits;
mod options;

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use context::EvalContext;
pub use eval_result::EvalResult;
pub use limits::{LimitOutOfRange, LowerLimits};
pub use options::{DEFAULT_THRESHOLD, EvalOptions, ReturnForm};

/// The result of running one eval function on one trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    pub conclusion: Conclusion,
    /// The score that a function with flexible returns gave.
    pub score: Option<f64>,
    pub elapsed: Duration,
    /// The output of the function; ends with a note if it was truncated.
    pub stdout: String,
    pub stderr: String,
}

/// A verdict, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conclusion {
    Verdict {
        passed: bool,
        reason: String,
    },
    /// The function is not applicable to the trace: neither passed nor failed, and not an error.
    NotApplicable {
        reason: String,
    },
    Error(EvalError),
}

impl Conclusion {
    /// Returns the verdict, the reason (absent if there is neither a verdict nor a reason) and the error.
    pub fn into_parts(self) -> (Option<bool>, Option<String>, Option<EvalError>) {
        match self {
            Self::Verdict { passed, reason } => (Some(passed), Some(reason), None),
            Self::NotApplicable { reason } => (None, Some(reason).filter(|reason| !reason.is_empty()), None),
            Self::Error(error) => (None, None, Some(error)),
        }
    }

    pub fn is_applicable(&self) -> bool {
        !matches!(self, Self::NotApplicable { .. })
    }
}

impl Judgement {
    /// Creates the judgement of a function that did not run.
    pub fn not_run(error: EvalError) -> Self {
        Self {
            conclusion: Conclusion::Error(error),
            score: None,
            elapsed: Duration::ZERO,
            stdout: String::new(),
            stderr: String::new(),
        }
    }
}

/// The reason that an eval function gave no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalError {
    pub kind: ErrorKind,
    /// Readable text; may have several lines, such as a traceback.
    pub message: String,
}

impl EvalError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Returns the line of the function's source that raised the exception, if the traceback names one.
    pub fn line(&self) -> Option<u64> {
        let (_, traceback) = self.message.split_once("\nTraceback (most recent call last):\n")?;
        let frame = |line: &str| {
            let rest = line.trim_start().strip_prefix("File \"<eval>\", line ")?;
            let end = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse().ok()
        };
        traceback.lines().rev().find_map(frame)
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for EvalError {}

/// Kinds of errors of an eval function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ErrorKind {
    /// The function or the trace is invalid; nothing was run.
    Validation,
    /// The function's source is not Python.
    Syntax,
    /// It exceeded the time limit.
    Timeout,
    /// It exceeded the memory limit.
    Memory,
    /// It raised an exception.
    Exception,
    /// It returned something other than `(bool, str)`, or than what `evalReturns` allows.
    Return,
    /// The sandbox stopped it, or failed.
    Internal,
}

impl ErrorKind {
    pub const ALL: [ErrorKind; 7] = [
        ErrorKind::Validation,
        ErrorKind::Syntax,
        ErrorKind::Timeout,
        ErrorKind::Memory,
        ErrorKind::Exception,
        ErrorKind::Return,
        ErrorKind::Internal,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Validation => "validation",
            ErrorKind::Syntax => "syntax",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Memory => "memory",
            ErrorKind::Exception => "exception",
            ErrorKind::Return => "return",
            ErrorKind::Internal => "internal",
        }
    }
}

/// How to fix a function that returns something other than the contract's form.
pub const RETURN_HELP: &str = "return a tuple of a boolean and a string; for other forms, set KARAT_RETURNS = \
                               \"flexible\" in the file or \"evalReturns\": \"flexible\" in karat.json";

impl fmt::Display for ErrorKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Resource limits of one execution. The defaults are the maximum; lower limits can be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub time: Duration,
    /// Memory that a function may allocate, in addition to what Python itself needs.
    pub memory_bytes: usize,
}

impl Limits {
    /// The highest limits that can be requested, which are the default.
    pub const MAX: Limits = Limits { time: Duration::from_secs(5), memory_bytes: 50 << 20 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::MAX
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("KeyError: 'x'", None)]
    #[case("x\nTraceback (most recent call last):\n  File \"/lib/json.py\", line 7, in loads\n", None)]
    #[case("x\n  File \"<eval>\", line 7, in f\n", None)]
    #[case(
        "x\nTraceback (most recent call last):\n  File \"<eval>\", line 12, in f\n    g()\n  File \"<eval>\", line 3, in g\n  \
         File \"/lib/json.py\", line 7\n",
        Some(3)
    )]
    fn line_is_the_innermost_frame_in_the_function(#[case] message: &str, #[case] expected: Option<u64>) {
        assert_eq!(EvalError::new(ErrorKind::Exception, message).line(), expected);
    }
}
