//! Builds a case that expects the observed behaviour.

use std::collections::HashSet;

use karat_cases::token::contains_token;
use karat_core::trace::ToolCall;
use karat_json::text::text_form;
use serde_json::{Map, Value, json};

use super::leak::leak_markers;
use super::observed::ObservedTurn;
use super::personal_data::find_personal_data;
use super::proof::{Rarity, choose_proofs};
use super::value_match::contains_whole;
use crate::identifier::RAW_DATA;
use crate::token_values::TokenIndex;
use crate::{Brief, DraftFinding, Purpose, Slot};

/// Messages longer than this get a warning.
const LONG_MESSAGE_CHARS: usize = 500;

/// Maximum number of proof values, for one tool and for several.
const MAX_PROOFS: usize = 3;
const MAX_PROOFS_SEVERAL_TOOLS: usize = 6;

/// Maximum number of asserted arguments of a call.
const MAX_PARAMS: usize = 3;

/// Maximum size of a stub.
const MAX_STUB_BYTES: usize = 4 << 10;

/// Typical phrases of an agent that did not answer.
const NON_ANSWERS: [&str; 3] = ["I don't know", "unable to", "no information"];

pub(super) struct CaseBuilder<'m> {
    pub(super) brief: &'m Brief,
    pub(super) rarity: &'m Rarity,
    pub(super) tokens: TokenIndex,
    pub(super) with_stubs: bool,
}

impl CaseBuilder<'_> {
    /// Builds a case for a slot, with warnings for the approver.
    pub(super) fn build(&self, slot: &Slot, observed: &ObservedTurn) -> (Value, Vec<DraftFinding>) {
        let mut findings = warnings(&observed.message);
        let mut case = Map::new();
        case.insert("id".to_owned(), json!(slot.id));
        case.insert("description".to_owned(), json!(description(&slot.purpose)));
        if let Some(difficulty) = slot.purpose.difficulty() {
            case.insert("difficulty".to_owned(), json!(difficulty.name()));
        }
        case.insert("input".to_owned(), json!({ "message": observed.message }));
        if self.with_stubs {
            match stubs(observed) {
                Ok(stubs) => {
                    case.insert("stubs".to_owned(), Value::Object(stubs));
                }
                Err(reason) => findings.push(DraftFinding::warning("", format!("no stubs: {reason}"))),
            }
        }
        case.insert("expect".to_owned(), Value::Object(self.expect(&slot.purpose, observed)));
        (Value::Object(case), findings)
    }

    fn expect(&self, purpose: &Purpose, observed: &ObservedTurn) -> Map<String, Value> {
        let called: Vec<&str> = observed.calls.iter().map(|call| call.name.as_str()).collect();
        let distinct: HashSet<&str> = called.iter().copied().collect();
        let mut expect = Map::new();
        expect.insert("toolsCalled".to_owned(), json!(called));
        if matches!(purpose, Purpose::Together { .. }) {
            expect.insert("toolsCalledMatch".to_owned(), json!("anyOrder"));
        }
        let params: Vec<Value> = observed.calls.iter().flat_map(|call| self.params(call, observed)).collect();
        if !params.is_empty() {
            expect.insert("toolParams".to_owned(), Value::Array(params));
        }
        expect.insert("noToolErrors".to_owned(), json!(true));
        expect.insert("responseNonEmpty".to_owned(), json!(true));
        let max_proofs = distinct.len().clamp(MAX_PROOFS, MAX_PROOFS_SEVERAL_TOOLS);
        let proofs = choose_proofs(observed, self.rarity, &self.tokens, max_proofs);
        if !proofs.is_empty() {
            let proofs: Vec<String> =
                proofs.into_iter().map(|proof| proof.expected(&self.tokens, &observed.response)).collect();
            expect.insert("responseContains".to_owned(), json!(proofs));
        }
        let forbidden = forbidden_texts(purpose, observed);
        if !forbidden.is_empty() {
            expect.insert("responseNotContains".to_owned(), json!(forbidden));
        }
        expect
    }

    /// Asserts the arguments whose values are in the message.
    fn params(&self, call: &ToolCall, observed: &ObservedTurn) -> Vec<Value> {
        let calls = observed.calls.iter().filter(|other| other.name == call.name);
        if calls.count() > 1 {
            return Vec::new();
        }
        let schema = self.brief.registry.tool(&call.name).and_then(|tool| tool.input_schema.get());
        let known = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let is_certain = |name: &str, value: &Value| {
            let text = text_form(value);
            (value.is_string() || value.is_number())
                && known.is_none_or(|known| known.contains_key(name))
                && text.trim() == text
                && contains_whole(&text, &observed.message)
                && !contains_token(&text)
                && find_personal_data(&text).is_none()
        };
        let certain = call.params.iter().filter(|(name, value)| is_certain(name, value)).take(MAX_PARAMS);
        let assertion = |(name, value): (&String, &Value)| json!({"tool": call.name, "paramName": name, "assertion": "equals", "value": value});
        certain.map(assertion).collect()
    }
}

fn description(purpose: &Purpose) -> String {
    match purpose {
        Purpose::Rephrasing(_) => "real message: rephrased by a user".to_owned(),
        Purpose::NoLeak => "real message: no raw field names in the response".to_owned(),
        Purpose::Together { tools, .. } => format!("real message: needs {}", tools.join(", ")),
        _ => "real message: as a user asks".to_owned(),
    }
}

/// Replaces each run of white space by one space.
fn one_space(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let character = if character.is_whitespace() { ' ' } else { character };
        if character != ' ' || !out.ends_with(' ') {
            out.push(character);
        }
    }
    out
}

/// Returns texts that must not be in the response, except those that were in the observed one.
fn forbidden_texts(purpose: &Purpose, observed: &ObservedTurn) -> Vec<String> {
    let response = &observed.response;
    // White space is compared as one space, since a near miss fails a strict case.
    let spaced = one_space(response);
    let is_new = |text: &&str| !response.contains(*text) && !spaced.contains(&one_space(text));
    let mut forbidden: Vec<String> = NON_ANSWERS.iter().copied().filter(is_new).map(str::to_owned).collect();
    if *purpose == Purpose::NoLeak {
        forbidden.extend(leak_markers(&observed.calls, response));
        forbidden.extend(RAW_DATA.iter().copied().filter(is_new).map(str::to_owned));
    }
    forbidden
}

/// Returns the tool results as stubs. The error says why they cannot be used.
fn stubs(observed: &ObservedTurn) -> Result<Map<String, Value>, String> {
    let mut stubs = Map::new();
    for ToolCall { name, result, .. } in &observed.calls {
        let Some(result) = result else {
            return Err(format!("the trace has no result of '{name}'"));
        };
        let text = result.to_string();
        if text.len() > MAX_STUB_BYTES {
            return Err(format!("the result of '{name}' is longer than {} KB", MAX_STUB_BYTES >> 10));
        }
        if let Some(data) = find_personal_data(&text) {
            return Err(format!("the result of '{name}' contains {data}"));
        }
        if stubs.insert(name.clone(), result.clone()).is_some_and(|before| before != *result) {
            return Err(format!("'{name}' returned different results"));
        }
    }
    Ok(stubs)
}

/// Returns warnings about a real message.
fn warnings(message: &str) -> Vec<DraftFinding> {
    let warning = |text: String| DraftFinding::warning("/input/message", text);
    let characters = message.chars().count();
    let long = (characters > LONG_MESSAGE_CHARS)
        .then(|| warning(format!("the message has {characters} characters: shorten it")));
    long.into_iter().collect()
}
