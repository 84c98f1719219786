//! A model's turn as a script says it.

use serde_json::{Map, Value, json};

/// What a model says and calls in one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Turn {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    /// Tokens in and out.
    pub(super) usage: Option<(u64, u64)>,
    /// The answer to a request for JSON of a given shape.
    pub(super) structured: Option<Structured>,
    /// Why the model will not.
    pub(super) refusal: Option<String>,
    /// The answer ends where it may not be longer.
    pub(super) is_cut_off: bool,
}

/// An answer of a given shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Structured {
    Json(Value),
    /// A text that need not be JSON.
    Raw(String),
}

impl Structured {
    /// Returns it as a text.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Json(value) => value.to_string(),
            Self::Raw(raw) => raw.clone(),
        }
    }

    /// Returns it as JSON, which a text is too.
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Json(value) => value.clone(),
            Self::Raw(raw) => json!(raw),
        }
    }
}

/// A tool that the model calls.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Arguments,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Arguments {
    Json(Value),
    /// A text that need not be JSON.
    Raw(String),
}

impl Turn {
    /// Panics where a value is of the wrong type.
    pub(super) fn read(entry: &Map<String, Value>) -> Self {
        let calls = entry.get("calls").map_or(&[][..], |calls| calls.as_array().expect("'calls' is a list"));
        Self {
            text: entry.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
            calls: calls.iter().map(Call::read).collect(),
            usage: entry
                .get("usage")
                .map(|usage| serde_json::from_value(usage.clone()).expect("'usage' is two numbers: in and out")),
            structured: match entry.get("rawStructured") {
                Some(raw) => Some(Structured::Raw(raw.as_str().expect("'rawStructured' is a text").to_owned())),
                None => entry.get("structured").cloned().map(Structured::Json),
            },
            refusal: entry.get("refusal").map(|text| text.as_str().expect("'refusal' is a text").to_owned()),
            is_cut_off: entry.get("cutOff").and_then(Value::as_bool).unwrap_or_default(),
        }
    }

    /// Returns the tokens in and out, which a turn need not say.
    pub(super) fn tokens(&self) -> (u64, u64) {
        self.usage.unwrap_or((7, 3))
    }
}

impl Call {
    fn read(call: &Value) -> Self {
        let arguments = match call.get("rawArgs") {
            Some(raw) => Arguments::Raw(raw.as_str().expect("'rawArgs' is a text").to_owned()),
            None => Arguments::Json(call.get("args").cloned().unwrap_or_else(|| json!({}))),
        };
        Self { name: call["name"].as_str().expect("a call has a name").to_owned(), arguments }
    }
}
