//! The swap test: if two descriptions changed places and nobody noticed, a model cannot tell the tools apart.

use std::collections::{BTreeMap, BTreeSet};

use super::{ContractFinding, ContractRule, Words};
use crate::similarity::{similar_pairs, words};
use karat_core::registry::{Registry, Tool, ToolField};

/// How alike two descriptions must be (see [`crate::similarity`]).
const NEARLY_THE_SAME: f64 = 0.9;

/// How many tools and words a message names.
const MOST_NAMED: usize = 6;

/// Finds groups of tools with nearly the same description; each with the place of its first tool.
pub(super) fn check(registry: &Registry) -> Vec<(usize, ContractFinding)> {
    let tools = registry.tools();
    // Descriptions of the same words are one text, so that a thousand copies are not half a million pairs.
    let mut by_words: BTreeMap<BTreeSet<String>, Vec<usize>> = BTreeMap::new();
    for (place, tool) in tools.iter().enumerate() {
        let said = words(&without_own_name(tool));
        if tool.unknown(ToolField::Description).is_none() && !said.is_empty() {
            by_words.entry(said).or_default().push(place);
        }
    }
    let mut texts: Vec<(BTreeSet<String>, Vec<usize>)> = by_words.into_iter().collect();
    texts.sort_by_key(|(_, places)| places[0]);
    let joined: Vec<String> =
        texts.iter().map(|(words, _)| words.iter().map(String::as_str).collect::<Vec<_>>().join(" ")).collect();
    let mut groups = Groups::of(texts.len());
    for pair in similar_pairs(joined.iter().map(String::as_str), NEARLY_THE_SAME) {
        let (left, right) = pair.places;
        let names = [left, right].map(|text| tools[texts[text].1[0]].name.as_str());
        if !named_apart(names, [&texts[left].0, &texts[right].0]) {
            groups.join(left, right);
        }
    }
    // Equal texts are one description, whichever tool they name.
    let mut first_with: BTreeMap<&str, usize> = BTreeMap::new();
    for (text, (_, places)) in texts.iter().enumerate() {
        for &place in places {
            let description = tools[place].description.as_deref().unwrap_or_default().trim();
            groups.join(*first_with.entry(description).or_insert(text), text);
        }
    }
    let mut findings = Vec::new();
    for group in groups.all() {
        let mut places: Vec<usize> = group.iter().flat_map(|&text| texts[text].1.iter().copied()).collect();
        if places.len() > 1 {
            places.sort_unstable();
            let members: Vec<&Tool> = places.iter().map(|&place| &tools[place]).collect();
            let sets: Vec<&BTreeSet<String>> = group.iter().map(|&text| &texts[text].0).collect();
            findings.push((places[0], finding(&members, &sets)));
        }
    }
    findings
}

/// Tells whether each of two descriptions has a word of its own tool's name that the other one has not: "Finds a shop"
/// and "Finds a library" say which tool they belong to.
fn named_apart(names: [&str; 2], texts: [&BTreeSet<String>; 2]) -> bool {
    let [left, right] = names.map(words);
    let says = |own: &BTreeSet<String>, text: &BTreeSet<String>, other: &BTreeSet<String>| {
        own.iter().any(|word| text.contains(word) && !other.contains(word))
    };
    says(&left, texts[0], texts[1]) && says(&right, texts[1], texts[0])
}

fn finding(members: &[&Tool], sets: &[&BTreeSet<String>]) -> ContractFinding {
    let in_all = |word: &&String| sets.iter().all(|set| set.contains(*word));
    let shared: Vec<&String> = sets[0].iter().filter(in_all).collect();
    let differing: BTreeSet<&String> = sets.iter().flat_map(|set| set.iter()).filter(|word| !in_all(word)).collect();
    let names: Vec<String> = members.iter().map(|tool| tool.name.clone()).collect();
    let differ = match differing.len() {
        0 => "no word tells them apart".to_owned(),
        _ => format!("only {} differ", listed(differing.into_iter())),
    };
    let others = those_of(&names[1..]);
    let is_equal =
        |pair: &[&Tool]| pair[0].description.as_deref().map(str::trim) == pair[1].description.as_deref().map(str::trim);
    let message = if members.windows(2).all(is_equal) {
        format!("the description is the same as {others}")
    } else {
        format!(
            "the description is nearly the same as {others}: they share {}, and {differ}",
            listed(shared.iter().copied())
        )
    };
    let suggestion =
        "say in each when it is the right one and when the other is: with the descriptions swapped, a model would \
         choose the same"
            .to_owned();
    let words = Words { text: Some(shared.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(" ")), span: None };
    let mut finding = words.finding(ContractRule::DescriptionDuplicate, members[0], message, suggestion);
    finding.also = names[1..].to_vec();
    finding
}

