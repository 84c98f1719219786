//! The expectations of a case.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Number, Value};

use super::{EvalEntry, ExpectedCalls, JsonFrom, JsonPredicate, SimilarResponse, StatePredicate, UnchangedState};

/// Means "no tool is called" in `toolsAcceptable`.
pub const NO_TOOL: &str = "__none__";

/// Assertions on the answer, checked in the order of these fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::expectation)]
pub struct Expectation {
    /// The tools that must be called, compared according to `toolsCalledMatch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_called: Option<Vec<String>>,
    /// How `toolsCalled` is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_called_match: Option<ToolsCalledMatch>,
    /// Acceptable sets of tools; `["__none__"]` means that no tool is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tools_acceptable: Option<Vec<Vec<String>>>,
    /// Tools that must not be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_not_called: Option<Vec<String>>,
    /// Assertions on the arguments of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_params: Option<Vec<ParamAssertion>>,
    /// Whole calls with their arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<ExpectedCalls>,
    /// No tool call may fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_tool_errors: Option<bool>,
    /// The response must contain more than whitespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_non_empty: Option<bool>,
    /// How `responseContains`, `responseContainsAny`, `responseNotContains`, `responseEquals`, `responseStartsWith` and
    /// `responseEndsWith` compare strings (default: `exact`; the first three also warn if only `loose` would match).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_match: Option<TextMatch>,
    /// Strings that the response must contain; `{{seed:…}}` and `{{snapshot:…}}` are resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_contains: Option<Vec<String>>,
    /// Groups of synonyms: the response must contain at least one text of each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_contains_any: Option<Vec<Vec<String>>>,
    /// Strings that the response must not contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_not_contains: Option<Vec<String>>,
    /// ECMAScript regular expressions that must all match somewhere in the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_matches: Option<Vec<String>>,
    /// Maximum time from sending the message to the complete answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_latency_ms: Option<f64>,
    /// Maximum number of tokens of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// Pairs of tools: the first call of the left tool must precede the first call of the right one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_order: Option<Vec<(String, String)>>,
    /// Minimum number of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tool_calls: Option<u64>,
    /// Maximum number of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u64>,
    /// The arguments of each call must match the tool's JSON Schema in the registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_args_valid: Option<bool>,
    /// The response must be JSON that matches this JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_json_schema: Option<Map<String, Value>>,
    /// Minimum number of characters of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Maximum number of characters of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// Maximum cost of the answer, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_cost_usd: Option<f64>,
    /// Maximum time from sending the message to the first text of the answer, in milliseconds; for agents that stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_first_token_ms: Option<f64>,
    /// Every number in the response must occur in a tool result, a parameter or the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers_grounded: Option<bool>,
    /// The response must be this text, apart from whitespace at its ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_equals: Option<String>,
    /// The response must start with this text, apart from whitespace at its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_starts_with: Option<String>,
    /// The response must end with this text, apart from whitespace at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_ends_with: Option<String>,
    /// ECMAScript regular expressions that must not match anywhere in the response; tokens are resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_not_matches: Option<Vec<String>>,
    /// Conditions on the response, read as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_json: Option<Vec<JsonPredicate>>,
    /// Where `responseJson` and `responseJsonSchema` find the JSON (default: `whole`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_json_from: Option<JsonFrom>,
    /// Minimum number of model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_steps: Option<u64>,
    /// Maximum number of model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// Texts that the response must be similar to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_similar: Option<Vec<SimilarResponse>>,
    /// Python eval functions that must all pass this case's trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("uniqueItems" = true))]
    pub evals: Option<Vec<EvalEntry>>,
    /// Conditions on state sources after the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Vec<StatePredicate>>,
    /// State sources in which nothing changes during the case, except what is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_unchanged: Option<Vec<UnchangedState>>,
}

impl Expectation {
    /// Whether judging may be slow, because it runs regular expressions or eval functions, or compares states.
    pub fn is_slow_to_judge(&self) -> bool {
        let matches = |assertion: &ParamAssertion| assertion.assertion == ParamCheck::Matches;
        self.response_matches.is_some()
            || self.response_not_matches.is_some()
            || self.response_json_schema.is_some()
            || self.response_json.is_some()
            || self.response_similar.is_some()
            || self.calls.is_some()
            || self.tool_args_valid == Some(true)
            || self.tool_params.iter().flatten().any(matches)
            || self.evals.as_ref().is_some_and(|names| !names.is_empty())
            || self.state_sources().next().is_some()
    }
}

