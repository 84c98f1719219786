//! Makes a case of what was observed: what the agent did once, it should do again.

use std::collections::HashSet;

use karat_core::token::holds_token;
use karat_core::trace::ToolCall;
use karat_json::text::text_form;
use serde_json::{Map, Value, json};

use super::observed::Observed;
use super::personal;
use super::proof::{Rarity, choose, raw_names};
use super::standing::stands_in;
use crate::token_values::TokenIndex;
use crate::{Brief, DraftFinding, Purpose, Slot};

/// A longer message is hard to read and to keep.
const LONG_MESSAGE: usize = 500;

/// How many values prove that the tools ran.
const MOST_PROOFS: usize = 3;
const MOST_PROOFS_OF_MANY_TOOLS: usize = 6;

/// How many arguments of a call are asserted.
const MOST_PARAMS: usize = 3;

/// How many raw field names a case against leaks forbids.
const MOST_RAW_NAMES: usize = 6;

/// The longest result that a case repeats as a stub, in bytes.
const LONGEST_STUB: usize = 4 << 10;

/// What an agent says that did not do it.
const COP_OUTS: [&str; 3] = ["I don't know", "unable to", "no information"];

/// What a response never says, whatever the tool.
const LEAKS: [&str; 2] = ["\"tool\":", "undefined"];

/// All that cases are made with.
pub(super) struct Maker<'m> {
    pub(super) brief: &'m Brief,
    pub(super) rarity: &'m Rarity,
    pub(super) tokens: TokenIndex,
    pub(super) with_stubs: bool,
}

impl Maker<'_> {
    /// Makes a case for a place, and tells what a person should look at.
    pub(super) fn make(&self, slot: &Slot, observed: &Observed) -> (Value, Vec<DraftFinding>) {
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
                Err(why) => findings.push(DraftFinding::warning("", format!("the case has no stubs: {why}"))),
            }
        }
        case.insert("expect".to_owned(), Value::Object(self.expect(&slot.purpose, observed)));
        (Value::Object(case), findings)
    }

    fn expect(&self, purpose: &Purpose, observed: &Observed) -> Map<String, Value> {
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
        let most = distinct.len().clamp(MOST_PROOFS, MOST_PROOFS_OF_MANY_TOOLS);
        let proofs = choose(observed, self.rarity, &self.tokens, most);
        if !proofs.is_empty() {
            let named = |text: String| self.tokens.token(&text).map_or_else(|| text.clone(), str::to_owned);
            let proofs: Vec<String> = proofs.into_iter().map(|proof| named(proof.text)).collect();
            expect.insert("responseContains".to_owned(), json!(proofs));
        }
        let never = never_said(purpose, observed);
        if !never.is_empty() {
            expect.insert("responseNotContains".to_owned(), json!(never));
        }
        expect
    }

    /// Returns what is certain of a call's arguments: the values that the message itself says.
    fn params(&self, call: &ToolCall, observed: &Observed) -> Vec<Value> {
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
                && stands_in(&text, &observed.message)
                && !holds_token(&text)
                && personal::found(&text).is_none()
        };
        let certain = call.params.iter().filter(|(name, value)| is_certain(name, value)).take(MOST_PARAMS);
        let assertion = |(name, value): (&String, &Value)| json!({"tool": call.name, "paramName": name, "assertion": "equals", "value": value});
        certain.map(assertion).collect()
    }
}

fn description(purpose: &Purpose) -> String {
    match purpose {
        Purpose::Rephrasing(_) => "real message: the same in a user's own words".to_owned(),
        Purpose::NoLeak => "real message: no raw field names in the response".to_owned(),
        Purpose::Together { tools, .. } => format!("real message: takes {}", tools.join(", ")),
        _ => "real message: as a user asks".to_owned(),
    }
}

/// Returns what must not be in the response, as far as it was not in this one.
fn never_said(purpose: &Purpose, observed: &Observed) -> Vec<String> {
    let response = &observed.response;
    let is_new = |text: &&str| !response.contains(*text);
    let mut never: Vec<String> = COP_OUTS.iter().copied().filter(is_new).map(str::to_owned).collect();
    if *purpose == Purpose::NoLeak {
        let results = observed.calls.iter().filter_map(|call| call.result.as_ref());
        let mut seen = HashSet::new();
        let names = results.flat_map(raw_names).filter(is_new).filter(|name| seen.insert(*name));
        never.extend(names.take(MOST_RAW_NAMES).map(str::to_owned));
        never.extend(LEAKS.iter().copied().filter(is_new).map(str::to_owned));
    }
    never
}

/// Returns what each tool answered, for an agent that has no tools of its own.
fn stubs(observed: &Observed) -> Result<Map<String, Value>, String> {
    let mut stubs = Map::new();
    for ToolCall { name, result, .. } in &observed.calls {
        let Some(result) = result else {
            return Err(format!("the trace does not say what '{name}' answered"));
        };
        let text = result.to_string();
        if text.len() > LONGEST_STUB {
            return Err(format!("what '{name}' answered is longer than {} kB", LONGEST_STUB >> 10));
        }
        if let Some(what) = personal::found(&text) {
            return Err(format!("what '{name}' answered holds {what}"));
        }
        if stubs.insert(name.clone(), result.clone()).is_some_and(|before| before != *result) {
            return Err(format!("'{name}' answered differently to several calls"));
        }
    }
    Ok(stubs)
}

/// Tells what a person should look at before a real message is kept.
fn warnings(message: &str) -> Vec<DraftFinding> {
    let warning = |text: String| DraftFinding::warning("/input/message", text);
    let characters = message.chars().count();
    let long = (characters > LONG_MESSAGE)
        .then(|| warning(format!("the message has {characters} characters: a shorter one is easier to read")));
    long.into_iter().collect()
}
