//! The events of a run: the only input of reporters.

mod reporter;

pub use self::reporter::{ReportError, Reporter};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::gate::GateResult;
use crate::result::{CaseDetails, CaseResult, MissingCases, SuiteResult};
use crate::rubric::{RubricSuite, RubricTotals};
use crate::security::SecuritySummary;
use crate::simulated_user::SimulatedUserSummary;
use crate::staleness::Staleness;
use crate::trials::TrialSummary;
use karat_cases::Tier;

/// An event of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[expect(clippy::large_enum_variant, reason = "the large variant occurs once per run and is passed by reference")]
pub enum RunEvent {
    RunStarted {
        run_id: String,
        /// In the order in which they are reported.
        suites: Vec<Arc<SuiteHeader>>,
        total_cases: usize,
    },
    /// In order of completion; `index` is the position of the case among the suite's selected cases.
    CaseFinished {
        suite: usize,
        index: usize,
        result: Arc<CaseResult>,
    },
    /// In suite order, after all cases of the suite that ran.
    SuiteFinished {
        suite: usize,
        result: Arc<SuiteResult>,
    },
    /// After all suites, since only tools whose suites passed are scored; in the order of the rubric files.
    RubricFinished {
        suite: Arc<RubricSuite>,
    },
    RunFinished {
        run_id: String,
        totals: RunTotals,
    },
}

/// Properties of a suite before it runs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuiteHeader {
    /// As the user wrote it.
    pub path: String,
    pub tool_name: String,
    pub tier: Tier,
    /// The agent, if the run has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Number of cases to run, without skipped ones.
    pub selected: usize,
    /// Number of trials per case.
    #[serde(skip)]
    pub trials: usize,
    /// Maximum time of a case, in milliseconds, if known.
    #[serde(skip)]
    pub timeout_ms: Option<u64>,
    /// The line of each selected case, in order.
    #[serde(skip)]
    pub lines: Vec<usize>,
    #[serde(skip)]
    pub staleness: Vec<Staleness>,
    /// Whether there is an earlier result to compare with.
    #[serde(skip)]
    pub has_baseline: bool,
    /// Widths of the ids and descriptions, so that columns are aligned before the first case ends.
    #[serde(skip)]
    pub id_columns: usize,
    #[serde(skip)]
    pub description_columns: usize,
}

/// Totals of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunTotals {
    pub suites: usize,
    pub cases: usize,
    pub passed: usize,
    /// Cases that did not pass, including errored ones.
    pub failed: usize,
    pub errored: usize,
    pub vacuous: usize,
    pub not_run: usize,
    /// Cases that were not run because of their `skip`; not part of `cases`.
    pub skipped: usize,
    pub skipped_assertions: usize,
    /// Cases with assertions about tool calls that were not judged because the agent does not report its calls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls_unreported: usize,
    pub regressions: usize,
    pub new_passes: usize,
    /// Cases of the baseline without a result; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_missing: Option<MissingCases>,
    pub wall_clock_ms: u64,
    pub interrupted: bool,
    /// Agents that could not be reached, so that their remaining cases were not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreachable: Vec<UnreachableAgent>,
    /// Whether the run is one shard of a larger run.
    #[serde(skip)]
    pub is_shard: bool,
    /// Present if cases had several trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<TrialSummary>,
    /// Utility and safety, if cases have injections or `safety`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<SecuritySummary>,
    /// The faults and the cost of simulated users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated_user: Option<SimulatedUserSummary>,
    /// The gates that were set; if any, they decide the exit code.
    pub gates: Vec<GateResult>,
    /// Present if the run has rubric suites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rubric: Option<RubricTotals>,
}

/// An agent that never replied and had several consecutive connection failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnreachableAgent {
    pub agent: String,
    /// The last connection failure.
    pub error: String,
    /// Trials that were not run, and are reported as errored.
    pub not_run: usize,
}

impl RunTotals {
    /// Whether selected cases, or some of their trials, did not run.
    pub fn is_incomplete(&self) -> bool {
        self.not_run > 0 || self.trials.as_ref().is_some_and(|trials| trials.not_run > 0)
    }

    /// Adds cases of the baseline without a result.
    pub fn add_missing(&mut self, missing: &MissingCases) {
        if !missing.is_empty() {
            self.baseline_missing.get_or_insert_default().add(missing);
        }
    }

    pub fn add(&mut self, result: &SuiteResult) {
        let summary = &result.summary;
        self.suites += 1;
        self.cases += summary.total_cases;
        self.passed += summary.passed;
        self.failed += summary.failed;
        self.errored += summary.errored;
        self.vacuous += summary.vacuous;
        self.not_run += summary.not_run;
        self.skipped += summary.skipped;
        self.skipped_assertions += summary.skipped_assertions;
        let has_unjudged_calls = |case: &&Arc<CaseResult>| case.all_details().any(CaseDetails::has_unjudged_calls);
        self.calls_unreported += result.cases.iter().filter(has_unjudged_calls).count();
        self.regressions += result.regressions.len();
        self.new_passes += result.new_passes.len();
        if let Some(missing) = &result.baseline_missing {
            self.add_missing(missing);
        }
        if let Some(trials) = &summary.trials {
            self.trials.get_or_insert_default().add(trials);
        }
        if let Some(simulated_user) = &summary.simulated_user {
            self.simulated_user.get_or_insert_default().add(simulated_user);
        }
        if let Some(security) = &summary.security {
            self.security.get_or_insert_default().add(security);
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
