//! Rules that the messages of a simulated user must keep.

use std::fmt;

use karat_cases::SimulatedUser;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::known::{Known, trimmed};
use crate::assertion::ungrounded_numbers;
use crate::conversation::Exchange;

/// Maximum length of a message, in characters.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// What only someone who does not play a user says, in lower case with straight apostrophes.
const OUT_OF_ROLE: [&str; 22] = [
    "as an ai",
    "i'm an ai",
    "i am an ai",
    "language model",
    "simulated user",
    "i'm simulated",
    "i am simulated",
    "role-play",
    "roleplay",
    "my instructions",
    "my system prompt",
    "my goal is to",
    "the facts say",
    "not in my facts",
    "as the user",
    "as a user simulator",
    "how can i help you",
    "how may i help you",
    "how can i assist you",
    "how may i assist you",
    "is there anything else i can help",
    "i'm here to help",
];

/// Names of speakers, which a message must not begin a line with.
const SPEAKERS: [&str; 5] = ["user:", "agent:", "assistant:", "system:", "customer:"];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Words that are capitalised anywhere and name nothing, in lower case.
const CAPITALISED_WORDS: [&str; 34] = [
    "i", "i'm", "i'd", "i'll", "i've", "ok", "okay", "hi", "hello", "hey", "thanks", "thank", "please", "yes", "no",
    "sorry", "mr", "mrs", "ms", "dr", "asap", "fyi", "ps", "pm", "am", "id", "email", "url", "pdf", "tv", "faq", "usd",
    "eur", "eta",
];

/// A message of a simulated user that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    pub rule: FaultRule,
    /// The part of the message that breaks the rule.
    pub found: String,
    /// The message, which was not sent.
    pub message: String,
}

/// A rule for the messages of simulated users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FaultRule {
    /// The message has a text, and the first one is not missing.
    Message,
    /// The user speaks as a person who talks to an agent.
    Role,
    /// Ids, addresses and links are known.
    Id,
    /// Months and weekdays are known.
    Date,
    /// Numbers are known.
    Number,
    /// Names are known.
    Name,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, found, .. } = self;
        let kind = match rule {
            FaultRule::Message => return out.write_str("said nothing"),
            FaultRule::Role => return write!(out, "left its role: '{found}'"),
            FaultRule::Id => "id",
            FaultRule::Date => "date",
            FaultRule::Number => "number",
            FaultRule::Name => "name",
        };
        write!(out, "invented the {kind} '{found}', which is neither in 'goal', 'facts' nor an answer of the agent")
    }
}

/// Returns the first rule that a message breaks, in the order of the rules.
pub fn find_fault(user: &SimulatedUser, exchanges: &[Exchange], message: &str) -> Option<Fault> {
    let fault = |rule, found: &str| Some(Fault { rule, found: found.to_owned(), message: message.to_owned() });
    if message.trim().is_empty() {
        return fault(FaultRule::Message, "");
    }
    if let Some(found) = out_of_role(message) {
        return fault(FaultRule::Role, found);
    }
    let known = Known::new(user, exchanges);
    let words: Vec<Word<'_>> = words(message).collect();
    if let Some(word) = words.iter().find(|word| word.is_id() && !known.has_words(word.text)) {
        return fault(FaultRule::Id, word.text);
    }
    if let Some(word) = words.iter().find(|word| word.is_unknown_date(&known)) {
        return fault(FaultRule::Date, word.text);
    }
    if let Some(number) = ungrounded_numbers(message, &known.numbers).first() {
        return fault(FaultRule::Number, number);
    }
    if let Some(word) = words.iter().find(|word| word.is_name() && !known.has_words(word.text)) {
        return fault(FaultRule::Name, word.text);
    }
    None
}

/// Returns what shows that the message is not that of a user.
fn out_of_role(message: &str) -> Option<&str> {
    if message.chars().count() > MAX_MESSAGE_CHARS {
        return Some("a message of more than 2000 characters");
    }
    let text = message.to_lowercase().replace('’', "'");
    let starts_with = |speaker: &&&str| text.lines().any(|line| line.trim_start().starts_with(**speaker));
    OUT_OF_ROLE.iter().find(|phrase| text.contains(**phrase)).or_else(|| SPEAKERS.iter().find(starts_with)).copied()
}

/// A word of a message, without the punctuation around it.
struct Word<'m> {
    text: &'m str,
    /// Whether it is the first word of a sentence, which is always capitalised.
    is_first: bool,
}

fn words(message: &str) -> impl Iterator<Item = Word<'_>> {
    let mut ends_sentence = true;
    let parts = message.split_inclusive(|letter: char| letter.is_whitespace() || "/,;()[]{}\"“”«»|".contains(letter));
    parts.filter_map(move |part| {
        let is_line_end = part.ends_with('\n');
        let written = part.trim_matches(|letter: char| letter.is_whitespace() || "/,;()[]{}\"“”«»|".contains(letter));
        let text = trimmed(written);
        if text.is_empty() {
            ends_sentence |= is_line_end;
            return None;
        }
        let word = Word { text, is_first: ends_sentence };
        ends_sentence = is_line_end || written.ends_with(['.', '!', '?', ':', '…']);
        Some(word)
    })
}