/// How `toolsCalled` is compared with the calls made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolsCalledMatch {
    /// The same tools in the same order.
    #[default]
    Exact,
    /// The same tools equally often, in any order.
    AnyOrder,
    /// These tools in this order, possibly with others in between.
    InOrder,
    /// At least these tools at least as often, in any order.
    Includes,
}

impl ToolsCalledMatch {
    pub const NAMES: [&'static str; 4] = ["exact", "anyOrder", "inOrder", "includes"];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "exact" => Some(Self::Exact),
            "anyOrder" => Some(Self::AnyOrder),
            "inOrder" => Some(Self::InOrder),
            "includes" => Some(Self::Includes),
            _ => None,
        }
    }
}

/// How expected strings are compared with the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TextMatch {
    /// Character by character.
    Exact,
    /// Ignores case, runs of whitespace, the form of quotation marks and dashes, full-width forms, and how accents are
    /// composed.
    Loose,
}

impl TextMatch {
    pub const NAMES: [&'static str; 2] = ["exact", "loose"];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "exact" => Some(Self::Exact),
            "loose" => Some(Self::Loose),
            _ => None,
        }
    }
}

/// An assertion on one argument of a tool's calls.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::param_assertion)]
pub struct ParamAssertion {
    pub tool: String,
    pub param_name: String,
    /// A JSON pointer to the part of the argument to check (default: the whole argument).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    pub assertion: ParamCheck,
    /// The expected value; an array for `oneOf`, a pattern for `matches`, a number for `closeTo`, `lessThan`, `atMost`,
    /// `greaterThan`, `atLeast` and `hasLength`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The maximum distance from `value` for `closeTo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Number>,
    /// Which of the tool's calls to check (default: the first).
    #[serde(default, skip_serializing_if = "CallSelector::is_first")]
    pub call: CallSelector,
    /// Whether an absent argument passes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "signature required by serde")]
pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}

/// How an argument is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ParamCheck {
    /// Objects and arrays by structure, other values by their text.
    Equals,
    Contains,
    OneOf,
    Exists,
    NotExists,
    Matches,
    NotEquals,
    NotContains,
    /// At most `tolerance` away from `value`.
    CloseTo,
    LessThan,
    AtMost,
    GreaterThan,
    AtLeast,
    /// The number of characters, elements or keys.
    HasLength,
}

impl ParamCheck {
    pub const NAMES: [&'static str; 14] = [
        "equals",
        "contains",
        "oneOf",
        "exists",
        "notExists",
        "matches",
        "notEquals",
        "notContains",
        "closeTo",
        "lessThan",
        "atMost",
        "greaterThan",
        "atLeast",
        "hasLength",
    ];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "equals" => Some(Self::Equals),
            "contains" => Some(Self::Contains),
            "oneOf" => Some(Self::OneOf),
            "exists" => Some(Self::Exists),
            "notExists" => Some(Self::NotExists),
            "matches" => Some(Self::Matches),
            "notEquals" => Some(Self::NotEquals),
            "notContains" => Some(Self::NotContains),
            "closeTo" => Some(Self::CloseTo),
            "lessThan" => Some(Self::LessThan),
            "atMost" => Some(Self::AtMost),
            "greaterThan" => Some(Self::GreaterThan),
            "atLeast" => Some(Self::AtLeast),
            "hasLength" => Some(Self::HasLength),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub fn needs_value(self) -> bool {
        !matches!(self, Self::Exists | Self::NotExists)
    }

    /// Whether it compares numbers.
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::CloseTo | Self::LessThan | Self::AtMost | Self::GreaterThan | Self::AtLeast)
    }
}

/// Which of a tool's calls an assertion applies to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CallSelector {
    #[default]
    First,
    Last,
    /// At least one call.
    Any,
    /// Every call.
    All,
    /// The call with this index, from 0.
    #[serde(untagged)]
    Number(usize),
}

impl CallSelector {
    pub const NAMES: [&'static str; 4] = ["first", "last", "any", "all"];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "first" => Some(Self::First),
            "last" => Some(Self::Last),
            "any" => Some(Self::Any),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    fn is_first(&self) -> bool {
        *self == Self::First
    }
}
