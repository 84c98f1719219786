//! Results of rubric suites, which are separate from pass/fail results.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::result::CaseDetails;
use crate::trace::Usage;
use karat_cases::Tier;

/// The result of one rubric file in one run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat rubric result")]
pub struct RubricResult {
    /// Shared by all files of one run.
    pub run_id: String,
    /// When the run started, ISO 8601.
    pub timestamp: String,
    /// Always `rubric`.
    pub tier: Tier,
    pub tool_name: String,
    /// The agent, with secrets redacted.
    pub agent_endpoint: String,
    pub judge: Judge,
    pub metadata: RubricMetadata,
    /// Other warnings about this run.
    pub warnings: Vec<String>,
    /// In file order.
    pub cases: Vec<RubricCaseResult>,
    pub summary: RubricSummary,
    /// From the start of the first case to the end of the last.
    pub wall_clock_ms: u64,
}

/// The judge model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Judge {
    pub identity: String,
    /// Parameters of the model, such as temperature and seed.
    pub parameters: Map<String, Value>,
}

/// The rubric file at the time of the run, and the agent's parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RubricMetadata {
    /// The rubric file, relative to the project's folder.
    pub eval_file: String,
    pub eval_file_hash: String,
    /// Parameters of the agent's model, such as temperature and seed.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

/// Whether a case has scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RubricVerdict {
    Judged,
    /// The agent or the judge did not give a usable answer.
    Errored,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RubricCaseResult {
    pub id: String,
    pub description: String,
    pub outcome: RubricVerdict,
    /// Duration of the agent's answer, without the judge.
    pub duration_ms: u64,
    /// Why there is no score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// In file order; empty without a score, since partial rubrics do not count.
    pub dimensions: Vec<RubricScore>,
    /// The sum over the dimensions; null without a score.
    pub score: Option<u64>,
    /// The highest possible score.
    pub max_score: u64,
    /// Usage of the judge, if known for every prompt.
    pub judge_usage: Option<Usage>,
    /// Whether the judge was called, successfully or not.
    #[serde(skip)]
    pub judge_called: bool,
    pub details: CaseDetails,
}

impl RubricCaseResult {
    /// Returns the cost of the agent and the judge, if both are known.
    pub fn cost_usd(&self) -> Option<f64> {
        let cost = |usage: Option<&Usage>| usage.and_then(|usage| usage.cost_usd);
        let judge = if self.judge_called { cost(self.judge_usage.as_ref()) } else { Some(0.0) };
        cost(self.details.usage.as_deref()).zip(judge).map(|(agent, judge)| agent + judge)
    }
}

/// The score of one dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RubricScore {
    pub dimension: String,
    pub criteria: String,
    pub max_score: u64,
    pub score: u64,
    /// The judge's explanation.
    pub reason: String,
}

/// Totals of a suite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RubricSummary {
    /// Cases that ran.
    pub total_cases: usize,
    pub judged: usize,
    pub errored: usize,
    /// Selected cases that did not run because of an interruption or an error.
    pub not_run: usize,
    /// The sum over the judged cases.
    pub score: u64,
    /// The highest possible score of the judged cases.
    pub max_score: u64,
    /// `score` divided by `maxScore`, from 0 to 1; null if nothing was judged.
    pub score_share: Option<f64>,
    /// Usage of the judge, if known for every prompt.
    pub judge_usage: Option<Usage>,
}

impl RubricSummary {
    /// Sums up the cases that ran, out of `selected` ones.
    pub fn from_cases(cases: &[RubricCaseResult], selected: usize) -> Self {
        let mut summary =
            Self { total_cases: cases.len(), not_run: selected.saturating_sub(cases.len()), ..Self::default() };
        for case in cases {
            match case.score {
                Some(score) => {
                    summary.judged += 1;
                    summary.score = summary.score.saturating_add(score);
                    summary.max_score = summary.max_score.saturating_add(case.max_score);
                }
                None => summary.errored += 1,
            }
        }
        summary.score_share = share(summary.score, summary.max_score);
        let called = cases.iter().filter(|case| case.judge_called);
        summary.judge_usage = total_usage(called.map(|case| case.judge_usage.as_ref()));
        summary
    }
}

