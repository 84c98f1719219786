//! Locates the key and value of a JSON pointer in a JSON document.

use std::collections::HashMap;
use std::ops::Range;

/// Byte ranges of a located member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRange {
    /// The key with its quotes, for a member of an object.
    pub key: Option<Range<usize>>,
    pub value: Range<usize>,
}

/// Locates the value of `pointer` in a valid JSON document.
pub fn locate(text: &str, pointer: &str) -> Option<MemberRange> {
    Locator::new(text).locate(pointer)
}

/// Lists the members of the object, or the elements of the array, at offset `start` of a valid JSON text.
pub(super) fn children(text: &str, start: usize) -> Vec<MemberRange> {
    let mut scanner = Scanner { text: text.as_bytes(), at: start };
    let mut members = Vec::new();
    let is_object = scanner.peek() == Some(b'{');
    scanner.step();
    while let Some(byte) = scanner.peek().filter(|byte| !b"]}".contains(byte)) {
        if byte == b',' {
            scanner.step();
            continue;
        }
        let key = is_object.then(|| scanner.key()).flatten();
        let value = scanner.at;
        if scanner.skip_value().is_none() {
            break;
        }
        members.push(MemberRange { key, value: value..scanner.at });
        scanner.skip_space();
    }
    members
}

/// Locates many pointers in one text. Caches where array elements and root members start, so that each is scanned once.
pub(super) struct Locator<'t> {
    text: &'t str,
    /// Starts of the first elements of each array, by the array's start.
    elements: HashMap<usize, Vec<usize>>,
    members: Members,
}

/// The members of the root object that have been scanned so far.
#[derive(Default)]
struct Members {
    /// Key range and value start by name.
    found: HashMap<String, (Range<usize>, usize)>,
    /// Start of the next key, once the scan has begun.
    next: Option<usize>,
}

