//! The brief as a document, for models and other drafters.
//!
//! All text of a project is in the strings of one JSON document, so that it cannot break out of it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use karat_cases::{Case, Difficulty, Tier};
use karat_core::chat::ChatPrompt;
use karat_json::text::shorten;
use karat_lints::{Rule, Severity};
use karat_tools::similarity::words;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::token_values::token_values;
use crate::{Brief, Plan, Purpose, Request, Slot};

use super::instructions::{instructions, task};
use super::kind::Kind;
use super::schema::{answer_schema, with_optional_keys};

/// The name of the answer schema.
const NAME: &str = "eval_cases";

/// With more tools, unrelated ones are described by their first sentence only.
const MAX_FULL_DESCRIPTIONS: usize = 40;

// Maximum lengths of texts in the document.
const MAX_DESCRIPTION: usize = 2000;
const MAX_FIRST_SENTENCE: usize = 200;
const MAX_SCHEMA: usize = 20_000;
const MAX_MESSAGE: usize = 240;
const MAX_RETURNED: usize = 8000;

/// Maximum number of the newest cases, and of the most similar older ones.
const MAX_CASES: usize = 40;

/// Maximum number of tokens. Those whose paths share the most words with the tool are preferred.
const MAX_TOKENS: usize = 150;
const MAX_TOKEN_VALUE: usize = 100;

/// Everything needed to draft cases, as printed by `karat forge --brief`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat forge brief")]
pub struct BriefDocument {
    /// How to draft the cases.
    pub instructions: String,
    /// The tool, the other tools, the facts of the test data and the existing cases.
    #[serde(flatten)]
    pub shared_document: Map<String, Value>,
    /// The labeled cases that the tool should have.
    pub plan: Plan,
    /// The slots to fill.
    pub slots: Vec<OpenSlot>,
    /// The rules that every draft is checked against.
    pub rules: Vec<BriefRule>,
    /// The JSON Schema of the drafts.
    pub answer_schema: Value,
}

/// A slot without a case.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenSlot {
    pub id: String,
    pub tier: Tier,
    pub difficulty: Option<Difficulty>,
    /// The purpose of the case.
    pub purpose: String,
    /// How to write it.
    pub task: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phrase: Option<String>,
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
    /// Describes the open slots of a tool.
    pub fn new(brief: &Brief, plan: &Plan, slots: &[Slot]) -> Self {
        let open: Vec<&Slot> = slots.iter().collect();
        let other_cases: Vec<Case> = brief.existing().cloned().collect();
        let request = Request { brief, slots, other_cases: &other_cases, attempt: 0, revision: None };
        let question = Question { request, slots: &open, accepted: &[], problem: None, returned: &[] };
        let kinds = Kind::all_of(&open);
        let is_for_drafts = |rule: &&Rule| {
            let file_rules = [
                Rule::FileTool,
                Rule::EditedRegression,
                Rule::RemovedRegression,
                Rule::UnsealedRegression,
                Rule::ArchivedRegression,
                Rule::SnapshotInRegression,
                Rule::Drafter,
            ];
            !file_rules.contains(*rule)
        };
        let rule = |rule: &Rule| BriefRule { rule: *rule, severity: rule.draft_severity(), summary: rule.summary() };
        Self {
            instructions: instructions(&kinds, false),
            shared_document: question.shared_document(),
            plan: plan.clone(),
            slots: slots.iter().map(OpenSlot::new).collect(),
            rules: Rule::ALL.iter().filter(is_for_drafts).map(rule).collect(),
            answer_schema: with_optional_keys(answer_schema(brief, &open, &kinds)),
        }
    }
}

impl OpenSlot {
    pub fn new(slot: &Slot) -> Self {
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

/// One prompt to a model.
pub(crate) struct Question<'q> {
    pub(crate) request: Request<'q>,
    /// The slots of the request that are open.
    pub(crate) slots: &'q [&'q Slot],
    /// The cases of the batch that were accepted.
    pub(crate) accepted: &'q [Case],
    /// The problem with the last answer as a whole.
    pub(crate) problem: Option<&'q str>,
    /// The rejected cases of the last answer.
    pub(crate) returned: &'q [RejectedCase],
}

