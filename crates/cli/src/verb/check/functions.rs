//! What is wrong with Python eval functions.

use std::collections::BTreeSet;
use std::path::Path;

use karat_core::lint::Severity;

use super::issue::Issue;
use super::report::INVALID;
use karat_workflows::functions::ProjectFunctions;

/// Returns what is wrong with the functions: with all of the project, or with those that were named.
pub(super) fn check(functions: &ProjectFunctions, named: Option<&BTreeSet<String>>) -> Vec<Issue> {
    let is_named = |path: &Path| {
        named.is_none_or(|names| names.iter().any(|name| functions.broken(name).any(|one| one.path == path)))
    };
    let files = functions.files.iter().filter(|file| is_named(&file.path));
    let issues = files.flat_map(|file| {
        let issue = |finding| Issue::in_text(&file.shown, &file.text, finding, INVALID, Severity::Error);
        file.findings().into_iter().map(issue).collect::<Vec<_>>()
    });
    issues.collect()
}
