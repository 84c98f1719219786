//! Result files of a run.

mod incomplete;
mod merge;
mod missing;
mod saved;
mod trials;
mod warnings;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::assertion::Failure;
use crate::security::{SecurityDetails, SecuritySummary};
use crate::simulated_user::SimulatedUserSummary;
use crate::trials::{TrialCounts, TrialSummary, Trials};
use karat_cases::Tier;

pub use self::incomplete::Incomplete;
pub use self::merge::{MergeError, merge_shards};
pub use self::missing::MissingCases;
pub use self::saved::{
    AssertionReport, RawCase, RunList, RunSummary, SavedCase, SavedResult, SavedRun, SavedSuite, SavedTrial,
};
pub use self::trials::combine;
pub use self::warnings::{suite_warnings, unused_stubs_warning};
pub use crate::details::CaseDetails;
pub use crate::judgement::EvalResult;
pub use crate::outcome::{Cause, Outcome, TrialVerdict};
pub use crate::turn_details::{TurnDetails, TurnOutcome};

/// The result of one eval file in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat EvalSuiteResult")]
pub struct SuiteResult {
    /// Shared by all files of one run.
    pub run_id: String,
    /// When the run started, ISO 8601.
    pub timestamp: String,
    pub tier: Tier,
    pub tool_name: String,
    /// The agent, with secrets redacted.
    pub agent_endpoint: String,
    pub metadata: ResultMetadata,
    pub staleness_warnings: Vec<String>,
    /// Whether the cases were written for another state of the tool.
    pub stale: bool,
    /// Other warnings about this run.
    pub warnings: Vec<String>,
    /// The number of suites of the run, each with a result file; present if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suites: Option<usize>,
    /// Present if this is the result of one shard of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardPart>,
    /// In file order.
    #[serde(deserialize_with = "read_cases")]
    pub cases: Vec<Arc<CaseResult>>,
    /// Selected cases that were not run because of their `skip`, in file order.
    #[serde(default)]
    pub skipped: Vec<SkippedCase>,
    /// Ids of selected cases without a result because of an interruption or `--fail-fast`, in file order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<String>,
    pub summary: Summary,
    /// From the start of the first case to the end of the last.
    pub wall_clock_ms: u64,
    pub baseline_run_id: Option<String>,
    /// Ids that passed in the baseline and fail now.
    pub regressions: Vec<String>,
    /// Ids that failed in the baseline and pass now.
    pub new_passes: Vec<String>,
    /// Ids that failed in the baseline and fail now, without regressions; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_failing: Vec<String>,
    /// Cases of the baseline without a result; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_missing: Option<MissingCases>,
}

/// A case that was not run because of its `skip`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkippedCase {
    pub id: String,
    pub description: String,
    /// The value of `skip`.
    pub reason: String,
}

/// The shard that a result belongs to, with the data to merge it with the other shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardPart {
    /// From 1.
    pub number: usize,
    /// Number of shards.
    pub count: usize,
    /// Position of the suite in the run, from 1.
    pub suite: usize,
    /// Number of suites in the run.
    pub suites: usize,
    /// The ids of all selected cases of the suite, in all shards, in file order.
    pub cases: Vec<String>,
    /// The line of each of these cases in the eval file.
    #[serde(default)]
    pub lines: Vec<usize>,
    /// Number of cases in this shard whose stubs are unused.
    pub unused_stubs: usize,
    /// Number of cases in this shard that pass less often than in the baseline, but with too few trials to be
    /// significant.
    pub inconclusive: usize,
    /// Number of cases in this shard with a verdict both in the baseline and now.
    pub compared: usize,
}

fn read_cases<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Arc<CaseResult>>, D::Error> {
    let mut cases = Vec::<CaseResult>::deserialize(deserializer)?;
    for case in &mut cases {
        case.cause = Cause::read(case.outcome, case.error.as_deref());
        for trial in case.trials.iter_mut().flat_map(|trials| &mut trials.attempts) {
            trial.cause = Cause::read(trial.outcome, trial.error.as_deref());
        }
    }
    Ok(cases.into_iter().map(Arc::new).collect())
}

