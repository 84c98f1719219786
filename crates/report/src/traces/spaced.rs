//! JSON on one line, with spaces where it can be broken.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize as _;
use serde_json::ser::Formatter;
use serde_json::{Serializer, Value};

/// Returns what a text says, and of anything else its JSON.
pub(super) fn text_of(value: &Value) -> Cow<'_, str> {
    if let Value::String(text) = value {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced));
    match (written, String::from_utf8(bytes)) {
        (Ok(()), Ok(text)) => Cow::Owned(text),
        _ => Cow::Owned(value.to_string()),
    }
}

/// Puts a space behind commas and colons.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_can_be_broken_at_spaces() {
        assert_eq!(text_of(&json!({"a": [1, {"b": null}], "c": "x,y:z"})), r#"{"a": [1, {"b": null}], "c": "x,y:z"}"#);
        assert_eq!(text_of(&json!("as it is")), "as it is");
    }
}
