//! The word that somebody probably meant.

/// Letters are counted in so many buckets.
const BUCKETS: usize = 64;

/// A word that is longer is nobody's slip of the finger; to compare it would take long, and much memory.
const LONGEST: usize = 200;

/// Returns the known word that is nearest to `word`, if one is near at all; of several, the first.
///
/// Distances take long to count, and a project whose registry is the wrong one asks for thousands. So the words come in
/// the order of how near they could be by their letters alone, and those that could not be nearer are left out.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    let letters = Letters::of(&word);
    let mut candidates: Vec<(usize, usize)> = known
        .iter()
        .enumerate()
        .map(|(place, candidate)| (letters.least_distance(&Letters::of(candidate)), place))
        .filter(|&(least, place)| least <= farthest(&word, known[place]))
        .collect();
    candidates.sort_unstable();
    let mut best: Option<(usize, usize)> = None;
    for (least, place) in candidates {
        if best.is_some_and(|(distance, _)| least > distance) {
            break;
        }
        let distance = strsim::damerau_levenshtein(&word, &known[place].to_lowercase());
        if distance <= farthest(&word, known[place]) && best.is_none_or(|best| (distance, place) < best) {
            best = Some((distance, place));
        }
    }
    best.map(|(_, place)| known[place])
}

/// Returns how far apart two words may be to be near.
fn farthest(word: &str, candidate: &str) -> usize {
    // Distances are counted in characters.
    (candidate.chars().count().max(word.chars().count()) / 3).max(1)
}

/// How often each letter is in a word.
struct Letters {
    counts: [u32; BUCKETS],
}

impl Letters {
    fn of(word: &str) -> Self {
        let mut counts = [0; BUCKETS];
        for letter in word.chars().flat_map(char::to_lowercase) {
            counts[u32::from(letter) as usize % BUCKETS] += 1;
        }
        Self { counts }
    }

    /// Returns how far apart the words are at least: each step mends one letter too many and one too few.
    fn least_distance(&self, other: &Self) -> usize {
        let pairs = || self.counts.iter().zip(&other.counts);
        let surplus: u32 = pairs().map(|(ours, theirs)| ours.saturating_sub(*theirs)).sum();
        let lack: u32 = pairs().map(|(ours, theirs)| theirs.saturating_sub(*ours)).sum();
        surplus.max(lack) as usize
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
    fn nearest_known_key(#[case] word: &str, #[case] expected: Option<&str>) {
        assert_eq!(nearest(word, &["toolsCalled", "responseContains", "maxTokens"]), expected);
    }

    #[test]
    fn letters_of_several_bytes_are_one_letter() {
        assert_eq!(nearest("天気", &["道具"]), None);
        assert_eq!(nearest("天気予報", &["天気情報"]), Some("天気情報"));
    }

    proptest! {
        #[test]
        fn what_is_left_out_is_not_nearer(word in "[a-cA-Cé_]{0,9}", known in proptest::collection::vec("[a-cA-Cé_]{0,9}", 0..12)) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let word = word.to_lowercase();
            let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
            let near = known.iter().copied().filter(|candidate| distance(candidate) <= farthest(&word, candidate));
            prop_assert_eq!(nearest(&word, &known), near.min_by_key(|candidate| distance(candidate)));
        }
    }
}
