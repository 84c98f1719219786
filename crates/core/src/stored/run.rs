//! Runs of eval files.

use jiff::Timestamp;

use crate::result::Outcome;

/// A run, as soon as it begins; its numbers are there when it has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    pub run_id: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// The agents, in the order in which they were named.
    pub agents: Vec<String>,
    pub suites: u64,
    pub cases: u64,
    pub passed: u64,
    /// Cases with a verdict, which did not pass.
    pub failed: u64,
    /// Cases without a verdict.
    pub errored: u64,
    pub interrupted: bool,
}

/// One try of one case in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCase {
    pub run_id: String,
    /// Which suite of the run it belongs to, from 1: one file may be asked of several agents.
    pub suite: u64,
    /// Which case of the file it is, from 1.
    pub place: u64,
    /// The eval file, as results name it.
    pub eval_file: String,
    pub tool_name: String,
    pub tier: String,
    pub agent: String,
    pub case_id: String,
    /// From 1.
    pub trial: u64,
    pub outcome: Outcome,
    pub error: Option<String>,
    pub duration_ms: u64,
    /// The trace of this try; none where the agent gave no answer.
    pub trace_id: Option<String>,
}
