//! Assertions about tool calls of an agent that does not report them.

use std::ops::ControlFlow;

use super::tally::{Check, Tally};
use super::{Evidence, Field, Mode};
use crate::outcome::Cause;
use karat_cases::ExpectedCalls;

/// Skips all checks of a field about calls. If judging is strict, there is no verdict.
pub(super) fn skip(field: Field, evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let checks = count_checks(field, evidence);
    if checks > 0 && tally.is_strict() {
        let error = "the agent does not report its tool calls, and --strict does not skip assertions about them";
        tally.record_error(field, Cause::UnreportedCalls, error)?;
    }
    (0..checks).try_for_each(|index| tally.record_item(field, index, Check::Skipped))
}

/// Returns the number of checks of a field about calls.
fn count_checks(field: Field, evidence: Evidence<'_>) -> usize {
    let expect = &evidence.case.expect;
    match field {
        Field::ToolsCalled => usize::from(expect.tools_called.is_some()),
        Field::ToolsAcceptable => usize::from(expect.tools_acceptable.is_some()),
        Field::ToolsNotCalled => expect.tools_not_called.as_ref().map_or(0, Vec::len),
        Field::ToolParams => expect.tool_params.as_ref().map_or(0, Vec::len),
        Field::Calls => expect.calls.as_ref().map_or(0, ExpectedCalls::count_checks),
        // Without tool results, there is nothing to check at all.
        Field::NoToolErrors => usize::from(expect.no_tool_errors == Some(true) && evidence.mode != Mode::RoutingOnly),
        Field::ToolOrder => expect.tool_order.as_ref().map_or(0, Vec::len),
        Field::MinToolCalls => usize::from(expect.min_tool_calls.is_some()),
        Field::MaxToolCalls => usize::from(expect.max_tool_calls.is_some()),
        Field::ToolArgsValid => usize::from(expect.tool_args_valid == Some(true)),
        Field::NumbersGrounded => usize::from(expect.numbers_grounded == Some(true)),
        _ => 0,
    }
}
