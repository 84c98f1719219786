//! Proof values show that a tool ran: they are in its result and in the response, and cannot be guessed.

use std::collections::{HashMap, HashSet};

use karat_core::token::contains_token;
use karat_core::trace::ToolCall;
use karat_json::text::text_form;
use serde_json::Value;

use super::observed::ObservedTurn;
use super::personal_data::find_personal_data;
use super::value_match::{contains_ignore_case, contains_whole};
use super::volatile::{is_sensitive_name, is_volatile, is_volatile_name};
use crate::Brief;
use crate::identifier::is_identifier;
use crate::token_values::TokenIndex;

/// Length of a proof value in characters. A single letter matches anywhere, and a sentence is likely to be reworded.
const PROOF_LENGTHS: std::ops::RangeInclusive<usize> = 2..=60;

/// Maximum number of values taken from a run.
const MAX_PROOF_VALUES: usize = 3;

/// Maximum number of values collected from a result.
const MAX_LEAVES: usize = 2_000;

/// A value of a tool result that the response repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) tool: String,
    pub(super) text: String,
}

/// Number of traces that have each value. Common values prove little.
#[derive(Debug, Default)]
pub(super) struct Rarity(HashMap<String, usize>);

impl Rarity {
    /// Counts the values of a trace.
    pub(super) fn count(&mut self, observed: &ObservedTurn) {
        let texts: HashSet<String> = repeated_values(observed, |_| false).into_iter().map(|proof| proof.text).collect();
        for text in texts {
            *self.0.entry(text).or_default() += 1;
        }
    }

    fn trace_count(&self, text: &str) -> usize {
        self.0.get(text).copied().unwrap_or_default()
    }
}

/// Returns proof values from a run: values of tool results that the response repeats, else facts of the test data in
/// the response. A value that has a token is returned as the token.
pub fn proof_values(brief: &Brief, message: &str, calls: &[ToolCall], response: &str) -> Vec<String> {
    let tokens = TokenIndex::new(&brief.sources);
    let observed = ObservedTurn::from_run(message, calls, response);
    let mut chosen = choose_proofs(&observed, &Rarity::default(), &tokens, usize::MAX);
    // Numbers without a token may differ in the next run.
    chosen.retain(|proof| {
        tokens.token(&proof.text).is_some() || !proof.text.starts_with(|first: char| first.is_ascii_digit())
    });
    chosen.truncate(MAX_PROOF_VALUES);
    let named = |text: &str| tokens.token(text).map_or_else(|| text.to_owned(), str::to_owned);
    if !chosen.is_empty() {
        return chosen.iter().map(|proof| named(&proof.text)).collect();
    }
    let is_proof =
        |text: &str| is_distinctive(text) && contains_whole(text, response) && !contains_ignore_case(text, message);
    let facts = tokens.values().into_iter().filter(|(text, _)| is_proof(text));
    facts.map(|(_, token)| token.to_owned()).take(MAX_PROOF_VALUES).collect()
}

/// Returns the best proof values, up to `max_count`, taking tools in turn.
pub(super) fn choose_proofs(
    observed: &ObservedTurn,
    rarity: &Rarity,
    tokens: &TokenIndex,
    max_count: usize,
) -> Vec<Proof> {
    let mut proofs = repeated_values(observed, |text| tokens.token(text).is_some());
    // Values with tokens come first, then rare ones. The sort is stable, so ties keep the order of the result.
    proofs.sort_by_key(|proof| {
        (tokens.token(&proof.text).is_none(), rarity.trace_count(&proof.text), proof.text.len() < 3)
    });
    let mut chosen: Vec<Proof> = Vec::new();
    // One value per tool and round, so that every tool has a proof.
    while chosen.len() < max_count {
        let before = chosen.len();
        let mut served_tools = HashSet::new();
        let rest = std::mem::take(&mut proofs);
        for proof in rest {
            let is_redundant = |other: &Proof| other.text.contains(&proof.text) || proof.text.contains(&other.text);
            if chosen.iter().any(is_redundant) {
                continue;
            }
            if chosen.len() < max_count && served_tools.insert(proof.tool.clone()) {
                chosen.push(proof);
            } else {
                proofs.push(proof);
            }
        }
        if chosen.len() == before {
            break;
        }
    }
    chosen
}

/// Returns the values of the results that are in the response but not in the message, in result order.
fn repeated_values(observed: &ObservedTurn, is_fixed: impl Fn(&str) -> bool) -> Vec<Proof> {
    let mut seen = HashSet::new();
    let mut proofs = Vec::new();
    for call in &observed.calls {
        let Some(result) = &call.result else {
            continue;
        };
        let mut leaves = Vec::new();
        collect_leaves("", result, &mut leaves);
        for (name, text) in leaves {
            let is_proof = is_distinctive(&text)
                && !is_sensitive_name(name)
                && contains_whole(&text, &observed.response)
                && !contains_ignore_case(&text, &observed.message)
                && (is_fixed(&text) || !(is_volatile_name(name) || is_volatile(&text)));
            if is_proof && seen.insert(text.clone()) {
                proofs.push(Proof { tool: call.name.clone(), text });
            }
        }
    }
    proofs
}

