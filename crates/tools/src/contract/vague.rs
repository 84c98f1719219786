//! Checks that a description distinguishes the tool from others.

use std::collections::BTreeSet;

use super::prose::{Prose, Word};
use super::{ContractFinding, ContractRule, Words, trigger};
use crate::similarity;
use karat_cases::registry::Tool;

/// Minimum number of words besides the tool's own name. With three, every eighth of 450 real descriptions would be
/// reported, including "Calculate the area of a triangle given its base and height".
const MIN_WORDS: usize = 2;

/// Words without specific meaning, which do not count; as normalised by [`similarity`].
const FILLERS: [&str; 13] = [
    "all",
    "based",
    "certain",
    "following",
    "info",
    "information",
    "optional",
    "parameter",
    "particular",
    "provided",
    "specific",
    "specified",
    "using",
];

/// Words that mean nothing in particular.
const VAGUE_WORDS: [&str; 14] = [
    "anything",
    "etc",
    "everything",
    "misc",
    "miscellaneous",
    "something",
    "somehow",
    "stuff",
    "thing",
    "things",
    "various",
    "variety",
    "whatever",
    "whatsoever",
];

/// Praise, unless a purpose follows.
const PRAISE: [&str; 6] = ["awesome", "great", "handy", "helpful", "powerful", "useful"];

/// Words that start a purpose: "helpful for debugging".
const PURPOSES: [&str; 7] = ["for", "if", "in", "to", "when", "whenever", "where"];

/// Verbs that are vague as the action.
const VAGUE_VERBS: [&str; 14] = [
    "deal",
    "deals",
    "does",
    "facilitate",
    "facilitates",
    "handle",
    "handles",
    "handling",
    "manage",
    "manages",
    "managing",
    "process",
    "processes",
    "processing",
];

/// Objects that are vague without a qualifier.
const VAGUE_OBJECTS: [&str; 6] = ["data", "info", "information", "items", "objects", "tasks"];

pub(super) fn check(tool: &Tool, prose: &Prose<'_>) -> Option<ContractFinding> {
    if let Some(span) = trigger::empty_condition(prose, tool) {
        let words = Words::at(prose, span);
        let message = format!("vague wording: '{}'", words.text.as_deref().unwrap_or_default());
        let suggestion = format!("say when to call it: {}", trigger::suggested_sentence(tool));
        return Some(words.finding(ContractRule::DescriptionVague, tool, message, suggestion));
    }
    let indices = vague_words(prose);
    let own = similarity::words(&tool.name);
    let mut remaining = similarity::words(prose.text);
    remaining.retain(|word| !own.contains(word) && !FILLERS.contains(&word.as_str()));
    if indices.is_empty() && remaining.len() >= MIN_WORDS {
        return None;
    }
    let mut seen = BTreeSet::new();
    let quoted: Vec<String> = indices
        .iter()
        .map(|&at| prose.words[at].text.as_str())
        .filter(|word| seen.insert(*word))
        .map(|word| format!("'{word}'"))
        .collect();
    let words = match (indices.first(), indices.last()) {
        (Some(&first), Some(&last)) if first == last => Words::at(prose, prose.span(first, first)),
        (Some(&first), _) => {
            Words { text: Some(seen.into_iter().collect::<Vec<_>>().join(", ")), span: Some(prose.span(first, first)) }
        }
        _ => Words::none(),
    };
    let message = if remaining.len() < MIN_WORDS {
        let remaining: Vec<String> = remaining.into_iter().map(|word| format!("'{word}'")).collect();
        let remaining = if remaining.is_empty() {
            "no meaningful words".to_owned()
        } else {
            format!("only {}", remaining.join(", "))
        };
        format!("apart from the tool's name, the description has {remaining}")
    } else {
        format!("vague wording: {}", quoted.join(", "))
    };
    let suggestion = "be specific: name the data, its source, and what the tool does with it".to_owned();
    Some(words.finding(ContractRule::DescriptionVague, tool, message, suggestion))
}

