//! Checks that the first sentence says what the tool does: it starts with a verb, and not with the return value.
//!
//! No list of verbs is complete, so unknown words pass; only starts that are clearly not verbs are reported.

use super::prose::{Prose, Word};
use super::{ContractFinding, ContractRule, Words};
use crate::similarity;
use karat_cases::registry::{Tool, same_name};

/// Words that start a sentence with a subject instead of a verb.
const SUBJECTS: [&str; 26] = [
    "a", "an", "another", "any", "each", "every", "he", "i", "it", "its", "my", "one", "our", "she", "some", "that",
    "the", "their", "there", "these", "they", "this", "those", "we", "you", "your",
];

/// Nouns for tools, and adjectives that praise them; none is a verb.
const NOUNS: [&str; 57] = [
    "adapter",
    "analyzer",
    "api",
    "basic",
    "calculator",
    "checker",
    "client",
    "connector",
    "converter",
    "crawler",
    "dummy",
    "endpoint",
    "explorer",
    "fetcher",
    "finder",
    "formatter",
    "function",
    "generator",
    "generic",
    "getter",
    "handler",
    "handy",
    "helper",
    "helpers",
    "helpful",
    "information",
    "loader",
    "manager",
    "method",
    "module",
    "parser",
    "planner",
    "plugin",
    "powerful",
    "provider",
    "reader",
    "retriever",
    "scheduler",
    "scraper",
    "searcher",
    "server",
    "service",
    "simple",
    "solver",
    "tool",
    "toolkit",
    "tools",
    "tracker",
    "translator",
    "useful",
    "utilities",
    "utility",
    "validator",
    "viewer",
    "widget",
    "wrapper",
    "writer",
];

/// Noun endings, which count only before a word of [`AFTER_NOUNS`].
const NOUN_ENDINGS: [&str; 9] = ["tion", "tions", "sion", "sions", "ment", "ments", "ness", "ity", "ities"];

/// Verbs with a noun ending.
const VERBS_LIKE_NOUNS: [&str; 24] = [
    "augment",
    "auction",
    "caution",
    "comment",
    "commission",
    "complement",
    "condition",
    "decommission",
    "document",
    "experiment",
    "implement",
    "increment",
    "instrument",
    "mention",
    "partition",
    "petition",
    "position",
    "provision",
    "question",
    "reposition",
    "requisition",
    "section",
    "supplement",
    "transition",
];

/// Words that follow a noun, and rarely a transitive verb.
const AFTER_NOUNS: [&str; 4] = ["about", "for", "of", "which"];

/// Verbs that can be followed by "of".
const VERBS_WITH_OF: [&str; 4] = ["approve", "dispose", "inform", "think"];

/// Nouns that end a phrase without a verb: "Web search tool."
const TOOL_WORDS: [&str; 7] = ["api", "endpoint", "function", "helper", "tool", "utility", "wrapper"];

/// Words that may follow such a noun.
const AFTER_TOOL_WORDS: [&str; 4] = ["for", "that", "to", "which"];

/// Words that occur only after a verb: "Run the tool".
const OBJECT_MARKERS: [&str; 14] =
    ["a", "all", "an", "and", "by", "from", "in", "it", "of", "on", "or", "the", "this", "with"];

/// Verbs that are also nouns and can start a short phrase: "Delete tool."
const SHORT_VERBS: [&str; 32] = [
    "add", "approve", "call", "cancel", "change", "check", "create", "delete", "describe", "disable", "edit", "enable",
    "execute", "find", "get", "install", "invoke", "list", "load", "make", "open", "read", "register", "remove", "run",
    "search", "send", "set", "show", "start", "stop", "update",
];

