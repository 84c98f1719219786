//! The best alignment of expected calls with the calls made, as stored in results.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::trace::ToolCall;
use karat_cases::CallsMatch;

/// How the expected calls of a failed `calls` correspond to the calls made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallAlignment {
    #[serde(rename = "match")]
    pub match_mode: CallsMatch,
    /// The index of the list in `anyOf`: the one that is nearest to the calls made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_of: Option<usize>,
    /// Whether the right calls were made in another order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_order_differs: bool,
    /// Every expected call and every call made, once.
    pub pairs: Vec<CallPair>,
}

/// An expected call with the nearest call made, or one of them without a counterpart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallPair {
    pub state: CallState,
    /// The index of the expected call in its list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<usize>,
    /// The index of the call in `toolCalls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
    /// The expected call as text, with the values of its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<CallDifference>,
}

/// The state of an expected call or of a call made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CallState {
    /// The call is as expected.
    Matched,
    /// The call is the nearest one to the expected call, but differs from it.
    Different,
    /// The expected call was not made.
    Missing,
    /// The call is not expected.
    Unexpected,
    /// The expected call was not made, which the match allows.
    Unused,
    /// The call is not expected, which the match allows.
    Extra,
}

impl CallState {
    /// Whether the state fails the assertion.
    pub fn is_problem(self) -> bool {
        matches!(self, Self::Different | Self::Missing | Self::Unexpected)
    }
}

/// A difference between an expected call and the nearest call made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallDifference {
    pub part: CallPart,
    /// A JSON pointer in the arguments or the result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// The expected value as JSON, or a description of it; absent if no value was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The actual value as JSON; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
}

/// The part of a call that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CallPart {
    Arguments,
    Result,
    Success,
    Step,
}

/// Longer values are described by their size in failure messages.
const MAX_VALUE_CHARS: usize = 160;
/// Maximum number of missing and unexpected calls in a failure message.
const MAX_PROBLEMS: usize = 5;

impl CallAlignment {
    /// Describes the failure; values are JSON, and calls are counted from 1.
    pub(super) fn message(&self, calls: &[ToolCall]) -> String {
        if self.only_order_differs {
            return format!("the right calls in another order: {}", self.order(calls));
        }
        let problems: Vec<String> = self.pairs.iter().filter_map(|pair| self.problem(pair, calls)).collect();
        let more = match problems.len().saturating_sub(MAX_PROBLEMS) {
            0 => String::new(),
            count => format!("; and {count} more"),
        };
        let none = if calls.is_empty() { " (no call was made)" } else { "" };
        let problems = &problems[..problems.len().min(MAX_PROBLEMS)];
        format!("{}{more}{none}", problems.join("; "))
    }

    fn order(&self, calls: &[ToolCall]) -> String {
        let mut pairs: Vec<&CallPair> = self.pairs.iter().filter(|pair| pair.entry.is_some()).collect();
        pairs.sort_by_key(|pair| pair.entry);
        let expected: Vec<String> = pairs.iter().filter_map(|pair| pair.expected.as_deref().map(short)).collect();
        let actual: Vec<String> = calls.iter().map(short_call).collect();
        format!("expected {} but got {}", expected.join(", "), actual.join(", "))
    }

    fn problem(&self, pair: &CallPair, calls: &[ToolCall]) -> Option<String> {
        let call = pair.call.and_then(|index| Some((index + 1, calls.get(index)?)));
        let expected = || pair.expected.as_deref().map(short).unwrap_or_default();
        Some(match (pair.state, call) {
            (CallState::Missing, _) => format!("missing {}", expected()),
            (CallState::Unexpected, Some((number, call))) => format!("unexpected call {number} {}", short_call(call)),
            (CallState::Different, Some((number, call))) if self.match_mode.needs_every_entry() => {
                let name = &call.name;
                format!("missing {}; nearest: call {number} {name} differs {}", expected(), differences(pair))
            }
            (CallState::Different, Some((number, call))) => format!(
                "unexpected call {number} {}; nearest: {} differs {}",
                short_call(call),
                expected(),
                differences(pair)
            ),
            _ => return None,
        })
    }
}

fn differences(pair: &CallPair) -> String {
    let texts: Vec<String> = pair.differences.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

impl std::fmt::Display for CallDifference {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.part {
            CallPart::Arguments if self.pointer.is_empty() => out.write_str("in its arguments: ")?,
            CallPart::Arguments => write!(out, "at {}: ", self.pointer)?,
            CallPart::Result if self.pointer.is_empty() => out.write_str("in its result: ")?,
            CallPart::Result => write!(out, "in its result at {}: ", self.pointer)?,
            CallPart::Success => out.write_str("in its success: ")?,
            CallPart::Step => out.write_str("in its step: ")?,
        }
        let expected = self.expected.as_deref().map_or_else(|| "no value".to_owned(), short_value);
        write!(out, "expected {expected} but ")?;
        match (&self.actual, self.part) {
            (Some(actual), _) => write!(out, "got {}", short_value(actual)),
            (None, CallPart::Success) => out.write_str("it is not reported"),
            (None, _) => out.write_str("it is absent"),
        }
    }
}

/// Returns a call as `name {arguments}`.
pub(super) fn call_text(call: &ToolCall) -> String {
    let mut text = format!("{} ", call.name);
    match &call.raw_params {
        Some(raw) => text.push_str(raw),
        None => text.push_str(&serde_json::to_string(&call.params).unwrap_or_default()),
    }
    text
}

fn short_call(call: &ToolCall) -> String {
    short(&call_text(call))
}

/// Returns a call without its arguments if it is long. They are not truncated, since a partial secret is not redacted.
fn short(text: &str) -> String {
    if text.chars().count() <= MAX_VALUE_CHARS {
        return text.to_owned();
    }
    let mut out = text.split_once(' ').map_or(text, |(tool, _)| tool).to_owned();
    let _ = write!(out, " {{…}} ({} characters)", text.chars().count());
    out
}

/// Returns a value as it is, or its length if it is long.
fn short_value(text: &str) -> String {
    match text.chars().count() {
        count if count > MAX_VALUE_CHARS => format!("a value of {count} characters"),
        _ => text.to_owned(),
    }
}
