//! What happens in a run, one after the other: the only thing that reporters see.

mod reporter;

pub use self::reporter::{ReportError, Reporter};
use std::sync::Arc;

use serde::Serialize;

use crate::case::Tier;
use crate::gate::GateResult;
use crate::result::{CaseResult, SuiteResult};
use crate::rubric::{RubricSuite, RubricTotals};
use crate::staleness::Staleness;
use crate::trials::TrialSummary;

/// Something that happened in a run.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[expect(clippy::large_enum_variant, reason = "the large one comes once, at the end, and is lent to reporters")]
pub enum RunEvent {
    RunStarted {
        run_id: String,
        /// In the order in which they are reported.
        suites: Vec<Arc<SuiteHeader>>,
        total_cases: usize,
    },
    /// In order of completion; `index` is the case's place among the suite's selected cases.
    CaseFinished {
        suite: usize,
        index: usize,
        result: Arc<CaseResult>,
    },
    /// In the suites' order; every case of the suite that ran was reported before.
    SuiteFinished {
        suite: usize,
        result: Arc<SuiteResult>,
    },
    /// After all suites, since only a tool whose suites passed is scored; in the rubric files' order.
    RubricFinished {
        suite: Arc<RubricSuite>,
    },
    RunFinished {
        run_id: String,
        totals: RunTotals,
    },
}

/// What is known of a suite before it runs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuiteHeader {
    /// As the person named it.
    pub path: String,
    pub tool_name: String,
    pub tier: Tier,
    /// Who answers, where a run asks several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub selected: usize,
    /// How often each case is tried.
    #[serde(skip)]
    pub trials: usize,
    /// The line of each selected case, in order.
    #[serde(skip)]
    pub lines: Vec<usize>,
    #[serde(skip)]
    pub staleness: Vec<Staleness>,
    /// There is an earlier result to compare with.
    #[serde(skip)]
    pub has_baseline: bool,
    /// How wide the ids and the descriptions are, for columns that fit before the first case has ended.
    #[serde(skip)]
    pub id_columns: usize,
    #[serde(skip)]
    pub description_columns: usize,
}

/// The numbers of a whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunTotals {
    pub suites: usize,
    pub cases: usize,
    pub passed: usize,
    /// Cases that did not pass, errored ones too.
    pub failed: usize,
    pub errored: usize,
    pub vacuous: usize,
    pub not_run: usize,
    pub skipped_assertions: usize,
    pub regressions: usize,
    pub new_passes: usize,
    pub wall_clock_ms: u64,
    pub interrupted: bool,
    /// Where cases were tried several times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<TrialSummary>,
    /// The limits that were set; they then decide how the run ends.
    pub gates: Vec<GateResult>,
    /// Where the run has rubric suites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rubric: Option<RubricTotals>,
}

impl RunTotals {
    /// Tells whether selected cases, or some of their tries, did not run.
    pub fn left_out(&self) -> bool {
        self.not_run > 0 || self.trials.as_ref().is_some_and(|trials| trials.not_run > 0)
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
        self.skipped_assertions += summary.skipped_assertions;
        self.regressions += result.regressions.len();
        self.new_passes += result.new_passes.len();
        if let Some(trials) = &summary.trials {
            self.trials.get_or_insert_default().add(trials);
        }
    }
}
