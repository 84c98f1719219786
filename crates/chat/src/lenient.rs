//! Lenient access to JSON values that sources encode in different ways.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// How many times JSON text may be encoded as a JSON string.
const MAX_ENCODINGS: usize = 4;

/// Parses a string that contains a JSON object or list, and returns any other value unchanged. New exporters write
/// structured values into attributes, old ones their JSON text.
pub fn unpack(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::String(text) => match parse_nested(text) {
            Some(inner) => Cow::Owned(inner),
            None => Cow::Borrowed(value),
        },
        other => Cow::Borrowed(other),
    }
}

/// Like [`unpack`], but returns an owned value.
pub fn unpack_owned(value: &Value) -> Value {
    unpack(value).into_owned()
}

/// Parses text that contains a JSON object or list, possibly encoded as a JSON string. Scalars are not parsed: a
/// text such as `42` is valid JSON only by coincidence.
pub fn parse_nested(text: &str) -> Option<Value> {
    let mut decoded = None::<String>;
    for _ in 0..MAX_ENCODINGS {
        let current = decoded.as_deref().unwrap_or(text).trim();
        match (current.as_bytes().first()?, current.as_bytes().last()?) {
            (b'{', b'}') | (b'[', b']') => return serde_json::from_str(current).ok(),
            (b'"', b'"') => decoded = Some(serde_json::from_str(current).ok()?),
            _ => return None,
        }
    }
    None
}

/// Maximum number of characters of invalid JSON that a message quotes.
const MAX_QUOTED_CHARS: usize = 20;

/// Why input is not valid JSON, without the position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJson {
    #[error("invalid JSON: the input is empty")]
    Empty,
    #[error("invalid JSON: starts with '{0}'")]
    StartsWith(String),
    #[error("invalid JSON: {0}")]
    Syntax(String),
}

/// Explains why input is not valid JSON.
pub fn json_error(text: &[u8], error: &serde_json::Error) -> InvalidJson {
    let text = text.trim_ascii();
    if text.is_empty() {
        return InvalidJson::Empty;
    }
    if error.is_eof() {
        return InvalidJson::Syntax("unexpected end of input".to_owned());
    }
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    let reason = match message {
        "expected value" | "expected ident" if !matches!(text[0], b'{' | b'[' | b'"') => {
            let text = String::from_utf8_lossy(text);
            let first_word = text.split_ascii_whitespace().next().unwrap_or_default();
            let quoted: String = first_word.chars().take(MAX_QUOTED_CHARS).collect();
            let more = if quoted.len() < first_word.len() { "…" } else { "" };
            return InvalidJson::StartsWith(format!("{quoted}{more}"));
        }
        "expected value" | "expected ident" => "expected a value",
        "key must be a string" => "object keys must be in double quotes",
        "trailing characters" => "unexpected characters after the end",
        "recursion limit exceeded" => "nested more than 127 levels deep",
        "control character (\\u0000-\\u001F) found while parsing a string" => "unescaped control character in a string",
        "invalid unicode code point" => "a string is not valid UTF-8",
        "invalid escape" => "invalid escape sequence",
        other => other,
    };
    InvalidJson::Syntax(reason.to_owned())
}

/// Like [`json_error`], with the position in the text.
pub fn json_error_with_position(text: &[u8], error: &serde_json::Error) -> String {
    let reason = json_error(text, error);
    // In a misspelt literal, the parser's position is off by one.
    if error.column() == 0 || error.line() == 1 && matches!(reason, InvalidJson::StartsWith(_)) {
        return reason.to_string();
    }
    format!("{reason} (line {}, column {})", error.line(), error.column())
}

/// Replaces escaped lone surrogates, which truncating a string can produce, with the replacement character. Returns
/// `None` if there are none.
pub fn replace_lone_surrogates(json: &[u8]) -> Option<Vec<u8>> {
    fn unit(json: &[u8]) -> Option<u16> {
        let digits = json.strip_prefix(b"\\u")?.get(..4)?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }
    let mut repaired = Vec::new();
    let mut rest = json;
    let mut has_lone_surrogate = false;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (before, escape) = rest.split_at(at);
        repaired.extend_from_slice(before);
        let length = match unit(escape) {
            Some(0xd800..=0xdbff)
                if escape.get(6..).and_then(unit).is_some_and(|low| (0xdc00..=0xdfff).contains(&low)) =>
            {
                12
            }
            Some(0xd800..=0xdfff) => {
                has_lone_surrogate = true;
                repaired.extend_from_slice(b"\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            _ => 2,
        };
        let (escape, after) = escape.split_at(length.min(escape.len()));
        repaired.extend_from_slice(escape);
        rest = after;
    }
    repaired.extend_from_slice(rest);
    has_lone_surrogate.then_some(repaired)
}

/// Truncates a string for use in a message.
pub fn truncate(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Returns a string as is, null as an empty string, and anything else as JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the first non-empty string under one of these names.
pub fn first_text<'a>(map: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().filter_map(|name| map.get(*name)?.as_str()).find(|text| !text.is_empty())
}

/// Returns the first non-null value under one of these names.
pub fn first<'a>(map: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().filter_map(|name| map.get(*name)).find(|value| !value.is_null())
}

/// Returns the first unsigned integer under one of these names, written as a number or a string.
pub fn first_count(map: &Map<String, Value>, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| match map.get(*name)? {
        Value::Number(number) => number.as_u64().or_else(|| float_to_u64(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// Returns the first number under one of these names, written as a number or a string.
pub fn first_number(map: &Map<String, Value>, names: &[&str]) -> Option<f64> {
    names
        .iter()
        .find_map(|name| match map.get(*name)? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        })
        .filter(|number: &f64| number.is_finite())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "floats represent every integer of this range exactly"
)]
fn float_to_u64(number: f64) -> Option<u64> {
    ((0.0..=9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

/// Whether a value is null, a blank string, or an empty list or object.
pub fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(r#""a\ud83d""#, Some(r#""a\ufffd""#))]
    #[case(r#""\udc00 \ud83d\ude00 \ud83dx""#, Some(r#""\ufffd \ud83d\ude00 \ufffdx""#))]
    #[case(r#""\ud83d\ude00 \\ud83d \n""#, None)]
    #[case(r#""\ud8"#, None)]
    #[case("\\", None)]
    fn replaces_lone_surrogates(#[case] json: &str, #[case] expected: Option<&str>) {
        assert_eq!(replace_lone_surrogates(json.as_bytes()).as_deref(), expected.map(str::as_bytes));
    }

    #[rstest]
    #[case("{\"a\":1}", Some(json!({"a": 1})))]
    #[case(" [1] ", Some(json!([1])))]
    #[case("\"{\\\"a\\\":1}\"", Some(json!({"a": 1})))]
    #[case("42", None)]
    #[case("true", None)]
    #[case("plain", None)]
    #[case("\"plain\"", None)]
    #[case("{broken", None)]
    #[case("", None)]
    fn parses_only_objects_and_lists(#[case] text: &str, #[case] expected: Option<Value>) {
        assert_eq!(parse_nested(text), expected);
    }
}
