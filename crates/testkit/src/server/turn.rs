//! A scripted turn of a model.

use serde_json::{Map, Value, json};

/// The text and calls of one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Turn {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    /// Input and output tokens.
    pub(super) usage: Option<(u64, u64)>,
    /// The answer to a request with a JSON schema.
    pub(super) structured: Option<StructuredAnswer>,
    /// The refusal message.
    pub(super) refusal: Option<String>,
    /// The answer reached the token limit.
    pub(super) is_truncated: bool,
}

/// An answer that follows a schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StructuredAnswer {
    Json(Value),
    /// A string that may be invalid JSON.
    Raw(String),
}

impl StructuredAnswer {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Json(value) => value.to_string(),
            Self::Raw(raw) => raw.clone(),
        }
    }

    /// Returns a raw text as a JSON string.
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Json(value) => value.clone(),
            Self::Raw(raw) => json!(raw),
        }
    }
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Arguments,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Arguments {
    Json(Value),
    /// A string that may be invalid JSON.
    Raw(String),
}

impl Turn {
    /// Panics if a value has the wrong type.
    pub(super) fn read(entry: &Map<String, Value>) -> Self {
        let calls = entry.get("calls").map_or(&[][..], |calls| calls.as_array().expect("'calls' must be a list"));
        Self {
            text: entry.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
            calls: calls.iter().map(Call::read).collect(),
            usage: entry.get("usage").map(|usage| {
                serde_json::from_value(usage.clone()).expect("'usage' must be two numbers: input and output")
            }),
            structured: match entry.get("rawStructured") {
                Some(raw) => {
                    Some(StructuredAnswer::Raw(raw.as_str().expect("'rawStructured' must be a string").to_owned()))
                }
                None => entry.get("structured").cloned().map(StructuredAnswer::Json),
            },
            refusal: entry.get("refusal").map(|text| text.as_str().expect("'refusal' must be a string").to_owned()),
            is_truncated: entry.get("cutOff").and_then(Value::as_bool).unwrap_or_default(),
        }
    }

    /// Returns input and output tokens, with a default.
    pub(super) fn tokens(&self) -> (u64, u64) {
        self.usage.unwrap_or((7, 3))
    }
}

impl Call {
    fn read(call: &Value) -> Self {
        let arguments = match call.get("rawArgs") {
            Some(raw) => Arguments::Raw(raw.as_str().expect("'rawArgs' must be a string").to_owned()),
            None => Arguments::Json(call.get("args").cloned().unwrap_or_else(|| json!({}))),
        };
        Self { name: call["name"].as_str().expect("a call must have a name").to_owned(), arguments }
    }
}
