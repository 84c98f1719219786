//! Predicates on a JSON value: `equals`, `contains`, `atLeast` and so on.

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::tally::Tally;
use karat_cases::token::TokenSources;
use karat_cases::{JsonPredicate, ParamAssertion, ParamCheck, StatePredicate};
use karat_json::text::text_form;
use karat_json::{Decimal, equal_json, number_text, type_name};
use karat_pattern::Pattern;

/// How scalars are compared, and quoted in failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// By their text, so that `5` equals `"5"`.
    Text,
    /// By type and value.
    Json,
}

/// A condition as written in an eval file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Condition<'c> {
    check: ParamCheck,
    value: Option<&'c Value>,
    tolerance: Option<&'c Number>,
    comparison: Comparison,
}

impl<'c> From<&'c ParamAssertion> for Condition<'c> {
    fn from(assertion: &'c ParamAssertion) -> Self {
        let ParamAssertion { assertion: check, value, tolerance, .. } = assertion;
        Self { check: *check, value: value.as_ref(), tolerance: tolerance.as_ref(), comparison: Comparison::Text }
    }
}

impl<'c> From<&'c JsonPredicate> for Condition<'c> {
    fn from(predicate: &'c JsonPredicate) -> Self {
        let JsonPredicate { assertion: check, value, tolerance, .. } = predicate;
        Self { check: *check, value: value.as_ref(), tolerance: tolerance.as_ref(), comparison: Comparison::Json }
    }
}

impl<'c> From<&'c StatePredicate> for Condition<'c> {
    fn from(predicate: &'c StatePredicate) -> Self {
        let StatePredicate { assertion: check, value, tolerance, .. } = predicate;
        Self { check: *check, value: value.as_ref(), tolerance: tolerance.as_ref(), comparison: Comparison::Json }
    }
}

/// A predicate with its tokens resolved.
pub(super) struct Predicate {
    check: ParamCheck,
    comparison: Comparison,
    expected: Expected,
}

/// The value to compare with.
enum Expected {
    Presence,
    Value(Value),
    List(Vec<Value>),
    Text(String),
    Pattern(String, Pattern),
    Number(Limit),
    /// A number and the maximum distance from it.
    Near(Limit, Limit),
    Length(u64),
}

/// A number as written, and its decimal value.
struct Limit(Number, Decimal);

impl Limit {
    fn new(number: &Number) -> Option<Self> {
        Some(Self(number.clone(), Decimal::new(number)?))
    }
}

impl Predicate {
    /// Resolves the tokens of the expected value. Returns `None` if one has no value, so that nothing can be checked,
    /// and an error if the resolved value has the wrong type.
    pub(super) fn resolve<'c>(
        condition: impl Into<Condition<'c>>,
        tokens: &TokenSources,
        tally: &mut Tally,
    ) -> Result<Option<Self>, String> {
        let Condition { check, value, tolerance, comparison } = condition.into();
        let (Some(value), true) = (value, check.needs_value()) else {
            return Ok(Some(Self { check, comparison, expected: Expected::Presence }));
        };
        if check == ParamCheck::OneOf {
            let list = tokens.resolve_list(value);
            tally.record_unresolved(list.unresolved);
            let expected = Expected::List(list.values);
            return Ok((!expected.is_empty_list()).then_some(Self { check, comparison, expected }));
        }
        let value = match tokens.resolve_value(value) {
            Ok(value) => value,
            Err(unresolved) => {
                tally.record_unresolved(unresolved);
                return Ok(None);
            }
        };
        let expected = Expected::new(check, value, tolerance)?;
        Ok(Some(Self { check, comparison, expected }))
    }

    /// Checks a value; an absent one passes only `notExists`. The error states the expected and the actual value.
    pub(super) fn test(&self, actual: Option<&Value>) -> Result<(), String> {
        if self.holds(actual)? {
            return Ok(());
        }
        let subject = match (actual, self.comparison) {
            (Some(actual), _) => format!("got {}", self.quoted(actual)),
            (None, Comparison::Text) => "the parameter is absent".to_owned(),
            (None, Comparison::Json) => "it is absent".to_owned(),
        };
        Err(format!("expected {} but {subject}", self.describe()))
    }

    /// Whether a value meets the condition. Returns an error if the pattern exceeds its step budget.
    pub(super) fn holds(&self, actual: Option<&Value>) -> Result<bool, String> {
        let Some(actual) = actual else {
            return Ok(self.check == ParamCheck::NotExists);
        };
        let decimal = || actual.as_number().and_then(Decimal::new);
        Ok(match &self.expected {
            Expected::Presence => self.check == ParamCheck::Exists,
            Expected::Value(expected) => self.equal(expected, actual) == (self.check == ParamCheck::Equals),
            Expected::List(expected) => expected.iter().any(|item| self.equal(item, actual)),
            Expected::Text(expected) => {
                text_form(actual).contains(expected.as_str()) == (self.check == ParamCheck::Contains)
            }
            Expected::Pattern(_, pattern) => pattern.is_match(&text_form(actual)).map_err(|error| error.to_string())?,
            Expected::Near(Limit(_, center), Limit(_, tolerance)) => {
                decimal().is_some_and(|actual| actual.abs_diff(center) <= *tolerance)
            }
            Expected::Number(Limit(_, limit)) => decimal().is_some_and(|actual| match self.check {
                ParamCheck::LessThan => actual < *limit,
                ParamCheck::AtMost => actual <= *limit,
                ParamCheck::GreaterThan => actual > *limit,
                _ => actual >= *limit,
            }),
            Expected::Length(expected) => length(actual).is_some_and(|length| length as u64 == *expected),
        })
    }

    fn equal(&self, expected: &Value, actual: &Value) -> bool {
        match self.comparison {
            Comparison::Text => equal_argument(expected, actual),
            Comparison::Json => equal_json(expected, actual),
        }
    }

    fn quoted(&self, value: &Value) -> String {
        match self.comparison {
            Comparison::Text => format!("'{}'", text_form(value)),
            Comparison::Json => value.to_string(),
        }
    }

    /// Describes the values that meet the condition.
    pub(super) fn describe(&self) -> String {
        match (&self.expected, self.check) {
            (Expected::Presence, ParamCheck::NotExists) if self.comparison == Comparison::Text => {
                "no parameter of this name".to_owned()
            }
            (Expected::Presence, ParamCheck::NotExists) => "no value".to_owned(),
            (Expected::Presence, _) => "a value".to_owned(),
            (Expected::Value(value), ParamCheck::NotEquals) => format!("a value other than {}", self.quoted(value)),
            (Expected::Value(value), _) => self.quoted(value),
            (Expected::List(values), _) => {
                let values: Vec<String> = values.iter().map(|value| self.quoted(value)).collect();
                format!("one of [{}]", values.join(", "))
            }
            (Expected::Text(text), ParamCheck::NotContains) => format!("a value that does not contain '{text}'"),
            (Expected::Text(text), _) => format!("a value that contains '{text}'"),
            (Expected::Pattern(text, _), _) => format!("a value that matches /{text}/"),
            (Expected::Near(center, tolerance), _) => {
                format!("a number within {} of {}", number_text(&tolerance.0), number_text(&center.0))
            }
            (Expected::Number(limit), check) => {
                let relation = match check {
                    ParamCheck::LessThan => "less than",
                    ParamCheck::AtMost => "of at most",
                    ParamCheck::GreaterThan => "greater than",
                    _ => "of at least",
                };
                format!("a number {relation} {}", number_text(&limit.0))
            }
            (Expected::Length(length), _) => format!("a length of {length}"),
        }
    }
}

