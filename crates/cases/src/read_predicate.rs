//! Strict parser of conditions on JSON values and of whole calls.

use serde_json::{Map, Number, Value};

use super::read_expectation::{check_pattern, check_tool_name};
use super::{CallsMatch, ExpectedCall, ExpectedCalls, JsonPredicate, ParamCheck, ParamsMatch};
use crate::token;
use karat_json::{
    ObjectReader, Path, Problems, Subject, read_array, read_bool, read_count, read_enum, read_object_map, read_pointer,
    read_string, type_name,
};

/// The members of a condition that `toolParams` and the other lists of conditions share.
pub(super) struct Condition {
    pub(super) assertion: ParamCheck,
    pub(super) path: String,
    pub(super) value: Option<Value>,
    pub(super) tolerance: Option<Number>,
    pub(super) optional: bool,
}

impl Condition {
    /// Reads the members; the caller closes the object.
    pub(super) fn read(object: &mut ObjectReader<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let assertion = object.required("assertion", path, problems, |value, path, problems| {
            read_enum(value, path, problems, &ParamCheck::NAMES, ParamCheck::from_name)
        });
        let pointer = object.optional("path", path, problems, read_pointer).unwrap_or_default();
        let expected = object.raw("value").cloned();
        let has_tolerance = object.raw("tolerance").is_some();
        let tolerance = object.optional("tolerance", path, problems, read_tolerance);
        let optional = object.optional("optional", path, problems, read_bool).unwrap_or_default();
        let assertion = assertion?;
        match &expected {
            None if assertion.needs_value() => {
                problems.at(path, format!("'value' is missing: the assertion '{}' needs one", assertion.name()));
                return None;
            }
            None => {}
            Some(expected) => check_value(assertion, expected, &path.key("value"), problems)?,
        }
        match (assertion, has_tolerance) {
            (ParamCheck::CloseTo, false) => {
                problems.at(path, "'tolerance' is missing: the assertion 'closeTo' needs one");
                return None;
            }
            (ParamCheck::CloseTo, true) | (_, false) => {}
            (_, true) => {
                let message = format!("'tolerance' is only valid with 'closeTo', not with '{}'", assertion.name());
                problems.push(&path.key("tolerance"), Subject::Key, message, None);
                return None;
            }
        }
        Some(Self { assertion, path: pointer, value: expected, tolerance, optional })
    }
}

