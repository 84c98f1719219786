//! Whether people agree with each other: no eval can agree with people more than they do.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::estimate::{Estimate, number};
use super::kappa::cohen_kappa;
use karat_core::rating::Rating;

/// What each of several people says now of a trace, and how many traces they say just that of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatingPattern {
    /// By author; at least two.
    pub ratings: BTreeMap<String, Rating>,
    pub traces: u64,
}

/// How many kinds of ratings there are.
const KINDS: usize = Rating::ALL.len();

/// How far people who rated the same traces agree, neutral ratings among them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RaterAgreement {
    /// Who rated traces that others rated too, by name.
    pub raters: Vec<Rater>,
    /// How many traces have several ratings.
    pub common_traces: u64,
    /// On how many of these all say the same.
    pub unanimous: u64,
    /// The share of common traces on which all say the same.
    pub observed: Option<Estimate>,
    /// Cohen's kappa, where it is two people.
    pub kappa: Option<Estimate>,
    /// Krippendorff's alpha for nominal data; its interval is by the jackknife over traces.
    pub alpha: Option<Estimate>,
}

/// Somebody who rated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rater {
    pub author: String,
    /// How many common traces they rated.
    pub common_traces: u64,
}

impl RaterAgreement {
    /// Compares what people say of the same traces; none where no trace has several ratings.
    pub fn of(patterns: &[RatingPattern]) -> Option<Self> {
        let (mut common_traces, mut unanimous) = (0, 0);
        let mut authors: BTreeMap<&str, u64> = BTreeMap::new();
        let mut units = Vec::with_capacity(patterns.len());
        for RatingPattern { ratings, traces } in patterns.iter().filter(|pattern| pattern.ratings.len() > 1) {
            let mut unit = [0; KINDS];
            for (author, rating) in ratings {
                *authors.entry(author).or_default() += traces;
                unit[place(*rating)] += 1;
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
            observed: Estimate::share(unanimous, common_traces),
            kappa,
            alpha: krippendorff_alpha(units),
        })
    }
}

/// Returns a rating's place in a unit.
fn place(rating: Rating) -> usize {
    match rating {
        Rating::Positive => 0,
        Rating::Negative => 1,
        Rating::Neutral => 2,
    }
}

fn kappa_of_two(patterns: &[RatingPattern]) -> Option<Estimate> {
    let mut table = [[0; KINDS]; KINDS];
    for pattern in patterns.iter().filter(|pattern| pattern.ratings.len() > 1) {
        // Each of the two rated each common trace; the first is always the same one, since names are sorted.
        let mut places = pattern.ratings.values().map(|rating| place(*rating));
        let (first, second) = places.next().zip(places.next())?;
        table[first][second] += pattern.traces;
    }
    cohen_kappa(&table)
}

/// A standard error that is smaller is rounding.
const LEAST_ERROR: f64 = 1e-9;

/// Returns Krippendorff's alpha for nominal data. A unit says how often it was given each value, and comes with how many
/// there are of it; what fewer than two rated says nothing. None where all values are the same, or there are none.
///
/// The interval is by the jackknife: how much alpha moves when one unit is left out. Where that leaves nothing to
/// measure, and where it moves nothing, as where all agree, the interval is everything: it says nothing of how sure it is.
pub fn krippendorff_alpha<const K: usize>(units: impl IntoIterator<Item = ([u64; K], u64)>) -> Option<Estimate> {
    let mut patterns: BTreeMap<[u64; K], u64> = BTreeMap::new();
    for (unit, count) in units.into_iter().filter(|(unit, count)| unit.iter().sum::<u64>() > 1 && *count > 0) {
        *patterns.entry(unit).or_default() += count;
    }
    let mut pairs = Pairs::default();
    for (unit, count) in &patterns {
        pairs.add(unit, number(*count));
    }
    let value = pairs.alpha()?;
    let without = |unit: &[u64; K]| {
        let mut rest = pairs;
        rest.add(unit, -1.0);
        rest.alpha()
    };
    let left_out: Option<Vec<(f64, f64)>> =
        patterns.iter().map(|(unit, count)| Some((number(*count), without(unit)?))).collect();
    let Some(left_out) = left_out else {
        return Some(Estimate::unsure(value));
    };
    let all: f64 = left_out.iter().map(|(count, _)| count).sum();
    let mean = left_out.iter().map(|(count, alpha)| count * alpha).sum::<f64>() / all;
    let spread: f64 = left_out.iter().map(|(count, alpha)| count * ((alpha - mean) * (alpha - mean))).sum();
    let error = (spread * (all - 1.0) / all).sqrt();
    Some(if error < LEAST_ERROR { Estimate::unsure(value) } else { Estimate::coefficient(value, error) })
}

