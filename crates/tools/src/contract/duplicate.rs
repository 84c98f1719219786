//! The swap test: if two descriptions could be swapped without notice, a model cannot distinguish the tools.

use std::collections::{BTreeMap, BTreeSet};

use super::{ContractFinding, ContractRule, Words};
use crate::similarity::{similar_pairs, words};
use karat_cases::registry::{Registry, Tool, ToolField};

/// Minimum similarity of duplicates (see [`crate::similarity`]).
const MIN_DUPLICATE_SIMILARITY: f64 = 0.9;

/// Maximum number of tools or words listed in a message.
const MAX_LISTED: usize = 6;

/// Finds groups of tools with nearly the same description, each with the index of its first tool.
pub(super) fn check(registry: &Registry) -> Vec<(usize, ContractFinding)> {
    let tools = registry.tools();
    // Group equal word sets first, so that a thousand copies do not make half a million pairs.
    let mut by_words: BTreeMap<BTreeSet<String>, Vec<usize>> = BTreeMap::new();
    for (index, tool) in tools.iter().enumerate() {
        let words = words(&without_own_name(tool));
        if tool.unknown(ToolField::Description).is_none() && !words.is_empty() {
            by_words.entry(words).or_default().push(index);
        }
    }
    let mut texts: Vec<(BTreeSet<String>, Vec<usize>)> = by_words.into_iter().collect();
    texts.sort_by_key(|(_, indices)| indices[0]);
    let joined: Vec<String> =
        texts.iter().map(|(words, _)| words.iter().map(String::as_str).collect::<Vec<_>>().join(" ")).collect();
    let mut groups = Groups::of(texts.len());
    for pair in similar_pairs(joined.iter().map(String::as_str), MIN_DUPLICATE_SIMILARITY) {
        let (left, right) = pair.indices;
        let names = [left, right].map(|text| tools[texts[text].1[0]].name.as_str());
        if !distinguished_by_name(names, [&texts[left].0, &texts[right].0]) {
            groups.join(left, right);
        }
    }
    // Equal descriptions are duplicates, even if they contain a tool's name.
    let mut first_with: BTreeMap<&str, usize> = BTreeMap::new();
    for (text, (_, indices)) in texts.iter().enumerate() {
        for &index in indices {
            let description = tools[index].description.as_deref().unwrap_or_default().trim();
            groups.join(*first_with.entry(description).or_insert(text), text);
        }
    }
    let mut findings = Vec::new();
    for group in groups.all() {
        let mut indices: Vec<usize> = group.iter().flat_map(|&text| texts[text].1.iter().copied()).collect();
        if indices.len() > 1 {
            indices.sort_unstable();
            let members: Vec<&Tool> = indices.iter().map(|&index| &tools[index]).collect();
            let sets: Vec<&BTreeSet<String>> = group.iter().map(|&text| &texts[text].0).collect();
            findings.push((indices[0], finding(&members, &sets)));
        }
    }
    findings
}

/// Whether each of two descriptions contains a word of its own tool's name that the other lacks: "Finds a shop" and
/// "Finds a library" are distinguishable.
fn distinguished_by_name(names: [&str; 2], texts: [&BTreeSet<String>; 2]) -> bool {
    let [left, right] = names.map(words);
    let has_own_word = |own: &BTreeSet<String>, text: &BTreeSet<String>, other: &BTreeSet<String>| {
        own.iter().any(|word| text.contains(word) && !other.contains(word))
    };
    has_own_word(&left, texts[0], texts[1]) && has_own_word(&right, texts[1], texts[0])
}

fn finding(members: &[&Tool], sets: &[&BTreeSet<String>]) -> ContractFinding {
    let in_all = |word: &&String| sets.iter().all(|set| set.contains(*word));
    let shared: Vec<&String> = sets[0].iter().filter(in_all).collect();
    let differing: BTreeSet<&String> = sets.iter().flat_map(|set| set.iter()).filter(|word| !in_all(word)).collect();
    let names: Vec<String> = members.iter().map(|tool| tool.name.clone()).collect();
    let differ = match differing.len() {
        0 => "no word differs".to_owned(),
        _ => format!("only {} differ", quoted_list(differing.into_iter())),
    };
    let others = descriptions_of(&names[1..]);
    let is_equal =
        |pair: &[&Tool]| pair[0].description.as_deref().map(str::trim) == pair[1].description.as_deref().map(str::trim);
    let message = if members.windows(2).all(is_equal) {
        format!("the description is the same as {others}")
    } else {
        format!(
            "the description is nearly the same as {others}: they share {}, and {differ}",
            quoted_list(shared.iter().copied())
        )
    };
    let suggestion =
        "say in each when to use it and when to use the other: with the descriptions swapped, a model would \
         choose the same tool"
            .to_owned();
    let words = Words { text: Some(shared.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(" ")), span: None };
    let mut finding = words.finding(ContractRule::DescriptionDuplicate, members[0], message, suggestion);
    finding.also = names[1..].to_vec();
    finding
}

