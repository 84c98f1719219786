//! Where another tool is easily taken for this one, the description says which one is meant when.

use super::prose::Prose;
use super::{ContractFinding, ContractRule, Words, trigger};
use crate::overlap::OverlapMap;
use karat_core::registry::{Registry, Tool};

/// Words that set a tool apart from another one, whichever that is.
const APART: [&[&str]; 12] = [
    &["instead"],
    &["not", "for"],
    &["not", "to"],
    &["not", "when"],
    &["not", "use"],
    &["don't", "use"],
    &["never", "use"],
    &["rather", "than"],
    &["unlike"],
    &["as", "opposed", "to"],
    &["in", "contrast", "to"],
    &["differs", "from"],
];

/// How many neighbours a suggestion has a sentence for.
const MOST_SENTENCES: usize = 3;

/// How long a neighbour's own condition may be to stand in a suggestion.
const LONGEST_CONDITION: usize = 80;

pub(super) fn check(
    tool: &Tool,
    prose: &Prose<'_>,
    registry: &Registry,
    overlaps: &OverlapMap,
) -> Option<ContractFinding> {
    // A name that the registry lacks is the overlap map's mistake, and no reason to write it into a description.
    let neighbours: Vec<&Tool> = overlaps.neighbours(&tool.name).filter_map(|name| registry.tool(name)).collect();
    let folded = folded(prose.text);
    let (named, unnamed): (Vec<&Tool>, Vec<&Tool>) =
        neighbours.into_iter().partition(|other| names(&folded, &other.name));
    // Words without a name may mean any neighbour, unless another one is named and they belong to that.
    if unnamed.is_empty() || named.is_empty() && sets_apart(prose) {
        return None;
    }
    let list: Vec<String> = unnamed.iter().map(|other| format!("'{}'", other.name)).collect();
    let message =
        format!("the overlap map declares {} as alike, but the description does not tell them apart", list.join(", "));
    let mut sentences: Vec<String> = unnamed.iter().take(MOST_SENTENCES).map(|other| sentence(other)).collect();
    if let Some(more) = unnamed.len().checked_sub(MOST_SENTENCES).filter(|more| *more > 0) {
        sentences.push(format!("(and {more} more)"));
    }
    let suggestion = format!("add: {}", sentences.join(" "));
    let mut finding = Words::none().finding(ContractRule::DescriptionDisambiguation, tool, message, suggestion);
    finding.also = unnamed.iter().map(|other| other.name.clone()).collect();
    Some(finding)
}

/// Returns the sentence that sends to another tool, in that tool's own words if it says when it is to be used.
pub(super) fn sentence(other: &Tool) -> String {
    let prose = other.description.as_deref().map(Prose::of);
    let condition = prose.as_ref().and_then(|prose| trigger::condition(prose, other));
    match condition.filter(|condition| condition.chars().count() <= LONGEST_CONDITION && !condition.contains('\n')) {
        Some(condition) => format!("When {condition}, use {} instead.", other.name),
        None => format!("For …, use {} instead.", other.name),
    }
}

fn sets_apart(prose: &Prose<'_>) -> bool {
    let is_phrase = |at: usize, phrase: &[&str]| {
        phrase.iter().enumerate().all(|(offset, word)| {
            prose.words.get(at + offset).is_some_and(|found| found.text.replace('’', "'") == *word)
        })
    };
    (0..prose.words.len()).any(|at| APART.iter().any(|phrase| is_phrase(at, phrase)))
}

/// Tells whether a text holds a tool's name as a word of its own, or written with spaces: "the get forecast tool".
fn names(folded_text: &str, name: &str) -> bool {
    let name = folded(name);
    let spaced = name.replace('_', " ");
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let holds = |name: &str| {
        folded_text.match_indices(name).any(|(at, _)| {
            !folded_text[..at].ends_with(is_part) && !folded_text[at + name.len()..].starts_with(is_part)
        })
    };
    // A name of one word may be in the text without being meant as a name; that is left to its author.
    !name.is_empty() && (holds(&name) || holds(&spaced))
}

/// Returns a text in which `-` and `_`, large and small letters are equal.
fn folded(text: &str) -> String {
    text.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const FORECAST: &str = "Fetches the forecast. Use when the user asks about coming days.";

    fn found(description: &str, neighbours: &str) -> Option<ContractFinding> {
        let tool = |name: &str, description: &str| Tool {
            name: name.to_owned(),
            description: Some(description.to_owned()).into(),
            ..Tool::default()
        };
        let registry = Registry::of([
            tool("get_weather", description),
            tool("get_forecast", FORECAST),
            tool("get_climate", "Fetches the climate."),
        ]);
        let map = format!(r#"{{"get_weather": {{"overlaps": {neighbours}}}}}"#);
        let map = OverlapMap::read(map.as_bytes()).expect("a map");
        check(&registry.tools()[0], &Prose::of(description), &registry, &map)
    }

    #[rstest]
    #[case::named("Fetches the weather. For coming days use get_forecast.", r#"["get_forecast"]"#)]
    #[case::other_spelling("Fetches the weather. Coming days: Get-Forecast.", r#"["get_forecast"]"#)]
    #[case::spaced("Fetches the weather. The get forecast tool is for coming days.", r#"["get_forecast"]"#)]
    #[case::not_for("Fetches the weather. Not for coming days.", r#"["get_forecast", "get_climate"]"#)]
    #[case::apart("Fetches the weather, unlike others.", r#"["get_forecast"]"#)]
    #[case::typographic("Fetches the weather. Don’t use it for coming days.", r#"["get_forecast"]"#)]
    #[case::no_neighbours("Fetches the weather.", "[]")]
    #[case::not_in_the_registry("Fetches the weather.", r#"["get_forcast"]"#)]
    fn told_apart(#[case] description: &str, #[case] neighbours: &str) {
        assert_eq!(found(description, neighbours), None);
    }

    #[test]
    fn what_is_missing_is_suggested_in_the_neighbours_own_words() {
        let finding = found("Fetches the weather.", r#"["get_forecast", "get_climate"]"#).expect("a finding");
        assert_eq!(finding.also, ["get_climate", "get_forecast"]);
        assert_eq!(
            finding.suggestion,
            "add: For …, use get_climate instead. When the user asks about coming days, use get_forecast instead."
        );
    }

    #[test]
    fn a_sentence_about_one_neighbour_does_not_speak_of_another() {
        let description = "Fetches the weather. For coming days use get_forecast instead. Not get_forecasts.";
        let finding = found(description, r#"["get_forecast", "get_climate"]"#).expect("a finding");
        assert_eq!(finding.also, ["get_climate"]);
        assert!(found("Fetches my_get_forecast_v2.", r#"["get_forecast"]"#).is_some());
    }
}
