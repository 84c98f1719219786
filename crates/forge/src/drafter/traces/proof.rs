//! Values that show that a tool ran: they stand in its result and in the response, and nobody could guess them.

use std::collections::{HashMap, HashSet};

use karat_core::token::holds_token;
use karat_core::trace::ToolCall;
use karat_json::text::text_form;
use serde_json::Value;

use super::observed::Observed;
use super::personal;
use super::standing::{is_in_any_case, stands_in};
use super::volatile::{is_sensitive_name, is_volatile, is_volatile_name};
use crate::Brief;
use crate::identifier::is_identifier;
use crate::token_values::TokenIndex;

/// The characters of a text that can be a proof: one letter stands anywhere, and a sentence is reworded.
const LENGTHS: std::ops::RangeInclusive<usize> = 2..=60;

/// How many values a case takes from a run.
const MAX_PROOF_VALUES: usize = 3;

/// How many of a result's values are visited.
const MAX_LEAVES: usize = 2_000;

/// A value of a tool's result that the response repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) tool: String,
    pub(super) text: String,
}

/// How many traces have each value: what all of them have tells nothing.
#[derive(Debug, Default)]
pub(super) struct Rarity(HashMap<String, usize>);

impl Rarity {
    /// Counts the values of a trace.
    pub(super) fn count(&mut self, observed: &Observed) {
        let texts: HashSet<String> = repeated(observed, |_| false).into_iter().map(|proof| proof.text).collect();
        for text in texts {
            *self.0.entry(text).or_default() += 1;
        }
    }

    fn of(&self, text: &str) -> usize {
        self.0.get(text).copied().unwrap_or_default()
    }
}

/// Returns values that prove that the tools ran, from what an agent really did: those of the tools' results that its
/// response repeats, else the facts of the test data that it states. A value that is a token's becomes that token.
pub fn proof_of_run(brief: &Brief, message: &str, calls: &[ToolCall], response: &str) -> Vec<String> {
    let tokens = TokenIndex::of(&brief.sources);
    let observed = Observed::of_run(message, calls, response);
    let mut chosen = choose(&observed, &Rarity::default(), &tokens, usize::MAX);
    // A number of this run may be another one in the next.
    chosen.retain(|proof| {
        tokens.token(&proof.text).is_some() || !proof.text.starts_with(|first: char| first.is_ascii_digit())
    });
    chosen.truncate(MAX_PROOF_VALUES);
    let named = |text: &str| tokens.token(text).map_or_else(|| text.to_owned(), str::to_owned);
    if !chosen.is_empty() {
        return chosen.iter().map(|proof| named(&proof.text)).collect();
    }
    let is_proof = |text: &str| is_telling(text) && stands_in(text, response) && !is_in_any_case(text, message);
    let stated = tokens.values().into_iter().filter(|(text, _)| is_proof(text));
    stated.map(|(_, token)| token.to_owned()).take(MAX_PROOF_VALUES).collect()
}

