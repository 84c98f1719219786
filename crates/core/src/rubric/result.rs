//! What is left of answers that were scored; apart from all that passes or fails.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::case::Tier;
use crate::result::CaseDetails;
use crate::trace::Usage;

/// The result of one rubric file in one run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat rubric result")]
pub struct RubricResult {
    /// Shared by all files of one run.
    pub run_id: String,
    /// When the run began, ISO 8601.
    pub timestamp: String,
    /// Always `rubric`.
    pub tier: Tier,
    pub tool_name: String,
    /// Who answered, without secrets.
    pub agent_endpoint: String,
    pub judge: Judge,
    pub metadata: RubricMetadata,
    /// What else a person should know of this run.
    pub warnings: Vec<String>,
    /// In the file's order.
    pub cases: Vec<RubricCaseResult>,
    pub summary: RubricSummary,
    /// From the first case's start to the last one's end.
    pub wall_clock_ms: u64,
}

/// Who scored.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Judge {
    pub identity: String,
    /// How it was asked: temperature, seed and the like.
    pub parameters: Map<String, Value>,
}

/// The file when the run was made, and how the agent was asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RubricMetadata {
    /// The rubric file, relative to the project's folder.
    pub eval_file: String,
    pub eval_file_hash: String,
    /// How the agent's model was asked: temperature, seed and the like.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

/// What came of a case: scores, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RubricVerdict {
    Judged,
    /// The agent or the judge gave no answer that could be used.
    Errored,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RubricCaseResult {
    pub id: String,
    pub description: String,
    pub outcome: RubricVerdict,
    /// How long the agent took; the judge's time is not in it.
    pub duration_ms: u64,
    /// Why there is no score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// In the file's order; empty without a score, since a part of a rubric is none.
    pub dimensions: Vec<RubricScore>,
    /// The sum over the dimensions; null without a score.
    pub score: Option<u64>,
    /// The most that could be reached.
    pub max_score: u64,
    /// What the judge used up, where it is known of every question.
    pub judge_usage: Option<Usage>,
    /// The judge was asked, whatever came of it.
    #[serde(skip)]
    pub judge_asked: bool,
    pub details: CaseDetails,
}

impl RubricCaseResult {
    /// Returns what the agent and the judge cost together, where both are known.
    pub fn cost_usd(&self) -> Option<f64> {
        let cost = |usage: &Option<Usage>| usage.as_ref().and_then(|usage| usage.cost_usd);
        let judge = if self.judge_asked { cost(&self.judge_usage) } else { Some(0.0) };
        cost(&self.details.usage).zip(judge).map(|(agent, judge)| agent + judge)
    }
}

/// One dimension's score, and what it was given for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RubricScore {
    pub dimension: String,
    pub criteria: String,
    pub max_score: u64,
    pub score: u64,
    /// The judge's words.
    pub reason: String,
}

/// The numbers of a suite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RubricSummary {
    /// Cases that ran.
    pub total_cases: usize,
    pub judged: usize,
    pub errored: usize,
    /// Selected cases that an interruption or an error kept from running.
    pub not_run: usize,
    /// The sum over the judged cases.
    pub score: u64,
    /// The most that the judged cases could reach.
    pub max_score: u64,
    /// `score` by `maxScore`, from 0 to 1; null when nothing was judged.
    pub score_share: Option<f64>,
    /// What the judge used up, where it is known of every question.
    pub judge_usage: Option<Usage>,
}

impl RubricSummary {
    /// Counts the cases that ran; `selected` is how many should have.
    pub fn of(cases: &[RubricCaseResult], selected: usize) -> Self {
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
        let asked = cases.iter().filter(|case| case.judge_asked);
        summary.judge_usage = total_usage(asked.map(|case| case.judge_usage.as_ref()));
        summary
    }
}

fn share(score: u64, max_score: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "scores are small")]
    let share = score as f64 / max_score as f64;
    (max_score > 0).then_some(share)
}

/// Adds up what answers used; what is not known of every one of them is not known of all.
pub fn total_usage<'u>(usages: impl Iterator<Item = Option<&'u Usage>>) -> Option<Usage> {
    let mut usages = usages.map(|usage| usage.cloned().unwrap_or_default());
    let first = usages.next()?;
    let add = |left: Option<u64>, right: Option<u64>| left.zip(right).map(|(left, right)| left.saturating_add(right));
    let total = usages.fold(first, |sum, one| Usage {
        input_tokens: add(sum.input_tokens, one.input_tokens),
        output_tokens: add(sum.output_tokens, one.output_tokens),
        cached_input_tokens: add(sum.cached_input_tokens, one.cached_input_tokens),
        cost_usd: sum.cost_usd.zip(one.cost_usd).map(|(left, right)| left + right),
    });
    (total != Usage::default()).then_some(total)
}

/// A rubric suite at its end.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RubricSuite {
    /// As the person named it.
    pub path: String,
    pub tool_name: String,
    /// Who answers, where a run asks several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub selected: usize,
    /// The line of each selected case, by its id.
    #[serde(skip)]
    pub lines: Vec<(String, usize)>,
    #[serde(flatten)]
    pub outcome: RubricOutcome,
}

/// What came of a rubric suite.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RubricOutcome {
    /// Nothing was asked, for this reason.
    Skipped(String),
    Result(Arc<RubricResult>),
}

impl RubricSuite {
    /// Returns the result, if anything was asked.
    pub fn result(&self) -> Option<&Arc<RubricResult>> {
        match &self.outcome {
            RubricOutcome::Result(result) => Some(result),
            RubricOutcome::Skipped(_) => None,
        }
    }
}

/// The numbers of a run's rubric suites, never mixed into what passes or fails.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RubricTotals {
    /// Suites that ran; each has a result file.
    pub suites: usize,
    /// Suites that did not run, with a word why.
    pub skipped_suites: usize,
    /// Cases with scores.
    pub judged: usize,
    /// Cases without, since the agent or the judge erred.
    pub errored: usize,
    /// The cases of the suites that did not run.
    pub skipped: usize,
    /// Selected cases that an interruption or an error kept from running.
    pub not_run: usize,
    pub score: u64,
    pub max_score: u64,
    /// `score` by `maxScore`, from 0 to 1; null when nothing was judged.
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
    fn what_is_not_known_of_all_is_not_known() {
        let (both, tokens) = (usage(Some(3), Some(0.5)), usage(Some(4), None));
        assert_eq!(total_usage([Some(&both), Some(&tokens)].into_iter()), Some(usage(Some(7), None)));
        assert_eq!(total_usage([Some(&both), None].into_iter()), None);
        assert_eq!(total_usage(std::iter::empty()), None);
    }

    #[test]
    fn nothing_judged_is_no_share() {
        assert_eq!(RubricSummary::of(&[], 3), RubricSummary { not_run: 3, ..RubricSummary::default() });
        assert_eq!(share(0, 4), Some(0.0));
    }
}
