//! What a tool's JSON Schema says of its parameters, as far as that is certain.

use std::collections::BTreeMap;

use karat_core::text::text_form;
use serde_json::Value;

/// References to references are followed so far: they can lead back to themselves.
const DEEPEST: usize = 8;
/// So many parts of a schema are looked at: alternatives that lead back to themselves are more with every step.
const MOST_PARTS: usize = 1_000;

/// The parameters that a schema names.
pub(super) struct Properties<'s> {
    /// All schemas of each parameter: alternatives can name it several times.
    pub(super) named: BTreeMap<&'s str, Vec<&'s Value>>,
    /// There may be parameters of other names.
    pub(super) is_open: bool,
}

impl<'s> Properties<'s> {
    pub(super) fn of(schema: &'s Value) -> Self {
        let mut properties = Self { named: BTreeMap::new(), is_open: false };
        let mut left = MOST_PARTS;
        let names_any = properties.take(schema, schema, &mut left);
        // A schema that lists nothing allows everything.
        properties.is_open |= !names_any;
        properties
    }

    /// Takes what a part of the schema names; tells whether it lists parameters at all.
    fn take(&mut self, root: &'s Value, part: &'s Value, left: &mut usize) -> bool {
        *left = left.saturating_sub(1);
        let Some(part) = followed(root, part).filter(|_| *left > 0) else {
            self.is_open = true;
            return true;
        };
        let closed = |more: &Value| more == &Value::Bool(false);
        self.is_open |= part.get("additionalProperties").is_some_and(|more| !closed(more));
        self.is_open |= part.get("patternProperties").is_some();
        let listed = part.get("properties").and_then(Value::as_object);
        for (name, property) in listed.into_iter().flatten() {
            self.named.entry(name).or_default().push(property);
        }
        let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| part.get(key)?.as_array()).flatten();
        let mut names_any = listed.is_some() || part.get("additionalProperties").is_some_and(closed);
        for part in parts {
            if *left > 0 {
                names_any |= self.take(root, part, left);
            }
        }
        names_any
    }
}

/// Returns the only values that a parameter can have, where all its schemas list them.
pub(super) fn allowed_values<'s>(root: &'s Value, kinds: &[&'s Value]) -> Option<Vec<&'s Value>> {
    let mut values = Vec::new();
    let mut left = MOST_PARTS;
    for kind in kinds {
        values.extend(listed(root, kind, &mut left)?);
    }
    Some(values)
}

fn listed<'s>(root: &'s Value, part: &'s Value, left: &mut usize) -> Option<Vec<&'s Value>> {
    *left = left.checked_sub(1)?;
    let part = followed(root, part)?;
    if let Some(values) = part.get("enum").and_then(Value::as_array) {
        return Some(values.iter().collect());
    }
    if let Some(value) = part.get("const") {
        return Some(vec![value]);
    }
    if part.get("type").and_then(Value::as_str) == Some("null") {
        return Some(vec![&Value::Null]);
    }
    let alternatives = ["anyOf", "oneOf"].into_iter().find_map(|key| part.get(key)?.as_array())?;
    let mut values = Vec::new();
    for alternative in alternatives {
        values.extend(listed(root, alternative, left)?);
    }
    Some(values)
}

/// Returns what a part of the schema is, where it only points to another one; none where that is not in the schema.
fn followed<'s>(root: &'s Value, part: &'s Value) -> Option<&'s Value> {
    let mut part = part;
    for _ in 0..DEEPEST {
        match part.get("$ref").and_then(Value::as_str) {
            Some(target) => part = root.pointer(target.strip_prefix('#')?)?,
            None => return Some(part),
        }
    }
    None
}

/// Returns the values that stand in a schema for good: those of lists, defaults and examples.
pub(super) fn fixed_values(schema: &Value) -> Vec<String> {
    let mut values = Vec::new();
    collect(schema, &mut values);
    values
}

fn collect(part: &Value, values: &mut Vec<String>) {
    match part {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("enum" | "examples", Value::Array(items)) => {
                        values.extend(items.iter().map(|item| text_form(item).into_owned()));
                    }
                    ("const" | "default" | "example", value) if !value.is_object() => {
                        values.push(text_form(value).into_owned());
                    }
                    _ => collect(value, values),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, values)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::closed(json!({"properties": {"a": {}}}), &["a"], false)]
    #[case::says_more(json!({"properties": {"a": {}}, "additionalProperties": true}), &["a"], true)]
    #[case::says_no_more(json!({"properties": {"a": {}}, "additionalProperties": false}), &["a"], false)]
    #[case::takes_none(json!({"type": "object", "properties": {}}), &[], false)]
    #[case::says_nothing(json!({"type": "object"}), &[], true)]
    #[case::no_schema(json!(true), &[], true)]
    #[case::all_of(json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}), &["a", "b"], false)]
    #[case::one_is_open(json!({"anyOf": [{"properties": {"a": {}}}, {"$ref": "http://x"}]}), &["a"], true)]
    #[case::points(json!({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}), &["a"], false)]
    #[case::points_at_itself(json!({"$ref": "#"}), &[], true)]
    #[case::holds_itself(json!({"allOf": [{"$ref": "#"}], "properties": {"a": {}}}), &["a"], true)]
    fn parameters(#[case] schema: Value, #[case] names: &[&str], #[case] is_open: bool) {
        let properties = Properties::of(&schema);
        assert_eq!(properties.named.keys().copied().collect::<Vec<_>>(), names);
        assert_eq!(properties.is_open, is_open);
    }

    #[rstest]
    #[case::list(json!({"enum": ["a", 1]}), Some(json!(["a", 1])))]
    #[case::one(json!({"const": "a"}), Some(json!(["a"])))]
    #[case::none_too(json!({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}), Some(json!(["a", null])))]
    #[case::or_anything(json!({"anyOf": [{"enum": ["a"]}, {"type": "string"}]}), None)]
    #[case::anything(json!({"type": "string"}), None)]
    fn values(#[case] kind: Value, #[case] expected: Option<Value>) {
        let found = allowed_values(&json!({}), &[&kind]).map(|values| values.into_iter().cloned().collect());
        assert_eq!(found.map(Value::Array), expected);
    }

    #[test]
    fn a_schema_full_of_itself_comes_to_an_end() {
        let schema = json!({"properties": {"a": {"anyOf": vec![json!({"$ref": "#/properties/a"}); 9]}},
            "anyOf": vec![json!({"$ref": "#"}); 9]});
        let properties = Properties::of(&schema);
        assert!(properties.is_open);
        assert_eq!(allowed_values(&schema, &properties.named["a"]), None);
    }

    #[test]
    fn fixed_values_are_those_of_lists_and_defaults() {
        let schema = json!({"properties": {
            "day": {"enum": ["2024-01-01"], "description": "not 2025-01-01"},
            "time": {"default": "12:00"},
            "default": {"type": "string", "examples": ["x"]},
        }});
        assert_eq!(fixed_values(&schema), ["2024-01-01", "12:00", "x"]);
    }
}
