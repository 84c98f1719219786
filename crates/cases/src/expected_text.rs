//! Collects the expected texts of a case with their locations.

use serde_json::Value;

use super::{Expectation, ExpectedCalls, JsonPredicate, ParamCheck, SimilarTo};
use karat_json::pointer_key;

/// An expected text and its location in the case.
pub struct ExpectedText<'e> {
    pub kind: TextKind,
    pub pointer: String,
    pub text: &'e str,
}

/// The role of an expected text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Must be part of the response.
    Contained,
    /// One of a group of alternatives, of which one must be part of the response.
    Synonym,
    /// Must not be part of the response, or of a call.
    Forbidden,
    Pattern,
    /// Compared with an argument or a result.
    Argument,
    /// Compared with the response, its ends, or a value in it.
    Compared,
    /// Passed to an eval function.
    Parameter,
    /// Compared with a state source.
    State,
}

impl Expectation {
    /// Lists all expected texts in field order.
    pub fn texts(&self) -> Vec<ExpectedText<'_>> {
        let mut found = Vec::new();
        for (index, assertion) in self.tool_params.iter().flatten().enumerate() {
            let kind = kind_of(assertion.assertion, TextKind::Argument);
            if let Some(value) = &assertion.value {
                collect(value, kind, format!("/expect/toolParams/{index}/value"), &mut found);
            }
        }
        for (below, entry, is_forbidden) in self.calls.iter().flat_map(ExpectedCalls::entries) {
            let kind = if is_forbidden { TextKind::Forbidden } else { TextKind::Argument };
            let pointer = format!("/expect/calls{below}");
            for (key, value) in entry.params.iter().flatten() {
                collect(value, kind, format!("{pointer}/params/{}", pointer_key(key)), &mut found);
            }
            collect_predicates(&entry.conditions, kind, &format!("{pointer}/where"), &mut found);
            collect_predicates(&entry.result, kind, &format!("{pointer}/result"), &mut found);
        }
        let mut lists = vec![(TextKind::Contained, "responseContains".to_owned(), self.response_contains.as_ref())];
        for (index, group) in self.response_contains_any.iter().flatten().enumerate() {
            lists.push((TextKind::Synonym, format!("responseContainsAny/{index}"), Some(group)));
        }
        lists.push((TextKind::Forbidden, "responseNotContains".to_owned(), self.response_not_contains.as_ref()));
        lists.push((TextKind::Pattern, "responseMatches".to_owned(), self.response_matches.as_ref()));
        lists.push((TextKind::Pattern, "responseNotMatches".to_owned(), self.response_not_matches.as_ref()));
        for (kind, list, texts) in lists {
            let texts = texts.into_iter().flatten().enumerate();
            found.extend(texts.map(|(index, text)| ExpectedText {
                kind,
                pointer: format!("/expect/{list}/{index}"),
                text,
            }));
        }
        let whole = [
            ("responseEquals", &self.response_equals),
            ("responseStartsWith", &self.response_starts_with),
            ("responseEndsWith", &self.response_ends_with),
        ];
        for (key, text) in whole {
            let kind = TextKind::Compared;
            found.extend(text.iter().map(|text| ExpectedText { kind, pointer: format!("/expect/{key}"), text }));
        }
        let predicates = self.response_json.as_deref().unwrap_or_default();
        collect_predicates(predicates, TextKind::Compared, "/expect/responseJson", &mut found);
        for (index, similar) in self.response_similar.iter().flatten().enumerate() {
            for (at, text) in similar.to.texts().iter().enumerate() {
                let at = if matches!(similar.to, SimilarTo::Any(_)) { format!("/{at}") } else { String::new() };
                let pointer = format!("/expect/responseSimilar/{index}/to{at}");
                found.push(ExpectedText { kind: TextKind::Compared, pointer, text });
            }
        }
        for (index, entry) in self.evals.iter().flatten().enumerate() {
            for (key, value) in &entry.params {
                let pointer = format!("/expect/evals/{index}/params/{}", pointer_key(key));
                collect(value, TextKind::Parameter, pointer, &mut found);
            }
            if let Some(reference) = &entry.reference {
                collect(reference, TextKind::Parameter, format!("/expect/evals/{index}/reference"), &mut found);
            }
        }
        for (index, predicate) in self.state.iter().flatten().enumerate() {
            if let Some(value) = &predicate.value {
                let kind = kind_of(predicate.assertion, TextKind::State);
                collect(value, kind, format!("/expect/state/{index}/value"), &mut found);
            }
        }
        found
    }
}

fn kind_of(check: ParamCheck, kind: TextKind) -> TextKind {
    if check == ParamCheck::Matches { TextKind::Pattern } else { kind }
}

fn collect_predicates<'e>(
    predicates: &'e [JsonPredicate],
    kind: TextKind,
    pointer: &str,
    found: &mut Vec<ExpectedText<'e>>,
) {
    for (index, predicate) in predicates.iter().enumerate() {
        if let Some(value) = &predicate.value {
            collect(value, kind_of(predicate.assertion, kind), format!("{pointer}/{index}/value"), found);
        }
    }
}

/// Adds the strings at every level of an expected value.
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