/// The state of the tool and of the eval file at the time of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultMetadata {
    pub tool_version: Option<String>,
    pub description_hash: Option<String>,
    pub registry_size: Option<u64>,
    pub eval_file_hash: String,
    /// The eval file, relative to the project's folder; several files can have the same tool and tier.
    pub eval_file: String,
    /// The tokenizer that `maxTokens` uses.
    pub tokenizer: String,
    /// Parameters of the model, such as temperature and seed.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseResult {
    pub id: String,
    pub description: String,
    /// The single message to the agent; those of a conversation are in its turns.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub passed: bool,
    pub outcome: Outcome,
    pub duration_ms: u64,
    pub assertions_run: usize,
    pub assertions_skipped: usize,
    /// Whether no assertion ran, or an injection never reached the agent.
    pub vacuous: bool,
    /// Why the case did not pass; not serialised.
    #[serde(skip)]
    pub cause: Option<Cause>,
    /// The first failure, or why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// All failures, or only the first, depending on the settings.
    pub failures: Vec<Failure>,
    /// Strings to highlight in the response; not serialised.
    #[serde(skip)]
    pub marks: Vec<String>,
    pub details: CaseDetails,
    /// All trials, if there are several; the other members then describe the first trial with the worst outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<Box<Trials>>,
}

impl CaseResult {
    /// Returns the details of every trial.
    pub fn all_details(&self) -> impl Iterator<Item = &CaseDetails> + Clone {
        let trials = self.trials.iter().flat_map(|trials| &trials.attempts).map(|trial| &trial.details);
        self.trials.is_none().then_some(&self.details).into_iter().chain(trials)
    }

    /// Whether the case passed although no assertion ran.
    pub fn is_vacuous_pass(&self) -> bool {
        self.vacuous && self.outcome == Outcome::Passed
    }

    /// Returns why the pass proves nothing, if it is vacuous.
    pub fn vacuous_reason(&self) -> &'static str {
        let mut security = self.all_details().filter_map(|details| details.security.as_deref());
        if security.any(SecurityDetails::is_vacuous) {
            "an injection never reached the agent"
        } else {
            "no assertion ran"
        }
    }

    /// Whether the case passed and an assertion ran.
    pub fn is_plain_pass(&self) -> bool {
        self.outcome == Outcome::Passed && !self.vacuous
    }

    /// Whether the agent answered at least one message. A result that was read from a file has no cause of an error.
    pub fn has_answer(&self) -> bool {
        match self.cause {
            Some(Cause::Assertion | Cause::Check | Cause::UnreportedCalls) => true,
            Some(Cause::Timeout | Cause::Agent | Cause::NotRun | Cause::SimulatedUser | Cause::Internal) => {
                self.details.turns.iter().any(|turn| turn.response.is_some())
            }
            Some(Cause::Hook) | None => self.outcome == Outcome::Passed || !self.details.response.is_empty(),
        }
    }

    /// Whether a response has a near miss of an expected or forbidden string.
    pub fn has_near_miss(&self) -> bool {
        self.all_details().any(|details| !details.near_misses.is_empty())
    }

    /// Returns the verdict and duration of every trial.
    pub fn all_outcomes(&self) -> impl Iterator<Item = (TrialVerdict, u64)> {
        let trials = self.trials.iter().flat_map(|trials| &trials.attempts);
        let trials = trials.map(|trial| (TrialVerdict::new(trial.outcome, trial.vacuous), trial.duration_ms));
        let single = (TrialVerdict::new(self.outcome, self.vacuous), self.duration_ms);
        self.trials.is_none().then_some(single).into_iter().chain(trials)
    }

    /// Returns why the case did not pass, each reason with its pointer into the case if it has one. With several
    /// trials, the first reason starts with how many failed.
    pub fn reasons(&self) -> Vec<(&str, Option<&str>)> {
        let mut failures =
            self.failures.iter().map(|failure| (failure.message.as_str(), Some(failure.pointer.as_str()))).peekable();
        let error = self.error.as_deref();
        let first = match (error, failures.peek().copied()) {
            (None, _) => None,
            (Some(error), Some((_, pointer))) if self.trials.is_some() => {
                // The error includes the first failure.
                failures.next();
                Some((error, pointer))
            }
            // The error repeats the first failure.
            (Some(_), _) if self.cause == Some(Cause::Assertion) => None,
            (Some(error), _) => Some((error, None)),
        };
        first.into_iter().chain(failures).collect()
    }
}

