//! Compares two results of the same suite.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Not;

use schemars::JsonSchema;
use serde::Serialize;

use crate::result::{EarlierCase, MissingCases, Outcome, SuiteResult};
use crate::statistics::{JudgedTrials, SIGNIFICANCE, fisher_test, sign_test};
use crate::trials::TrialCounts;

/// How a case changed between two runs. A case needs a verdict in both to have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Passed before and fails now; with mixed trials, passes significantly less often.
    Regression,
    /// Failed before and passes now; with mixed trials, passes significantly more often.
    NewPass,
    StillPasses,
    StillFails,
    /// Passes sometimes, with no significant change.
    Flaky,
    /// Passes sometimes and at another rate than before, but with too few trials to ever be significant.
    NotEnoughData,
    /// Errored before or now, so there is nothing to compare.
    NoVerdict,
    /// Not in the earlier run.
    Added,
    /// Not in the current run.
    Removed,
}

/// The comparison of one case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseDiff {
    pub id: String,
    pub description: String,
    pub change: Change,
    pub before: Option<Outcome>,
    pub now: Option<Outcome>,
    /// Trial counts, if a side has several trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_trials: Option<TrialCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now_trials: Option<TrialCounts>,
    /// The p-value of Fisher's exact test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Why it does not pass now.
    pub error: Option<String>,
    /// Whether an added case was not run before, or a removed one not now, though it was in the eval file.
    #[serde(skip_serializing_if = "Not::not")]
    #[schemars(default)]
    pub not_run: bool,
}

/// The number of cases of a suite that were compared with its baseline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ComparisonCounts {
    /// Cases with a verdict both in the baseline and now.
    pub cases: usize,
    /// Cases that pass less often than in the baseline, but with too few trials to be significant.
    pub inconclusive: usize,
}

/// Compares a result with an earlier one of the same suite, which becomes its baseline.
///
/// `removed` are the ids of the cases that are no longer in the eval file.
pub fn compare_with_baseline(
    result: &mut SuiteResult,
    run_id: &str,
    baseline: &[EarlierCase],
    removed: &BTreeSet<String>,
) -> ComparisonCounts {
    let current: Vec<EarlierCase> = result.cases.iter().map(|case| EarlierCase::from(case.as_ref())).collect();
    let diffs = diff_cases(baseline, &current);
    result.baseline_run_id = Some(run_id.to_owned());
    result.regressions = ids_with_change(&diffs, Change::Regression);
    result.new_passes = ids_with_change(&diffs, Change::NewPass);
    result.still_failing = diffs.iter().filter(|diff| is_still_failing(diff)).map(|diff| diff.id.clone()).collect();
    result.baseline_missing = Some(missing_cases(&diffs, result, removed)).filter(|missing| !missing.is_empty());
    let compared = ComparisonCounts { cases: count_compared(&diffs), inconclusive: count_inconclusive(&diffs) };
    if let Some(part) = &mut result.shard {
        (part.compared, part.inconclusive) = (compared.cases, compared.inconclusive);
    }
    compared
}

/// Whether a case failed before and now; with trials, also if it passes sometimes and not significantly less often.
fn is_still_failing(diff: &CaseDiff) -> bool {
    diff.before == Some(Outcome::Failed) && diff.now == Some(Outcome::Failed) && diff.change != Change::Regression
}

/// Returns the cases of the baseline without a result, except those that have a `skip` now.
fn missing_cases(diffs: &[CaseDiff], result: &SuiteResult, removed: &BTreeSet<String>) -> MissingCases {
    let skipped: HashSet<&str> = result.skipped.iter().map(|case| case.id.as_str()).collect();
    let without_result = diffs.iter().filter(|diff| diff.change == Change::Removed);
    let ids = without_result.map(|diff| &diff.id).filter(|id| !skipped.contains(id.as_str())).cloned();
    let (removed, not_run) = ids.partition(|id| removed.contains(id));
    MissingCases { not_run, removed }
}

/// How a suite changed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SuiteVerdict")]
pub enum Verdict {
    /// No case passes more or less often than before.
    Unchanged,
    /// Significantly more cases got worse than better.
    Regression,
    /// Significantly more cases got better than worse.
    Improvement,
    /// Cases changed without a significant direction.
    Flaky,
    /// Too few cases changed for any significant direction.
    NotEnoughData,
    /// No case has a verdict in both runs.
    NothingToCompare,
}

/// The change of a suite by the exact sign test over its cases, which is `McNemar`'s test for single trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuiteChange {
    pub verdict: Verdict,
    /// Cases that pass less often than before.
    pub worse: usize,
    /// Cases that pass more often than before.
    pub better: usize,
    /// The p-value of the sign test.
    pub p_value: f64,
}

