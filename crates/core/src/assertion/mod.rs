//! Judges a trace by the assertions of a case, in the order of `Field::ALL`.
//!
//! There is one file per family. A failed assertion is a result, never an `Err`.

mod budget;
mod call_alignment;
mod call_entry;
mod calls;
mod conversation;
mod evals;
mod field;
mod grounding;
mod json_difference;
mod json_response;
mod marks;
mod matching;
mod params;
mod predicate;
mod response;
mod routing;
mod schema;
mod similar;
mod state;
mod tally;
mod text_match;
mod unreported_calls;
mod vacuity;
mod whole_calls;

use std::ops::ControlFlow;

pub use call_alignment::{CallAlignment, CallDifference, CallPair, CallPart, CallState};
pub use conversation::ConversationVerdict;
pub use evals::{EvalCall, PendingVerdict};
pub use field::Field;
pub(crate) use grounding::{known_numbers, ungrounded_numbers};
pub use marks::response_marks;
pub use tally::{AssertionOutcome, AssertionVerdict, Failure, NearMiss, NoVerdict, Verdict};
pub use vacuity::can_fail;

use crate::conversation::Exchange;
use crate::tokenizer::Tokenizer;
use crate::trace::Trace;
use karat_cases::Case;
use karat_cases::registry::Registry;
use karat_cases::token::TokenSources;
use tally::Tally;

/// How the answer was produced, which affects the meaning of some assertions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The agent ran its own tools.
    Endpoint,
    /// A model was called once; its tool calls were not run.
    RoutingOnly,
    /// A model was called in a loop, with the case's stubs in place of tools.
    Stubbed,
}

/// The input of assertions.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'e> {
    /// A case, or a turn of a conversation as a case of its own.
    pub case: &'e Case,
    pub trace: &'e Trace,
    /// The conversation before the turn that is judged.
    pub earlier: &'e [Exchange],
    pub mode: Mode,
    pub tokens: &'e TokenSources,
    pub registry: Option<&'e Registry>,
    pub tokenizer: Tokenizer,
}

/// How strictly a case is judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strictness {
    /// Continues after the first failure.
    pub all_failures: bool,
    /// Fails a case in which no assertion ran, a forbidden string is a near miss, or a string looks like a token. A
    /// case with assertions about calls that the agent does not report is errored.
    pub strict: bool,
}

/// Judges a trace by the expectations of its case without running eval functions; see [`PendingVerdict`] for those.
pub fn judge(evidence: Evidence<'_>, strictness: Strictness) -> Verdict {
    PendingVerdict::start(evidence, strictness).finish()
}

fn judge_field(field: Field, evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    if evidence.trace.calls_unreported && field.is_about_calls() {
        return unreported_calls::skip(field, evidence, tally);
    }
    match field {
        Field::ToolsCalled => routing::tools_called(evidence, tally),
        Field::ToolsAcceptable => routing::tools_acceptable(evidence, tally),
        Field::ToolsNotCalled => routing::tools_not_called(evidence, tally),
        Field::ToolParams => params::tool_params(evidence, tally),
        Field::Calls => whole_calls::calls(evidence, tally),
        Field::NoToolErrors => calls::no_tool_errors(evidence, tally),
        Field::ResponseNonEmpty => response::non_empty(evidence, tally),
        Field::ResponseContains => response::contains(evidence, tally),
        Field::ResponseContainsAny => response::contains_any(evidence, tally),
        Field::ResponseNotContains => response::not_contains(evidence, tally),
        Field::ResponseMatches => response::matches(evidence, tally),
        Field::MaxLatencyMs => budget::max_latency(evidence, tally),
        Field::MaxTokens => budget::max_tokens(evidence, tally),
        Field::ToolOrder => calls::tool_order(evidence, tally),
        Field::MinToolCalls => calls::min_tool_calls(evidence, tally),
        Field::MaxToolCalls => calls::max_tool_calls(evidence, tally),
        Field::ToolArgsValid => schema::tool_args_valid(evidence, tally),
        Field::ResponseJsonSchema => json_response::response_json_schema(evidence, tally),
        Field::MinLength => budget::min_length(evidence, tally),
        Field::MaxLength => budget::max_length(evidence, tally),
        Field::MaxCostUsd => budget::max_cost(evidence, tally),
        Field::MaxFirstTokenMs => budget::max_first_token(evidence, tally),
        Field::NumbersGrounded => grounding::numbers_grounded(evidence, tally),
        Field::ResponseEquals => response::equals(evidence, tally),
        Field::ResponseStartsWith => response::starts_with(evidence, tally),
        Field::ResponseEndsWith => response::ends_with(evidence, tally),
        Field::ResponseNotMatches => response::not_matches(evidence, tally),
        Field::ResponseJson => json_response::response_json(evidence, tally),
        Field::MinSteps => budget::min_steps(evidence, tally),
        Field::MaxSteps => budget::max_steps(evidence, tally),
        Field::ResponseSimilar => similar::response_similar(evidence, tally),
        // Recorded by `PendingVerdict` after all other fields.
        Field::Evals | Field::State | Field::StateUnchanged => ControlFlow::Continue(()),
    }
}
