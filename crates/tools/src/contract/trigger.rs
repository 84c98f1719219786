//! Checks that a sentence says when to use the tool: `Use when …`, in any common wording.

use super::prose::{Prose, Word};
use super::{ContractFinding, ContractRule, Words};
use karat_cases::registry::Tool;

/// Verbs for using a tool.
const USE_VERBS: [&str; 10] =
    ["apply", "call", "choose", "consult", "invoke", "pick", "prefer", "run", "trigger", "use"];

/// Words allowed between verb and condition: "Use this tool only when".
const FILLER_WORDS: [&str; 25] = [
    "action",
    "also",
    "always",
    "api",
    "command",
    "especially",
    "exclusively",
    "first",
    "function",
    "ideally",
    "it",
    "mainly",
    "method",
    "mostly",
    "one",
    "only",
    "operation",
    "primarily",
    "specifically",
    "that",
    "the",
    "this",
    "tool",
    "tools",
    "typically",
];

/// Words that start a condition or a purpose.
const CONDITION_WORDS: [&str; 17] = [
    "after", "anytime", "as", "before", "during", "for", "if", "in", "instead", "once", "rather", "to", "unless",
    "until", "when", "whenever", "where",
];

/// Adjectives before a condition or a purpose: "Useful for", "Ideal when".
const SUITABILITY_WORDS: [&str; 13] = [
    "appropriate",
    "best",
    "designed",
    "essential",
    "good",
    "great",
    "handy",
    "helpful",
    "ideal",
    "intended",
    "perfect",
    "suitable",
    "useful",
];

/// Words for the person in a condition: "When the user", "if you need", "when asked".
const PERSON_WORDS: [&str; 18] = [
    "agent",
    "agents",
    "anyone",
    "asked",
    "asking",
    "asks",
    "caller",
    "client",
    "customer",
    "customers",
    "people",
    "person",
    "somebody",
    "someone",
    "user",
    "user's",
    "users",
    "you",
];

/// Words that do not make a condition: "when needed", "if the user wants it".
const EMPTY_WORDS: [&str; 27] = [
    "a",
    "anything",
    "applicable",
    "appropriate",
    "as",
    "be",
    "desired",
    "do",
    "is",
    "it",
    "its",
    "necessary",
    "need",
    "needed",
    "needs",
    "possible",
    "relevant",
    "required",
    "something",
    "that",
    "the",
    "this",
    "to",
    "tool",
    "useful",
    "want",
    "wants",
];

/// Returns the byte range of a condition without content: `Use when needed.`
pub(super) fn empty_condition(prose: &Prose<'_>, tool: &Tool) -> Option<std::ops::Range<usize>> {
    let at = condition_at(prose, tool)?;
    let sentence = prose.sentences.iter().find(|range| range.contains(&at))?;
    let words = &prose.words[at + 1..sentence.end];
    let is_empty_word = |word: &Word| {
        EMPTY_WORDS.contains(&word.text.as_str()) || matches!(word.text.as_str(), "user" | "users" | "you")
    };
    (!words.is_empty() && words.iter().all(is_empty_word)).then(|| prose.span(at, sentence.end - 1))
}

pub(super) fn check(tool: &Tool, prose: &Prose<'_>) -> Option<ContractFinding> {
    if condition_at(prose, tool).is_some() {
        return None;
    }
    let message = "the description does not say when to use the tool: missing 'Use when …'".to_owned();
    let suggestion = format!("add a sentence that says when to call it: {}", suggested_sentence(tool));
    Some(Words::none().finding(ContractRule::DescriptionTrigger, tool, message, suggestion))
}

/// Returns a start for the missing sentence; only the author knows the purpose.
pub(super) fn suggested_sentence(tool: &Tool) -> String {
    let phrase = tool.trigger_phrases().iter().map(|phrase| phrase.trim()).find(|phrase| !phrase.is_empty());
    match phrase {
        Some(phrase) => format!("Use when the user asks \"{phrase}\" or similar."),
        None => "Use when the user asks ….".to_owned(),
    }
}

/// Returns the text after `Use when`, up to the end of the sentence.
pub(super) fn condition<'t>(prose: &Prose<'t>, tool: &Tool) -> Option<&'t str> {
    let at = condition_at(prose, tool)?;
    let sentence = prose.sentences.iter().find(|range| range.contains(&at))?;
    let is_when = matches!(prose.words[at].text.as_str(), "when" | "whenever" | "if");
    (is_when && at + 1 < sentence.end).then(|| &prose.text[prose.span(at + 1, sentence.end - 1)])
}

/// Whether these words contain the description's condition.
pub(super) fn is_condition(prose: &Prose<'_>, tool: &Tool, words: &std::ops::Range<usize>) -> bool {
    condition_at(prose, tool).is_some_and(|at| words.contains(&at))
}

