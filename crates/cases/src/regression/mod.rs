//! Regression cases: each guards against a fixed bug, and may be archived but not edited.

mod archive;
mod edit;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::token::contains_snapshot_token;
use crate::{Case, Difficulty, EvalFile, Tier, next_ids};
use karat_json::parse;

pub use crate::slug;

pub use archive::{ARCHIVE_SUFFIX, Archive, ArchiveSchema, ArchivedCase, EditedCase, archive_name};
pub use edit::{RegressionEditError, RegressionEditor};

const DESCRIPTION_PREFIX: &str = "regression — ";

const ID_PREFIX: &str = "rg-";

/// A regression case to be created.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewRegression {
    pub id: String,
    /// Description of the bug.
    pub description: String,
    pub created_at: String,
    pub bug_ref: String,
    pub message: String,
    /// The turns of a conversation, and what happens after one that failed; in place of the message.
    pub turns: Option<Value>,
    pub on_turn_failure: Option<Value>,
    /// The simulated user of a conversation, in place of the message.
    pub user: Option<Value>,
    pub stubs: Option<Value>,
    pub injections: Option<Value>,
    pub max_turns: Option<Value>,
    pub expect: Map<String, Value>,
    pub safety: Option<Value>,
}

impl NewRegression {
    /// Returns the case as JSON.
    pub fn into_case(self) -> Value {
        let description = self.description.trim();
        let description = if description.starts_with("regression") {
            description.to_owned()
        } else {
            format!("{DESCRIPTION_PREFIX}{description}")
        };
        let mut case = json!({
            "id": self.id,
            "description": description,
            "difficulty": Difficulty::Regression.name(),
            "createdAt": self.created_at,
            "bugRef": self.bug_ref,
        });
        let input = (self.turns.is_none() && self.user.is_none()).then(|| json!({"message": self.message}));
        // The expectations of a turn are enough.
        let expect = (self.turns.is_none() || !self.expect.is_empty()).then(|| Value::Object(self.expect));
        let rest = [
            ("input", input),
            ("turns", self.turns),
            ("onTurnFailure", self.on_turn_failure),
            ("user", self.user),
            ("stubs", self.stubs),
            ("injections", self.injections),
            ("maxTurns", self.max_turns),
            ("expect", expect),
            ("safety", self.safety),
        ];
        for (key, value) in rest {
            if let Some(value) = value {
                case[key] = value;
            }
        }
        case
    }
}

/// Whether a case is a regression case, which must not be edited.
pub fn is_regression(file: &EvalFile, case: &Case) -> bool {
    file.tier == Tier::Regression || case.difficulty == Some(Difficulty::Regression)
}

/// Returns the next id for a tool. No existing id is returned again.
pub fn next_id<'i>(tool: &str, existing: impl IntoIterator<Item = &'i str>) -> String {
    next_ids(ID_PREFIX, tool, existing).next().unwrap_or_else(|| format!("{ID_PREFIX}{}-{}", slug(tool), u64::MAX))
}

/// Returns all ids of regression cases in a file, including those in hashes. The file may be invalid.
pub fn find_regression_ids(bytes: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut ids = BTreeSet::new();
    match parse(text.strip_prefix('\u{feff}').unwrap_or(&text)) {
        Ok(value) => collect_ids(&value, &mut ids),
        Err(_) => text.split('"').for_each(|text| collect_id(text, &mut ids)),
    }
    ids
}

fn collect_ids(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => collect_id(text, ids),
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, ids)),
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            collect_id(key, ids);
            collect_ids(item, ids);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn collect_id(text: &str, ids: &mut BTreeSet<String>) {
    if text.starts_with(ID_PREFIX) {
        ids.insert(text.to_owned());
    }
}

/// Returns the keys of an expectation that contain snapshot tokens.
pub fn snapshot_keys(expect: &Map<String, Value>) -> Vec<&str> {
    expect.iter().filter(|(_, value)| any_text(value, &contains_snapshot_token)).map(|(key, _)| key.as_str()).collect()
}

pub fn any_text(value: &Value, holds: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => holds(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, holds)),
        Value::Object(map) => map.values().any(|item| any_text(item, holds)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[], "rg-get-weather-001")]
    #[case(&["rg-get-weather-001", "rg-get_weather-007", "gs-get-weather-099", "rg-get-weather-x"], "rg-get-weather-008")]
    #[case(&["rg-get-weather-now-044"], "rg-get-weather-001")]
    #[case(&["rg-get-weather-999"], "rg-get-weather-1000")]
    #[case(&["rg-get-weather-18446744073709551615", "rg-get-weather-99999999999999999999"], "rg-get-weather-001")]
    #[case(&["rg-get-weather-999999999", "rg-get-weather-1000000000"], "rg-get-weather-1000000001")]
    fn continues_after_existing_ids(#[case] existing: &[&str], #[case] expected: &str) {
        assert_eq!(next_id("get_weather", existing.iter().copied()), expected);
    }

    #[rstest]
    #[case::valid(r#"{"metadata": {"caseHashes": {"rg-t-001": ""}}, "cases": [{"id": "rg-\u00fc-002"}, {"id": "gs-t-1"}]}"#, &["rg-t-001", "rg-ü-002"])]
    #[case::broken(r#"{"cases": [{"id": "rg-t-003", }"#, &["rg-t-003"])]
    #[case::byte_order_mark("\u{feff}[\"rg-t-004\"]", &["rg-t-004"])]
    fn finds_ids_in_valid_and_invalid_files(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(find_regression_ids(text.as_bytes()), expected.iter().map(|id| (*id).to_owned()).collect());
    }

    #[test]
    fn writes_keys_in_the_usual_order() {
        let expect = json!({"toolsCalled": ["t"]});
        let new = NewRegression {
            id: "rg-t-001".to_owned(),
            description: "it was empty".to_owned(),
            expect: expect.as_object().cloned().unwrap_or_default(),
            ..NewRegression::default()
        };
        let case = new.clone().into_case();
        let keys: Vec<&String> = case.as_object().map(|case| case.keys().collect()).unwrap_or_default();
        assert_eq!(keys, ["id", "description", "difficulty", "createdAt", "bugRef", "input", "expect"]);
        assert_eq!(case["description"], "regression — it was empty");
        let prefixed = NewRegression { description: "regression — x".to_owned(), ..new };
        assert_eq!(prefixed.into_case()["description"], "regression — x");
    }

    #[test]
    fn writes_turns_in_place_of_a_message() {
        let turns = Some(json!([{"message": "a", "expect": {"minLength": 1}}]));
        let case = NewRegression { turns, ..NewRegression::default() }.into_case();
        let keys: Vec<&String> = case.as_object().map(|case| case.keys().collect()).unwrap_or_default();
        assert_eq!(keys, ["id", "description", "difficulty", "createdAt", "bugRef", "turns"]);
    }

    #[test]
    fn finds_keys_with_snapshot_tokens() {
        let expect = json!({"responseContains": ["a {{snapshot:x}}"], "toolParams": [{"value": "{{seed:y}}"}]});
        assert_eq!(snapshot_keys(expect.as_object().expect("object")), ["responseContains"]);
    }
}
