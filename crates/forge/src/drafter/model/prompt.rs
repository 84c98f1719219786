//! What a model is asked: instructions, and one JSON document of all that is known.
//!
//! Whatever a project says stands in the strings of that document, which no text can end.

use std::collections::BTreeSet;

use karat_core::case::Case;
use karat_core::port::ChatPrompt;
use karat_core::similarity::words;
use karat_core::text::shorten;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{Brief, Purpose, Request, Slot};

use super::instructions::{instructions, task};
use super::kind::Kind;
use super::schema::answer_schema;
use super::seed::seed_tokens;

/// What the answer is called.
const NAME: &str = "eval_cases";

/// With more tools than this, those that the batch is not about are told by their first sentence.
const MOST_WHOLE_DESCRIPTIONS: usize = 40;

const LONGEST_DESCRIPTION: usize = 2000;
const LONGEST_FIRST_SENTENCE: usize = 200;
const LONGEST_SCHEMA: usize = 20_000;
const LONGEST_MESSAGE: usize = 240;
const LONGEST_RETURNED: usize = 8000;

/// So many of the newest cases are told, and as many of those that are the most like what is asked for.
const MOST_CASES: usize = 40;

/// What is asked of a model at a time.
pub(super) struct Question<'q> {
    pub(super) request: Request<'q>,
    /// The slots of the request that are open.
    pub(super) slots: &'q [&'q Slot],
    /// The batch's cases that hold already.
    pub(super) kept: &'q [Case],
    /// What was wrong with the last answer as a whole.
    pub(super) problem: Option<&'q str>,
    /// What did not hold of the last answer.
    pub(super) returned: &'q [Returned],
}

/// A case that did not hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Returned {
    pub(super) id: String,
    /// None where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) case: Option<Value>,
    pub(super) reasons: Vec<String>,
}

impl Question<'_> {
    pub(super) fn prompt(&self) -> ChatPrompt {
        let kinds = Kind::all_of(self.slots);
        ChatPrompt {
            system: instructions(&kinds),
            user: format!("{:#}", Value::Object(self.document())),
            name: NAME.to_owned(),
            schema: answer_schema(self.request.brief, self.slots, &kinds),
        }
    }

    /// Begins with what is the same for all batches, so that a provider can keep it.
    fn document(&self) -> Map<String, Value> {
        let Request { brief, so_far, attempt, revision, .. } = self.request;
        let mut document = Map::new();
        let mut tell = |key: &str, value: Value| document.insert(key.to_owned(), value);
        tell("tool", tool(brief));
        tell("otherTools", self.other_tools());
        let overlaps = brief.overlaps.iter().map(|overlap| json!({"tool": overlap.tool, "reasons": overlap.reasons}));
        tell("overlaps", overlaps.collect());
        tell("clusters", json!(brief.clusters));
        tell("seed", seed_tokens(brief));
        tell("casesSoFar", self.cases_so_far(so_far));
        tell("asked", self.slots.iter().map(|slot| asked(slot)).collect());
        if attempt > 0 {
            tell("filledBefore", attempt.into());
        }
        if let Some(revision) = revision {
            let is_asked = |id: &str| self.slots.iter().any(|slot| slot.id == id);
            let drafts = revision.drafts.iter().filter(|draft| is_asked(&draft.slot.id));
            let drafts: Value = drafts.filter_map(|draft| draft.case.as_ref()).map(bounded).collect();
            tell("revision", json!({"wish": revision.words, "drafts": drafts}));
        }
        if let Some(problem) = self.problem {
            tell("problem", problem.into());
        }
        if !self.returned.is_empty() {
            let returned =
                self.returned.iter().map(|one| Returned { case: one.case.as_ref().map(bounded), ..one.clone() });
            tell("returned", returned.map(|one| serde_json::to_value(one).unwrap_or_default()).collect());
        }
        document
    }

    /// Tells all other tools: wholly those that the cases are about, and the rest as shortly as there are many.
    fn other_tools(&self) -> Value {
        let brief = self.request.brief;
        let is_few = brief.registry.tools().len() <= MOST_WHOLE_DESCRIPTIONS;
        let overlaps = brief.overlaps.iter().map(|overlap| &overlap.tool);
        let asked = self.slots.iter().flat_map(|slot| named_tools(&slot.purpose));
        let close: BTreeSet<&String> = overlaps.chain(brief.clusters.iter().flatten()).chain(asked).collect();
        let others = brief.registry.tools().iter().filter(|tool| tool.name != brief.tool.name);
        let told = others.map(|tool| {
            let description = tool.description.as_deref().unwrap_or_default();
            let description = if is_few || close.contains(&tool.name) {
                shorten(description, LONGEST_DESCRIPTION)
            } else {
                shorten(first_sentence(description), LONGEST_FIRST_SENTENCE)
            };
            (tool.name.clone(), Value::from(description))
        });
        Value::Object(told.collect())
    }

    /// Tells the cases that must not be repeated: this batch's, the newest, and those that are the most like what is
    /// asked for.
    fn cases_so_far(&self, so_far: &[Case]) -> Value {
        let newest = so_far.len().saturating_sub(MOST_CASES);
        let wanted = self.wanted_words();
        let shared = |case: &Case| words(&case.input.message).intersection(&wanted).count();
        let mut older: Vec<(usize, usize)> = so_far[..newest].iter().map(shared).enumerate().collect();
        // Of equally alike ones, the newest.
        older.sort_by_key(|&(place, shared)| std::cmp::Reverse((shared, place)));
        older.truncate(MOST_CASES);
        let left_out = newest - older.len();
        let places: BTreeSet<usize> = older.into_iter().map(|(place, _)| place).chain(newest..so_far.len()).collect();
        let told = places.into_iter().map(|place| &so_far[place]).chain(self.kept);
        let told = told.map(|case| (case.id.clone(), shorten(&case.input.message, LONGEST_MESSAGE).into()));
        json!({"messages": told.collect::<Map<String, Value>>(), "leftOut": left_out})
    }

    fn wanted_words(&self) -> BTreeSet<String> {
        let mut wanted = BTreeSet::new();
        for slot in self.slots {
            wanted.extend(phrase(&slot.purpose).map(words).unwrap_or_default());
            wanted.extend(named_tools(&slot.purpose).iter().flat_map(|tool| words(tool)));
        }
        wanted
    }
}

