//! Keys of recordings: everything that determines an answer.

use std::collections::BTreeMap;

use karat_core::redact::Redactor;
use karat_json::canonical::sorted;
use karat_json::hash::short_hash;
use serde_json::{Map, Value};

use super::file::Text;

/// Names of the parts that this module uses; agents define the others.
pub(super) const AGENT: &str = "agent";
pub(super) const MESSAGE: &str = "message";
pub(super) const USER: &str = "user";
pub(super) const SAMPLE: &str = "sample";
pub(super) const TURN: &str = "turn";

/// Maximum number of characters of the message in a file name.
const MAX_SLUG_LEN: usize = 40;

/// The key of a recorded or new request.
#[derive(Debug)]
pub(super) struct Key {
    /// The parts as written to the file.
    parts: Map<String, Value>,
    /// The name of the part that identifies the request to a person.
    title: &'static str,
    file_name: String,
}

impl Key {
    /// Creates a key. Redacts secrets first, so that a rotated API key does not change it.
    pub(super) fn new(mut parts: Map<String, Value>, title: &'static str, redactor: &Redactor) -> Self {
        redactor.map(&mut parts);
        // Sorted, so that the file does not depend on the order of the registry.
        let parts: Map<String, Value> = parts.into_iter().map(|(name, part)| (name, sorted(&part))).collect();
        let by_name: BTreeMap<&String, &Value> = parts.iter().collect();
        // Not the canonical form: it rounds large numbers, which a model would distinguish.
        let hash = short_hash(&serde_json::to_vec(&by_name).unwrap_or_default());
        let slug = slug(parts.get(title).and_then(Value::as_str).unwrap_or_default());
        let file_name = if slug.is_empty() { format!("{hash}.json") } else { format!("{slug}-{hash}.json") };
        Self { parts: parts.into_iter().map(|(name, part)| (name, split_lines(part))).collect(), title, file_name }
    }

    pub(super) fn parts(&self) -> &Map<String, Value> {
        &self.parts
    }

    pub(super) fn title(&self) -> &'static str {
        self.title
    }

    pub(super) fn file_name(&self) -> &str {
        &self.file_name
    }
}

/// Converts a multi-line string to an array of lines.
fn split_lines(part: Value) -> Value {
    match part {
        Value::String(text) => Text::from(text).into(),
        other => other,
    }
}

fn slug(message: &str) -> String {
    let mut slug = String::with_capacity(MAX_SLUG_LEN);
    for character in message.chars() {
        if slug.len() == MAX_SLUG_LEN {
            break;
        }
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn key(parts: Value) -> Key {
        let Value::Object(parts) = parts else { panic!("expected an object") };
        let redactor = Redactor::default();
        redactor.add("old-key");
        redactor.add("new-key");
        Key::new(parts, MESSAGE, &redactor)
    }

    #[rstest]
    #[case("What's the weather in Paris?", "what-s-the-weather-in-paris")]
    #[case("../../etc/passwd\n", "etc-passwd")]
    #[case("天気は?", "")]
    #[case("a b c d e f g h i j k l m n o p q r s t u v w", "a-b-c-d-e-f-g-h-i-j-k-l-m-n-o-p-q-r-s-t")]
    fn slugs_are_short_and_safe_in_file_names(#[case] message: &str, #[case] expected: &str) {
        assert_eq!(slug(message), expected);
    }

    #[rstest]
    #[case(json!({"agent": "a", "message": "m"}), json!({"message": "m", "agent": "a"}))]
    #[case(json!({"stubs": {"a": {"x": 1, "y": 2}, "b": 1}}), json!({"stubs": {"b": 1, "a": {"y": 2, "x": 1}}}))]
    #[case(json!({"agent": "http://x?key=old-key"}), json!({"agent": "http://x?key=new-key"}))]
    fn equal_requests_have_the_same_file_name(#[case] left: Value, #[case] right: Value) {
        assert_eq!(key(left).file_name(), key(right).file_name());
    }

    #[rstest]
    #[case(json!({"sample": 0}), json!({"sample": 1}))]
    #[case(json!({"stubs": 9_007_199_254_740_993_u64}), json!({"stubs": 9_007_199_254_740_992_u64}))]
    #[case(json!({"stubs": 1}), json!({"stubs": 1.0}))]
    #[case(json!({"message": "a\nb"}), json!({"message": ["a", "b"]}))]
    #[case(json!({"message": "a"}), json!({"user": "a"}))]
    #[case(json!({}), json!({"message": null}))]
    fn different_requests_have_different_file_names(#[case] left: Value, #[case] right: Value) {
        assert_ne!(key(left).file_name(), key(right).file_name());
    }
}
