//! Finds cases of the baseline that a run does not have.

use std::collections::BTreeSet;

use karat_cases::registry::same_name;
use karat_core::result::{EarlierResult, MissingCases};
use karat_core::shard::Shard;
use karat_project::EarlierResults;

use crate::eval_file_ids::current_ids;
use crate::settings::Settings;

/// Returns the cases of the baseline's suites that are not in `compared`, the results that were compared. With a shard,
/// returns only its cases.
pub(crate) fn cases_of_missing_suites(
    baseline: &EarlierResults,
    compared: &[&EarlierResult],
    shard: Option<Shard>,
    settings: &Settings,
) -> MissingCases {
    // The results of several agents, or of several runs in a folder, can belong to the same suite.
    let is_same_suite = |left: &EarlierResult, right: &EarlierResult| {
        left.tier == right.tier
            && same_name(&left.tool_name, &right.tool_name)
            && left.metadata.eval_file == right.metadata.eval_file
    };
    let mut missing = MissingCases::default();
    for result in &baseline.suites {
        if compared.iter().any(|other| is_same_suite(other, result)) {
            continue;
        }
        let current = current_ids(&result.metadata.eval_file, settings);
        let ids = result.cases.iter().map(|case| &case.id);
        let ids = ids.filter(|id| shard.is_none_or(|shard| shard.contains(id))).cloned();
        let is_removed = |id: &String| current.as_ref().is_some_and(|current| !current.contains(id));
        let (removed, not_run) = ids.partition(is_removed);
        missing.add(&MissingCases { not_run, removed });
    }
    missing
}

/// Returns the cases of a result that are not among the ids of its eval file.
pub(crate) fn removed_cases(result: &EarlierResult, ids: &BTreeSet<String>) -> BTreeSet<String> {
    result.cases.iter().map(|case| &case.id).filter(|id| !ids.contains(*id)).cloned().collect()
}
