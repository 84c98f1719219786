//! Selects parts of a reply by a JSON pointer or a `JSONPath`.

use std::borrow::Cow;

use karat_json::{Path, Problems, member, read_string, type_name};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json_path::JsonPath;

/// A compiled JSON pointer, or a `JSONPath` (RFC 9535) if it starts with `$`.
#[derive(Debug, Clone)]
pub struct Selector {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Pointer(Vec<String>),
    /// The prefix is the longest part of the path that selects at most one value.
    Path {
        path: Box<JsonPath>,
        prefix: Box<JsonPath>,
    },
}

/// Selectors of a placeholder, separated by `??`: the first that finds a value counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alternatives {
    text: String,
    selectors: Vec<Selector>,
}

/// The text at a selector.
#[derive(Debug, PartialEq)]
pub(crate) enum SelectedText<'v> {
    Text(Cow<'v, str>),
    /// Null, or a list without parts.
    Empty,
    Missing,
    /// A value that is not a string: its type.
    NotText(&'static str),
}

impl Selector {
    pub fn parse(text: &str) -> Result<Self, String> {
        let kind = if text.starts_with('$') {
            let parse = |text: &str| JsonPath::parse(text).map(Box::new);
            let path = parse(text).map_err(|error| {
                format!("is not a valid JSONPath at character {}: {}", error.position() + 1, error.message())
            })?;
            // A prefix of a valid path that ends after a segment is valid too.
            let prefix = parse(singular_prefix(text)).unwrap_or_else(|_| path.clone());
            Kind::Path { path, prefix }
        } else if text.is_empty() || text.starts_with('/') {
            let unescape = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
            Kind::Pointer(text.split('/').skip(1).map(unescape).collect())
        } else {
            return Err("must be a JSON pointer that starts with '/', or a JSONPath that starts with '$'".to_owned());
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    pub(crate) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        match Self::parse(&read_string(value, path, problems)?) {
            Ok(selector) => Some(selector),
            Err(message) => {
                problems.at(path, format!("{} {message}", path.name()));
                None
            }
        }
    }

    /// A pointer to a top-level key that needs no escaping.
    pub(crate) fn key(name: &str) -> Self {
        Self { text: format!("/{name}"), kind: Kind::Pointer(vec![name.to_owned()]) }
    }

    /// The pointer to the whole value.
    pub(crate) fn whole() -> Self {
        Self { text: String::new(), kind: Kind::Pointer(Vec::new()) }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the selected value; the last one if there are several.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match &self.kind {
            Kind::Pointer(segments) => resolve_pointer(segments, value),
            Kind::Path { path, .. } => path.query(value).last(),
        }
    }

    /// Like `find`, but null counts as absent.
    pub(crate) fn find_non_null<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match &self.kind {
            Kind::Pointer(segments) => resolve_pointer(segments, value).filter(|value| !value.is_null()),
            Kind::Path { path, .. } => path.query(value).all().into_iter().rev().find(|value| !value.is_null()),
        }
    }

    /// Returns all selected values.
    pub(crate) fn select<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match &self.kind {
            Kind::Pointer(segments) => resolve_pointer(segments, value).into_iter().collect(),
            Kind::Path { path, .. } => path.query(value).all(),
        }
    }

    /// Returns the elements of the selected list, or the values that a `JSONPath` selects if they are not a single list.
    /// Returns `None` if the list is missing or null. The error is the type of a value that is not a list.
    pub(crate) fn list<'v>(&self, value: &'v Value) -> Result<Option<Vec<&'v Value>>, &'static str> {
        let prefix = match &self.kind {
            Kind::Pointer(segments) => {
                return match resolve_pointer(segments, value) {
                    None | Some(Value::Null) => Ok(None),
                    Some(Value::Array(items)) => Ok(Some(items.iter().collect())),
                    Some(other) => Err(type_name(other)),
                };
            }
            Kind::Path { prefix, .. } => prefix,
        };
        Ok(match &self.select(value)[..] {
            [] => prefix.query(value).last().filter(|start| !start.is_null()).map(|_| Vec::new()),
            [Value::Null] => None,
            [Value::Array(items)] => Some(items.iter().collect()),
            nodes => Some(nodes.to_vec()),
        })
    }

    /// Returns the selected text. Several strings are joined, and so are the parts of a list of text parts.
    pub(crate) fn text<'v>(&self, value: &'v Value, separator: &str) -> SelectedText<'v> {
        let nodes = match &self.kind {
            Kind::Pointer(segments) => return resolve_pointer(segments, value).map_or(SelectedText::Missing, text_of),
            Kind::Path { path, .. } => path.query(value).all(),
        };
        let mut texts = Vec::new();
        let mut is_empty = false;
        for node in nodes {
            match text_of(node) {
                SelectedText::Text(text) => texts.push(text),
                SelectedText::Empty | SelectedText::Missing => is_empty = true,
                other @ SelectedText::NotText(_) => return other,
            }
        }
        match texts.len() {
            0 if is_empty => SelectedText::Empty,
            0 => SelectedText::Missing,
            1 => SelectedText::Text(texts.swap_remove(0)),
            _ => SelectedText::Text(Cow::Owned(texts.join(separator))),
        }
    }

    /// Returns the index of the first element of a list in which the selector finds text.
    pub(crate) fn first_index_of_text(&self, list: &Value) -> Option<usize> {
        match &self.kind {
            Kind::Pointer(segments) => {
                let is_text = resolve_pointer(segments, list).is_some_and(has_text);
                segments.first().filter(|_| is_text)?.parse().ok()
            }
            Kind::Path { path, .. } => {
                let located = path.query_located(list);
                let node = located.iter().find(|node| has_text(node.node()))?;
                node.location().first()?.as_index()
            }
        }
    }
}