fn those_of(names: &[String]) -> String {
    let noun = if names.len() == 1 { "that of" } else { "those of" };
    format!("{noun} {}", listed(names.iter()))
}

fn listed<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let quoted: Vec<String> = names.take(MOST_NAMED).map(|name| format!("'{name}'")).collect();
    if more > 0 { format!("{} and {more} more", quoted.join(", ")) } else { quoted.join(", ") }
}

/// Leaves out the tool's name itself, which would tell any two descriptions apart.
fn without_own_name(tool: &Tool) -> String {
    let description = tool.description.as_deref().unwrap_or_default();
    if !is_identifier(&tool.name) {
        return description.to_owned();
    }
    let mut kept = String::new();
    let mut end = 0;
    for (start, name) in description.match_indices(&tool.name) {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let after = start + name.len();
        let is_cut = description[..start].ends_with(is_part) || description[after..].starts_with(is_part);
        if !is_cut {
            kept.push_str(&description[end..start]);
            kept.push(' ');
            end = after;
        }
    }
    kept + &description[end..]
}

/// Tells whether a name is no word that a description could hold for what it means.
fn is_identifier(name: &str) -> bool {
    let is_hump = |pair: (char, char)| pair.0.is_lowercase() && pair.1.is_uppercase();
    name.chars().any(|letter| !letter.is_alphabetic()) || name.chars().zip(name.chars().skip(1)).any(is_hump)
}

/// Things that are joined to groups.
struct Groups {
    /// For each thing, an earlier one of its group, or itself.
    above: Vec<usize>,
}

impl Groups {
    fn of(count: usize) -> Self {
        Self { above: (0..count).collect() }
    }

    fn first(&mut self, mut thing: usize) -> usize {
        while self.above[thing] != thing {
            self.above[thing] = self.above[self.above[thing]];
            thing = self.above[thing];
        }
        thing
    }

    fn join(&mut self, left: usize, right: usize) {
        let (left, right) = (self.first(left), self.first(right));
        self.above[left.max(right)] = left.min(right);
    }

    /// Returns all groups in the order of their first things.
    fn all(mut self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for thing in 0..self.above.len() {
            let first = self.first(thing);
            groups.entry(first).or_default().push(thing);
        }
        groups.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(descriptions: &[(&str, &str)]) -> Vec<(usize, ContractFinding)> {
        let tool = |(name, description): &(&str, &str)| Tool {
            name: (*name).to_owned(),
            description: Some((*description).to_owned()).into(),
            ..Tool::default()
        };
        check(&Registry::of(descriptions.iter().map(tool)))
    }

    #[test]
    fn equal_but_for_the_name_is_a_duplicate() {
        let found = found(&[
            ("send_mail", "send_mail sends a message to a person at once."),
            ("get_weather", "Fetches the current weather of a city."),
            ("send_note", "send_note sends a message to a person at once."),
        ]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0, found[0].1.tool.as_str()), (0, "send_mail"));
        assert_eq!(found[0].1.also, ["send_note"]);
        assert_eq!(
            found[0].1.message,
            "the description is nearly the same as that of 'send_note': they share 'message', 'once', 'person', \
             'send', and no word tells them apart"
        );
    }

    #[test]
    fn equal_texts_are_duplicates_whatever_the_names() {
        let text = "Reads the weather of a city as get_weather sees it.";
        for names in [["a", "b"], ["weather", "city"], ["get_weather", "get_city"]] {
            let found = found(&names.map(|name| (name, text)));
            assert_eq!(found.len(), 1, "{names:?}");
            assert_eq!(found[0].1.message, format!("the description is the same as that of '{}'", names[1]));
        }
    }

    #[test]
    fn many_copies_are_one_finding() {
        let names: Vec<String> = (0..2000).map(|number| format!("tool_{number}")).collect();
        let tools: Vec<(&str, &str)> =
            names.iter().map(|name| (name.as_str(), "Sends a message to a person.")).collect();
        let found = found(&tools);
        assert_eq!((found.len(), found[0].1.also.len()), (1, 1999));
        assert!(found[0].1.message.contains("'tool_6' and 1993 more"), "{}", found[0].1.message);
    }

    #[test]
    fn descriptions_that_name_their_subject_are_told_apart() {
        let long: String = (b'a'..=b'z').map(|letter| char::from(letter).to_string().repeat(3) + " ").collect();
        let (shop, library) = (format!("Finds a shop {long}."), format!("Finds a library {long}."));
        assert_eq!(found(&[("shop.find", &shop), ("library.find", &library)]), []);
        assert_eq!(found(&[("find_1", &shop), ("find_2", &library)]).len(), 1);
    }

    #[test]
    fn what_is_empty_or_unknown_is_no_duplicate() {
        assert_eq!(found(&[("a", ""), ("b", ""), ("c", "the"), ("d", "a")]), []);
    }
}