/// Compares two runs case by case, in the current order, followed by removed cases.
pub fn diff_cases(before: &[EarlierCase], now: &[EarlierCase]) -> Vec<CaseDiff> {
    let mut old: HashMap<&str, &EarlierCase> = before.iter().map(|case| (case.id.as_str(), case)).collect();
    let mut diffs: Vec<CaseDiff> = now.iter().map(|case| compare(old.remove(case.id.as_str()), case)).collect();
    let removed = before.iter().filter(|case| old.contains_key(case.id.as_str()));
    diffs.extend(removed.map(|case| CaseDiff {
        id: case.id.clone(),
        description: case.description.clone(),
        change: Change::Removed,
        before: Some(case.outcome),
        now: None,
        before_trials: case.trials,
        now_trials: None,
        p_value: None,
        error: None,
        not_run: false,
    }));
    diffs
}

fn compare(before: Option<&EarlierCase>, now: &EarlierCase) -> CaseDiff {
    let mut diff = CaseDiff {
        id: now.id.clone(),
        description: now.description.clone(),
        change: change(before.map(|case| case.outcome), now.outcome),
        before: before.map(|case| case.outcome),
        now: Some(now.outcome),
        before_trials: before.and_then(|case| case.trials),
        now_trials: now.trials,
        p_value: None,
        error: now.error.clone(),
        not_run: false,
    };
    if let Some(before) = before
        && (before.trials.is_some() || now.trials.is_some())
    {
        let counts = (counts(before), counts(now));
        (diff.change, diff.p_value) = change_of_trials(counts.0, counts.1);
        (diff.before_trials, diff.now_trials) = (Some(counts.0), Some(counts.1));
    }
    diff
}

fn counts(case: &EarlierCase) -> TrialCounts {
    case.trials.unwrap_or_else(|| TrialCounts::single(case.outcome))
}

fn change(before: Option<Outcome>, now: Outcome) -> Change {
    match (before, now) {
        (None, _) => Change::Added,
        (Some(Outcome::Errored), _) | (_, Outcome::Errored) => Change::NoVerdict,
        (Some(Outcome::Passed), Outcome::Failed) => Change::Regression,
        (Some(Outcome::Failed), Outcome::Passed) => Change::NewPass,
        (Some(Outcome::Passed), Outcome::Passed) => Change::StillPasses,
        (Some(Outcome::Failed), Outcome::Failed) => Change::StillFails,
    }
}

/// Returns the change of a case with several trials, and its p-value.
fn change_of_trials(before: TrialCounts, now: TrialCounts) -> (Change, Option<f64>) {
    let (old, new) = (before.judged(), now.judged());
    let (Some(old_rate), Some(new_rate)) = (old.rate(), new.rate()) else {
        return (Change::NoVerdict, None);
    };
    let p_value = fisher_test(old, new);
    // A change from all passed to all failed, or back, needs no test, as with single trials.
    let is_uniform = !before.is_mixed() && !now.is_mixed();
    let change = if p_value < SIGNIFICANCE || is_uniform && rates_differ(old, new) {
        if new_rate < old_rate { Change::Regression } else { Change::NewPass }
    } else if rates_differ(old, new) && !can_be_significant(old.total(), new.total()) {
        Change::NotEnoughData
    } else if before.is_mixed() || now.is_mixed() {
        Change::Flaky
    } else if new.failed == 0 {
        Change::StillPasses
    } else {
        Change::StillFails
    };
    (change, Some(p_value))
}

/// Whether the pass rates differ, computed without division.
fn rates_differ(old: JudgedTrials, new: JudgedTrials) -> bool {
    old.passed * new.total() != new.passed * old.total()
}

/// Whether these numbers of trials can show a significant difference at all.
fn can_be_significant(before: usize, now: usize) -> bool {
    let extreme = (JudgedTrials { passed: before, failed: 0 }, JudgedTrials { passed: 0, failed: now });
    fisher_test(extreme.0, extreme.1) < SIGNIFICANCE
}

/// Returns how a suite changed as a whole.
pub fn suite_change(diffs: &[CaseDiff]) -> SuiteChange {
    let (mut worse, mut better) = (0, 0);
    for diff in diffs {
        let (Some(before), Some(now)) = (diff.before, diff.now) else {
            continue;
        };
        let old = diff.before_trials.unwrap_or_else(|| TrialCounts::single(before)).judged();
        let new = diff.now_trials.unwrap_or_else(|| TrialCounts::single(now)).judged();
        if old.total() > 0 && new.total() > 0 && rates_differ(old, new) {
            if old.rate() > new.rate() {
                worse += 1;
            } else {
                better += 1;
            }
        }
    }
    let p_value = sign_test(worse, better);
    let verdict = if count_compared(diffs) == 0 {
        Verdict::NothingToCompare
    } else if worse + better == 0 {
        Verdict::Unchanged
    } else if p_value < SIGNIFICANCE {
        if worse > better { Verdict::Regression } else { Verdict::Improvement }
    } else if sign_test(worse + better, 0) >= SIGNIFICANCE {
        Verdict::NotEnoughData
    } else {
        Verdict::Flaky
    };
    SuiteChange { verdict, worse, better, p_value }
}