/// The sums that alpha is made of. Counts of ratings are whole numbers, so that taking a unit out leaves exactly what
/// was there without it; only `same` is rounded.
#[derive(Debug, Clone, Copy)]
struct Pairs<const K: usize> {
    /// How often each value was given.
    values: [f64; K],
    /// How many ratings have a partner of the same value, each unit counting as many as it has ratings.
    same: f64,
}

impl<const K: usize> Default for Pairs<K> {
    fn default() -> Self {
        Self { values: [0.0; K], same: 0.0 }
    }
}

impl<const K: usize> Pairs<K> {
    fn add(&mut self, unit: &[u64; K], times: f64) {
        let ratings = number(unit.iter().sum());
        for (sum, count) in self.values.iter_mut().zip(unit) {
            let count = number(*count);
            *sum += times * count;
            self.same += times * (count * (count - 1.0) / (ratings - 1.0));
        }
    }

    fn alpha(&self) -> Option<f64> {
        let all: f64 = self.values.iter().sum();
        let by_chance: f64 = self.values.iter().map(|count| count * (count - 1.0)).sum();
        let possible = all * (all - 1.0) - by_chance;
        // Products of whole numbers: nothing is rounded, and none is exactly none.
        (possible > 0.0).then(|| 1.0 - (all - 1.0) * (all - self.same) / possible)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// Counts what each unit was given, of observers' lines in which a dot is no value.
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
    fn published_examples(#[case] observers: &[&str], #[case] expected: f64) {
        let alpha = alpha(&units(observers)).expect("values that differ");
        assert!((alpha.value - expected).abs() < 6e-4, "{alpha:?} is not {expected}");
        assert!(alpha.low < alpha.value && alpha.value < alpha.high, "{alpha:?}");
    }

    #[test]
    fn what_cannot_be_measured_has_no_alpha() {
        assert_eq!(alpha::<3>(&[]), None);
        assert_eq!(alpha(&[[1, 0, 0], [0, 1, 0]]), None);
        assert_eq!(alpha(&[[2, 0, 0], [3, 0, 0]]), None);
        // All agree, and so they do without any of them.
        let all_agree = alpha(&[[2, 0, 0], [2, 0, 0], [0, 2, 0], [0, 2, 0]]);
        assert_eq!(all_agree, Some(Estimate { value: 1.0, low: -1.0, high: 1.0 }));
        // Without its only unit nothing is left.
        assert_eq!(alpha(&[[1, 1, 0]]), Some(Estimate { value: 0.0, low: -1.0, high: 1.0 }));
    }

    /// Gathers who says what of which trace.
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
    fn only_traces_that_several_rated_count() {
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
        fn alpha_is_at_most_one_and_knows_no_order(mut units in prop::collection::vec(prop::array::uniform3(0_u64..5), 1..40)) {
            let measured = alpha(&units);
            if let Some(alpha) = measured {
                prop_assert!(alpha.value <= 1.0 + 1e-12 && alpha.value >= -1.0, "{alpha:?}");
                prop_assert!(-1.0 <= alpha.low && alpha.low <= alpha.high && alpha.high <= 1.0, "{alpha:?}");
            }
            units.reverse();
            prop_assert_eq!(alpha(&units), measured);
            // What one alone rated changes nothing.
            units.push([0, 1, 0]);
            prop_assert_eq!(alpha(&units), measured);
        }
    }
}
