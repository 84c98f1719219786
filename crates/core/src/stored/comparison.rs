//! Verdicts beside what people said.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::feedback::Rating;

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

/// A verdict that people disagree with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Contradiction {
    pub eval_id: String,
    pub eval_version: u64,
    pub trace_id: String,
    /// The verdict.
    pub result: bool,
    pub reason: Option<String>,
    pub rating: Rating,
    /// What the newest author of that rating noted.
    pub note: Option<String>,
    pub author: Option<String>,
    #[schemars(with = "String")]
    pub executed_at: Timestamp,
    /// The beginning of the trace's first user message.
    pub input_preview: String,
    /// What was decided about this verdict and this rating; null while it is open.
    pub resolution: Option<Resolution>,
}

/// Which contradictions are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContradictionFilter {
    pub eval_id: Option<String>,
    pub trace_id: Option<String>,
    /// Resolved ones too.
    pub resolved: bool,
    pub limit: Option<u64>,
}

/// Who is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResolutionKind {
    EvalWrong,
    LabelWrong,
    Dismissed,
}

impl ResolutionKind {
    pub const ALL: [ResolutionKind; 3] =
        [ResolutionKind::EvalWrong, ResolutionKind::LabelWrong, ResolutionKind::Dismissed];

    pub fn name(self) -> &'static str {
        match self {
            ResolutionKind::EvalWrong => "eval-wrong",
            ResolutionKind::LabelWrong => "label-wrong",
            ResolutionKind::Dismissed => "dismissed",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What a person decided about a contradiction. It holds as long as the same verdict stands against the same rating.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Resolution {
    pub kind: ResolutionKind,
    pub note: Option<String>,
    pub author: String,
    #[schemars(with = "String")]
    pub resolved_at: Timestamp,
}

/// What two versions said of one trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictPair {
    pub trace_id: String,
    /// None: an error.
    pub before: Option<bool>,
    pub now: Option<bool>,
    /// The reason, or the error.
    pub before_reason: Option<String>,
    pub now_reason: Option<String>,
    pub rating: Option<Rating>,
}

/// What each of several people says now of a trace, and how many traces they say just that of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatingPattern {
    /// By author; at least two.
    pub ratings: BTreeMap<String, Rating>,
    pub traces: u64,
}

/// A trace that somebody could look at, and what evals say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewCandidate {
    pub trace_id: String,
    /// The newest versions' verdicts on it.
    pub passed: u64,
    pub failed: u64,
    pub errored: u64,
    pub started_at: Option<Timestamp>,
}
