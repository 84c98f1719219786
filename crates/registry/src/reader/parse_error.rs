//! Errors of source files that cannot be parsed.

use karat_json::Position;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParseError {
    pub(crate) position: Option<Position>,
    /// A lower-case fragment.
    pub(crate) message: String,
}

impl ParseError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { position: None, message: message.into() }
    }
}
