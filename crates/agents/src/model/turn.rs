//! What a model said in one turn, whichever wire format it came in.

use karat_core::trace::Usage;
use serde_json::{Map, Value};

/// A model's turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    pub(super) text: String,
    /// In the model's order.
    pub(super) calls: Vec<Call>,
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<String>,
    /// The model's message as it goes back to it.
    pub(super) message: Value,
    /// Why the answer is not whole, if it is not.
    pub(super) cut_off: Option<String>,
}

impl Turn {
    /// Returns what the model said in words, or in place of a call's arguments.
    pub(super) fn said(self) -> String {
        let unreadable = self.calls.into_iter().find_map(|call| match call.arguments {
            Arguments::Unreadable(text) => Some(text),
            Arguments::Object(_) => None,
        });
        unreadable.unwrap_or(self.text)
    }
}

/// A call that the model wants made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Arguments,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Arguments {
    Object(Map<String, Value>),
    /// What the model wrote is no JSON object.
    Unreadable(String),
}

impl Arguments {
    /// Reads arguments that come as text.
    pub(super) fn parse(text: &str) -> Self {
        // Some servers send nothing for a tool without parameters.
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Self::Object(map),
            _ => Self::Unreadable(text.to_owned()),
        }
    }
}

/// What a call is answered with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallResult {
    pub(super) id: String,
    /// What the model reads.
    pub(super) text: String,
    pub(super) failed: bool,
}

/// Reads a count of tokens.
pub(super) fn tokens(usage: &Value, name: &str) -> Option<u64> {
    usage.get(name).and_then(Value::as_u64)
}
