//! Confidence intervals and exact tests for small numbers of trials.
//!
//! Only basic arithmetic and square roots are used, so results are bit-identical on every machine. Weights are relative
//! to the largest one, to avoid overflow.

/// Significance level: a change counts if chance alone would produce it less often than this.
pub const SIGNIFICANCE: f64 = 0.05;

/// The quantile of the normal distribution for a 95% interval.
pub const Z_95: f64 = 1.959_963_984_540_054;

/// Relative difference up to which two weights count as equal, to absorb rounding errors.
const TOLERANCE: f64 = 1e-7;

/// A confidence interval of a proportion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// Returns `passed / total`, or `None` if `total` is 0.
pub fn rate(passed: usize, total: usize) -> Option<f64> {
    (total > 0).then(|| number(passed) / number(total))
}

/// Returns the 95% Wilson score interval of a proportion.
pub fn wilson(passed: usize, total: usize) -> Option<Interval> {
    let share = rate(passed, total)?;
    let trials = number(total);
    let square = Z_95 * Z_95;
    let scale = 1.0 + square / trials;
    let centre = (share + square / (2.0 * trials)) / scale;
    let half = Z_95 * (share * (1.0 - share) / trials + square / (4.0 * trials * trials)).sqrt() / scale;
    // Rounding must not keep the interval from reaching 0 or 1.
    let low = if passed == 0 { 0.0 } else { (centre - half).max(0.0) };
    let high = if passed >= total { 1.0 } else { (centre + half).min(1.0) };
    Some(Interval { low, high })
}

/// Returns the probability that at least one of `k` trials passes, drawn from `total` of which `passed` did; `None` if
/// `k` is out of range.
pub fn pass_at_k(total: usize, passed: usize, k: usize) -> Option<f64> {
    Some(1.0 - all_of(total, total.checked_sub(passed)?, k)?)
}

/// Returns the probability that all of `k` trials pass, drawn from `total` of which `passed` did.
pub fn pass_hat_k(total: usize, passed: usize, k: usize) -> Option<f64> {
    if passed > total { None } else { all_of(total, passed, k) }
}

/// Returns `C(part, k) / C(total, k)`.
fn all_of(total: usize, part: usize, k: usize) -> Option<f64> {
    if k == 0 || k > total {
        return None;
    }
    if part < k {
        return Some(0.0);
    }
    Some((0..k).map(|drawn| number(part - drawn) / number(total - drawn)).product())
}

/// Two-sided sign test: returns the probability of a split at least as uneven if both directions are equally likely.
/// For paired outcomes this is `McNemar`'s exact test.
pub fn sign_test(worse: usize, better: usize) -> f64 {
    let total = worse + better;
    let fewer = worse.min(better);
    let middle = total / 2;
    // Binomial weights relative to the middle one.
    let mut weight = 1.0;
    let (mut tail, mut below) = (0.0, 0.0);
    for split in (0..=middle).rev() {
        below += weight;
        if split <= fewer {
            tail += weight;
        }
        weight *= number(split) / number(total - split + 1);
    }
    // The upper half mirrors the lower one; an even total has a single middle split.
    let all = 2.0 * below - if total.is_multiple_of(2) { 1.0 } else { 0.0 };
    (2.0 * tail / all).min(1.0)
}

/// Judged trials of one side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedTrials {
    pub passed: usize,
    pub failed: usize,
}

impl JudgedTrials {
    pub fn total(self) -> usize {
        self.passed + self.failed
    }

    pub fn rate(self) -> Option<f64> {
        rate(self.passed, self.total())
    }
}

/// Fisher's exact test, two-sided: returns the probability of tables with the same sums that are at most as likely as
/// this one.
pub fn fisher_test(before: JudgedTrials, now: JudgedTrials) -> f64 {
    // Sorted, so that rounding at the edge of significance does not depend on the order of the arguments.
    let size = |trials: JudgedTrials| (trials.total(), trials.passed);
    let (before, now) = if size(before) <= size(now) { (before, now) } else { (now, before) };
    let (first, second) = (before.total(), now.total());
    let passed = before.passed + now.passed;
    let (min, max) = (passed.saturating_sub(second), passed.min(first));
    // How much likelier one more pass on the first side is.
    let step = |cell: usize| {
        let up = number(first - cell) * number(passed - cell);
        up / (number(cell + 1) * number(second + cell + 1 - passed))
    };
    let weights = {
        let mut weights = vec![0.0; max - min + 1];
        // From the most likely cell outwards, so that weights only shrink.
        let peak = ((first + 1) * (passed + 1) / (first + second + 2)).clamp(min, max);
        weights[peak - min] = 1.0;
        for cell in peak..max {
            weights[cell + 1 - min] = weights[cell - min] * step(cell);
        }
        for cell in (min..peak).rev() {
            weights[cell - min] = weights[cell + 1 - min] / step(cell);
        }
        weights
    };
    let limit = weights[before.passed - min] * (1.0 + TOLERANCE);
    let all: f64 = weights.iter().sum();
    let extreme: f64 = weights.iter().filter(|weight| **weight <= limit).sum();
    (extreme / all).min(1.0)
}

