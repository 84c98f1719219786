//! Similarity of texts by their words: deterministic and without a model.
//!
//! A text is reduced to its set of words: lower case, split at everything but letters and digits and at `camelCase`
//! boundaries, without stop words (the, use, when, …) and plural endings. A word weighs ln(1 + N/n), where N is the
//! number of texts and n the number of texts that contain it, so that common words count little. The similarity is the
//! cosine of the weighted words: 0 without common words, 1 with the same words.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Words too common to distinguish tools.
const STOP_WORDS: [&str; 66] = [
    "a", "about", "also", "an", "and", "any", "are", "as", "asks", "at", "be", "by", "can", "do", "does", "each",
    "for", "from", "given", "has", "have", "if", "in", "instead", "into", "is", "it", "its", "me", "my", "need",
    "needs", "not", "of", "on", "one", "only", "or", "other", "our", "out", "over", "return", "returns", "so", "such",
    "than", "that", "the", "their", "them", "then", "they", "this", "to", "tool", "use", "used", "user", "users",
    "want", "wants", "when", "with", "you", "your",
];

/// Two texts with common words.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarPair {
    /// Their indices among the texts, smaller first.
    pub indices: (usize, usize),
    /// From 0 to 1, rounded to 1/10,000.
    pub score: f64,
    /// Common words, heaviest first.
    pub shared: Vec<String>,
}

/// Finds all pairs of texts with at least this similarity (more than 0), most similar first.
pub fn similar_pairs<'t>(texts: impl IntoIterator<Item = &'t str>, min_score: f64) -> Vec<SimilarPair> {
    SimilarityIndex::of(texts).pairs(min_score)
}

/// An index of texts for comparison.
#[derive(Debug, Clone, Default)]
pub struct SimilarityIndex {
    texts: Vec<BTreeSet<String>>,
    /// Indices of the texts that contain each word.
    texts_by_word: BTreeMap<String, Vec<usize>>,
    lengths: Vec<f64>,
}

impl SimilarityIndex {
    /// Indexes texts.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let texts: Vec<BTreeSet<String>> = texts.into_iter().map(words).collect();
        let mut texts_by_word: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (text, words) in texts.iter().enumerate() {
            for word in words {
                texts_by_word.entry(word.clone()).or_default().push(text);
            }
        }
        let mut index = Self { texts, texts_by_word, lengths: Vec::new() };
        let length = |words: &BTreeSet<String>| words.iter().map(|word| index.squared_weight(word)).sum::<f64>().sqrt();
        index.lengths = index.texts.iter().map(length).collect();
        index
    }

    /// Finds all pairs with at least this similarity (more than 0), most similar first.
    pub fn pairs(&self, min_score: f64) -> Vec<SimilarPair> {
        let squares: HashMap<&str, f64> =
            self.texts_by_word.keys().map(|word| (word.as_str(), self.squared_weight(word))).collect();
        let mut pairs = Vec::new();
        let mut products = vec![0.0; self.texts.len()];
        for (left, words) in self.texts.iter().enumerate() {
            let mut touched = Vec::new();
            for word in words {
                let (indices, square) = (&self.texts_by_word[word], squares[word.as_str()]);
                for &right in &indices[indices.partition_point(|&text| text <= left)..] {
                    if products[right] == 0.0 {
                        touched.push(right);
                    }
                    products[right] += square;
                }
            }
            for right in touched {
                let score = self.score((left, right), std::mem::take(&mut products[right]));
                if score >= min_score {
                    pairs.push(self.pair((left, right), score));
                }
            }
        }
        pairs.sort_by(|left, right| right.score.total_cmp(&left.score).then(left.indices.cmp(&right.indices)));
        pairs
    }

    /// Compares two texts, which may have nothing in common.
    pub fn compare(&self, left: usize, right: usize) -> SimilarPair {
        let indices = (left.min(right), left.max(right));
        let common = self.texts[indices.0].intersection(&self.texts[indices.1]);
        let product: f64 = common.map(|word| self.squared_weight(word)).sum();
        let score = if product > 0.0 { self.score(indices, product) } else { 0.0 };
        self.pair(indices, score)
    }

    fn score(&self, indices: (usize, usize), product: f64) -> f64 {
        (product / (self.lengths[indices.0] * self.lengths[indices.1]) * 1e4).round() / 1e4
    }

    fn pair(&self, indices: (usize, usize), score: f64) -> SimilarPair {
        let mut shared: Vec<&String> = self.texts[indices.0].intersection(&self.texts[indices.1]).collect();
        // Rarer words weigh more.
        shared.sort_by_key(|word| (self.texts_by_word[*word].len(), *word));
        SimilarPair { indices, score, shared: shared.into_iter().cloned().collect() }
    }

    fn squared_weight(&self, word: &str) -> f64 {
        weight(self.texts.len(), self.texts_by_word[word].len()).powi(2)
    }
}

