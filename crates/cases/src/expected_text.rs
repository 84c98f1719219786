//! Collects the expected texts of a case with their locations.

use serde_json::Value;

use super::{Expectation, ExpectedCall, ExpectedCalls, JsonPredicate, ParamCheck, SimilarTo};
use karat_json::Path;

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
        self.visit_texts(&mut |kind, path, text| found.push(ExpectedText { kind, pointer: path.to_string(), text }));
        found
    }

    /// Visits all expected texts in field order, with their paths in the case.
    pub fn visit_texts<'e>(&'e self, visit: &mut dyn FnMut(TextKind, &Path<'_>, &'e str)) {
        let path = &Path::Root.key("expect");
        for (index, assertion) in self.tool_params.iter().flatten().enumerate() {
            let kind = kind_of(assertion.assertion, TextKind::Argument);
            if let Some(value) = &assertion.value {
                visit_value(value, kind, &path.key("toolParams").index(index).key("value"), visit);
            }
        }
        if let Some(calls) = &self.calls {
            visit_calls(calls, &path.key("calls"), visit);
        }
        visit_list(self.response_contains.as_deref(), TextKind::Contained, &path.key("responseContains"), visit);
        for (index, group) in self.response_contains_any.iter().flatten().enumerate() {
            visit_list(Some(group), TextKind::Synonym, &path.key("responseContainsAny").index(index), visit);
        }
        visit_list(self.response_not_contains.as_deref(), TextKind::Forbidden, &path.key("responseNotContains"), visit);
        visit_list(self.response_matches.as_deref(), TextKind::Pattern, &path.key("responseMatches"), visit);
        visit_list(self.response_not_matches.as_deref(), TextKind::Pattern, &path.key("responseNotMatches"), visit);
        let whole = [
            ("responseEquals", &self.response_equals),
            ("responseStartsWith", &self.response_starts_with),
            ("responseEndsWith", &self.response_ends_with),
        ];
        for (key, text) in whole {
            if let Some(text) = text {
                visit(TextKind::Compared, &path.key(key), text);
            }
        }
        let predicates = self.response_json.as_deref().unwrap_or_default();
        visit_predicates(predicates, TextKind::Compared, &path.key("responseJson"), visit);
        for (index, similar) in self.response_similar.iter().flatten().enumerate() {
            let path = path.key("responseSimilar");
            let path = path.index(index);
            let to = path.key("to");
            for (at, text) in similar.to.texts().iter().enumerate() {
                let is_list = matches!(similar.to, SimilarTo::Any(_));
                visit(TextKind::Compared, &if is_list { to.index(at) } else { to }, text);
            }
        }
        for (index, entry) in self.evals.iter().flatten().enumerate() {
            let path = path.key("evals");
            let path = path.index(index);
            for (key, value) in &entry.params {
                visit_value(value, TextKind::Parameter, &path.key("params").key(key), visit);
            }
            if let Some(reference) = &entry.reference {
                visit_value(reference, TextKind::Parameter, &path.key("reference"), visit);
            }
        }
        for (index, predicate) in self.state.iter().flatten().enumerate() {
            if let Some(value) = &predicate.value {
                let kind = kind_of(predicate.assertion, TextKind::State);
                visit_value(value, kind, &path.key("state").index(index).key("value"), visit);
            }
        }
    }
}

type Visit<'v, 'e> = dyn FnMut(TextKind, &Path<'_>, &'e str) + 'v;

fn kind_of(check: ParamCheck, kind: TextKind) -> TextKind {
    if check == ParamCheck::Matches { TextKind::Pattern } else { kind }
}

fn visit_list<'e>(texts: Option<&'e [String]>, kind: TextKind, path: &Path<'_>, visit: &mut Visit<'_, 'e>) {
    for (index, text) in texts.unwrap_or_default().iter().enumerate() {
        visit(kind, &path.index(index), text);
    }
}

fn visit_calls<'e>(calls: &'e ExpectedCalls, path: &Path<'_>, visit: &mut Visit<'_, 'e>) {
    visit_entries(calls.list.as_deref(), TextKind::Argument, &path.key("list"), visit);
    for (index, list) in calls.any_of.iter().flatten().enumerate() {
        visit_entries(Some(list), TextKind::Argument, &path.key("anyOf").index(index), visit);
    }
    visit_entries(calls.forbidden.as_deref(), TextKind::Forbidden, &path.key("forbidden"), visit);
}

fn visit_entries<'e>(entries: Option<&'e [ExpectedCall]>, kind: TextKind, path: &Path<'_>, visit: &mut Visit<'_, 'e>) {
    for (index, entry) in entries.unwrap_or_default().iter().enumerate() {
        let path = &path.index(index);
        for (key, value) in entry.params.iter().flatten() {
            visit_value(value, kind, &path.key("params").key(key), visit);
        }
        visit_predicates(&entry.conditions, kind, &path.key("where"), visit);
        visit_predicates(&entry.result, kind, &path.key("result"), visit);
    }
}

fn visit_predicates<'e>(predicates: &'e [JsonPredicate], kind: TextKind, path: &Path<'_>, visit: &mut Visit<'_, 'e>) {
    for (index, predicate) in predicates.iter().enumerate() {
        if let Some(value) = &predicate.value {
            visit_value(value, kind_of(predicate.assertion, kind), &path.index(index).key("value"), visit);
        }
    }
}

/// Visits the strings at every level of an expected value.
fn visit_value<'e>(value: &'e Value, kind: TextKind, path: &Path<'_>, visit: &mut Visit<'_, 'e>) {
    match value {
        Value::String(text) => visit(kind, path, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                visit_value(item, kind, &path.index(index), visit);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                visit_value(item, kind, &path.key(key), visit);
            }
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}
