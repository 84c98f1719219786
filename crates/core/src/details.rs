//! The actions of an agent in a case, as written to results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::assertion::{AssertionVerdict, NearMiss};
use crate::document::{AnswerDocument, RunOrigin};
use crate::judgement::EvalResult;
use crate::trace::{ToolCall, Trace, Usage};

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
    pub usage: Option<Usage>,
    pub model: Option<String>,
    pub stop_reason: Option<String>,
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
    /// Results of the Python eval functions that ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evals: Vec<EvalResult>,
}

impl From<Trace> for CaseDetails {
    fn from(trace: Trace) -> Self {
        Self {
            tools_called: trace.tool_calls.iter().map(|call| call.name.clone()).collect(),
            response_length: trace.response.chars().count(),
            skipped_tokens: Vec::new(),
            response: trace.response,
            tool_calls: trace.tool_calls,
            usage: trace.usage,
            model: trace.model,
            stop_reason: trace.stop_reason,
            stderr: trace.stderr,
            warnings: trace.warnings,
            near_misses: Vec::new(),
            assertions: Vec::new(),
            evals: Vec::new(),
        }
    }
}

impl CaseDetails {
    /// Returns these details as a trace document with one step, from the message to the final response. Latency is left
    /// out, since it differs between runs in which the agent does the same.
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
            usage: self.usage.as_ref(),
            origin,
        }
    }
}
