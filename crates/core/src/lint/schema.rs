//! The parameters of a tool's JSON Schema, as far as they are certain.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::json_schema::compile_schema;

/// How many references to references are followed: they can form a cycle.
const MAX_REFERENCES: usize = 8;
/// How many parts of a schema are visited: alternatives that refer to themselves grow without end.
const MAX_PARTS: usize = 1_000;

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
        let mut left = MAX_PARTS;
        let names_any = properties.take(schema, schema, &mut left);
        // A schema that lists nothing allows everything.
        properties.is_open |= !names_any;
        properties
    }

    /// Adds what a part of the schema names; returns whether it lists parameters at all.
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

/// Makes a validator for one parameter: a value has to fit one of its schemas. None where that cannot be compiled.
pub(super) fn param_validator(root: &Value, alternatives: &[&Value]) -> Option<Validator> {
    let mut schema = match alternatives {
        [only] if only.is_object() => (*only).clone(),
        _ => json!({ "anyOf": alternatives }),
    };
    for key in ["$schema", "$defs", "definitions"] {
        if let Some(shared) = root.get(key) {
            schema[key] = shared.clone();
        }
    }
    compile_schema(&schema).ok()
}

/// Returns what a part of the schema is, where it only points to another one; none where that is not in the schema.
fn followed<'s>(root: &'s Value, part: &'s Value) -> Option<&'s Value> {
    let mut part = part;
    for _ in 0..MAX_REFERENCES {
        match part.get("$ref").and_then(Value::as_str) {
            Some(target) => part = root.pointer(target.strip_prefix('#')?)?,
            None => return Some(part),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

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

    #[test]
    fn a_recursive_schema_ends() {
        let schema = json!({"properties": {"a": {"anyOf": vec![json!({"$ref": "#/properties/a"}); 9]}},
            "anyOf": vec![json!({"$ref": "#"}); 9]});
        let properties = Properties::of(&schema);
        assert!(properties.is_open);
    }

    #[rstest]
    #[case(json!({"enum": ["a", 1]}), json!("a"), true)]
    #[case(json!({"enum": ["a", 1]}), json!("b"), false)]
    #[case(json!({"$ref": "#/$defs/unit"}), json!("metric"), true)]
    #[case(json!({"$ref": "#/$defs/unit"}), json!("kelvin"), false)]
    #[case(json!({"type": "integer", "maximum": 5}), json!(6), false)]
    fn values_are_validated(#[case] param: Value, #[case] value: Value, #[case] fits: bool) {
        let root = json!({"$defs": {"unit": {"enum": ["metric", "imperial"]}}});
        let validator = param_validator(&root, &[&param]).expect("a validator");
        assert_eq!(validator.is_valid(&value), fits);
    }
}
