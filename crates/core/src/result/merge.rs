//! Merges the results of the shards of a suite.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{ShardPart, SuiteResult, Summary, suite_warnings};

/// An error when merging results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    #[error("not the result of a shard")]
    NotAShard,
    #[error("duplicate shard {number}/{count}, in the runs {first} and {second}")]
    Duplicate { number: usize, count: usize, first: String, second: String },
    #[error("shard {} of {count} is missing", join_numbers(.numbers))]
    Missing { numbers: Vec<usize>, count: usize },
    #[error("shard {number}/{count} is incomplete: {not_run} of its cases did not run")]
    Incomplete { number: usize, count: usize, not_run: usize },
    #[error("the shards of the runs {first} and {second} differ in {difference}, so they are not parts of one run")]
    Different { difference: &'static str, first: String, second: String },
    #[error("no shard ran the case '{0}'")]
    MissingCase(String),
}

fn join_numbers(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// Merges all shards of a suite, in any order, into the result that a run without shards would have.
pub fn merge_shards(shards: Vec<SuiteResult>, run_id: &str) -> Result<SuiteResult, MergeError> {
    let mut by_number: BTreeMap<usize, (ShardPart, SuiteResult)> = BTreeMap::new();
    for mut result in shards {
        let part = result.shard.take().ok_or(MergeError::NotAShard)?;
        let ShardPart { number, count, .. } = part;
        if let Some((_, other)) = by_number.get(&number) {
            let (first, second) = (other.run_id.clone(), result.run_id);
            return Err(MergeError::Duplicate { number, count, first, second });
        }
        by_number.insert(number, (part, result));
    }
    let parts: Vec<(ShardPart, SuiteResult)> = by_number.into_values().collect();
    check_parts(&parts)?;
    let mut parts = parts.into_iter();
    let Some((shared, mut merged)) = parts.next() else { return Err(MergeError::NotAShard) };
    let (mut unused_stubs, mut selected) = (shared.unused_stubs, merged.cases.len());
    for (part, result) in parts {
        unused_stubs += part.unused_stubs;
        selected += result.cases.len();
        merged.cases.extend(result.cases);
        merged.skipped.extend(result.skipped);
        merged.regressions.extend(result.regressions);
        merged.new_passes.extend(result.new_passes);
        merged.still_failing.extend(result.still_failing);
        if let Some(missing) = result.baseline_missing {
            merged.baseline_missing.get_or_insert_default().add(&missing);
        }
        merged.timestamp = merged.timestamp.min(result.timestamp);
        merged.wall_clock_ms = merged.wall_clock_ms.max(result.wall_clock_ms);
    }
    let positions: HashMap<&str, usize> = shared.cases.iter().map(String::as_str).zip(0..).collect();
    let position = |id: &str| positions.get(id).copied();
    merged.cases.sort_by_key(|case| position(&case.id));
    merged.skipped.sort_by_key(|case| position(&case.id));
    merged.regressions.sort_by_key(|id| position(id));
    merged.new_passes.sort_by_key(|id| position(id));
    merged.still_failing.sort_by_key(|id| position(id));
    let ran = merged.cases.iter().map(|case| case.id.as_str());
    let present: HashSet<&str> = ran.chain(merged.skipped.iter().map(|case| case.id.as_str())).collect();
    if let Some(missing) = shared.cases.iter().find(|id| !present.contains(id.as_str())) {
        return Err(MergeError::MissingCase(missing.clone()));
    }
    run_id.clone_into(&mut merged.run_id);
    merged.summary = Summary::from_cases(&merged.cases, selected, merged.skipped.len());
    merged.warnings = suite_warnings(unused_stubs, &merged.cases);
    Ok(merged)
}

/// Checks that no shard is missing and that all belong to the same run.
fn check_parts(parts: &[(ShardPart, SuiteResult)]) -> Result<(), MergeError> {
    let Some((first_part, first)) = parts.first() else { return Err(MergeError::NotAShard) };
    for (part, result) in parts {
        let differences = [
            ("the number of shards", part.count != first_part.count),
            ("the selected cases", part.cases != first_part.cases),
            ("the selected suites", (part.suite, part.suites) != (first_part.suite, first_part.suites)),
            ("the agent", result.agent_endpoint != first.agent_endpoint),
            ("the eval file", result.metadata.eval_file_hash != first.metadata.eval_file_hash),
            ("the tool or the settings", (&result.tool_name, result.tier) != (&first.tool_name, first.tier)),
            ("the tool or the settings", result.metadata != first.metadata),
            ("the baseline", result.baseline_run_id != first.baseline_run_id),
        ];
        if let Some((difference, _)) = differences.into_iter().find(|(_, is_different)| *is_different) {
            let (first, second) = (first.run_id.clone(), result.run_id.clone());
            return Err(MergeError::Different { difference, first, second });
        }
        if result.summary.not_run > 0 {
            let (number, count, not_run) = (part.number, part.count, result.summary.not_run);
            return Err(MergeError::Incomplete { number, count, not_run });
        }
    }
    let count = first_part.count;
    let is_missing = |number: &usize| !parts.iter().any(|(part, _)| part.number == *number);
    let numbers: Vec<usize> = (1..=count).filter(is_missing).collect();
    if numbers.is_empty() { Ok(()) } else { Err(MergeError::Missing { numbers, count }) }
}
