//! Cohen's kappa: agreement of two raters beyond chance.

use super::estimate::{Estimate, to_f64, to_usize};
use karat_core::statistics::wilson;

/// Smaller variances are rounding errors.
const MIN_VARIANCE: f64 = 1e-12;

/// Returns Cohen's kappa of a table of counts, with the interval from its asymptotic standard error (Fleiss, Cohen and
/// Everitt 1969). `None` for an empty table, or if both raters always gave the same single value.
///
/// If the raters always agree, or one of them always gave the same value, that standard error is 0 regardless of the
/// sample size and is useless. The interval is then derived from Wilson's interval of the observed agreement.
pub fn cohen_kappa<const K: usize>(table: &[[u64; K]; K]) -> Option<Estimate> {
    let total: u64 = table.iter().flatten().sum();
    let rows: [u64; K] = std::array::from_fn(|row| table[row].iter().sum());
    let columns: [u64; K] = std::array::from_fn(|column| table.iter().map(|row| row[column]).sum());
    // In integers, so that perfect agreement by chance is detected exactly.
    let by_chance: u128 = rows.iter().zip(columns).map(|(row, column)| u128::from(*row) * u128::from(column)).sum();
    if by_chance == u128::from(total) * u128::from(total) {
        return None;
    }
    let all = to_f64(total);
    let share = |count: u64| to_f64(count) / all;
    let agreeing: u64 = (0..K).map(|index| table[index][index]).sum();
    let observed = share(agreeing);
    let expected: f64 = rows.iter().zip(columns).map(|(row, column)| share(*row) * share(column)).sum();
    let (missed, possible) = (1.0 - observed, 1.0 - expected);
    let value = 1.0 - missed / possible;
    let by_observed = || {
        let interval = wilson(to_usize(agreeing), to_usize(total))?;
        let kappa = |observed: f64| (1.0 - (1.0 - observed) / possible).clamp(-1.0, 1.0);
        Some(Estimate { value, low: kappa(interval.low).min(value), high: kappa(interval.high).max(value) })
    };
    let is_single_valued = |sums: &[u64; K]| sums.iter().filter(|sum| **sum > 0).count() == 1;
    // Checked in integers: rounding would leave a tiny standard error instead of 0.
    if agreeing == total || is_single_valued(&rows) || is_single_valued(&columns) {
        return by_observed();
    }
    let mut spread = 0.0;
    for (row, cells) in table.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            // A case in this cell contributes to the margins of its row and column on opposite sides.
            let margins = share(columns[row]) + share(rows[column]);
            let pull = if row == column { possible - margins * missed } else { margins * missed };
            spread += share(*cell) * (pull * pull);
        }
    }
    let centre = observed * expected - 2.0 * expected + observed;
    let variance = (spread - centre * centre).max(0.0) / (all * possible * possible * possible * possible);
    if variance < MIN_VARIANCE {
        return by_observed();
    }
    Some(Estimate::coefficient(value, variance.sqrt()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use karat_core::statistics::Z_95;

    #[track_caller]
    fn close(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual - expected).abs() < tolerance, "{actual} is not {expected}");
    }

    /// Fleiss, Levin and Paik, table 18.1: 100 diagnoses by two raters.
    #[test]
    fn matches_a_published_three_by_three_table() {
        let kappa = cohen_kappa(&[[75, 1, 4], [5, 4, 1], [0, 0, 10]]).expect("a table");
        close(kappa.value, 0.676, 5e-4);
        close((kappa.value - kappa.low) / Z_95, 0.088, 1e-3);
        close(kappa.high - kappa.value, kappa.value - kappa.low, 1e-12);
    }

    #[test]
    fn matches_a_published_two_by_two_table() {
        let kappa = cohen_kappa(&[[20, 5], [10, 15]]).expect("a table");
        close(kappa.value, 0.4, 1e-12);
    }

    #[test]
    fn a_single_value_is_explained_by_chance() {
        assert_eq!(cohen_kappa(&[[0, 0], [0, 0]]), None);
        assert_eq!(cohen_kappa(&[[9, 0], [0, 0]]), None);
        // One rater always gives the same value, the other does not: nothing beyond chance.
        assert_eq!(cohen_kappa(&[[9, 4], [0, 0]]).expect("a table").value.to_bits(), 0.0_f64.to_bits());
    }

    /// A small sample that agrees is not proof, although the asymptotic standard error is 0.
    #[test]
    fn intervals_have_a_width() {
        let one_sided = cohen_kappa(&[[9, 4], [0, 0]]).expect("a table");
        close(one_sided.low, -0.873, 5e-4);
        close(one_sided.high, 0.588, 5e-4);
        let perfect = cohen_kappa(&[[5, 0], [0, 6]]).expect("a table");
        assert_eq!((perfect.value.to_bits(), perfect.high.to_bits()), (1.0_f64.to_bits(), 1.0_f64.to_bits()));
        close(perfect.low, 0.478, 5e-4);
        let more = cohen_kappa(&[[50, 0], [0, 60]]).expect("a table");
        assert!(more.low > 0.9 && more.low < 1.0, "{more:?}");
        let opposite = cohen_kappa(&[[0, 5], [5, 0]]).expect("a table");
        assert!(opposite.low <= opposite.value && opposite.value < opposite.high, "{opposite:?}");
    }

    /// Returns kappa of shares that need not come from counts.
    fn plain(shares: &[f64; 4]) -> f64 {
        let [a, b, c, d] = *shares;
        let expected = (a + b) * (a + c) + (c + d) * (b + d);
        (a + d - expected) / (1.0 - expected)
    }

    proptest! {
        /// The standard error equals the delta method's, with numeric derivatives under a multinomial.
        #[test]
        fn standard_error_matches_the_delta_method(cells in prop::array::uniform4(5_u64..400)) {
            let [a, b, c, d] = cells;
            let total: u64 = cells.iter().sum();
            let shares = cells.map(|cell| to_f64(cell) / to_f64(total));
            let step = 1e-5;
            let slopes: [f64; 4] = std::array::from_fn(|index| {
                let (mut up, mut down) = (shares, shares);
                up[index] += step;
                down[index] -= step;
                (plain(&up) - plain(&down)) / (2.0 * step)
            });
            let mean: f64 = shares.iter().zip(slopes).map(|(share, slope)| share * slope).sum();
            let square: f64 = shares.iter().zip(slopes).map(|(share, slope)| share * slope * slope).sum();
            let error = ((square - mean * mean) / to_f64(total)).sqrt();
            let kappa = cohen_kappa(&[[a, b], [c, d]]).expect("a table");
            prop_assert!((kappa.value - plain(&shares)).abs() < 1e-9);
            let expected = Estimate::coefficient(kappa.value, error);
            prop_assert!((kappa.low - expected.low).abs() < 1e-5, "{kappa:?} {expected:?}");
            prop_assert!((kappa.high - expected.high).abs() < 1e-5, "{kappa:?} {expected:?}");
        }

        #[test]
        fn kappa_is_symmetric(table in prop::array::uniform3(prop::array::uniform3(0_u64..300))) {
            let transposed: [[u64; 3]; 3] = std::array::from_fn(|row| std::array::from_fn(|column| table[column][row]));
            match (cohen_kappa(&table), cohen_kappa(&transposed)) {
                (Some(first), Some(second)) => {
                    prop_assert!((first.value - second.value).abs() < 1e-9 && (first.low - second.low).abs() < 1e-9);
                    prop_assert!((-1.0..=1.0).contains(&first.value));
                    prop_assert!(first.low < first.high, "{first:?}");
                }
                (first, second) => prop_assert_eq!(first, second),
            }
        }
    }
}
