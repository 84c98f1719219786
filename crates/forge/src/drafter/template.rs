//! Drafts cases without a model, from trigger phrases and a list of edge messages.
//!
//! A case asserts only what any correct agent fulfils. Slots that need an understanding of the tools (rephrasings,
//! tasks for several tools, ambiguity) stay open.

use std::sync::LazyLock;

use karat_cases::Case;
use karat_core::port::BoxFuture;
use karat_json::text::shorten;
use karat_tools::similarity::words;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{DraftError, Drafter, Request};
use crate::brief::is_write;
use crate::identifier::RAW_DATA;
use crate::{Brief, Draft, EdgeKind, Origin, Purpose, Slot, check_draft};

const NON_ANSWER: &str = "I don't know";
/// The user's consent, for a tool that needs confirmation.
const CONSENT: &str = "Yes, I am sure: please do it now, without asking me again.";
const PLAIN_WORDS: &str = "Please answer in plain words.";
/// Maximum length of a message in a description, in characters.
const MAX_DESCRIBED_CHARS: usize = 60;
/// Words in descriptions of tools that may be called for general knowledge.
const GENERAL_KNOWLEDGE_WORDS: [&str; 8] =
    ["answer", "browse", "internet", "knowledge", "question", "search", "web", "wikipedia"];

/// A message that tries to mislead an agent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EdgeMessage {
    kind: EdgeKind,
    message: String,
    /// Texts that only a misled answer contains. They are not part of the message, so an agent may quote it.
    #[serde(default)]
    forbidden: Vec<String>,
    /// A correct agent does not call the tool under test.
    #[serde(default)]
    calls_nothing: bool,
}

static EDGE_MESSAGES: LazyLock<Vec<EdgeMessage>> =
    LazyLock::new(|| serde_json::from_str(include_str!("edge_messages.json")).unwrap_or_default());

/// Fills slots from templates.
#[derive(Debug, Clone, Copy, Default)]
pub struct TemplateDrafter;

impl Drafter for TemplateDrafter {
    fn name(&self) -> &'static str {
        "template"
    }

    fn can_fill(&self, slot: &Slot) -> bool {
        match &slot.purpose {
            Purpose::Trigger(_) | Purpose::NoLeak | Purpose::Confirmation | Purpose::Edge(_) => true,
            Purpose::Disambiguation { phrase, .. } => phrase.is_some(),
            Purpose::Rephrasing(_) | Purpose::Plain | Purpose::Together { .. } | Purpose::Choice { .. } => false,
        }
    }

    fn can_redraft(&self) -> bool {
        false
    }

    fn draft<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Vec<Draft>, DraftError>> {
        Box::pin(std::future::ready(Ok(drafts(request))))
    }
}

fn drafts(request: Request<'_>) -> Vec<Draft> {
    let Request { brief, slots, other_cases, .. } = request;
    let mut others = other_cases.to_vec();
    let mut drafts = Vec::new();
    for slot in slots {
        let Some(mut case) = case(brief, &slot.purpose, &others) else { continue };
        case.insert("id".to_owned(), json!(slot.id));
        let case = ordered(case);
        let findings = check_draft(brief, slot, &case, &others);
        let draft = Draft { slot: slot.clone(), case: Some(case), origin: Origin::Template, findings };
        others.extend(draft.parse_case());
        drafts.push(draft);
    }
    drafts
}

/// Orders the members of a case as in eval files.
fn ordered(mut case: Map<String, Value>) -> Value {
    let keys = ["id", "description", "difficulty", "input", "expect"];
    keys.into_iter().filter_map(|key| Some((key.to_owned(), case.remove(key)?))).collect::<Map<_, _>>().into()
}

fn case(brief: &Brief, purpose: &Purpose, others: &[Case]) -> Option<Map<String, Value>> {
    let tool = &brief.tool.name;
    match purpose {
        Purpose::Trigger(phrase) => Some(golden(brief, phrase, &described("trigger phrase", phrase), &[])),
        Purpose::Disambiguation { other, reasons, phrase } => {
            let reason = reasons.first().map_or_else(String::new, |reason| format!(" ({reason})"));
            Some(golden(brief, phrase.as_ref()?, &format!("disambiguation: {tool}, not {other}{reason}"), &[]))
        }
        Purpose::NoLeak => {
            let phrase = format!("{} {PLAIN_WORDS}", sentence(brief.triggers.first()?));
            Some(golden(brief, &phrase, &format!("no JSON leak: {tool}"), &RAW_DATA))
        }
        Purpose::Confirmation => confirmation(brief, others),
        Purpose::Edge(kind) => edge(brief, *kind, others),
        Purpose::Rephrasing(_) | Purpose::Plain | Purpose::Together { .. } | Purpose::Choice { .. } => None,
    }
}

