//! The text form of JSON values, and text helpers for messages.

use std::borrow::Cow;
use std::fmt::Display;

use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use crate::number::number_text;

/// Returns the form in which values are compared: a string itself, digits or `String(value)` for other scalars, compact
/// JSON for objects and arrays.
pub fn text_form(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Bool(true) => Cow::Borrowed("true"),
        Value::Bool(false) => Cow::Borrowed("false"),
        Value::Null => Cow::Borrowed("null"),
        Value::Number(number) => Cow::Owned(number_text(number)),
        Value::Array(_) | Value::Object(_) => {
            let mut out = String::new();
            write_compact(value, &mut out);
            Cow::Owned(out)
        }
    }
}

fn write_compact(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_compact(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write_compact(item, out);
            }
            out.push('}');
        }
        Value::String(text) => write_string(text, out),
        Value::Number(_) | Value::Bool(_) | Value::Null => out.push_str(&text_form(value)),
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push_str(&Value::String(text.to_owned()).to_string());
}

/// Truncates `text` to `limit` characters, ending in `…` if truncated.
pub fn shorten(text: &str, limit: usize) -> Cow<'_, str> {
    if text.char_indices().nth(limit).is_none() {
        return Cow::Borrowed(text);
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    Cow::Owned(format!("{kept}…"))
}

/// Whether a string is printable ASCII only.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Returns the width of a string in terminal columns.
pub fn display_width(text: &str) -> usize {
    if is_plain(text) {
        return text.len();
    }
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// Formats a list as `['a', 'b']`.
pub fn quoted_list<T: AsRef<str>>(items: &[T]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("'{}'", item.as_ref())).collect();
    format!("[{}]", quoted.join(", "))
}

/// Formats a count with its noun, in the plural unless it is 1.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Converts a name to snake case: `ResponseQuality` and `response-quality` become `response_quality`. Adjacent capitals
/// are one word: `JSONReply` becomes `json_reply`.
pub fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut previous = '_';
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '-' | ' ' | '.' | '_' => out.push('_'),
            _ if character.is_uppercase() => {
                let is_followed_by_lowercase = characters.peek().is_some_and(|next| next.is_lowercase());
                if previous.is_lowercase()
                    || previous.is_ascii_digit()
                    || previous.is_uppercase() && is_followed_by_lowercase
                {
                    out.push('_');
                }
                out.extend(character.to_lowercase());
            }
            _ => out.push(character),
        }
        previous = character;
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case(json!(5), "5")]
    #[case(json!(5.0), "5")]
    #[case(json!(-0.0), "0")]
    #[case(json!(178.50), "178.5")]
    #[case(json!(1e21), "1e+21")]
    #[case(json!(1e-7), "1e-7")]
    #[case(json!(123_456_789_012_345_680_000.0), "123456789012345680000")]
    #[case(json!(9_007_199_254_740_993_u64), "9007199254740993")]
    #[case(json!(true), "true")]
    #[case(json!(null), "null")]
    #[case(json!("as is"), "as is")]
    #[case(json!([1.0, "b", null, {"k": [1, 2]}]), r#"[1,"b",null,{"k":[1,2]}]"#)]
    #[case(json!({"z": 1, "a": "é\n\"/"}), "{\"z\":1,\"a\":\"é\\n\\\"/\"}")]
    fn converts_values_to_text(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(text_form(&value), expected);
    }

    #[rstest]
    #[case("ResponseQuality", "response_quality")]
    #[case("response-quality", "response_quality")]
    #[case("eval_toneOfVoice2", "eval_tone_of_voice2")]
    #[case("Top3Results", "top3_results")]
    #[case("TONE", "tone")]
    #[case("JSONReply", "json_reply")]
    #[case("Tone Of.Voice", "tone_of_voice")]
    fn converts_names_to_snake_case(#[case] name: &str, #[case] expected: &str) {
        assert_eq!(snake_case(name), expected);
    }

    #[test]
    fn shorten_counts_characters() {
        assert_eq!(shorten("héllo", 5), "héllo");
        assert_eq!(shorten("héllo!", 5), "héll…");
    }
}
