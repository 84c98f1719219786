//! Compares actual with expected values.
//!
//! Objects match as subsets, lists element by element, numbers by value regardless of notation. An object with a single
//! key that starts with `$` is an operator.

use std::cmp::Ordering;
use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value};

/// How much of a value a message shows.
const MAX_PREVIEW_CHARS: usize = 300;

/// Returns the first mismatch with its path, which starts with `at`, or `None` if the value matches.
pub fn mismatch(want: &Value, got: &Value, at: &str) -> Option<String> {
    if let Some((operator, argument)) = as_operator(want) {
        return apply(operator, argument, got, at);
    }
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => mismatch_in_object(want, got, at),
        (Value::Object(_), _) => Some(format!("{at}: {} is not an object", preview(got))),
        (Value::Array(want), Value::Array(got)) if want.len() == got.len() => {
            let mut pairs = want.iter().zip(got).enumerate();
            pairs.find_map(|(index, (want, got))| mismatch(want, got, &format!("{at}[{index}]")))
        }
        (Value::Number(_), Value::Number(_)) if same_number(want, got) => None,
        _ if want == got => None,
        _ => Some(format!("{at}: {} is not {}", preview(got), preview(want))),
    }
}

fn mismatch_in_object(want: &Map<String, Value>, got: &Map<String, Value>, at: &str) -> Option<String> {
    want.iter().find_map(|(key, want)| {
        let at = format!("{at}.{key}");
        match (is_absent(want), got.get(key)) {
            (true, None | Some(Value::Null)) => None,
            (true, Some(got)) => Some(format!("{at}: present: {}", preview(got))),
            (false, None) => Some(format!("{at}: missing")),
            (false, Some(got)) => mismatch(want, got, &at),
        }
    })
}

/// Whether a rule expects the value to be absent.
pub(super) fn is_absent(want: &Value) -> bool {
    matches!(as_operator(want), Some(("$absent", Value::Bool(true))))
}

/// Returns the operator and its argument, if the rule is an operator.
pub(super) fn as_operator(want: &Value) -> Option<(&str, &Value)> {
    let map = want.as_object().filter(|map| map.len() == 1)?;
    map.iter().next().map(|(key, argument)| (key.as_str(), argument)).filter(|(key, _)| key.starts_with('$'))
}

fn apply(operator: &str, argument: &Value, got: &Value, at: &str) -> Option<String> {
    let unless =
        |is_match: bool, relation: &str| (!is_match).then(|| format!("{at}: {} {relation} {argument}", preview(got)));
    match operator {
        "$any" => None,
        "$prefix" => {
            let starts = got.as_str().zip(argument.as_str()).is_some_and(|(got, prefix)| got.starts_with(prefix));
            unless(starts, "does not start with")
        }
        "$has" => {
            let text = as_text(got);
            let single = std::slice::from_ref(argument);
            let needed = argument.as_array().map_or(single, Vec::as_slice);
            let missing: Vec<_> =
                needed.iter().filter(|part| !contains(&text, part)).map(ToString::to_string).collect();
            (!missing.is_empty()).then(|| format!("{at}: {} lacks {}", preview(got), missing.join(", ")))
        }
        "$lacks" => unless(!contains(&as_text(got), argument), "contains"),
        "$len" => {
            unless(length(got).is_some_and(|length| argument.as_u64() == Some(length as u64)), "does not have length")
        }
        "$set" => unless(as_set(got) == as_set(argument), "is not the set"),
        "$min" => unless(numbers(got, argument).is_some_and(|(got, min)| got >= min), "is below"),
        "$max" => unless(numbers(got, argument).is_some_and(|(got, max)| got <= max), "is above"),
        "$near" => {
            let near = |(got, want): (f64, f64)| (got - want).abs() < 1e-9 + want.abs() * 1e-6;
            unless(numbers(got, argument).is_some_and(near), "is not near")
        }
        "$hex" => {
            let is_hex = |text: &str| {
                argument.as_u64() == Some(text.len() as u64)
                    && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            };
            unless(got.as_str().is_some_and(is_hex), "is not hex of length")
        }
        "$either" => {
            let alternatives = argument.as_array().map_or(&[][..], Vec::as_slice);
            unless(alternatives.iter().any(|rule| mismatch(rule, got, at).is_none()), "matches none of")
        }
        "$absent" => unless(got.is_null(), "is not absent:"),
        _ => Some(format!("{at}: unknown operator '{operator}'")),
    }
}

fn same_number(left: &Value, right: &Value) -> bool {
    left == right || numbers(left, right).is_some_and(|(left, right)| left.partial_cmp(&right) == Some(Ordering::Equal))
}

fn numbers(left: &Value, right: &Value) -> Option<(f64, f64)> {
    left.as_f64().zip(right.as_f64())
}

fn contains(text: &str, part: &Value) -> bool {
    part.as_str().is_some_and(|part| text.contains(part))
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Object(map) => Some(map.len()),
        _ => None,
    }
}

/// Returns the sorted strings of the elements, for comparison regardless of order. Null is the empty set.
fn as_set(value: &Value) -> Option<Vec<String>> {
    let items = match value {
        Value::Null => &[],
        value => value.as_array()?.as_slice(),
    };
    let mut texts: Vec<String> = items.iter().map(as_text).collect();
    texts.sort();
    Some(texts)
}

/// Returns a string unchanged, and anything else as JSON with a space after each comma and colon.
fn as_text(value: &Value) -> String {
    if let Value::String(text) = value {
        return text.clone();
    }
    let mut out = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut out, SpacedFormatter));
    written.expect("serialise JSON");
    String::from_utf8(out).expect("JSON is UTF-8")
}

fn preview(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_PREVIEW_CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Writes JSON on one line with spaces.
struct SpacedFormatter;

impl Formatter for SpacedFormatter {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}
