//! Proof values show that a tool ran: they are in its result and in the response, and cannot be guessed.

use std::collections::{HashMap, HashSet};

use karat_cases::token::contains_token;
use karat_core::trace::ToolCall;
use karat_json::text::text_form;
use serde_json::Value;

use super::observed::ObservedTurn;
use super::personal_data::find_personal_data;
use super::value_match::{contains_ignore_case, contains_whole, find_written, number_forms};
use super::volatile::{is_measured_name, is_sensitive_name, is_volatile, is_volatile_name};
use crate::Brief;
use crate::token_values::TokenIndex;

/// Length of a proof value in characters. A single letter matches anywhere, and a sentence is likely to be reworded.
const PROOF_LENGTHS: std::ops::RangeInclusive<usize> = 2..=60;

/// Maximum number of values taken from a run.
const MAX_PROOF_VALUES: usize = 3;

/// Number of values that a golden case needs.
const REQUIRED_PROOF_VALUES: usize = 2;

/// Maximum number of values collected from a result.
const MAX_LEAVES: usize = 2_000;

/// A value of a tool result that the response repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) tool: String,
    /// The value as text.
    pub(super) text: String,
    /// The value as the response writes it: `39.90` for 39.9.
    written: String,
    kind: ProofKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProofKind {
    Text,
    Number,
    /// A number that is likely to differ in the next run, such as a temperature.
    Measurement,
}

impl Proof {
    /// Returns the text to expect: the value's token, else the value as the response writes it.
    pub(super) fn expected(&self, tokens: &TokenIndex, response: &str) -> String {
        let token = tokens.token(&self.text).filter(|_| response.contains(&self.text));
        token.map_or_else(|| self.written.clone(), str::to_owned)
    }
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

/// Returns proof values from a run: values of tool results that the response repeats, as it writes them, then facts of
/// the test data in the response. A value that has a token is returned as the token. Numbers without a token are used
/// only if there is too little else.
pub fn proof_values(brief: &Brief, message: &str, calls: &[ToolCall], response: &str) -> Vec<String> {
    let tokens = TokenIndex::new(&brief.sources);
    let observed = ObservedTurn::from_run(message, calls, response);
    let proofs = choose_proofs(&observed, &Rarity::default(), &tokens, usize::MAX);
    let (stable, others): (Vec<Proof>, Vec<Proof>) =
        proofs.into_iter().partition(|proof| proof.kind == ProofKind::Text || tokens.token(&proof.text).is_some());
    let mut values: Vec<String> =
        stable.iter().map(|proof| proof.expected(&tokens, response)).take(MAX_PROOF_VALUES).collect();
    let is_proof =
        |text: &str| is_distinctive(text) && contains_whole(text, response) && !contains_ignore_case(text, message);
    let facts = tokens.values().into_iter().filter(|(text, _)| is_proof(text)).map(|(_, token)| token.to_owned());
    let numbers = others.into_iter().filter(|proof| proof.kind == ProofKind::Number).map(|proof| proof.written);
    for value in facts.chain(numbers) {
        if values.len() < REQUIRED_PROOF_VALUES && !values.contains(&value) {
            values.push(value);
        }
    }
    values
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
        for (name, value) in leaves {
            let text = text_form(value).into_owned();
            let Some(written) = written_form(value, &text, &observed.response) else { continue };
            let is_proof = is_distinctive(&written)
                && !is_sensitive_name(name)
                && !contains_ignore_case(&text, &observed.message)
                && !contains_ignore_case(&written, &observed.message)
                && (is_fixed(&text) || !(is_volatile_name(name) || is_volatile(&text) || is_volatile(&written)));
            if is_proof && seen.insert(text.clone()) {
                let kind = match value {
                    Value::Number(_) if is_measured_name(name) => ProofKind::Measurement,
                    Value::Number(_) => ProofKind::Number,
                    _ => ProofKind::Text,
                };
                proofs.push(Proof { tool: call.name.clone(), text, written, kind });
            }
        }
    }
    proofs
}

/// Returns a value as the response writes it, if it does.
fn written_form(value: &Value, text: &str, response: &str) -> Option<String> {
    if contains_whole(text, response) {
        return Some(text.to_owned());
    }
    match value {
        Value::Number(_) => number_forms(text).into_iter().find(|form| contains_whole(form, response)),
        _ => find_written(text, response).map(str::to_owned),
    }
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
fn collect_leaves<'v>(name: &'v str, value: &'v Value, leaves: &mut Vec<(&'v str, &'v Value)>) {
    if leaves.len() >= MAX_LEAVES {
        return;
    }
    match value {
        Value::String(_) | Value::Number(_) => leaves.push((name, value)),
        Value::Array(items) => items.iter().for_each(|item| collect_leaves(name, item, leaves)),
        Value::Object(map) => map.iter().for_each(|(name, item)| collect_leaves(name, item, leaves)),
        Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use karat_core::trace::ToolCall;
    use karat_tools::similarity::words;
    use serde_json::json;

    use karat_cases::token::TokenSources;

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

    fn proofs(result: Value, seed: Option<Value>, message: &str, response: &str) -> Vec<String> {
        let tool = karat_cases::registry::Tool { name: "t".to_owned(), ..Default::default() };
        let brief = Brief {
            registry: karat_cases::registry::Registry::from_tools([tool.clone()]),
            tool,
            triggers: Vec::new(),
            overlaps: Vec::new(),
            clusters: Vec::new(),
            sources: TokenSources { seed, snapshot: None },
            silenced: Vec::new(),
            golden: Vec::new(),
            labeled: Vec::new(),
        };
        let call = ToolCall { name: "t".to_owned(), result: Some(result), ..ToolCall::default() };
        proof_values(&brief, message, &[call], response)
    }

    #[test]
    fn values_are_taken_as_the_answer_writes_them() {
        let result =
            json!({"name": "Red Kettle", "price": 39.9, "status": "in_transit", "currency": "EUR", "n": 1234.5});
        let all = |response: &str| proofs(result.clone(), None, "The kettle?", response);
        assert_eq!(all("Red Kettle costs 39.90 EUR."), ["Red Kettle", "EUR"]);
        assert_eq!(all("Red Kettle costs $39.90."), ["Red Kettle", "39.90"]);
        assert_eq!(all("Es kostet 39,90 Euro, unterwegs 1.234,50"), ["39,90", "1.234,50"]);
        assert_eq!(all("It is In transit, and cost 1,234.50 in all."), ["In transit", "1,234.50"]);
        assert_eq!(all("It costs about 40."), [""; 0]);
    }

    /// A measured value is likely to differ in the next run.
    #[test]
    fn measurements_without_a_token_are_no_proof() {
        let result = json!({"temperature": 18.5, "humidity_percent": 64, "station": "Montsouris", "id": 4711});
        let response = "Montsouris (4711): 18.5 degrees, 64 percent.";
        assert_eq!(proofs(result.clone(), None, "Weather?", response), ["Montsouris", "4711"]);
        let seed = json!({"w": {"temperature": 18.5}});
        assert_eq!(proofs(result, Some(seed), "Weather?", response), ["{{seed:w.temperature}}", "Montsouris"]);
    }

    #[test]
    fn facts_of_the_answer_complete_the_values() {
        let seed = json!({"shop": {"town": "Ghent"}});
        let values = proofs(json!({"carrier": "PostNord"}), Some(seed), "Order?", "PostNord brings it to Ghent.");
        assert_eq!(values, ["PostNord", "{{seed:shop.town}}"]);
    }
}
