//! The turns of a conversation, as written to results.

use std::ops::Not;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::assertion::{AssertionVerdict, CallAlignment, Verdict};
use crate::outcome::Outcome;
use crate::trace::{ToolCall, Trace, Usage};

/// One turn of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnDetails {
    /// The user's message.
    pub message: String,
    pub outcome: TurnOutcome,
    /// The first failure of this turn, or why there is no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// 0 if the turn was not run.
    #[serde(default)]
    pub duration_ms: u64,
    /// The agent's text; absent if it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// The calls of this turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Number of model calls, if the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Time from sending the message to the first text of the answer, if the reply was a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<f64>,
    /// Whether the agent does not report its tool calls. The list of calls is then empty, even if tools were called.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub calls_unreported: bool,
    /// The verdict of each assertion of this turn that was judged, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<AssertionVerdict>,
    /// How the expected calls of `calls` correspond to the calls of this turn, if that assertion failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallAlignment>,
}

/// The outcome of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnOutcome {
    /// Answered, and no assertion failed.
    Passed,
    Failed,
    /// There is no answer or no verdict.
    Errored,
    /// The conversation ended before this turn.
    #[default]
    NotRun,
}

impl From<Outcome> for TurnOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Passed => TurnOutcome::Passed,
            Outcome::Failed => TurnOutcome::Failed,
            Outcome::Errored => TurnOutcome::Errored,
        }
    }
}

impl TurnDetails {
    /// Creates a turn that was not run.
    pub fn not_run(message: &str) -> Self {
        Self { message: message.to_owned(), ..Self::default() }
    }

    /// Creates a turn without an answer.
    pub fn unanswered(message: &str, outcome: Outcome, error: &str, duration_ms: u64) -> Self {
        Self { outcome: outcome.into(), error: Some(error.to_owned()), duration_ms, ..Self::not_run(message) }
    }

    /// Creates a turn that was answered.
    pub fn answered(message: &str, trace: &Trace, duration_ms: u64) -> Self {
        Self {
            outcome: TurnOutcome::Passed,
            duration_ms,
            response: Some(trace.response.clone()),
            tool_calls: trace.tool_calls.clone(),
            steps: trace.steps,
            usage: trace.usage.clone(),
            stop_reason: trace.stop_reason.clone(),
            first_token_ms: trace.first_token_ms,
            calls_unreported: trace.calls_unreported,
            ..Self::not_run(message)
        }
    }

    /// Adds the verdict on this turn alone.
    #[must_use]
    pub fn with_verdict(self, verdict: &Verdict) -> Self {
        let first_failure = verdict.failures.first().map(|failure| &failure.message);
        let error = verdict.error.as_ref().map(|error| &error.message).or(first_failure).cloned();
        let (assertions, calls) = (verdict.assertions.clone(), verdict.calls.clone());
        Self { outcome: verdict.outcome().into(), error, assertions, calls, ..self }
    }

    /// Whether the turn passed, so that the conversation goes on.
    pub fn passed(&self) -> bool {
        self.outcome == TurnOutcome::Passed
    }
}
