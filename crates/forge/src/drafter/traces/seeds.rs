//! Which values the project's seed manifest has, so that a case names them instead of repeating them.

use std::collections::HashMap;

use karat_core::text::text_form;
use serde_json::Value;

/// The token of each value.
#[derive(Debug, Default)]
pub(super) struct Seeds(HashMap<String, String>);

impl Seeds {
    pub(super) fn of(seed: Option<&Value>) -> Self {
        let mut seeds = Self::default();
        if let Some(Value::Object(map)) = seed {
            map.iter().for_each(|(key, value)| seeds.walk(key, key, value));
        }
        seeds
    }

    /// Returns the token that stands for a value, if one does.
    pub(super) fn token(&self, text: &str) -> Option<&str> {
        self.0.get(text).map(String::as_str)
    }

    fn walk(&mut self, path: &str, key: &str, value: &Value) {
        // A path cannot name such a key.
        if key.is_empty() || key.contains(['.', '[', ']', '}']) {
            return;
        }
        match value {
            // Of several places of one value the first is named.
            Value::String(_) | Value::Number(_) => {
                let token = || format!("{{{{seed:{path}}}}}");
                self.0.entry(text_form(value).into_owned()).or_insert_with(token);
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.walk(&format!("{path}[{at}]"), key, item);
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    self.walk(&format!("{path}.{key}"), key, item);
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use karat_core::token::{Resolved, TokenSources};
    use serde_json::json;

    use super::*;

    #[test]
    fn every_token_resolves_to_its_value() {
        let seed = json!({
            "user": {"name": "Ann", "ids": [7, [8.5]], "a.b": "no path", "": "none", "x}": "neither", "ok": true},
            "again": "Ann",
        });
        let seeds = Seeds::of(Some(&seed));
        let sources = TokenSources { seed: Some(seed), snapshot: None };
        for (text, token) in &seeds.0 {
            assert_eq!(sources.resolve(token), Resolved::Text(text.clone()));
        }
        assert_eq!(seeds.token("8.5"), Some("{{seed:user.ids[1][0]}}"));
        assert_eq!((seeds.token("Ann"), seeds.0.len()), (Some("{{seed:user.name}}"), 3));
        assert_eq!(Seeds::of(None).token("Ann"), None);
    }
}
