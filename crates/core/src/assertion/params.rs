//! Assertions on tool parameters.

use std::ops::ControlFlow;

use super::predicate::Predicate;
use super::tally::{Check, Tally};
use super::{Evidence, Field};
use crate::trace::ToolCall;
use karat_cases::{CallSelector, ParamAssertion};
use karat_json::text::shorten;

/// Maximum length of arguments that are quoted.
pub(super) const MAX_RAW_LENGTH: usize = 60;

pub(super) fn tool_params(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let assertions = evidence.case.expect.tool_params.as_deref().unwrap_or_default();
    for (index, assertion) in assertions.iter().enumerate() {
        let check = check_param(assertion, evidence, tally);
        tally.record_item(Field::ToolParams, index, check)?;
    }
    ControlFlow::Continue(())
}

fn check_param(assertion: &ParamAssertion, evidence: Evidence<'_>, tally: &mut Tally) -> Check {
    let ParamAssertion { tool, param_name, path, .. } = assertion;
    let calls: Vec<&ToolCall> = evidence.trace.tool_calls.iter().filter(|call| call.name == *tool).collect();
    // An assertion on a numbered call requires that call.
    if calls.is_empty() && !matches!(assertion.call, CallSelector::Number(_)) {
        return Check::Skipped;
    }
    let predicate = match Predicate::resolve(assertion, evidence.tokens, tally) {
        Ok(Some(predicate)) => predicate,
        Ok(None) => return Check::Skipped,
        Err(failure) => return Check::Failed(format!("{tool}.{param_name}{path}: {failure}")),
    };
    let test = |call: &&ToolCall| {
        // The parameters are unknown, so not even `notExists` passes.
        if let Some(raw) = &call.raw_params {
            return Err(format!("the arguments are not a JSON object: {}", shorten(raw, MAX_RAW_LENGTH)));
        }
        let actual = call.params.get(param_name).and_then(|value| value.pointer(path));
        if actual.is_none() && assertion.optional { Ok(()) } else { predicate.test(actual) }
    };
    let outcome = match assertion.call {
        CallSelector::First => calls.first().map_or(Ok(()), test),
        CallSelector::Last => calls.last().map_or(Ok(()), test),
        CallSelector::All => calls.iter().try_for_each(test),
        CallSelector::Any => {
            let mut outcomes: Vec<_> = calls.iter().map(test).collect();
            if outcomes.iter().any(Result::is_ok) { Ok(()) } else { outcomes.swap_remove(0) }
        }
        CallSelector::Number(number) => match (calls.get(number), calls.len()) {
            (Some(call), _) => test(call),
            (None, 0) => Err(format!("no call {number}: the tool was not called")),
            (None, 1) => Err(format!("no call {number}: the tool was called once")),
            (None, count) => Err(format!("no call {number}: the tool was called {count} times")),
        },
    };
    let Err(message) = outcome else { return Check::Passed };
    let scope = match assertion.call {
        CallSelector::First => String::new(),
        CallSelector::Last => " (last call)".to_owned(),
        CallSelector::Any => format!(" (any of {} calls)", calls.len()),
        CallSelector::All => format!(" (all of {} calls)", calls.len()),
        CallSelector::Number(number) => format!(" (call {number})"),
    };
    Check::Failed(format!("{tool}.{param_name}{path}{scope}: {message}"))
}
