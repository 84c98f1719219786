//! The fields of `expect` that assert something.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A field of `expect` that asserts something; `toolsCalledMatch`, `textMatch` and `responseJsonFrom`
/// are only modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Field {
    ToolsCalled,
    ToolsAcceptable,
    ToolsNotCalled,
    ToolParams,
    Calls,
    NoToolErrors,
    ResponseNonEmpty,
    ResponseContains,
    ResponseContainsAny,
    ResponseNotContains,
    ResponseMatches,
    MaxLatencyMs,
    MaxTokens,
    ToolOrder,
    MinToolCalls,
    MaxToolCalls,
    ToolArgsValid,
    ResponseJsonSchema,
    MinLength,
    MaxLength,
    MaxCostUsd,
    MaxFirstTokenMs,
    NumbersGrounded,
    ResponseEquals,
    ResponseStartsWith,
    ResponseEndsWith,
    ResponseNotMatches,
    ResponseJson,
    MinSteps,
    MaxSteps,
    ResponseSimilar,
    Evals,
    State,
    StateUnchanged,
}

impl Field {
    /// All fields in the order in which they are judged.
    pub const ALL: [Field; 34] = [
        Field::ToolsCalled,
        Field::ToolsAcceptable,
        Field::ToolsNotCalled,
        Field::ToolParams,
        Field::Calls,
        Field::NoToolErrors,
        Field::ResponseNonEmpty,
        Field::ResponseContains,
        Field::ResponseContainsAny,
        Field::ResponseNotContains,
        Field::ResponseMatches,
        Field::MaxLatencyMs,
        Field::MaxTokens,
        Field::ToolOrder,
        Field::MinToolCalls,
        Field::MaxToolCalls,
        Field::ToolArgsValid,
        Field::ResponseJsonSchema,
        Field::MinLength,
        Field::MaxLength,
        Field::MaxCostUsd,
        Field::MaxFirstTokenMs,
        Field::NumbersGrounded,
        Field::ResponseEquals,
        Field::ResponseStartsWith,
        Field::ResponseEndsWith,
        Field::ResponseNotMatches,
        Field::ResponseJson,
        Field::MinSteps,
        Field::MaxSteps,
        Field::ResponseSimilar,
        // The most expensive: a case decided before does not run them.
        Field::Evals,
        Field::State,
        Field::StateUnchanged,
    ];

    /// Returns the key in `expect`, which is also the prefix of failure messages.
    pub fn name(self) -> &'static str {
        match self {
            Field::ToolsCalled => "toolsCalled",
            Field::ToolsAcceptable => "toolsAcceptable",
            Field::ToolsNotCalled => "toolsNotCalled",
            Field::ToolParams => "toolParams",
            Field::Calls => "calls",
            Field::NoToolErrors => "noToolErrors",
            Field::ResponseNonEmpty => "responseNonEmpty",
            Field::ResponseContains => "responseContains",
            Field::ResponseContainsAny => "responseContainsAny",
            Field::ResponseNotContains => "responseNotContains",
            Field::ResponseMatches => "responseMatches",
            Field::MaxLatencyMs => "maxLatencyMs",
            Field::MaxTokens => "maxTokens",
            Field::ToolOrder => "toolOrder",
            Field::MinToolCalls => "minToolCalls",
            Field::MaxToolCalls => "maxToolCalls",
            Field::ToolArgsValid => "toolArgsValid",
            Field::ResponseJsonSchema => "responseJsonSchema",
            Field::MinLength => "minLength",
            Field::MaxLength => "maxLength",
            Field::MaxCostUsd => "maxCostUsd",
            Field::MaxFirstTokenMs => "maxFirstTokenMs",
            Field::NumbersGrounded => "numbersGrounded",
            Field::ResponseEquals => "responseEquals",
            Field::ResponseStartsWith => "responseStartsWith",
            Field::ResponseEndsWith => "responseEndsWith",
            Field::ResponseNotMatches => "responseNotMatches",
            Field::ResponseJson => "responseJson",
            Field::MinSteps => "minSteps",
            Field::MaxSteps => "maxSteps",
            Field::ResponseSimilar => "responseSimilar",
            Field::Evals => "evals",
            Field::State => "state",
            Field::StateUnchanged => "stateUnchanged",
        }
    }

    /// Whether the field asserts something about tool calls, so that it needs an agent that reports them.
    pub fn is_about_calls(self) -> bool {
        match self {
            Field::ToolsCalled
            | Field::ToolsAcceptable
            | Field::ToolsNotCalled
            | Field::ToolParams
            | Field::Calls
            | Field::NoToolErrors
            | Field::ToolOrder
            | Field::MinToolCalls
            | Field::MaxToolCalls
            | Field::ToolArgsValid
            | Field::NumbersGrounded => true,
            Field::ResponseNonEmpty
            | Field::ResponseContains
            | Field::ResponseContainsAny
            | Field::ResponseNotContains
            | Field::ResponseMatches
            | Field::MaxLatencyMs
            | Field::MaxTokens
            | Field::ResponseJsonSchema
            | Field::MinLength
            | Field::MaxLength
            | Field::MaxCostUsd
            | Field::MaxFirstTokenMs
            | Field::ResponseEquals
            | Field::ResponseStartsWith
            | Field::ResponseEndsWith
            | Field::ResponseNotMatches
            | Field::ResponseJson
            | Field::MinSteps
            | Field::MaxSteps
            | Field::ResponseSimilar
            | Field::Evals
            | Field::State
            | Field::StateUnchanged => false,
        }
    }

    /// Returns the field's location in a case, as a JSON pointer.
    pub fn pointer(self) -> String {
        format!("/expect/{}", self.name())
    }
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karat_cases::Expectation;

    #[test]
    fn fields_match_the_keys_of_the_schema() {
        let schema = schemars::schema_for!(Expectation);
        let properties = schema.get("properties").and_then(|value| value.as_object()).expect("properties");
        let is_modifier = |key: &&str| ["toolsCalledMatch", "textMatch", "responseJsonFrom"].contains(key);
        let keys: Vec<&str> = properties.keys().map(String::as_str).filter(|key| !is_modifier(key)).collect();
        let fields: Vec<&str> = Field::ALL.into_iter().map(Field::name).collect();
        assert_eq!(fields, keys);
    }
}
