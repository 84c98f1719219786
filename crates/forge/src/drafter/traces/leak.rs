//! Texts that show that a response is a raw tool result.

use std::collections::HashSet;

use karat_core::trace::ToolCall;
use serde_json::Value;

use super::observed::with_parsed_result;
use crate::identifier::is_identifier;

/// Maximum number of texts taken from results.
const MAX_MARKERS: usize = 6;

/// Maximum number of field names collected from a result.
const MAX_NAMES: usize = 2_000;

/// Returns texts of these calls' results that no answer in plain words has, and that the response does not have: names
/// of fields that are identifiers, such as `fetchedAt`, and other names as they are in JSON, such as `"status":`.
pub fn leak_markers(calls: &[ToolCall], response: &str) -> Vec<String> {
    let calls: Vec<ToolCall> = calls.iter().map(with_parsed_result).collect();
    let mut names = Vec::new();
    calls.iter().filter_map(|call| call.result.as_ref()).for_each(|result| collect_names(result, &mut names));
    let identifiers = names.iter().filter(|name| is_raw(name)).map(|name| (*name).to_owned());
    let others = names.iter().filter(|name| !is_raw(name) && is_short(name)).map(|name| format!("\"{name}\":"));
    let mut seen = HashSet::new();
    let markers = identifiers.chain(others).filter(|marker| !response.contains(marker.as_str()));
    markers.filter(|marker| seen.insert(marker.clone())).take(MAX_MARKERS).collect()
}

fn collect_names<'v>(value: &'v Value, names: &mut Vec<&'v str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        Value::Object(map) => {
            for (name, item) in map {
                if names.len() < MAX_NAMES {
                    names.push(name);
                }
                collect_names(item, names);
            }
        }
        _ => {}
    }
}

/// Whether a name is not natural language: `fetchedAt`, `wind_kph`.
fn is_raw(name: &str) -> bool {
    (4..=40).contains(&name.len()) && name.is_ascii() && is_identifier(name)
}

fn is_short(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (1..=40).contains(&name.len()) && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn markers(result: Value, response: &str) -> Vec<String> {
        leak_markers(&[ToolCall { result: Some(result), ..ToolCall::default() }], response)
    }

    #[test]
    fn identifiers_come_first_and_other_names_are_quoted() {
        let result = json!([{"city": 1, "wind_kph": {"fetchedAt": 2, "_x": 3, "ID": 4}}, {"wind_kph": 5, "a b_c": 6}]);
        assert_eq!(markers(result, ""), ["wind_kph", "fetchedAt", "\"city\":", "\"_x\":", "\"ID\":"]);
    }

    #[test]
    fn finds_names_in_json_that_is_a_string() {
        let content = json!({"content": [{"type": "text", "text": "{\"order_id\": 7}"}]});
        assert_eq!(markers(content, "")[0], "order_id");
    }

    #[test]
    fn skips_what_the_response_has() {
        let result = json!({"wind_kph": 5, "status": "ok"});
        assert_eq!(markers(result, "The status of wind_kph is ok."), ["\"status\":"]);
    }
}
