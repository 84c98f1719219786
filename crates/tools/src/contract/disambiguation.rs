//! Checks that a description says when an overlapping tool should be used instead.

use super::prose::Prose;
use super::{ContractFinding, ContractRule, Words, trigger};
use crate::overlap::OverlapMap;
use karat_cases::registry::{Registry, Tool};

/// Phrases that distinguish a tool from any other.
const CONTRAST_PHRASES: [&[&str]; 12] = [
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

/// Maximum number of neighbours with a sentence in a suggestion.
const MAX_SENTENCES: usize = 3;

/// Maximum length of a neighbour's condition quoted in a suggestion.
const MAX_CONDITION_LENGTH: usize = 80;

pub(super) fn check(
    tool: &Tool,
    prose: &Prose<'_>,
    registry: &Registry,
    overlaps: &OverlapMap,
) -> Option<ContractFinding> {
    // An unknown name is a mistake in the overlap map, not in the description.
    let neighbours: Vec<&Tool> = overlaps.neighbours(&tool.name).filter_map(|name| registry.tool(name)).collect();
    let normalized = normalized(prose.text);
    let (named, unnamed): (Vec<&Tool>, Vec<&Tool>) =
        neighbours.into_iter().partition(|other| names(&normalized, &other.name));
    // A contrast without a name may refer to any neighbour, unless a neighbour is named.
    if unnamed.is_empty() || named.is_empty() && has_contrast(prose) {
        return None;
    }
    let list: Vec<String> = unnamed.iter().map(|other| format!("'{}'", other.name)).collect();
    let message =
        format!("the overlap map declares an overlap with {}, but the description ignores it", list.join(", "));
    let mut sentences: Vec<String> = unnamed.iter().take(MAX_SENTENCES).map(|other| sentence(other)).collect();
    if let Some(more) = unnamed.len().checked_sub(MAX_SENTENCES).filter(|more| *more > 0) {
        sentences.push(format!("(and {more} more)"));
    }
    let suggestion = format!("add: {}", sentences.join(" "));
    let mut finding = Words::none().finding(ContractRule::DescriptionDisambiguation, tool, message, suggestion);
    finding.also = unnamed.iter().map(|other| other.name.clone()).collect();
    Some(finding)
}

/// Returns the sentence that refers to another tool, using that tool's own condition if it has one.
pub(super) fn sentence(other: &Tool) -> String {
    let prose = other.description.as_deref().map(Prose::of);
    let condition = prose.as_ref().and_then(|prose| trigger::condition(prose, other));
    match condition.filter(|condition| condition.chars().count() <= MAX_CONDITION_LENGTH && !condition.contains('\n')) {
        Some(condition) => format!("When {condition}, use {} instead.", other.name),
        None => format!("For …, use {} instead.", other.name),
    }
}

fn has_contrast(prose: &Prose<'_>) -> bool {
    let is_phrase = |at: usize, phrase: &[&str]| {
        phrase
            .iter()
            .enumerate()
            .all(|(offset, word)| prose.words.get(at + offset).is_some_and(|next| next.text.replace('’', "'") == *word))
    };
    (0..prose.words.len()).any(|at| CONTRAST_PHRASES.iter().any(|phrase| is_phrase(at, phrase)))
}

/// Whether a string contains a tool's name as a word, possibly written with spaces: "the get forecast tool".
fn names(normalized_text: &str, name: &str) -> bool {
    let name = normalized(name);
    let spaced = name.replace('_', " ");
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let contains = |name: &str| {
        normalized_text.match_indices(name).any(|(at, _)| {
            !normalized_text[..at].ends_with(is_part) && !normalized_text[at + name.len()..].starts_with(is_part)
        })
    };
    // A one-word name may occur as an ordinary word; this is accepted.
    !name.is_empty() && (contains(&name) || contains(&spaced))
}

/// Normalises case and treats `-` like `_`.
fn normalized(text: &str) -> String {
    text.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const FORECAST: &str = "Fetches the forecast. Use when the user asks about coming days.";

    fn finding_of(description: &str, neighbours: &str) -> Option<ContractFinding> {
        let tool = |name: &str, description: &str| Tool {
            name: name.to_owned(),
            description: Some(description.to_owned()).into(),
            ..Tool::default()
        };
        let registry = Registry::from_tools([
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
    fn accepts_disambiguation(#[case] description: &str, #[case] neighbours: &str) {
        assert_eq!(finding_of(description, neighbours), None);
    }

    #[test]
    fn suggests_the_neighbours_own_condition() {
        let finding = finding_of("Fetches the weather.", r#"["get_forecast", "get_climate"]"#).expect("a finding");
        assert_eq!(finding.also, ["get_climate", "get_forecast"]);
        assert_eq!(
            finding.suggestion,
            "add: For …, use get_climate instead. When the user asks about coming days, use get_forecast instead."
        );
    }

    #[test]
    fn a_contrast_with_one_neighbour_does_not_cover_others() {
        let description = "Fetches the weather. For coming days use get_forecast instead. Not get_forecasts.";
        let finding = finding_of(description, r#"["get_forecast", "get_climate"]"#).expect("a finding");
        assert_eq!(finding.also, ["get_climate"]);
        assert!(finding_of("Fetches my_get_forecast_v2.", r#"["get_forecast"]"#).is_some());
    }
}
