//! Tests of edits.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

use super::*;
use crate::pointer_key;

fn edited(text: &str, edit: impl FnOnce(&mut JsonText) -> Result<(), EditError>) -> String {
    let mut json = JsonText::read(text).expect("JSON");
    edit(&mut json).expect("a valid edit");
    json.into_text()
}

#[rstest]
#[case::one_line_list("{\n  \"a\": [\"b\"]\n}\n", "/a", "{\n  \"a\": [\"b\", \"new\"]\n}\n")]
#[case::broken_list("{\n  \"a\": [\n    \"b\"\n  ]\n}", "/a", "{\n  \"a\": [\n    \"b\",\n    \"new\"\n  ]\n}")]
#[case::tabs("{\n\t\"a\": [\n\t\t\"b\"\n\t]\n}", "/a", "{\n\t\"a\": [\n\t\t\"b\",\n\t\t\"new\"\n\t]\n}")]
#[case::carriage_returns("[\r\n    1\r\n]\r\n", "", "[\r\n    1,\r\n    \"new\"\r\n]\r\n")]
#[case::byte_order_mark("\u{feff}[1]", "", "\u{feff}[1, \"new\"]")]
#[case::compact(r#"{"a":[1,2],"b":{}}"#, "/a", r#"{"a":[1,2,"new"],"b":{}}"#)]
#[case::padded(r#"{ "a": [ 1 ] }"#, "/a", r#"{ "a": [ 1, "new" ] }"#)]
#[case::empty_list("{\n  \"a\": []\n}", "/a", "{\n  \"a\": [\"new\"]\n}")]
#[case::empty_list_among_multiline_lists(
    "{\n  \"a\": [],\n  \"b\": [\n    1\n  ]\n}",
    "/a",
    "{\n  \"a\": [\n    \"new\"\n  ],\n  \"b\": [\n    1\n  ]\n}"
)]
#[case::several_on_a_line("[\n  1, 2,\n  3, 4\n]", "", "[\n  1, 2,\n  3, 4, \"new\"\n]")]
fn appends_in_the_layout_of_the_siblings(#[case] text: &str, #[case] list: &str, #[case] expected: &str) {
    assert_eq!(edited(text, |json| json.append(list, &json!("new"))), expected);
}

#[rstest]
#[case::lines("{\n  \"h\": {\n    \"a\": \"1\"\n  }\n}\n")]
#[case::empty("{\n  \"h\": {}\n}\n")]
#[case::one_line("{\n  \"h\": { \"a\": \"1\" }\n}\n")]
#[case::compact(r#"{"h":{"a":"1"},"i":[]}"#)]
#[case::returns("{\r\n\t\"h\": {\r\n\t\t\"a\": \"1\"\r\n\t}\r\n}")]
fn insert_all_equals_repeated_insert(#[case] text: &str) {
    let members: Map<String, Value> =
        (0..40).map(|number| (format!("rg-t-{number:03}"), json!("0123456789ab"))).collect();
    let one_by_one =
        edited(text, |json| members.iter().try_for_each(|(key, value)| json.insert("/h", key, value, Side::Last)));
    assert_eq!(edited(text, |json| json.insert_all("/h", &members)), one_by_one);
    let taken = Map::from_iter([("x".to_owned(), json!(1)), ("y".to_owned(), json!(1)), ("a".to_owned(), json!(1))]);
    let mut json = JsonText::read(r#"{"h": {"a": 1}}"#).expect("JSON");
    assert!(matches!(json.insert_all("/h", &taken), Err(EditError::KeyTaken { .. })));
}

#[rstest]
#[case::empty_file("{}\n", "{\n  \"new\": {\n    \"overlaps\": [\"b\"]\n  }\n}\n")]
#[case::sibling_on_one_line(
    "{\n    \"a\": {\"overlaps\": [\"c\"]}\n}",
    "{\n    \"a\": {\"overlaps\": [\"c\"]},\n    \"new\": {\"overlaps\": [\"b\"]}\n}"
)]
#[case::sibling_on_lines(
    "{\n \"a\": {\n  \"overlaps\": [\n   \"c\"\n  ]\n }\n}",
    "{\n \"a\": {\n  \"overlaps\": [\n   \"c\"\n  ]\n },\n \"new\": {\n  \"overlaps\": [\n   \"b\"\n  ]\n }\n}"
)]
#[case::spaced_colon(
    "{\n  \"a\" : {\n    \"reason\" : \"x\"\n  }\n}",
    "{\n  \"a\" : {\n    \"reason\" : \"x\"\n  },\n  \"new\" : {\n    \"overlaps\" : [\"b\"]\n  }\n}"
)]
#[case::compact("{\"a\":{}}", "{\"a\":{},\"new\":{\"overlaps\":[\"b\"]}}")]
fn inserts_in_the_layout_of_the_siblings(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(edited(text, |json| json.insert("", "new", &json!({"overlaps": ["b"]}), Side::Last)), expected);
}

