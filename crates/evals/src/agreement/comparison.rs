//! Comparison of two versions of an eval.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::Serialize;

use super::estimate::{Estimate, to_usize};
use crate::contradiction::contradicts;
use karat_core::rating::Rating;
use karat_core::statistics::{SIGNIFICANCE, sign_test};

/// Verdicts of two versions on one trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictPair {
    pub trace_id: String,
    /// `None` on an error.
    pub before: Option<bool>,
    pub now: Option<bool>,
    /// The reason, or the error.
    pub before_reason: Option<String>,
    pub now_reason: Option<String>,
    pub rating: Option<Rating>,
}

/// Verdicts of two versions of an eval on the traces that both have judged.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat eval compare")]
pub struct VersionComparison {
    pub eval_id: String,
    pub before: VersionFigures,
    pub now: VersionFigures,
    /// Number of traces that both versions have judged, including errors.
    pub common_traces: u64,
    /// Number of these with a non-neutral rating, the basis of accuracy. An error counts as a wrong verdict; otherwise
    /// a version could improve by crashing where it was wrong.
    pub compared: u64,
    /// Compared traces whose verdict was wrong or missing and is now correct.
    pub better: u64,
    /// Compared traces whose verdict was correct and is now wrong or missing.
    pub worse: u64,
    /// Difference of the two accuracies.
    pub net_change: Option<f64>,
    /// Probability of changes at least this uneven by chance (exact `McNemar` test).
    pub p_value: f64,
    pub direction: Direction,
    /// Traces with different verdicts: worse first, then lost, better, gained and unrated.
    pub changed: Vec<ChangedVerdict>,
}

/// One version in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct VersionFigures {
    /// Null for code that is not a version yet.
    pub version: Option<u64>,
    /// On the compared traces; an error counts as wrong.
    pub accuracy: Option<Estimate>,
    /// Common traces on which this version errored.
    pub errored: u64,
}

/// Direction of the changes overall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Significantly more changes for the better (p < 0.05), and no significant loss of verdicts to errors.
    Better,
    /// Significantly more changes for the worse (p < 0.05).
    Worse,
    /// Not significant, or better but with many verdicts lost.
    Unclear,
}

/// A trace with different verdicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedVerdict {
    pub trace_id: String,
    pub change: Change,
    /// Null on an error.
    pub before: Option<bool>,
    pub now: Option<bool>,
    /// The reason, or the error.
    pub before_reason: Option<String>,
    pub now_reason: Option<String>,
    /// Null if unrated.
    pub rating: Option<Rating>,
}

/// How a verdict changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Was correct, is now wrong.
    Worse,
    /// Was a verdict, is now an error.
    Lost,
    /// Was wrong, is now correct.
    Better,
    /// Was an error, is now a verdict.
    Gained,
    /// Changed, but no rating shows which verdict is correct.
    Unrated,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Change::Worse => "worse",
            Change::Lost => "lost",
            Change::Better => "better",
            Change::Gained => "gained",
            Change::Unrated => "unrated",
        }
    }
}

