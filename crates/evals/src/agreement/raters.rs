//! Agreement of people with each other, the upper limit for an eval's agreement with people.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::estimate::{Estimate, to_f64};
use super::kappa::cohen_kappa;
use karat_core::rating::Rating;

/// A combination of ratings by several authors, and the number of traces that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatingPattern {
    /// By author; at least two.
    pub ratings: BTreeMap<String, Rating>,
    pub traces: u64,
}

/// Number of rating values.
const RATING_COUNT: usize = Rating::ALL.len();

/// Agreement of people who rated the same traces, including neutral ratings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RaterAgreement {
    /// Authors who share rated traces with others, by name.
    pub raters: Vec<Rater>,
    /// Number of traces with several ratings.
    pub common_traces: u64,
    /// Number of these on which all ratings are equal.
    pub unanimous: u64,
    /// Share of common traces on which all ratings are equal.
    pub observed: Option<Estimate>,
    /// Cohen's kappa, if there are exactly two authors.
    pub kappa: Option<Estimate>,
    /// Krippendorff's alpha for nominal data, with a jackknife interval over traces.
    pub alpha: Option<Estimate>,
}

/// An author who shares rated traces with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rater {
    pub author: String,
    /// Number of common traces they rated.
    pub common_traces: u64,
}

impl RaterAgreement {
    /// Compares ratings of the same traces; `None` if no trace has several.
    pub fn of(patterns: &[RatingPattern]) -> Option<Self> {
        let (mut common_traces, mut unanimous) = (0, 0);
        let mut authors: BTreeMap<&str, u64> = BTreeMap::new();
        let mut units = Vec::with_capacity(patterns.len());
        for RatingPattern { ratings, traces } in patterns.iter().filter(|pattern| pattern.ratings.len() > 1) {
            let mut unit = [0; RATING_COUNT];
            for (author, rating) in ratings {
                *authors.entry(author).or_default() += traces;
                unit[index(*rating)] += 1;
            }
            common_traces += traces;
            if unit.iter().filter(|count| **count > 0).count() == 1 {
                unanimous += traces;
            }
            units.push((unit, *traces));
        }
        if common_traces == 0 {
            return None;
        }
        let kappa = if authors.len() == 2 { kappa_of_two(patterns) } else { None };
        let rater = |(author, common_traces): (&str, u64)| Rater { author: author.to_owned(), common_traces };
        Some(Self {
            raters: authors.into_iter().map(rater).collect(),
            common_traces,
            unanimous,
            observed: Estimate::proportion(unanimous, common_traces),
            kappa,
            alpha: krippendorff_alpha(units),
        })
    }
}

/// Returns a rating's index in a unit.
fn index(rating: Rating) -> usize {
    match rating {
        Rating::Positive => 0,
        Rating::Negative => 1,
        Rating::Neutral => 2,
    }
}

fn kappa_of_two(patterns: &[RatingPattern]) -> Option<Estimate> {
    let mut table = [[0; RATING_COUNT]; RATING_COUNT];
    for pattern in patterns.iter().filter(|pattern| pattern.ratings.len() > 1) {
        // Both authors rated every common trace, and authors are sorted, so the order is stable.
        let mut indices = pattern.ratings.values().map(|rating| index(*rating));
        let (first, second) = indices.next().zip(indices.next())?;
        table[first][second] += pattern.traces;
    }
    cohen_kappa(&table)
}

/// Smaller standard errors are rounding errors.
const MIN_STANDARD_ERROR: f64 = 1e-9;

/// Returns Krippendorff's alpha for nominal data. A unit counts how often each value was given, and comes with its
/// multiplicity; units with fewer than two ratings are ignored. `None` if there are no values or all are the same.
///
/// The interval is computed by the jackknife: from the change of alpha when one unit is left out. If that leaves no data,
/// or changes nothing because all ratings agree, the interval covers the whole range.
pub fn krippendorff_alpha<const K: usize>(units: impl IntoIterator<Item = ([u64; K], u64)>) -> Option<Estimate> {
    let mut patterns: BTreeMap<[u64; K], u64> = BTreeMap::new();
    for (unit, count) in units.into_iter().filter(|(unit, count)| unit.iter().sum::<u64>() > 1 && *count > 0) {
        *patterns.entry(unit).or_default() += count;
    }
    let mut pairs = Pairs::default();
    for (unit, count) in &patterns {
        pairs.add(unit, to_f64(*count));
    }
    let value = pairs.alpha()?;
    let without = |unit: &[u64; K]| {
        let mut rest = pairs;
        rest.add(unit, -1.0);
        rest.alpha()
    };
    let left_out: Option<Vec<(f64, f64)>> =
        patterns.iter().map(|(unit, count)| Some((to_f64(*count), without(unit)?))).collect();
    let Some(left_out) = left_out else {
        return Some(Estimate::with_full_interval(value));
    };
    let all: f64 = left_out.iter().map(|(count, _)| count).sum();
    let mean = left_out.iter().map(|(count, alpha)| count * alpha).sum::<f64>() / all;
    let spread: f64 = left_out.iter().map(|(count, alpha)| count * ((alpha - mean) * (alpha - mean))).sum();
    let error = (spread * (all - 1.0) / all).sqrt();
    Some(if error < MIN_STANDARD_ERROR {
        Estimate::with_full_interval(value)
    } else {
        Estimate::coefficient(value, error)
    })
}

/// The sums that alpha is computed from. Rating counts are integers, so removing a unit is exact; only `same` is
/// rounded.
#[derive(Debug, Clone, Copy)]
struct Pairs<const K: usize> {
    /// Number of ratings per value.
    values: [f64; K],
    /// Pairs of equal ratings, each unit weighted by its number of ratings.
    same: f64,
}

