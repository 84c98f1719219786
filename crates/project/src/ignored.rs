//! Finds files that are probably meant to be eval files but are ignored.

use std::fmt;
use std::path::Path;

use karat_cases::Tier;
use karat_json::{nearest, without_bom};
use serde_json::{Map, Value};

use crate::read::read_file;

/// Keys of objects that are probably meant to be cases.
const CASE_KEYS: [&str; 4] = ["input", "turns", "expect", "rubric"];

/// A file that is not read because it is not an eval file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredFile {
    /// Relative to the current folder.
    pub display_path: String,
    pub(crate) reason: String,
}

impl fmt::Display for IgnoredFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} is ignored: {}", self.display_path, self.reason)
    }
}

/// Returns the reason that a file is ignored, if it looks like an eval file.
pub(crate) fn ignored_reason(path: &Path, name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let stem = lower.strip_suffix(".json")?;
    if let Some((_, middle)) = stem.rsplit_once('.')
        && let Some(tier) = nearest(middle, &Tier::NAMED.map(Tier::name))
        && let Some(start) = name.rsplitn(3, '.').nth(2)
    {
        return Some(format!("rename it to {start}.{tier}.json"));
    }
    let bytes = read_file(path).ok()?;
    let value: Value = serde_json::from_slice(without_bom(&bytes)).ok()?;
    content_reason(&value)
}

fn content_reason(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => list_reason(items),
        // Result files have cases too.
        Value::Object(map) if map.contains_key("runId") => None,
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            let items = value.as_array()?;
            if key == "cases" {
                return list_reason(items);
            }
            nearest(key, &["cases"])?;
            looks_like_case(items.first()?).then(|| format!("it has '{key}' instead of 'cases'"))
        }),
        _ => None,
    }
}

fn list_reason(items: &[Value]) -> Option<String> {
    let Some(first) = items.first() else {
        return Some("it has no cases".to_owned());
    };
    if !looks_like_case(first) {
        return None;
    }
    let missing = if first.get("id").is_none() { "id" } else { "expect" };
    Some(format!("its first case has no '{missing}'"))
}

fn looks_like_case(value: &Value) -> bool {
    let is_case_key = |key: &String| nearest(key, &CASE_KEYS).is_some();
    value.as_object().map(Map::keys).is_some_and(|mut keys| keys.any(is_case_key))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!([{"Id": "a", "input": {"message": "x"}, "expect": {}}]), Some("its first case has no 'id'"))]
    #[case(json!([{"id": "a", "input": {"message": "x"}, "expects": {}}]), Some("its first case has no 'expect'"))]
    #[case(json!({"case": [{"id": "a", "input": {}, "expect": {}}]}), Some("it has 'case' instead of 'cases'"))]
    #[case(json!([]), Some("it has no cases"))]
    #[case(json!({"cases": []}), Some("it has no cases"))]
    #[case(json!({"runId": "r", "cases": []}), None)]
    #[case(json!({"users": [{"id": 1, "name": "x"}]}), None)]
    #[case(json!([{"id": 1, "name": "x"}]), None)]
    #[case(json!({}), None)]
    fn finds_files_that_look_like_cases(#[case] value: Value, #[case] expected: Option<&str>) {
        assert_eq!(content_reason(&value).as_deref(), expected);
    }

    #[rstest]
    #[case("x.gloden.json", Some("rename it to x.golden.json"))]
    #[case("x.golden.JSON", Some("rename it to x.golden.json"))]
    #[case("X.Golden.json", Some("rename it to X.golden.json"))]
    #[case("ẞé.Golden.json", Some("rename it to ẞé.golden.json"))]
    #[case("tools.lock.json", None)]
    #[case("x.txt", None)]
    fn finds_misspelt_file_names(#[case] name: &str, #[case] expected: Option<&str>) {
        assert_eq!(ignored_reason(Path::new("/nonexistent"), name).as_deref(), expected);
    }
}
