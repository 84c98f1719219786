//! Strict decoding of values: unknown keys, wrong types and missing members are collected as problems.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde_json::{Map, Value};

use super::nearest::nearest;

/// Whether a problem is with a member's key or with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Key,
    Value,
}

/// A problem at a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub pointer: String,
    pub subject: Subject,
    pub case_id: Option<String>,
    /// A lower-case fragment.
    pub message: String,
    pub help: Option<String>,
}

/// The problems of one document.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
    case_id: Option<String>,
}

impl Problems {
    /// Sets the case that the following problems belong to.
    pub fn in_case(&mut self, id: Option<String>) {
        self.case_id = id;
    }

    pub fn at(&mut self, path: &Path<'_>, message: impl Into<String>) {
        self.push(path, Subject::Value, message.into(), None);
    }

    pub fn push(&mut self, path: &Path<'_>, subject: Subject, message: String, help: Option<String>) {
        self.list.push(Problem { pointer: path.to_string(), subject, case_id: self.case_id.clone(), message, help });
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn into_list(self) -> Vec<Problem> {
        self.list
    }
}

/// A path from the root to a value, built on the stack. Displays as a JSON pointer.
#[derive(Debug, Clone, Copy)]
pub enum Path<'p> {
    Root,
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl Path<'_> {
    pub fn key<'p>(&'p self, key: &'p str) -> Path<'p> {
        Path::Key(self, key)
    }

    pub fn index(&self, index: usize) -> Path<'_> {
        Path::Index(self, index)
    }

    /// Returns the name for messages: the key, or the array's name with the index.
    pub fn name(&self) -> String {
        match self {
            Path::Root => "the file".to_owned(),
            Path::Key(_, key) => format!("'{key}'"),
            Path::Index(parent, index) => format!("{}[{index}]", parent.name()),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Key(parent, key) => {
                write!(out, "{parent}/{}", pointer_key(key))
            }
            Path::Index(parent, index) => write!(out, "{parent}/{index}"),
        }
    }
}

/// Escapes a key for a JSON pointer.
pub fn pointer_key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Reads an object member by member and tracks the known keys.
pub struct ObjectReader<'v> {
    map: &'v Map<String, Value>,
    known: Vec<&'static str>,
}

/// Maximum number of keys to search by comparison, which is faster than hashing for small objects.
const MAX_COMPARED_KEYS: usize = 16;

/// Returns a member of an object.
pub fn member<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    if map.len() > MAX_COMPARED_KEYS {
        return map.get(key);
    }
    map.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

