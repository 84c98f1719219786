//! Suggestions for misspelt words.

/// Number of buckets that letters are counted in.
const BUCKETS: usize = 64;

/// Longer words are not typos, and comparing them is expensive.
const MAX_WORD_BYTES: usize = 200;

/// Returns the known word nearest to `word`, if any is near enough; the first of equally near ones.
///
/// Edit distances are expensive, and a project with a wrong registry asks for thousands. So candidates are sorted by a
/// lower bound from their letter counts, and those that cannot be nearer are skipped.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let word = word.to_lowercase();
    let letters = LetterCounts::of(&word);
    let mut candidates: Vec<(usize, usize)> = known
        .iter()
        .enumerate()
        .map(|(index, candidate)| (letters.min_distance(&LetterCounts::of(candidate)), index))
        .filter(|&(lower_bound, index)| lower_bound <= max_distance(&word, known[index]))
        .collect();
    candidates.sort_unstable();
    let mut best: Option<(usize, usize)> = None;
    for (lower_bound, index) in candidates {
        if best.is_some_and(|(distance, _)| lower_bound > distance) {
            break;
        }
        let distance = strsim::damerau_levenshtein(&word, &known[index].to_lowercase());
        if distance <= max_distance(&word, known[index]) && best.is_none_or(|best| (distance, index) < best) {
            best = Some((distance, index));
        }
    }
    best.map(|(_, index)| known[index])
}

/// Returns the maximum distance of two words that are near.
fn max_distance(word: &str, candidate: &str) -> usize {
    (candidate.chars().count().max(word.chars().count()) / 3).max(1)
}

/// Letter counts of a word.
struct LetterCounts {
    counts: [u32; BUCKETS],
}

impl LetterCounts {
    fn of(word: &str) -> Self {
        let mut counts = [0; BUCKETS];
        for letter in word.chars().flat_map(char::to_lowercase) {
            counts[u32::from(letter) as usize % BUCKETS] += 1;
        }
        Self { counts }
    }

    /// Returns a lower bound of the edit distance: each step fixes at most one surplus and one missing letter.
    fn min_distance(&self, other: &Self) -> usize {
        let pairs = || self.counts.iter().zip(&other.counts);
        let surplus: u32 = pairs().map(|(own, others)| own.saturating_sub(*others)).sum();
        let missing: u32 = pairs().map(|(own, others)| others.saturating_sub(*own)).sum();
        surplus.max(missing) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("responseContain", Some("responseContains"))]
    #[case("toolCalled", Some("toolsCalled"))]
    #[case("TOOLSCALLED", Some("toolsCalled"))]
    #[case("zebra", None)]
    #[case(&"maxTokens".repeat(10_000), None)]
    fn finds_the_nearest_key(#[case] word: &str, #[case] expected: Option<&str>) {
        assert_eq!(nearest(word, &["toolsCalled", "responseContains", "maxTokens"]), expected);
    }

    #[test]
    fn counts_multibyte_letters_as_one() {
        assert_eq!(nearest("天気", &["道具"]), None);
        assert_eq!(nearest("天気予報", &["天気情報"]), Some("天気情報"));
    }

    proptest! {
        #[test]
        fn equals_an_exhaustive_search(word in "[a-cA-Cé_]{0,9}", known in proptest::collection::vec("[a-cA-Cé_]{0,9}", 0..12)) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let word = word.to_lowercase();
            let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
            let near = known.iter().copied().filter(|candidate| distance(candidate) <= max_distance(&word, candidate));
            prop_assert_eq!(nearest(&word, &known), near.min_by_key(|candidate| distance(candidate)));
        }
    }
}
