//! Values that sources write in several ways.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// How many texts may be within each other.
const DEEPEST: usize = 4;

/// Returns what a JSON text says where a value is the text of an object or a list, and else the value itself.
/// Attributes hold structured values in new exporters and their JSON text in old ones.
pub(crate) fn unpacked(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::String(text) => match parsed(text) {
            Some(inner) => Cow::Owned(inner),
            None => Cow::Borrowed(value),
        },
        other => Cow::Borrowed(other),
    }
}

/// Returns the same as a value of its own.
pub(crate) fn unpacked_copy(value: &Value) -> Value {
    unpacked(value).into_owned()
}

/// Returns the object or list that a text is the JSON of, or the JSON of the JSON. Numbers and words stay text: that `42` is
/// JSON is chance.
pub(crate) fn parsed(text: &str) -> Option<Value> {
    let mut within = None::<String>;
    for _ in 0..DEEPEST {
        let now = within.as_deref().unwrap_or(text).trim();
        match (now.as_bytes().first()?, now.as_bytes().last()?) {
            (b'{', b'}') | (b'[', b']') => return serde_json::from_str(now).ok(),
            (b'"', b'"') => within = Some(serde_json::from_str(now).ok()?),
            _ => return None,
        }
    }
    None
}

/// How much of a text that is no JSON is shown.
const LONGEST_WORD: usize = 20;

/// Why a text is no JSON, for a person. Where in it, the error itself tells.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotJson {
    #[error("empty, and not JSON")]
    Empty,
    #[error("not JSON: it begins with '{0}'")]
    BeginsWith(String),
    #[error("not JSON: {0}")]
    Invalid(String),
}

/// Returns why a text is no JSON.
pub(crate) fn why_no_json(text: &[u8], error: &serde_json::Error) -> NotJson {
    let text = text.trim_ascii();
    if text.is_empty() {
        return NotJson::Empty;
    }
    if error.is_eof() {
        return NotJson::Invalid("it ends too early".to_owned());
    }
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or(&said);
    let why = match said {
        "expected value" | "expected ident" if !matches!(text[0], b'{' | b'[' | b'"') => {
            let text = String::from_utf8_lossy(text);
            let word = text.split_ascii_whitespace().next().unwrap_or_default();
            let shown: String = word.chars().take(LONGEST_WORD).collect();
            let more = if shown.len() < word.len() { "…" } else { "" };
            return NotJson::BeginsWith(format!("{shown}{more}"));
        }
        "expected value" | "expected ident" => "a value is missing or misspelt",
        "key must be a string" => "a name is not in double quotes",
        "trailing comma" => "a comma stands before a closing bracket",
        "trailing characters" => "something follows its end",
        "recursion limit exceeded" => "too deep: more than 127 brackets are open at once",
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            "a line break or another control character stands within a text"
        }
        "invalid unicode code point" => "a text is not UTF-8",
        "invalid escape" => "a backslash stands before something that needs none",
        other => other,
    };
    NotJson::Invalid(why.to_owned())
}

/// Says the same with the place: for a text that nothing else is known of.
pub(crate) fn why_and_where_no_json(text: &[u8], error: &serde_json::Error) -> String {
    let why = why_no_json(text, error);
    // The parser has looked one character further where a word is not what it began as.
    if error.column() == 0 || error.line() == 1 && matches!(why, NotJson::BeginsWith(_)) {
        return why.to_string();
    }
    format!("{why} (line {}, column {})", error.line(), error.column())
}

/// Returns JSON without escapes of half a character, which are written where a text was cut in the middle of one: each
/// becomes the sign for what cannot be read. Returns nothing where there are none.
pub(crate) fn without_half_characters(json: &[u8]) -> Option<Vec<u8>> {
    fn unit(json: &[u8]) -> Option<u16> {
        let digits = json.strip_prefix(b"\\u")?.get(..4)?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }
    let mut mended = Vec::new();
    let mut rest = json;
    let mut found = false;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (before, escape) = rest.split_at(at);
        mended.extend_from_slice(before);
        let length = match unit(escape) {
            Some(0xd800..=0xdbff)
                if escape.get(6..).and_then(unit).is_some_and(|low| (0xdc00..=0xdfff).contains(&low)) =>
            {
                12
            }
            Some(0xd800..=0xdfff) => {
                found = true;
                mended.extend_from_slice(b"\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            _ => 2,
        };
        let (escape, after) = escape.split_at(length.min(escape.len()));
        mended.extend_from_slice(escape);
        rest = after;
    }
    mended.extend_from_slice(rest);
    found.then_some(mended)
}

/// Returns the text of a value: a text as it is, anything else as JSON, and nothing for null.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the first of several names that holds a text with something in it.
pub(crate) fn first_text<'a>(map: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().filter_map(|name| map.get(*name)?.as_str()).find(|text| !text.is_empty())
}

/// Returns the first of several names that holds something.
pub(crate) fn first<'a>(map: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().filter_map(|name| map.get(*name)).find(|value| !value.is_null())
}

/// Returns the first of several names that holds a whole number, written as a number or as text.
pub(crate) fn first_count(map: &Map<String, Value>, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| match map.get(*name)? {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// Returns the first of several names that holds a number, written as a number or as text.
pub(crate) fn first_number(map: &Map<String, Value>, names: &[&str]) -> Option<f64> {
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
    reason = "in the range in which every whole number has its own float"
)]
fn whole(number: f64) -> Option<u64> {
    ((0.0..=9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

/// Tells whether a value says nothing: null, an empty text, an empty list or object.
pub(crate) fn is_blank(value: &Value) -> bool {
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
    fn half_characters_are_replaced(#[case] json: &str, #[case] expected: Option<&str>) {
        assert_eq!(without_half_characters(json.as_bytes()).as_deref(), expected.map(str::as_bytes));
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
    fn only_objects_and_lists_are_unpacked(#[case] text: &str, #[case] expected: Option<Value>) {
        assert_eq!(parsed(text), expected);
    }
}
