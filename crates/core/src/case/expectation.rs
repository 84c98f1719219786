//! What a case expects of the answer.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Stands in `toolsAcceptable` for "no tool is called".
pub const NO_TOOL: &str = "__none__";

/// What must be true of the answer. Fields are judged in the order in which they stand here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::expectation)]
pub struct Expectation {
    /// The tools that must be called, compared as `toolsCalledMatch` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_called: Option<Vec<String>>,
    /// How `toolsCalled` is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_called_match: Option<ToolsCalledMatch>,
    /// Sets of tools, any of which is right; `["__none__"]` means that no tool is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tools_acceptable: Option<Vec<Vec<String>>>,
    /// Tools that must not be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_not_called: Option<Vec<String>>,
    /// What must be true of the arguments of the calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_params: Option<Vec<ParamAssertion>>,
    /// No tool call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_tool_errors: Option<bool>,
    /// The response holds more than white space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_non_empty: Option<bool>,
    /// Texts that all must stand in the response; case counts; `{{seed:…}}` and `{{snapshot:…}}` resolve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_contains: Option<Vec<String>>,
    /// Groups of synonyms: at least one text of each group must stand in the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_contains_any: Option<Vec<Vec<String>>>,
    /// Texts none of which may stand in the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_not_contains: Option<Vec<String>>,
    /// ECMAScript regular expressions that all must match somewhere in the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_matches: Option<Vec<String>>,
    /// The longest time from sending the message to the whole answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_latency_ms: Option<f64>,
    /// The most tokens that the response may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// Pairs of tools: the first call of the left one comes before the first call of the right one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_order: Option<Vec<(String, String)>>,
    /// The fewest tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tool_calls: Option<u64>,
    /// The most tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u64>,
    /// The arguments of each call fit the tool's JSON Schema in the registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_args_valid: Option<bool>,
    /// The response is JSON that fits this JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_json_schema: Option<Map<String, Value>>,
    /// The fewest characters of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// The most characters of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// The most that the answer may cost, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_cost_usd: Option<f64>,
    /// Every number in the response occurs in a tool result, a parameter or the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers_grounded: Option<bool>,
    /// Python eval functions that all must pass this case's trace, each by its full name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(inner(regex(pattern = r"^eval_[\p{Alphabetic}\p{N}_]+$")), extend("uniqueItems" = true))]
    pub evals: Option<Vec<String>>,
}

impl Expectation {
    /// Tells whether judging can take a while: it runs regular expressions or eval functions.
    pub fn takes_time(&self) -> bool {
        let matches = |assertion: &ParamAssertion| assertion.assertion == ParamCheck::Matches;
        self.response_matches.is_some()
            || self.response_json_schema.is_some()
            || self.tool_args_valid == Some(true)
            || self.tool_params.iter().flatten().any(matches)
            || self.evals.as_ref().is_some_and(|names| !names.is_empty())
    }
}

/// How `toolsCalled` is compared with the calls made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolsCalledMatch {
    /// The same tools in the same order, no more and no fewer.
    #[default]
    Exact,
    /// The same tools as often, in any order.
    AnyOrder,
    /// These tools in this order, others between them allowed.
    InOrder,
    /// At least these tools as often, in any order.
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

/// What must be true of one argument of a tool's calls.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::param_assertion)]
pub struct ParamAssertion {
    pub tool: String,
    pub param_name: String,
    pub assertion: ParamCheck,
    /// What the argument is compared with; an array for `oneOf`, a pattern for `matches`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Which of the tool's calls is meant; the first if not given.
    #[serde(default, skip_serializing_if = "CallSelector::is_first")]
    pub call: CallSelector,
    /// An absent argument passes; one that is there is checked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// How an argument is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ParamCheck {
    Equals,
    Contains,
    OneOf,
    Exists,
    NotExists,
    Matches,
}

impl ParamCheck {
    pub const NAMES: [&'static str; 6] = ["equals", "contains", "oneOf", "exists", "notExists", "matches"];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "equals" => Some(Self::Equals),
            "contains" => Some(Self::Contains),
            "oneOf" => Some(Self::OneOf),
            "exists" => Some(Self::Exists),
            "notExists" => Some(Self::NotExists),
            "matches" => Some(Self::Matches),
            _ => None,
        }
    }

    pub fn needs_value(self) -> bool {
        !matches!(self, Self::Exists | Self::NotExists)
    }
}

/// Which of a tool's calls an assertion is about.
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
    /// The call with this number, from 0.
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
