//! Figures of how well verdicts match ratings.

use schemars::JsonSchema;
use serde::Serialize;

use super::counts::AgreementCounts;
use super::estimate::Estimate;
use super::kappa::cohen_kappa;

/// Figures of one version of an eval. The positive class is a passed verdict and a positive rating. A figure is null
/// without data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Share of compared verdicts that match the rating.
    pub accuracy: Option<Estimate>,
    /// Share of passed traces that are rated positive.
    pub precision: Option<Estimate>,
    /// Share of traces rated positive that passed.
    pub recall: Option<Estimate>,
    /// Harmonic mean of precision and recall.
    pub f1: Option<Estimate>,
    /// Cohen's kappa: agreement beyond chance. Also null if all verdicts and all ratings are the same, since chance
    /// would agree as well.
    pub kappa: Option<Estimate>,
    /// Share of compared verdicts that contradict the rating.
    pub contradiction_rate: Option<Estimate>,
    /// Share of executions without a verdict.
    pub error_rate: Option<Estimate>,
}

impl Figures {
    pub fn of(counts: &AgreementCounts) -> Self {
        let compared = counts.compared();
        let right = counts.passed_positive;
        Self {
            accuracy: Estimate::proportion(right + counts.failed_negative, compared),
            precision: Estimate::proportion(right, right + counts.passed_negative),
            recall: Estimate::proportion(right, right + counts.failed_positive),
            f1: f1(right, counts.contradictions()),
            kappa: cohen_kappa(&[
                [counts.passed_positive, counts.passed_negative],
                [counts.failed_positive, counts.failed_negative],
            ]),
            contradiction_rate: Estimate::proportion(counts.contradictions(), compared),
            error_rate: Estimate::proportion(counts.errored, counts.executions()),
        }
    }
}

/// Returns F1 = 2J / (1 + J), where J is the share of true positives among all positives on either side. F1 increases
/// with J, so the bounds of J's interval map to those of F1.
fn f1(right: u64, wrong: u64) -> Option<Estimate> {
    let share = Estimate::proportion(right, right + wrong)?;
    let transform = |share: f64| 2.0 * share / (1.0 + share);
    Some(Estimate { value: transform(share.value), low: transform(share.low), high: transform(share.high) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn counts(cells: [u64; 4]) -> AgreementCounts {
        let [passed_positive, passed_negative, failed_positive, failed_negative] = cells;
        AgreementCounts { passed_positive, passed_negative, failed_positive, failed_negative, ..Default::default() }
    }

    fn values(figures: &Figures) -> [Option<f64>; 6] {
        let Figures { accuracy, precision, recall, f1, kappa, contradiction_rate, .. } = *figures;
        [accuracy, precision, recall, f1, kappa, contradiction_rate].map(|figure| figure.map(|figure| figure.value))
    }

    #[rstest]
    // By hand: 20 of 25, 20 of 30, 40 / 55.
    #[case([20, 5, 10, 15], [Some(0.7), Some(0.8), Some(2.0 / 3.0), Some(40.0 / 55.0), Some(0.4), Some(0.3)])]
    #[case([0, 0, 0, 0], [None; 6])]
    // Nothing passed and nothing is positive: precision and recall are undefined.
    #[case([0, 0, 0, 9], [Some(1.0), None, None, None, None, Some(0.0)])]
    #[case([0, 3, 4, 0], [Some(0.0), Some(0.0), Some(0.0), Some(0.0), Some(-24.0 / 25.0), Some(1.0)])]
    #[case([7, 0, 0, 0], [Some(1.0), Some(1.0), Some(1.0), Some(1.0), None, Some(0.0)])]
    fn figures_of_known_tables(#[case] cells: [u64; 4], #[case] expected: [Option<f64>; 6]) {
        for (actual, expected) in values(&Figures::of(&counts(cells))).into_iter().zip(expected) {
            let same = match (actual, expected) {
                (Some(actual), Some(expected)) => (actual - expected).abs() < 1e-12,
                (actual, expected) => actual == expected,
            };
            assert!(same, "{actual:?} is not {expected:?} in {cells:?}");
        }
    }

    #[test]
    fn errors_are_counted_among_all_executions() {
        let counts =
            AgreementCounts { neutral: 3, unrated: 4, errored: 5, passed_positive: 8, ..AgreementCounts::default() };
        let figures = Figures::of(&counts);
        assert_eq!(figures.error_rate.map(|rate| rate.value), Some(0.25));
        assert_eq!(figures.accuracy, Estimate::proportion(8, 8));
    }

    proptest! {
        #[test]
        fn every_figure_is_in_its_interval_and_bounds(cells in prop::array::uniform4(0_u64..2_000), errored in 0_u64..99) {
            let figures = Figures::of(&AgreementCounts { errored, ..counts(cells) });
            let Figures { accuracy, precision, recall, f1, kappa, contradiction_rate, error_rate } = figures;
            for share in [accuracy, precision, recall, f1, contradiction_rate, error_rate].into_iter().flatten() {
                prop_assert!(0.0 <= share.low && share.low <= share.value, "{share:?}");
                prop_assert!(share.value <= share.high && share.high <= 1.0, "{share:?}");
            }
            if let Some(kappa) = kappa {
                prop_assert!(-1.0 <= kappa.low && kappa.low <= kappa.value + 1e-12, "{kappa:?}");
                prop_assert!(kappa.value <= kappa.high + 1e-12 && kappa.high <= 1.0, "{kappa:?}");
            }
        }

        /// Swapping verdicts and ratings swaps precision and recall only.
        #[test]
        fn swapping_sides_swaps_precision_and_recall(cells in prop::array::uniform4(0_u64..2_000)) {
            let [a, b, c, d] = cells;
            let (figures, transposed) = (Figures::of(&counts(cells)), Figures::of(&counts([a, c, b, d])));
            prop_assert_eq!((figures.precision, figures.recall), (transposed.recall, transposed.precision));
            prop_assert_eq!((figures.accuracy, figures.f1), (transposed.accuracy, transposed.f1));
        }

        /// One more contradiction improves no figure.
        #[test]
        fn a_contradiction_never_improves_a_figure(cells in prop::array::uniform4(0_u64..500)) {
            let [a, b, c, d] = cells;
            let (before, after) = (Figures::of(&counts(cells)), Figures::of(&counts([a, b + 1, c, d])));
            for (before, after) in [(before.accuracy, after.accuracy), (before.precision, after.precision), (before.f1, after.f1)] {
                if let (Some(before), Some(after)) = (before, after) {
                    prop_assert!(after.value <= before.value && after.high <= before.high + 1e-12);
                }
            }
        }
    }
}
