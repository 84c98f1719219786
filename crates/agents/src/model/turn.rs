//! One turn of a model, independent of the wire format.

use karat_core::trace::Usage;
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    pub(super) text: String,
    /// In the model's order.
    pub(super) calls: Vec<Call>,
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<String>,
    /// The model's message as it is sent back in the next request.
    pub(super) message: Value,
    /// Why the answer is incomplete, if it is.
    pub(super) incomplete_reason: Option<String>,
}

impl Turn {
    /// Returns the invalid arguments of a call, if any, and the text otherwise.
    pub(super) fn into_raw_text(self) -> String {
        let invalid = self.calls.into_iter().find_map(|call| match call.arguments {
            Arguments::Invalid(text) => Some(text),
            Arguments::Object(_) => None,
        });
        invalid.unwrap_or(self.text)
    }
}

/// A tool call that the model requests.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Arguments,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Arguments {
    Object(Map<String, Value>),
    /// Not a JSON object.
    Invalid(String),
}

impl Arguments {
    /// Parses arguments that are sent as a JSON string.
    pub(super) fn parse(text: &str) -> Self {
        let json = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Some servers send an empty string for a tool without parameters.
        if json.trim().is_empty() {
            return Self::Object(Map::new());
        }
        // Duplicate keys are invalid, since it is unclear which one counts.
        match karat_json::parse(json) {
            Ok(Value::Object(map)) => Self::Object(map),
            _ => Self::Invalid(text.to_owned()),
        }
    }
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallResult {
    pub(super) id: String,
    /// The text that is sent to the model.
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// Returns a token count by its name.
pub(super) fn token_count(usage: &Value, name: &str) -> Option<u64> {
    usage.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("", Some(json!({})))]
    #[case(" \n", Some(json!({})))]
    #[case("\u{feff}", Some(json!({})))]
    #[case("{\"a\": 1}", Some(json!({"a": 1})))]
    #[case("\u{feff}{\"a\": 1}", Some(json!({"a": 1})))]
    #[case("{\"a\": 1, \"a\": 2}", None)]
    #[case("{\"a\": {\"b\": 1, \"b\": 1}}", None)]
    #[case("[1]", None)]
    #[case("{\"a\": 1", None)]
    fn parses_arguments(#[case] text: &str, #[case] expected: Option<Value>) {
        let expected = match expected {
            Some(Value::Object(map)) => Arguments::Object(map),
            _ => Arguments::Invalid(text.to_owned()),
        };
        assert_eq!(Arguments::parse(text), expected);
    }
}
