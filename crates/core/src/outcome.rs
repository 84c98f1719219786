//! The outcome of a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of a case: a verdict, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Passed,
    /// An assertion failed, or the agent timed out.
    Failed,
    /// There is no verdict.
    Errored,
}

/// The outcome of a trial, with vacuous passes as a separate variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialVerdict {
    Passed,
    Failed,
    /// Passed without any assertion, which proves nothing.
    Vacuous,
    Errored,
}

impl TrialVerdict {
    pub fn new(outcome: Outcome, vacuous: bool) -> Self {
        match outcome {
            Outcome::Passed if vacuous => Self::Vacuous,
            Outcome::Passed => Self::Passed,
            Outcome::Failed => Self::Failed,
            Outcome::Errored => Self::Errored,
        }
    }
}

/// The reason that a case did not pass. Result files contain only the outcome and a message; see [`Cause::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// An assertion failed.
    Assertion,
    /// The agent timed out. This is a verdict, unlike the errors below.
    Timeout,
    /// The agent did not answer.
    Agent,
    /// The agent was not asked, since earlier cases could not reach it.
    NotRun,
    /// A check gave no verdict: an eval function errored, or a tool's schema is invalid.
    Check,
    /// The case asserts something about tool calls, but the agent does not report them and judging is strict.
    UnreportedCalls,
    /// A hook or a state source failed.
    Hook,
    /// The simulated user broke a rule, or its model gave no message.
    SimulatedUser,
    /// A bug in karat.
    Internal,
}

impl Cause {
    /// The error text of a timeout in result files.
    pub const TIMEOUT_TEXT: &'static str = "timeout";

    pub fn outcome(self) -> Outcome {
        match self {
            Self::Assertion | Self::Timeout => Outcome::Failed,
            Self::Agent
            | Self::NotRun
            | Self::Check
            | Self::UnreportedCalls
            | Self::Hook
            | Self::SimulatedUser
            | Self::Internal => Outcome::Errored,
        }
    }

    /// Recovers the cause of a trial from a result file. Returns `None` if the trial passed or errored, since the text
    /// does not distinguish kinds of errors.
    pub fn read(outcome: Outcome, error: Option<&str>) -> Option<Self> {
        match (outcome, error) {
            (Outcome::Failed, Some(Self::TIMEOUT_TEXT)) => Some(Self::Timeout),
            (Outcome::Failed, _) => Some(Self::Assertion),
            (Outcome::Passed | Outcome::Errored, _) => None,
        }
    }
}
