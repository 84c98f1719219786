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
    Likeness::of(texts).pairs(at_least)
}

/// Texts as they are compared with each other.
#[derive(Debug, Clone, Default)]
pub struct Likeness {
    texts: Vec<BTreeSet<String>>,
    /// For each word, the texts that have it.
    holders: BTreeMap<String, Vec<usize>>,
    lengths: Vec<f64>,
}

impl Likeness {
    /// Takes the texts that are to be compared.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let texts: Vec<BTreeSet<String>> = texts.into_iter().map(words).collect();
        let mut holders: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, words) in texts.iter().enumerate() {
            for word in words {
                holders.entry(word.clone()).or_default().push(place);
            }
        }
        let mut likeness = Self { texts, holders, lengths: Vec::new() };
        let length = |words: &BTreeSet<String>| words.iter().map(|word| likeness.square(word)).sum::<f64>().sqrt();
        likeness.lengths = likeness.texts.iter().map(length).collect();
        likeness
    }

    /// Finds all pairs that are at least so alike (more than 0), the most alike first.
    pub fn pairs(&self, at_least: f64) -> Vec<SimilarPair> {
        let squares: HashMap<&str, f64> = self.holders.keys().map(|word| (word.as_str(), self.square(word))).collect();
        let mut pairs = Vec::new();
        let mut products = vec![0.0; self.texts.len()];
        for (left, words) in self.texts.iter().enumerate() {
            let mut touched = Vec::new();
            for word in words {
                let (places, square) = (&self.holders[word], squares[word.as_str()]);
                for &right in &places[places.partition_point(|&place| place <= left)..] {
                    if products[right] == 0.0 {
                        touched.push(right);
                    }
                    products[right] += square;
                }
            }
            for right in touched {
                let score = self.score((left, right), std::mem::take(&mut products[right]));
                if score >= at_least {
                    pairs.push(self.pair((left, right), score));
                }
            }
        }
        pairs.sort_by(|left, right| right.score.total_cmp(&left.score).then(left.places.cmp(&right.places)));
        pairs
    }

    /// Compares two of the texts, which may have nothing in common.
    pub fn between(&self, left: usize, right: usize) -> SimilarPair {
        let places = (left.min(right), left.max(right));
        let common = self.texts[places.0].intersection(&self.texts[places.1]);
        let product: f64 = common.map(|word| self.square(word)).sum();
        let score = if product > 0.0 { self.score(places, product) } else { 0.0 };
        self.pair(places, score)
    }

    fn score(&self, places: (usize, usize), product: f64) -> f64 {
        (product / (self.lengths[places.0] * self.lengths[places.1]) * 1e4).round() / 1e4
    }

    fn pair(&self, places: (usize, usize), score: f64) -> SimilarPair {
        let mut shared: Vec<&String> = self.texts[places.0].intersection(&self.texts[places.1]).collect();
        // The rarer a word, the more it weighs.
        shared.sort_by_key(|word| (self.holders[*word].len(), *word));
        SimilarPair { places, score, shared: shared.into_iter().cloned().collect() }
    }

    fn square(&self, word: &str) -> f64 {
        weight(self.texts.len(), self.holders[word].len()).powi(2)
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody has so many texts")]
fn weight(texts: usize, holders: usize) -> f64 {
    (1.0 + texts as f64 / holders as f64).ln()
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
        // Behind these sounds the ending has an e of its own: matches, boxes; but databases, sizes.
        _ if ["tches", "rches", "nches", "shes", "xes", "sses"].iter().any(|ending| word.ends_with(ending)) => {
            word.strip_suffix("es").unwrap_or(word).to_owned()
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
        let found = words("fetches boxes databases caches classes");
        assert_eq!(
            found.iter().map(String::as_str).collect::<Vec<_>>(),
            ["box", "cache", "class", "database", "fetch"]
        );
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
                    let between = Likeness::of(texts.iter().map(String::as_str)).between(right, left);
                    prop_assert_eq!(between.score > 0.0, found.is_some());
                    prop_assert!(found.is_none_or(|pair| *pair == between));
                }
            }
        }
    }
}
