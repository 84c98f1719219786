//! The short form of a tool's parameters: `{"city": {"type": "string", "optional": true}}` or `{"city": "string"}`.

use serde_json::{Map, Value, json};

/// Top-level keywords with an object or a list that identify a JSON Schema. Others start with `$`.
const SCHEMA_KEYWORDS: [&str; 12] = [
    "properties",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "additionalProperties",
    "unevaluatedProperties",
];

/// Keys of which a field without a type has at least one.
const FIELD_KEYS: [&str; 7] = ["description", "optional", "required", "default", "enum", "anyOf", "oneOf"];

/// Returns the JSON Schema of a field map, without additional properties, or `None` if a value is not a field map.
pub(crate) fn field_map_schema(value: &Value) -> Option<Value> {
    let fields = value.as_object().filter(|fields| !fields.is_empty())?;
    // A field can be named `type`; the keyword is a string or a list.
    let is_keyword = |key: &String| key.starts_with('$') || SCHEMA_KEYWORDS.contains(&key.as_str());
    if fields.get("type").is_some_and(|kind| !kind.is_object()) || fields.keys().any(is_keyword) {
        return None;
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, field) in fields {
        let (property, is_optional) = match field {
            Value::String(kind) => named_type(kind)?,
            field => property(field.as_object()?)?,
        };
        properties.insert(name.clone(), Value::Object(property));
        if !is_optional {
            required.push(json!(name));
        }
    }
    Some(json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}))
}

/// Returns the schema of a field whose value is the name of its type. A question mark makes it optional.
fn named_type(name: &str) -> Option<(Map<String, Value>, bool)> {
    let name = name.trim();
    let required = name.strip_suffix('?').unwrap_or(name);
    let kind = match required.to_ascii_lowercase().as_str() {
        "string" | "str" | "text" => "string",
        "number" | "float" | "double" => "number",
        "integer" | "int" => "integer",
        "boolean" | "bool" => "boolean",
        "array" | "list" => "array",
        "object" | "dict" => "object",
        _ => return None,
    };
    let mut property = Map::new();
    property.insert("type".to_owned(), kind.into());
    Some((property, required.len() < name.len()))
}

fn property(field: &Map<String, Value>) -> Option<(Map<String, Value>, bool)> {
    let kind = match field.get("type") {
        Some(kind) => kind.as_str()?,
        // Any value is allowed.
        None if field.is_empty() || FIELD_KEYS.iter().any(|key| field.contains_key(*key)) => "",
        None => return None,
    };
    let is = |key: &str, flag: bool| field.get(key) == Some(&Value::Bool(flag));
    let is_optional = is("optional", true) || is("required", false) || field.contains_key("default");
    let mut property: Map<String, Value> =
        field.iter().filter(|(key, _)| !["optional", "required"].contains(&key.as_str())).map(clone_entry).collect();
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

fn clone_entry((key, value): (&String, &Value)) -> (String, Value) {
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

    #[test]
    fn accepts_fields_with_type_names_or_without_a_type() {
        let map =
            json!({"city": "string", "days": "int?", "near": {"description": "A place", "optional": true}, "x": {}});
        let expected = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "near": {"description": "A place"},
                "x": {},
            },
            "required": ["city", "x"],
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
    #[case(json!({"$defs": {"a": {"type": "string"}}}))]
    #[case(json!({"not": {"required": ["a"]}}))]
    #[case(json!({"title": "Weather", "description": "Where to look"}))]
    #[case(json!({"type": ["object", "null"]}))]
    fn rejects_other_values(#[case] value: Value) {
        assert_eq!(field_map_schema(&value), None);
    }
}
