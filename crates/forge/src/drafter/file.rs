//! Drafts from a file that a coding agent, another model or a person wrote.

use std::collections::BTreeMap;

use karat_cases::{Case, Difficulty, NO_TOOL, Tier, next_ids};
use karat_core::port::BoxFuture;
use karat_json::text::shorten;
use karat_json::{parse, type_name};
use serde_json::{Value, json};

use super::{DraftError, Drafter, Request};
use crate::identifier::is_raw;
use crate::{Brief, Combination, Draft, DraftFinding, EdgeKind, Origin, Purpose, Slot, check_draft};

/// The cases of a file, before they are matched to slots.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftFile {
    /// The file name for messages.
    pub name: String,
    /// The tool in the file's metadata.
    pub tool: Option<String>,
    cases: Vec<Value>,
}

/// The reason why a file cannot be used as drafts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftFileError {
    #[error("the drafts are not valid JSON: {message} (line {line})")]
    NotJson { message: String, line: usize },
    #[error("'cases' must be an array, found {0}")]
    CasesNotAnArray(&'static str),
    #[error("missing 'cases': expected {{\"cases\": […]}} or a list of cases")]
    NoCases,
    #[error("expected {{\"cases\": […]}} or a list of cases, found {0}")]
    UnexpectedType(&'static str),
    #[error("the file has no cases")]
    Empty,
}

impl DraftFile {
    /// Reads an eval file, an object with `cases`, or a list of cases.
    pub fn read(name: &str, text: &str) -> Result<Self, DraftFileError> {
        let value = parse(text).map_err(|error| {
            let line = text[..error.offset.min(text.len())].matches('\n').count() + 1;
            DraftFileError::NotJson { message: error.message, line }
        })?;
        let tool = value.pointer("/metadata/toolName").and_then(Value::as_str).map(str::to_owned);
        let cases = match value {
            Value::Array(cases) => cases,
            Value::Object(mut members) => match members.shift_remove("cases") {
                Some(Value::Array(cases)) => cases,
                Some(other) => return Err(DraftFileError::CasesNotAnArray(type_name(&other))),
                None => return Err(DraftFileError::NoCases),
            },
            other => return Err(DraftFileError::UnexpectedType(type_name(&other))),
        };
        if cases.is_empty() {
            return Err(DraftFileError::Empty);
        }
        Ok(Self { name: name.to_owned(), tool, cases })
    }

    /// Removes the cases that the project already has under any id. Returns the number removed.
    pub fn remove_existing(&mut self, brief: &Brief) -> usize {
        let before = self.cases.len();
        let exists = |case: &Value| {
            let read = Case::read_one(&without_nulls(case)).ok();
            read.is_some_and(|case| {
                brief.existing().any(|other| (&other.input, &other.expect) == (&case.input, &case.expect))
            })
        };
        self.cases.retain(|case| !exists(case));
        before - self.cases.len()
    }

    /// Assigns each case to a slot: the one with its id, else an open slot for the same kind of case, else a new slot.
    /// Returns the filled slots.
    pub fn assign_slots(self, brief: &Brief, slots: &[Slot]) -> (Vec<Slot>, FileDrafter) {
        let mut open: Vec<&Slot> = slots.iter().collect();
        let mut filled: BTreeMap<usize, Slot> = BTreeMap::new();
        let index_of = |slot: &Slot| slots.iter().position(|other| other.id == slot.id).unwrap_or(slots.len());
        let mut unmatched = Vec::new();
        let mut cases: BTreeMap<String, Value> = BTreeMap::new();
        for case in self.cases {
            let id = case.get("id").and_then(Value::as_str).unwrap_or_default();
            match open.iter().position(|slot| slot.id == id) {
                Some(index) => {
                    let slot = open.remove(index);
                    // An explicit purpose of the case overrides that of the slot.
                    let purpose =
                        Purpose::infer(&case, brief).filter(|inferred| inferred.tier() == slot.purpose.tier());
                    let is_explicit = slot.purpose.tier() == Tier::Golden || difficulty(&case).is_some();
                    let purpose = purpose.filter(|inferred| is_explicit && !slot.purpose.is_tested_by(&case, inferred));
                    let slot = Slot { id: slot.id.clone(), purpose: purpose.unwrap_or_else(|| slot.purpose.clone()) };
                    cases.insert(slot.id.clone(), case);
                    filled.insert(index_of(&slot), slot);
                }
                None => unmatched.push(case),
            }
        }
        let mut extra = Vec::new();
        let mut original_ids: BTreeMap<String, String> = BTreeMap::new();
        for mut case in unmatched {
            let purpose = Purpose::infer(&case, brief).unwrap_or(Purpose::NoLeak);
            let kind = |slot: &Slot| (slot.purpose.tier(), slot.purpose.difficulty());
            let has_similar_purpose = |slot: &&&Slot| slot.purpose.is_like(&purpose);
            let is_same_kind = |slot: &&&Slot| kind(slot) == (purpose.tier(), purpose.difficulty());
            let slot_id = open
                .iter()
                .find(has_similar_purpose)
                .or_else(|| open.iter().find(is_same_kind))
                .map(|slot| slot.id.clone());
            let slot = match slot_id {
                Some(id) => {
                    open.retain(|slot| slot.id != id);
                    Slot { id, purpose }
                }
                None => Slot { id: unused_id(brief, &purpose, slots, &extra), purpose },
            };
            if let Some(members) = case.as_object_mut() {
                if let Some(Value::String(original)) = members.shift_remove("id") {
                    original_ids.insert(slot.id.clone(), original);
                }
                members.shift_insert(0, "id".to_owned(), json!(slot.id));
            }
            cases.insert(slot.id.clone(), case);
            match index_of(&slot) {
                index if index < slots.len() => drop(filled.insert(index, slot)),
                _ => extra.push(slot),
            }
        }
        (filled.into_values().chain(extra).collect(), FileDrafter { name: self.name, cases, original_ids })
    }
}

/// Returns an id that no case or slot uses.
fn unused_id(brief: &Brief, purpose: &Purpose, slots: &[Slot], extra: &[Slot]) -> String {
    let prefix = purpose.tier().id_prefix().unwrap_or_default();
    let existing = brief.existing().map(|case| case.id.as_str());
    let taken = existing.chain(slots.iter().chain(extra).map(|slot| slot.id.as_str()));
    next_ids(prefix, &brief.tool.name, taken).next().unwrap_or_default()
}

/// Returns the difficulty that the case declares.
fn difficulty(case: &Value) -> Option<Difficulty> {
    case.get("difficulty").and_then(Value::as_str).and_then(Difficulty::from_name)
}

impl Purpose {
    /// Infers the purpose of a case from its content. Returns `None` if the value is not an object.
    pub(crate) fn infer(case: &Value, brief: &Brief) -> Option<Self> {
        case.as_object()?;
        let id = case.get("id").and_then(Value::as_str).unwrap_or_default();
        let message = case.pointer("/input/message").and_then(Value::as_str).unwrap_or_default();
        let list = |key: &str| -> Vec<String> {
            let texts = case.pointer(&format!("/expect/{key}")).and_then(Value::as_array).into_iter().flatten();
            texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let sets: Option<Vec<Vec<String>>> =
            case.pointer("/expect/toolsAcceptable").and_then(|sets| serde_json::from_value(sets.clone()).ok());
        let difficulty = difficulty(case).or_else(|| match (&sets, list("toolsCalled").len()) {
            (Some(_), _) => Some(Difficulty::Ambiguous),
            (None, 2..) => Some(Difficulty::Straightforward),
            _ => id.starts_with("ls-").then_some(Difficulty::Edge),
        });
        let forbidden = list("responseNotContains");
        Some(match difficulty {
            Some(Difficulty::Straightforward) => {
                let mut tools = list("toolsCalled");
                tools.dedup();
                Self::together(tools)
            }
            Some(Difficulty::Ambiguous) => {
                let sets = sets.unwrap_or_default();
                let is_other = |name: &&String| **name != brief.tool.name && *name != NO_TOOL;
                let mut others: Vec<String> = sets.iter().flatten().filter(is_other).cloned().collect();
                others.sort_unstable();
                others.dedup();
                Self::Choice { combination: Combination::from_sets(&sets).unwrap_or(Combination::Or), others }
            }
            Some(Difficulty::Edge | Difficulty::Regression) => Self::Edge(EdgeKind::OffTopic),
            None if list("toolsNotCalled").contains(&brief.tool.name) => Self::Confirmation,
            None if forbidden.iter().any(|text| is_raw(text)) => Self::NoLeak,
            None => {
                match brief.triggers.iter().find(|phrase| message.to_lowercase().contains(&phrase.to_lowercase())) {
                    Some(phrase) => Self::Trigger(phrase.clone()),
                    None => Self::Plain,
                }
            }
        })
    }

    /// Whether a case also tests this purpose, although another one was inferred from it.
    fn is_tested_by(&self, case: &Value, inferred: &Self) -> bool {
        let message = case.pointer("/input/message").and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let forbidden = case.pointer("/expect/responseNotContains").and_then(Value::as_array).into_iter().flatten();
        match self {
            Self::Trigger(phrase) => message.contains(&phrase.to_lowercase()),
            Self::NoLeak => forbidden.filter_map(Value::as_str).any(is_raw),
            Self::Rephrasing(_) | Self::Disambiguation { .. } | Self::Plain => *inferred != Self::Confirmation,
            _ => self.is_like(inferred),
        }
    }

    /// Whether a case with purpose `other` can take a slot with this purpose.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Trigger(left), Self::Trigger(right)) => left == right,
            (Self::Together { count: left, .. }, Self::Together { count: right, .. }) => left == right,
            (
                Self::Choice { combination: left, others: first },
                Self::Choice { combination: right, others: second },
            ) => left == right && (first.iter().any(|tool| second.contains(tool)) || first.is_empty()),
            (Self::Rephrasing(_) | Self::Disambiguation { .. }, Self::Plain) => true,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Fills slots with the cases of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileDrafter {
    name: String,
    /// The cases by slot id.
    cases: BTreeMap<String, Value>,
    /// The ids in the file of the cases that were renamed, by slot id.
    original_ids: BTreeMap<String, String>,
}

impl FileDrafter {
    /// Returns the drafts of these slots, each checked against `other_cases` and the drafts before it.
    pub fn drafts(&self, brief: &Brief, slots: &[Slot], other_cases: &[Case]) -> Vec<Draft> {
        let mut others: Vec<Case> = other_cases.to_vec();
        let mut drafts = Vec::new();
        for slot in slots {
            let Some(case) = self.cases.get(&slot.id) else { continue };
            let case = without_nulls(case);
            let mut findings = check_draft(brief, slot, &case, &others);
            if let Some(original) = self.original_ids.get(&slot.id) {
                findings
                    .push(DraftFinding::warning("/id", format!("the id in the file is '{}'", shorten(original, 80))));
            }
            let draft =
                Draft { slot: slot.clone(), case: Some(case), origin: Origin::File(self.name.clone()), findings };
            others.extend(draft.parse_case());
            drafts.push(draft);
        }
        drafts
    }
}

impl Drafter for FileDrafter {
    fn name(&self) -> &'static str {
        "file"
    }

    fn can_fill(&self, slot: &Slot) -> bool {
        self.cases.contains_key(&slot.id)
    }

    fn can_redraft(&self) -> bool {
        false
    }

    fn draft<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Vec<Draft>, DraftError>> {
        Box::pin(std::future::ready(Ok(self.drafts(request.brief, request.slots, request.other_cases))))
    }
}

/// Removes the nulls that a model writes for unused keys. Elsewhere, null is a value, for example of a stub.
fn without_nulls(case: &Value) -> Value {
    let mut case = case.clone();
    let strip = |value: Option<&mut Value>, is_key: fn(&str) -> bool| {
        if let Some(members) = value.and_then(Value::as_object_mut) {
            members.retain(|key, member| !(member.is_null() && is_key(key)));
        }
    };
    strip(Some(&mut case), |_| true);
    strip(case.get_mut("expect"), |_| true);
    let params = case.pointer_mut("/expect/toolParams").and_then(Value::as_array_mut);
    params.into_iter().flatten().for_each(|param| strip(Some(param), |key| matches!(key, "call" | "optional")));
    case
}
