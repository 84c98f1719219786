//! Assertions on tool calls: errors, order, number.

use std::ops::ControlFlow;

use super::tally::{Check, Tally};
use super::{Evidence, Field, Mode};
use crate::trace::ToolCall;
use karat_json::text::{counted, quoted_list};

pub(super) fn no_tool_errors(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    if evidence.case.expect.no_tool_errors != Some(true) {
        return ControlFlow::Continue(());
    }
    let check = match evidence.mode {
        Mode::Endpoint => check_success(evidence, tally),
        Mode::Stubbed => check_stubs(evidence),
        // No tool ran, so none could fail.
        Mode::RoutingOnly => return ControlFlow::Continue(()),
    };
    tally.record(Field::NoToolErrors, check)
}

fn check_success(evidence: Evidence<'_>, tally: &mut Tally) -> Check {
    let calls = &evidence.trace.tool_calls;
    if let Some(failed) = calls.iter().find(|call| call.success == Some(false)) {
        let reason = failed.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
        return Check::Failed(format!("expected every tool call to succeed but '{}' failed{reason}", failed.name));
    }
    if let Some(unreported) = calls.iter().find(|call| call.success.is_none()) {
        tally.warn(format!("noToolErrors: the agent does not report whether '{}' succeeded", unreported.name));
    }
    // Calls without a reported status are ignored; if no call has one, there is nothing to check.
    let is_unreported = !calls.is_empty() && calls.iter().all(|call| call.success.is_none());
    if is_unreported { Check::Skipped } else { Check::Passed }
}

fn check_stubs(evidence: Evidence<'_>) -> Check {
    let stubs = evidence.case.stubs.as_ref();
    let is_unknown = |call: &&ToolCall| {
        // The turns of a conversation can have stubs of their own, so whether a call had one is known only from the call.
        if evidence.case.has_turns() {
            return call.success == Some(false) && call.raw_params.is_none();
        }
        !stubs.is_some_and(|stubs| stubs.contains_key(&call.name))
    };
    let unknown = evidence.trace.tool_calls.iter().find(is_unknown);
    if let Some(call) = unknown {
        return Check::Failed(format!("expected only stubbed tools to be called but '{}' has no stub", call.name));
    }
    // A stub cannot answer a call whose arguments are not JSON.
    match evidence.trace.tool_calls.iter().find(|call| call.raw_params.is_some()) {
        Some(call) => Check::Failed(format!("expected JSON arguments but those of '{}' are not JSON", call.name)),
        None => Check::Passed,
    }
}

pub(super) fn tool_order(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let pairs = evidence.case.expect.tool_order.as_deref().unwrap_or_default();
    let actual = evidence.trace.tool_names();
    let first_call = |tool: &str| actual.iter().position(|name| *name == tool);
    for (index, (before, after)) in pairs.iter().enumerate() {
        let check = match (first_call(before), first_call(after)) {
            (_, None) => Check::Skipped,
            (Some(left), Some(right)) if left < right => Check::Passed,
            _ => Check::Failed(format!(
                "expected '{before}' before '{after}' but the calls were {}",
                quoted_list(&actual)
            )),
        };
        tally.record_item(Field::ToolOrder, index, check)?;
    }
    ControlFlow::Continue(())
}

pub(super) fn min_tool_calls(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(min) = evidence.case.expect.min_tool_calls else {
        return ControlFlow::Continue(());
    };
    let count = evidence.trace.tool_calls.len();
    let check =
        Check::from_bool(count as u64 >= min, || format!("expected at least {} but got {count}", counted(min, "call")));
    tally.record(Field::MinToolCalls, check)
}

pub(super) fn max_tool_calls(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(max) = evidence.case.expect.max_tool_calls else {
        return ControlFlow::Continue(());
    };
    let count = evidence.trace.tool_calls.len();
    let check =
        Check::from_bool(count as u64 <= max, || format!("expected at most {} but got {count}", counted(max, "call")));
    tally.record(Field::MaxToolCalls, check)
}
