//! A case that nobody has approved yet.

use karat_core::case::Case;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Slot;
use crate::rules::DraftRule;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Draft {
    pub slot: Slot,
    /// The case as it would stand in the file; none where no case could be made.
    pub case: Option<Value>,
    pub origin: Origin,
    pub findings: Vec<DraftFinding>,
}

/// Who or what made a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Origin {
    /// A pattern without any knowledge of the agent: a person should reword it.
    Template,
    /// A model, by its identity.
    Model(String),
    /// A real message, from the trace of this id.
    Trace(String),
    /// A person, who edited what was drafted.
    Person,
}

/// What is wrong with a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DraftFinding {
    /// Which rule does not hold, so that programs need not read the message.
    pub rule: DraftRule,
    pub weight: Weight,
    /// Where in the case, as a JSON pointer; empty for the whole of it.
    pub pointer: String,
    /// A lower-case fragment.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Weight {
    /// A person should look at it.
    Warning,
    /// It cannot be approved so.
    Error,
}

impl DraftFinding {
    /// Returns what the drafter itself has to say, and cannot be approved so.
    pub fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule: DraftRule::Drafter, weight: Weight::Error, pointer: pointer.into(), message: message.into() }
    }

    /// Returns what the drafter itself has to say, and a person should look at.
    pub fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { weight: Weight::Warning, ..Self::error(pointer, message) }
    }

    /// Returns the finding as one of a rule.
    #[must_use]
    pub fn of(self, rule: DraftRule) -> Self {
        Self { rule, ..self }
    }

    /// Tells whether a drafter that can do better should be asked again: a person could live with some of it, but a
    /// model need not.
    pub fn is_worth_another_try(&self) -> bool {
        self.weight == Weight::Error || self.rule.can_be_mended()
    }
}

impl Draft {
    /// Returns a place for which no case could be made, and why.
    pub fn failed(slot: Slot, origin: Origin, why: impl Into<String>) -> Self {
        Self { slot, case: None, origin, findings: vec![DraftFinding::error("", why)] }
    }

    /// Tells whether a person may approve it.
    pub fn can_be_approved(&self) -> bool {
        self.case.is_some() && self.findings.iter().all(|finding| finding.weight != Weight::Error)
    }

    /// Returns the case, where it is one.
    pub fn read(&self) -> Option<Case> {
        Case::read_one(self.case.as_ref()?).ok()
    }
}
