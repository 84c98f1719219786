//! A description says something that tells the tool from others.

use std::collections::BTreeSet;

use super::prose::{Prose, Word};
use super::{ContractFinding, ContractRule, Words, trigger};
use crate::similarity;
use karat_core::registry::Tool;

/// Fewer words than these beside the tool's own name tell it from no other tool. With three, every eighth of 450 real
/// descriptions would be found, among them "Calculate the area of a triangle given its base and height".
const FEWEST_WORDS: usize = 2;

/// Words that are about nothing in particular, and so do not count, as similarity takes them.
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

/// Words that stand for what is not said.
const HOLLOW: [&str; 14] = [
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

/// Praise, where no purpose follows.
const PRAISE: [&str; 6] = ["awesome", "great", "handy", "helpful", "powerful", "useful"];

/// What makes praise a purpose: "helpful for debugging".
const PURPOSES: [&str; 7] = ["for", "if", "in", "to", "when", "whenever", "where"];

/// Verbs of which nobody knows what they do, where they are the action.
const HOLLOW_VERBS: [&str; 14] = [
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

/// Objects that say nothing where nothing says of what.
const HOLLOW_OBJECTS: [&str; 6] = ["data", "info", "information", "items", "objects", "tasks"];

pub(super) fn check(tool: &Tool, prose: &Prose<'_>) -> Option<ContractFinding> {
    if let Some(span) = trigger::hollow_condition(prose, tool) {
        let words = Words::at(prose, span);
        let message = format!("'{}' could mean anything", words.text.as_deref().unwrap_or_default());
        let suggestion = format!("say when to call it: {}", trigger::suggested_sentence(tool));
        return Some(words.finding(ContractRule::DescriptionVague, tool, message, suggestion));
    }
    let places = hollow_words(prose);
    let own = similarity::words(&tool.name);
    let mut said = similarity::words(prose.text);
    said.retain(|word| !own.contains(word) && !FILLERS.contains(&word.as_str()));
    if places.is_empty() && said.len() >= FEWEST_WORDS {
        return None;
    }
    let mut seen = BTreeSet::new();
    let quoted: Vec<String> = places
        .iter()
        .map(|&at| prose.words[at].text.as_str())
        .filter(|word| seen.insert(*word))
        .map(|word| format!("'{word}'"))
        .collect();
    let words = match (places.first(), places.last()) {
        (Some(&first), Some(&last)) if first == last => Words::at(prose, prose.span(first, first)),
        (Some(&first), _) => {
            Words { text: Some(seen.into_iter().collect::<Vec<_>>().join(", ")), span: Some(prose.span(first, first)) }
        }
        _ => Words::none(),
    };
    let message = if said.len() < FEWEST_WORDS {
        let said: Vec<String> = said.into_iter().map(|word| format!("'{word}'")).collect();
        let said = if said.is_empty() { "nothing".to_owned() } else { format!("only {}", said.join(", ")) };
        format!("beside the tool's own name the description says {said}")
    } else {
        format!("{} could mean anything", quoted.join(", "))
    };
    let suggestion = "say what exactly: which things, of whom, from where, and what happens to them".to_owned();
    Some(words.finding(ContractRule::DescriptionVague, tool, message, suggestion))
}

/// Finds the words that say nothing where they stand.
fn hollow_words(prose: &Prose<'_>) -> Vec<usize> {
    let mut places = Vec::new();
    for (number, sentence) in prose.sentences.iter().enumerate() {
        let words = &prose.words[sentence.clone()];
        for at in 0..words.len() {
            let is_action = number == 0 && at == action_at(words);
            if is_hollow(words, at, is_action) {
                places.push(sentence.start + at);
            }
        }
    }
    places
}

/// Returns the place of a sentence's verb: behind an adverb, or behind "this tool" and "tool that".
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

fn is_hollow(words: &[Word], at: usize, is_action: bool) -> bool {
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let (before, word, next) = (at.checked_sub(1).map_or("", text), text(at), text(at + 1));
    // "something to buy" says more than "something".
    if matches!(word, "anything" | "everything" | "something") {
        return matches!(next, "" | "else");
    }
    if HOLLOW.contains(&word) {
        return true;
    }
    if PRAISE.contains(&word) {
        return !PURPOSES.contains(&next) && matches!(next, "tool" | "helper" | "function" | "utility" | "");
    }
    if is_action {
        return HOLLOW_VERBS.contains(&word);
    }
    // "Gets data." says nothing, "Gets sales data of a shop" does.
    let is_bare = at <= 1 || at == 2 && matches!(before, "a" | "all" | "any" | "some" | "the" | "your");
    HOLLOW_OBJECTS.contains(&word) && is_bare && next.is_empty()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn lists_of_words_are_in_order() {
        assert!(FILLERS.is_sorted() && HOLLOW_VERBS.is_sorted() && HOLLOW_OBJECTS.is_sorted() && PRAISE.is_sorted());
    }

    fn found(description: &str) -> Option<ContractFinding> {
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
    fn hollow(#[case] description: &str, #[case] words: &str) {
        assert_eq!(found(description).expect("a finding").words.as_deref(), Some(words));
    }

    #[rstest]
    #[case("Gets the weather.", "nothing")]
    #[case("Get the weather in a location", "only 'location'")]
    #[case("Weather!", "nothing")]
    fn says_no_more_than_the_name(#[case] description: &str, #[case] said: &str) {
        let message = found(description).expect("a finding").message;
        assert_eq!(message, format!("beside the tool's own name the description says {said}"));
    }

    #[rstest]
    #[case("Gets sales data of one shop.")]
    #[case("Reads a file from the disk. Handles many text encodings.")]
    #[case("Lists environment variables, helpful for debugging of servers.")]
    #[case("Fetches the current temperature of a city.")]
    #[case("Gets the weather given its latitude and longitude.")]
    #[case("Searches the catalogue. Use when the user looks for something to buy.")]
    fn something_is_said(#[case] description: &str) {
        assert_eq!(found(description), None);
    }
}
