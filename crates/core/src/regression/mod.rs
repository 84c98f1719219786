//! Regression cases: each keeps a fixed bug fixed, and is never edited, only archived.

mod archive;
mod edit;

use serde_json::{Map, Value, json};

use crate::case::{Case, Difficulty, EvalFile, Tier};
use crate::registry::same_name;
use crate::token::holds_snapshot_token;

pub use archive::{Archive, ArchiveSchema, ArchivedCase, archive_name};
pub use edit::{RegressionEditError, RegressionEditor};

/// What the description of a regression case begins with.
const DESCRIPTION_BEGIN: &str = "regression — ";

/// A case that is to be made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewRegression {
    pub id: String,
    /// What went wrong.
    pub description: String,
    pub created_at: String,
    pub bug_ref: String,
    pub message: String,
    pub stubs: Option<Value>,
    pub max_turns: Option<Value>,
    pub expect: Map<String, Value>,
}

impl NewRegression {
    /// Returns the case as it is written.
    pub fn into_case(self) -> Value {
        let said = self.description.trim();
        let description =
            if said.starts_with("regression") { said.to_owned() } else { format!("{DESCRIPTION_BEGIN}{said}") };
        let mut case = json!({
            "id": self.id,
            "description": description,
            "difficulty": Difficulty::Regression.name(),
            "createdAt": self.created_at,
            "bugRef": self.bug_ref,
            "input": {"message": self.message},
        });
        let rest = [("stubs", self.stubs), ("maxTurns", self.max_turns), ("expect", Some(Value::Object(self.expect)))];
        for (key, value) in rest {
            if let Some(value) = value {
                case[key] = value;
            }
        }
        case
    }
}

/// Tells whether a case is never to be edited.
pub fn is_regression(file: &EvalFile, case: &Case) -> bool {
    file.tier == Tier::Regression || case.difficulty == Some(Difficulty::Regression)
}

/// Returns the part of a tool's name that ids and file names have.
pub fn slug(tool: &str) -> String {
    tool.replace('_', "-")
}

/// Returns the id of a tool's next case: none that was ever given out is given out again.
pub fn next_id<'i>(tool: &str, taken: impl IntoIterator<Item = &'i str>) -> String {
    let number = |id: &str| {
        let (of, number) = id.strip_prefix("rg-")?.rsplit_once('-')?;
        same_name(of, tool).then(|| number.parse::<u64>().ok()).flatten()
    };
    let highest = taken.into_iter().filter_map(number).max().unwrap_or_default();
    format!("rg-{}-{:03}", slug(tool), highest + 1)
}

/// Returns the keys of an expectation that hold a value of the volatile source.
pub fn snapshot_keys(expect: &Map<String, Value>) -> Vec<&str> {
    expect.iter().filter(|(_, value)| any_text(value, &holds_snapshot_token)).map(|(key, _)| key.as_str()).collect()
}

pub(crate) fn any_text(value: &Value, holds: &impl Fn(&str) -> bool) -> bool {
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
    fn ids_go_on(#[case] taken: &[&str], #[case] expected: &str) {
        assert_eq!(next_id("get_weather", taken.iter().copied()), expected);
    }

    #[test]
    fn a_case_is_written_in_the_usual_order() {
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
        let said = NewRegression { description: "regression — x".to_owned(), ..new };
        assert_eq!(said.into_case()["description"], "regression — x");
    }

    #[test]
    fn volatile_values_are_found() {
        let expect = json!({"responseContains": ["a {{snapshot:x}}"], "toolParams": [{"value": "{{seed:y}}"}]});
        assert_eq!(snapshot_keys(expect.as_object().expect("an object")), ["responseContains"]);
    }
}