pub(super) fn read_predicates(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<JsonPredicate>> {
    read_array(value, path, problems, |value, path, problems| {
        let mut object = ObjectReader::open(value, path, problems)?;
        let condition = Condition::read(&mut object, path, problems);
        object.close(path, problems);
        let Condition { assertion, path, value, tolerance, optional } = condition?;
        Some(JsonPredicate { path, assertion, value, tolerance, optional })
    })
}

pub(super) fn read_calls(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<ExpectedCalls> {
    if value.is_array() {
        let help = "put the calls into 'list': {\"match\": \"exact\", \"list\": […]}".to_owned();
        problems.push(path, Subject::Value, "'calls' must be an object, found an array".to_owned(), Some(help));
        return None;
    }
    let mut object = ObjectReader::open(value, path, problems)?;
    let match_mode = object.optional("match", path, problems, |value, path, problems| {
        read_enum(value, path, problems, &CallsMatch::NAMES, CallsMatch::from_name)
    });
    let mode = match_mode.unwrap_or_default();
    let list =
        object.optional("list", path, problems, |value, path, problems| read_call_list(value, mode, path, problems));
    let any_of = object.optional("anyOf", path, problems, |value, path, problems| {
        let lists =
            read_array(value, path, problems, |value, path, problems| read_call_list(value, mode, path, problems))?;
        if lists.is_empty() {
            problems.at(path, "'anyOf' needs at least one list");
            return None;
        }
        Some(lists)
    });
    let forbidden = object.optional("forbidden", path, problems, |value, path, problems| {
        read_array(value, path, problems, read_expected_call)
    });
    let [has_match, has_list, has_any_of, has_forbidden] =
        ["match", "list", "anyOf", "forbidden"].map(|key| object.raw(key).is_some());
    object.close(path, problems);
    if has_list && has_any_of {
        let message = "'anyOf' replaces 'list': use only one of them".to_owned();
        problems.push(&path.key("anyOf"), Subject::Key, message, None);
    }
    if !has_list && !has_any_of && !has_forbidden {
        problems.at(path, "'calls' needs 'list', 'anyOf' or 'forbidden'");
    } else if has_match && !has_list && !has_any_of {
        let message = "'match' needs 'list' or 'anyOf', which are missing".to_owned();
        problems.push(&path.key("match"), Subject::Key, message, None);
    }
    Some(ExpectedCalls { match_mode, list, any_of, forbidden })
}

fn read_call_list(
    value: &Value,
    mode: CallsMatch,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Option<Vec<ExpectedCall>> {
    let list = read_array(value, path, problems, read_expected_call)?;
    if list.is_empty() && !mode.needs_every_call() {
        let help = "for no call at all, use \"exact\"".to_owned();
        let message = format!("{} is empty, which every answer matches with '{}'", path.name(), mode.name());
        problems.push(path, Subject::Value, message, Some(help));
        return None;
    }
    Some(list)
}

fn read_expected_call(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<ExpectedCall> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let tool = object.required("tool", path, problems, |value, path, problems| {
        let tool = read_string(value, path, problems)?;
        check_tool_name(&tool, path, problems);
        Some(tool)
    });
    let params: Option<Map<String, Value>> = object.optional("params", path, problems, read_object_map);
    let params_match = object.optional("paramsMatch", path, problems, |value, path, problems| {
        read_enum(value, path, problems, &ParamsMatch::NAMES, ParamsMatch::from_name)
    });
    let ignore = object
        .optional("ignore", path, problems, |value, path, problems| read_array(value, path, problems, read_pointer));
    let conditions = object.optional("where", path, problems, read_predicates);
    let result = object.optional("result", path, problems, read_predicates);
    let success = object.optional("success", path, problems, read_bool);
    let step = object.optional("step", path, problems, read_count);
    object.close(path, problems);
    Some(ExpectedCall {
        tool: tool?,
        params,
        params_match,
        ignore: ignore.unwrap_or_default(),
        conditions: conditions.unwrap_or_default(),
        result: result.unwrap_or_default(),
        success,
        step,
    })
}

fn read_tolerance(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Number> {
    match value {
        Value::Number(number) if number.as_f64().is_some_and(|float| float >= 0.0) => Some(number.clone()),
        other => {
            let found = if other.is_number() { other.to_string() } else { type_name(other).to_owned() };
            problems.at(path, format!("'tolerance' must be a number of at least 0, found {found}"));
            None
        }
    }
}

fn check_value(assertion: ParamCheck, value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<()> {
    match (assertion, value) {
        (ParamCheck::OneOf, Value::Array(items)) if items.is_empty() => {
            problems.at(path, "'value' is an empty list, which no argument can match");
            None
        }
        (ParamCheck::OneOf, Value::Array(_)) => Some(()),
        (ParamCheck::OneOf, Value::String(text)) if token::is_single_token(text) => Some(()),
        (ParamCheck::OneOf, other) => {
            let message = format!("'value' must be an array or one token for 'oneOf', found {}", type_name(other));
            problems.at(path, message);
            None
        }
        // A pattern with tokens is known only at run time.
        (ParamCheck::Matches, Value::String(pattern)) if token::contains_token(pattern) => Some(()),
        (ParamCheck::Matches, Value::String(pattern)) => check_pattern(pattern, path, problems),
        (ParamCheck::Matches, other) => {
            problems.at(path, format!("'value' must be a pattern for 'matches', found {}", type_name(other)));
            None
        }
        (check, Value::String(text)) if expects_number(check) && token::is_single_token(text) => Some(()),
        (ParamCheck::HasLength, value) => read_count(value, path, problems).map(|_| ()),
        (check, value) if check.is_numeric() && !value.is_number() => {
            let found = type_name(value);
            problems.at(path, format!("'value' must be a number or one token for '{}', found {found}", check.name()));
            None
        }
        _ => Some(()),
    }
}

fn expects_number(check: ParamCheck) -> bool {
    check.is_numeric() || check == ParamCheck::HasLength
}
