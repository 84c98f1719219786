//! Lexical similarity of texts: edit distance and overlap of words.
//!
//! Memory is linear in the lengths of the texts, and time is bounded: texts that would take too long are rejected.

use std::collections::HashMap;
use std::hash::Hash;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measure of similarity between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SimilarityMethod {
    /// 1 − edit distance / length of the longer text, by code points. Two empty texts are equal: 1.
    #[serde(rename = "levenshtein")]
    Levenshtein,
    /// F-measure over the words that both texts have in common. 0 if a text has no words.
    #[serde(rename = "rouge1")]
    Rouge1,
    /// F-measure over the longest common subsequence of words. 0 if a text has no words.
    #[serde(rename = "rougeL")]
    RougeL,
}

/// The texts are too long to be compared in bounded time and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the texts are too long to compare: {} × {} {}", .lengths.0, .lengths.1, .unit)]
pub struct TooLong {
    lengths: (usize, usize),
    unit: &'static str,
}

/// Rows of the comparison that one machine word holds.
const ROWS: usize = u64::BITS as usize;

/// Maximum size of a text.
const MAX_BYTES: usize = 4 << 20;

/// Maximum number of machine words that a comparison computes, which takes less than a second: two texts of 130,000
/// code points or words.
const MAX_STEPS: usize = 1 << 28;

impl SimilarityMethod {
    pub const ALL: [Self; 3] = [Self::Levenshtein, Self::Rouge1, Self::RougeL];

    /// Returns the name that files and eval functions use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Levenshtein => "levenshtein",
            Self::Rouge1 => "rouge1",
            Self::RougeL => "rougeL",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Returns the similarity of two texts, from 0 to 1. It is symmetric.
    pub fn compare(self, first: &str, second: &str) -> Result<f64, TooLong> {
        if first.len().max(second.len()) > MAX_BYTES {
            return Err(TooLong { lengths: (first.len(), second.len()), unit: "bytes" });
        }
        match self {
            Self::Levenshtein => levenshtein(first, second),
            Self::Rouge1 => Ok(rouge1(&words(first), &words(second))),
            Self::RougeL => rouge_l(&words(first), &words(second)),
        }
    }
}

/// Returns the lower-cased words of letters and digits.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn levenshtein(first: &str, second: &str) -> Result<f64, TooLong> {
    let (first, second): (Vec<char>, Vec<char>) = (first.chars().collect(), second.chars().collect());
    let longest = first.len().max(second.len());
    if longest == 0 {
        return Ok(1.0);
    }
    let (first, second) = trim_common_ends(&first, &second);
    check_steps(first.len(), second.len(), "characters")?;
    Ok(1.0 - as_f64(edit_distance(first, second)) / as_f64(longest))
}

fn rouge1(first: &[String], second: &[String]) -> f64 {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in first {
        *counts.entry(word).or_default() += 1;
    }
    let is_common = |word: &&String| {
        let count = counts.get_mut(word.as_str()).filter(|count| **count > 0);
        count.map(|count| *count -= 1).is_some()
    };
    let common = second.iter().filter(is_common).count();
    f_measure(common, first.len(), second.len())
}

fn rouge_l(first: &[String], second: &[String]) -> Result<f64, TooLong> {
    let (first_middle, second_middle) = trim_common_ends(first, second);
    check_steps(first_middle.len(), second_middle.len(), "words")?;
    let common = first.len() - first_middle.len() + common_subsequence(first_middle, second_middle);
    Ok(f_measure(common, first.len(), second.len()))
}

/// Returns the harmonic mean of precision and recall.
fn f_measure(common: usize, first: usize, second: usize) -> f64 {
    if common == 0 {
        return 0.0;
    }
    2.0 * as_f64(common) / as_f64(first + second)
}

/// Removes the common prefix and the common suffix. This does not change the edit distance, and shortens the longest
/// common subsequence by their lengths.
fn trim_common_ends<'a, T: PartialEq>(first: &'a [T], second: &'a [T]) -> (&'a [T], &'a [T]) {
    let start = first.iter().zip(second).take_while(|(left, right)| left == right).count();
    let (first, second) = (&first[start..], &second[start..]);
    let end = first.iter().rev().zip(second.iter().rev()).take_while(|(left, right)| left == right).count();
    (&first[..first.len() - end], &second[..second.len() - end])
}

fn check_steps(first: usize, second: usize, unit: &'static str) -> Result<(), TooLong> {
    let (rows, columns) = (first.min(second), first.max(second));
    let steps = rows.div_ceil(ROWS).saturating_mul(columns);
    if steps > MAX_STEPS { Err(TooLong { lengths: (first, second), unit }) } else { Ok(()) }
}

/// The rows of a comparison as sets of bits, and its columns as indices of distinct items.
struct Matrix {
    /// For each row, the index of its item; `None` if no column has this item.
    rows: Vec<Option<u32>>,
    columns: Vec<u32>,
    /// Number of distinct items of the columns.
    distinct: usize,
}

