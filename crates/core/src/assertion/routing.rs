//! Assertions on which tools were called.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::tally::{Check, Tally};
use super::{Evidence, Field};
use karat_cases::{NO_TOOL, ToolsCalledMatch};
use karat_json::text::quoted_list;

pub(super) fn tools_called(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let expect = &evidence.case.expect;
    let Some(expected) = &expect.tools_called else {
        return ControlFlow::Continue(());
    };
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    let actual = evidence.trace.tool_names();
    let mode = expect.tools_called_match.unwrap_or_default();
    let passed = match mode {
        ToolsCalledMatch::Exact => actual == expected,
        ToolsCalledMatch::AnyOrder => sorted(&actual) == sorted(&expected),
        ToolsCalledMatch::InOrder => is_subsequence(&expected, &actual),
        ToolsCalledMatch::Includes => includes(&actual, &expected),
    };
    let check = Check::from_bool(passed, || {
        let scope = match mode {
            ToolsCalledMatch::Exact => "",
            ToolsCalledMatch::AnyOrder => " in any order",
            ToolsCalledMatch::InOrder => " in this order",
            ToolsCalledMatch::Includes => " among the calls",
        };
        let same_tools = match mode {
            ToolsCalledMatch::Exact => sorted(&actual) == sorted(&expected),
            ToolsCalledMatch::InOrder => includes(&actual, &expected),
            ToolsCalledMatch::AnyOrder | ToolsCalledMatch::Includes => false,
        };
        let order = if same_tools { " (the right tools in another order)" } else { "" };
        format!("expected {}{scope} but got {}{order}", quoted_list(&expected), quoted_list(&actual))
    });
    tally.record(Field::ToolsCalled, check)
}

pub(super) fn tools_acceptable(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(sets) = &evidence.case.expect.tools_acceptable else {
        return ControlFlow::Continue(());
    };
    let actual: BTreeSet<&str> = evidence.trace.tool_names().into_iter().collect();
    let passed = sets.iter().any(|set| {
        let acceptable: BTreeSet<&str> = set.iter().map(String::as_str).filter(|tool| *tool != NO_TOOL).collect();
        acceptable == actual
    });
    let check = Check::from_bool(passed, || {
        let sets: Vec<String> = sets.iter().map(|set| quoted_list(set)).collect();
        let called = quoted_list(&evidence.trace.tool_names());
        format!("expected one of {} but got {called}", sets.join(" or "))
    });
    tally.record(Field::ToolsAcceptable, check)
}

pub(super) fn tools_not_called(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let forbidden = evidence.case.expect.tools_not_called.as_deref().unwrap_or_default();
    let actual = evidence.trace.tool_names();
    for (index, tool) in forbidden.iter().enumerate() {
        let check = Check::from_bool(!actual.contains(&tool.as_str()), || {
            format!("expected '{tool}' not to be called but the calls were {}", quoted_list(&actual))
        });
        tally.record_item(Field::ToolsNotCalled, index, check)?;
    }
    ControlFlow::Continue(())
}

fn sorted<'t>(tools: &[&'t str]) -> Vec<&'t str> {
    let mut tools = tools.to_vec();
    tools.sort_unstable();
    tools
}

/// Whether `parts` is a subsequence of `whole`.
fn is_subsequence(parts: &[&str], whole: &[&str]) -> bool {
    let mut rest = whole.iter();
    parts.iter().all(|part| rest.any(|tool| tool == part))
}

/// Whether `whole` contains every part at least as often as `parts` does.
fn includes(whole: &[&str], parts: &[&str]) -> bool {
    let mut rest = whole.to_vec();
    parts.iter().all(|part| match rest.iter().position(|tool| tool == part) {
        Some(index) => {
            rest.swap_remove(index);
            true
        }
        None => false,
    })
}
