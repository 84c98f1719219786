//! Suggests overlaps: tools with similar descriptions, that mention each other, or that were confused in results.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::OverlapMap;
use crate::confusion::Confusion;
use crate::similarity::SimilarityIndex;
use karat_cases::registry::{Registry, Tool};

/// Default minimum similarity for a suggestion.
pub const DEFAULT_MIN_SIMILARITY: f64 = 0.3;

/// Two tools that may overlap, with the evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// In registry order.
    pub tools: (String, String),
    /// Similarity of their names and descriptions, from 0 to 1.
    pub score: f64,
    /// Common words, heaviest first.
    pub shared_words: Vec<String>,
    /// Those of the two whose description mentions the other.
    pub named_by: Vec<String>,
    /// How often the second was called where the first was expected, and vice versa.
    pub confused: (u64, u64),
}

/// Suggestions, most urgent first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Suggestions {
    pub list: Vec<Suggestion>,
    /// Number of pairs left out because they are already declared.
    pub declared: usize,
    /// Tools without a known description, compared by name only.
    pub without_description: Vec<String>,
}

/// Suggests overlaps: confused pairs first, most frequent first; then by similarity.
///
/// Compares names with descriptions, see [`crate::similarity`]. A pair whose descriptions mention each other, or that
/// was confused, is suggested regardless of similarity.
pub fn suggest(
    registry: &Registry,
    map: Option<&OverlapMap>,
    confusion: Option<&Confusion>,
    min_similarity: f64,
) -> Suggestions {
    let tools = registry.tools();
    let texts: Vec<String> = tools.iter().map(compared_text).collect();
    let index = SimilarityIndex::of(texts.iter().map(String::as_str));
    let index_by_name: HashMap<&str, usize> =
        tools.iter().enumerate().map(|(index, tool)| (tool.name.as_str(), index)).collect();
    let mut named: BTreeMap<(usize, usize), BTreeSet<usize>> = BTreeMap::new();
    for (by, tool) in tools.iter().enumerate() {
        for name in names_in(tool.description.as_deref().unwrap_or_default()) {
            if let Some(&other) = index_by_name.get(name).filter(|other| **other != by) {
                named.entry((by.min(other), by.max(other))).or_default().insert(by);
            }
        }
    }
    let mut confused: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
    for (expected, called, count) in confusion.iter().flat_map(|confusion| confusion.worst()) {
        if let (Some(&expected), Some(&called)) = (index_by_name.get(expected), index_by_name.get(called)) {
            let counts = confused.entry((expected.min(called), expected.max(called))).or_default();
            *(if expected < called { &mut counts.0 } else { &mut counts.1 }) += count;
        }
    }
    let mut pairs = index.pairs(min_similarity);
    let similar: BTreeSet<(usize, usize)> = pairs.iter().map(|pair| pair.indices).collect();
    let others: BTreeSet<(usize, usize)> = named.keys().chain(confused.keys()).copied().collect();
    pairs.extend(others.difference(&similar).map(|&(left, right)| index.compare(left, right)));
    let mut suggestions = Suggestions {
        without_description: tools
            .iter()
            .filter(|tool| tool.description.get().is_none())
            .map(|tool| tool.name.clone())
            .collect(),
        ..Suggestions::default()
    };
    for pair in pairs {
        let (left, right) = (&tools[pair.indices.0].name, &tools[pair.indices.1].name);
        if map.is_some_and(|map| map.are_neighbours(left, right)) {
            suggestions.declared += 1;
            continue;
        }
        let named_by = named.get(&pair.indices).into_iter().flatten().map(|&by| tools[by].name.clone()).collect();
        suggestions.list.push(Suggestion {
            tools: (left.clone(), right.clone()),
            score: pair.score,
            shared_words: pair.shared,
            named_by,
            confused: confused.get(&pair.indices).copied().unwrap_or_default(),
        });
    }
    suggestions.list.sort_by(by_urgency);
    suggestions
}

fn by_urgency(left: &Suggestion, right: &Suggestion) -> Ordering {
    let count = |suggestion: &Suggestion| suggestion.confused.0 + suggestion.confused.1;
    count(right).cmp(&count(left)).then(right.score.total_cmp(&left.score)).then(left.tools.cmp(&right.tools))
}

fn compared_text(tool: &Tool) -> String {
    format!("{} {}", tool.name, tool.description.as_deref().unwrap_or_default())
}