impl Matrix {
    /// Uses the shorter side for the rows, since each group of rows is a pass over the columns.
    fn new<T: Eq + Hash>(first: &[T], second: &[T]) -> Self {
        let (rows, columns) = if first.len() <= second.len() { (first, second) } else { (second, first) };
        let mut indices: HashMap<&T, u32> = HashMap::new();
        let columns = columns.iter().map(|item| {
            // There are fewer items than bytes of the text.
            let next = u32::try_from(indices.len()).unwrap_or(u32::MAX);
            *indices.entry(item).or_insert(next)
        });
        let columns: Vec<u32> = columns.collect();
        let rows = rows.iter().map(|item| indices.get(item).copied()).collect();
        Self { rows, columns, distinct: indices.len() }
    }

    /// Calls `pass` for each group of rows with, for each distinct item, the bits of the rows that have it.
    fn for_each_group(&self, mut pass: impl FnMut(&[Option<u32>], &[u64])) {
        let mut bits = vec![0_u64; self.distinct];
        for group in self.rows.chunks(ROWS) {
            for (row, item) in group.iter().enumerate() {
                if let Some(item) = item {
                    bits[*item as usize] |= 1 << row;
                }
            }
            pass(group, &bits);
            for item in group.iter().flatten() {
                bits[*item as usize] = 0;
            }
        }
    }
}

/// Returns the Levenshtein distance, by Myers' bit-parallel algorithm in Hyyrö's form for several words. One group of
/// rows is computed for all columns before the next, so that memory is linear.
fn edit_distance<T: Eq + Hash>(first: &[T], second: &[T]) -> usize {
    let matrix = Matrix::new(first, second);
    if matrix.rows.is_empty() {
        return matrix.columns.len();
    }
    // The horizontal differences that enter each column from the rows above. Above the first row they are +1.
    let mut entering = vec![(true, false); matrix.columns.len()];
    let mut distance = matrix.rows.len();
    let mut rows_left = matrix.rows.len();
    matrix.for_each_group(|group, bits| {
        rows_left -= group.len();
        let is_last = rows_left == 0;
        let last_row = group.len() - 1;
        let (mut up, mut down) = (u64::MAX, 0_u64);
        for (column, entering) in matrix.columns.iter().zip(&mut entering) {
            let (plus, minus) = (u64::from(entering.0), u64::from(entering.1));
            let equal = bits[*column as usize];
            let vertical = equal | down;
            let equal = equal | minus;
            let horizontal = ((equal & up).wrapping_add(up) ^ up) | equal;
            let mut right = down | !(horizontal | up);
            let mut left = up & horizontal;
            *entering = ((right >> last_row) & 1 == 1, (left >> last_row) & 1 == 1);
            right = right << 1 | plus;
            left = left << 1 | minus;
            up = left | !(vertical | right);
            down = right & vertical;
            if is_last {
                distance = distance + usize::from(entering.0) - usize::from(entering.1);
            }
        }
    });
    distance
}

/// Returns the length of the longest common subsequence, by Hyyrö's bit-parallel algorithm.
fn common_subsequence<T: Eq + Hash>(first: &[T], second: &[T]) -> usize {
    let matrix = Matrix::new(first, second);
    let mut carries = vec![false; matrix.columns.len()];
    let mut length = 0;
    matrix.for_each_group(|group, bits| {
        // A zero bit is a row at which the subsequence is longer than at the row before.
        let mut same = u64::MAX;
        for (column, carry) in matrix.columns.iter().zip(&mut carries) {
            let matching = same & bits[*column as usize];
            let (sum, overflow) = same.overflowing_add(matching);
            let (sum, second_overflow) = sum.overflowing_add(u64::from(*carry));
            *carry = overflow || second_overflow;
            same = sum | (same - matching);
        }
        let rows = u64::MAX >> (ROWS - group.len());
        length += usize::try_from((!same & rows).count_ones()).unwrap_or_default();
    });
    length
}

