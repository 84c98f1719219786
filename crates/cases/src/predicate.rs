//! Conditions on JSON values.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Number, Value};

use super::ParamCheck;
use super::expectation::is_false;

/// A condition on a part of a JSON value. Values of different types are not equal: `5` is not `"5"`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::predicate)]
pub struct JsonPredicate {
    /// A JSON pointer to the part to check (default: the whole value). If there is no such part, the value is absent.
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
    /// Whether an absent value passes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
}