/// Returns the percentile of the values by the nearest-rank method, so the result is one of them.
pub fn percentile(values: &[u64], percent: u8) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * usize::from(percent.min(100))).div_ceil(100);
    sorted.get(rank.max(1) - 1).copied()
}

#[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^52")]
pub(crate) fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[track_caller]
    fn assert_close(actual: f64, expected: f64) {
        let scale = expected.abs().max(1e-300);
        assert!((actual - expected).abs() / scale < 5e-4, "{actual} is not {expected}");
    }

    fn fisher(a: usize, b: usize, c: usize, d: usize) -> f64 {
        fisher_test(JudgedTrials { passed: a, failed: b }, JudgedTrials { passed: c, failed: d })
    }

    #[rstest]
    // Newcombe 1998, table I: the score method without continuity correction.
    #[case(81, 263, 0.2553, 0.3662)]
    #[case(15, 148, 0.0624, 0.1605)]
    #[case(0, 20, 0.0, 0.1611)]
    #[case(1, 29, 0.0061, 0.1718)]
    #[case(29, 29, 0.8830, 1.0)]
    #[case(47, 50, 0.8378, 0.9794)]
    fn wilson_matches_published_values(
        #[case] passed: usize,
        #[case] total: usize,
        #[case] low: f64,
        #[case] high: f64,
    ) {
        let interval = wilson(passed, total).expect("trials");
        assert!((interval.low - low).abs() < 6e-5 && (interval.high - high).abs() < 6e-5, "{interval:?}");
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "must be bit-identical")]
    fn fisher_test_is_symmetric() {
        // Exactly 0.05, the significance level.
        assert_eq!(fisher(12, 0, 2, 2), fisher(2, 2, 12, 0));
    }

    #[rstest]
    #[case(5, 3, 1, 0.6, 0.6)]
    #[case(5, 3, 2, 0.9, 0.3)]
    #[case(5, 3, 4, 1.0, 0.0)]
    #[case(10, 1, 5, 0.5, 0.0)]
    #[case(200, 13, 10, 0.497_551_114_730_606, 1.273_885_1e-14)]
    fn pass_at_k_matches_known_values(
        #[case] n: usize,
        #[case] c: usize,
        #[case] k: usize,
        #[case] any: f64,
        #[case] all: f64,
    ) {
        assert_close(pass_at_k(n, c, k).expect("enough"), any);
        assert_close(pass_hat_k(n, c, k).expect("enough"), all);
    }

    #[rstest]
    #[case(3, 1, 4)]
    #[case(3, 1, 0)]
    #[case(0, 0, 1)]
    #[case(3, 4, 1)]
    fn pass_at_k_needs_enough_trials(#[case] n: usize, #[case] c: usize, #[case] k: usize) {
        assert_eq!((pass_at_k(n, c, k), pass_hat_k(n, c, k)), (None, None));
    }

    #[rstest]
    #[case(0, 0, 1.0)]
    #[case(0, 1, 1.0)]
    #[case(0, 5, 0.0625)]
    #[case(6, 0, 0.031_25)]
    #[case(3, 3, 1.0)]
    #[case(1, 8, 0.039_062_5)]
    #[case(5, 15, 0.041_389)]
    // Computed from the definition with integers.
    #[case(59, 41, 0.088_626)]
    #[case(600, 400, 2.728_464_156e-10)]
    fn sign_test_matches_known_values(#[case] worse: usize, #[case] better: usize, #[case] expected: f64) {
        assert_close(sign_test(worse, better), expected);
        assert_close(sign_test(better, worse), expected);
    }

    #[rstest]
    // The lady tasting tea.
    #[case(3, 1, 1, 3, 0.485_714)]
    #[case(4, 0, 0, 4, 0.028_571)]
    // Fisher's criminal twins.
    #[case(2, 15, 10, 3, 0.000_537)]
    // Studying and dieting.
    #[case(1, 9, 11, 3, 0.002_759)]
    #[case(5, 0, 0, 5, 0.007_937)]
    #[case(3, 0, 0, 3, 0.1)]
    #[case(8, 2, 1, 5, 0.034_965)]
    #[case(0, 0, 3, 2, 1.0)]
    #[case(5, 0, 5, 0, 1.0)]
    fn fisher_test_matches_known_values(
        #[case] a: usize,
        #[case] b: usize,
        #[case] c: usize,
        #[case] d: usize,
        #[case] expected: f64,
    ) {
        let actual = fisher(a, b, c, d);
        assert!((actual - expected).abs() < 1e-6, "{actual} is not {expected}");
    }

    #[test]
    fn thousands_of_trials_do_not_overflow_or_underflow() {
        assert_close(sign_test(5_000, 5_000), 1.0);
        assert!(sign_test(4_000, 6_000) < 1e-80 && sign_test(4_000, 6_000) > 0.0);
        assert_close(fisher(5_000, 5_000, 5_000, 5_000), 1.0);
        let slight = fisher(9_000, 1_000, 8_900, 1_100);
        assert_close(slight, 0.022_378_874_8);
        assert!(fisher(10_000, 0, 0, 10_000) < 1e-300);
        assert!(pass_at_k(10_000, 1, 5_000).is_some_and(|share| (share - 0.5).abs() < 1e-9));
        assert_eq!(pass_hat_k(10_000, 10_000, 10_000), Some(1.0));
    }

    #[rstest]
    #[case(&[], 95, None)]
    #[case(&[7], 0, Some(7))]
    #[case(&[50, 15, 40, 20, 35], 30, Some(20))]
    #[case(&[50, 15, 40, 20, 35], 40, Some(20))]
    #[case(&[50, 15, 40, 20, 35], 50, Some(35))]
    #[case(&[50, 15, 40, 20, 35], 100, Some(50))]
    fn percentile_uses_the_nearest_rank(#[case] values: &[u64], #[case] percent: u8, #[case] expected: Option<u64>) {
        assert_eq!(percentile(values, percent), expected);
    }

    #[test]
    fn percentile_of_a_hundred_values() {
        let values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!((percentile(&values, 95), percentile(&values, 50)), (Some(95), Some(50)));
    }

    /// Computes the sign test from its definition with integers.
    fn sign_by_definition(worse: u32, better: u32) -> f64 {
        let total = worse + better;
        let choose = |k: u32| (0..k).fold(1_u128, |sum, i| sum * u128::from(total - i) / u128::from(i + 1));
        let tail: u128 = (0..=worse.min(better)).map(choose).sum();
        #[expect(clippy::cast_precision_loss, reason = "a test's tolerance is wider")]
        let share = 2.0 * tail as f64 / 2_f64.powi(total.cast_signed());
        share.min(1.0)
    }

    proptest! {
        #[test]
        fn wilson_interval_contains_the_rate(total in 1_usize..10_000, part in 0.0..=1.0_f64) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "small")]
            let passed = (total as f64 * part) as usize;
            let Interval { low, high } = wilson(passed, total).expect("trials");
            let share = rate(passed, total).expect("trials");
            prop_assert!(0.0 <= low && low <= share && share <= high && high <= 1.0);
            let mirrored = wilson(total - passed, total).expect("trials");
            prop_assert!((mirrored.low + high - 1.0).abs() < 1e-9);
        }

        #[test]
        fn pass_at_k_grows_and_pass_hat_k_shrinks_with_k(total in 1_usize..300, passed in 0_usize..300, k in 1_usize..300) {
            let (passed, k) = (passed.min(total), k.min(total));
            let (any, all) = (pass_at_k(total, passed, k).expect("k"), pass_hat_k(total, passed, k).expect("k"));
            let share = rate(passed, total).expect("trials");
            prop_assert!(all <= share + 1e-12 && share <= any + 1e-12);
            prop_assert!((0.0..=1.0).contains(&any) && (0.0..=1.0).contains(&all));
            if k < total {
                prop_assert!(pass_at_k(total, passed, k + 1).expect("k") >= any - 1e-12);
                prop_assert!(pass_hat_k(total, passed, k + 1).expect("k") <= all + 1e-12);
            }
        }

        #[test]
        fn sign_test_equals_its_definition(worse in 0_u32..50, better in 0_u32..50) {
            let actual = sign_test(worse as usize, better as usize);
            prop_assert!((actual - sign_by_definition(worse, better)).abs() < 1e-9, "{actual}");
        }

        #[test]
        fn fisher_test_is_symmetric_in_all_tables(a in 0_usize..400, b in 0_usize..400, c in 0_usize..400, d in 0_usize..400) {
            let p_value = fisher(a, b, c, d);
            prop_assert!(p_value > 0.0 && p_value <= 1.0);
            for same in [fisher(c, d, a, b), fisher(b, a, d, c), fisher(a, c, b, d)] {
                prop_assert!((p_value - same).abs() <= 1e-9 * p_value.max(1e-12) + 1e-12, "{p_value} {same}");
            }
        }

        #[test]
        fn percentile_is_one_of_the_values(values in prop::collection::vec(any::<u64>(), 1..50), percent in 0_u8..=100) {
            let actual = percentile(&values, percent).expect("values");
            let below = values.iter().filter(|value| **value <= actual).count();
            prop_assert!(values.contains(&actual));
            prop_assert!(below * 100 >= values.len() * usize::from(percent));
        }
    }
}