fn share(score: u64, max_score: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "scores are small")]
    let share = score as f64 / max_score as f64;
    (max_score > 0).then_some(share)
}

/// Adds up usage; a value that is unknown for one answer is unknown for the total.
pub fn total_usage<'u>(usages: impl Iterator<Item = Option<&'u Usage>>) -> Option<Usage> {
    let mut usages = usages.map(|usage| usage.cloned().unwrap_or_default());
    let first = usages.next()?;
    let add = |left: Option<u64>, right: Option<u64>| left.zip(right).map(|(left, right)| left.saturating_add(right));
    let total = usages.fold(first, |sum, usage| Usage {
        input_tokens: add(sum.input_tokens, usage.input_tokens),
        output_tokens: add(sum.output_tokens, usage.output_tokens),
        cached_input_tokens: add(sum.cached_input_tokens, usage.cached_input_tokens),
        cost_usd: sum.cost_usd.zip(usage.cost_usd).map(|(left, right)| left + right),
    });
    (total != Usage::default()).then_some(total)
}

/// A finished rubric suite.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RubricSuite {
    /// As the user wrote it.
    pub path: String,
    pub tool_name: String,
    /// The agent, if the run has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub selected: usize,
    /// The line of each selected case, by its id.
    #[serde(skip)]
    pub lines: Vec<(String, usize)>,
    #[serde(flatten)]
    pub outcome: RubricOutcome,
}

/// The outcome of a rubric suite.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RubricOutcome {
    /// The reason why nothing was run.
    Skipped(String),
    Result(Arc<RubricResult>),
}

impl RubricSuite {
    /// Returns the result, unless the suite was skipped.
    pub fn result(&self) -> Option<&Arc<RubricResult>> {
        match &self.outcome {
            RubricOutcome::Result(result) => Some(result),
            RubricOutcome::Skipped(_) => None,
        }
    }
}

/// Totals of a run's rubric suites, separate from pass/fail totals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RubricTotals {
    /// Suites that ran; each has a result file.
    pub suites: usize,
    /// Suites that were skipped with a reason.
    pub skipped_suites: usize,
    /// Cases with scores.
    pub judged: usize,
    /// Cases without scores because of an error of the agent or the judge.
    pub errored: usize,
    /// Cases of skipped suites.
    pub skipped: usize,
    /// Selected cases that did not run because of an interruption or an error.
    pub not_run: usize,
    pub score: u64,
    pub max_score: u64,
    /// `score` divided by `maxScore`, from 0 to 1; null if nothing was judged.
    pub score_share: Option<f64>,
}

impl RubricTotals {
    pub fn add(&mut self, suite: &RubricSuite) {
        let Some(result) = suite.result() else {
            self.skipped_suites += 1;
            self.skipped += suite.selected;
            return;
        };
        let summary = &result.summary;
        self.suites += 1;
        self.judged += summary.judged;
        self.errored += summary.errored;
        self.not_run += summary.not_run;
        self.score = self.score.saturating_add(summary.score);
        self.max_score = self.max_score.saturating_add(summary.max_score);
        self.score_share = share(self.score, self.max_score);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: Option<u64>, cost: Option<f64>) -> Usage {
        Usage { input_tokens: input, cost_usd: cost, ..Usage::default() }
    }

    #[test]
    fn total_usage_is_unknown_if_a_part_is() {
        let (both, tokens) = (usage(Some(3), Some(0.5)), usage(Some(4), None));
        assert_eq!(total_usage([Some(&both), Some(&tokens)].into_iter()), Some(usage(Some(7), None)));
        assert_eq!(total_usage([Some(&both), None].into_iter()), None);
        assert_eq!(total_usage(std::iter::empty()), None);
    }

    #[test]
    fn no_judged_case_means_no_score_share() {
        assert_eq!(RubricSummary::from_cases(&[], 3), RubricSummary { not_run: 3, ..RubricSummary::default() });
        assert_eq!(share(0, 4), Some(0.0));
    }
}
