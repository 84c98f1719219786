//! The short form of a tool's parameters: `{"city": {"type": "string", "optional": true}}`.

use serde_json::{Map, Value, json};

/// Top-level keywords that identify a JSON Schema.
const SCHEMA_KEYWORDS: [&str; 7] = ["properties", "$schema", "$ref", "anyOf", "oneOf", "allOf", "additionalProperties"];

/// Returns the JSON Schema of a field map, without additional properties, or `None` if a value is not a field map.
pub(crate) fn field_map_schema(value: &Value) -> Option<Value> {
    let fields = value.as_object().filter(|fields| !fields.is_empty())?;
    if fields.get("type").is_some_and(Value::is_string) || SCHEMA_KEYWORDS.iter().any(|key| fields.contains_key(*key)) {
        return None;
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, field) in fields {
        let (property, is_optional) = property(field.as_object()?)?;
        properties.insert(name.clone(), Value::Object(property));
        if !is_optional {
            required.push(json!(name));
        }
    }
    Some(json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}))
}

fn property(field: &Map<String, Value>) -> Option<(Map<String, Value>, bool)> {
    let kind = field.get("type")?.as_str()?;
    let is = |key: &str, flag: bool| field.get(key) == Some(&Value::Bool(flag));
    let is_optional = is("optional", true) || is("required", false) || field.contains_key("default");
    let mut property: Map<String, Value> =
        field.iter().filter(|(key, _)| !["optional", "required"].contains(&key.as_str())).map(clone).collect();
    match kind {
        "string" | "number" | "integer" | "boolean" | "array" | "object" | "null" => {}
        "enum" => {
            property.shift_remove("type");
            let values = ["enum", "values", "options"].iter().find_map(|key| property.shift_remove(*key));
            property.insert("enum".to_owned(), values.filter(Value::is_array)?);
        }
        // A custom type allows any value.
        _ => drop(property.shift_remove("type")),
    }
    Some((property, is_optional))
}

fn clone((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn converts_to_a_closed_schema() {
        let map = json!({
            "city": {"type": "string", "description": "Where"},
            "days": {"type": "number", "optional": true},
            "unit": {"type": "enum", "values": ["c", "f"], "default": "c"},
            "type": {"type": "string", "required": false},
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where"},
                "days": {"type": "number"},
                "unit": {"default": "c", "enum": ["c", "f"]},
                "type": {"type": "string"},
            },
            "required": ["city"],
            "additionalProperties": false,
        });
        assert_eq!(field_map_schema(&map), Some(expected));
    }

    #[rstest]
    #[case(json!({}))]
    #[case(json!({"type": "object"}))]
    #[case(json!({"properties": {"a": {"type": "string"}}}))]
    #[case(json!({"a": {"type": "string"}, "b": 1}))]
    #[case(json!({"a": {"properties": {}}}))]
    fn rejects_other_values(#[case] value: Value) {
        assert_eq!(field_map_schema(&value), None);
    }
}
