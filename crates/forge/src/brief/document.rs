//! The brief as a document: for a model, and for anybody else who drafts cases.
//!
//! Everything that a project says stands in the strings of one JSON document, which no text can end.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use karat_core::case::{Case, Difficulty, Tier};
use karat_core::chat::ChatPrompt;
use karat_core::lint::{Rule, Severity};
use karat_json::text::shorten;
use karat_tools::similarity::words;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::token_values::token_values;
use crate::{Brief, Plan, Purpose, Request, Slot};

use super::instructions::{instructions, task};
use super::kind::Kind;
use super::schema::{answer_schema, relaxed};

/// What the answer is called.
const NAME: &str = "eval_cases";

/// With more tools than this, those that the batch is not about are told by their first sentence.
const MAX_FULL_DESCRIPTIONS: usize = 40;

const MAX_DESCRIPTION: usize = 2000;
const MAX_FIRST_SENTENCE: usize = 200;
const MAX_SCHEMA: usize = 20_000;
const MAX_MESSAGE: usize = 240;
const MAX_RETURNED: usize = 8000;

/// How many of the newest cases are listed, and of those that are most similar to what is asked for.
const MAX_CASES: usize = 40;

/// How many tokens are listed; of more, those whose paths have the most words in common with the tool.
const MAX_TOKENS: usize = 150;
const MAX_TOKEN_VALUE: usize = 100;

/// Everything needed to draft cases: what `karat forge --brief` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat forge brief")]
pub struct BriefDocument {
    /// How to draft the cases.
    pub instructions: String,
    /// The tool, its neighbours, the facts of the test data and the cases so far.
    #[serde(flatten)]
    pub material: Map<String, Value>,
    /// How many labeled cases the tool should have, by the formula.
    pub plan: Plan,
    /// The open places: what each case is to test.
    pub slots: Vec<OpenSlot>,
    /// The rules that every draft is examined by.
    pub rules: Vec<BriefRule>,
    /// The JSON Schema of the drafts.
    pub answer_schema: Value,
}

/// A place for a case.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenSlot {
    pub id: String,
    pub tier: Tier,
    pub difficulty: Option<Difficulty>,
    /// What the case tests.
    pub purpose: String,
    /// How to write it.
    pub task: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phrase: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The number of tools that a straightforward case calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_count: Option<usize>,
}

/// A rule for drafts.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BriefRule {
    pub rule: Rule,
    /// A draft that breaks a rule of severity `error` cannot be approved.
    pub severity: Severity,
    pub summary: &'static str,
}

impl BriefDocument {
    /// Describes the open places of a tool.
    pub fn of(brief: &Brief, plan: &Plan, slots: &[Slot]) -> Self {
        let open: Vec<&Slot> = slots.iter().collect();
        let so_far: Vec<Case> = brief.existing().cloned().collect();
        let request = Request { brief, slots, so_far: &so_far, attempt: 0, revision: None };
        let question = Question { request, slots: &open, kept: &[], problem: None, returned: &[] };
        let kinds = Kind::all_of(&open);
        let is_for_drafts = |rule: &&Rule| {
            let of_files = [
                Rule::EditedRegression,
                Rule::RemovedRegression,
                Rule::UnsealedRegression,
                Rule::ArchivedRegression,
                Rule::SnapshotInRegression,
                Rule::Drafter,
            ];
            !of_files.contains(*rule)
        };
        let rule = |rule: &Rule| BriefRule { rule: *rule, severity: rule.draft_severity(), summary: rule.summary() };
        Self {
            instructions: instructions(&kinds, false),
            material: question.material(),
            plan: plan.clone(),
            slots: slots.iter().map(OpenSlot::of).collect(),
            rules: Rule::ALL.iter().filter(is_for_drafts).map(rule).collect(),
            answer_schema: relaxed(answer_schema(brief, &open, &kinds)),
        }
    }
}

impl OpenSlot {
    pub fn of(slot: &Slot) -> Self {
        Self {
            id: slot.id.clone(),
            tier: slot.purpose.tier(),
            difficulty: slot.purpose.difficulty(),
            purpose: slot.purpose.to_string(),
            task: task(&slot.purpose),
            phrase: phrase(&slot.purpose).map(str::to_owned),
            tools: named_tools(&slot.purpose).to_vec(),
            tool_count: tool_count(&slot.purpose),
        }
    }
}

/// What a model is asked at a time.
pub(crate) struct Question<'q> {
    pub(crate) request: Request<'q>,
    /// The slots of the request that are open.
    pub(crate) slots: &'q [&'q Slot],
    /// The batch's cases that hold already.
    pub(crate) kept: &'q [Case],
    /// What was wrong with the last answer as a whole.
    pub(crate) problem: Option<&'q str>,
    /// What did not hold of the last answer.
    pub(crate) returned: &'q [Returned],
}

/// A case that did not hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Returned {
    pub(crate) id: String,
    /// None where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) case: Option<Value>,
    pub(crate) reasons: Vec<String>,
}

