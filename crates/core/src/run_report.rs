//! The JSON document of a run.

use std::sync::Arc;

use karat_cases::Tier;
use schemars::JsonSchema;
use serde::Serialize;

use crate::event::RunTotals;
use crate::result::{Outcome, SuiteResult};
use crate::rubric::RubricSuite;
use crate::trials::TrialCounts;

/// The output of `karat run --format json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat run report")]
pub struct RunReport {
    pub run_id: String,
    pub totals: RunTotals,
    /// The results of the eval files, as in result files.
    pub suites: Vec<Arc<SuiteResult>>,
    pub rubrics: Vec<Arc<RubricSuite>>,
    /// Present if the run has several agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<Matrix>,
}

/// The comparison of the agents of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Matrix {
    /// In the order in which they were specified.
    pub agents: Vec<AgentFigures>,
    /// The agent with the lowest cost per passed case, of those that do not pass clearly less often than another.
    pub best_value: Option<String>,
    /// By file, in file order.
    pub rows: Vec<MatrixRow>,
}

/// The figures of an agent. Every trial counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentFigures {
    pub agent: String,
    pub passed: usize,
    pub failed: usize,
    /// Without a verdict, so not in the pass rate.
    pub errored: usize,
    /// Passed without any assertion, so not in the pass rate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub vacuous: usize,
    pub not_run: usize,
    /// The share of verdicts that are passes.
    pub pass_rate: Option<f64>,
    /// Null unless the cost of every answer is known.
    pub cost_usd: Option<f64>,
    /// The cost of all answers, divided by the number of passes.
    pub cost_per_pass_usd: Option<f64>,
    /// Of answers with a verdict.
    pub latency_p50_ms: Option<u64>,
    pub latency_p95_ms: Option<u64>,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatrixRow {
    /// The eval file, as specified by the user.
    pub path: String,
    pub tool_name: String,
    pub tier: Tier,
    pub id: String,
    pub description: String,
    /// One cell per agent; null if the case did not run.
    pub cells: Vec<Option<MatrixCell>>,
}

/// The outcome of one case for one agent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatrixCell {
    pub outcome: Outcome,
    pub vacuous: bool,
    pub regression: bool,
    pub duration_ms: u64,
    /// Present if there are several trials.
    #[serde(rename = "tries", skip_serializing_if = "Option::is_none")]
    pub trials: Option<TrialCounts>,
    /// Why the case did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl MatrixRow {
    /// Whether every agent passed the case, not vacuously.
    pub fn passed_everywhere(&self) -> bool {
        self.cells.iter().all(|cell| cell.as_ref().is_some_and(MatrixCell::is_plain_pass))
    }
}

impl MatrixCell {
    pub fn is_plain_pass(&self) -> bool {
        self.outcome == Outcome::Passed && !self.vacuous
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
