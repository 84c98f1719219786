//! A case that was tried several times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::assertion::Failure;
use crate::details::CaseDetails;
use crate::outcome::{Cause, Outcome};
use crate::statistics::{Tries, pass_at_k, pass_hat_k, rate, wilson};

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
    /// The share of tries with a verdict that passed; null if none has one.
    pub pass_rate: Option<f64>,
    /// The pass rate's 95 % interval, by Wilson's formula.
    pub pass_rate_low: Option<f64>,
    pub pass_rate_high: Option<f64>,
    /// Some tries passed and some failed.
    pub flaky: bool,
    /// For 1, 2, 4, 8 and so on, and all tries with a verdict.
    pub pass_at: Vec<PassAt>,
    /// In the order in which they were begun.
    pub tries: Vec<Trial>,
}

/// What to expect of several tries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PassAt {
    pub k: usize,
    /// How likely at least one of `k` tries passes.
    pub pass_at_k: f64,
    /// How likely all of `k` tries pass.
    pub pass_hat_k: f64,
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
    /// Why the try did not pass; in memory only.
    #[serde(skip)]
    pub cause: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub failures: Vec<Failure>,
    pub details: CaseDetails,
}

/// How many tries ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialCounts {
    pub passed: usize,
    pub failed: usize,
    #[serde(default)]
    pub errored: usize,
}

impl TrialCounts {
    /// Counts a case that was tried once.
    pub fn single(outcome: Outcome) -> Self {
        let mut counts = Self::default();
        counts.count(outcome);
        counts
    }

    pub fn total(self) -> usize {
        self.passed + self.failed + self.errored
    }

    /// Returns the tries that have a verdict.
    pub fn judged(self) -> Tries {
        Tries { passed: self.passed, failed: self.failed }
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

/// The tries of many cases in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialSummary {
    /// How many tries each case was to have.
    pub per_case: usize,
    /// Tries that ended.
    pub total: usize,
    pub passed: usize,
    pub failed: usize,
    /// Tries without a verdict, which the rate does not count.
    pub errored: usize,
    /// Tries of cases that ran, which an interruption or `--fail-fast` kept from running.
    pub not_run: usize,
    /// The share of tries with a verdict that passed; null if none has one.
    pub pass_rate: Option<f64>,
    /// The pass rate's 95 % interval, by Wilson's formula.
    pub pass_rate_low: Option<f64>,
    pub pass_rate_high: Option<f64>,
    /// Cases of which some tries passed and some failed.
    pub flaky: usize,
}

impl TrialSummary {
    /// Sums up the tries of cases; none where each was tried once.
    pub fn of<'t>(trials: impl Iterator<Item = &'t Trials>) -> Option<Self> {
        let mut sum: Option<Self> = None;
        for trials in trials {
            let sum = sum.get_or_insert_default();
            sum.per_case = sum.per_case.max(trials.planned);
            sum.passed += trials.passed;
            sum.failed += trials.failed;
            sum.errored += trials.errored;
            sum.not_run += trials.planned.saturating_sub(trials.tries.len());
            sum.flaky += usize::from(trials.flaky);
        }
        sum.map(Self::rated)
    }

    /// Adds the tries of other cases.
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
        *self = sum.rated();
    }

    fn rated(self) -> Self {
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
    pub(crate) fn of(tries: Vec<Trial>, planned: usize) -> Self {
        let mut counts = TrialCounts::default();
        for one in &tries {
            counts.count(one.outcome);
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
            tries,
        }
    }

    pub fn counts(&self) -> TrialCounts {
        TrialCounts { passed: self.passed, failed: self.failed, errored: self.errored }
    }
}

pub(crate) fn pass_at(passed: usize, judged: usize) -> Vec<PassAt> {
    let doubling = std::iter::successors(Some(1_usize), |k| k.checked_mul(2)).take_while(|k| *k < judged);
    let figures = doubling.chain([judged]).filter_map(|k| {
        Some(PassAt { k, pass_at_k: pass_at_k(judged, passed, k)?, pass_hat_k: pass_hat_k(judged, passed, k)? })
    });
    figures.collect()
}
