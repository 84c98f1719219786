//! Rubrics: prompts for the judge, parsing of its scores, and results.

mod judging;
mod result;

pub use judging::{Score, ScoreError, evidence, judge_prompt, read_score};
pub use result::{
    Judge, RubricCaseResult, RubricMetadata, RubricOutcome, RubricResult, RubricScore, RubricSuite, RubricSummary,
    RubricTotals, RubricVerdict, total_usage,
};
