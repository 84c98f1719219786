//! Predicates on a JSON value: `equals`, `contains`, `atLeast` and so on.

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::tally::Tally;
use crate::case::{ParamAssertion, ParamCheck};
use crate::token::TokenSources;
use karat_json::text::{quoted_list, text_form};
use karat_json::{Decimal, equal_json, number_text, type_name};
use karat_pattern::Pattern;

/// A predicate with its tokens resolved.
pub(super) struct Predicate {
    check: ParamCheck,
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
    pub(super) fn resolve(
        assertion: &ParamAssertion,
        tokens: &TokenSources,
        tally: &mut Tally,
    ) -> Result<Option<Self>, String> {
        let check = assertion.assertion;
        let (Some(value), true) = (&assertion.value, check.needs_value()) else {
            return Ok(Some(Self { check, expected: Expected::Presence }));
        };
        if check == ParamCheck::OneOf {
            let list = tokens.resolve_list(value);
            tally.record_unresolved(list.unresolved);
            return Ok((!list.values.is_empty()).then_some(Self { check, expected: Expected::List(list.values) }));
        }
        let value = match tokens.resolve_value(value) {
            Ok(value) => value,
            Err(unresolved) => {
                tally.record_unresolved(unresolved);
                return Ok(None);
            }
        };
        let expected = Expected::new(check, value, assertion.tolerance.as_ref())?;
        Ok(Some(Self { check, expected }))
    }

    /// Checks the value of an argument; an absent argument passes only `notExists`.
    pub(super) fn test(&self, actual: Option<&Value>) -> Result<(), String> {
        let Some(actual) = actual else {
            return match self.check {
                ParamCheck::NotExists => Ok(()),
                _ => Err(format!("expected {} but the parameter is absent", self.describe())),
            };
        };
        if self.holds(actual)? {
            return Ok(());
        }
        Err(format!("expected {} but got '{}'", self.describe(), text_form(actual)))
    }

    fn holds(&self, actual: &Value) -> Result<bool, String> {
        let decimal = || actual.as_number().and_then(Decimal::new);
        Ok(match &self.expected {
            Expected::Presence => self.check == ParamCheck::Exists,
            Expected::Value(expected) => equal_argument(expected, actual) == (self.check == ParamCheck::Equals),
            Expected::List(expected) => expected.iter().any(|item| equal_argument(item, actual)),
            Expected::Text(expected) => {
                text_form(actual).contains(expected.as_str()) == (self.check == ParamCheck::Contains)
            }
            Expected::Pattern(_, pattern) => pattern.is_match(&text_form(actual)).map_err(|error| error.to_string())?,
            Expected::Near(Limit(_, center), Limit(_, tolerance)) => {
                decimal().is_some_and(|actual| actual.distance(center) <= *tolerance)
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

    fn describe(&self) -> String {
        match (&self.expected, self.check) {
            (Expected::Presence, ParamCheck::NotExists) => "no parameter of this name".to_owned(),
            (Expected::Presence, _) => "a value".to_owned(),
            (Expected::Value(value), ParamCheck::NotEquals) => format!("a value other than '{}'", text_form(value)),
            (Expected::Value(value), _) => format!("'{}'", text_form(value)),
            (Expected::List(values), _) => {
                format!("one of {}", quoted_list(&values.iter().map(text_form).collect::<Vec<_>>()))
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