#[test]
fn keeps_cuddled_brackets() {
    let text = "{\n  \"cases\": [{\n    \"id\": 1\n  }, {\n    \"id\": 2\n  }]\n}\n";
    let expected = "{\n  \"cases\": [{\n    \"id\": 1\n  }, {\n    \"id\": 2\n  }, {\n    \"id\": 3\n  }]\n}\n";
    assert_eq!(edited(text, |json| json.append("/cases", &json!({"id": 3}))), expected);
}

#[test]
fn inserts_a_first_member() {
    let text = "{\n  \"cases\": []\n}";
    let expected = "{\n  \"metadata\": {\n    \"tier\": \"golden\"\n  },\n  \"cases\": []\n}";
    let metadata = json!({"tier": "golden"});
    assert_eq!(edited(text, |json| json.insert("", "metadata", &metadata, Side::First)), expected);
}

#[test]
fn breaks_long_lines_outermost_first() {
    let tools: Vec<String> = (0..6).map(|tool| format!("a_tool_with_a_name_{tool}")).collect();
    let mut json = JsonText::read("{\n  \"a\": {\"overlaps\": [], \"reason\": \"alike\"}\n}\n").expect("JSON");
    for tool in &tools[..2] {
        json.append("/a/overlaps", &json!(tool)).expect("a list");
    }
    assert_eq!(json.text.lines().count(), 3, "{}", json.text);
    for tool in &tools[2..] {
        json.append("/a/overlaps", &json!(tool)).expect("a list");
    }
    insta::assert_snapshot!(json.into_text(), @r#"
    {
      "a": {
        "overlaps": [
          "a_tool_with_a_name_0",
          "a_tool_with_a_name_1",
          "a_tool_with_a_name_2",
          "a_tool_with_a_name_3",
          "a_tool_with_a_name_4",
          "a_tool_with_a_name_5"
        ],
        "reason": "alike"
      }
    }
    "#);
}

#[rstest]
#[case("{\n  \"a\": 1,\n  \"b\": 2\n}", "/a", "{\n  \"b\": 2\n}")]
#[case("{\n  \"a\": 1,\n  \"b\": 2\n}", "/b", "{\n  \"a\": 1\n}")]
#[case("{\n  \"a\": [\n    1\n  ]\n}", "/a/0", "{\n  \"a\": []\n}")]
#[case("[1, 2, 3]", "/1", "[1, 3]")]
#[case("[1, 1, 1]", "/2", "[1, 1]")]
fn removes_values(#[case] text: &str, #[case] pointer: &str, #[case] expected: &str) {
    assert_eq!(edited(text, |json| json.remove(pointer)), expected);
}

#[test]
fn replaces_values() {
    let text = "{\n  \"a\": \"x\",\n  \"b\": [1]\n}";
    assert_eq!(edited(text, |json| json.replace("/a", &json!("y"))), text.replace("\"x\"", "\"y\""));
    assert_eq!(edited(text, |json| json.replace("/b", &json!([1, 2]))), text.replace("[1]", "[1, 2]"));
}

#[test]
fn rejects_invalid_edits_without_changes() {
    let mut json = JsonText::read(r#"{"a": [1], "b": {"c": 1}}"#).expect("JSON");
    let before = json.clone();
    let errors = [
        json.append("/b", &json!(1)),
        json.append("/z", &json!(1)),
        json.insert("/a", "k", &json!(1), Side::Last),
        json.insert("/b", "c", &json!(1), Side::Last),
        json.remove(""),
        json.remove("/a/1"),
    ];
    let errors: Vec<String> = errors.into_iter().map(|result| result.expect_err("refused").to_string()).collect();
    insta::assert_snapshot!(errors.join("\n"), @"
    '/b' is not an array
    no value at '/z'
    '/a' is not an object
    '/b' already has the key 'c'
    the root value cannot be removed
    no value at '/a/1'
    ");
    assert_eq!(json, before);
    assert!(JsonText::read("{\"a\": 1, \"a\": 2}").is_err());
}

/// The layout of a generated document.
#[derive(Debug, Clone)]
struct Style {
    indent: &'static str,
    newline: &'static str,
    colon: &'static str,
    /// Containers up to this width are on one line.
    inline: usize,
    bom: bool,
    end: bool,
}

impl Style {
    fn text(&self, value: &Value) -> String {
        let bom = if self.bom { "\u{feff}" } else { "" };
        let end = if self.end { self.newline } else { "" };
        format!("{bom}{}{end}", self.value(value, 0))
    }

    fn value(&self, value: &Value, depth: usize) -> String {
        let children: Vec<String> = match value {
            Value::Array(items) => items.iter().map(|item| self.value(item, depth + 1)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, item)| {
                    format!("{}{}{}", Value::from(key.as_str()), self.colon, self.value(item, depth + 1))
                })
                .collect(),
            other => return other.to_string(),
        };
        let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
        let line = format!("{open}{}{close}", children.join(", "));
        if children.is_empty() || (line.len() <= self.inline && !line.contains('\n')) {
            return line;
        }
        let (outer, newline) = (self.indent.repeat(depth), self.newline);
        let inner = self.indent.repeat(depth + 1);
        let children = children.join(&format!(",{newline}{inner}"));
        format!("{open}{newline}{inner}{children}{newline}{outer}{close}")
    }
}

fn styles() -> impl Strategy<Value = Style> {
    let indents = prop::sample::select(vec!["", " ", "  ", "    ", "\t"]);
    let newlines = prop::sample::select(vec!["\n", "\r\n"]);
    let colons = prop::sample::select(vec![":", ": ", " : "]);
    let widths = prop::sample::select(vec![0, 12, 40, 90, 10_000]);
    (indents, newlines, colons, widths, any::<bool>(), any::<bool>())
        .prop_map(|(indent, newline, colon, inline, bom, end)| Style { indent, newline, colon, inline, bom, end })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-zé/~\"\\\\{}\\[\\],: \n]{0,14}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z/~\"]{0,4}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Lists the pointers of all values.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| pointers(item, &format!("{at}/{index}"), out));
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, item)| pointers(item, &format!("{at}/{}", pointer_key(key)), out));
        }
        _ => {}
    }
}

