//! Something to tell, wherever it was found.

use std::sync::Arc;

use karat_core::lint::Severity;
use karat_json::{Finding, Place, Problem, Subject};

/// Something that is invalid or likely wrong.
pub(super) struct Issue {
    /// A file as a person would name it, or else a server or a flag.
    pub(super) file: String,
    /// Where in the file's text, where it has one.
    pub(super) place: Option<(Arc<str>, Place)>,
    pub(super) severity: Severity,
    pub(super) rule: String,
    pub(super) case_id: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) pointer: Option<String>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Issue {
    /// Makes an issue of a finding in a text.
    pub(super) fn in_text(file: &str, text: &Arc<str>, finding: Finding, rule: &str, severity: Severity) -> Self {
        Self {
            file: file.to_owned(),
            place: Some((Arc::clone(text), finding.place)),
            severity,
            rule: rule.to_owned(),
            case_id: finding.case_id,
            tool: None,
            pointer: finding.pointer,
            message: finding.message,
            help: finding.help,
        }
    }

    /// Returns what a person is told it is about.
    pub(super) fn subject(&self) -> Option<&str> {
        self.case_id.as_deref().or(self.tool.as_deref())
    }
}

/// Something wrong at a JSON pointer, by which rule, and how much it matters.
pub(super) type Marked = (Problem, (&'static str, Severity));

pub(super) fn problem(pointer: String, message: String, help: Option<String>) -> Problem {
    Problem { pointer, subject: Subject::Key, case_id: None, message, help }
}

/// Finds the places of all in a text, in its order.
pub(super) fn locate(file: &str, text: &Arc<str>, problems: Vec<Marked>) -> Vec<Issue> {
    Finding::locate_marked(text, problems)
        .into_iter()
        .map(|(finding, (rule, severity))| Issue::in_text(file, text, finding, rule, severity))
        .collect()
}
