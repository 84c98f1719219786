//! Runs of eval files.

use std::sync::Arc;

use jiff::Timestamp;

use crate::result::Outcome;

/// A run; stored when it starts, with totals once it has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    pub run_id: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// The agents, in the order in which they were given.
    pub agents: Vec<String>,
    pub suites: u64,
    pub cases: u64,
    pub passed: u64,
    /// Cases with a failed verdict.
    pub failed: u64,
    /// Cases without a verdict.
    pub errored: u64,
    pub interrupted: bool,
}

/// One trial of a case in a run. Cases of a suite share their strings.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCase {
    pub run_id: Arc<str>,
    /// The suite in the run, from 1; one file may run against several agents.
    pub suite: u64,
    /// The position of the case in the file, from 1.
    pub position: u64,
    /// The eval file, as in result files.
    pub eval_file: Arc<str>,
    pub tool_name: Arc<str>,
    pub tier: Arc<str>,
    pub agent: Arc<str>,
    pub case_id: String,
    /// From 1.
    pub trial: u64,
    pub outcome: Outcome,
    pub error: Option<String>,
    pub duration_ms: u64,
    /// The trace of this trial; `None` if the agent did not answer.
    pub trace_id: Option<String>,
}
