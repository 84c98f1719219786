//! Thresholds below which an eval's agreement raises an alert.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::counts::AgreementCounts;
use super::estimate::Estimate;
use super::figures::Figures;
use karat_core::gate::read_share;
use karat_json::{ObjectReader, Path, Problems, read_positive_count};

/// Limits beyond which `karat eval agreement` raises an alert. Missing keys take their defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Minimum accuracy (default: 0.8).
    #[schemars(range(min = 0, max = 1))]
    pub accuracy: Option<f64>,
    /// Maximum share of compared verdicts that contradict the rating. This is the accuracy from the other side, so it is
    /// not checked unless it is set.
    #[schemars(range(min = 0, max = 1))]
    pub contradiction_rate: Option<f64>,
    /// Maximum share of executions without a verdict (default: 0.1).
    #[schemars(range(min = 0, max = 1))]
    pub error_rate: Option<f64>,
    /// Minimum sample size for a check (default: 20).
    #[schemars(range(min = 1))]
    pub at_least: Option<u64>,
}

impl Limits {
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let limits = Self {
            accuracy: object.nullable("accuracy", path, problems, read_share),
            contradiction_rate: object.nullable("contradictionRate", path, problems, read_share),
            error_rate: object.nullable("errorRate", path, problems, read_share),
            at_least: object.nullable("atLeast", path, problems, read_positive_count),
        };
        object.close(path, problems);
        Some(limits)
    }
}

/// Resolved alert thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Thresholds {
    pub accuracy: f64,
    /// Null unless it is set.
    pub contradiction_rate: Option<f64>,
    pub error_rate: f64,
    pub at_least: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { accuracy: 0.8, contradiction_rate: None, error_rate: 0.1, at_least: 20 }
    }
}

impl From<Limits> for Thresholds {
    fn from(limits: Limits) -> Self {
        let default = Self::default();
        Self {
            accuracy: limits.accuracy.unwrap_or(default.accuracy),
            contradiction_rate: limits.contradiction_rate,
            error_rate: limits.error_rate.unwrap_or(default.error_rate),
            at_least: limits.at_least.unwrap_or(default.at_least),
        }
    }
}

/// A figure that has a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    Accuracy,
    ContradictionRate,
    ErrorRate,
}

impl Metric {
    /// Returns the display name.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Accuracy => "accuracy",
            Metric::ContradictionRate => "contradiction rate",
            Metric::ErrorRate => "error rate",
        }
    }

    /// Whether the threshold is a minimum rather than a maximum.
    pub fn is_minimum(self) -> bool {
        self == Metric::Accuracy
    }
}

/// Result of checking one threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ThresholdCheck {
    pub figure: Metric,
    /// Minimum for accuracy, maximum for the others.
    pub threshold: f64,
    /// Null without data.
    pub actual: Option<f64>,
    /// Sample size: compared verdicts, or executions.
    pub measured_by: u64,
    /// False is an alert. Null: the sample is too small.
    pub held: Option<bool>,
}

impl Thresholds {
    /// Checks the figures of one version against the thresholds.
    pub fn check(&self, counts: &AgreementCounts, figures: &Figures) -> Vec<ThresholdCheck> {
        let check = |figure: Metric, threshold: f64, estimate: Option<Estimate>, measured_by: u64| {
            let actual = estimate.map(|estimate| estimate.value);
            let holds = |actual: f64| if figure.is_minimum() { actual >= threshold } else { actual <= threshold };
            let held = actual.filter(|_| measured_by >= self.at_least).map(holds);
            ThresholdCheck { figure, threshold, actual, measured_by, held }
        };
        let compared = counts.compared();
        let contradictions = |maximum| check(Metric::ContradictionRate, maximum, figures.contradiction_rate, compared);
        [
            Some(check(Metric::Accuracy, self.accuracy, figures.accuracy, compared)),
            self.contradiction_rate.map(contradictions),
            Some(check(Metric::ErrorRate, self.error_rate, figures.error_rate, counts.executions())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    // Right, wrong, errored: accuracy, contradictions, errors.
    #[case(17, 3, 0, [Some(true), Some(true), Some(true)])]
    #[case(16, 4, 0, [Some(true), Some(false), Some(true)])]
    #[case(15, 5, 0, [Some(false), Some(false), Some(true)])]
    #[case(15, 4, 1, [None, None, Some(true)])]
    #[case(9, 8, 3, [None, None, Some(false)])]
    #[case(0, 0, 40, [None, None, Some(false)])]
    #[case(0, 0, 0, [None, None, None])]
    fn a_small_sample_raises_no_alert(
        #[case] right: u64,
        #[case] wrong: u64,
        #[case] errored: u64,
        #[case] expected: [Option<bool>; 3],
    ) {
        let counts =
            AgreementCounts { failed_negative: right, passed_negative: wrong, errored, ..AgreementCounts::default() };
        let thresholds = Thresholds { contradiction_rate: Some(0.15), ..Thresholds::default() };
        let checks = thresholds.check(&counts, &Figures::of(&counts));
        assert_eq!(checks.iter().map(|check| check.held).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn one_shortcoming_is_one_alert() {
        let counts = AgreementCounts { failed_negative: 15, passed_negative: 15, ..AgreementCounts::default() };
        let checks = Thresholds::default().check(&counts, &Figures::of(&counts));
        let broken: Vec<Metric> =
            checks.iter().filter(|check| check.held == Some(false)).map(|check| check.figure).collect();
        assert_eq!(broken, [Metric::Accuracy]);
    }

    #[test]
    fn parses_limits_strictly() {
        let read = |value: Value| {
            let mut problems = Problems::default();
            let limits = Limits::read(&value, &Path::Root, &mut problems);
            (limits, problems.into_list().into_iter().map(|problem| problem.message).collect::<Vec<_>>())
        };
        let (limits, problems) = read(json!({"accuracy": 0.9, "atLeast": 50, "errorRate": null}));
        assert!(problems.is_empty());
        let expected = Thresholds { accuracy: 0.9, at_least: 50, ..Thresholds::default() };
        assert_eq!(limits.map(Thresholds::from), Some(expected));
        let (_, problems) = read(json!({"accuracy": 90, "atLeast": 0, "contradictions": 1}));
        assert_eq!(problems.len(), 3, "{problems:?}");
    }
}
