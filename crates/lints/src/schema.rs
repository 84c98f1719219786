//! The parameters of a tool's JSON Schema, as far as they can be determined.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::{Value, json};

use karat_cases::json_schema::compile_schema;

/// Maximum length of a chain of references, which can form a cycle.
const MAX_REFERENCES: usize = 8;
/// Maximum number of visited subschemas, since recursive alternatives grow without bound.
const MAX_SUBSCHEMAS: usize = 1_000;

/// The parameters in a schema.
pub(super) struct Properties<'s> {
    /// All schemas of each parameter; alternatives can name it several times.
    pub(super) named: BTreeMap<&'s str, Vec<&'s Value>>,
    /// Whether other parameters are allowed.
    pub(super) is_open: bool,
}

impl<'s> Properties<'s> {
    pub(super) fn collect(schema: &'s Value) -> Self {
        let mut properties = Self { named: BTreeMap::new(), is_open: false };
        let mut budget = MAX_SUBSCHEMAS;
        let names_any = properties.add(schema, schema, &mut budget);
        // A schema that lists no parameters allows any.
        properties.is_open |= !names_any;
        properties
    }

    /// Adds the parameters of a subschema; returns whether it lists parameters at all.
    fn add(&mut self, root: &'s Value, part: &'s Value, budget: &mut usize) -> bool {
        *budget = budget.saturating_sub(1);
        let Some(part) = resolve_ref(root, part).filter(|_| *budget > 0) else {
            self.is_open = true;
            return true;
        };
        let is_closed = |additional: &Value| additional == &Value::Bool(false);
        self.is_open |= part.get("additionalProperties").is_some_and(|additional| !is_closed(additional));
        self.is_open |= part.get("patternProperties").is_some();
        let properties = part.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            self.named.entry(name).or_default().push(property);
        }
        let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| part.get(key)?.as_array()).flatten();
        let mut names_any = properties.is_some() || part.get("additionalProperties").is_some_and(is_closed);
        for part in parts {
            if *budget > 0 {
                names_any |= self.add(root, part, budget);
            }
        }
        names_any
    }
}

/// Returns a validator for one parameter, whose value has to match one of its schemas. `None` if it does not compile.
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

/// Follows the references of a subschema; `None` if they leave the schema.
fn resolve_ref<'s>(root: &'s Value, part: &'s Value) -> Option<&'s Value> {
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
    #[case::additional(json!({"properties": {"a": {}}, "additionalProperties": true}), &["a"], true)]
    #[case::no_additional(json!({"properties": {"a": {}}, "additionalProperties": false}), &["a"], false)]
    #[case::no_properties(json!({"type": "object", "properties": {}}), &[], false)]
    #[case::any(json!({"type": "object"}), &[], true)]
    #[case::boolean(json!(true), &[], true)]
    #[case::all_of(json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}), &["a", "b"], false)]
    #[case::one_is_open(json!({"anyOf": [{"properties": {"a": {}}}, {"$ref": "http://x"}]}), &["a"], true)]
    #[case::reference(json!({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}), &["a"], false)]
    #[case::self_reference(json!({"$ref": "#"}), &[], true)]
    #[case::recursive(json!({"allOf": [{"$ref": "#"}], "properties": {"a": {}}}), &["a"], true)]
    fn collects_parameters(#[case] schema: Value, #[case] names: &[&str], #[case] is_open: bool) {
        let properties = Properties::collect(&schema);
        assert_eq!(properties.named.keys().copied().collect::<Vec<_>>(), names);
        assert_eq!(properties.is_open, is_open);
    }

    #[test]
    fn a_recursive_schema_terminates() {
        let schema = json!({"properties": {"a": {"anyOf": vec![json!({"$ref": "#/properties/a"}); 9]}},
            "anyOf": vec![json!({"$ref": "#"}); 9]});
        let properties = Properties::collect(&schema);
        assert!(properties.is_open);
    }

    #[rstest]
    #[case(json!({"enum": ["a", 1]}), json!("a"), true)]
    #[case(json!({"enum": ["a", 1]}), json!("b"), false)]
    #[case(json!({"$ref": "#/$defs/unit"}), json!("metric"), true)]
    #[case(json!({"$ref": "#/$defs/unit"}), json!("kelvin"), false)]
    #[case(json!({"type": "integer", "maximum": 5}), json!(6), false)]
    fn validates_values(#[case] param: Value, #[case] value: Value, #[case] is_valid: bool) {
        let root = json!({"$defs": {"unit": {"enum": ["metric", "imperial"]}}});
        let validator = param_validator(&root, &[&param]).expect("valid schema");
        assert_eq!(validator.is_valid(&value), is_valid);
    }
}