/// Totals of a suite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub total_cases: usize,
    pub passed: usize,
    /// Cases that did not pass, including errored ones.
    pub failed: usize,
    pub errored: usize,
    pub vacuous: usize,
    /// Selected cases without a result because of an interruption or `--fail-fast`.
    pub not_run: usize,
    /// Selected cases that were not run because of their `skip`; not part of `totalCases`.
    #[serde(default)]
    pub skipped: usize,
    pub skipped_assertions: usize,
    /// The sum over the cases.
    pub total_duration_ms: u64,
    /// Present only if the cost of every answer is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost_usd: Option<f64>,
    /// Totals over all trials, if cases have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<TrialSummary>,
    /// Utility and safety over all trials of cases with injections or `safety`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<SecuritySummary>,
    /// The faults and the cost of simulated users, which `estimatedCostUsd` does not include.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_user: Option<SimulatedUserSummary>,
}

impl Summary {
    /// Summarises the cases that ran, of `selected` cases, and adds the number of skipped ones.
    pub fn from_cases(cases: &[Arc<CaseResult>], selected: usize, skipped: usize) -> Self {
        let not_run = selected.saturating_sub(cases.len());
        let mut summary = Summary { total_cases: cases.len(), not_run, skipped, ..Summary::default() };
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
                let trial_cost = details.usage.as_ref().and_then(|usage| usage.cost_usd);
                cost = cost.zip(trial_cost).map(|(sum, cost)| sum + cost);
            }
        }
        summary.estimated_cost_usd = cost.filter(|_| !cases.is_empty());
        let details = cases.iter().flat_map(|case| case.all_details());
        let simulated = details.clone().filter_map(|details| details.simulated_user.as_deref());
        summary.simulated_user = SimulatedUserSummary::from_details(simulated);
        summary.security = SecuritySummary::from_details(details.filter_map(|details| details.security.as_deref()));
        summary.trials = TrialSummary::from_trials(cases.iter().filter_map(|case| case.trials.as_deref()));
        summary
    }
}

/// The part of an existing result file that karat reads; results of other runners may lack the optional parts, or use
/// them for something else.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", bound = "C: Deserialize<'de>")]
pub struct EarlierResult<C = EarlierCase> {
    pub run_id: String,
    #[serde(default)]
    pub timestamp: String,
    pub tier: Tier,
    pub tool_name: String,
    /// The agent, if given.
    #[serde(default)]
    pub agent_endpoint: Option<String>,
    #[serde(default)]
    pub metadata: EarlierMetadata,
    #[serde(default, deserialize_with = "deserialize_or_default")]
    pub baseline_run_id: Option<String>,
    #[serde(default, deserialize_with = "deserialize_or_default")]
    pub regressions: Vec<String>,
    pub cases: Vec<C>,
    #[serde(default, deserialize_with = "deserialize_or_default")]
    pub skipped: Vec<SkippedCase>,
    /// Ids of selected cases without a result; earlier builds have only their number, in the summary.
    #[serde(default, deserialize_with = "deserialize_or_default")]
    pub not_run: Vec<String>,
    /// The number of suites of the run, if there are several.
    #[serde(default, deserialize_with = "deserialize_or_default")]
    pub suites: Option<usize>,
    #[serde(default, deserialize_with = "deserialize_or_default")]
    pub summary: EarlierSummary,
}

/// The part of an earlier result's summary that karat reads.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EarlierSummary {
    /// Selected cases without a result.
    pub not_run: usize,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub security: Option<SecuritySummary>,
}

/// Deserialises a value, or returns the default: other runners may use the key for something else.
fn deserialize_or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// The eval file of an earlier result, if given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EarlierMetadata {
    pub eval_file: String,
    pub eval_file_hash: String,
}

/// The outcome of a case in an earlier result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierCase {
    pub id: String,
    pub description: String,
    pub outcome: Outcome,
    pub error: Option<String>,
    /// Present if there are several trials.
    pub trials: Option<TrialCounts>,
}

impl<'de> Deserialize<'de> for EarlierCase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct RawCase {
            id: String,
            #[serde(default)]
            description: String,
            passed: bool,
            /// Only karat distinguishes errors from failures.
            #[serde(default)]
            outcome: Option<Outcome>,
            #[serde(default)]
            error: Option<String>,
            #[serde(default)]
            trials: RawTrials,
        }

        /// Other runners may use `trials` for something else.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum RawTrials {
            Counts(TrialCounts),
            Other(IgnoredAny),
        }

        impl Default for RawTrials {
            fn default() -> Self {
                Self::Other(IgnoredAny)
            }
        }

        let RawCase { id, description, passed, outcome, error, trials } = RawCase::deserialize(deserializer)?;
        let outcome = outcome.unwrap_or(if passed { Outcome::Passed } else { Outcome::Failed });
        let trials = match trials {
            RawTrials::Counts(counts) => Some(counts),
            RawTrials::Other(IgnoredAny) => None,
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
