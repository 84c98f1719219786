//! Canonical JSON: sorted keys, no whitespace, whole numbers as their digits, other numbers as in ECMAScript.

use serde_json::{Map, Value};

use crate::hash::short_hash;
use crate::text::text_form;

/// Returns the canonical JSON of a value.
pub fn canonical_json(value: &Value) -> String {
    match sorted(value) {
        Value::String(text) => Value::String(text).to_string(),
        other => text_form(&other).into_owned(),
    }
}

/// Returns the hash that detects edits of an immutable case.
pub fn canonical_hash(value: &Value) -> String {
    short_hash(canonical_json(value).as_bytes())
}

/// Returns a hash that distinguishes number notations.
pub fn exact_hash(value: &Value) -> String {
    short_hash(sorted(value).to_string().as_bytes())
}

/// Returns the value with sorted object keys.
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            // ECMAScript order: by UTF-16 code units.
            keys.sort_by_cached_key(|key| key.encode_utf16().collect::<Vec<u16>>());
            Value::Object(keys.into_iter().map(|key| (key.clone(), sorted(&map[key]))).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn canonical_hash_ignores_order_and_number_notation() {
        let left = json!({"b": [1.0, {"y": 1, "x": "é"}], "a": null});
        let right = json!({"a": null, "b": [1, {"x": "é", "y": 1.0}]});
        assert_eq!(canonical_json(&left), r#"{"a":null,"b":[1,{"x":"é","y":1}]}"#);
        assert_eq!(canonical_hash(&left), canonical_hash(&right));
        assert_ne!(canonical_hash(&left), canonical_hash(&json!({})));
    }

    #[test]
    fn hashes_distinguish_large_numbers() {
        let (left, right) =
            (json!({"maximum": 9_007_199_254_740_993_u64}), json!({"maximum": 9_007_199_254_740_992_u64}));
        assert_ne!(canonical_hash(&left), canonical_hash(&right));
        assert_ne!(exact_hash(&left), exact_hash(&right));
    }

    #[test]
    fn exact_hash_distinguishes_notations_and_ignores_order() {
        assert_ne!(exact_hash(&json!(1)), exact_hash(&json!(1.0)));
        assert_eq!(exact_hash(&json!([{"a": 1, "b": 2}])), exact_hash(&json!([{"b": 2, "a": 1}])));
    }
}
