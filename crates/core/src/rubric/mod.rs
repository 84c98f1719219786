//! Answers that a model scores: what it is asked, how its answer is read, and what is kept of it.

mod judging;
mod result;

pub use judging::{Score, ScoreError, evidence, judge_prompt, read_score};
pub use result::{
    Judge, RubricCaseResult, RubricMetadata, RubricOutcome, RubricResult, RubricScore, RubricSuite, RubricSummary,
    RubricTotals, RubricVerdict, total_usage,
};