impl Alternatives {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let selectors = text.split(" ?? ").map(Selector::parse).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), selectors })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the value of the first selector that finds one; null counts as absent.
    pub(crate) fn find_non_null<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.selectors.iter().find_map(|selector| selector.find_non_null(value))
    }
}

fn resolve_pointer<'v>(segments: &[String], value: &'v Value) -> Option<&'v Value> {
    segments.iter().try_fold(value, |value, segment| match value {
        Value::Object(map) => member(map, segment),
        Value::Array(items) if !segment.starts_with('+') && (segment == "0" || !segment.starts_with('0')) => {
            items.get(segment.parse::<usize>().ok()?)
        }
        _ => None,
    })
}

fn has_text(value: &Value) -> bool {
    matches!(text_of(value), SelectedText::Text(text) if !text.is_empty())
}

/// Returns the text of a string or of a list of content parts. Parts of other types, such as reasoning or images, have no text.
pub(crate) fn text_of(value: &Value) -> SelectedText<'_> {
    let parts = match value {
        Value::String(text) => return SelectedText::Text(Cow::Borrowed(text)),
        Value::Null => return SelectedText::Empty,
        Value::Array(parts) if parts.is_empty() => return SelectedText::Empty,
        Value::Array(parts) if parts.iter().any(|part| part_text(part).is_some()) => parts,
        other => return SelectedText::NotText(type_name(other)),
    };
    let mut text = String::new();
    for part in parts {
        match part {
            Value::String(part) => text.push_str(part),
            part if is_part(part) => text.push_str(part_text(part).unwrap_or_default()),
            _ => return SelectedText::NotText("an array"),
        }
    }
    SelectedText::Text(Cow::Owned(text))
}

/// Whether a value is a part of a message's content.
fn is_part(value: &Value) -> bool {
    let has = |key| value.get(key).is_some_and(Value::is_string);
    has("text") || has("type") || has("kind")
}

fn part_text(part: &Value) -> Option<&str> {
    let kind = ["type", "kind"].iter().find_map(|key| part.get(key)?.as_str());
    let is_text = kind.is_none_or(|kind| matches!(kind, "text" | "output_text" | "TextPart"));
    part.get("text").filter(|_| is_text)?.as_str()
}

/// Returns the longest prefix of a valid `JSONPath` that selects at most one value.
fn singular_prefix(path: &str) -> &str {
    let mut end = 1;
    while let Some(length) = singular_segment(&path[end..]) {
        end += length;
    }
    &path[..end]
}

