//! What a simulated user may mention: the goal, the facts, and what the agent has said.

use std::collections::HashSet;

use karat_cases::SimulatedUser;
use serde_json::Value;

use crate::assertion::known_numbers;
use crate::conversation::Exchange;

/// The texts that a simulated user knows, prepared for look-ups.
pub(super) struct Known {
    /// In lower case, with spaces around it and in place of punctuation at the ends of words.
    words: String,
    pub(super) numbers: HashSet<String>,
    /// The months of dates written in digits, from 1.
    pub(super) months: HashSet<usize>,
}

impl Known {
    pub(super) fn new(user: &SimulatedUser, exchanges: &[Exchange]) -> Self {
        let mut known = Self { words: " ".to_owned(), numbers: HashSet::new(), months: HashSet::new() };
        known.add_text(&user.goal);
        known.add_value(&serde_json::to_value(&user.facts).unwrap_or_default());
        for exchange in exchanges {
            known.add_text(&exchange.trace.response);
        }
        known
    }

    /// Whether a word or phrase occurs as whole words, whatever its case.
    pub(super) fn has_words(&self, text: &str) -> bool {
        self.words.contains(&normalised(text))
    }

    fn add_value(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.add_value(item)),
            Value::Object(members) => {
                for (name, member) in members {
                    self.add_text(name);
                    self.add_value(member);
                }
            }
            Value::String(text) => self.add_text(text),
            // As written, since long numbers must not be rounded.
            Value::Number(number) => self.add_text(&number.to_string()),
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        self.words.push_str(normalised(text).trim_start());
        self.numbers.extend(known_numbers(text));
        self.months.extend(text.split_whitespace().flat_map(months_of_date));
    }
}

/// Returns the words of a text in lower case, separated and enclosed by single spaces.
fn normalised(text: &str) -> String {
    let mut words = String::with_capacity(text.len() + 2);
    words.push(' ');
    for word in text.split(|letter: char| letter.is_whitespace() || "/,;:()[]{}\"“”«»|".contains(letter)) {
        let word = trimmed(word);
        if !word.is_empty() {
            words.extend(word.to_lowercase().chars().map(|letter| if letter == '’' { '\'' } else { letter }));
            words.push(' ');
        }
    }
    words
}

/// Removes punctuation and a possessive ending around a word.
pub(super) fn trimmed(word: &str) -> &str {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word)
}

/// Returns the months that a date such as `2026-03-04` or `4.3.2026` may mean: in digits, day and month may be swapped.
fn months_of_date(word: &str) -> Vec<usize> {
    let word = word.split('T').next().unwrap_or_default();
    let parts: Vec<&str> = trimmed(word).split(['-', '/', '.']).collect();
    let [first, second, third] = parts[..] else { return Vec::new() };
    let number = |part: &str| part.parse::<usize>().ok();
    let (Some(first), Some(second), Some(_)) = (number(first), number(second), number(third)) else {
        return Vec::new();
    };
    [first, second].into_iter().filter(|month| (1..=12).contains(month)).collect()
}
