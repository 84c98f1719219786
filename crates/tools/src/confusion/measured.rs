//! A confusion that was measured: from which answers, and what could not be counted.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::Confusion;

/// What stored results say of the choice of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasuredConfusion {
    pub confusion: Confusion,
    /// How many result files the answers are from.
    pub results: usize,
    pub run_ids: BTreeSet<String>,
    /// Who answered.
    pub agents: BTreeSet<String>,
    pub left_out: LeftOut,
}

/// What stored results hold that could not be counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// Results made with another version of their eval file, so that nobody knows what they were to do.
    pub changed_results: usize,
    /// Results that do not say which version of an eval file they were made with.
    pub unhashed_results: usize,
    /// Results of eval files that are not there or not looked at.
    pub other_results: usize,
    /// Files that are no results, or cannot be read.
    pub unreadable_results: usize,
    /// Answers that never came: the agent failed or took too long.
    pub without_answer: usize,
    /// Answers to cases that expect nothing of the tools.
    pub without_expectation: usize,
}

impl LeftOut {
    /// Tells whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
