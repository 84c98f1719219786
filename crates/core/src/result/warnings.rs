//! Warnings about the cases of a suite.

use std::collections::BTreeSet;
use std::sync::Arc;

use karat_json::text::shorten;

use super::CaseResult;

/// Maximum number of warnings that are taken from cases.
const MAX_CASE_WARNINGS: usize = 5;

/// Returns the warnings of a suite, given its cases and how many of them have unused stubs.
pub fn suite_warnings(unused_stubs: usize, cases: &[Arc<CaseResult>]) -> Vec<String> {
    let mut warnings: Vec<String> = unused_stubs_warning(unused_stubs).into_iter().collect();
    let details = || cases.iter().flat_map(|case| case.all_details());
    let tokens: BTreeSet<&str> = details().flat_map(|details| &details.skipped_tokens).map(String::as_str).collect();
    if !tokens.is_empty() {
        let list = tokens.iter().copied().collect::<Vec<_>>().join(", ");
        let count = format_count(tokens.len(), "token", "tokens");
        warnings.push(format!("assertions skipped for {count} without a value: {}", shorten(&list, 200)));
    }
    let case_warnings: BTreeSet<&str> = details().flat_map(|details| &details.warnings).map(String::as_str).collect();
    warnings.extend(case_warnings.into_iter().take(MAX_CASE_WARNINGS).map(str::to_owned));
    warnings
}

/// Returns a warning if cases have stubs that are unused because the agent runs real tools.
pub fn unused_stubs_warning(unused: usize) -> Option<String> {
    let count = format_count(unused, "case has", "cases have");
    (unused > 0).then(|| format!("{count} unused stubs: the agent runs real tools"))
}

fn format_count(count: usize, singular: &str, plural: &str) -> String {
    if count == 1 { format!("1 {singular}") } else { format!("{count} {plural}") }
}
