//! What a run leaves behind: the contract's `EvalSuiteResult` with karat's additions.

mod trials;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::assertion::Failure;
use crate::case::Tier;
use crate::trials::{TrialCounts, TrialSummary, Trials};

pub use self::trials::combine;
pub use crate::details::CaseDetails;
pub use crate::judgement::EvalResult;
pub use crate::outcome::{Cause, Outcome};

/// The result of one eval file in one run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    pub agent_endpoint: String,
    pub metadata: ResultMetadata,
    pub staleness_warnings: Vec<String>,
    /// The cases were written for another state of the tool.
    pub stale: bool,
    /// What else a person should know of this run.
    pub warnings: Vec<String>,
    /// In the file's order.
    pub cases: Vec<Arc<CaseResult>>,
    pub summary: Summary,
    /// From the first case's start to the last one's end.
    pub wall_clock_ms: u64,
    pub baseline_run_id: Option<String>,
    /// Ids that passed in the baseline and fail now.
    pub regressions: Vec<String>,
    /// Ids that failed in the baseline and pass now.
    pub new_passes: Vec<String>,
}

/// The state of the tool and of the file when the run was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultMetadata {
    pub tool_version: Option<String>,
    pub description_hash: Option<String>,
    pub registry_size: Option<u64>,
    pub eval_file_hash: String,
    /// The eval file, relative to the project's folder: two can be about one tool and tier.
    pub eval_file: String,
    /// The vocabulary that `maxTokens` counts with.
    pub tokenizer: String,
    /// How the model was asked: temperature, seed and the like.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseResult {
    pub id: String,
    pub description: String,
    pub passed: bool,
    pub outcome: Outcome,
    pub duration_ms: u64,
    pub assertions_run: usize,
    pub assertions_skipped: usize,
    /// No assertion ran, so the case shows nothing.
    pub vacuous: bool,
    /// Why the case did not pass; in memory only.
    #[serde(skip)]
    pub cause: Option<Cause>,
    /// The first failure, or why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// All failures that were looked for.
    pub failures: Vec<Failure>,
    pub details: CaseDetails,
    /// Every try, where the case was tried several times; the rest then tells of the first with the worst outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<Box<Trials>>,
}

impl CaseResult {
    /// Returns what the agent did in every try.
    pub fn all_details(&self) -> impl Iterator<Item = &CaseDetails> {
        let tries = self.trials.iter().flat_map(|trials| &trials.tries).map(|one| &one.details);
        self.trials.is_none().then_some(&self.details).into_iter().chain(tries)
    }

    /// Returns the outcome of every try, and how long it took.
    pub fn all_outcomes(&self) -> impl Iterator<Item = (Outcome, u64)> {
        let tries = self.trials.iter().flat_map(|trials| &trials.tries).map(|one| (one.outcome, one.duration_ms));
        self.trials.is_none().then_some((self.outcome, self.duration_ms)).into_iter().chain(tries)
    }

    /// Returns the reasons for which the case did not pass, each with its place in the case where it has one; where
    /// the case was tried several times, the first says how often.
    pub fn reasons(&self) -> Vec<(&str, Option<&str>)> {
        let mut failures =
            self.failures.iter().map(|one| (one.message.as_str(), Some(one.pointer.as_str()))).peekable();
        let error = self.error.as_deref();
        let told = match (error, failures.peek().copied()) {
            (None, _) => None,
            (Some(error), Some((_, place))) if self.trials.is_some() => {
                // It ends with the first failure.
                failures.next();
                Some((error, place))
            }
            // It repeats the first failure.
            (Some(_), _) if self.cause == Some(Cause::Assertion) => None,
            (Some(error), _) => Some((error, None)),
        };
        told.into_iter().chain(failures).collect()
    }
}

/// The numbers of a suite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub total_cases: usize,
    pub passed: usize,
    /// Cases that did not pass, errored ones too.
    pub failed: usize,
    pub errored: usize,
    pub vacuous: usize,
    /// Selected cases that an interruption or `--fail-fast` kept from running.
    pub not_run: usize,
    pub skipped_assertions: usize,
    /// The sum over the cases.
    pub total_duration_ms: u64,
    /// Only when the cost of every answer is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost_usd: Option<f64>,
    /// Where the cases were tried several times: every try counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<TrialSummary>,
}

impl Summary {
    /// Counts the cases that ran; `selected` is how many should have.
    pub fn of(cases: &[Arc<CaseResult>], selected: usize) -> Self {
        let mut summary =
            Summary { total_cases: cases.len(), not_run: selected.saturating_sub(cases.len()), ..Summary::default() };
        let mut cost = Some(0.0);
        for case in cases {
            match case.outcome {
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
            for details in case.all_details() {
                let one = details.usage.as_ref().and_then(|usage| usage.cost_usd);
                cost = cost.zip(one).map(|(sum, one)| sum + one);
            }
        }
        summary.estimated_cost_usd = cost.filter(|_| !cases.is_empty());
        summary.trials = TrialSummary::of(cases.iter().filter_map(|case| case.trials.as_deref()));
        summary
    }
}

/// What is asked of a result that is already there; other runners' results say this much too.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierResult {
    pub run_id: String,
    #[serde(default)]
    pub timestamp: String,
    pub tier: Tier,
    pub tool_name: String,
    /// Who answered, where it is said.
    #[serde(default)]
    pub agent_endpoint: Option<String>,
    #[serde(default)]
    pub metadata: EarlierMetadata,
    pub cases: Vec<EarlierCase>,
}

/// Which eval file an earlier result is of, where it says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EarlierMetadata {
    pub eval_file: String,
    pub eval_file_hash: String,
}

/// How a case stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierCase {
    pub id: String,
    pub description: String,
    pub outcome: Outcome,
    pub error: Option<String>,
    /// Where it was tried several times.
    pub trials: Option<TrialCounts>,
}

impl<'de> Deserialize<'de> for EarlierCase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            id: String,
            #[serde(default)]
            description: String,
            passed: bool,
            /// Only karat tells errors from failures.
            #[serde(default)]
            outcome: Option<Outcome>,
            #[serde(default)]
            error: Option<String>,
            #[serde(default)]
            trials: WrittenTrials,
        }

        /// Another runner may mean something else by the word.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum WrittenTrials {
            Counts(TrialCounts),
            Other(IgnoredAny),
        }

        impl Default for WrittenTrials {
            fn default() -> Self {
                Self::Other(IgnoredAny)
            }
        }

        let Written { id, description, passed, outcome, error, trials } = Written::deserialize(deserializer)?;
        let outcome = outcome.unwrap_or(if passed { Outcome::Passed } else { Outcome::Failed });
        let trials = match trials {
            WrittenTrials::Counts(counts) => Some(counts),
            WrittenTrials::Other(IgnoredAny) => None,
        };
        Ok(Self { id, description, outcome, error, trials })
    }
}

impl From<&CaseResult> for EarlierCase {
    fn from(case: &CaseResult) -> Self {
        Self {
            id: case.id.clone(),
            description: case.description.clone(),
            outcome: case.outcome,
            error: case.error.clone(),
            trials: case.trials.as_ref().map(|trials| trials.counts()),
        }
    }
}