impl<'v> ObjectReader<'v> {
    /// Opens an object; any other type is a problem.
    pub fn open(value: &'v Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let Value::Object(map) = value else {
            wrong_type(value, "an object", path, problems);
            return None;
        };
        Some(Self { map, known: Vec::new() })
    }

    /// Returns the raw member and marks the key as known.
    pub fn raw(&mut self, key: &'static str) -> Option<&'v Value> {
        self.known.push(key);
        member(self.map, key)
    }

    /// Reads an optional member.
    pub fn optional<T>(
        &mut self,
        key: &'static str,
        path: &Path<'_>,
        problems: &mut Problems,
        read: impl FnOnce(&'v Value, &Path<'_>, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        let value = self.raw(key)?;
        read(value, &path.key(key), problems)
    }

    /// Reads an optional member that may be null.
    pub fn nullable<T>(
        &mut self,
        key: &'static str,
        path: &Path<'_>,
        problems: &mut Problems,
        read: impl FnOnce(&'v Value, &Path<'_>, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        let value = self.raw(key).filter(|value| !value.is_null())?;
        read(value, &path.key(key), problems)
    }

    /// Reads a required member.
    pub fn required<T>(
        &mut self,
        key: &'static str,
        path: &Path<'_>,
        problems: &mut Problems,
        read: impl FnOnce(&'v Value, &Path<'_>, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = self.raw(key) else {
            problems.at(path, format!("'{key}' is missing"));
            return None;
        };
        read(value, &path.key(key), problems)
    }

    /// Reports every key that was not read as unknown, with the nearest known key.
    pub fn close(self, path: &Path<'_>, problems: &mut Problems) {
        for key in self.map.keys() {
            if !self.known.contains(&key.as_str()) {
                let mut names = HashSet::new();
                let known: Vec<&str> = self.known.iter().copied().filter(|name| names.insert(*name)).collect();
                let help = match nearest(key, &known) {
                    Some(known) => format!("did you mean '{known}'?"),
                    None => format!("known keys here: {}", known.join(", ")),
                };
                problems.push(&path.key(key), Subject::Key, format!("unknown key '{key}'"), Some(help));
            }
        }
    }
}

pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn wrong_type(value: &Value, expected: &str, path: &Path<'_>, problems: &mut Problems) {
    problems.at(path, format!("{} must be {expected}, found {}", path.name(), type_name(value)));
}

pub fn read_string(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    if let Value::String(text) = value {
        return Some(text.clone());
    }
    wrong_type(value, "a string", path, problems);
    None
}

/// Reads a JSON pointer.
pub fn read_pointer(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    let pointer = read_string(value, path, problems)?;
    if pointer.is_empty() || pointer.starts_with('/') {
        return Some(pointer);
    }
    problems.at(path, format!("{} must be a JSON pointer that starts with '/'", path.name()));
    None
}

/// Reads a string that must be one of `names`.
pub fn read_enum<T>(
    value: &Value,
    path: &Path<'_>,
    problems: &mut Problems,
    names: &[&str],
    from_name: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let name = read_string(value, path, problems)?;
    let parsed = from_name(&name);
    if parsed.is_none() {
        let help = match nearest(&name, names) {
            Some(known) => format!("did you mean '{known}'?"),
            None => format!("expected one of: {}", names.join(", ")),
        };
        problems.push(path, Subject::Value, format!("invalid value '{name}' for {}", path.name()), Some(help));
    }
    parsed
}

pub fn read_bool(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<bool> {
    if let Value::Bool(flag) = value {
        return Some(*flag);
    }
    wrong_type(value, "true or false", path, problems);
    None
}

pub fn read_array<T>(
    value: &Value,
    path: &Path<'_>,
    problems: &mut Problems,
    mut read: impl FnMut(&Value, &Path<'_>, &mut Problems) -> Option<T>,
) -> Option<Vec<T>> {
    let Value::Array(items) = value else {
        wrong_type(value, "an array", path, problems);
        return None;
    };
    // Collect all results before returning, so that the problems of all items are reported.
    let read_items: Vec<Option<T>> =
        items.iter().enumerate().map(|(index, item)| read(item, &path.index(index), problems)).collect();
    read_items.into_iter().collect()
}

pub fn read_strings(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    if !value.is_array() {
        wrong_type(value, "an array of strings", path, problems);
        return None;
    }
    read_array(value, path, problems, read_string)
}

/// Reads an integer of at least 0.
pub fn read_count(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<u64> {
    read_integer(value, 0, path, problems)
}

/// Reads an integer of at least 1.
pub fn read_positive_count(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<u64> {
    read_integer(value, 1, path, problems)
}

fn read_integer(value: &Value, min: u64, path: &Path<'_>, problems: &mut Problems) -> Option<u64> {
    let integer = value.as_u64().or_else(|| {
        let float = value.as_f64()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer in range")]
        (float >= 0.0 && float.fract() == 0.0 && float < 1e15).then_some(float as u64)
    });
    let count = integer.filter(|count| *count >= min);
    if count.is_none() {
        let actual = if value.is_number() { value.to_string() } else { type_name(value).to_owned() };
        problems.at(path, format!("{} must be an integer of at least {min}, found {actual}", path.name()));
    }
    count
}

pub fn read_positive_number(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<f64> {
    let Value::Number(number) = value else {
        wrong_type(value, "a number", path, problems);
        return None;
    };
    let Some(number) = number.as_f64() else {
        problems.at(path, format!("{} is out of range", path.name()));
        return None;
    };
    if number <= 0.0 {
        problems.at(path, format!("{} must be greater than 0", path.name()));
        return None;
    }
    Some(number)
}

pub fn read_object_map(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Map<String, Value>> {
    if let Value::Object(map) = value {
        return Some(map.clone());
    }
    wrong_type(value, "an object", path, problems);
    None
}

/// Reads an object of strings, such as headers or environment variables.
pub fn read_string_map(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<BTreeMap<String, String>> {
    let map = read_object_map(value, path, problems)?;
    let read = |(name, value): (&String, &Value)| Some((name.clone(), read_string(value, &path.key(name), problems)?));
    // Collect all results before returning, so that the problems of all entries are reported.
    let entries: Vec<Option<(String, String)>> = map.iter().map(read).collect();
    entries.into_iter().collect()
}
