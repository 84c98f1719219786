//! No two messages ask the same.

use std::collections::HashSet;

use karat_core::case::Case;

use super::wording::{same_words, words};
use super::{DraftRule, Examination};

/// Messages with fewer words are compared as they are: one word makes them another question.
const FEWEST_WORDS: usize = 5;
/// Two messages ask the same when this share of their words, in parts of a hundred, is common.
const ALIKE: usize = 85;

impl Examination<'_> {
    pub(super) fn duplicates(&mut self, others: &[Case]) {
        let message = &self.case.input.message;
        let words: HashSet<String> = words(message).collect();
        let asks_same = |other: &&Case| {
            let theirs = &other.input.message;
            same_words(message, theirs) || words.len() >= FEWEST_WORDS && is_alike(&words, theirs)
        };
        if words.is_empty() {
            return;
        }
        let Some(other) = self.brief.existing().chain(others).find(asks_same) else {
            return;
        };
        let how = if same_words(message, &other.input.message) { "the same" } else { "nearly the same" };
        let what = format!("the message is {how} as that of '{}': ask for something else, or in other words", other.id);
        self.error(DraftRule::NearDuplicate, "/input/message", what);
    }
}

/// Tells whether enough words are common: |A ∩ B| / |A ∪ B|. It ends as soon as there are too many that are not, so
/// that most messages are told apart by their first words.
fn is_alike(ours: &HashSet<String>, theirs: &str) -> bool {
    let mut common = HashSet::with_capacity(ours.len());
    let mut foreign = HashSet::new();
    for word in words(theirs) {
        if let Some(word) = ours.get(&word) {
            common.insert(word);
        } else {
            foreign.insert(word);
            if ours.len() * 100 < ALIKE * (ours.len() + foreign.len()) {
                return false;
            }
        }
    }
    common.len() * 100 >= ALIKE * (ours.len() + foreign.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("what is the weather like in paris right now", "What's is the weather like in Paris, right now?", true)]
    #[case("what is the weather like in paris", "what is the weather like in london", false)]
    #[case("fly from paris to london today", "today: fly from London to Paris", true)]
    fn words_are_counted(#[case] left: &str, #[case] right: &str, #[case] expected: bool) {
        assert_eq!(is_alike(&words(left).collect(), right), expected);
    }

    proptest! {
        #[test]
        fn it_is_the_share_of_common_words(left in "[a-h ]{1,40}", right in "[a-h ]{1,40}") {
            let ours: HashSet<String> = words(&left).collect();
            let theirs: HashSet<String> = words(&right).collect();
            let (common, all) = (ours.intersection(&theirs).count(), ours.union(&theirs).count());
            prop_assume!(all > 0);
            prop_assert_eq!(is_alike(&ours, &right), common * 100 >= ALIKE * all);
        }
    }
}
