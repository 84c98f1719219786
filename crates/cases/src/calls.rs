//! Whole calls: `expect.calls`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::JsonPredicate;

/// The calls that must or must not be made, with their arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::calls)]
pub struct ExpectedCalls {
    /// How the calls made are compared with `list`, or with each list of `anyOf` (default: `exact`).
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub match_mode: Option<CallsMatch>,
    /// The expected calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<ExpectedCall>>,
    /// Alternatives to `list`: one of these lists must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub any_of: Option<Vec<Vec<ExpectedCall>>>,
    /// Calls that must not be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forbidden: Option<Vec<ExpectedCall>>,
}

impl ExpectedCalls {
    pub fn mode(&self) -> CallsMatch {
        self.match_mode.unwrap_or_default()
    }

    /// Returns the alternative lists, of which one must match; none if there are only forbidden calls.
    pub fn alternatives(&self) -> impl Iterator<Item = &[ExpectedCall]> {
        self.list.iter().chain(self.any_of.iter().flatten()).map(Vec::as_slice)
    }

    /// Returns the number of checks: one for the lists, and one per forbidden call.
    pub fn count_checks(&self) -> usize {
        usize::from(self.alternatives().next().is_some()) + self.forbidden.as_ref().map_or(0, Vec::len)
    }

    /// Returns all entries with their JSON pointers below `calls`, and whether they are forbidden.
    pub fn entries(&self) -> impl Iterator<Item = (String, &ExpectedCall, bool)> {
        let list = self.list.iter().map(|list| ("/list".to_owned(), list, false));
        let any_of = self.any_of.iter().flatten().enumerate();
        let any_of = any_of.map(|(index, list)| (format!("/anyOf/{index}"), list, false));
        let forbidden = self.forbidden.iter().map(|list| ("/forbidden".to_owned(), list, true));
        list.chain(any_of).chain(forbidden).flat_map(|(pointer, list, is_forbidden)| {
            list.iter().enumerate().map(move |(index, entry)| (format!("{pointer}/{index}"), entry, is_forbidden))
        })
    }

    /// Returns the tools of the expected calls, without forbidden ones.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.alternatives().flatten().map(|entry| entry.tool.as_str())
    }
}

/// How the calls made are compared with the expected ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CallsMatch {
    /// The same calls in the same order.
    #[default]
    Exact,
    /// The same calls in any order.
    AnyOrder,
    /// The expected calls in this order, possibly with others in between.
    InOrder,
    /// At least the expected calls, in any order.
    Includes,
    /// Only expected calls, none more often than expected.
    Subset,
}

impl CallsMatch {
    pub const NAMES: [&'static str; 5] = ["exact", "anyOrder", "inOrder", "includes", "subset"];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "exact" => Some(Self::Exact),
            "anyOrder" => Some(Self::AnyOrder),
            "inOrder" => Some(Self::InOrder),
            "includes" => Some(Self::Includes),
            "subset" => Some(Self::Subset),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether the order of the calls counts.
    pub fn is_ordered(self) -> bool {
        matches!(self, Self::Exact | Self::InOrder)
    }

    /// Whether each expected call must be made.
    pub fn needs_every_entry(self) -> bool {
        self != Self::Subset
    }

    /// Whether each call made must be an expected one.
    pub fn needs_every_call(self) -> bool {
        !matches!(self, Self::InOrder | Self::Includes)
    }
}

/// An expected call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::expected_call)]
pub struct ExpectedCall {
    pub tool: String,
    /// The arguments. Without it, only `where` checks them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// Whether the call may have more arguments than `params` (default: `equal`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params_match: Option<ParamsMatch>,
    /// JSON pointers to parts of the arguments that are not compared with `params`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Conditions on the arguments.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<JsonPredicate>,
    /// Conditions on the result; a string that contains JSON is read as JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub result: Vec<JsonPredicate>,
    /// Whether the call succeeded. A call whose success is not reported matches neither value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// The model call in which the call was made, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
}

impl ExpectedCall {
    pub fn params_match(&self) -> ParamsMatch {
        self.params_match.unwrap_or_default()
    }
}

/// How the arguments of a call are compared with `params`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ParamsMatch {
    /// The same arguments.
    #[default]
    Equal,
    /// At least these arguments; objects may have more keys at every level. Arrays are compared as a whole.
    Includes,
}

impl ParamsMatch {
    pub const NAMES: [&'static str; 2] = ["equal", "includes"];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "equal" => Some(Self::Equal),
            "includes" => Some(Self::Includes),
            _ => None,
        }
    }
}