pub(super) fn check(tool: &Tool, prose: &Prose<'_>) -> Option<ContractFinding> {
    let sentence = skip_labels(prose.first_sentence(), tool, prose.text);
    let first = sentence.first()?;
    // "Recursively search …": a verb follows.
    let head = if first.is_adverb() { &sentence[1.min(sentence.len())..] } else { sentence };
    if let Some(words) = return_words(head, tool) {
        let message = format!("the first sentence describes the return value ('{}') instead of the action", {
            &prose.text[words.clone()]
        });
        let suggestion = "start with the action, for example 'Looks up …', 'Calculates …', 'Fetches …'".to_owned();
        return Some(Words::at(prose, words).finding(ContractRule::DescriptionReturns, tool, message, suggestion));
    }
    let words = words_without_action(head)?;
    let quoted = &prose.text[words.clone()];
    let message = format!("the first sentence starts with '{quoted}' instead of the action");
    let suggestion = "start with a verb, for example 'Fetches …', 'Creates …', 'Searches …'".to_owned();
    Some(Words::at(prose, words).finding(ContractRule::DescriptionAction, tool, message, suggestion))
}

/// Skips prefixes of the sentence: a `[tag]`, a `Label:`, the tool's own name.
fn skip_labels<'w>(mut sentence: &'w [Word], tool: &Tool, text: &str) -> &'w [Word] {
    while let [first, rest @ ..] = sentence {
        let following = text[first.span.end..].trim_start_matches(['*', '`', '"']);
        let is_name = same_name(&first.text, &tool.name.to_lowercase());
        let ends =
            following.starts_with([':', ']', ')']) || is_name && following.trim_start().starts_with(['-', '–', '—']);
        let is_noun = NOUNS.contains(&first.text.as_str()) || SUBJECTS.contains(&first.text.as_str());
        if rest.is_empty() || !ends || is_noun {
            break;
        }
        sentence = rest;
    }
    sentence
}

/// Returns the words that describe the return value.
fn return_words(sentence: &[Word], tool: &Tool) -> Option<std::ops::Range<usize>> {
    let [first, rest @ ..] = sentence else {
        return None;
    };
    let second = rest.first();
    // "Return" is the action of a tool that returns parcels.
    let own_words = similarity::words(&tool.name);
    let is_own = |word: &str| own_words.contains(word) || tool.name.to_lowercase().contains(word);
    match first.text.as_str() {
        "returns" | "return" | "returning" if !is_own("return") => Some(through(first, second)),
        "outputs" | "output" if !is_own("output") => Some(through(first, second)),
        "yields" | "yield" if !is_own("yield") => Some(through(first, second)),
        "gives" | "give" | "hands" | "passes" if second.is_some_and(|word| word.text == "back") => {
            Some(through(first, second))
        }
        "responds" | "answers" if second.is_some_and(|word| word.text == "with") => Some(through(first, second)),
        _ => None,
    }
}

fn through(first: &Word, last: Option<&Word>) -> std::ops::Range<usize> {
    first.span.start..last.unwrap_or(first).span.end
}

/// Returns the start of a sentence that clearly does not name an action.
fn words_without_action(sentence: &[Word]) -> Option<std::ops::Range<usize>> {
    let [first, rest @ ..] = sentence else {
        return None;
    };
    let word = first.text.as_str();
    let second = rest.first();
    let next = second.map_or("", |word| word.text.as_str());
    let is_noun_by_ending = NOUN_ENDINGS.iter().any(|ending| word.ends_with(ending) && word.len() > ending.len() + 2)
        && !VERBS_LIKE_NOUNS.contains(&word)
        && AFTER_NOUNS.contains(&next);
    let is_noun_by_of = next == "of" && !VERBS_WITH_OF.iter().any(|verb| word.starts_with(verb));
    let is_condition = matches!(word, "when" | "whenever" | "if") || word == "use" && matches!(next, "when" | "if");
    if is_condition || is_noun_by_ending || is_noun_by_of {
        return Some(through(first, second));
    }
    if SUBJECTS.contains(&word) || NOUNS.contains(&word) {
        return Some(through(first, second));
    }
    tool_noun_phrase(sentence)
}