impl Word<'_> {
    /// Whether the word is an address, or mixes letters with digits; a number with a unit or an ending (`5km`, `3rd`)
    /// is none.
    fn is_id(&self) -> bool {
        let letters = self.text.chars().filter(|letter| letter.is_alphabetic()).count();
        let has_digits = self.text.chars().any(|letter| letter.is_ascii_digit());
        let rest = self.text.trim_start_matches(|letter: char| letter.is_ascii_digit() || ".,:-".contains(letter));
        let is_measure = rest.len() < self.text.len() && letters <= 3 && rest.chars().all(char::is_alphabetic);
        self.text.contains('@') || letters > 0 && has_digits && !is_measure
    }

    /// Whether the word is a month or a weekday that is not known.
    fn is_unknown_date(&self, known: &Known) -> bool {
        let lower = self.text.to_lowercase();
        // "may" and "march" are also verbs.
        let is_capitalised = self.text.chars().next().is_some_and(char::is_uppercase) && !self.is_first;
        match MONTHS.iter().position(|month| *month == lower) {
            Some(month) if is_capitalised || !["may", "march"].contains(&lower.as_str()) => {
                !known.months.contains(&(month + 1)) && !known.has_words(&lower) && !known.has_words(&lower[..3])
            }
            Some(_) => false,
            None => WEEKDAYS.contains(&lower.as_str()) && !known.has_words(&lower),
        }
    }

    /// Whether the word is capitalised within a sentence, so that it names something.
    fn is_name(&self) -> bool {
        let lower = self.text.to_lowercase().replace('’', "'");
        let is_capitalised = self.text.chars().next().is_some_and(char::is_uppercase);
        let is_date = MONTHS.contains(&lower.as_str()) || WEEKDAYS.contains(&lower.as_str());
        is_capitalised && !self.is_first && !is_date && !self.is_id() && !CAPITALISED_WORDS.contains(&lower.as_str())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::trace::Trace;
    use karat_cases::{Case, Facts};

    fn user() -> SimulatedUser {
        let facts = json!({
            "order": "ORD-4411", "name": "Ada Byron", "due": "2026-03-04", "mail": "ada@example.com", "price": 1234.5,
        });
        let facts = facts.as_object().cloned().map(Facts::Values);
        SimulatedUser { goal: "cancel the order of Tuesday".to_owned(), facts, max_turns: None, model: None }
    }

    fn exchanges() -> Vec<Exchange> {
        let trace = Trace { response: "Refund 7 takes 3 days, says Bob.".to_owned(), ..Trace::default() };
        vec![Exchange { message: "Is Zoe there with 99?".to_owned(), trace }]
    }

    #[rstest]
    #[case("Please cancel ORD-4411, it is for Ada Byron.")]
    #[case("It was due on March 4, 2026, a Tuesday.")]
    #[case("It was due on 4 March 2026")]
    #[case("The order (ord-4411) costs 1,234.50, and my mail is ada@example.com.")]
    #[case("Bob's refund 7? I'm fine with 3 days!")]
    #[case("No number at all. Thanks, I hope you can help me. OK?")]
    #[case("May I cancel it? I may march on.")]
    #[case("Bob said so: Refund takes 3d")]
    fn what_is_known_may_be_said(#[case] message: &str) {
        assert_eq!(find_fault(&user(), &exchanges(), message), None);
    }

    #[rstest]
    #[case::number("Cancel order 5512", FaultRule::Number, "5512")]
    #[case::own_message_is_no_source("I have 99 of them", FaultRule::Number, "99")]
    #[case::id("Cancel ORD-4412 now", FaultRule::Id, "ORD-4412")]
    #[case::address("Write to eve@example.com", FaultRule::Id, "eve@example.com")]
    #[case::part_of_an_id("Cancel ORD-44 now", FaultRule::Id, "ORD-44")]
    #[case::month("It was due in July", FaultRule::Date, "July")]
    #[case::weekday("It was due on friday", FaultRule::Date, "friday")]
    #[case::name("I am Eve", FaultRule::Name, "Eve")]
    #[case::name_of_the_own_message("Ask Zoe please", FaultRule::Name, "Zoe")]
    #[case::empty("  \n", FaultRule::Message, "")]
    #[case::helper("How can I help you today?", FaultRule::Role, "how can i help you")]
    #[case::machine("I’m an AI, so I cannot", FaultRule::Role, "i'm an ai")]
    #[case::speaker("Fine.\nAgent: it is cancelled", FaultRule::Role, "agent:")]
    fn inventions_and_other_roles_are_faults(#[case] message: &str, #[case] rule: FaultRule, #[case] found: &str) {
        let fault = find_fault(&user(), &exchanges(), message).expect("a fault");
        assert_eq!((fault.rule, fault.found.as_str(), fault.message.as_str()), (rule, found, message));
    }

    #[test]
    fn a_long_message_is_not_that_of_a_user() {
        let fault = find_fault(&user(), &[], &"so ".repeat(700)).expect("a fault");
        assert_eq!(fault.rule, FaultRule::Role);
    }

    #[test]
    fn facts_may_be_sentences() {
        let case =
            json!({"id": "a", "user": {"goal": "g", "facts": ["My id is K7X.", "I live in Oslo"]}, "expect": {}});
        let user = Case::read_one(&case).expect("valid case").user.expect("a simulated user");
        assert_eq!(find_fault(&user, &[], "My id is k7x and I live in Oslo."), None);
        assert!(find_fault(&user, &[], "I live in Rome.").is_some());
    }
}
