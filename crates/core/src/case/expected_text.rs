//! Collects the expected texts of a case with their locations.

use serde_json::Value;

use super::{Expectation, ParamCheck};
use karat_json::pointer_key;

/// An expected text and its location in the case.
pub(crate) struct ExpectedText<'e> {
    pub(crate) kind: TextKind,
    pub(crate) pointer: String,
    pub(crate) text: &'e str,
}

/// The role of an expected text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// Must be part of the response.
    Contained,
    /// One of a group of alternatives, of which one must be part of the response.
    Synonym,
    /// Must not be part of the response.
    Forbidden,
    Pattern,
    /// Compared with an argument.
    Argument,
}

impl Expectation {
    /// Lists all expected texts in field order.
    pub(crate) fn texts(&self) -> Vec<ExpectedText<'_>> {
        let mut found = Vec::new();
        for (index, assertion) in self.tool_params.iter().flatten().enumerate() {
            let is_pattern = assertion.assertion == ParamCheck::Matches;
            let kind = if is_pattern { TextKind::Pattern } else { TextKind::Argument };
            if let Some(value) = &assertion.value {
                collect(value, kind, format!("/expect/toolParams/{index}/value"), &mut found);
            }
        }
        let mut lists = vec![(TextKind::Contained, "responseContains".to_owned(), self.response_contains.as_ref())];
        for (index, group) in self.response_contains_any.iter().flatten().enumerate() {
            lists.push((TextKind::Synonym, format!("responseContainsAny/{index}"), Some(group)));
        }
        lists.push((TextKind::Forbidden, "responseNotContains".to_owned(), self.response_not_contains.as_ref()));
        lists.push((TextKind::Pattern, "responseMatches".to_owned(), self.response_matches.as_ref()));
        for (kind, list, texts) in lists {
            let texts = texts.into_iter().flatten().enumerate();
            found.extend(texts.map(|(index, text)| ExpectedText {
                kind,
                pointer: format!("/expect/{list}/{index}"),
                text,
            }));
        }
        found
    }
}

/// Adds the strings at every level of an expected argument.
fn collect<'e>(value: &'e Value, kind: TextKind, pointer: String, found: &mut Vec<ExpectedText<'e>>) {
    match value {
        Value::String(text) => found.push(ExpectedText { kind, pointer, text }),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, kind, format!("{pointer}/{index}"), found);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                collect(item, kind, format!("{pointer}/{}", pointer_key(key)), found);
            }
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}
