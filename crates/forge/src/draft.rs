//! A case that nobody has approved yet.

use std::fmt;

use karat_core::case::Case;
use karat_core::lint::{Rule, Severity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Slot;

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
    /// karat itself, without a model.
    Template,
    /// A model, by its identity.
    Model(String),
    /// A real message, from the trace of this id.
    Trace(String),
    /// A file of drafts, by its name.
    File(String),
    /// A person, who edited the draft.
    Person,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Template => write!(out, "drafted without a model"),
            Origin::File(name) => write!(out, "from {name}"),
            Origin::Model(model) => write!(out, "drafted by {model}"),
            Origin::Trace(id) => write!(out, "from the trace {id}"),
            Origin::Person => write!(out, "edited by you"),
        }
    }
}

/// What is wrong with a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DraftFinding {
    pub rule: Rule,
    /// A draft with an error cannot be approved.
    pub severity: Severity,
    /// Where in the case, as a JSON pointer; empty for the whole of it.
    pub pointer: String,
    /// A lower-case fragment.
    pub message: String,
}

impl DraftFinding {
    /// Makes a finding of the rule's severity for drafts.
    pub fn of(rule: Rule, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule, severity: rule.draft_severity(), pointer: pointer.into(), message: message.into() }
    }

    /// Makes a finding of the drafter itself that prevents approval.
    pub fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(Rule::Drafter, pointer, message)
    }

    /// Makes a finding of the drafter itself that a person should look at.
    pub fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(pointer, message) }
    }

    /// Returns whether a model should be asked again: a person may accept a warning, but a model can do better.
    pub fn is_worth_another_try(&self) -> bool {
        let is_fixable = !matches!(self.rule, Rule::Drafter | Rule::PersonalData | Rule::ToolNotKnown);
        self.severity == Severity::Error || is_fixable
    }
}

impl Draft {
    /// Makes a draft for which there is no case, and why.
    pub fn failed(slot: Slot, origin: Origin, why: impl Into<String>) -> Self {
        Self { slot, case: None, origin, findings: vec![DraftFinding::error("", why)] }
    }

    /// Returns whether a person may approve it.
    pub fn can_be_approved(&self) -> bool {
        self.case.is_some() && self.findings.iter().all(|finding| finding.severity != Severity::Error)
    }

    /// Returns the case, where it is valid.
    pub fn read(&self) -> Option<Case> {
        Case::read_one(self.case.as_ref()?).ok()
    }
}
