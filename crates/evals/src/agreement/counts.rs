//! How often verdicts and ratings agree.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Serialize;

/// How often a version of an eval said what, beside what people said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgreementCounts {
    pub passed_positive: u64,
    pub passed_negative: u64,
    pub failed_positive: u64,
    pub failed_negative: u64,
    /// Verdicts on traces that people find neutral.
    pub neutral: u64,
    /// Verdicts on traces that nobody rated.
    pub unrated: u64,
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
        self.errored += other.errored;
    }

    /// Returns how many verdicts have a rating to be compared with.
    pub fn compared(&self) -> u64 {
        self.passed_positive + self.passed_negative + self.failed_positive + self.failed_negative
    }

    pub fn contradictions(&self) -> u64 {
        self.passed_negative + self.failed_positive
    }

    pub fn executions(&self) -> u64 {
        self.compared() + self.neutral + self.unrated + self.errored
    }
}

/// The counts of traces that began on one day, or came into the store on it where they do not say when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgreementDay {
    pub day: Date,
    pub counts: AgreementCounts,
}
