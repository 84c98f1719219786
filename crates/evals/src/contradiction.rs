//! Verdicts that people disagree with, and their resolutions.

use jiff::Timestamp;
use karat_core::rating::Rating;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a verdict is the opposite of a rating. A neutral rating contradicts nothing.
pub fn contradicts(rating: Rating, passed: bool) -> bool {
    matches!((rating, passed), (Rating::Positive, false) | (Rating::Negative, true))
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
    /// The newest note for that rating.
    pub note: Option<String>,
    pub author: Option<String>,
    #[schemars(with = "String")]
    pub executed_at: Timestamp,
    /// Start of the trace's first user message.
    pub input_preview: String,
    /// The decision on this verdict and rating; null while open.
    pub resolution: Option<Resolution>,
}

/// Selects contradictions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContradictionFilter {
    pub eval_id: Option<String>,
    pub trace_id: Option<String>,
    /// On traces of this source.
    pub source: Option<String>,
    /// Not on traces of this source.
    pub excluded_source: Option<String>,
    /// Whether to include resolved ones.
    pub resolved: bool,
    pub limit: Option<u64>,
}

/// Which side is wrong.
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

/// A person's decision on a contradiction. Valid while verdict and rating stay the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Resolution {
    pub kind: ResolutionKind,
    pub note: Option<String>,
    pub author: String,
    #[schemars(with = "String")]
    pub resolved_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Rating::Positive, true, false)]
    #[case(Rating::Positive, false, true)]
    #[case(Rating::Negative, true, true)]
    #[case(Rating::Negative, false, false)]
    #[case(Rating::Neutral, true, false)]
    #[case(Rating::Neutral, false, false)]
    fn only_opposite_verdicts_contradict(#[case] rating: Rating, #[case] passed: bool, #[case] expected: bool) {
        assert_eq!(contradicts(rating, passed), expected);
    }
}
