//! How alike the words of two texts are: a measure that gives the same number every time.
//!
//! A text is taken as its set of words: lower case, cut at everything that is no letter or digit and where `camelCase`
//! changes, without words that say nothing (the, use, when, …), plural endings off. A word weighs ln(1 + N/n), where N
//! is the number of texts and n that of the texts that have it, so that what all texts say counts little. Two texts are
//! as alike as the cosine of their words' weights: 0 with no word in common, 1 with all.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Words that are in every description and tell no tool from another.
const STOP_WORDS: [&str; 66] = [
    "a", "about", "also", "an", "and", "any", "are", "as", "asks", "at", "be", "by", "can", "do", "does", "each",
    "for", "from", "given", "has", "have", "if", "in", "instead", "into", "is", "it", "its", "me", "my", "need",
    "needs", "not", "of", "on", "one", "only", "or", "other", "our", "out", "over", "return", "returns", "so", "such",
    "than", "that", "the", "their", "them", "then", "they", "this", "to", "tool", "use", "used", "user", "users",
    "want", "wants", "when", "with", "you", "your",
];

/// Two texts that have words in common.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarPair {
    /// Their places among the texts; the first is the smaller.
    pub places: (usize, usize),
    /// From 0 to 1, in steps of a ten-thousandth.
    pub score: f64,
    /// The words that make them alike, the weightiest first.
    pub shared: Vec<String>,
}

/// Finds all pairs of texts that are at least so alike (more than 0), the most alike first.
pub fn similar_pairs<'t>(texts: impl IntoIterator<Item = &'t str>, at_least: f64) -> Vec<SimilarPair> {
    let texts: Vec<BTreeSet<String>> = texts.into_iter().map(words).collect();
    let mut holders: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, words) in texts.iter().enumerate() {
        for word in words {
            holders.entry(word).or_default().push(place);
        }
    }
    let weights: HashMap<&str, f64> =
        holders.iter().map(|(word, places)| (*word, weight(texts.len(), places.len()))).collect();
    let square = |word: &String| weights[word.as_str()].powi(2);
    let lengths: Vec<f64> = texts.iter().map(|words| words.iter().map(square).sum::<f64>().sqrt()).collect();
    let mut pairs = Vec::new();
    let mut products = vec![0.0; texts.len()];
    for (left, words) in texts.iter().enumerate() {
        let mut touched = Vec::new();
        for word in words {
            let (places, square) = (&holders[word.as_str()], square(word));
            for &right in &places[places.partition_point(|&place| place <= left)..] {
                if products[right] == 0.0 {
                    touched.push(right);
                }
                products[right] += square;
            }
        }
        for right in touched {
            let score = (products[right] / (lengths[left] * lengths[right]) * 1e4).round() / 1e4;
            products[right] = 0.0;
            if score >= at_least {
                let shared = shared(words, &texts[right], &weights);
                pairs.push(SimilarPair { places: (left, right), score, shared });
            }
        }
    }
    pairs.sort_by(|left, right| right.score.total_cmp(&left.score).then(left.places.cmp(&right.places)));
    pairs
}

#[expect(clippy::cast_precision_loss, reason = "nobody has so many texts")]
fn weight(texts: usize, holders: usize) -> f64 {
    (1.0 + texts as f64 / holders as f64).ln()
}

fn shared(left: &BTreeSet<String>, right: &BTreeSet<String>, weights: &HashMap<&str, f64>) -> Vec<String> {
    let mut shared: Vec<&String> = left.intersection(right).collect();
    shared.sort_by(|left, right| weights[right.as_str()].total_cmp(&weights[left.as_str()]).then(left.cmp(right)));
    shared.into_iter().cloned().collect()
}

/// Returns the words of a text that tell it from others.
pub fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for piece in text.split(|letter: char| !letter.is_alphanumeric()) {
        let mut word = String::new();
        let mut after_small = false;
        for letter in piece.chars() {
            if letter.is_uppercase() && after_small {
                keep(&mut words, &std::mem::take(&mut word));
            }
            after_small = letter.is_lowercase();
            word.extend(letter.to_lowercase());
        }
        keep(&mut words, &word);
    }
    words
}

fn keep(words: &mut BTreeSet<String>, word: &str) {
    if word.is_empty() || STOP_WORDS.binary_search(&word).is_ok() {
        return;
    }
    words.insert(singular(word));
}

fn singular(word: &str) -> String {
    match word {
        _ if word.chars().count() < 4 || word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") => {
            word.to_owned()
        }
        _ => match (word.strip_suffix("ies"), word.strip_suffix('s')) {
            (Some(stem), _) => format!("{stem}y"),
            (None, Some(stem)) => stem.to_owned(),
            (None, None) => word.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stop_words_are_in_order_so_that_they_are_found() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn words_are_cut_and_made_alike() {
        let found = words("Use when the user asks: getCityForecasts, city_weather, the class's status (HTTP) é");
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["city", "class", "forecast", "get", "http", "s", "status", "weather", "é"]);
    }

    #[test]
    fn what_all_texts_say_counts_little() {
        let texts = ["read mail of today", "read weather of today", "read weather of tomorrow"];
        let pairs = similar_pairs(texts, 0.01);
        let places: Vec<_> = pairs.iter().map(|pair| pair.places).collect();
        assert_eq!(places, [(0, 1), (1, 2), (0, 2)]);
        assert_eq!(pairs[1].shared, ["weather", "read"]);
    }

    proptest! {
        #[test]
        fn laws(texts in prop::collection::vec("[a-d ]{0,12}", 0..8)) {
            let pairs = similar_pairs(texts.iter().map(String::as_str), 0.0001);
            prop_assert!(pairs.iter().all(|pair| pair.score > 0.0 && pair.score <= 1.0));
            prop_assert!(pairs.iter().all(|pair| pair.places.0 < pair.places.1 && !pair.shared.is_empty()));
            for (left, first) in texts.iter().enumerate() {
                for (right, second) in texts.iter().enumerate().skip(left + 1) {
                    let found = pairs.iter().find(|pair| pair.places == (left, right));
                    prop_assert_eq!(found.is_some(), !words(first).is_disjoint(&words(second)));
                    let equal = !words(first).is_empty() && words(first) == words(second);
                    prop_assert_eq!(equal, found.is_some_and(|pair| pair.score >= 1.0));
                }
            }
        }
    }
}