fn read(text: &str) -> Value {
    parse(text.strip_prefix('\u{feff}').unwrap_or(text)).expect("valid JSON after an edit")
}

/// Returns the length of the common prefix and suffix of two strings.
fn common_bytes(old: &str, new: &str) -> usize {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let shorter = old.len().min(new.len());
    let front = old.iter().zip(new).take_while(|(left, right)| left == right).count();
    let back = old.iter().rev().zip(new.iter().rev()).take_while(|(left, right)| left == right).count();
    (front + back).min(shorter)
}

/// Returns the number of lines outside the common prefix and suffix.
fn changed_lines(old: &str, new: &str) -> usize {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let front = old.iter().zip(&new).take_while(|(left, right)| left == right).count();
    let back = old.iter().rev().zip(new.iter().rev()).take_while(|(left, right)| left == right).count();
    old.len().saturating_sub(front + back)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn an_insertion_is_correct_and_reversible(
        mut value in values(), new in values(), style in styles(), pick in any::<prop::sample::Index>(), first in any::<bool>(),
    ) {
        let old = style.text(&value);
        let mut all = Vec::new();
        pointers(&value, "", &mut all);
        all.retain(|pointer| value.pointer(pointer).is_some_and(|value| value.is_array() || value.is_object()));
        prop_assume!(!all.is_empty());
        let pointer = pick.get(&all).clone();
        let mut json = JsonText::read(&old).expect("JSON");
        let added = json.layout.one_line(Some("a new key"), &new).chars().count() + 3;
        let inserted = match value.pointer_mut(&pointer) {
            Some(Value::Array(items)) => {
                json.append(&pointer, &new).expect("a list");
                items.push(new);
                format!("{pointer}/{}", items.len() - 1)
            }
            Some(Value::Object(map)) => {
                let side = if first { Side::First } else { Side::Last };
                json.insert(&pointer, "a new key", &new, side).expect("an object");
                map.insert("a new key".to_owned(), new);
                format!("{pointer}/a new key")
            }
            _ => unreachable!("only containers are selected"),
        };
        let text = json.clone().into_text();
        prop_assert_eq!(read(&text), value);
        // At most one line changes: the one that was broken or got a comma.
        prop_assert!(changed_lines(&old, &text) <= 1, "{}\n->\n{}", old, text);
        let is_broken = common_bytes(&old, &text) < old.len();
        if is_broken {
            let longest = old.lines().map(|line| line.chars().count()).max().unwrap_or_default();
            prop_assert!(longest + added > MAX_LINE_WIDTH, "broken without need:\n{}\n->\n{}", old, text);
        } else {
            json.remove(&inserted).expect("the inserted value");
            prop_assert_eq!(json.into_text(), old);
        }
    }

    #[test]
    fn a_removal_deletes_one_range(value in values(), style in styles(), pick in any::<prop::sample::Index>()) {
        let old = style.text(&value);
        let mut all = Vec::new();
        pointers(&value, "", &mut all);
        all.retain(|pointer| !pointer.is_empty());
        prop_assume!(!all.is_empty());
        let pointer = pick.get(&all);
        let text = edited(&old, |json| json.remove(pointer));
        let mut expected = value.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("not the root");
        match expected.pointer_mut(parent) {
            Some(Value::Array(items)) => drop(items.remove(key.parse().expect("a number"))),
            Some(Value::Object(map)) => drop(map.shift_remove(&key.replace("~1", "/").replace("~0", "~"))),
            _ => unreachable!("only containers have children"),
        }
        prop_assert_eq!(read(&text), expected);
        prop_assert_eq!(common_bytes(&old, &text), text.len());
    }

    #[test]
    fn a_replacement_changes_nothing_else(
        mut value in values(), new in values(), style in styles(), pick in any::<prop::sample::Index>(),
    ) {
        let old = style.text(&value);
        let mut all = Vec::new();
        pointers(&value, "", &mut all);
        let pointer = pick.get(&all);
        let bare = old.trim_start_matches('\u{feff}');
        let range = locate(bare, pointer).expect("present").value;
        let range = range.start + old.len() - bare.len()..range.end + old.len() - bare.len();
        let text = edited(&old, |json| json.replace(pointer, &new));
        *value.pointer_mut(pointer).expect("present") = new;
        prop_assert_eq!(read(&text), value);
        prop_assert!(text.starts_with(&old[..range.start]) && text.ends_with(&old[range.end..]));
    }
}