/// Returns the length of the segment at the start, if it is a name or an index.
fn singular_segment(path: &str) -> Option<usize> {
    let trimmed = path.trim_start();
    let skipped = path.len() - trimmed.len();
    if let Some(name) = trimmed.strip_prefix('.') {
        let is_name = |character: char| character.is_alphanumeric() || character == '_' || !character.is_ascii();
        let length = name.find(|character| !is_name(character)).unwrap_or(name.len());
        return (length > 0).then_some(skipped + 1 + length);
    }
    let inner = trimmed.strip_prefix('[')?;
    let selector = inner.trim_start();
    let length = match selector.chars().next()? {
        quote @ ('\'' | '"') => quoted_length(selector, quote)?,
        '-' | '0'..='9' => selector.find(|character: char| character != '-' && !character.is_ascii_digit())?,
        _ => return None,
    };
    let rest = &selector[length..];
    let close = rest.trim_start().strip_prefix(']')?;
    Some(path.len() - close.len())
}

fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return Some(index + 1),
            _ => {}
        }
    }
    None
}

impl PartialEq for Selector {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Selector {}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl JsonSchema for Selector {
    fn schema_name() -> Cow<'static, str> {
        "Selector".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A JSON pointer (`/messages/0/content`; empty for the whole value), or a JSONPath \
                            (`$.messages[-1].content`). Several strings are joined.",
            "type": "string",
            "pattern": "^(/|\\$|$)",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn selector(text: &str) -> Selector {
        Selector::parse(text).expect(text)
    }

    #[rstest]
    #[case("", json!({"a": 1}), Some(json!({"a": 1})))]
    #[case("/a/0/b~1c~0d", json!({"a": [{"b/c~d": 5}]}), Some(json!(5)))]
    #[case("/a/00", json!({"a": [1]}), None)]
    #[case("/a/+0", json!({"a": [1]}), None)]
    #[case("/a/-", json!({"a": [1]}), None)]
    #[case("$.a[-1].b", json!({"a": [{"b": 1}, {"b": 2}]}), Some(json!(2)))]
    #[case("$.a[?@.t=='x'].b", json!({"a": [{"b": 1, "t": "x"}, {"b": 2}]}), Some(json!(1)))]
    #[case("$..b", json!({"a": [{"b": 1}, {"b": 2}]}), Some(json!(2)))]
    fn finds_values(#[case] text: &str, #[case] value: Value, #[case] expected: Option<Value>) {
        assert_eq!(selector(text).find(&value).cloned(), expected);
    }

    #[rstest]
    #[case(json!({"id": 1}), Some(json!(1)))]
    #[case(json!([{"id": null}, {"response": {"id": 2}}, {"response": {"id": 3}}]), Some(json!(3)))]
    #[case(json!({"id": null}), None)]
    fn takes_the_first_alternative_that_finds_a_value(#[case] value: Value, #[case] expected: Option<Value>) {
        let alternatives = Alternatives::parse("/id ?? $[*].response.id").expect("valid");
        assert_eq!(alternatives.find_non_null(&value), expected.as_ref());
    }

    #[test]
    fn every_alternative_must_be_valid() {
        assert!(Alternatives::parse("/id ?? id").is_err() && Alternatives::parse("/id ?? $[").is_err());
    }

    #[rstest]
    #[case("a", "must be a JSON pointer that starts with '/', or a JSONPath that starts with '$'")]
    #[case("$.a[", "is not a valid JSONPath at character")]
    #[case("$a", "is not a valid JSONPath at character")]
    fn rejects_invalid_selectors(#[case] text: &str, #[case] message: &str) {
        let error = Selector::parse(text).expect_err(text);
        assert!(error.starts_with(message), "{error}");
    }

    #[rstest]
    #[case("$", "$")]
    #[case("$.a", "$.a")]
    #[case("$.a[0]['b]'].c[*].d", "$.a[0]['b]'].c")]
    #[case("$['it\\'s'][?@.x]", "$['it\\'s']")]
    #[case("$ .a [ -1 ] [*]", "$ .a [ -1 ]")]
    #[case("$.a..b", "$.a")]
    #[case("$.a[0,1]", "$.a")]
    #[case("$.a[1:2]", "$.a")]
    #[case("$.*", "$")]
    #[case("$.ö_1[\"b\"]", "$.ö_1[\"b\"]")]
    fn finds_the_singular_prefix(#[case] path: &str, #[case] prefix: &str) {
        JsonPath::parse(path).expect(path);
        assert_eq!(singular_prefix(path), prefix);
        JsonPath::parse(prefix).expect(prefix);
    }

