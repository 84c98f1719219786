//! Parses JSON and rejects duplicate keys.
//!
//! `serde_json` keeps the last of two equal keys, so that one of them would be ignored silently.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::map::Entry;
use serde_json::{Map, Value};

/// The key of the map in which `serde_json` passes a number to a visitor that is not a 64-bit integer.
const NUMBER_KEY: &str = "$serde_json::private::Number";

/// A syntax error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte offset in the text.
    pub offset: usize,
    /// A lower-case fragment.
    pub message: String,
}

impl SyntaxError {
    /// Converts the parser's line and column to an offset, and removes them from its message.
    pub fn new(text: &str, error: &serde_json::Error) -> Self {
        let full = error.to_string();
        let message = match full.rfind(" at line ") {
            Some(end) => full[..end].to_owned(),
            None => full,
        };
        let consumed = offset_of(text, error.line(), error.column());
        let offset = match error.classify() {
            Category::Eof => text.len(),
            // Only duplicate keys cause data errors, and the parser has just read the key.
            Category::Data => key_before(text, consumed),
            Category::Syntax | Category::Io => floor_char_boundary(text, consumed.saturating_sub(1)),
        };
        match trailing_comma(text, offset) {
            Some(offset) => Self { offset, message: "trailing comma".to_owned() },
            None => Self { offset, message },
        }
    }

    /// Returns the error for a duplicate key, the last string before `offset`.
    pub fn duplicate_key(text: &str, key: &str, offset: usize) -> Self {
        Self { offset: key_before(text, offset), message: duplicate_key_message(key) }
    }
}

/// Returns the offset of a trailing comma before the closing bracket at `offset`. The parser itself reports only that it
/// expected a key or a value.
fn trailing_comma(text: &str, offset: usize) -> Option<usize> {
    let is_closing = matches!(text.as_bytes().get(offset), Some(b'}' | b']'));
    let before = text[..offset].trim_end();
    (is_closing && before.ends_with(',')).then(|| before.len() - 1)
}

fn duplicate_key_message(key: &str) -> String {
    format!("duplicate key '{key}'")
}

fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (start + column).min(text.len())
}

fn floor_char_boundary(text: &str, mut offset: usize) -> usize {
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Returns the start of the last string before `offset`.
fn key_before(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset];
    let is_quote = |&at: &usize| {
        let backslashes = before[..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
        before[at] == b'"' && backslashes % 2 == 0
    };
    (0..offset).rev().filter(is_quote).nth(1).unwrap_or(offset)
}

/// Parses one JSON value; a duplicate key is an error.
pub fn parse(text: &str) -> Result<Value, SyntaxError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    ValueSeed
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| SyntaxError::new(text, &error))
}

#[derive(Clone, Copy)]
struct ValueSeed;

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if key == NUMBER_KEY && map.is_empty() {
                return entries.next_value::<String>()?.parse().map(Value::Number).map_err(A::Error::custom);
            }
            match map.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(entries.next_value_seed(self)?);
                }
                Entry::Occupied(entry) => return Err(A::Error::custom(duplicate_key_message(entry.key()))),
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("{\"a\": 1,\n \"a\": 2}", 10, "duplicate key 'a'")]
    #[case(r#"{"é\"": [], "é\"" : 2}"#, 13, "duplicate key 'é\"'")]
    #[case("{\"cases\": [", 11, "EOF while parsing a list")]
    #[case("[1] x", 4, "trailing characters")]
    #[case("[\"é\", é]", 7, "expected value")]
    #[case("{\"a\": 1,\n}", 7, "trailing comma")]
    #[case("[1, 2 ,]", 6, "trailing comma")]
    #[case("[{\"a\": [1,]}]", 9, "trailing comma")]
    #[case("", 0, "EOF while parsing a value")]
    fn errors_have_an_offset(#[case] text: &str, #[case] offset: usize, #[case] message: &str) {
        let error = parse(text).expect_err("not JSON");
        assert_eq!((error.offset, error.message.as_str()), (offset, message));
    }

    #[test]
    fn numbers_keep_their_digits() {
        let text = "[12345678901234567890123,1.50,-0,1e+999,9007199254740993]";
        assert_eq!(parse(text).expect("JSON").to_string(), text);
        // `serde_json` writes the sign of an exponent.
        assert_eq!(parse("1E999").expect("JSON").to_string(), "1e+999");
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let text = "[".repeat(100_000);
        assert!(parse(&text).is_err());
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in "[\\[\\]{}:,\"a1 \\\\un.e-]{0,24}") {
            let reference: Result<Value, _> = serde_json::from_str(&text);
            match (parse(&text), reference) {
                (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
                (Err(error), Ok(_)) => prop_assert!(error.message.contains("duplicate")),
                (Err(_), Err(_)) => {}
                (Ok(_), Err(error)) => prop_assert!(false, "accepted invalid JSON: {error}"),
            }
        }
    }
}