/// Returns the indices of words that are vague in their context.
fn vague_words(prose: &Prose<'_>) -> Vec<usize> {
    let mut indices = Vec::new();
    for (number, sentence) in prose.sentences.iter().enumerate() {
        let words = &prose.words[sentence.clone()];
        for at in 0..words.len() {
            let is_action = number == 0 && at == action_at(words);
            if is_vague(words, at, is_action) {
                indices.push(sentence.start + at);
            }
        }
    }
    indices
}

/// Returns the index of a sentence's verb: after an adverb, or after "this tool" or "tool that".
fn action_at(words: &[Word]) -> usize {
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    match (text(0), text(1)) {
        ("a" | "an" | "the" | "this", "function" | "helper" | "tool") => {
            2 + usize::from(matches!(text(2), "that" | "which"))
        }
        ("function" | "helper" | "tool", "that" | "which") => 2,
        ("it", _) => 1,
        _ => usize::from(words.first().is_some_and(Word::is_adverb)),
    }
}

fn is_vague(words: &[Word], at: usize, is_action: bool) -> bool {
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let (before, word, next) = (at.checked_sub(1).map_or("", text), text(at), text(at + 1));
    // "something to buy" is more specific than "something".
    if matches!(word, "anything" | "everything" | "something") {
        return matches!(next, "" | "else");
    }
    if VAGUE_WORDS.contains(&word) {
        return true;
    }
    if PRAISE.contains(&word) {
        return !PURPOSES.contains(&next) && matches!(next, "tool" | "helper" | "function" | "utility" | "");
    }
    if is_action {
        return VAGUE_VERBS.contains(&word);
    }
    // "Gets data." is vague, "Gets sales data of a shop" is not.
    let is_bare = at <= 1 || at == 2 && matches!(before, "a" | "all" | "any" | "some" | "the" | "your");
    VAGUE_OBJECTS.contains(&word) && is_bare && next.is_empty()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn word_lists_are_sorted() {
        assert!(FILLERS.is_sorted() && VAGUE_VERBS.is_sorted() && VAGUE_OBJECTS.is_sorted() && PRAISE.is_sorted());
    }

    fn finding_of(description: &str) -> Option<ContractFinding> {
        let tool = Tool { name: "get_weather".to_owned(), ..Tool::default() };
        check(&tool, &Prose::of(description))
    }

    #[rstest]
    #[case("Handles incoming mail of the support team.", "Handles")]
    #[case("Manages the calendar of a person.", "Manages")]
    #[case("This tool manages the calendar of a person.", "manages")]
    #[case("A tool that handles the calendar of a person.", "handles")]
    #[case("Looks up orders, invoices, etc.", "etc")]
    #[case("Does various operations on calendar events.", "does, various")]
    #[case("Finds stuff in the company's wiki.", "stuff")]
    #[case("Reads the mail of a person. A helpful tool.", "helpful")]
    #[case("Gets data. Use when the user asks for weather of a city or a region.", "data")]
    fn reports_vague_words(#[case] description: &str, #[case] words: &str) {
        assert_eq!(finding_of(description).expect("a finding").words.as_deref(), Some(words));
    }

    #[rstest]
    #[case("Gets the weather.", "no meaningful words")]
    #[case("Get the weather in a location", "only 'location'")]
    #[case("Weather!", "no meaningful words")]
    fn reports_descriptions_that_only_repeat_the_name(#[case] description: &str, #[case] remaining: &str) {
        let message = finding_of(description).expect("a finding").message;
        assert_eq!(message, format!("apart from the tool's name, the description has {remaining}"));
    }

    #[rstest]
    #[case("Gets sales data of one shop.")]
    #[case("Reads a file from the disk. Handles many text encodings.")]
    #[case("Lists environment variables, helpful for debugging of servers.")]
    #[case("Fetches the current temperature of a city.")]
    #[case("Gets the weather given its latitude and longitude.")]
    #[case("Searches the catalogue. Use when the user looks for something to buy.")]
    fn accepts_specific_descriptions(#[case] description: &str) {
        assert_eq!(finding_of(description), None);
    }
}
