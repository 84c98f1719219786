//! The values of tokens: facts of the seed data and of the snapshot.

use std::collections::HashMap;

use karat_cases::token::TokenSources;
use karat_json::text::text_form;
use serde_json::Value;

/// Maximum number of values collected from a source.
const MAX_VALUES: usize = 20_000;

/// Returns all tokens that a case can use, each with its value.
pub(crate) fn token_values(sources: &TokenSources) -> Vec<(String, &Value)> {
    let mut tokens = Vec::new();
    for (name, source) in [("seed", &sources.seed), ("snapshot", &sources.snapshot)] {
        if let Some(Value::Object(members)) = source {
            let mut leaves = Vec::new();
            walk(members.iter(), "", &mut leaves);
            tokens.extend(leaves.into_iter().map(|(path, value)| (format!("{{{{{name}:{path}}}}}"), value)));
        }
    }
    tokens
}

fn walk<'v>(members: impl Iterator<Item = (&'v String, &'v Value)>, path: &str, leaves: &mut Vec<(String, &'v Value)>) {
    // Token paths cannot express keys with these characters.
    for (key, value) in members.filter(|(key, _)| !key.is_empty() && !key.contains(['.', '[', ']', '}'])) {
        let dot = if path.is_empty() { "" } else { "." };
        visit(value, format!("{path}{dot}{key}"), leaves);
    }
}

fn visit<'v>(value: &'v Value, path: String, leaves: &mut Vec<(String, &'v Value)>) {
    match value {
        Value::Object(members) => walk(members.iter(), &path, leaves),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| visit(item, format!("{path}[{index}]"), leaves));
        }
        Value::String(text) if text.trim().is_empty() => {}
        Value::String(_) | Value::Number(_) if leaves.len() < MAX_VALUES => leaves.push((path, value)),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Number(_) => {}
    }
}

/// Maps values to tokens.
#[derive(Debug, Default)]
pub(crate) struct TokenIndex(HashMap<String, String>);

impl TokenIndex {
    /// Builds the index; the first token of a value wins, seed before snapshot.
    pub(crate) fn new(sources: &TokenSources) -> Self {
        let mut index = Self::default();
        for (token, value) in token_values(sources) {
            index.0.entry(text_form(value).into_owned()).or_insert(token);
        }
        index
    }

    pub(crate) fn token(&self, text: &str) -> Option<&str> {
        self.0.get(text).map(String::as_str)
    }

    /// Returns all values with their tokens, sorted by value.
    pub(crate) fn values(&self) -> Vec<(&str, &str)> {
        let mut values: Vec<(&str, &str)> =
            self.0.iter().map(|(text, token)| (text.as_str(), token.as_str())).collect();
        values.sort_unstable();
        values
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn collects_strings_and_numbers() {
        let seed = json!({"a": {"b": [{"c": "x"}, 2]}, "x.y": "no", "t": true, "n": null, "e": " "});
        let snapshot = json!({"price": 3, "again": "x"});
        let sources = TokenSources { seed: Some(seed), snapshot: Some(snapshot) };
        let tokens: Vec<(String, Value)> =
            token_values(&sources).into_iter().map(|(token, value)| (token, value.clone())).collect();
        let expected = [
            ("{{seed:a.b[0].c}}", json!("x")),
            ("{{seed:a.b[1]}}", json!(2)),
            ("{{snapshot:price}}", json!(3)),
            ("{{snapshot:again}}", json!("x")),
        ];
        assert_eq!(tokens, expected.map(|(token, value)| (token.to_owned(), value)));
        assert_eq!(TokenIndex::new(&sources).token("x"), Some("{{seed:a.b[0].c}}"));
    }
}