/// A case that was rejected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RejectedCase {
    pub(crate) id: String,
    /// `None` if the model returned no case.
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

    /// Returns the part of the document that is the same for all batches. It comes first, so that a provider can cache
    /// it.
    fn shared_document(&self) -> Map<String, Value> {
        let Request { brief, other_cases, .. } = self.request;
        let mut document = Map::new();
        let mut insert = |key: &str, value: Value| document.insert(key.to_owned(), value);
        insert("tool", tool(brief));
        insert("otherTools", self.other_tools());
        let overlaps = brief.overlaps.iter().map(|overlap| json!({"tool": overlap.tool, "reasons": overlap.reasons}));
        insert("overlaps", overlaps.collect());
        insert("clusters", json!(brief.clusters));
        insert("facts", facts(brief));
        insert("casesSoFar", self.cases_so_far(other_cases));
        document
    }

    fn document(&self) -> Map<String, Value> {
        let Request { attempt, revision, .. } = self.request;
        let mut document = self.shared_document();
        let mut insert = |key: &str, value: Value| document.insert(key.to_owned(), value);
        insert("asked", self.slots.iter().map(|slot| slot_document(slot)).collect());
        if attempt > 0 {
            insert("filledBefore", attempt.into());
        }
        if let Some(revision) = revision {
            let is_asked = |id: &str| self.slots.iter().any(|slot| slot.id == id);
            let drafts = revision.drafts.iter().filter(|draft| is_asked(&draft.slot.id));
            let drafts: Value = drafts.filter_map(|draft| draft.case.as_ref()).map(truncated_case).collect();
            insert("revision", json!({"wish": revision.instructions, "drafts": drafts}));
        }
        if let Some(problem) = self.problem {
            insert("problem", problem.into());
        }
        if !self.returned.is_empty() {
            let returned = self
                .returned
                .iter()
                .map(|rejected| RejectedCase { case: rejected.case.as_ref().map(truncated_case), ..rejected.clone() });
            insert("returned", returned.map(|rejected| serde_json::to_value(rejected).unwrap_or_default()).collect());
        }
        document
    }

    /// Describes the other tools. If there are many, only related ones have their full description.
    fn other_tools(&self) -> Value {
        let brief = self.request.brief;
        let has_few_tools = brief.registry.tools().len() <= MAX_FULL_DESCRIPTIONS;
        let overlaps = brief.overlaps.iter().map(|overlap| &overlap.tool);
        let named = self.slots.iter().flat_map(|slot| named_tools(&slot.purpose));
        let related: BTreeSet<&String> = overlaps.chain(brief.clusters.iter().flatten()).chain(named).collect();
        let others = brief.registry.tools().iter().filter(|tool| tool.name != brief.tool.name);
        let descriptions = others.map(|tool| {
            let description = tool.description.as_deref().unwrap_or_default();
            let description = if has_few_tools || related.contains(&tool.name) {
                shorten(description, MAX_DESCRIPTION)
            } else {
                shorten(first_sentence(description), MAX_FIRST_SENTENCE)
            };
            (tool.name.clone(), Value::from(description))
        });
        Value::Object(descriptions.collect())
    }

    /// Lists the cases that must not be repeated: those of this batch, the newest, and the most similar to the open
    /// slots.
    fn cases_so_far(&self, other_cases: &[Case]) -> Value {
        let newest = other_cases.len().saturating_sub(MAX_CASES);
        let slot_words = self.slot_words();
        let shared = |case: &Case| words(&case.message_text()).intersection(&slot_words).count();
        let mut older: Vec<(usize, usize)> = other_cases[..newest].iter().map(shared).enumerate().collect();
        // Among equally similar cases, prefer the newest.
        older.sort_by_key(|&(index, shared)| std::cmp::Reverse((shared, index)));
        older.truncate(MAX_CASES);
        let left_out = newest - older.len();
        let indices: BTreeSet<usize> =
            older.into_iter().map(|(index, _)| index).chain(newest..other_cases.len()).collect();
        let cases = indices.into_iter().map(|index| &other_cases[index]).chain(self.accepted);
        let messages = cases.map(|case| (case.id.clone(), shorten(&case.message_text(), MAX_MESSAGE).into()));
        json!({"messages": messages.collect::<Map<String, Value>>(), "leftOut": left_out})
    }

    fn slot_words(&self) -> BTreeSet<String> {
        let mut slot_words = BTreeSet::new();
        for slot in self.slots {
            slot_words.extend(phrase(&slot.purpose).map(words).unwrap_or_default());
            slot_words.extend(named_tools(&slot.purpose).iter().flat_map(|tool| words(tool)));
        }
        slot_words
    }
}

