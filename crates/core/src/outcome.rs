//! How a case ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of a case: a verdict, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Passed,
    /// An assertion did not hold, or the agent took too long.
    Failed,
    /// No verdict could be reached.
    Errored,
}

/// Why a case did not pass. Results hold the outcome and a text only; see [`Cause::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// An assertion did not hold.
    Assertion,
    /// The agent took too long: a verdict, unlike the errors below.
    Timeout,
    /// The agent gave no answer.
    Agent,
    /// An eval function gave no verdict.
    EvalFunction,
    /// A defect of karat.
    Internal,
}

impl Cause {
    /// What results say of a timeout.
    pub const TIMEOUT_TEXT: &'static str = "timeout";

    pub fn outcome(self) -> Outcome {
        match self {
            Self::Assertion | Self::Timeout => Outcome::Failed,
            Self::Agent | Self::EvalFunction | Self::Internal => Outcome::Errored,
        }
    }

    /// Reads the cause of one try back from a result: the only place that knows it by its text. None where the try
    /// passed, and where it errored, since the text does not say what did.
    pub fn read(outcome: Outcome, error: Option<&str>) -> Option<Self> {
        match (outcome, error) {
            (Outcome::Failed, Some(Self::TIMEOUT_TEXT)) => Some(Self::Timeout),
            (Outcome::Failed, _) => Some(Self::Assertion),
            (Outcome::Passed | Outcome::Errored, _) => None,
        }
    }
}