impl VersionComparison {
    /// Compares two versions by their verdicts on the same traces.
    pub fn of(eval_id: &str, before: u64, now: u64, pairs: Vec<VerdictPair>) -> Self {
        let common_traces = pairs.len() as u64;
        let errors = |verdict: fn(&VerdictPair) -> Option<bool>| {
            pairs.iter().filter(|pair| verdict(pair).is_none()).count() as u64
        };
        let (errored_before, errored_now) = (errors(|pair| pair.before), errors(|pair| pair.now));
        let (mut both_right, mut both_wrong, mut better, mut worse) = (0_u64, 0_u64, 0_u64, 0_u64);
        let mut changed = Vec::new();
        for pair in pairs {
            match correctness(&pair) {
                Some((true, true)) => both_right += 1,
                Some((false, false)) => both_wrong += 1,
                Some((false, true)) => better += 1,
                Some((true, false)) => worse += 1,
                None => {}
            }
            changed.extend(changed_verdict(pair));
        }
        changed.sort_by(|left, right| (left.change, &left.trace_id).cmp(&(right.change, &right.trace_id)));
        let compared = both_right + both_wrong + better + worse;
        let side = |version: u64, errored: u64, right: u64| VersionFigures {
            version: Some(version),
            accuracy: Estimate::proportion(right, compared),
            errored,
        };
        let before = side(before, errored_before, both_right + worse);
        let now = side(now, errored_now, both_right + better);
        let p_value = sign_test(to_usize(worse), to_usize(better));
        let count =
            |change: Change| changed.iter().filter(|changed: &&ChangedVerdict| changed.change == change).count();
        let (lost, gained) = (count(Change::Lost), count(Change::Gained));
        // Includes unrated traces: a version that crashes on most of them is not better for being right on a few.
        let breaks_more = lost > gained && sign_test(gained, lost) < SIGNIFICANCE;
        Self {
            eval_id: eval_id.to_owned(),
            net_change: before.accuracy.zip(now.accuracy).map(|(before, now)| now.value - before.value),
            before,
            now,
            common_traces,
            compared,
            better,
            worse,
            p_value,
            direction: match better.cmp(&worse) {
                _ if p_value >= SIGNIFICANCE => Direction::Unclear,
                Ordering::Less => Direction::Worse,
                _ if breaks_more => Direction::Unclear,
                _ => Direction::Better,
            },
            changed,
        }
    }

    /// Returns the number of verdicts with this change.
    pub fn count(&self, change: Change) -> usize {
        self.changed.iter().filter(|changed| changed.change == change).count()
    }
}

/// Returns whether each verdict is correct (a missing one is not); `None` without a usable rating.
fn correctness(pair: &VerdictPair) -> Option<(bool, bool)> {
    let rating = pair.rating.filter(|rating| *rating != Rating::Neutral)?;
    let right = |verdict: Option<bool>| verdict.is_some_and(|passed| !contradicts(rating, passed));
    Some((right(pair.before), right(pair.now)))
}

