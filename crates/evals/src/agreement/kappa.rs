//! Cohen's kappa: how much two sides agree beyond what chance would give.

use super::estimate::{Estimate, number, size};
use karat_core::statistics::wilson;

/// A variance that is smaller is rounding.
const LEAST_VARIANCE: f64 = 1e-12;

/// Returns Cohen's kappa of a table of counts, with the interval that its asymptotic standard error gives (Fleiss, Cohen
/// and Everitt 1969); none where there is nothing, or where both sides said one and the same of everything.
///
/// Where both always agree, and where one side said the same of everything, that error is 0 however few they are, which
/// says nothing. The interval is then what Wilson's of the observed agreement comes to, by the same chance.
pub fn cohen_kappa<const K: usize>(table: &[[u64; K]; K]) -> Option<Estimate> {
    let total: u64 = table.iter().flatten().sum();
    let rows: [u64; K] = std::array::from_fn(|row| table[row].iter().sum());
    let columns: [u64; K] = std::array::from_fn(|column| table.iter().map(|row| row[column]).sum());
    // In whole numbers, so that it is known exactly when chance agrees always.
    let by_chance: u128 = rows.iter().zip(columns).map(|(row, column)| u128::from(*row) * u128::from(column)).sum();
    if by_chance == u128::from(total) * u128::from(total) {
        return None;
    }
    let all = number(total);
    let share = |count: u64| number(count) / all;
    let agreeing: u64 = (0..K).map(|index| table[index][index]).sum();
    let observed = share(agreeing);
    let expected: f64 = rows.iter().zip(columns).map(|(row, column)| share(*row) * share(column)).sum();
    let (missed, possible) = (1.0 - observed, 1.0 - expected);
    let value = 1.0 - missed / possible;
    let by_observed = || {
        let interval = wilson(size(agreeing), size(total))?;
        let kappa = |observed: f64| (1.0 - (1.0 - observed) / possible).clamp(-1.0, 1.0);
        Some(Estimate { value, low: kappa(interval.low).min(value), high: kappa(interval.high).max(value) })
    };
    let is_one = |sums: &[u64; K]| sums.iter().filter(|sum| **sum > 0).count() == 1;
    // Asked in whole numbers: rounding would leave a trace of an error that is none.
    if agreeing == total || is_one(&rows) || is_one(&columns) {
        return by_observed();
    }
    let mut spread = 0.0;
    for (row, cells) in table.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            // What a case in this cell does to both margins: its row is counted on the other side, and the reverse.
            let margins = share(columns[row]) + share(rows[column]);
            let pull = if row == column { possible - margins * missed } else { margins * missed };
            spread += share(*cell) * (pull * pull);
        }
    }
    let centre = observed * expected - 2.0 * expected + observed;
    let variance = (spread - centre * centre).max(0.0) / (all * possible * possible * possible * possible);
    if variance < LEAST_VARIANCE {
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
    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() < tolerance, "{found} is not {expected}");
    }

    /// Fleiss, Levin and Paik, table 18.1: 100 diagnoses by two raters.
    #[test]
    fn diagnoses_of_two_raters() {
        let kappa = cohen_kappa(&[[75, 1, 4], [5, 4, 1], [0, 0, 10]]).expect("a table");
        close(kappa.value, 0.676, 5e-4);
        close((kappa.value - kappa.low) / Z_95, 0.088, 1e-3);
        close(kappa.high - kappa.value, kappa.value - kappa.low, 1e-12);
    }

    #[test]
    fn grants_of_two_readers() {
        let kappa = cohen_kappa(&[[20, 5], [10, 15]]).expect("a table");
        close(kappa.value, 0.4, 1e-12);
    }

    #[test]
    fn chance_explains_what_is_always_the_same() {
        assert_eq!(cohen_kappa(&[[0, 0], [0, 0]]), None);
        assert_eq!(cohen_kappa(&[[9, 0], [0, 0]]), None);
        // One side says always the same, the other does not: nothing beyond chance.
        assert_eq!(cohen_kappa(&[[9, 4], [0, 0]]).expect("a table").value.to_bits(), 0.0_f64.to_bits());
    }

    /// A few that agree are no proof, though the asymptotic error is 0.
    #[test]
    fn no_interval_is_without_width() {
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

    /// Returns kappa of shares that need not be counts.
    fn plain(shares: &[f64; 4]) -> f64 {
        let [a, b, c, d] = *shares;
        let expected = (a + b) * (a + c) + (c + d) * (b + d);
        (a + d - expected) / (1.0 - expected)
    }

    proptest! {
        /// The standard error is the delta method's: the slopes of kappa, measured, under a multinomial.
        #[test]
        fn the_standard_error_is_that_of_the_slopes(cells in prop::array::uniform4(5_u64..400)) {
            let [a, b, c, d] = cells;
            let total: u64 = cells.iter().sum();
            let shares = cells.map(|cell| number(cell) / number(total));
            let step = 1e-5;
            let slopes: [f64; 4] = std::array::from_fn(|index| {
                let (mut up, mut down) = (shares, shares);
                up[index] += step;
                down[index] -= step;
                (plain(&up) - plain(&down)) / (2.0 * step)
            });
            let mean: f64 = shares.iter().zip(slopes).map(|(share, slope)| share * slope).sum();
            let square: f64 = shares.iter().zip(slopes).map(|(share, slope)| share * slope * slope).sum();
            let error = ((square - mean * mean) / number(total)).sqrt();
            let kappa = cohen_kappa(&[[a, b], [c, d]]).expect("a table");
            prop_assert!((kappa.value - plain(&shares)).abs() < 1e-9);
            let expected = Estimate::coefficient(kappa.value, error);
            prop_assert!((kappa.low - expected.low).abs() < 1e-5, "{kappa:?} {expected:?}");
            prop_assert!((kappa.high - expected.high).abs() < 1e-5, "{kappa:?} {expected:?}");
        }

        #[test]
        fn kappa_knows_no_side(table in prop::array::uniform3(prop::array::uniform3(0_u64..300))) {
            let turned: [[u64; 3]; 3] = std::array::from_fn(|row| std::array::from_fn(|column| table[column][row]));
            match (cohen_kappa(&table), cohen_kappa(&turned)) {
                (Some(one), Some(other)) => {
                    prop_assert!((one.value - other.value).abs() < 1e-9 && (one.low - other.low).abs() < 1e-9);
                    prop_assert!((-1.0..=1.0).contains(&one.value));
                    prop_assert!(one.low < one.high, "{one:?}");
                }
                (one, other) => prop_assert_eq!(one, other),
            }
        }
    }
}