impl Question<'_> {
    pub(crate) fn prompt(&self) -> ChatPrompt {
        let kinds = Kind::all_of(self.slots);
        ChatPrompt {
            system: instructions(&kinds, true),
            user: format!("{:#}", Value::Object(self.document())),
            name: NAME.to_owned(),
            schema: answer_schema(self.request.brief, self.slots, &kinds),
        }
    }

    /// Returns what is known of the tool, which is the same for all batches, so that a provider can cache it.
    fn material(&self) -> Map<String, Value> {
        let Request { brief, so_far, .. } = self.request;
        let mut document = Map::new();
        let mut tell = |key: &str, value: Value| document.insert(key.to_owned(), value);
        tell("tool", tool(brief));
        tell("otherTools", self.other_tools());
        let overlaps = brief.overlaps.iter().map(|overlap| json!({"tool": overlap.tool, "reasons": overlap.reasons}));
        tell("overlaps", overlaps.collect());
        tell("clusters", json!(brief.clusters));
        tell("facts", facts(brief));
        tell("casesSoFar", self.cases_so_far(so_far));
        document
    }

    fn document(&self) -> Map<String, Value> {
        let Request { attempt, revision, .. } = self.request;
        let mut document = self.material();
        let mut tell = |key: &str, value: Value| document.insert(key.to_owned(), value);
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
        let is_few = brief.registry.tools().len() <= MAX_FULL_DESCRIPTIONS;
        let overlaps = brief.overlaps.iter().map(|overlap| &overlap.tool);
        let asked = self.slots.iter().flat_map(|slot| named_tools(&slot.purpose));
        let close: BTreeSet<&String> = overlaps.chain(brief.clusters.iter().flatten()).chain(asked).collect();
        let others = brief.registry.tools().iter().filter(|tool| tool.name != brief.tool.name);
        let told = others.map(|tool| {
            let description = tool.description.as_deref().unwrap_or_default();
            let description = if is_few || close.contains(&tool.name) {
                shorten(description, MAX_DESCRIPTION)
            } else {
                shorten(first_sentence(description), MAX_FIRST_SENTENCE)
            };
            (tool.name.clone(), Value::from(description))
        });
        Value::Object(told.collect())
    }

    /// Tells the cases that must not be repeated: this batch's, the newest, and those that are the most like what is
    /// asked for.
    fn cases_so_far(&self, so_far: &[Case]) -> Value {
        let newest = so_far.len().saturating_sub(MAX_CASES);
        let wanted = self.wanted_words();
        let shared = |case: &Case| words(&case.input.message).intersection(&wanted).count();
        let mut older: Vec<(usize, usize)> = so_far[..newest].iter().map(shared).enumerate().collect();
        // Of equally alike ones, the newest.
        older.sort_by_key(|&(place, shared)| std::cmp::Reverse((shared, place)));
        older.truncate(MAX_CASES);
        let left_out = newest - older.len();
        let places: BTreeSet<usize> = older.into_iter().map(|(place, _)| place).chain(newest..so_far.len()).collect();
        let told = places.into_iter().map(|place| &so_far[place]).chain(self.kept);
        let told = told.map(|case| (case.id.clone(), shorten(&case.input.message, MAX_MESSAGE).into()));
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

/// Lists the tokens that a case can use, each with its value, and how many more there are.
fn facts(brief: &Brief) -> Value {
    let found = token_values(&brief.sources);
    let left_out = found.len().saturating_sub(MAX_TOKENS);
    let mut chosen: Vec<usize> = (0..found.len()).collect();
    if left_out > 0 {
        let tool = &brief.tool;
        let schema = tool.input_schema.get().map(Value::to_string).unwrap_or_default();
        let texts = [tool.name.as_str(), tool.description.as_deref().unwrap_or_default(), &schema];
        let mut known = words(&texts.join(" "));
        known.extend(brief.triggers.iter().flat_map(|phrase| words(phrase)));
        chosen.sort_by_cached_key(|&place| Reverse(words(&found[place].0).intersection(&known).count()));
        chosen.truncate(MAX_TOKENS);
        chosen.sort_unstable();
    }
    let listed = chosen.into_iter().map(|place| {
        let (token, value) = &found[place];
        let value = value.as_str().map_or_else(|| (*value).clone(), |text| shorten(text, MAX_TOKEN_VALUE).into());
        (token.clone(), value)
    });
    json!({"tokens": listed.collect::<Map<String, Value>>(), "leftOut": left_out})
}

fn tool(brief: &Brief) -> Value {
    let tool = &brief.tool;
    let mut told = Map::new();
    told.insert("name".to_owned(), tool.name.as_str().into());
    let description = tool.description.as_deref().unwrap_or_default();
    told.insert("description".to_owned(), shorten(description, MAX_DESCRIPTION).into());
    if let Some(category) = tool.category.get() {
        told.insert("category".to_owned(), category.as_str().into());
    }
    told.insert("asksFirst".to_owned(), brief.asks_first().into());
    told.insert("triggerPhrases".to_owned(), json!(brief.triggers));
    if let Some(schema) = tool.input_schema.get() {
        told.insert("schema".to_owned(), cut(schema, MAX_SCHEMA));
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
    if let Some(count) = tool_count(&slot.purpose) {
        asked.insert("toolCount".to_owned(), json!(count));
    }
    if matches!(slot.purpose, Purpose::Disambiguation { .. } | Purpose::Together { .. } | Purpose::Choice { .. }) {
        asked.insert("tools".to_owned(), json!(named_tools(&slot.purpose)));
    }
    Value::Object(asked)
}

fn phrase(purpose: &Purpose) -> Option<&str> {
    match purpose {
        Purpose::Trigger(phrase) | Purpose::Rephrasing(phrase) => Some(phrase),
        Purpose::Disambiguation { phrase, .. } => phrase.as_deref(),
        _ => None,
    }
}

fn named_tools(purpose: &Purpose) -> &[String] {
    match purpose {
        Purpose::Disambiguation { other, .. } => std::slice::from_ref(other),
        Purpose::Together { tools, .. } | Purpose::Choice { others: tools, .. } => tools,
        _ => &[],
    }
}

fn tool_count(purpose: &Purpose) -> Option<usize> {
    if let Purpose::Together { count, .. } = purpose { Some(*count) } else { None }
}

fn bounded(case: &Value) -> Value {
    cut(case, MAX_RETURNED)
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
