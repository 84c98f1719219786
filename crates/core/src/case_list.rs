//! The list of cases that a run would run.

use schemars::JsonSchema;
use serde::Serialize;

use crate::result::SkippedCase;
use karat_cases::Tier;

/// The output of `karat run --list --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat case list")]
pub struct CaseList {
    /// Number of cases to run, without skipped ones.
    pub cases: usize,
    pub skipped: usize,
    pub suites: Vec<SuiteCases>,
}

/// The selected cases of an eval file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuiteCases {
    /// The eval file, relative to the project's folder.
    pub eval_file: String,
    pub tool_name: String,
    pub tier: Tier,
    /// In file order.
    pub cases: Vec<CaseEntry>,
    /// Cases that are not run because of their `skip`.
    pub skipped: Vec<SkippedCase>,
}

/// A case that would run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseEntry {
    pub id: String,
    pub description: String,
    pub tags: Vec<String>,
    /// The line in the eval file.
    pub line: usize,
}