/// Returns the values that prove most, at least one of each tool that has any, at most so many in all.
pub(super) fn choose(observed: &Observed, rarity: &Rarity, tokens: &TokenIndex, most: usize) -> Vec<Proof> {
    let mut proofs = repeated(observed, |text| tokens.token(text).is_some());
    // What the project has fixed comes first, then what few have; sorting is stable, so that the result's order
    // decides between equals.
    proofs.sort_by_key(|proof| (tokens.token(&proof.text).is_none(), rarity.of(&proof.text), proof.text.len() < 3));
    let mut chosen: Vec<Proof> = Vec::new();
    // Each tool in its turn, so that none goes without.
    while chosen.len() < most {
        let before = chosen.len();
        let mut served = HashSet::new();
        let rest = std::mem::take(&mut proofs);
        for proof in rest {
            let says_no_more = |other: &Proof| other.text.contains(&proof.text) || proof.text.contains(&other.text);
            if chosen.iter().any(says_no_more) {
                continue;
            }
            if chosen.len() < most && served.insert(proof.tool.clone()) {
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

/// Returns the values of the results that the response repeats and the message does not hold, in their order.
fn repeated(observed: &Observed, is_fixed: impl Fn(&str) -> bool) -> Vec<Proof> {
    let mut seen = HashSet::new();
    let mut proofs = Vec::new();
    for call in &observed.calls {
        let Some(result) = &call.result else {
            continue;
        };
        let mut leaves = Vec::new();
        gather("", result, &mut leaves);
        for (name, text) in leaves {
            let is_proof = is_telling(&text)
                && !is_sensitive_name(name)
                && stands_in(&text, &observed.response)
                && !is_in_any_case(&text, &observed.message)
                && (is_fixed(&text) || !(is_volatile_name(name) || is_volatile(&text)));
            if is_proof && seen.insert(text.clone()) {
                proofs.push(Proof { tool: call.name.clone(), text });
            }
        }
    }
    proofs
}

fn is_telling(text: &str) -> bool {
    LENGTHS.contains(&text.chars().count())
        && !text.chars().any(char::is_control)
        && text.trim() == text
        && text.chars().any(char::is_alphanumeric)
        && !holds_token(text)
        // What was masked is different from what the agent will say.
        && !text.contains("***")
        && personal::found(text).is_none()
}

/// Gathers the texts and numbers of a value, each with the name of its field.
fn gather<'v>(name: &'v str, value: &'v Value, leaves: &mut Vec<(&'v str, String)>) {
    if leaves.len() >= MAX_LEAVES {
        return;
    }
    match value {
        Value::String(_) | Value::Number(_) => leaves.push((name, text_form(value).into_owned())),
        Value::Array(items) => items.iter().for_each(|item| gather(name, item, leaves)),
        Value::Object(map) => map.iter().for_each(|(name, item)| gather(name, item, leaves)),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Returns the field names of a value that nobody would say aloud: `fetchedAt`, `wind_kph`.
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

    fn observed(message: &str, results: &[(&str, Value)], response: &str) -> Observed {
        let call = |(name, result): &(&str, Value)| ToolCall {
            name: (*name).to_owned(),
            result: Some(result.clone()),
            ..ToolCall::default()
        };
        Observed {
            id: "t".to_owned(),
            message: message.to_owned(),
            words: words(message),
            calls: results.iter().map(call).collect(),
            response: response.to_owned(),
            proofs: 0,
        }
    }

    fn chosen(observed: &Observed, rarity: &Rarity, seed: Option<&Value>, most: usize) -> Vec<String> {
        let tokens = TokenIndex::of(&TokenSources { seed: seed.cloned(), snapshot: None });
        choose(observed, rarity, &tokens, most).into_iter().map(|proof| proof.text).collect()
    }

    #[test]
    fn proofs_are_in_the_response_and_not_in_the_message() {
        let result = json!({
            "city": "Paris", "temperature": 18, "condition": "partly cloudy", "wind_kph": 15, "uv": 3, "ok": true,
            "fetchedAt": "noon", "day": "2024-05-15", "mail": "a@b.example", "note": "{{seed:x}}", "masked": "***x",
        });
        let response =
            "Paris: 18 degrees, partly cloudy, wind 150 km/h, UV 3. noon 2024-05-15 a@b.example {{seed:x}} ***x";
        let one = observed("Weather in paris?", &[("w", result)], response);
        assert_eq!(chosen(&one, &Rarity::default(), None, 9), ["partly cloudy", "18"]);
        // What the project has fixed is not volatile, and comes first.
        let seed = json!({"day": "2024-05-15"});
        assert_eq!(chosen(&one, &Rarity::default(), Some(&seed), 9), ["2024-05-15", "partly cloudy", "18"]);
    }

    #[test]
    fn the_rarest_come_first() {
        let response = "It is sunny, 21 degrees Celsius, station Montsouris.";
        let result = json!({"sky": "sunny", "degrees": 21, "unit": "Celsius", "station": "Montsouris"});
        let one = observed("Weather?", &[("w", result)], response);
        let other = json!({"sky": "sunny", "unit": "Celsius"});
        let other = observed("Sun?", &[("w", other)], "sunny, Celsius");
        let mut rarity = Rarity::default();
        rarity.count(&one);
        rarity.count(&other);
        assert_eq!(chosen(&one, &rarity, None, 3), ["Montsouris", "21", "sunny"]);
    }

    #[test]
    fn each_tool_has_its_turn_and_no_value_is_a_part_of_another() {
        let results = [
            ("a", json!({"full": "Gare du Nord", "part": "Nord", "line": "M4", "zone": "zone one"})),
            ("b", json!(["platform 12"])),
        ];
        let one = observed("Train?", &results, "Gare du Nord, M4, zone one, platform 12");
        assert_eq!(chosen(&one, &Rarity::default(), None, 2), ["Gare du Nord", "platform 12"]);
        assert_eq!(chosen(&one, &Rarity::default(), None, 4), ["Gare du Nord", "platform 12", "zone one", "M4"]);
    }

    #[test]
    fn raw_names_are_those_nobody_says() {
        let value = json!([{"city": 1, "wind_kph": {"fetchedAt": 2, "_x": 3, "ID": 4}}, {"wind_kph": 5, "a b_c": 6}]);
        assert_eq!(raw_names(&value), ["wind_kph", "fetchedAt"]);
    }
}
