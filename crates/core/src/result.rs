//! What a run leaves behind: the contract's `EvalSuiteResult` with karat's additions.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::assertion::Failure;
use crate::case::Tier;
use crate::trace::{ToolCall, Usage};

/// The result of one eval file in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat EvalSuiteResult")]
pub struct SuiteResult {
    /// Shared by all files of one run.
    pub run_id: String,
    /// When the run began, ISO 8601.
    pub timestamp: String,
    pub tier: Tier,
    pub tool_name: String,
    /// Who answered, without secrets.
    #[serde(default)]
    pub agent_endpoint: String,
    pub metadata: ResultMetadata,
    #[serde(default)]
    pub staleness_warnings: Vec<String>,
    /// The cases were written for another state of the tool.
    #[serde(default)]
    pub stale: bool,
    /// What else a person should know of this run.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// In the file's order.
    pub cases: Vec<Arc<CaseResult>>,
    pub summary: Summary,
    /// From the first case's start to the last one's end.
    #[serde(default)]
    pub wall_clock_ms: u64,
    #[serde(default)]
    pub baseline_run_id: Option<String>,
    /// Ids that passed in the baseline and fail now.
    #[serde(default)]
    pub regressions: Vec<String>,
    /// Ids that failed in the baseline and pass now.
    #[serde(default)]
    pub new_passes: Vec<String>,
}

/// The state of the tool and of the file when the run was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultMetadata {
    #[serde(default)]
    pub tool_version: Option<String>,
    #[serde(default)]
    pub description_hash: Option<String>,
    #[serde(default)]
    pub registry_size: Option<u64>,
    #[serde(default)]
    pub eval_file_hash: String,
    /// The eval file, relative to the project's folder: two can be about one tool and tier.
    #[serde(default)]
    pub eval_file: String,
    /// The vocabulary that `maxTokens` counts with.
    #[serde(default)]
    pub tokenizer: String,
}

/// What came of a case: a verdict, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Passed,
    /// An assertion did not hold, or the agent took too long.
    Failed,
    /// No verdict could be reached.
    Errored,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseResult {
    pub id: String,
    #[serde(default)]
    pub description: String,
    pub passed: bool,
    /// Absent in results of other runners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    pub duration_ms: u64,
    #[serde(default)]
    pub assertions_run: usize,
    #[serde(default)]
    pub assertions_skipped: usize,
    /// No assertion ran, so the case shows nothing.
    #[serde(default)]
    pub vacuous: bool,
    /// The first failure, or why there is no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// All failures that were looked for.
    #[serde(default)]
    pub failures: Vec<Failure>,
    #[serde(default)]
    pub details: CaseDetails,
}

impl CaseResult {
    pub fn outcome(&self) -> Outcome {
        self.outcome.unwrap_or(if self.passed { Outcome::Passed } else { Outcome::Failed })
    }
}

/// What the agent did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseDetails {
    #[serde(default)]
    pub tools_called: Vec<String>,
    /// In characters.
    #[serde(default)]
    pub response_length: usize,
    /// Tokens that had no value, each once.
    #[serde(default)]
    pub skipped_tokens: Vec<String>,
    #[serde(default)]
    pub response: String,
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Why checks were skipped, where it is not for a token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The numbers of a suite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub total_cases: usize,
    pub passed: usize,
    /// Cases that did not pass, errored ones too.
    pub failed: usize,
    #[serde(default)]
    pub errored: usize,
    #[serde(default)]
    pub vacuous: usize,
    /// Selected cases that an interruption or `--fail-fast` kept from running.
    #[serde(default)]
    pub not_run: usize,
    #[serde(default)]
    pub skipped_assertions: usize,
    /// The sum over the cases.
    #[serde(default)]
    pub total_duration_ms: u64,
    /// Only when the cost of every answer is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_cost_usd: Option<f64>,
}

impl Summary {
    /// Counts the cases that ran; `selected` is how many should have.
    pub fn of(cases: &[Arc<CaseResult>], selected: usize) -> Self {
        let mut summary =
            Summary { total_cases: cases.len(), not_run: selected.saturating_sub(cases.len()), ..Summary::default() };
        let mut cost = Some(0.0);
        for case in cases {
            match case.outcome() {
                Outcome::Passed => summary.passed += 1,
                Outcome::Failed => summary.failed += 1,
                Outcome::Errored => {
                    summary.failed += 1;
                    summary.errored += 1;
                }
            }
            summary.vacuous += usize::from(case.vacuous);
            summary.skipped_assertions += case.assertions_skipped;
            summary.total_duration_ms += case.duration_ms;
            let case_cost = case.details.usage.as_ref().and_then(|usage| usage.cost_usd);
            cost = cost.zip(case_cost).map(|(sum, one)| sum + one);
        }
        summary.estimated_cost_usd = cost.filter(|_| !cases.is_empty());
        summary
    }
}
