//! The actions of an agent in a case, as written to results.

use std::ops::Not;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::assertion::{AssertionOutcome, AssertionVerdict, CallAlignment, Field, NearMiss};
use crate::document::{AnswerDocument, RunOrigin};
use crate::judgement::EvalResult;
use crate::security::SecurityDetails;
use crate::simulated_user::SimulatedUserDetails;
use crate::state::StateChanges;
use crate::trace::{ToolCall, Trace, Usage};
use crate::turn_details::TurnDetails;

/// The actions of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseDetails {
    pub tools_called: Vec<String>,
    /// In characters.
    pub response_length: usize,
    /// Tokens without a value, without duplicates.
    pub skipped_tokens: Vec<String>,
    pub response: String,
    pub tool_calls: Vec<ToolCall>,
    /// Number of model calls, if the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    // On the heap, since a run holds the details of all cases, and most agents report no usage.
    pub usage: Option<Box<Usage>>,
    pub model: Option<String>,
    pub stop_reason: Option<String>,
    /// Time from sending the message to the first text of the answer, if the reply was a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<f64>,
    /// Whether the agent does not report its tool calls. The lists of calls are then empty, even if tools were called.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub calls_unreported: bool,
    /// Standard error of an agent that is a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Why assertions were skipped, other than for missing token values.
    pub warnings: Vec<String>,
    /// Strings that the response contains only with other capitals or typography.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near_misses: Vec<NearMiss>,
    /// The verdict of each assertion that was judged, in order; without --all-failures, judging ends at a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<AssertionVerdict>,
    /// How the expected calls of `calls` correspond to the calls made, if that assertion failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallAlignment>,
    /// What changed in the sources of `stateUnchanged`, if that assertion failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state_changes: Vec<StateChanges>,
    /// Results of the Python eval functions that ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evals: Vec<EvalResult>,
    /// The verdicts on the task and on what must not happen, if the case has injections or `safety`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Box<SecurityDetails>>,
    /// What the simulated user of the case did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_user: Option<Box<SimulatedUserDetails>>,
    /// The turns of a conversation; the other members then describe all of it, with the last response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<TurnDetails>,
}

impl From<Trace> for CaseDetails {
    fn from(mut trace: Trace) -> Self {
        trace.tool_calls.shrink_to_fit();
        Self {
            tools_called: trace.tool_calls.iter().map(|call| call.name.clone()).collect(),
            response_length: trace.response.chars().count(),
            skipped_tokens: Vec::new(),
            response: trace.response,
            tool_calls: trace.tool_calls,
            steps: trace.steps,
            usage: trace.usage.map(Box::new),
            model: trace.model,
            stop_reason: trace.stop_reason,
            first_token_ms: trace.first_token_ms,
            calls_unreported: trace.calls_unreported,
            stderr: trace.stderr,
            warnings: trace.warnings,
            near_misses: Vec::new(),
            assertions: Vec::new(),
            calls: None,
            state_changes: Vec::new(),
            evals: Vec::new(),
            security: None,
            simulated_user: None,
            turns: Vec::new(),
        }
    }
}

impl CaseDetails {
    /// Whether an assertion about tool calls was not judged because the agent does not report its calls.
    pub fn has_unjudged_calls(&self) -> bool {
        let is_unjudged = |assertion: &AssertionVerdict| {
            matches!(assertion.verdict, AssertionOutcome::Skipped | AssertionOutcome::Errored)
                && Field::ALL.into_iter().any(|field| field.is_about_calls() && field.name() == assertion.assertion)
        };
        let in_turns = self.turns.iter().flat_map(|turn| &turn.assertions);
        self.calls_unreported && self.assertions.iter().chain(in_turns).any(is_unjudged)
    }

    /// Returns these details as a trace document with one step, from the message to the final response, or with the
    /// steps of all turns. Latency is left out, since it differs between runs in which the agent does the same.
    pub fn document<'a>(
        &'a self,
        trace_id: &'a str,
        message: &'a str,
        origin: Option<RunOrigin<'a>>,
    ) -> AnswerDocument<'a> {
        AnswerDocument {
            trace_id,
            message,
            response: &self.response,
            tool_calls: &self.tool_calls,
            model: self.model.as_deref(),
            stop_reason: self.stop_reason.as_deref(),
            usage: self.usage.as_deref(),
            turns: &self.turns,
            first_turn: 0,
            origin,
        }
    }
}
