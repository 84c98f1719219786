//! Values of the seed manifest that an answer can only hold if the tool was used.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::registry::Tool;
use karat_core::similarity;
use karat_core::text::text_form;
use karat_core::token::{Resolved, TokenSources};
use serde_json::Value;

use super::parameters::holds_word;

/// The most values that a case asks for.
const MOST_VALUES: usize = 3;
/// What is longer is no fact, but a text, which no answer repeats letter by letter.
const LONGEST_VALUE: usize = 40;
/// More values and deeper ones than these are not looked at.
const MOST_LEAVES: usize = 20_000;
const DEEPEST: usize = 12;

/// Words in paths of what no answer may show.
const SECRETS: [&str; 10] =
    ["apikey", "auth", "authorization", "credential", "key", "passwd", "password", "private", "secret", "token"];

/// What proves that a tool was used.
pub(super) struct Proof {
    /// Tokens of the seed manifest, at least two.
    pub(super) values: Vec<String>,
    /// The message names the record that the values are of; otherwise they were found by their names only.
    pub(super) is_certain: bool,
}

/// A short value of the seed manifest.
struct Leaf {
    path: String,
    /// The path of the object that holds it.
    parent: String,
    key: String,
    /// The path of the array that holds the object, where one does.
    list: Option<String>,
    text: String,
    is_text: bool,
    /// How much its path has to do with the tool.
    weight: usize,
}

impl Proof {
    /// Finds values for a message to a tool, if the manifest has any that belong to it.
    pub(super) fn of(tool: &Tool, sources: &TokenSources, message: &str) -> Option<Self> {
        let mut leaves = Vec::new();
        let words = ToolWords::of(tool);
        collect(sources.seed.as_ref()?, &Place::default(), &words, &mut leaves);
        leaves.retain(|leaf| sources.resolve(&leaf.token()) == Resolved::Text(leaf.text.clone()));
        let record = of_record(&leaves, message).map(|values| Self { values, is_certain: true });
        let found = record.or_else(|| Some(Self { values: of_names(&leaves, message)?, is_certain: false }))?;
        (found.values.len() > 1).then_some(found)
    }
}

impl Leaf {
    fn token(&self) -> String {
        format!("{{{{seed:{}}}}}", self.path)
    }

    fn is_said(&self, message: &str) -> bool {
        holds_word(&message.to_lowercase(), &self.text.to_lowercase())
    }
}

/// Takes the values of the record that the message names.
fn of_record(leaves: &[Leaf], message: &str) -> Option<Vec<String>> {
    let named = leaves.iter().filter(|leaf| leaf.is_text && leaf.text.chars().count() > 2 && leaf.is_said(message));
    // The longest name is the least likely to be there by chance.
    for name in named.collect::<BTreeSet<_>>().into_iter().rev() {
        let same = leaves.iter().filter(|leaf| leaf.parent == name.parent && leaf.weight > 0 && !leaf.is_said(message));
        let mut values: Vec<String> = same.take(MOST_VALUES - 1).map(Leaf::token).collect();
        if !values.is_empty() {
            values.push(name.token());
            return Some(values);
        }
    }
    None
}

/// Takes the values whose paths have most to do with the tool: of one object, or the same of several in a list.
fn of_names(leaves: &[Leaf], message: &str) -> Option<Vec<String>> {
    let mut groups: BTreeMap<(String, String), Vec<&Leaf>> = BTreeMap::new();
    for leaf in leaves.iter().filter(|leaf| leaf.weight > 0 && !leaf.is_said(message)) {
        let group = match &leaf.list {
            Some(list) => (list.clone(), leaf.key.clone()),
            None => (leaf.parent.clone(), String::new()),
        };
        groups.entry(group).or_default().push(leaf);
    }
    let weight = |group: &Vec<&Leaf>| {
        let names = group.iter().filter(|leaf| leaf.is_text).count();
        (group.iter().map(|leaf| leaf.weight).max().unwrap_or_default(), names.min(MOST_VALUES))
    };
    let fitting = groups.into_values().filter(|group| group.len() > 1);
    // Of equal ones the first: later ones have to be better.
    let best = fitting.fold(None, |best: Option<Vec<&Leaf>>, group| match best {
        Some(best) if weight(&best) >= weight(&group) => Some(best),
        _ => Some(group),
    })?;
    Some(best.into_iter().take(MOST_VALUES).map(Leaf::token).collect())
}

impl PartialEq for Leaf {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Leaf {}

impl PartialOrd for Leaf {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// By how much a name says, then by the path.
impl Ord for Leaf {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.weight, self.text.len(), &self.path).cmp(&(other.weight, other.text.len(), &other.path))
    }
}

/// The words by which a path has to do with a tool.
struct ToolWords {
    name: BTreeSet<String>,
    other: BTreeSet<String>,
}

impl ToolWords {
    fn of(tool: &Tool) -> Self {
        let mut other = similarity::words(tool.description.as_deref().unwrap_or_default());
        let properties = tool.input_schema.as_ref().and_then(|schema| schema.get("properties"));
        for name in properties.and_then(Value::as_object).into_iter().flat_map(serde_json::Map::keys) {
            other.extend(similarity::words(name));
        }
        Self { name: similarity::words(&tool.name), other }
    }

    fn weight(&self, path: &str) -> usize {
        let words = similarity::words(path);
        let count = |set: &BTreeSet<String>| words.intersection(set).filter(|word| !is_number(word)).count();
        3 * count(&self.name) + count(&self.other)
    }
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where in the manifest a value is.
#[derive(Clone, Default)]
struct Place {
    path: String,
    parent: String,
    key: String,
    list: Option<String>,
    depth: usize,
}

fn collect(value: &Value, place: &Place, words: &ToolWords, leaves: &mut Vec<Leaf>) {
    if leaves.len() >= MOST_LEAVES || place.depth > DEEPEST {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| is_open(key)) {
                let path = if place.path.is_empty() { key.clone() } else { format!("{}.{key}", place.path) };
                let (parent, key, list) = (place.path.clone(), key.clone(), place.list.clone());
                collect(value, &Place { path, parent, key, list, depth: place.depth + 1 }, words, leaves);
            }
        }
        // A path begins with a key.
        Value::Array(items) if !place.path.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                let path = format!("{}[{index}]", place.path);
                let list = Some(place.path.clone());
                let place = Place { path, list, depth: place.depth + 1, ..place.clone() };
                collect(item, &place, words, leaves);
            }
        }
        Value::String(_) | Value::Number(_) => {
            let text = text_form(value).into_owned();
            let length = text.chars().count();
            // A single letter or digit stands in almost every answer.
            if (2..=LONGEST_VALUE).contains(&length) && text.trim() == text && !text.chars().any(char::is_control) {
                let Place { path, parent, key, list, .. } = place.clone();
                let (weight, is_text) = (words.weight(&path), value.is_string());
                leaves.push(Leaf { path, parent, key, list, text, is_text, weight });
            }
        }
        Value::Array(_) | Value::Null | Value::Bool(_) => {}
    }
}

/// Tells whether a key can stand in a path, and what is under it in an answer.
fn is_open(key: &str) -> bool {
    let words = similarity::words(key);
    let joined = key.to_lowercase().replace(['_', '-', ' '], "");
    !key.is_empty()
        && !key.contains(['.', '[', ']', '}'])
        && !SECRETS.iter().any(|secret| words.contains(*secret) || joined.ends_with("apikey") || joined == *secret)
}