/// Lists tokens with their values, and the number of those left out.
fn facts(brief: &Brief) -> Value {
    let tokens = token_values(&brief.sources);
    let left_out = tokens.len().saturating_sub(MAX_TOKENS);
    let mut selected: Vec<usize> = (0..tokens.len()).collect();
    if left_out > 0 {
        let tool = &brief.tool;
        let schema = tool.input_schema.get().map(Value::to_string).unwrap_or_default();
        let texts = [tool.name.as_str(), tool.description.as_deref().unwrap_or_default(), &schema];
        let mut known = words(&texts.join(" "));
        known.extend(brief.triggers.iter().flat_map(|phrase| words(phrase)));
        selected.sort_by_cached_key(|&index| Reverse(words(&tokens[index].0).intersection(&known).count()));
        selected.truncate(MAX_TOKENS);
        selected.sort_unstable();
    }
    let entries = selected.into_iter().map(|index| {
        let (token, value) = &tokens[index];
        let value = value.as_str().map_or_else(|| (*value).clone(), |text| shorten(text, MAX_TOKEN_VALUE).into());
        (token.clone(), value)
    });
    json!({"tokens": entries.collect::<Map<String, Value>>(), "leftOut": left_out})
}

fn tool(brief: &Brief) -> Value {
    let tool = &brief.tool;
    let mut members = Map::new();
    members.insert("name".to_owned(), tool.name.as_str().into());
    let description = tool.description.as_deref().unwrap_or_default();
    members.insert("description".to_owned(), shorten(description, MAX_DESCRIPTION).into());
    if let Some(category) = tool.category.get() {
        members.insert("category".to_owned(), category.as_str().into());
    }
    members.insert("asksFirst".to_owned(), brief.needs_confirmation().into());
    members.insert("triggerPhrases".to_owned(), json!(brief.triggers));
    if let Some(schema) = tool.input_schema.get() {
        members.insert("schema".to_owned(), truncate_json(schema, MAX_SCHEMA));
    }
    Value::Object(members)
}

fn slot_document(slot: &Slot) -> Value {
    let mut document = Map::new();
    document.insert("id".to_owned(), slot.id.as_str().into());
    document.insert("task".to_owned(), task(&slot.purpose).into());
    if let Some(phrase) = phrase(&slot.purpose) {
        document.insert("phrase".to_owned(), phrase.into());
    }
    if let Some(count) = tool_count(&slot.purpose) {
        document.insert("toolCount".to_owned(), json!(count));
    }
    if matches!(slot.purpose, Purpose::Disambiguation { .. } | Purpose::Together { .. } | Purpose::Choice { .. }) {
        document.insert("tools".to_owned(), json!(named_tools(&slot.purpose)));
    }
    Value::Object(document)
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

fn truncated_case(case: &Value) -> Value {
    truncate_json(case, MAX_RETURNED)
}

/// Returns the value, or the start of its JSON text if that is too long.
fn truncate_json(value: &Value, max_length: usize) -> Value {
    let text = value.to_string();
    if text.len() <= max_length { value.clone() } else { shorten(&text, max_length).into() }
}

/// Returns the first sentence or line of text.
fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let ends = |&(offset, letter): &(usize, char)| {
        let rest = &text[offset + letter.len_utf8()..];
        letter == '\n' || ".!?".contains(letter) && rest.starts_with(char::is_whitespace)
    };
    let end = text.char_indices().find(ends).map_or(text.len(), |(offset, letter)| offset + letter.len_utf8());
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
    fn finds_the_first_sentence(#[case] text: &str, #[case] sentence: &str) {
        assert_eq!(first_sentence(text), sentence);
    }
}
