//! The text form of JSON values, as ECMAScript writes them, and text for messages.

use std::borrow::Cow;

use serde_json::{Number, Value};
use unicode_width::UnicodeWidthChar;

/// Returns the text a value is compared by: `String(value)` for scalars, compact JSON for the rest.
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

/// Returns ECMAScript's `String(number)`: whole numbers past 2^53 round as a double would.
pub fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) => ryu_js::Buffer::new().format(float).to_owned(),
        None => number.to_string(),
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

/// Returns `text` cut to at most `limit` characters, with `…` in place of what was cut.
pub fn shorten(text: &str, limit: usize) -> Cow<'_, str> {
    if text.char_indices().nth(limit).is_none() {
        return Cow::Borrowed(text);
    }
    let keep: String = text.chars().take(limit.saturating_sub(1)).collect();
    Cow::Owned(format!("{keep}…"))
}

/// Tells whether a text holds nothing but printable ASCII, as most do.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Returns how many columns of a terminal a text takes.
pub fn display_width(text: &str) -> usize {
    if is_plain(text) {
        return text.len();
    }
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// Returns `['a', 'b']`, as messages show lists.
pub fn quoted_list<T: AsRef<str>>(items: &[T]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("'{}'", item.as_ref())).collect();
    format!("[{}]", quoted.join(", "))
}

/// Returns a count with its noun.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
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
    #[case(json!(9_007_199_254_740_993_u64), "9007199254740992")]
    #[case(json!(true), "true")]
    #[case(json!(null), "null")]
    #[case(json!("as is"), "as is")]
    #[case(json!([1.0, "b", null, {"k": [1, 2]}]), r#"[1,"b",null,{"k":[1,2]}]"#)]
    #[case(json!({"z": 1, "a": "é\n\"/"}), "{\"z\":1,\"a\":\"é\\n\\\"/\"}")]
    fn text_form_is_ecmascripts(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(text_form(&value), expected);
    }

    #[test]
    fn shorten_counts_characters() {
        assert_eq!(shorten("héllo", 5), "héllo");
        assert_eq!(shorten("héllo!", 5), "héll…");
    }
}
