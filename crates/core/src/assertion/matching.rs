//! Optimal alignment of two lists, with or without regard to their order.

use pathfinding::kuhn_munkres::{Weights, kuhn_munkres};

/// The benefit of aligning each row with each column. Rows and columns with a benefit of 0 are not aligned.
#[derive(Debug, Clone)]
pub(super) struct BenefitMatrix {
    columns: usize,
    /// Row by row; none is negative.
    values: Vec<i64>,
    rows: usize,
}

impl BenefitMatrix {
    pub(super) fn new(rows: usize, columns: usize, benefit: impl Fn(usize, usize) -> i64) -> Self {
        let values = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        Self { columns, rows, values: values.map(|(row, column)| benefit(row, column)).collect() }
    }

    pub(super) fn get(&self, row: usize, column: usize) -> i64 {
        self.values[row * self.columns + column]
    }

    fn transposed(&self) -> Self {
        Self::new(self.columns, self.rows, |row, column| self.get(column, row))
    }

    /// Returns the column of each row so that the sum of the benefits is maximal, in any order.
    pub(super) fn align(&self) -> Vec<Option<usize>> {
        if self.rows == 0 || self.columns == 0 {
            return vec![None; self.rows];
        }
        if self.rows > self.columns {
            let mut aligned = vec![None; self.rows];
            for (column, row) in self.transposed().align().into_iter().enumerate() {
                if let Some(row) = row {
                    aligned[row] = Some(column);
                }
            }
            return aligned;
        }
        let (_, columns) = kuhn_munkres(self);
        // The algorithm assigns a column to every row, even without a benefit.
        let is_useful = |(row, column): (usize, usize)| (self.get(row, column) > 0).then_some(column);
        columns.into_iter().enumerate().map(is_useful).collect()
    }

    /// Returns the column of each row so that the sum of the benefits is maximal, and columns increase with rows.
    pub(super) fn align_in_order(&self) -> Vec<Option<usize>> {
        let width = self.columns + 1;
        // The maximal sum for the rows and columns from an index on.
        let mut sums = vec![0_i64; (self.rows + 1) * width];
        for row in (0..self.rows).rev() {
            for column in (0..self.columns).rev() {
                let skipped = sums[(row + 1) * width + column].max(sums[row * width + column + 1]);
                let aligned = self.get(row, column) + sums[(row + 1) * width + column + 1];
                sums[row * width + column] = skipped.max(aligned);
            }
        }
        let mut aligned = vec![None; self.rows];
        let (mut row, mut column) = (0, 0);
        while row < self.rows && column < self.columns {
            let sum = sums[row * width + column];
            let benefit = self.get(row, column);
            if benefit > 0 && sum == benefit + sums[(row + 1) * width + column + 1] {
                aligned[row] = Some(column);
                row += 1;
                column += 1;
            } else if sum == sums[row * width + column + 1] {
                column += 1;
            } else {
                row += 1;
            }
        }
        aligned
    }
}

impl Weights<i64> for BenefitMatrix {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn at(&self, row: usize, column: usize) -> i64 {
        self.get(row, column)
    }

    fn neg(&self) -> Self {
        Self { values: self.values.iter().map(|value| -value).collect(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(benefits: &BenefitMatrix, aligned: &[Option<usize>]) -> i64 {
        aligned.iter().enumerate().filter_map(|(row, column)| Some(benefits.get(row, (*column)?))).sum()
    }

    /// Tries all alignments of the rows from `row` on.
    fn best(benefits: &BenefitMatrix, row: usize, used: u32, is_ordered: bool) -> i64 {
        if row == benefits.rows {
            return 0;
        }
        let free = (0..benefits.columns).filter(|column| {
            let later = if is_ordered { used >> column } else { (used >> column) & 1 };
            later == 0
        });
        let aligned =
            free.map(|column| benefits.get(row, column) + best(benefits, row + 1, used | (1 << column), is_ordered));
        aligned.max().unwrap_or(0).max(best(benefits, row + 1, used, is_ordered))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn alignments_are_optimal(
            (rows, columns) in (0..5_usize, 0..6_usize),
            values in prop::collection::vec(prop_oneof![Just(0), Just(1000), 0..9_i64], 30),
        ) {
            let benefits = BenefitMatrix::new(rows, columns, |row, column| values[row * columns + column]);
            let any_order = benefits.align();
            let mut used: Vec<usize> = any_order.iter().copied().flatten().collect();
            prop_assert_eq!(sum(&benefits, &any_order), best(&benefits, 0, 0, false));
            let count = used.len();
            used.sort_unstable();
            used.dedup();
            prop_assert_eq!(used.len(), count, "a column is used twice");
            let in_order = benefits.align_in_order();
            prop_assert_eq!(sum(&benefits, &in_order), best(&benefits, 0, 0, true));
            let columns: Vec<usize> = in_order.iter().copied().flatten().collect();
            prop_assert!(columns.is_sorted_by(|left, right| left < right));
        }
    }

    #[test]
    fn does_not_align_rows_without_a_benefit() {
        let benefits = BenefitMatrix::new(2, 3, |row, column| i64::from(row == 1 && column == 2));
        assert_eq!(benefits.align(), [None, Some(2)]);
        assert_eq!(benefits.align_in_order(), [None, Some(2)]);
        assert_eq!(BenefitMatrix::new(0, 3, |_, _| 1).align(), []);
        assert_eq!(BenefitMatrix::new(2, 0, |_, _| 1).align(), [None, None]);
    }
}
