//! Confusion measured from stored results.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::Confusion;

/// Tool confusion in stored results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasuredConfusion {
    pub confusion: Confusion,
    /// Number of result files counted.
    pub results: usize,
    pub run_ids: BTreeSet<String>,
    /// Agents that answered.
    pub agents: BTreeSet<String>,
    pub left_out: ExcludedCounts,
}

/// Results and answers that could not be counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedCounts {
    /// Results of another version of their eval file, whose expectations are unknown.
    pub changed_results: usize,
    /// Results that do not record the version of their eval file.
    pub unhashed_results: usize,
    /// Results of eval files that do not exist or are not selected.
    pub other_results: usize,
    /// Files that are not results, or cannot be read.
    pub unreadable_results: usize,
    /// Missing answers: the agent failed or timed out.
    pub without_answer: usize,
    /// Answers to cases that expect nothing of the tools.
    pub without_expectation: usize,
}

impl ExcludedCounts {
    /// Whether nothing was excluded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