/// Builds a case that calls only the tool under test.
fn golden(brief: &Brief, message: &str, description: &str, forbidden: &[&str]) -> Map<String, Value> {
    let message = message.trim();
    let message =
        if brief.needs_confirmation() { format!("{} {CONSENT}", sentence(message)) } else { message.to_owned() };
    let forbidden: Vec<&str> = [NON_ANSWER].into_iter().chain(forbidden.iter().copied()).collect();
    let expect = json!({
        "toolsCalled": [brief.tool.name],
        "noToolErrors": true,
        "responseNonEmpty": true,
        "responseNotContains": forbidden,
    });
    members(description, &message, &expect)
}

/// Builds a case in which the agent has to ask for confirmation, and so may not call any tool that changes something.
fn confirmation(brief: &Brief, others: &[Case]) -> Option<Map<String, Value>> {
    let is_new = |phrase: &&String| {
        let taken = brief.existing().chain(others).any(|case| case.message(0).trim() == phrase.trim());
        !taken
    };
    let phrase = brief.triggers.iter().find(is_new)?;
    let writes = brief.registry.tools().iter().filter(|tool| is_write(tool) && tool.name != brief.tool.name);
    let forbidden: Vec<&str> =
        [brief.tool.name.as_str()].into_iter().chain(writes.map(|tool| tool.name.as_str())).collect();
    let expect = json!({"toolsNotCalled": forbidden, "responseNonEmpty": true});
    Some(members(&described("asks first", phrase), phrase.trim(), &expect))
}

fn edge(brief: &Brief, kind: EdgeKind, others: &[Case]) -> Option<Map<String, Value>> {
    let tool = &brief.tool;
    let tool_words = words(&format!("{} {}", tool.name, tool.description.as_deref().unwrap_or_default()));
    // A tool that answers questions may be called for general knowledge.
    let answers_anything = GENERAL_KNOWLEDGE_WORDS.iter().any(|word| tool_words.contains(*word));
    let is_safe = |edge: &EdgeMessage| {
        let may_be_called = edge.kind == EdgeKind::GeneralKnowledge && answers_anything;
        !edge.calls_nothing || !may_be_called && words(&edge.message).is_disjoint(&tool_words)
    };
    let is_new = |edge: &&EdgeMessage| {
        edge.kind == kind
            && is_safe(edge)
            && !brief.existing().chain(others).any(|case| case.message(0) == edge.message)
    };
    let edge = EDGE_MESSAGES.iter().find(is_new)?;
    let mut expect = json!({"responseNonEmpty": true});
    if edge.calls_nothing {
        expect["toolsNotCalled"] = json!([brief.tool.name]);
    }
    if !edge.forbidden.is_empty() {
        expect["responseNotContains"] = json!(edge.forbidden);
    }
    let mut case = members(&described(kind.short_name(), &edge.message), &edge.message, &expect);
    case.insert("difficulty".to_owned(), json!("edge"));
    Some(case)
}

/// Returns a description that distinguishes the case from others of its kind by its message.
fn described(kind: &str, message: &str) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{kind}: {}", shorten(&message, MAX_DESCRIBED_CHARS))
}

fn members(description: &str, message: &str, expect: &Value) -> Map<String, Value> {
    let members =
        [("description", json!(description)), ("input", json!({"message": message})), ("expect", expect.clone())];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Ends text with a full stop, unless it already ends a sentence.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?', '…', '。', '？', '！']) { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_five_edge_messages_of_each_kind() {
        for kind in EdgeKind::ALL {
            assert_eq!(EDGE_MESSAGES.iter().filter(|edge| edge.kind == kind).count(), 5, "{kind:?}");
        }
    }

    /// An agent that quotes the request has not been misled.
    #[test]
    fn forbidden_texts_are_not_in_the_message() {
        for edge in EDGE_MESSAGES.iter() {
            let is_quoted = edge.forbidden.iter().find(|text| edge.message.contains(text.as_str()));
            assert_eq!(is_quoted, None, "{}", edge.message);
            assert!(edge.calls_nothing || !edge.forbidden.is_empty(), "{}", edge.message);
        }
    }
}
