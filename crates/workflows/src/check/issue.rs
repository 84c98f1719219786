//! An issue: something that is invalid or likely wrong.

use std::sync::Arc;

use karat_json::{Finding, Location, Problem, Severity, Subject};
use schemars::JsonSchema;
use serde::Serialize;

/// The rule of issues that make a file unusable.
pub const INVALID: &str = "invalid";

/// Something that is invalid or likely wrong.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckIssue {
    /// The file, server or flag of the issue.
    pub file: String,
    /// From 1; null without a source text.
    pub line: Option<usize>,
    /// From 1, in characters.
    pub column: Option<usize>,
    pub severity: Severity,
    /// The name of the rule; `invalid` if the issue makes a file unusable.
    pub rule: String,
    pub case_id: Option<String>,
    pub tool: Option<String>,
    /// The location in a JSON file, as a JSON pointer.
    pub pointer: Option<String>,
    pub message: String,
    pub help: Option<String>,
    /// The source text and the location in it, if there is one.
    #[serde(skip)]
    pub location: Option<(Arc<str>, Location)>,
}

impl CheckIssue {
    pub(super) fn new(
        file: &str,
        location: Option<(Arc<str>, Location)>,
        (rule, severity): (&str, Severity),
        message: String,
        help: Option<String>,
    ) -> Self {
        let position = location.as_ref().map(|(_, location)| location.position);
        Self {
            file: file.to_owned(),
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            severity,
            rule: rule.to_owned(),
            case_id: None,
            tool: None,
            pointer: None,
            message,
            help,
            location,
        }
    }

    /// Creates an issue from a finding in text.
    pub(super) fn in_text(file: &str, text: &Arc<str>, finding: Finding, rule: (&str, Severity)) -> Self {
        let Finding { location, pointer, case_id, message, help } = finding;
        Self { case_id, pointer, ..Self::new(file, Some((Arc::clone(text), location)), rule, message, help) }
    }

    /// Creates issues from findings that make a file unusable.
    pub(super) fn invalid(file: &str, text: &Arc<str>, findings: Vec<Finding>) -> Vec<Self> {
        let issue = |finding| Self::in_text(file, text, finding, (INVALID, Severity::Error));
        findings.into_iter().map(issue).collect()
    }

    /// Returns the case or tool of the issue.
    pub fn subject(&self) -> Option<&str> {
        self.case_id.as_deref().or(self.tool.as_deref())
    }
}

/// A problem with its rule and severity.
pub(super) type RuleProblem = (Problem, (&'static str, Severity));

pub(super) fn problem(pointer: String, message: String, help: Option<String>) -> Problem {
    Problem { pointer, subject: Subject::Key, case_id: None, message, help }
}

/// Locates problems in text and returns them in source order.
pub(super) fn locate(file: &str, text: &Arc<str>, problems: Vec<RuleProblem>) -> Vec<CheckIssue> {
    let located = Finding::locate_tagged(text, problems).into_iter();
    located.map(|(finding, rule)| CheckIssue::in_text(file, text, finding, rule)).collect()
}