/// Returns the index of the word that starts the condition.
fn condition_at(prose: &Prose<'_>, tool: &Tool) -> Option<usize> {
    let own = tool.name.to_lowercase();
    prose.sentences.iter().find_map(|sentence| {
        let words = &prose.words[sentence.clone()];
        (0..words.len()).find_map(|at| condition_from(words, at, &own)).map(|at| sentence.start + at)
    })
}

fn condition_from(words: &[Word], at: usize, own: &str) -> Option<usize> {
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let condition_after = |from: usize, between: &dyn Fn(&str) -> bool| {
        let at = (from..words.len()).find(|&at| !between(text(at)) || CONDITION_WORDS.contains(&text(at)))?;
        CONDITION_WORDS.contains(&text(at)).then_some(at)
    };
    let word = text(at);
    if USE_VERBS.contains(&word) {
        return condition_after(at + 1, &|word| FILLER_WORDS.contains(&word) || word == own);
    }
    if SUITABILITY_WORDS.contains(&word) {
        return condition_after(at + 1, &|_| false);
    }
    if word == "used" {
        let is_passive = at > 0 && matches!(text(at - 1), "be" | "is" | "are");
        let condition = condition_after(at + 1, &|word| FILLER_WORDS.contains(&word))?;
        return (is_passive || matches!(text(condition), "when" | "whenever" | "if")).then_some(condition);
    }
    if matches!(word, "when" | "whenever" | "if" | "anytime") {
        let person = (at + 1..=at + 2).find(|&at| PERSON_WORDS.contains(&text(at)))?;
        return (person == at + 1 || matches!(text(at + 1), "a" | "an" | "the" | "another")).then_some(at);
    }
    None
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn tool() -> Tool {
        Tool { name: "get_city_weather".to_owned(), ..Tool::default() }
    }

    #[test]
    fn word_lists_are_sorted() {
        let lists: [&[&str]; 6] =
            [&USE_VERBS, &FILLER_WORDS, &CONDITION_WORDS, &SUITABILITY_WORDS, &PERSON_WORDS, &EMPTY_WORDS];
        assert!(lists.iter().all(|list| list.is_sorted()));
    }

    #[rstest]
    #[case("Use when the user asks.")]
    #[case("use this when asked")]
    #[case("USE THIS TOOL WHENEVER the sky is grey.")]
    #[case("Use this tool to find out.")]
    #[case("Use only if nothing else helps.")]
    #[case("Use for forecasts.")]
    #[case("Call this when it rains.")]
    #[case("Use get_city_weather when it rains.")]
    #[case("**Use when**: it rains.")]
    #[case("Fetches it. When the user wants it, fetch.")]
    #[case("Helps if you need weather.")]
    #[case("Fetches it when asked.")]
    #[case("Useful for planning trips.")]
    #[case("Can be used to plan trips.")]
    #[case("Should be used when it rains.")]
    #[case("Perfect for picnics.")]
    fn accepts_a_trigger(#[case] description: &str) {
        assert_eq!(check(&tool(), &Prose::of(description)), None);
    }

    #[rstest]
    #[case("Fetches the weather.")]
    #[case("Reads a file. Use the 'head' parameter to read only the first lines.")]
    #[case("Reads a file. DEPRECATED: Use read_text_file instead.")]
    #[case("Writes a file. Use with caution.")]
    #[case("Not for forecasts; for coming days use get_forecast.")]
    #[case("Fails when the file is missing.")]
    #[case("Adds numbers used to compute a sum.")]
    fn reports_a_missing_trigger(#[case] description: &str) {
        let finding = check(&tool(), &Prose::of(description)).expect("a finding");
        assert_eq!(finding.suggestion, "add a sentence that says when to call it: Use when the user asks ….");
    }

    #[rstest]
    #[case("Lists the holdings of a portfolio. Use when needed.", Some("when needed"))]
    #[case("Lists holdings. Use it if the user wants it.", Some("if the user wants it"))]
    #[case("Lists holdings. Use when the user asks about a portfolio.", None)]
    #[case("Lists holdings. Use for portfolios.", None)]
    #[case("Lists holdings.", None)]
    fn finds_empty_conditions(#[case] description: &str, #[case] expected: Option<&str>) {
        let condition = empty_condition(&Prose::of(description), &tool());
        assert_eq!(condition.map(|span| &description[span]), expected);
    }

    #[test]
    fn suggests_trigger_phrases() {
        let tool = Tool { trigger_phrases: Some(vec!["is it cold?".to_owned()]).into(), ..tool() };
        assert_eq!(suggested_sentence(&tool), "Use when the user asks \"is it cold?\" or similar.");
    }

    #[rstest]
    #[case("Fetches it. Use when the user asks about coming days. Not today.", Some("the user asks about coming days"))]
    #[case("Fetches it. Use to plan.", None)]
    #[case("Use when", None)]
    fn extracts_the_condition(#[case] description: &str, #[case] expected: Option<&str>) {
        assert_eq!(condition(&Prose::of(description), &tool()), expected);
    }
}