fn changed_verdict(pair: VerdictPair) -> Option<ChangedVerdict> {
    if pair.before == pair.now {
        return None;
    }
    let change = match (pair.before, pair.now, correctness(&pair)) {
        (Some(_), None, _) => Change::Lost,
        (None, _, _) => Change::Gained,
        (_, _, Some((_, true))) => Change::Better,
        (_, _, Some((_, false))) => Change::Worse,
        (_, _, None) => Change::Unrated,
    };
    Some(ChangedVerdict {
        trace_id: pair.trace_id,
        change,
        before: pair.before,
        now: pair.now,
        before_reason: pair.before_reason,
        now_reason: pair.now_reason,
        rating: pair.rating,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn pair(id: &str, before: Option<bool>, now: Option<bool>, rating: Option<Rating>) -> VerdictPair {
        VerdictPair {
            trace_id: id.to_owned(),
            before,
            now,
            before_reason: Some("then".to_owned()),
            now_reason: None,
            rating,
        }
    }

    #[rstest]
    #[case(Some(true), Some(true), Some(Rating::Negative), None)]
    #[case(Some(true), Some(false), Some(Rating::Negative), Some(Change::Better))]
    #[case(Some(true), Some(false), Some(Rating::Positive), Some(Change::Worse))]
    #[case(Some(false), Some(true), Some(Rating::Positive), Some(Change::Better))]
    #[case(Some(false), Some(true), Some(Rating::Neutral), Some(Change::Unrated))]
    #[case(Some(false), Some(true), None, Some(Change::Unrated))]
    #[case(Some(true), None, Some(Rating::Positive), Some(Change::Lost))]
    #[case(None, Some(true), Some(Rating::Positive), Some(Change::Gained))]
    #[case(None, None, Some(Rating::Positive), None)]
    fn classifies_a_change_by_the_rating(
        #[case] before: Option<bool>,
        #[case] now: Option<bool>,
        #[case] rating: Option<Rating>,
        #[case] expected: Option<Change>,
    ) {
        let changed = changed_verdict(pair("t", before, now, rating));
        assert_eq!(changed.map(|changed| changed.change), expected);
    }

    #[test]
    fn eight_of_nine_better_is_significant() {
        let mut pairs: Vec<VerdictPair> =
            (0..8).map(|id| pair(&id.to_string(), Some(true), Some(false), Some(Rating::Negative))).collect();
        pairs.push(pair("9", Some(true), Some(false), Some(Rating::Positive)));
        pairs.push(pair("e", Some(true), None, None));
        let comparison = VersionComparison::of("eval_x", 1, 2, pairs.clone());
        assert_eq!((comparison.better, comparison.worse, comparison.compared), (8, 1, 9));
        assert_eq!((comparison.direction, comparison.changed[0].change), (Direction::Better, Change::Worse));
        assert!((comparison.p_value - 0.039_062_5).abs() < 1e-9);
        assert!(comparison.net_change.is_some_and(|net| (net - 7.0 / 9.0).abs() < 1e-12));
        assert_eq!((comparison.before.errored, comparison.now.errored), (0, 1));
        let fewer = VersionComparison::of("eval_x", 1, 2, pairs[4..].to_vec());
        assert_eq!(fewer.direction, Direction::Unclear);
        let none = VersionComparison::of("eval_x", 1, 2, Vec::new());
        assert_eq!((none.net_change, none.direction, none.common_traces), (None, Direction::Unclear, 0));
    }

    #[test]
    fn errors_do_not_make_a_version_better() {
        let rating = |id: usize| if id.is_multiple_of(2) { Rating::Positive } else { Rating::Negative };
        // All passed before. Now most crash, and the remaining few are correct.
        let pairs = |rated: bool| -> Vec<VerdictPair> {
            let rating_of = |id: usize| (rated || id < 17).then(|| rating(id));
            let now = |id: usize| (id < 17).then(|| rating(id) == Rating::Positive);
            (0..200).map(|id| pair(&id.to_string(), Some(true), now(id), rating_of(id))).collect()
        };
        let comparison = VersionComparison::of("eval_x", 1, 2, pairs(true));
        assert_eq!((comparison.better, comparison.worse, comparison.compared), (8, 91, 200));
        assert_eq!((comparison.direction, comparison.count(Change::Lost)), (Direction::Worse, 183));
        assert_eq!(comparison.now.accuracy, Estimate::proportion(17, 200));
        // The traces that crash now are unrated.
        let comparison = VersionComparison::of("eval_x", 1, 2, pairs(false));
        assert_eq!((comparison.better, comparison.worse, comparison.compared), (8, 0, 17));
        assert_eq!(comparison.direction, Direction::Unclear);
    }

    proptest! {
        /// Swapping the versions swaps better and worse.
        #[test]
        fn comparison_is_antisymmetric(kinds in prop::collection::vec((0_u8..3, 0_u8..3, 0_u8..4), 0..60)) {
            let verdict = |kind: u8| match kind { 0 => None, 1 => Some(true), _ => Some(false) };
            let rating = |kind: u8| Rating::ALL.get(usize::from(kind)).copied();
            let pairs: Vec<VerdictPair> = kinds.iter().enumerate()
                .map(|(id, (before, now, rated))| pair(&id.to_string(), verdict(*before), verdict(*now), rating(*rated)))
                .collect();
            let swapped: Vec<VerdictPair> =
                pairs.iter().map(|pair| VerdictPair { before: pair.now, now: pair.before, ..pair.clone() }).collect();
            let (forward, backward) = (VersionComparison::of("e", 1, 2, pairs), VersionComparison::of("e", 2, 1, swapped));
            prop_assert_eq!((forward.better, forward.worse), (backward.worse, backward.better));
            prop_assert_eq!(forward.p_value.to_bits(), backward.p_value.to_bits());
            prop_assert_eq!(forward.changed.len(), backward.changed.len());
            prop_assert_eq!((forward.before.accuracy, forward.now.accuracy), (backward.now.accuracy, backward.before.accuracy));
        }
    }
}