#[expect(clippy::cast_precision_loss, reason = "text counts are far below 2^52")]
fn weight(texts: usize, texts_by_word: usize) -> f64 {
    (1.0 + texts as f64 / texts_by_word as f64).ln()
}

/// Returns the distinguishing words of text.
pub fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for piece in text.split(|letter: char| !letter.is_alphanumeric()) {
        let mut word = String::new();
        let mut after_lowercase = false;
        for letter in piece.chars() {
            if letter.is_uppercase() && after_lowercase {
                insert_word(&mut words, &std::mem::take(&mut word));
            }
            after_lowercase = letter.is_lowercase();
            word.extend(letter.to_lowercase());
        }
        insert_word(&mut words, &word);
    }
    words
}

fn insert_word(words: &mut BTreeSet<String>, word: &str) {
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
        // These endings take "es": matches, boxes; but not databases, sizes.
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
    fn stop_words_are_sorted_for_binary_search() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn splits_and_normalises_words() {
        let actual = words("Use when the user asks: getCityForecasts, city_weather, the class's status (HTTP) é");
        let actual: Vec<&str> = actual.iter().map(String::as_str).collect();
        assert_eq!(actual, ["city", "class", "forecast", "get", "http", "s", "status", "weather", "é"]);
        let actual = words("fetches boxes databases caches classes");
        assert_eq!(
            actual.iter().map(String::as_str).collect::<Vec<_>>(),
            ["box", "cache", "class", "database", "fetch"]
        );
    }

    #[test]
    fn common_words_have_little_weight() {
        let texts = ["read mail of today", "read weather of today", "read weather of tomorrow"];
        let pairs = similar_pairs(texts, 0.01);
        let indices: Vec<_> = pairs.iter().map(|pair| pair.indices).collect();
        assert_eq!(indices, [(0, 1), (1, 2), (0, 2)]);
        assert_eq!(pairs[1].shared, ["weather", "read"]);
    }

    proptest! {
        #[test]
        fn scores_are_consistent(texts in prop::collection::vec("[a-d ]{0,12}", 0..8)) {
            let pairs = similar_pairs(texts.iter().map(String::as_str), 0.0001);
            prop_assert!(pairs.iter().all(|pair| pair.score > 0.0 && pair.score <= 1.0));
            prop_assert!(pairs.iter().all(|pair| pair.indices.0 < pair.indices.1 && !pair.shared.is_empty()));
            for (left, first) in texts.iter().enumerate() {
                for (right, second) in texts.iter().enumerate().skip(left + 1) {
                    let similar = pairs.iter().find(|pair| pair.indices == (left, right));
                    prop_assert_eq!(similar.is_some(), !words(first).is_disjoint(&words(second)));
                    let equal = !words(first).is_empty() && words(first) == words(second);
                    prop_assert_eq!(equal, similar.is_some_and(|pair| pair.score >= 1.0));
                    let compared = SimilarityIndex::of(texts.iter().map(String::as_str)).compare(right, left);
                    prop_assert_eq!(compared.score > 0.0, similar.is_some());
                    prop_assert!(similar.is_none_or(|pair| *pair == compared));
                }
            }
        }
    }
}