/// Finds a phrase that only names the tool: "Web search tool for news".
fn tool_noun_phrase(sentence: &[Word]) -> Option<std::ops::Range<usize>> {
    const MAX_WORDS: usize = 6;
    let last = sentence.iter().take(MAX_WORDS).position(|word| TOOL_WORDS.contains(&word.text.as_str()))?;
    let is_end = sentence.get(last + 1).is_none_or(|word| AFTER_TOOL_WORDS.contains(&word.text.as_str()));
    let has_verb = sentence[..last].iter().any(|word| OBJECT_MARKERS.contains(&word.text.as_str()))
        || sentence.first().is_some_and(|word| {
            SHORT_VERBS.iter().any(|verb| word.text.strip_prefix(verb).is_some_and(|end| end.len() <= 2))
        });
    (is_end && !has_verb).then(|| through(&sentence[0], Some(&sentence[last])))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn word_lists_are_sorted() {
        assert!(SUBJECTS.is_sorted() && NOUNS.is_sorted() && OBJECT_MARKERS.is_sorted() && SHORT_VERBS.is_sorted());
    }

    fn finding_of(name: &str, description: &str) -> Option<(ContractRule, String)> {
        let tool = Tool { name: name.to_owned(), ..Tool::default() };
        check(&tool, &Prose::of(description)).map(|finding| (finding.rule, finding.words.unwrap_or_default()))
    }

    #[rstest]
    #[case("Fetches the weather.")]
    #[case("Fetch the weather.")]
    #[case("Fetching weather.")]
    #[case("Recursively search for files.")]
    #[case("Zaps a frobnicator.")]
    #[case("Apply a manifest to the cluster.")]
    #[case("Reapply a manifest to the cluster.")]
    #[case("[DEPRECATED] Reads a file.")]
    #[case("get_weather: Fetches the weather.")]
    #[case("`get-weather` - Fetches the weather.")]
    #[case("**Fetches** the weather.")]
    #[case("List all tools.")]
    #[case("Delete tool.")]
    #[case("Calls the API.")]
    #[case("Run an external tool.")]
    #[case("Transition to another state.")]
    #[case("Position for a new job is opened.")]
    #[case("Use this function to search the web.")]
    #[case("Provides the score of a match.")]
    #[case("Thinks of a number.")]
    #[case("Outputs of a run are compared.")]
    fn accepts_an_action(#[case] description: &str) {
        let actual = finding_of("get_weather", description);
        let expected =
            description.starts_with("Outputs").then(|| (ContractRule::DescriptionReturns, "Outputs of".to_owned()));
        assert_eq!(actual, expected);
    }

    #[rstest]
    #[case("A tool for weather.", "A tool")]
    #[case("This tool fetches the weather.", "This tool")]
    #[case("Tool that fetches the weather.", "Tool that")]
    #[case("Helper.", "Helper")]
    #[case("Function to calculate a sum.", "Function to")]
    #[case("The weather of a city.", "The weather")]
    #[case("Dummy web search tool.", "Dummy web")]
    #[case("Web search tool for news.", "Web search tool")]
    #[case("List of airports.", "List of")]
    #[case("Calculation of areas.", "Calculation of")]
    #[case("Use when the user asks for weather.", "Use when")]
    #[case("When the user asks for weather.", "When the")]
    #[case("Weather API", "Weather API")]
    #[case("Currency converter.", "")]
    fn reports_a_missing_action(#[case] description: &str, #[case] words: &str) {
        let expected = (!words.is_empty()).then(|| (ContractRule::DescriptionAction, words.to_owned()));
        assert_eq!(finding_of("get_weather", description), expected);
    }

    #[rstest]
    #[case("get_sum", "Returns the sum of two numbers.", Some("Returns the"))]
    #[case("get_sum", "Gives back JSON.", Some("Gives back"))]
    #[case("get_sum", "Outputs a table.", Some("Outputs a"))]
    #[case("get_sum", "Gives a bonus to the player.", None)]
    #[case("return_delivered_order_items", "Return some items of a delivered order.", None)]
    #[case("get_sum", "Calculates a sum. Returns a number.", None)]
    fn reports_a_return_value_instead_of_an_action(
        #[case] name: &str,
        #[case] description: &str,
        #[case] words: Option<&str>,
    ) {
        let expected = words.map(|words| (ContractRule::DescriptionReturns, words.to_owned()));
        assert_eq!(finding_of(name, description), expected);
    }
}
