//! Conditions on a reply or a tool call.

use std::borrow::Cow;

use karat_json::text::text_form;
use karat_json::{ObjectReader, Path, Problems, equal_json, read_array, read_bool, read_string};
use karat_pattern::Pattern;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::selector::Selector;

/// A condition: one of `equals`, `oneOf`, `notNull` and `matches`. It holds if any selected value meets it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    pub path: Selector,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<Value>>,
    /// The value is present and not null.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_null: bool,
    /// An ECMAScript regular expression, unanchored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<Regex>,
    /// Inverts the condition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not: bool,
}

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct Regex {
    source: String,
    pattern: Pattern,
}

impl Rule {
    pub(crate) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let selector = object.required("path", path, problems, Selector::read);
        let equals = object.raw("equals").cloned();
        let one_of = object.nullable("oneOf", path, problems, |value, path, problems| {
            read_array(value, path, problems, |value, _, _| Some(value.clone()))
        });
        let not_null = object.nullable("notNull", path, problems, read_bool).unwrap_or_default();
        let pattern = object.nullable("matches", path, problems, Regex::read);
        let has_pattern = object.raw("matches").is_some_and(|value| !value.is_null());
        let not = object.nullable("not", path, problems, read_bool).unwrap_or_default();
        object.close(path, problems);
        let conditions = [equals.is_some(), one_of.is_some(), not_null, has_pattern];
        if conditions.iter().filter(|is_set| **is_set).count() != 1 {
            problems
                .at(path, format!("{} must have one of 'equals', 'oneOf', 'notNull: true' and 'matches'", path.name()));
        }
        Some(Self { path: selector?, equals, one_of, not_null, matches: pattern, not })
    }

    /// Whether the condition holds. Fails if a regular expression exceeds its step budget.
    pub(crate) fn holds(&self, value: &Value) -> Result<bool, String> {
        for node in self.path.select(value) {
            if self.is_met_by(node)? {
                return Ok(!self.not);
            }
        }
        Ok(self.not)
    }

    fn is_met_by(&self, node: &Value) -> Result<bool, String> {
        if let Some(expected) = &self.equals {
            return Ok(equal_json(expected, node));
        }
        if let Some(expected) = &self.one_of {
            return Ok(expected.iter().any(|expected| equal_json(expected, node)));
        }
        match &self.matches {
            Some(Regex { source, pattern }) if !node.is_null() => {
                pattern.is_match(&text_form(node)).map_err(|error| format!("the pattern '{source}': {error}"))
            }
            _ => Ok(!node.is_null()),
        }
    }
}

impl Regex {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let source = read_string(value, path, problems)?;
        match Pattern::compile(&source) {
            Ok(pattern) => Some(Self { source, pattern }),
            Err(error) => {
                problems.at(path, format!("{} is not a valid regular expression: {error}", path.name()));
                None
            }
        }
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Serialize for Regex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

impl JsonSchema for Regex {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Regex".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<Rule, Vec<String>> {
        let mut problems = Problems::default();
        let rule = Rule::read(value, &Path::Root.key("until"), &mut problems);
        match rule.filter(|_| problems.is_empty()) {
            Some(rule) => Ok(rule),
            None => Err(problems.into_list().into_iter().map(|problem| problem.message).collect()),
        }
    }

    #[rstest]
    #[case(json!({"path": "/s", "equals": "done"}), json!({"s": "done"}), true)]
    #[case(json!({"path": "/s", "equals": 1}), json!({"s": 1.0}), true)]
    #[case(json!({"path": "/s", "equals": null}), json!({"s": null}), true)]
    #[case(json!({"path": "/s", "equals": null}), json!({}), false)]
    #[case(json!({"path": "/s", "equals": "done", "not": true}), json!({}), true)]
    #[case(json!({"path": "/s", "oneOf": ["a", "b"]}), json!({"s": "b"}), true)]
    #[case(json!({"path": "/s", "oneOf": []}), json!({"s": "b"}), false)]
    #[case(json!({"path": "/s", "notNull": true}), json!({"s": null}), false)]
    #[case(json!({"path": "/s", "notNull": true}), json!({"s": false}), true)]
    #[case(json!({"path": "/s", "notNull": true, "not": true}), json!({}), true)]
    #[case(json!({"path": "/s", "matches": "^Error"}), json!({"s": "Error: no"}), true)]
    #[case(json!({"path": "/s", "matches": "null"}), json!({"s": null}), false)]
    #[case(json!({"path": "/s", "matches": "\"a\":1"}), json!({"s": {"a": 1}}), true)]
    #[case(json!({"path": "$[*].s", "equals": "done"}), json!([{"s": "x"}, {"s": "done"}]), true)]
    #[case(json!({"path": "$[*].s", "equals": "done", "not": true}), json!([{"s": "x"}, {"s": "done"}]), false)]
    fn evaluates_conditions(#[case] rule: Value, #[case] value: Value, #[case] expected: bool) {
        let read = read(&rule).expect("a valid rule");
        assert_eq!(read.holds(&value), Ok(expected));
        assert_eq!(serde_json::to_value(&read).expect("JSON"), rule);
    }

    #[rstest]
    #[case(json!({"equals": 1}), "'path' is missing")]
    #[case(json!({"path": "/a"}), "'until' must have one of 'equals', 'oneOf', 'notNull: true' and 'matches'")]
    #[case(json!({"path": "/a", "equals": 1, "notNull": true}), "'until' must have one of 'equals', 'oneOf', 'notNull: true' and 'matches'")]
    #[case(json!({"path": "/a", "matches": "("}), "'matches' is not a valid regular expression: ")]
    #[case(json!({"path": "/a", "equal": 1}), "unknown key 'equal'")]
    fn rejects_invalid_rules(#[case] rule: Value, #[case] message: &str) {
        let problems = read(&rule).expect_err("invalid");
        assert!(problems[0].starts_with(message), "{problems:?}");
    }

    #[test]
    fn a_pattern_that_exceeds_its_budget_is_an_error() {
        let rule = read(&json!({"path": "", "matches": "(a*)*\\1b"})).expect("valid");
        let error = rule.holds(&json!("a".repeat(5_000))).expect_err("endless");
        assert!(error.starts_with("the pattern '(a*)*\\1b': gave up after"), "{error}");
    }
}