fn descriptions_of(names: &[String]) -> String {
    let noun = if names.len() == 1 { "that of" } else { "those of" };
    format!("{noun} {}", quoted_list(names.iter()))
}

fn quoted_list<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let quoted: Vec<String> = names.take(MAX_LISTED).map(|name| format!("'{name}'")).collect();
    if more > 0 { format!("{} and {more} more", quoted.join(", ")) } else { quoted.join(", ") }
}

/// Removes the tool's name, which would distinguish any two descriptions.
fn without_own_name(tool: &Tool) -> String {
    let description = tool.description.as_deref().unwrap_or_default();
    if !is_identifier(&tool.name) {
        return description.to_owned();
    }
    let mut rest = String::new();
    let mut end = 0;
    for (start, name) in description.match_indices(&tool.name) {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let after = start + name.len();
        let is_cut = description[..start].ends_with(is_part) || description[after..].starts_with(is_part);
        if !is_cut {
            rest.push_str(&description[end..start]);
            rest.push(' ');
            end = after;
        }
    }
    rest + &description[end..]
}

/// Whether a name cannot be an ordinary word.
fn is_identifier(name: &str) -> bool {
    let is_case_boundary = |pair: (char, char)| pair.0.is_lowercase() && pair.1.is_uppercase();
    name.chars().any(|letter| !letter.is_alphabetic()) || name.chars().zip(name.chars().skip(1)).any(is_case_boundary)
}

/// Disjoint sets (union-find).
struct Groups {
    /// Parent of each element: an earlier one of its group, or itself.
    parents: Vec<usize>,
}

impl Groups {
    fn of(count: usize) -> Self {
        Self { parents: (0..count).collect() }
    }

    fn find(&mut self, mut element: usize) -> usize {
        while self.parents[element] != element {
            self.parents[element] = self.parents[self.parents[element]];
            element = self.parents[element];
        }
        element
    }

    fn join(&mut self, left: usize, right: usize) {
        let (left, right) = (self.find(left), self.find(right));
        self.parents[left.max(right)] = left.min(right);
    }

    /// Returns all groups, ordered by their first elements.
    fn all(mut self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for element in 0..self.parents.len() {
            let first = self.find(element);
            groups.entry(first).or_default().push(element);
        }
        groups.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_of(descriptions: &[(&str, &str)]) -> Vec<(usize, ContractFinding)> {
        let tool = |(name, description): &(&str, &str)| Tool {
            name: (*name).to_owned(),
            description: Some((*description).to_owned()).into(),
            ..Tool::default()
        };
        check(&Registry::from_tools(descriptions.iter().map(tool)))
    }

    #[test]
    fn equal_except_for_the_name_is_a_duplicate() {
        let findings = findings_of(&[
            ("send_mail", "send_mail sends a message to a person at once."),
            ("get_weather", "Fetches the current weather of a city."),
            ("send_note", "send_note sends a message to a person at once."),
        ]);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].0, findings[0].1.tool.as_str()), (0, "send_mail"));
        assert_eq!(findings[0].1.also, ["send_note"]);
        assert_eq!(
            findings[0].1.message,
            "the description is nearly the same as that of 'send_note': they share 'message', 'once', 'person', \
             'send', and no word differs"
        );
    }

    #[test]
    fn equal_descriptions_are_duplicates_regardless_of_names() {
        let text = "Reads the weather of a city as get_weather sees it.";
        for names in [["a", "b"], ["weather", "city"], ["get_weather", "get_city"]] {
            let findings = findings_of(&names.map(|name| (name, text)));
            assert_eq!(findings.len(), 1, "{names:?}");
            assert_eq!(findings[0].1.message, format!("the description is the same as that of '{}'", names[1]));
        }
    }

    #[test]
    fn many_copies_are_one_finding() {
        let names: Vec<String> = (0..2000).map(|number| format!("tool_{number}")).collect();
        let tools: Vec<(&str, &str)> =
            names.iter().map(|name| (name.as_str(), "Sends a message to a person.")).collect();
        let findings = findings_of(&tools);
        assert_eq!((findings.len(), findings[0].1.also.len()), (1, 1999));
        assert!(findings[0].1.message.contains("'tool_6' and 1993 more"), "{}", findings[0].1.message);
    }

    #[test]
    fn descriptions_with_their_own_subject_are_not_duplicates() {
        let long: String = (b'a'..=b'z').map(|letter| char::from(letter).to_string().repeat(3) + " ").collect();
        let (shop, library) = (format!("Finds a shop {long}."), format!("Finds a library {long}."));
        assert_eq!(findings_of(&[("shop.find", &shop), ("library.find", &library)]), []);
        assert_eq!(findings_of(&[("find_1", &shop), ("find_2", &library)]).len(), 1);
    }

    #[test]
    fn ignores_empty_descriptions() {
        assert_eq!(findings_of(&[("a", ""), ("b", ""), ("c", "the"), ("d", "a")]), []);
    }
}
