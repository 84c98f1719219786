//! Differences between an expected and an actual JSON value.

use serde_json::Value;

use karat_json::{equal_json, pointer_key};

/// A part in which two values differ; `None` for a value that lacks the part.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonDifference<'v> {
    /// A JSON pointer.
    pub(super) pointer: String,
    pub(super) expected: Option<&'v Value>,
    pub(super) actual: Option<&'v Value>,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonComparison<'c> {
    /// Whether objects, except inside of arrays, may have more keys than expected.
    pub(super) allows_more_keys: bool,
    /// Whether arrays of different lengths differ only in the elements that do, not as a whole.
    pub(super) arrays_by_index: bool,
    /// JSON pointers of parts that are not compared.
    pub(super) ignore: &'c [String],
}

impl JsonComparison<'_> {
    pub(super) fn differences<'v>(self, expected: &'v Value, actual: &'v Value) -> Vec<JsonDifference<'v>> {
        let mut found = Vec::new();
        self.collect(String::new(), Some(expected), Some(actual), &mut found);
        found
    }

    fn collect<'v>(
        self,
        pointer: String,
        expected: Option<&'v Value>,
        actual: Option<&'v Value>,
        found: &mut Vec<JsonDifference<'v>>,
    ) {
        if self.ignore.contains(&pointer) {
            return;
        }
        match (expected, actual) {
            (Some(Value::Object(left)), Some(Value::Object(right))) => {
                for (key, expected) in left {
                    let pointer = format!("{pointer}/{}", pointer_key(key));
                    self.collect(pointer, Some(expected), right.get(key), found);
                }
                let unexpected = right.iter().filter(|(key, _)| !self.allows_more_keys && !left.contains_key(*key));
                for (key, actual) in unexpected {
                    self.collect(format!("{pointer}/{}", pointer_key(key)), None, Some(actual), found);
                }
            }
            (Some(Value::Array(left)), Some(Value::Array(right)))
                if self.arrays_by_index || left.len() == right.len() || self.ignores_inside(&pointer) =>
            {
                let elements = Self { allows_more_keys: false, ..self };
                for index in 0..left.len().max(right.len()) {
                    elements.collect(format!("{pointer}/{index}"), left.get(index), right.get(index), found);
                }
            }
            (Some(left), Some(right)) if equal_json(left, right) => {}
            (expected, actual) => found.push(JsonDifference { pointer, expected, actual }),
        }
    }

    fn ignores_inside(self, pointer: &str) -> bool {
        self.ignore.iter().any(|ignored| ignored.strip_prefix(pointer).is_some_and(|rest| rest.starts_with('/')))
    }
}

/// Counts the values that are neither objects nor arrays, at any level.
pub(super) fn count_leaves(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.values().map(count_leaves).sum(),
        Value::Array(items) => items.iter().map(count_leaves).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::equal(json!({"a": 1, "b": [1.0]}), json!({"b": [1], "a": 1.0}), false, &[], &[])]
    #[case::types(json!({"a": 5}), json!({"a": "5"}), false, &[], &["/a"])]
    #[case::true_is_not_one(json!({"a": true}), json!({"a": 1}), false, &[], &["/a"])]
    #[case::large_numbers(json!({"a": 9_007_199_254_740_993_u64}), json!({"a": 9_007_199_254_740_992_u64}), false, &[], &["/a"])]
    #[case::null_is_not_absent(json!({"a": null}), json!({}), false, &[], &["/a"])]
    #[case::more_keys(json!({"a": {"x": 1}}), json!({"a": {"x": 1, "y": 2}, "z": 0}), false, &[], &["/a/y", "/z"])]
    #[case::more_keys_allowed(json!({"a": {"x": 1}}), json!({"a": {"x": 1, "y": 2}, "z": 0}), true, &[], &[])]
    #[case::arrays_compare_whole(json!({"a": [{"x": 1}]}), json!({"a": [{"x": 1, "y": 2}]}), true, &[], &["/a/0/y"])]
    #[case::array_lengths(json!({"a": [1, 2]}), json!({"a": [1, 2, 3]}), true, &[], &["/a"])]
    #[case::array_order(json!({"a": [1, 2]}), json!({"a": [2, 1]}), false, &[], &["/a/0", "/a/1"])]
    #[case::escaped_keys(json!({"a/b": 1, "~": 1}), json!({"a/b": 2, "~": 2}), false, &[], &["/a~1b", "/~0"])]
    #[case::ignored(json!({"a": {"k": 1, "ts": 5}}), json!({"a": {"k": 1, "ts": 6}, "id": 9}), false, &["/a/ts", "/id"], &[])]
    #[case::ignored_parent_is_absent(json!({"a": {"ts": 5}}), json!({}), false, &["/a/ts"], &["/a"])]
    #[case::ignored_element(json!({"a": [1, 2]}), json!({"a": [9, 2]}), true, &["/a/0"], &[])]
    #[case::ignored_last_element(json!({"a": [1]}), json!({"a": [1, 2]}), false, &["/a/1"], &[])]
    #[case::ignored_does_not_shift(json!({"a": [1, 2]}), json!({"a": [2]}), false, &["/a/0"], &["/a/1"])]
    #[case::everything_ignored(json!({"a": 1}), json!({"b": 2}), false, &[""], &[])]
    fn finds_differences(
        #[case] expected: Value,
        #[case] actual: Value,
        #[case] allows_more_keys: bool,
        #[case] ignore: &[&str],
        #[case] pointers: &[&str],
    ) {
        let ignore: Vec<String> = ignore.iter().map(|&pointer| pointer.to_owned()).collect();
        let comparison = JsonComparison { allows_more_keys, arrays_by_index: false, ignore: &ignore };
        let found: Vec<String> =
            comparison.differences(&expected, &actual).into_iter().map(|difference| difference.pointer).collect();
        assert_eq!(found, pointers);
    }
}
