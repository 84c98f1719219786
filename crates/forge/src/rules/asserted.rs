//! The texts of an expectation that are compared with something.

use karat_core::case::{Expectation, ParamCheck};
use karat_core::token::tokens;
use serde_json::Value;

/// A text of an expectation, and where it stands.
pub(super) struct Asserted<'e> {
    pub(super) kind: Kind,
    pub(super) pointer: String,
    pub(super) text: &'e str,
}

/// How a text is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Must stand in the response.
    Wanted,
    /// One of several, of which one must stand in the response.
    Synonym,
    /// Must not stand in the response.
    Forbidden,
    /// A pattern, in which tokens have no value.
    Pattern,
    /// What an argument is compared with.
    Argument,
}

/// Lists all of them, in the order of the fields.
pub(super) fn asserted(expect: &Expectation) -> Vec<Asserted<'_>> {
    let mut found = Vec::new();
    for (index, assertion) in expect.tool_params.iter().flatten().enumerate() {
        let pointer = format!("/expect/toolParams/{index}/value");
        let kind = if assertion.assertion == ParamCheck::Matches { Kind::Pattern } else { Kind::Argument };
        match &assertion.value {
            Some(Value::String(text)) => found.push(Asserted { kind, pointer, text }),
            Some(Value::Array(items)) => {
                let texts = items.iter().enumerate().filter_map(|(place, item)| Some((place, item.as_str()?)));
                found.extend(texts.map(|(place, text)| Asserted { kind, pointer: format!("{pointer}/{place}"), text }));
            }
            _ => {}
        }
    }
    take(&mut found, Kind::Wanted, "/expect/responseContains", expect.response_contains.as_deref());
    for (index, group) in expect.response_contains_any.iter().flatten().enumerate() {
        take(&mut found, Kind::Synonym, &format!("/expect/responseContainsAny/{index}"), Some(group));
    }
    take(&mut found, Kind::Forbidden, "/expect/responseNotContains", expect.response_not_contains.as_deref());
    take(&mut found, Kind::Pattern, "/expect/responseMatches", expect.response_matches.as_deref());
    found
}

fn take<'e>(found: &mut Vec<Asserted<'e>>, kind: Kind, list: &str, texts: Option<&'e [String]>) {
    let texts = texts.unwrap_or_default().iter().enumerate();
    found.extend(texts.map(|(index, text)| Asserted { kind, pointer: format!("{list}/{index}"), text }));
}

/// Returns a text with a space in place of each token.
pub(super) fn without_tokens(text: &str) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut end = 0;
    for token in tokens(text) {
        rest.push_str(&text[end..token.start]);
        rest.push(' ');
        end = token.start + token.text.len();
    }
    rest.push_str(&text[end..]);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_taken_out() {
        assert_eq!(without_tokens("a{{seed:b}}c {{{snapshot:d}}} {{e}}"), "a c { } {{e}}");
        assert_eq!(without_tokens("é"), "é");
    }
}
