//! Counts of verdicts by rating.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Serialize;

/// Verdicts of one version of an eval, by rating.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgreementCounts {
    pub passed_positive: u64,
    pub passed_negative: u64,
    pub failed_positive: u64,
    pub failed_negative: u64,
    /// Verdicts on traces rated neutral.
    pub neutral: u64,
    /// Verdicts on unrated traces.
    pub unrated: u64,
    /// Executions in which the function was not applicable, rated or not.
    pub not_applicable: u64,
    /// Executions without a verdict, rated or not.
    pub errored: u64,
}

impl AgreementCounts {
    pub fn add(&mut self, other: &Self) {
        self.passed_positive += other.passed_positive;
        self.passed_negative += other.passed_negative;
        self.failed_positive += other.failed_positive;
        self.failed_negative += other.failed_negative;
        self.neutral += other.neutral;
        self.unrated += other.unrated;
        self.not_applicable += other.not_applicable;
        self.errored += other.errored;
    }

    /// Subtracts the counts of a part of the traces.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        Self {
            passed_positive: self.passed_positive.saturating_sub(part.passed_positive),
            passed_negative: self.passed_negative.saturating_sub(part.passed_negative),
            failed_positive: self.failed_positive.saturating_sub(part.failed_positive),
            failed_negative: self.failed_negative.saturating_sub(part.failed_negative),
            neutral: self.neutral.saturating_sub(part.neutral),
            unrated: self.unrated.saturating_sub(part.unrated),
            not_applicable: self.not_applicable.saturating_sub(part.not_applicable),
            errored: self.errored.saturating_sub(part.errored),
        }
    }

    /// Returns the number of verdicts with a rating to compare with.
    pub fn compared(&self) -> u64 {
        self.passed_positive + self.passed_negative + self.failed_positive + self.failed_negative
    }

    pub fn contradictions(&self) -> u64 {
        self.passed_negative + self.failed_positive
    }

    pub fn executions(&self) -> u64 {
        self.compared() + self.neutral + self.unrated + self.not_applicable + self.errored
    }
}

/// Counts of traces that began on one day (or were stored on it, if they have no start time).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgreementDay {
    pub day: Date,
    pub counts: AgreementCounts,
}