/// Returns the number of cases that pass less often than before, but with too few trials to be significant.
fn count_inconclusive(diffs: &[CaseDiff]) -> usize {
    let is_worse = |diff: &CaseDiff| {
        let rate = |counts: Option<TrialCounts>| counts.and_then(|counts| counts.judged().rate());
        rate(diff.now_trials) < rate(diff.before_trials)
    };
    diffs.iter().filter(|diff| diff.change == Change::NotEnoughData && is_worse(diff)).count()
}

/// Returns the number of cases that have a verdict in both runs.
pub fn count_compared(diffs: &[CaseDiff]) -> usize {
    let is_compared = |change: Change| !matches!(change, Change::Added | Change::Removed | Change::NoVerdict);
    diffs.iter().filter(|diff| is_compared(diff.change)).count()
}

/// Returns the ids of the cases with this change.
fn ids_with_change(diffs: &[CaseDiff], change: Change) -> Vec<String> {
    diffs.iter().filter(|diff| diff.change == change).map(|diff| diff.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(Some(Outcome::Passed), Outcome::Failed, Change::Regression)]
    #[case(Some(Outcome::Failed), Outcome::Passed, Change::NewPass)]
    #[case(Some(Outcome::Passed), Outcome::Errored, Change::NoVerdict)]
    #[case(Some(Outcome::Errored), Outcome::Passed, Change::NoVerdict)]
    #[case(Some(Outcome::Failed), Outcome::Failed, Change::StillFails)]
    #[case(None, Outcome::Failed, Change::Added)]
    fn compares_single_outcomes(#[case] before: Option<Outcome>, #[case] now: Outcome, #[case] expected: Change) {
        assert_eq!(change(before, now), expected);
    }

    fn several(id: &str, passed: usize, failed: usize, errored: usize) -> EarlierCase {
        let outcome = match (errored, failed) {
            (0, 0) => Outcome::Passed,
            (0, _) => Outcome::Failed,
            _ => Outcome::Errored,
        };
        EarlierCase {
            id: id.to_owned(),
            description: String::new(),
            outcome,
            error: None,
            trials: Some(TrialCounts { passed, failed, errored }),
        }
    }

    fn once(id: &str, outcome: Outcome) -> EarlierCase {
        EarlierCase { id: id.to_owned(), description: String::new(), outcome, error: None, trials: None }
    }

    fn diff(before: EarlierCase, now: EarlierCase) -> CaseDiff {
        diff_cases(&[before], &[now]).pop().expect("one case")
    }

    #[rstest]
    #[case((5, 0), (0, 5), Change::Regression)]
    #[case((0, 4), (4, 0), Change::NewPass)]
    #[case((10, 0), (5, 5), Change::Regression)]
    #[case((10, 0), (9, 1), Change::Flaky)]
    #[case((3, 0), (0, 3), Change::Regression)]
    #[case((0, 2), (1, 0), Change::NewPass)]
    #[case((3, 0), (1, 2), Change::NotEnoughData)]
    #[case((0, 3), (2, 1), Change::NotEnoughData)]
    #[case((2, 1), (1, 2), Change::NotEnoughData)]
    #[case((2, 1), (2, 1), Change::Flaky)]
    #[case((2, 2), (1, 1), Change::Flaky)]
    #[case((5, 0), (5, 0), Change::StillPasses)]
    #[case((0, 2), (0, 5), Change::StillFails)]
    #[case((0, 0), (5, 0), Change::NoVerdict)]
    fn compares_several_trials_by_fisher_test(
        #[case] before: (usize, usize),
        #[case] now: (usize, usize),
        #[case] expected: Change,
    ) {
        // Errored trials do not matter.
        let errored = usize::from(before == (0, 0));
        let result = diff(several("c", before.0, before.1, errored), several("c", now.0, now.1, 0));
        assert_eq!(result.change, expected, "{:?}", result.p_value);
        assert_eq!(result.p_value.is_some(), expected != Change::NoVerdict);
        let with_errors = diff(several("c", before.0, before.1, 2), several("c", now.0, now.1, 3));
        assert_eq!((with_errors.change, with_errors.p_value), (result.change, result.p_value));
    }

    #[rstest]
    #[case(once("c", Outcome::Passed), several("c", 0, 5, 0), Change::Regression)]
    #[case(once("c", Outcome::Passed), several("c", 1, 4, 0), Change::NotEnoughData)]
    #[case(once("c", Outcome::Passed), several("c", 0, 20, 0), Change::Regression)]
    #[case(several("c", 30, 0, 0), once("c", Outcome::Failed), Change::Regression)]
    #[case(once("c", Outcome::Errored), several("c", 5, 0, 0), Change::NoVerdict)]
    fn compares_one_trial_with_several(
        #[case] before: EarlierCase,
        #[case] now: EarlierCase,
        #[case] expected: Change,
    ) {
        assert_eq!(diff(before, now).change, expected);
    }

    #[test]
    fn only_worse_cases_are_inconclusive() {
        let before = [
            several("worse", 3, 0, 0),
            several("better", 0, 3, 0),
            several("broken", 3, 0, 0),
            several("same", 2, 1, 0),
        ];
        let now = [
            several("worse", 1, 2, 0),
            several("better", 1, 2, 0),
            several("broken", 0, 3, 0),
            several("same", 2, 1, 0),
        ];
        assert_eq!(count_inconclusive(&diff_cases(&before, &now)), 1);
    }

    fn suite(worse: usize, better: usize, same: usize) -> SuiteChange {
        let ids: Vec<String> = (0..worse + better + same).map(|number| number.to_string()).collect();
        let side = |worse_is: Outcome, better_is: Outcome| -> Vec<EarlierCase> {
            let outcome = |number: usize| match number {
                _ if number < worse => worse_is,
                _ if number < worse + better => better_is,
                _ => Outcome::Passed,
            };
            ids.iter().enumerate().map(|(number, id)| once(id, outcome(number))).collect()
        };
        suite_change(&diff_cases(&side(Outcome::Passed, Outcome::Failed), &side(Outcome::Failed, Outcome::Passed)))
    }

    #[rstest]
    #[case(0, 0, Verdict::Unchanged)]
    #[case(5, 0, Verdict::NotEnoughData)]
    #[case(6, 0, Verdict::Regression)]
    #[case(0, 6, Verdict::Improvement)]
    #[case(4, 3, Verdict::Flaky)]
    #[case(6, 1, Verdict::Flaky)]
    #[case(8, 1, Verdict::Regression)]
    fn judges_a_suite_by_the_direction_of_its_cases(
        #[case] worse: usize,
        #[case] better: usize,
        #[case] verdict: Verdict,
    ) {
        let change = suite(worse, better, 4);
        assert_eq!((change.verdict, change.worse, change.better), (verdict, worse, better));
    }

    #[test]
    fn unpaired_and_errored_cases_do_not_count() {
        let before = [once("gone", Outcome::Passed), once("e", Outcome::Passed), several("t", 0, 0, 3)];
        let now = [once("new", Outcome::Failed), once("e", Outcome::Errored), several("t", 3, 0, 0)];
        let change = suite_change(&diff_cases(&before, &now));
        assert_eq!((change.verdict, change.p_value), (Verdict::NothingToCompare, 1.0));
    }

    #[rstest]
    #[case(json!({"id": "a", "passed": true}), None)]
    #[case(json!({"id": "a", "passed": true, "trials": 5}), None)]
    #[case(json!({"id": "a", "passed": true, "trials": null}), None)]
    #[case(json!({"id": "a", "passed": true, "trials": {"count": 5}}), None)]
    #[case(json!({"id": "a", "passed": true, "trials": {"passed": 2, "failed": 1, "tries": []}}), Some((2, 1)))]
    fn ignores_trials_of_other_runners(#[case] case: serde_json::Value, #[case] expected: Option<(usize, usize)>) {
        let read: EarlierCase = serde_json::from_value(case).expect("valid case");
        assert_eq!(read.trials.map(|counts| (counts.passed, counts.failed)), expected);
    }

    proptest! {
        #[test]
        fn swapping_the_runs_gives_the_opposite(a in 0_usize..30, b in 0_usize..30, c in 0_usize..30, d in 0_usize..30) {
            let forward = diff(several("c", a, b, 0), several("c", c, d, 0)).change;
            let backward = diff(several("c", c, d, 0), several("c", a, b, 0)).change;
            let opposite = match forward {
                Change::Regression => Change::NewPass,
                Change::NewPass => Change::Regression,
                same => same,
            };
            prop_assert_eq!(backward, opposite);
        }

        #[test]
        fn single_trials_need_no_statistics(before in 0_u8..3, now in 0_u8..3) {
            let outcome = |number| [Outcome::Passed, Outcome::Failed, Outcome::Errored][usize::from(number)];
            let (before, now) = (outcome(before), outcome(now));
            let result = diff(once("c", before), once("c", now));
            prop_assert_eq!(result.change, change(Some(before), now));
            prop_assert_eq!((result.p_value, result.before_trials, result.now_trials), (None, None, None));
        }
    }
}
