//! Repeated trials of a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::assertion::Failure;
use crate::details::CaseDetails;
use crate::outcome::{Cause, Outcome};
use crate::statistics::{JudgedTrials, pass_at_k, pass_hat_k, rate, wilson};

/// All trials of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trials {
    /// Requested trials; fewer ran if the run was interrupted.
    pub planned: usize,
    pub passed: usize,
    pub failed: usize,
    /// Trials without a verdict; not counted in any rate.
    pub errored: usize,
    /// The share of judged trials that passed; null if none has a verdict.
    pub pass_rate: Option<f64>,
    /// Lower bound of the 95% Wilson interval of the pass rate.
    pub pass_rate_low: Option<f64>,
    pub pass_rate_high: Option<f64>,
    /// Whether some trials passed and some failed.
    pub flaky: bool,
    /// For k = 1, 2, 4, 8 … and the number of judged trials.
    pub pass_at: Vec<PassAt>,
    /// In the order in which they started.
    #[serde(rename = "tries")]
    pub attempts: Vec<Trial>,
}

/// Estimates for `k` trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PassAt {
    pub k: usize,
    /// Probability that at least one of `k` trials passes.
    pub pass_at_k: f64,
    /// Probability that all of `k` trials pass.
    pub pass_hat_k: f64,
}

/// One trial of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    pub outcome: Outcome,
    pub duration_ms: u64,
    pub assertions_run: usize,
    pub assertions_skipped: usize,
    pub vacuous: bool,
    /// Why the trial did not pass; not serialised.
    #[serde(skip)]
    pub cause: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub failures: Vec<Failure>,
    pub details: CaseDetails,
}

/// Trial counts by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialCounts {
    pub passed: usize,
    pub failed: usize,
    #[serde(default)]
    pub errored: usize,
}

impl TrialCounts {
    /// Counts a case that ran once.
    pub fn single(outcome: Outcome) -> Self {
        let mut counts = Self::default();
        counts.count(outcome);
        counts
    }

    pub fn total(self) -> usize {
        self.passed + self.failed + self.errored
    }

    /// Returns the trials that have a verdict.
    pub fn judged(self) -> JudgedTrials {
        JudgedTrials { passed: self.passed, failed: self.failed }
    }

    pub fn is_mixed(self) -> bool {
        self.passed > 0 && self.failed > 0
    }

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Errored => self.errored += 1,
        }
    }
}

/// Totals of the trials of several cases.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialSummary {
    /// Requested trials per case.
    pub per_case: usize,
    /// Finished trials.
    pub total: usize,
    pub passed: usize,
    pub failed: usize,
    /// Trials without a verdict; not counted in the rate.
    pub errored: usize,
    /// Trials of started cases that did not run because of an interruption or `--fail-fast`.
    pub not_run: usize,
    /// The share of judged trials that passed; null if none has a verdict.
    pub pass_rate: Option<f64>,
    /// Lower bound of the 95% Wilson interval of the pass rate.
    pub pass_rate_low: Option<f64>,
    pub pass_rate_high: Option<f64>,
    /// Cases with both passed and failed trials.
    pub flaky: usize,
}

impl TrialSummary {
    /// Sums the trials of several cases; `None` if no case has repeated trials.
    pub fn from_trials<'t>(trials: impl Iterator<Item = &'t Trials>) -> Option<Self> {
        let mut sum: Option<Self> = None;
        for trials in trials {
            let sum = sum.get_or_insert_default();
            sum.per_case = sum.per_case.max(trials.planned);
            sum.passed += trials.passed;
            sum.failed += trials.failed;
            sum.errored += trials.errored;
            sum.not_run += trials.planned.saturating_sub(trials.attempts.len());
            sum.flaky += usize::from(trials.flaky);
        }
        sum.map(Self::with_rates)
    }

    /// Adds the trials of other cases.
    pub fn add(&mut self, other: &Self) {
        let sum = Self {
            per_case: self.per_case.max(other.per_case),
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            errored: self.errored + other.errored,
            not_run: self.not_run + other.not_run,
            flaky: self.flaky + other.flaky,
            ..Self::default()
        };
        *self = sum.with_rates();
    }

    fn with_rates(self) -> Self {
        let judged = self.passed + self.failed;
        let interval = wilson(self.passed, judged);
        Self {
            total: judged + self.errored,
            pass_rate: rate(self.passed, judged),
            pass_rate_low: interval.map(|interval| interval.low),
            pass_rate_high: interval.map(|interval| interval.high),
            ..self
        }
    }
}

impl Trials {
    pub(crate) fn new(attempts: Vec<Trial>, planned: usize) -> Self {
        let mut counts = TrialCounts::default();
        for trial in &attempts {
            counts.count(trial.outcome);
        }
        let TrialCounts { passed, failed, errored } = counts;
        let judged = passed + failed;
        let interval = wilson(passed, judged);
        Self {
            planned,
            passed,
            failed,
            errored,
            pass_rate: rate(passed, judged),
            pass_rate_low: interval.map(|interval| interval.low),
            pass_rate_high: interval.map(|interval| interval.high),
            flaky: counts.is_mixed(),
            pass_at: pass_at(passed, judged),
            attempts,
        }
    }

    pub fn counts(&self) -> TrialCounts {
        TrialCounts { passed: self.passed, failed: self.failed, errored: self.errored }
    }
}

pub(crate) fn pass_at(passed: usize, judged: usize) -> Vec<PassAt> {
    let powers_of_two = std::iter::successors(Some(1_usize), |k| k.checked_mul(2)).take_while(|k| *k < judged);
    let estimates = powers_of_two.chain([judged]).filter_map(|k| {
        Some(PassAt { k, pass_at_k: pass_at_k(judged, passed, k)?, pass_hat_k: pass_hat_k(judged, passed, k)? })
    });
    estimates.collect()
}
