//! Strict parser of expectations on the response as JSON, and on its similarity to other texts.

use serde_json::Value;

use super::read_expectation::check_pattern;
use super::{SimilarResponse, SimilarTo};
use crate::similarity::SimilarityMethod;
use crate::token;
use karat_json::{ObjectReader, Path, Problems, read_array, read_enum, read_string, read_strings, type_name};

/// Reads patterns in which tokens are resolved; one with tokens is checked when it is used.
pub(super) fn read_patterns_with_tokens(
    value: &Value,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Option<Vec<String>> {
    read_array(value, path, problems, |value, path, problems| {
        let pattern = read_string(value, path, problems)?;
        if !token::contains_token(&pattern) {
            check_pattern(&pattern, path, problems)?;
        }
        Some(pattern)
    })
}

pub(super) fn read_similar(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<SimilarResponse> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let to = object.required("to", path, problems, read_texts);
    let method = object.required("method", path, problems, |value, path, problems| {
        let names = SimilarityMethod::ALL.map(SimilarityMethod::name);
        read_enum(value, path, problems, &names, SimilarityMethod::from_name)
    });
    let at_least = object.required("atLeast", path, problems, read_fraction);
    object.close(path, problems);
    Some(SimilarResponse { to: to?, method: method?, at_least: at_least? })
}

fn read_texts(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<SimilarTo> {
    match value {
        Value::String(text) => Some(SimilarTo::Text(text.clone())),
        Value::Array(texts) if texts.is_empty() => {
            problems.at(path, format!("{} is empty: give at least one text", path.name()));
            None
        }
        Value::Array(_) => read_strings(value, path, problems).map(SimilarTo::Any),
        other => {
            let message =
                format!("{} must be a string or an array of strings, found {}", path.name(), type_name(other));
            problems.at(path, message);
            None
        }
    }
}

/// Reads a number from 0 to 1.
fn read_fraction(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<f64> {
    let fraction = value.as_f64().filter(|fraction| (0.0..=1.0).contains(fraction));
    if fraction.is_none() {
        let found = if value.is_number() { value.to_string() } else { type_name(value).to_owned() };
        problems.at(path, format!("{} must be a number from 0 to 1, found {found}", path.name()));
    }
    fraction
}
