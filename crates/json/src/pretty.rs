//! Indented JSON.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Writes a value with an indentation of two spaces: the same bytes as `serde_json::to_writer_pretty`, which writes each
/// level of the indentation on its own, in two thirds of the time.
pub fn write_pretty(out: impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Pretty::default()))
}

#[derive(Default)]
struct Pretty {
    depth: usize,
    /// Whether the list or object that ends next has a member.
    has_member: bool,
}

/// The start of a line, with the comma before it and the indentation of 32 levels.
const LINE: &[u8; 66] = b",\n                                                                ";

impl Pretty {
    fn begin(&mut self, out: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_member = false;
        out.write_all(bracket)
    }

    fn end(&mut self, out: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_member {
            self.line(out, true)?;
        }
        out.write_all(bracket)
    }

    /// Starts a line, after a comma unless it is the first or last one of a list.
    fn line(&self, out: &mut (impl Write + ?Sized), is_outer: bool) -> io::Result<()> {
        let start = usize::from(is_outer);
        if let Some(line) = LINE.get(start..2 + 2 * self.depth) {
            return out.write_all(line);
        }
        out.write_all(&LINE[start..])?;
        (LINE.len() / 2 - 1..self.depth).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Pretty {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.line(out, is_first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_member = true;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.line(out, is_first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_member = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn pretty(value: &Value) -> String {
        let mut out = Vec::new();
        write_pretty(&mut out, value).expect("written");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn equals_the_form_of_serde_json_at_any_depth() {
        let mut value = json!({"a": [], "b": {}, "c": [1, "x", {"d": null}, [[]]]});
        for depth in 0..70 {
            assert_eq!(pretty(&value), serde_json::to_string_pretty(&value).expect("serializes"), "{depth}");
            value = if depth % 2 == 0 { json!([true, value]) } else { json!({ "e": value, "f": 1.5 }) };
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i32>().prop_map(Value::from), "[a\"\\\\\\n]{0,4}".prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-z]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn equals_the_form_of_serde_json(value in json()) {
            prop_assert_eq!(pretty(&value), serde_json::to_string_pretty(&value).expect("serializes"));
        }
    }
}
