//! Single-line JSON with spaces, so that it can be wrapped.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize as _;
use serde_json::ser::Formatter;
use serde_json::{Serializer, Value};

/// Returns a string as is, and other values as JSON.
pub(crate) fn json_text(value: &Value) -> Cow<'_, str> {
    if let Value::String(text) = value {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, SpacedFormatter));
    match (written, String::from_utf8(bytes)) {
        (Ok(()), Ok(text)) => Cow::Owned(text),
        _ => Cow::Owned(value.to_string()),
    }
}

/// Adds a space after commas and colons.
struct SpacedFormatter;

impl Formatter for SpacedFormatter {
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
    fn adds_spaces_after_commas_and_colons() {
        assert_eq!(
            json_text(&json!({"a": [1, {"b": null}], "c": "x,y:z"})),
            r#"{"a": [1, {"b": null}], "c": "x,y:z"}"#
        );
        assert_eq!(json_text(&json!("as it is")), "as it is");
    }
}
