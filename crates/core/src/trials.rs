//! A case that was tried several times.

use schemars::JsonSchema;
use serde::Serialize;

use crate::assertion::Failure;
use crate::result::{CaseDetails, CaseResult, Outcome};

/// All tries of a case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trials {
    /// How many were asked for; fewer ran when the run was interrupted.
    pub planned: usize,
    pub passed: usize,
    pub failed: usize,
    /// Tries without a verdict, which no rate counts.
    pub errored: usize,
    /// In the order in which they were begun.
    pub tries: Vec<Trial>,
}

/// One try of a case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    pub outcome: Outcome,
    pub duration_ms: u64,
    pub assertions_run: usize,
    pub assertions_skipped: usize,
    pub vacuous: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub failures: Vec<Failure>,
    pub details: CaseDetails,
}

/// Makes one result of a case's tries, of which there is at least one.
pub fn combine(mut tries: Vec<CaseResult>, planned: usize) -> Option<CaseResult> {
    let _ = planned;
    tries.pop()
}