/// Returns the words of a description that must be tool names.
///
/// A word with `_`, `-`, `.` or `camelCase` is not an ordinary word; a plain word is a name only if quoted.
fn names_in(description: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + description[from..].find(is_part)?;
        let end = description[start..].find(|letter| !is_part(letter)).map_or(description.len(), |end| start + end);
        from = end;
        let quoted = |letter: Option<char>| letter.is_some_and(|letter| "`'\"‘“’”".contains(letter));
        let in_quotes = quoted(description[..start].chars().next_back()) && quoted(description[end..].chars().next());
        // A trailing full stop rarely belongs to a name.
        let word = description[start..end].trim_end_matches('.');
        Some(Some(word).filter(|word| in_quotes || looks_like_name(word)))
    })
    .flatten()
}

fn looks_like_name(word: &str) -> bool {
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek();
        if "_-.".contains(letter) || (letter.is_lowercase() && next.is_some_and(|next| next.is_uppercase())) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use karat_cases::Expectation;

    fn registry() -> Registry {
        let tool = |name: &str, description: &str| Tool {
            name: name.to_owned(),
            description: (!description.is_empty()).then(|| description.to_owned()).into(),
            ..Tool::default()
        };
        Registry::from_tools([
            tool("get_weather", "Fetches the current weather of a city."),
            tool(
                "get_forecast",
                "Fetches the weather of a city for the next days. For today, use get_weather instead.",
            ),
            tool("send_mail", "Sends a message to a person."),
            tool("search", "Looks for pages. Not for 'send_mail'."),
            tool("unknown", ""),
        ])
    }

    fn pairs(suggestions: &Suggestions) -> Vec<(&str, &str)> {
        suggestions.list.iter().map(|suggestion| (suggestion.tools.0.as_str(), suggestion.tools.1.as_str())).collect()
    }

    #[test]
    fn suggests_similar_tools_and_tools_that_mention_each_other() {
        let suggestions = suggest(&registry(), None, None, DEFAULT_MIN_SIMILARITY);
        assert_eq!(pairs(&suggestions), [("get_weather", "get_forecast"), ("send_mail", "search")]);
        assert_eq!(suggestions.list[0].named_by, ["get_forecast"]);
        assert!(suggestions.list[0].shared_words.contains(&"weather".to_owned()));
        assert!(suggestions.list[1].score < DEFAULT_MIN_SIMILARITY);
        assert_eq!(suggestions.without_description, ["unknown"]);
        assert_eq!(pairs(&suggest(&registry(), None, None, 1.0)).len(), 2);
    }

    #[test]
    fn only_counts_declared_pairs() {
        let map = OverlapMap::read(br#"{"get_forecast": {"overlaps": ["get_weather"]}}"#).expect("valid");
        let suggestions = suggest(&registry(), Some(&map), None, DEFAULT_MIN_SIMILARITY);
        assert_eq!((pairs(&suggestions), suggestions.declared), (vec![("send_mail", "search")], 1));
    }

    #[test]
    fn confused_pairs_come_first_in_both_directions() {
        let mut confusion = Confusion::default();
        let expect = |tool: &str| Expectation { tools_called: Some(vec![tool.to_owned()]), ..Expectation::default() };
        let called = |tool: &str| vec![tool.to_owned()];
        for _ in 0..2 {
            confusion.add(&expect("search"), &called("unknown"));
        }
        confusion.add(&expect("unknown"), &called("search"));
        confusion.add(&expect("unknown"), &called("gone"));
        confusion.add(&expect("unknown"), &[]);
        let suggestions = suggest(&registry(), None, Some(&confusion), DEFAULT_MIN_SIMILARITY);
        assert_eq!(pairs(&suggestions)[0], ("search", "unknown"));
        assert_eq!((suggestions.list[0].confused, suggestions.list[0].score), ((2, 1), 0.0));
        assert_eq!(suggestions.list.len(), 3);
    }

    #[rstest]
    #[case("use get_weather instead.", &["get_weather"])]
    #[case("use getWeather, `search` or 'mail'. See github.search.", &["getWeather", "search", "mail", "github.search"])]
    #[case("search the web, it's a JSON API", &[])]
    #[case("", &[])]
    fn distinguishes_names_from_words(#[case] text: &str, #[case] names: &[&str]) {
        assert_eq!(names_in(text).collect::<Vec<_>>(), names);
    }
}
