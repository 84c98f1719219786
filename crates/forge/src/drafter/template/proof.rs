//! Values of the seed manifest that an answer can only hold if the tool was used.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::registry::Tool;
use karat_core::similarity;
use karat_core::text::text_form;
use karat_core::token::{Resolved, TokenSources};
use serde_json::Value;

use super::lexicon::READING_VERBS;
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

/// Words by which a part of a message says what is not meant.
const NEGATIONS: [&str; 9] = ["except", "forget", "instead", "neither", "never", "no", "nor", "not", "without"];

/// Endings in which two words that mean the same may differ.
const ENDINGS: [&str; 8] = ["d", "ed", "es", "ing", "ings", "led", "ling", "s"];

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
    /// The path of the object that holds it shares a word with the tool's name.
    is_of_record: bool,
    /// The path shares a word with the tool's name: what has only a word of the description may be of another tool.
    is_of_tool: bool,
}

impl Proof {
    /// Finds values for a message to a tool, if the manifest has any that belong to it. `own` is the message without
    /// what it says of other tools.
    pub(super) fn of(tool: &Tool, sources: &TokenSources, message: &str, own: &str) -> Option<Self> {
        let mut leaves = Vec::new();
        let words = ToolWords::of(tool);
        collect(sources.seed.as_ref()?, &Place::default(), &words, &mut leaves);
        leaves.retain(|leaf| sources.resolve(&leaf.token()) == Resolved::Text(leaf.text.clone()));
        let record = of_record(&leaves, tool, message, &affirmed(own)).map(|values| Self { values, is_certain: true });
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

    /// Tells whether the message names the record by this value: a name or a number, no word of the language and none
    /// of the tool's own values, which many records have.
    fn is_name_in(&self, tool: &Tool, parts: &[&str]) -> bool {
        let is_name = |letter: char| letter.is_numeric() || letter.is_alphabetic() && !letter.is_lowercase();
        let is_number = self.text.chars().any(char::is_numeric);
        self.is_text
            && self.is_of_record
            && self.text.chars().count() > 2
            && self.text.contains(is_name)
            && !is_choice(tool, &self.text)
            // Any word is begun with a capital at the beginning.
            && parts.iter().any(|part| {
                let rest = part.trim_start().trim_start_matches(|letter: char| letter.is_alphanumeric());
                let part = if is_number || self.text.contains(' ') { part } else { rest };
                holds_word(part, &self.text)
            })
    }
}

/// Takes the values of the record that the message names.
fn of_record(leaves: &[Leaf], tool: &Tool, message: &str, parts: &[&str]) -> Option<Vec<String>> {
    let named = leaves.iter().filter(|leaf| leaf.is_name_in(tool, parts));
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

/// Returns the parts of a message that do not say what is not meant.
fn affirmed(message: &str) -> Vec<&str> {
    let parts = message.split_inclusive([',', ';', ':', '.', '!', '?', '(', ')', '\u{2014}']);
    let is_negated = |part: &str| {
        let part = part.to_lowercase().replace('\u{2019}', "'");
        part.contains("n't") || NEGATIONS.iter().any(|word| holds_word(&part, word))
    };
    parts.filter(|part| !is_negated(part)).collect()
}

/// Tells whether a text is one of the values that an argument can have.
fn is_choice(tool: &Tool, text: &str) -> bool {
    let properties = tool.input_schema.get().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let schemas = properties.into_iter().flat_map(serde_json::Map::values);
    let mut choices = schemas.filter_map(|schema| schema.get("enum")?.as_array()).flatten();
    choices.any(|choice| text_form(choice).to_lowercase() == text.to_lowercase())
}

/// Takes the values whose paths have most to do with the tool: of one object, or the same of several in a list.
fn of_names(leaves: &[Leaf], message: &str) -> Option<Vec<String>> {
    let mut groups: BTreeMap<(String, String), Vec<&Leaf>> = BTreeMap::new();
    for leaf in leaves.iter().filter(|leaf| leaf.is_of_tool && !leaf.is_said(message)) {
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
        let mut other = similarity::words(&own_sentences(tool.description.as_deref().unwrap_or_default()));
        let properties = tool.input_schema.get().and_then(|schema| schema.get("properties"));
        for name in properties.and_then(Value::as_object).into_iter().flat_map(serde_json::Map::keys) {
            other.extend(similarity::words(name));
        }
        let mut name = similarity::words(&tool.name);
        // All tools read something; what they read tells them apart.
        name.retain(|word| !READING_VERBS.contains(&word.as_str()) && !is_number(word));
        Self { name, other }
    }

    /// Tells whether a path shares a word with the tool's name: "orders" with `get_order`, "refunded" with `refund`.
    fn are_of(&self, path: &str) -> bool {
        similarity::words(path).iter().any(|word| self.name.iter().any(|own| are_alike(own, word)))
    }

    fn weight(&self, path: &str) -> usize {
        let words = similarity::words(path);
        let count = |set: &BTreeSet<String>| words.intersection(set).filter(|word| !is_number(word)).count();
        let named = words.iter().filter(|word| self.name.iter().any(|own| are_alike(own, word))).count();
        3 * named + count(&self.other)
    }
}

fn are_alike(left: &str, right: &str) -> bool {
    let stem = |word: &str| word.strip_suffix('e').unwrap_or(word).to_owned();
    let is_form = |short: &str, long: &str| {
        let ending = long.strip_prefix(&stem(short)).filter(|_| short.chars().count() > 3);
        ending.is_some_and(|ending| ENDINGS.contains(&ending) || ending == "e")
    };
    left == right || is_form(left, right) || is_form(right, left)
}

/// Returns a description without the sentences that are about another tool: "For refunds, use X instead."
fn own_sentences(description: &str) -> String {
    let is_own = |sentence: &&str| {
        let sentence = sentence.trim_start().to_lowercase();
        let is_of_another = sentence.starts_with("for ") && sentence.contains(" use ");
        let is_warning = ["do not use", "don't use"].iter().any(|start| sentence.starts_with(start));
        !(is_of_another || is_warning || holds_word(&sentence, "instead"))
    };
    description.split_inclusive(". ").filter(is_own).collect()
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
                let (is_of_record, is_of_tool) = (words.are_of(&parent), words.are_of(&path));
                leaves.push(Leaf { path, parent, key, list, text, is_text, weight, is_of_record, is_of_tool });
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn sources() -> TokenSources {
        let seed = json!({
            "orders": [
                {"number": "A-4711", "state": "Shipped", "article": "umbrella", "buyer": "Mary Stone"},
                {"number": "A-4712", "state": "Open", "article": "lamp", "buyer": "Open"},
            ],
            "customers": [{"name": "Mary Stone", "city": "Leeds"}, {"name": "John Hill", "city": "York"}],
        });
        TokenSources { seed: Some(seed), ..TokenSources::default() }
    }

    fn tool(name: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            description: Some("Fetches a purchase. For a customer's city, use get_customer instead.".to_owned()).into(),
            input_schema: Some(json!({"properties": {"state": {"enum": ["shipped", "open"]}}})).into(),
            ..Tool::default()
        }
    }

    #[rstest]
    #[case::by_number("get_order", "Where is A-4711?", Some((true, "orders[0]")))]
    #[case::by_name("get_order", "What did Mary Stone buy?", Some((true, "orders[0]")))]
    #[case::a_form_of_the_word("list_ordered", "Where is A-4712?", Some((true, "orders[1]")))]
    #[case::a_choice("get_order", "Which are Shipped?", Some((false, "orders")))]
    #[case::an_ordinary_word("get_order", "Where is my umbrella?", Some((false, "orders")))]
    #[case::the_first_word("get_order", "Open the list", Some((false, "orders")))]
    #[case::not_meant("get_order", "I don't mean A-4711, the other one", Some((false, "orders")))]
    #[case::another_record("get_order", "Who is John Hill?", Some((false, "orders")))]
    #[case::nothing_of_the_name("get_parcel", "What did Mary Stone buy in Leeds?", None)]
    #[case::a_neighbours_word("get_city_map", "Where is A-4711?", Some((false, "customers")))]
    fn a_record_is_certain_if_the_message_names_it(
        #[case] name: &str,
        #[case] message: &str,
        #[case] expected: Option<(bool, &str)>,
    ) {
        let proof = Proof::of(&tool(name), &sources(), message, message);
        assert_eq!(proof.as_ref().map(|proof| proof.is_certain), expected.map(|(is_certain, _)| is_certain));
        if let (Some(proof), Some((_, path))) = (proof, expected) {
            let start = format!("{{{{seed:{path}");
            assert!(proof.values.iter().all(|value| value.starts_with(&start)), "{:?}", proof.values);
        }
    }

    #[test]
    fn what_is_said_of_another_tool_names_no_record() {
        let proof = Proof::of(&tool("get_order"), &sources(), "Forget A-4711: where is it?", "where is it?");
        assert!(proof.is_some_and(|proof| !proof.is_certain));
    }
}