    #[rstest]
    #[case("/calls", json!({"calls": [1, 2]}), Ok(Some(2)))]
    #[case("/calls", json!({"calls": []}), Ok(Some(0)))]
    #[case("/calls", json!({"calls": null}), Ok(None))]
    #[case("/calls", json!({}), Ok(None))]
    #[case("/calls", json!({"calls": "x"}), Err("a string"))]
    #[case("$.steps[?@.tool]", json!({"steps": [{"tool": "a"}, {}, {"tool": "b"}]}), Ok(Some(2)))]
    #[case("$.steps[?@.tool]", json!({"steps": [{}]}), Ok(Some(0)))]
    #[case("$.steps[?@.tool]", json!({"steps": []}), Ok(Some(0)))]
    #[case("$.steps[?@.tool]", json!({"steps": null}), Ok(None))]
    #[case("$.steps[?@.tool]", json!({}), Ok(None))]
    #[case("$.messages[-1].calls", json!({"messages": [{"calls": [1, 2, 3]}]}), Ok(Some(3)))]
    #[case("$.messages[-1].calls", json!({"messages": [{}]}), Ok(None))]
    #[case("$..calls[*]", json!({}), Ok(Some(0)))]
    fn reads_lists(#[case] text: &str, #[case] value: Value, #[case] expected: Result<Option<usize>, &'static str>) {
        assert_eq!(selector(text).list(&value).map(|list| list.map(|list| list.len())), expected);
    }

    #[rstest]
    #[case("/a", json!({"a": "x"}), SelectedText::Text("x".into()))]
    #[case("/a", json!({"a": null}), SelectedText::Empty)]
    #[case("/a", json!({"a": []}), SelectedText::Empty)]
    #[case("/a", json!({}), SelectedText::Missing)]
    #[case("/a", json!({"a": 5}), SelectedText::NotText("a number"))]
    #[case("/a", json!({"a": ["x"]}), SelectedText::NotText("an array"))]
    #[case("/a", json!({"a": [{"type": "text", "text": "x"}, {"type": "tool_use"}, {"text": "y"}]}), SelectedText::Text("xy".into()))]
    #[case("/a", json!({"a": [{"type": "reasoning", "text": "hm"}, {"kind": "text", "text": "x"}]}), SelectedText::Text("x".into()))]
    #[case("/a", json!({"a": ["x", {"type": "text", "text": "y"}]}), SelectedText::Text("xy".into()))]
    #[case("/a", json!({"a": [{"type": "text", "text": "y"}, 5]}), SelectedText::NotText("an array"))]
    #[case("$.a[*]", json!({"a": ["x", "y"]}), SelectedText::Text("x-y".into()))]
    #[case("$.a[*]", json!({"a": ["x", null]}), SelectedText::Text("x".into()))]
    #[case("$.a[*]", json!({"a": ["x", 1]}), SelectedText::NotText("a number"))]
    #[case("$.a[*]", json!({"a": []}), SelectedText::Missing)]
    fn reads_texts(#[case] text: &str, #[case] value: Value, #[case] expected: SelectedText<'static>) {
        assert_eq!(selector(text).text(&value, "-"), expected);
    }

    #[rstest]
    #[case("$[*].delta", Some(2))]
    #[case("$[?@.type=='x'].delta", None)]
    #[case("/2/delta", Some(2))]
    #[case("/0/delta", None)]
    fn finds_the_first_text(#[case] text: &str, #[case] expected: Option<usize>) {
        let events = json!([{"type": "start"}, {"delta": ""}, {"delta": "a"}, {"delta": "b"}]);
        assert_eq!(selector(text).first_index_of_text(&events), expected);
    }

    proptest! {
        #[test]
        fn pointers_work_as_in_serde_json(pointer in "(/[a~01+-]{0,3}){0,3}") {
            let value = json!({"a": [[1, 2], {"": 3, "~": 4, "a": 5}], "": {"0": [6], "~1": 7}, "/": 8});
            prop_assert_eq!(selector(&pointer).find(&value), value.pointer(&pointer));
        }

        #[test]
        fn prefixes_end_at_char_boundaries(path in "\\$.{0,30}") {
            prop_assert!(path.starts_with(singular_prefix(&path)));
        }
    }
}