fn is_distinctive(text: &str) -> bool {
    PROOF_LENGTHS.contains(&text.chars().count())
        && !text.chars().any(char::is_control)
        && text.trim() == text
        && text.chars().any(char::is_alphanumeric)
        && !contains_token(text)
        // Redacted values differ from what the agent will say.
        && !text.contains("***")
        && find_personal_data(text).is_none()
}

/// Collects the strings and numbers of a value, each with the name of its field.
fn collect_leaves<'v>(name: &'v str, value: &'v Value, leaves: &mut Vec<(&'v str, String)>) {
    if leaves.len() >= MAX_LEAVES {
        return;
    }
    match value {
        Value::String(_) | Value::Number(_) => leaves.push((name, text_form(value).into_owned())),
        Value::Array(items) => items.iter().for_each(|item| collect_leaves(name, item, leaves)),
        Value::Object(map) => map.iter().for_each(|(name, item)| collect_leaves(name, item, leaves)),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Returns the field names of a value that are not natural language: `fetchedAt`, `wind_kph`.
pub(super) fn raw_names(value: &Value) -> Vec<&str> {
    fn walk<'v>(value: &'v Value, names: &mut Vec<&'v str>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, names)),
            Value::Object(map) => {
                for (name, item) in map {
                    if is_raw(name) && !names.contains(&name.as_str()) && names.len() < MAX_LEAVES {
                        names.push(name);
                    }
                    walk(item, names);
                }
            }
            _ => {}
        }
    }

    let mut names = Vec::new();
    walk(value, &mut names);
    names
}

fn is_raw(name: &str) -> bool {
    (4..=40).contains(&name.len()) && name.is_ascii() && is_identifier(name)
}

#[cfg(test)]
mod tests {
    use karat_core::trace::ToolCall;
    use karat_tools::similarity::words;
    use serde_json::json;

    use karat_core::token::TokenSources;

    use super::*;

    fn observed(message: &str, results: &[(&str, Value)], response: &str) -> ObservedTurn {
        let call = |(name, result): &(&str, Value)| ToolCall {
            name: (*name).to_owned(),
            result: Some(result.clone()),
            ..ToolCall::default()
        };
        ObservedTurn {
            id: "t".to_owned(),
            message: message.to_owned(),
            words: words(message),
            calls: results.iter().map(call).collect(),
            response: response.to_owned(),
            proofs: 0,
        }
    }

    fn chosen(observed: &ObservedTurn, rarity: &Rarity, seed: Option<&Value>, max_count: usize) -> Vec<String> {
        let tokens = TokenIndex::new(&TokenSources { seed: seed.cloned(), snapshot: None });
        choose_proofs(observed, rarity, &tokens, max_count).into_iter().map(|proof| proof.text).collect()
    }

    #[test]
    fn proofs_are_in_the_response_but_not_in_the_message() {
        let result = json!({
            "city": "Paris", "temperature": 18, "condition": "partly cloudy", "wind_kph": 15, "uv": 3, "ok": true,
            "fetchedAt": "noon", "day": "2024-05-15", "mail": "a@b.example", "note": "{{seed:x}}", "masked": "***x",
        });
        let response =
            "Paris: 18 degrees, partly cloudy, wind 150 km/h, UV 3. noon 2024-05-15 a@b.example {{seed:x}} ***x";
        let turn = observed("Weather in paris?", &[("w", result)], response);
        assert_eq!(chosen(&turn, &Rarity::default(), None, 9), ["partly cloudy", "18"]);
        // A value of the seed is not volatile, and comes first.
        let seed = json!({"day": "2024-05-15"});
        assert_eq!(chosen(&turn, &Rarity::default(), Some(&seed), 9), ["2024-05-15", "partly cloudy", "18"]);
    }

    #[test]
    fn rare_values_come_first() {
        let response = "It is sunny, 21 degrees Celsius, station Montsouris.";
        let result = json!({"sky": "sunny", "degrees": 21, "unit": "Celsius", "station": "Montsouris"});
        let turn = observed("Weather?", &[("w", result)], response);
        let other = json!({"sky": "sunny", "unit": "Celsius"});
        let other = observed("Sun?", &[("w", other)], "sunny, Celsius");
        let mut rarity = Rarity::default();
        rarity.count(&turn);
        rarity.count(&other);
        assert_eq!(chosen(&turn, &rarity, None, 3), ["Montsouris", "21", "sunny"]);
    }

    #[test]
    fn takes_tools_in_turn_and_skips_redundant_values() {
        let results = [
            ("a", json!({"full": "Gare du Nord", "part": "Nord", "line": "M4", "zone": "zone one"})),
            ("b", json!(["platform 12"])),
        ];
        let turn = observed("Train?", &results, "Gare du Nord, M4, zone one, platform 12");
        assert_eq!(chosen(&turn, &Rarity::default(), None, 2), ["Gare du Nord", "platform 12"]);
        assert_eq!(chosen(&turn, &Rarity::default(), None, 4), ["Gare du Nord", "platform 12", "zone one", "M4"]);
    }

    #[test]
    fn raw_names_are_identifiers() {
        let value = json!([{"city": 1, "wind_kph": {"fetchedAt": 2, "_x": 3, "ID": 4}}, {"wind_kph": 5, "a b_c": 6}]);
        assert_eq!(raw_names(&value), ["wind_kph", "fetchedAt"]);
    }
}
