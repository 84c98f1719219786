//! Reports about agreement and contradictions.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::counts::AgreementCounts;
use super::figures::Figures;
use super::raters::RaterAgreement;
use super::thresholds::{ThresholdCheck, Thresholds};
use super::trend::Trend;
use crate::contradiction::{Contradiction, ResolutionKind};
use karat_core::exit::ExitStatus;

/// Output of `karat eval agreement --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat eval agreement")]
pub struct AgreementReport {
    /// By name.
    pub evals: Vec<EvalAgreement>,
    /// Agreement of people with each other; null if no trace has several ratings.
    pub raters: Option<RaterAgreement>,
    /// Alert thresholds.
    pub thresholds: Thresholds,
    /// Number of thresholds that are not met.
    pub alerts: u64,
}

/// Agreement of one version of an eval with ratings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EvalAgreement {
    pub eval_id: String,
    pub version: u64,
    pub newest_version: u64,
    /// Confusion matrix, and verdicts outside it.
    pub counts: AgreementCounts,
    /// Number of verdicts with a rating to compare with.
    pub compared: u64,
    pub figures: Figures,
    /// Whether the thresholds are met.
    pub checks: Vec<ThresholdCheck>,
    /// All versions, oldest first.
    pub versions: Vec<VersionAgreement>,
    pub trend: Trend,
}

/// One line of an eval's history.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VersionAgreement {
    pub version: u64,
    /// ISO 8601.
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    pub counts: AgreementCounts,
    pub compared: u64,
    pub figures: Figures,
}

impl VersionAgreement {
    pub fn new(version: u64, created_at: Timestamp, counts: AgreementCounts) -> Self {
        Self { version, created_at, counts, compared: counts.compared(), figures: Figures::of(&counts) }
    }
}

impl EvalAgreement {
    /// Creates the agreement of one of these versions; `None` if it is not among them.
    pub fn new(
        eval_id: &str,
        version: u64,
        versions: Vec<VersionAgreement>,
        trend: Trend,
        thresholds: &Thresholds,
    ) -> Option<Self> {
        let newest_version = versions.iter().map(|version| version.version).max()?;
        let VersionAgreement { counts, compared, figures, .. } =
            *versions.iter().find(|line| line.version == version)?;
        let checks = thresholds.check(&counts, &figures);
        let eval_id = eval_id.to_owned();
        Some(Self { eval_id, version, newest_version, counts, compared, figures, checks, versions, trend })
    }

    /// Returns the thresholds that are not met.
    pub fn alerts(&self) -> impl Iterator<Item = &ThresholdCheck> {
        self.checks.iter().filter(|check| check.held == Some(false))
    }
}

impl AgreementReport {
    pub fn new(evals: Vec<EvalAgreement>, raters: Option<RaterAgreement>, thresholds: Thresholds) -> Self {
        let alerts = evals.iter().map(|eval| eval.alerts().count() as u64).sum();
        Self { evals, raters, thresholds, alerts }
    }

    /// Returns the exit status: an alert is a failed check; without comparisons nothing was checked.
    pub fn status(&self) -> ExitStatus {
        if self.alerts > 0 {
            ExitStatus::Failed
        } else if self.evals.iter().all(|eval| eval.compared == 0) {
            ExitStatus::NothingSelected
        } else {
            ExitStatus::Success
        }
    }
}

/// Output of `karat contradictions --format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat contradictions")]
pub struct ContradictionList {
    /// Newest first.
    pub contradictions: Vec<Contradiction>,
    /// Total, including those beyond the limit.
    pub total: u64,
    /// Number of resolved ones left out.
    pub resolved: u64,
}

/// Output of `karat contradictions resolve --format json`: the contradiction with its resolution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat contradictions resolve")]
pub struct ResolvedContradiction {
    pub contradiction: Contradiction,
    /// The previous resolution; null if it was open.
    pub before: Option<ResolutionKind>,
}