#[expect(clippy::cast_precision_loss, reason = "lengths of texts are below 2^52")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::SimilarityMethod::{Levenshtein, Rouge1, RougeL};
    use super::*;

    /// A row of the fixture, whose numbers come from rapidfuzz 3.14.6 and rouge-score 0.1.2.
    #[derive(Deserialize)]
    struct Row {
        first: String,
        second: String,
        levenshtein: f64,
        /// `None` if the text has other letters than ASCII, which rouge-score ignores.
        rouge1: Option<f64>,
        rouge_l: Option<f64>,
    }

    #[test]
    fn agrees_with_rapidfuzz_and_rouge_score() {
        let rows = include_str!("../tests/fixtures/similarity.jsonl").lines();
        let rows: Vec<Row> = rows.map(|line| serde_json::from_str(line).expect("a row")).collect();
        assert!(rows.len() >= 200 && rows.iter().filter(|row| row.rouge1.is_some()).count() >= 150);
        for row in rows {
            let expected = [(Levenshtein, Some(row.levenshtein)), (Rouge1, row.rouge1), (RougeL, row.rouge_l)];
            for (method, expected) in expected {
                let Some(expected) = expected else { continue };
                let actual = method.compare(&row.first, &row.second).expect("short texts");
                assert!((actual - expected).abs() < 1e-12, "{method:?} of {:?} and {:?}", row.first, row.second);
            }
        }
    }

    #[rstest]
    #[case(Levenshtein, "", "", 1.0)]
    #[case(Levenshtein, "", "abc", 0.0)]
    #[case(Levenshtein, "kitten", "sitting", 1.0 - 3.0 / 7.0)]
    #[case(Levenshtein, "naïve", "naive", 0.8)]
    #[case(Levenshtein, "👍🏽", "👍", 0.5)]
    #[case(Rouge1, "", "", 0.0)]
    #[case(Rouge1, "...", "...", 0.0)]
    #[case(Rouge1, "The cat sat.", "the CAT, sat", 1.0)]
    #[case(Rouge1, "a a b", "a b b", 4.0 / 6.0)]
    #[case(Rouge1, "Größe 5", "größe 6", 0.5)]
    #[case(RougeL, "a b c d", "d a b c", 0.75)]
    #[case(RougeL, "a b", "b a", 0.5)]
    fn compares(#[case] method: SimilarityMethod, #[case] first: &str, #[case] second: &str, #[case] expected: f64) {
        let actual = method.compare(first, second).expect("short texts");
        assert!((actual - expected).abs() < 1e-12, "{actual}");
    }

    #[test]
    fn names_match_serde() {
        for method in SimilarityMethod::ALL {
            assert_eq!(serde_json::to_value(method).expect("JSON"), method.name());
            assert_eq!(SimilarityMethod::from_name(method.name()), Some(method));
        }
        assert_eq!(SimilarityMethod::from_name("rouge2"), None);
    }

    #[test]
    fn rejects_texts_that_take_too_long() {
        let (first, second) = ("a".repeat(200_000), "b".repeat(200_000));
        let error = Levenshtein.compare(&first, &second).expect_err("too long");
        assert_eq!(error.to_string(), "the texts are too long to compare: 200000 × 200000 characters");
        let error = Rouge1.compare(&"a ".repeat(3 << 20), "b").expect_err("too long");
        assert_eq!(error.to_string(), "the texts are too long to compare: 6291456 × 1 bytes");
        // A common prefix takes no steps.
        let similarity = Levenshtein.compare(&first, &format!("{first}x")).expect("compared");
        assert!((similarity - (1.0 - 1.0 / 200_001.0)).abs() < 1e-12);
    }

    /// A textbook algorithm, to compare with.
    fn simple_distance(first: &[u8], second: &[u8]) -> usize {
        let mut row: Vec<usize> = (0..=second.len()).collect();
        for (index, left) in first.iter().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], index + 1);
            for (at, right) in second.iter().enumerate() {
                let cost = (diagonal + usize::from(left != right)).min(row[at] + 1).min(row[at + 1] + 1);
                diagonal = std::mem::replace(&mut row[at + 1], cost);
            }
        }
        row[second.len()]
    }

    fn simple_subsequence(first: &[u8], second: &[u8]) -> usize {
        let mut row = vec![0; second.len() + 1];
        for left in first {
            let mut diagonal = 0;
            for (at, right) in second.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if left == right { diagonal + 1 } else { above.max(row[at]) };
                diagonal = above;
            }
        }
        row[second.len()]
    }

    /// Items of a few kinds, more than fit into two groups of rows.
    fn items() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![prop::collection::vec(0_u8..3, 0..200), prop::collection::vec(0_u8..20, 0..200)]
    }

    proptest! {
        #[test]
        fn agrees_with_the_textbook_algorithms(first in items(), second in items()) {
            prop_assert_eq!(edit_distance(&first, &second), simple_distance(&first, &second));
            prop_assert_eq!(common_subsequence(&first, &second), simple_subsequence(&first, &second));
        }

        #[test]
        fn similarity_is_symmetric_and_between_0_and_1(first in "[a-cÀ-Å ]{0,90}", second in "[a-cÀ-Å ]{0,90}") {
            for method in SimilarityMethod::ALL {
                let similarity = method.compare(&first, &second).expect("short texts");
                prop_assert!((0.0..=1.0).contains(&similarity));
                prop_assert!((method.compare(&second, &first).expect("short texts") - similarity).abs() < 1e-12);
            }
        }

        #[test]
        fn equal_texts_have_similarity_1(text in "[a-z]{1,9}( [a-z0-9]{1,9}){0,30}") {
            for method in SimilarityMethod::ALL {
                prop_assert!((method.compare(&text, &text).expect("a short text") - 1.0).abs() < 1e-12);
            }
        }
    }
}
