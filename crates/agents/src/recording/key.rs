//! What determines an answer, as one name.

use std::collections::BTreeMap;

use karat_core::redact::Redactor;
use karat_json::canonical::sorted;
use karat_json::hash::short_hash;
use serde_json::{Map, Value};

use super::file::Text;

/// The parts that mean something here; agents name the others.
pub(super) const AGENT: &str = "agent";
pub(super) const MESSAGE: &str = "message";
pub(super) const USER: &str = "user";
pub(super) const SAMPLE: &str = "sample";

/// How many characters of the message a file's name shows.
const LONGEST_SLUG: usize = 40;

/// A question that was asked, or is to be.
#[derive(Debug)]
pub(super) struct Key {
    /// The parts as a file shows them.
    asked: Map<String, Value>,
    /// The part that a person knows the question by.
    title: &'static str,
    file_name: String,
}

impl Key {
    /// Takes the secrets out first: a key that was rotated makes no other question.
    pub(super) fn new(mut parts: Map<String, Value>, title: &'static str, redactor: &Redactor) -> Self {
        redactor.map(&mut parts);
        // In order, so that a file does not change with the registry's.
        let parts: Map<String, Value> = parts.into_iter().map(|(name, part)| (name, sorted(&part))).collect();
        let by_name: BTreeMap<&String, &Value> = parts.iter().collect();
        // Not the canonical form: that rounds large numbers, and to a model they are not the same.
        let hash = short_hash(&serde_json::to_vec(&by_name).unwrap_or_default());
        let slug = slug(parts.get(title).and_then(Value::as_str).unwrap_or_default());
        let file_name = if slug.is_empty() { format!("{hash}.json") } else { format!("{slug}-{hash}.json") };
        Self { asked: parts.into_iter().map(|(name, part)| (name, shown(part))).collect(), title, file_name }
    }

    pub(super) fn asked(&self) -> &Map<String, Value> {
        &self.asked
    }

    pub(super) fn title(&self) -> &'static str {
        self.title
    }

    pub(super) fn file_name(&self) -> &str {
        &self.file_name
    }
}

/// Shows a text of several lines line by line.
fn shown(part: Value) -> Value {
    match part {
        Value::String(text) => Text::from(text).into(),
        other => other,
    }
}

fn slug(message: &str) -> String {
    let mut slug = String::with_capacity(LONGEST_SLUG);
    for character in message.chars() {
        if slug.len() == LONGEST_SLUG {
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
        let Value::Object(parts) = parts else { panic!("parts have names") };
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
    fn a_slug_is_a_safe_short_name(#[case] message: &str, #[case] expected: &str) {
        assert_eq!(slug(message), expected);
    }

    #[rstest]
    #[case(json!({"agent": "a", "message": "m"}), json!({"message": "m", "agent": "a"}))]
    #[case(json!({"stubs": {"a": {"x": 1, "y": 2}, "b": 1}}), json!({"stubs": {"b": 1, "a": {"y": 2, "x": 1}}}))]
    #[case(json!({"agent": "http://x?key=old-key"}), json!({"agent": "http://x?key=new-key"}))]
    fn the_same_question_has_one_name(#[case] left: Value, #[case] right: Value) {
        assert_eq!(key(left).file_name(), key(right).file_name());
    }

    #[rstest]
    #[case(json!({"sample": 0}), json!({"sample": 1}))]
    #[case(json!({"stubs": 9_007_199_254_740_993_u64}), json!({"stubs": 9_007_199_254_740_992_u64}))]
    #[case(json!({"stubs": 1}), json!({"stubs": 1.0}))]
    #[case(json!({"message": "a\nb"}), json!({"message": ["a", "b"]}))]
    #[case(json!({"message": "a"}), json!({"user": "a"}))]
    #[case(json!({}), json!({"message": null}))]
    fn another_question_has_another_name(#[case] left: Value, #[case] right: Value) {
        assert_ne!(key(left).file_name(), key(right).file_name());
    }
}