impl<const K: usize> Default for Pairs<K> {
    fn default() -> Self {
        Self { values: [0.0; K], same: 0.0 }
    }
}

impl<const K: usize> Pairs<K> {
    fn add(&mut self, unit: &[u64; K], times: f64) {
        let ratings = to_f64(unit.iter().sum());
        for (sum, count) in self.values.iter_mut().zip(unit) {
            let count = to_f64(*count);
            *sum += times * count;
            self.same += times * (count * (count - 1.0) / (ratings - 1.0));
        }
    }

    fn alpha(&self) -> Option<f64> {
        let all: f64 = self.values.iter().sum();
        let by_chance: f64 = self.values.iter().map(|count| count * (count - 1.0)).sum();
        let possible = all * (all - 1.0) - by_chance;
        // Products of integers: exact, so zero is exactly zero.
        (possible > 0.0).then(|| 1.0 - (all - 1.0) * (all - self.same) / possible)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// Counts the values of each unit. Each line is an observer; a dot is a missing value.
    fn units(observers: &[&str]) -> Vec<[u64; 6]> {
        let length = observers[0].len();
        (0..length)
            .map(|unit| {
                let mut counts = [0; 6];
                for observer in observers {
                    match observer.as_bytes()[unit] {
                        b'.' => {}
                        value => counts[usize::from(value - b'0')] += 1,
                    }
                }
                counts
            })
            .collect()
    }

    #[rstest]
    // Krippendorff 2011, "Computing Krippendorff's alpha-reliability", A, B and C.
    #[case(&["0100000010", "1110010000"], 0.095)]
    #[case(&["001132224330", "101112224333"], 0.692)]
    #[case(&["123321412...", "1233224125.3", ".3332342251.", "12332441251."], 0.743)]
    fn matches_published_examples(#[case] observers: &[&str], #[case] expected: f64) {
        let alpha = alpha(&units(observers)).expect("values that differ");
        assert!((alpha.value - expected).abs() < 6e-4, "{alpha:?} is not {expected}");
        assert!(alpha.low < alpha.value && alpha.value < alpha.high, "{alpha:?}");
    }

    #[test]
    fn alpha_needs_different_values() {
        assert_eq!(alpha::<3>(&[]), None);
        assert_eq!(alpha(&[[1, 0, 0], [0, 1, 0]]), None);
        assert_eq!(alpha(&[[2, 0, 0], [3, 0, 0]]), None);
        // All agree, with or without any one unit.
        let all_agree = alpha(&[[2, 0, 0], [2, 0, 0], [0, 2, 0], [0, 2, 0]]);
        assert_eq!(all_agree, Some(Estimate { value: 1.0, low: -1.0, high: 1.0 }));
        // Leaving out the only unit leaves no data.
        assert_eq!(alpha(&[[1, 1, 0]]), Some(Estimate { value: 0.0, low: -1.0, high: 1.0 }));
    }

    /// Groups ratings by trace.
    fn patterns(list: &[(&str, &str, Rating)]) -> Vec<RatingPattern> {
        let mut traces: BTreeMap<&str, BTreeMap<String, Rating>> = BTreeMap::new();
        for (trace, author, rating) in list {
            traces.entry(trace).or_default().insert((*author).to_owned(), *rating);
        }
        traces.into_values().map(|ratings| RatingPattern { ratings, traces: 1 }).collect()
    }

    /// Counts each unit once.
    fn alpha<const K: usize>(units: &[[u64; K]]) -> Option<Estimate> {
        krippendorff_alpha(units.iter().map(|unit| (*unit, 1)))
    }

    #[test]
    fn counts_only_traces_with_several_ratings() {
        use Rating::{Negative, Neutral, Positive};
        let list = [
            ("1", "ada", Positive),
            ("1", "bob", Positive),
            ("2", "ada", Negative),
            ("2", "bob", Neutral),
            ("3", "ada", Negative),
            ("3", "bob", Negative),
            ("4", "cyd", Positive),
        ];
        let agreement = RaterAgreement::of(&patterns(&list)).expect("common traces");
        let named = |author: &str| Rater { author: author.to_owned(), common_traces: 3 };
        assert_eq!(agreement.raters, [named("ada"), named("bob")]);
        assert_eq!((agreement.common_traces, agreement.unanimous), (3, 2));
        assert_eq!(agreement.kappa, cohen_kappa(&[[1, 0, 0], [0, 1, 1], [0, 0, 0]]));
        assert!(agreement.alpha.is_some());
        assert_eq!(RaterAgreement::of(&patterns(&list[6..])), None);
        let third = [list.as_slice(), &[("1", "cyd", Positive)]].concat();
        let agreement = RaterAgreement::of(&patterns(&third)).expect("common traces");
        assert_eq!((agreement.raters.len(), agreement.kappa), (3, None));
    }

    proptest! {
        #[test]
        fn alpha_is_bounded_and_independent_of_order(mut units in prop::collection::vec(prop::array::uniform3(0_u64..5), 1..40)) {
            let measured = alpha(&units);
            if let Some(alpha) = measured {
                prop_assert!(alpha.value <= 1.0 + 1e-12 && alpha.value >= -1.0, "{alpha:?}");
                prop_assert!(-1.0 <= alpha.low && alpha.low <= alpha.high && alpha.high <= 1.0, "{alpha:?}");
            }
            units.reverse();
            prop_assert_eq!(alpha(&units), measured);
            // A unit with a single rating changes nothing.
            units.push([0, 1, 0]);
            prop_assert_eq!(alpha(&units), measured);
        }
    }
}