impl Expected {
    fn is_empty_list(&self) -> bool {
        matches!(self, Self::List(values) if values.is_empty())
    }

    fn new(check: ParamCheck, value: Value, tolerance: Option<&Number>) -> Result<Self, String> {
        match check {
            ParamCheck::Exists | ParamCheck::NotExists => Ok(Self::Presence),
            ParamCheck::Equals | ParamCheck::NotEquals => Ok(Self::Value(value)),
            ParamCheck::OneOf => Ok(Self::List(vec![value])),
            ParamCheck::Contains | ParamCheck::NotContains => Ok(Self::Text(text_form(&value).into_owned())),
            ParamCheck::Matches => {
                let text = text_form(&value).into_owned();
                match Pattern::compile(&text) {
                    Ok(pattern) => Ok(Self::Pattern(text, pattern)),
                    Err(error) => Err(format!("/{text}/ is not a valid regular expression: {error}")),
                }
            }
            ParamCheck::HasLength => {
                let length = value.as_u64().or_else(|| value.as_f64().and_then(whole_number));
                length
                    .map(Self::Length)
                    .ok_or_else(|| format!("'value' must be a length, found {}", describe_number(&value)))
            }
            ParamCheck::CloseTo
            | ParamCheck::LessThan
            | ParamCheck::AtMost
            | ParamCheck::GreaterThan
            | ParamCheck::AtLeast => {
                let limit = value.as_number().and_then(Limit::new);
                let limit =
                    limit.ok_or_else(|| format!("'value' must be a number, found {}", describe_number(&value)))?;
                Ok(match tolerance.and_then(Limit::new) {
                    Some(tolerance) => Self::Near(limit, tolerance),
                    None => Self::Number(limit),
                })
            }
        }
    }
}

/// Describes a value for an error message: a number by its digits, any other value by its type.
fn describe_number(value: &Value) -> String {
    if value.is_number() { value.to_string() } else { type_name(value).to_owned() }
}

/// Converts a float without a fraction, such as `2.0`, to an integer.
fn whole_number(float: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
    (float >= 0.0 && float.fract() == 0.0 && float < 1e15).then_some(float as u64)
}

/// Whether an argument equals the expected value. Scalars are compared as strings, objects and arrays by structure; a
/// string that is compared with an object or an array is parsed as JSON.
fn equal_argument(expected: &Value, actual: &Value) -> bool {
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
    if is_scalar(expected) && is_scalar(actual) {
        return text_form(expected) == text_form(actual);
    }
    match (as_structure(expected), as_structure(actual)) {
        (Some(expected), Some(actual)) => equal_json(&expected, &actual),
        _ => false,
    }
}

fn as_structure(value: &Value) -> Option<Cow<'_, Value>> {
    match value {
        Value::String(text) => karat_json::parse(text).ok().map(Cow::Owned),
        other => Some(Cow::Borrowed(other)),
    }
}

/// Returns the number of characters, elements or keys.
fn length(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Object(map) => Some(map.len()),
        Value::Number(_) | Value::Bool(_) | Value::Null => None,
    }
}
