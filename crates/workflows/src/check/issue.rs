//! Something that is invalid or likely wrong, wherever it was found.

use std::sync::Arc;

use karat_json::{Finding, Place, Problem, Severity, Subject};
use schemars::JsonSchema;
use serde::Serialize;

/// The rule under which invalid places are listed.
pub const INVALID: &str = "invalid";

/// Something that is invalid or likely wrong.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckIssue {
    /// The file, or the server or flag, that it is in.
    pub file: String,
    /// From 1; null where there is no text to point at.
    pub line: Option<usize>,
    /// From 1, in characters.
    pub column: Option<usize>,
    pub severity: Severity,
    /// The rule's name; `invalid` for what makes a file unusable.
    pub rule: String,
    pub case_id: Option<String>,
    pub tool: Option<String>,
    /// Where in a JSON file, as a JSON pointer.
    pub pointer: Option<String>,
    pub message: String,
    pub help: Option<String>,
    /// The file's text and the place in it, where there is one.
    #[serde(skip)]
    pub place: Option<(Arc<str>, Place)>,
}

impl CheckIssue {
    pub(super) fn new(
        file: &str,
        place: Option<(Arc<str>, Place)>,
        (rule, severity): (&str, Severity),
        message: String,
        help: Option<String>,
    ) -> Self {
        let position = place.as_ref().map(|(_, place)| place.position);
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
            place,
        }
    }

    /// Makes an issue of a finding in a text.
    pub(super) fn in_text(file: &str, text: &Arc<str>, finding: Finding, rule: (&str, Severity)) -> Self {
        let Finding { place, pointer, case_id, message, help } = finding;
        Self { case_id, pointer, ..Self::new(file, Some((Arc::clone(text), place)), rule, message, help) }
    }

    /// Makes issues of what makes a file unusable.
    pub(super) fn invalid(file: &str, text: &Arc<str>, findings: Vec<Finding>) -> Vec<Self> {
        let issue = |finding| Self::in_text(file, text, finding, (INVALID, Severity::Error));
        findings.into_iter().map(issue).collect()
    }

    /// The case or tool that it is about.
    pub fn subject(&self) -> Option<&str> {
        self.case_id.as_deref().or(self.tool.as_deref())
    }
}

/// Something wrong at a JSON pointer, with the rule and its severity.
pub(super) type Marked = (Problem, (&'static str, Severity));

pub(super) fn problem(pointer: String, message: String, help: Option<String>) -> Problem {
    Problem { pointer, subject: Subject::Key, case_id: None, message, help }
}

/// Finds the places of all problems in a text, in its order.
pub(super) fn locate(file: &str, text: &Arc<str>, problems: Vec<Marked>) -> Vec<CheckIssue> {
    let located = Finding::locate_marked(text, problems).into_iter();
    located.map(|(finding, rule)| CheckIssue::in_text(file, text, finding, rule)).collect()
}