fn tool(brief: &Brief) -> Value {
    let tool = &brief.tool;
    let mut told = Map::new();
    told.insert("name".to_owned(), tool.name.as_str().into());
    let description = tool.description.as_deref().unwrap_or_default();
    told.insert("description".to_owned(), shorten(description, LONGEST_DESCRIPTION).into());
    if let Some(category) = tool.category.get() {
        told.insert("category".to_owned(), category.as_str().into());
    }
    told.insert("asksFirst".to_owned(), brief.asks_first().into());
    told.insert("triggerPhrases".to_owned(), json!(brief.triggers));
    if let Some(schema) = tool.input_schema.get() {
        told.insert("schema".to_owned(), cut(schema, LONGEST_SCHEMA));
    }
    Value::Object(told)
}

fn asked(slot: &Slot) -> Value {
    let mut asked = Map::new();
    asked.insert("id".to_owned(), slot.id.as_str().into());
    asked.insert("task".to_owned(), task(&slot.purpose).into());
    if let Some(phrase) = phrase(&slot.purpose) {
        asked.insert("phrase".to_owned(), phrase.into());
    }
    if matches!(slot.purpose, Purpose::Disambiguation(_) | Purpose::Together(_) | Purpose::Choice { .. }) {
        asked.insert("tools".to_owned(), json!(named_tools(&slot.purpose)));
    }
    Value::Object(asked)
}

fn phrase(purpose: &Purpose) -> Option<&str> {
    match purpose {
        Purpose::Trigger(phrase) | Purpose::Rephrasing(phrase) => Some(phrase),
        _ => None,
    }
}

fn named_tools(purpose: &Purpose) -> &[String] {
    match purpose {
        Purpose::Disambiguation(tool) => std::slice::from_ref(tool),
        Purpose::Together(tools) | Purpose::Choice { others: tools, .. } => tools,
        _ => &[],
    }
}

fn bounded(case: &Value) -> Value {
    cut(case, LONGEST_RETURNED)
}

/// Returns a value as it is, or the beginning of its text where it is too long.
fn cut(value: &Value, longest: usize) -> Value {
    let text = value.to_string();
    if text.len() <= longest { value.clone() } else { shorten(&text, longest).into() }
}

/// Returns a text up to its first full stop that ends a word.
fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let ends = |&(place, letter): &(usize, char)| {
        let behind = &text[place + letter.len_utf8()..];
        letter == '\n' || ".!?".contains(letter) && behind.starts_with(char::is_whitespace)
    };
    let end = text.char_indices().find(ends).map_or(text.len(), |(place, letter)| place + letter.len_utf8());
    text[..end].trim_end()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Gets it. Use when asked.", "Gets it.")]
    #[case("Gets version 2.0 of it", "Gets version 2.0 of it")]
    #[case("  Gets it\nUse when asked.", "Gets it")]
    #[case("Really? Yes.", "Really?")]
    #[case("", "")]
    #[case("天気を返す。", "天気を返す。")]
    fn a_tool_far_away_is_told_by_a_sentence(#[case] text: &str, #[case] sentence: &str) {
        assert_eq!(first_sentence(text), sentence);
    }
}
