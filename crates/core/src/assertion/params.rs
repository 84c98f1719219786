//! Assertions on tool parameters.

use std::ops::ControlFlow;

use serde_json::Value;

use super::tally::{Check, Tally};
use super::{Evidence, Field};
use crate::case::{CallSelector, ParamAssertion, ParamCheck};
use crate::token::{Resolved, TokenSources};
use crate::trace::ToolCall;
use karat_json::text::{quoted_list, text_form};
use karat_pattern::Pattern;

pub(super) fn tool_params(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let assertions = evidence.case.expect.tool_params.as_deref().unwrap_or_default();
    for (index, assertion) in assertions.iter().enumerate() {
        let check = check_param(assertion, evidence, tally);
        tally.record_item(Field::ToolParams, index, check)?;
    }
    ControlFlow::Continue(())
}

fn check_param(assertion: &ParamAssertion, evidence: Evidence<'_>, tally: &mut Tally) -> Check {
    let calls: Vec<&ToolCall> = evidence.trace.tool_calls.iter().filter(|call| call.name == assertion.tool).collect();
    let (Some(first), Some(last)) = (calls.first(), calls.last()) else {
        return Check::Skipped;
    };
    let expected = match Expected::resolve(assertion, evidence.tokens, tally) {
        Ok(Some(expected)) => expected,
        Ok(None) => return Check::Skipped,
        Err(failure) => return Check::Failed(failure),
    };
    let test = |call: &ToolCall| test_call(assertion, &expected, call);
    let outcome = match assertion.call {
        CallSelector::First => test(first),
        CallSelector::Last => test(last),
        CallSelector::All => calls.iter().try_for_each(|call| test(call)),
        CallSelector::Any => {
            let mut outcomes: Vec<_> = calls.iter().map(|call| test(call)).collect();
            if outcomes.iter().any(Result::is_ok) { Ok(()) } else { outcomes.swap_remove(0) }
        }
        CallSelector::Number(number) => match calls.get(number) {
            Some(call) => test(call),
            None if calls.len() == 1 => Err(format!("no call {number}: the tool was called once")),
            None => Err(format!("no call {number}: the tool was called {} times", calls.len())),
        },
    };
    match outcome {
        Ok(()) => Check::Held,
        Err(message) => {
            let scope = match assertion.call {
                CallSelector::First => String::new(),
                CallSelector::Last => " (last call)".to_owned(),
                CallSelector::Any => format!(" (any of {} calls)", calls.len()),
                CallSelector::All => format!(" (all of {} calls)", calls.len()),
                CallSelector::Number(number) => format!(" (call {number})"),
            };
            Check::Failed(format!("{}.{}{scope}: {message}", assertion.tool, assertion.param_name))
        }
    }
}

/// The expected value, with its tokens resolved.
enum Expected {
    Presence,
    Text(String),
    List(Vec<String>),
    Pattern(String, Pattern),
}

impl Expected {
    /// Returns `None` if the tokens have no value, so that nothing can be checked.
    fn resolve(assertion: &ParamAssertion, tokens: &TokenSources, tally: &mut Tally) -> Result<Option<Self>, String> {
        let (Some(value), true) = (&assertion.value, assertion.assertion.needs_value()) else {
            return Ok(Some(Expected::Presence));
        };
        if assertion.assertion == ParamCheck::OneOf {
            let list = tokens.resolve_list(value);
            tally.record_unresolved(list.unresolved);
            return Ok((!list.texts.is_empty()).then_some(Expected::List(list.texts)));
        }
        let text = match tokens.resolve_value(value) {
            Resolved::Text(text) => text,
            Resolved::Unresolved(unresolved) => {
                tally.record_unresolved(unresolved);
                return Ok(None);
            }
        };
        if assertion.assertion != ParamCheck::Matches {
            return Ok(Some(Expected::Text(text)));
        }
        match Pattern::compile(&text) {
            Ok(pattern) => Ok(Some(Expected::Pattern(text, pattern))),
            Err(error) => Err(format!(
                "{}.{}: /{text}/ is not a valid regular expression: {error}",
                assertion.tool, assertion.param_name
            )),
        }
    }
}

fn test_call(assertion: &ParamAssertion, expected: &Expected, call: &ToolCall) -> Result<(), String> {
    let actual = call.params.get(&assertion.param_name);
    if actual.is_none() && assertion.optional {
        return Ok(());
    }
    match (assertion.assertion, actual) {
        (ParamCheck::NotExists, None) | (ParamCheck::Exists, Some(_)) => Ok(()),
        (ParamCheck::NotExists, Some(value)) => {
            Err(format!("expected no parameter of this name but got {}", quoted(value)))
        }
        (_, None) => Err(format!("expected {} but the parameter is absent", describe(assertion.assertion, expected))),
        (check, Some(value)) => {
            let text = text_form(value);
            let held = match expected {
                Expected::Presence => true,
                Expected::Text(expected) if check == ParamCheck::Contains => text.contains(expected.as_str()),
                Expected::Text(expected) => text == *expected,
                Expected::List(expected) => expected.iter().any(|item| text == *item),
                Expected::Pattern(_, pattern) => pattern.is_match(&text).map_err(|error| error.to_string())?,
            };
            if held {
                return Ok(());
            }
            Err(format!("expected {} but got {}", describe(check, expected), quoted(value)))
        }
    }
}

fn describe(check: ParamCheck, expected: &Expected) -> String {
    match expected {
        Expected::Presence => "a value".to_owned(),
        Expected::Text(text) if check == ParamCheck::Contains => format!("a value that contains '{text}'"),
        Expected::Text(text) => format!("'{text}'"),
        Expected::List(texts) => format!("one of {}", quoted_list(texts)),
        Expected::Pattern(text, _) => format!("a value that matches /{text}/"),
    }
}

fn quoted(value: &Value) -> String {
    format!("'{}'", text_form(value))
}
