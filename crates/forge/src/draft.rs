//! A proposed case that has not been approved.

use std::fmt;

use karat_cases::Case;
use karat_lints::{Rule, Severity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Slot;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Draft {
    pub slot: Slot,
    /// The case as JSON; `None` if drafting failed.
    pub case: Option<Value>,
    pub origin: Origin,
    pub findings: Vec<DraftFinding>,
}

/// The source of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Origin {
    /// A built-in template.
    Template,
    /// The identity of a model.
    Model(String),
    /// The id of the trace that the message is from.
    Trace(String),
    /// The name of a file of drafts.
    File(String),
    /// A person edited the draft.
    Person,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Template => write!(out, "drafted without a model"),
            Origin::File(name) => write!(out, "from {name}"),
            Origin::Model(model) => write!(out, "drafted by {model}"),
            Origin::Trace(id) => write!(out, "from trace {id}"),
            Origin::Person => write!(out, "edited by you"),
        }
    }
}

/// A problem in a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DraftFinding {
    pub rule: Rule,
    /// A draft with an error cannot be approved.
    pub severity: Severity,
    /// A JSON pointer into the case; empty for the case as a whole.
    pub pointer: String,
    /// A lower-case fragment.
    pub message: String,
}

impl DraftFinding {
    /// Creates a finding with the rule's severity for drafts.
    pub fn new(rule: Rule, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule, severity: rule.draft_severity(), pointer: pointer.into(), message: message.into() }
    }

    /// Creates a drafter finding that prevents approval.
    pub fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Rule::Drafter, pointer, message)
    }

    /// Creates a drafter finding that a person should review.
    pub fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(pointer, message) }
    }

    /// Whether a model should be asked again. A person may accept a warning; a model should fix it.
    pub fn is_retryable(&self) -> bool {
        let is_fixable = !matches!(self.rule, Rule::Drafter | Rule::PersonalData | Rule::ToolNotKnown);
        self.severity == Severity::Error || is_fixable
    }
}

impl Draft {
    /// Creates a draft without a case, with the reason.
    pub fn failed(slot: Slot, origin: Origin, reason: impl Into<String>) -> Self {
        Self { slot, case: None, origin, findings: vec![DraftFinding::error("", reason)] }
    }

    /// Whether a person may approve the draft.
    pub fn can_be_approved(&self) -> bool {
        self.case.is_some() && self.findings.iter().all(|finding| finding.severity != Severity::Error)
    }

    /// Returns the case if it is valid.
    pub fn parse_case(&self) -> Option<Case> {
        Case::read_one(self.case.as_ref()?).ok()
    }
}
