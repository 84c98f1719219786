//! JSON text to a value, with a repeated key refused.
//!
//! The usual reader keeps the last of two equal keys, so that one of them asserts nothing in silence.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};

/// A place where the text stops being JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The byte offset in the text.
    pub offset: usize,
    /// What is wrong, as a lower-case fragment.
    pub message: String,
}

impl SyntaxError {
    /// Turns the parser's line and column into an offset, and drops them from its text.
    pub fn new(text: &str, error: &serde_json::Error) -> Self {
        let full = error.to_string();
        let message = match full.rfind(" at line ") {
            Some(end) => full[..end].to_owned(),
            None => full,
        };
        let consumed = offset_of(text, error.line(), error.column());
        let offset = match error.classify() {
            Category::Eof => text.len(),
            // Only a repeated key is an error of this kind, and the parser has just read it.
            Category::Data => key_before(text, consumed),
            Category::Syntax | Category::Io => floor_char_boundary(text, consumed.saturating_sub(1)),
        };
        Self { offset, message }
    }

    /// Returns the error of a key that stands a second time, the last string before `offset`.
    pub fn repeated_key(text: &str, key: &str, offset: usize) -> Self {
        Self { offset: key_before(text, offset), message: repeated(key) }
    }
}

fn repeated(key: &str) -> String {
    format!("the key '{key}' stands twice in one object")
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

/// Returns where the last string before `offset` begins.
fn key_before(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset];
    let is_quote = |&at: &usize| {
        let backslashes = before[..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
        before[at] == b'"' && backslashes % 2 == 0
    };
    (0..offset).rev().filter(is_quote).nth(1).unwrap_or(offset)
}

/// Parses one JSON value; a key that stands twice in one object is an error.
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

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
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
            if map.contains_key(&key) {
                return Err(A::Error::custom(repeated(&key)));
            }
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
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
    #[case("{\"a\": 1,\n \"a\": 2}", 10, "the key 'a' stands twice in one object")]
    #[case(r#"{"é\"": [], "é\"" : 2}"#, 13, "the key 'é\"' stands twice in one object")]
    #[case("{\"cases\": [", 11, "EOF while parsing a list")]
    #[case("[1] x", 4, "trailing characters")]
    #[case("[1e999]", 5, "number out of range")]
    #[case("[\"é\", é]", 7, "expected value")]
    #[case("", 0, "EOF while parsing a value")]
    fn errors_have_their_place(#[case] text: &str, #[case] offset: usize, #[case] message: &str) {
        let error = parse(text).expect_err("not JSON");
        assert_eq!((error.offset, error.message.as_str()), (offset, message));
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let text = "[".repeat(100_000);
        assert!(parse(&text).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_answered_as_the_usual_reader_does(text in "[\\[\\]{}:,\"a1 \\\\un.e-]{0,24}") {
            let usual: Result<Value, _> = serde_json::from_str(&text);
            match (parse(&text), usual) {
                (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
                (Err(error), Ok(_)) => prop_assert!(error.message.contains("twice")),
                (Err(_), Err(_)) => {}
                (Ok(_), Err(error)) => prop_assert!(false, "accepted what is no JSON: {error}"),
            }
        }
    }
}