impl<'t> Locator<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, elements: HashMap::new(), members: Members::default() }
    }

    pub(super) fn locate(&mut self, pointer: &str) -> Option<MemberRange> {
        let mut scanner = Scanner { text: self.text.as_bytes(), at: 0 };
        scanner.skip_space();
        let mut member = MemberRange { key: None, value: 0..0 };
        for (depth, segment) in pointer.split('/').skip(1).enumerate() {
            let name = segment.replace("~1", "/").replace("~0", "~");
            member.key = match scanner.peek()? {
                b'{' if depth == 0 => Some(scanner.enter_cached_member(self.text, &name, &mut self.members)?),
                b'{' => Some(scanner.enter_member(self.text, &name)?),
                b'[' => {
                    let starts = self.elements.entry(scanner.at).or_default();
                    scanner.enter_element(name.parse().ok()?, starts)?;
                    None
                }
                _ => return None,
            };
        }
        let start = scanner.at;
        scanner.skip_value()?;
        member.value = start..scanner.at;
        Some(member)
    }
}

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Skips a punctuation byte and the whitespace after it.
    fn step(&mut self) {
        self.at += 1;
        self.skip_space();
    }

    fn enter_member(&mut self, text: &str, name: &str) -> Option<Range<usize>> {
        self.step();
        while self.peek()? == b'"' {
            let key = self.key()?;
            let member_name: String = serde_json::from_str(&text[key.clone()]).ok()?;
            if member_name == name {
                return Some(key);
            }
            self.skip_value()?;
            self.skip_space();
            if self.peek()? == b',' {
                self.step();
            }
        }
        None
    }

    /// Skips a key, its colon, and the whitespace around the colon.
    fn key(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.skip_string()?;
        let key = start..self.at;
        self.skip_space();
        self.step();
        Some(key)
    }

    fn enter_element(&mut self, index: usize, starts: &mut Vec<usize>) -> Option<()> {
        if starts.is_empty() {
            self.step();
            if self.peek()? == b']' {
                return None;
            }
            starts.push(self.at);
        }
        self.at = starts[index.min(starts.len() - 1)];
        while starts.len() <= index {
            self.skip_value()?;
            self.skip_space();
            if self.peek()? != b',' {
                return None;
            }
            self.step();
            starts.push(self.at);
        }
        Some(())
    }

    fn skip_string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// Like [`Self::enter_member`], but caches the members it passes.
    fn enter_cached_member(&mut self, text: &str, name: &str, members: &mut Members) -> Option<Range<usize>> {
        if let Some((key, value)) = members.found.get(name) {
            self.at = *value;
            return Some(key.clone());
        }
        match members.next {
            Some(next) => self.at = next,
            None => self.step(),
        }
        while self.peek()? == b'"' {
            let start = self.at;
            self.skip_string()?;
            let key = start..self.at;
            self.skip_space();
            self.step();
            let value = self.at;
            let member_name: String = serde_json::from_str(&text[key.clone()]).ok()?;
            self.skip_value()?;
            self.skip_space();
            if self.peek()? == b',' {
                self.step();
            }
            members.next = Some(self.at);
            let is_match = member_name == name;
            // The first of several members with the same name wins, as in `enter_member`.
            members.found.entry(member_name).or_insert_with(|| (key.clone(), value));
            if is_match {
                self.at = value;
                return Some(key);
            }
        }
        None
    }

    /// Skips one value, without recursion.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                _ => {
                    while self.peek().is_some_and(|byte| !b",:]} \n\r\t".contains(&byte)) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::Value;

    use super::*;

    const TEXT: &str = r#" {"a": [1, {"b/c": "x]\"}"}, []], "cases" : {"k" : -1.5e3 }}"#;

    #[rstest]
    #[case("", None, &TEXT[1..])]
    #[case("/a/0", None, "1")]
    #[case("/a/1", None, r#"{"b/c": "x]\"}"}"#)]
    #[case("/a/1/b~1c", Some(r#""b/c""#), r#""x]\"}""#)]
    #[case("/a/2", None, "[]")]
    #[case("/cases/k", Some(r#""k""#), "-1.5e3")]
    fn locates_values(#[case] pointer: &str, #[case] key: Option<&str>, #[case] value: &str) {
        let member = locate(TEXT, pointer).expect("present");
        assert_eq!(member.key.map(|range| &TEXT[range]), key);
        assert_eq!(&TEXT[member.value], value);
    }

    /// A used locator returns the same as a new one, in any order.
    #[test]
    fn cached_and_fresh_lookups_agree() {
        let text = r#"{"b": {"x": 1}, "a": 2, "b": 3, "c": [4, {"a": 5}]}"#;
        let mut locator = Locator::new(text);
        for pointer in ["/a", "/c/1/a", "/b/x", "/nope", "/b", "/c/1/a", "/a", "/nope", ""] {
            assert_eq!(locator.locate(pointer), locate(text, pointer), "{pointer}");
        }
        assert_eq!(&text[locate(text, "/b").expect("present").value], r#"{"x": 1}"#);
    }

    #[rstest]
    #[case("/a/9")]
    #[case("/a/2/0")]
    #[case("/nope")]
    #[case("/a/0/b")]
    fn returns_none_for_missing_values(#[case] pointer: &str) {
        assert_eq!(locate(TEXT, pointer), None);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z/~\"\\\\{}\\[\\], ]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-z/~\"]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn pointers(value: &Value, at: String, out: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointers(item, format!("{at}/{index}"), out);
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    pointers(item, format!("{at}/{key}"), out);
                }
            }
            _ => {}
        }
        out.push(at);
    }

    proptest! {
        #[test]
        fn locates_every_pointer(value in json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }
                .expect("serializes");
            let mut all = Vec::new();
            pointers(&value, String::new(), &mut all);
            let mut locator = Locator::new(&text);
            for pointer in all {
                let member = locate(&text, &pointer).expect("located");
                prop_assert_eq!(locator.locate(&pointer), Some(member.clone()));
                let read: Value = serde_json::from_str(&text[member.value]).expect("a value");
                prop_assert_eq!(Some(&read), value.pointer(&pointer));
            }
        }
    }
}
