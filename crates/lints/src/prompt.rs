//! Rules for messages.

use std::collections::{BTreeSet, HashMap};

use super::{Linter, Rule};
use karat_cases::token::{contains_token, looks_like_token};
use karat_cases::{Case, INPUT_POINTER, Input};

/// Shorter messages are not compared, since one word changes their meaning.
const MIN_WORDS: usize = 5;
/// Percentage of common words from which two messages are similar.
const SIMILAR_PERCENT: usize = 85;

pub(super) const SENT_LITERALLY: &str =
    "only {{row:…}} of a case with 'each' is replaced in messages; this is sent literally";

/// The messages seen so far.
pub(super) struct Prompts<'p> {
    seen: HashMap<String, &'p str>,
    /// Cases that a draft is compared with word by word.
    others: Vec<(&'p str, Vec<String>)>,
}

impl<'p> Prompts<'p> {
    pub(super) fn new(others: Option<&[&'p Case]>) -> Self {
        let mut prompts = Self { seen: HashMap::new(), others: Vec::new() };
        for case in others.unwrap_or_default() {
            let message = case.message_text();
            prompts.seen.entry(normalize(&message)).or_insert(&case.id);
            prompts.others.push((&case.id, words(&message)));
        }
        prompts
    }

    /// Returns the id of a case with the same sequence of words.
    fn same(&self, message: &str) -> Option<&'p str> {
        let own = words(message);
        self.others.iter().find(|(_, other)| *other == own).map(|(id, _)| *id)
    }

    /// Returns the id of a case with almost the same set of words.
    fn similar(&self, message: &str) -> Option<&'p str> {
        let set = |words: &[String]| words.iter().cloned().collect::<BTreeSet<String>>();
        let own = set(&words(message));
        let is_similar = |other: &[String]| {
            let other = set(other);
            let common = own.intersection(&other).count();
            let all = own.len() + other.len() - common;
            own.len() >= MIN_WORDS && common * 100 >= all * SIMILAR_PERCENT
        };
        self.others.iter().find(|(_, other)| is_similar(other)).map(|(id, _)| *id)
    }
}

fn normalize(message: &str) -> String {
    message.trim().to_lowercase()
}

/// Returns the words of a message in lower case, without punctuation.
fn words(message: &str) -> Vec<String> {
    let joined = message.replace(['\'', '’'], "");
    let words = joined.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

impl Linter<'_, '_> {
    /// Compares the messages with those of other cases.
    pub(super) fn prompt<'p>(&mut self, case: &'p Case, prompts: &mut Prompts<'p>) {
        // Cases with injections differ in what the tools return.
        if case.injections.is_some() {
            return;
        }
        let message = &*case.message_text();
        let (pointer, subject, those) = if case.user.is_some() {
            ("/user/goal", "the goal of the user is", "that")
        } else if case.has_turns() {
            ("/turns", "the messages are", "those")
        } else {
            (INPUT_POINTER, "the message is", "that")
        };
        if let Some(first) = prompts.seen.get(&normalize(message)).copied().or_else(|| prompts.same(message)) {
            self.add(Rule::SamePrompt, pointer, format!("{subject} the same as {those} of '{first}'"));
            return;
        }
        if let Some(near) = prompts.similar(message) {
            self.add(Rule::SimilarPrompt, pointer, format!("{subject} nearly the same as {those} of '{near}'"));
        }
        prompts.seen.insert(normalize(message), &case.id);
    }

    /// Applies the rules for a single message.
    pub(super) fn message(&mut self) {
        let user = self.case.user.as_ref().map(|user| user.to_value().to_string());
        if user.is_some_and(|text| contains_token(&text) || looks_like_token(&text)) {
            self.add(Rule::StrayToken, "/user", SENT_LITERALLY);
        }
        let Some(Input { message }) = &self.case.input else { return };
        if contains_token(message) || looks_like_token(message) {
            self.add(Rule::StrayToken, INPUT_POINTER, SENT_LITERALLY);
        }
        self.message_names_tool(message);
    }

    /// Reports a message that names a tool. Edge cases may name tools, since an attacker may know them.
    fn message_names_tool(&mut self, message: &str) {
        let Some(registry) = self.context.registry else { return };
        if self.case.difficulty == Some(karat_cases::Difficulty::Edge) || !message.contains(is_identifier_mark) {
            return;
        }
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let identifiers = message.split(|letter: char| !is_part(letter) && letter != '-');
        let named = identifiers.filter(|word| is_identifier(word)).find_map(|word| registry.tool(word));
        if let Some(tool) = named {
            let text =
                format!("the message names '{}', so it does not show whether the agent finds the tool", tool.name);
            self.add(Rule::MessageNamesTool, INPUT_POINTER, text);
        }
    }
}

/// Whether a letter can occur only in an identifier, not in a plain word.
fn is_identifier_mark(letter: char) -> bool {
    letter == '_' || letter.is_uppercase()
}

/// Whether a word is an identifier such as `get_weather` or `getWeather`, but not `Search`.
fn is_identifier(word: &str) -> bool {
    let has_case_boundary =
        word.chars().zip(word.chars().skip(1)).any(|(left, right)| left.is_lowercase() && right.is_uppercase());
    word.contains('_') || has_case_boundary
}
