//! No two messages ask the same.

use karat_core::case::Case;

use super::wording::word_marks;
use super::{DraftRule, Examination};

/// Messages with fewer words are compared as they are: one word makes them another question.
const FEWEST_WORDS: usize = 5;
/// Two messages ask the same when this share of their words, in parts of a hundred, is common.
const ALIKE: usize = 85;

impl Examination<'_> {
    pub(super) fn duplicates(&mut self, others: &[Case]) {
        let marks: Vec<u64> = word_marks(&self.case.input.message).collect();
        let words = Words::of(&marks);
        if marks.is_empty() {
            return;
        }
        let compare = |other: &Case| {
            let theirs = &other.input.message;
            if word_marks(theirs).eq(marks.iter().copied()) {
                return Some("the same");
            }
            (words.marks.len() >= FEWEST_WORDS && words.are_alike(theirs)).then_some("nearly the same")
        };
        let mut cases = self.brief.existing().chain(others);
        let Some((how, id)) = cases.find_map(|other| Some((compare(other)?, other.id.clone()))) else {
            return;
        };
        let what = format!("the message is {how} as that of '{id}': ask for something else, or in other words");
        self.error(DraftRule::NearDuplicate, "/input/message", what);
    }
}

/// The words of a message, each once, in an order in which they are found fast.
struct Words {
    marks: Vec<u64>,
}

impl Words {
    fn of(marks: &[u64]) -> Self {
        let mut marks = marks.to_vec();
        marks.sort_unstable();
        marks.dedup();
        Self { marks }
    }

    /// Tells whether enough words of another message are common: |A ∩ B| / |A ∪ B|. It ends as soon as there are too
    /// many that are not, so that most messages are told apart by their first words.
    fn are_alike(&self, theirs: &str) -> bool {
        let ours = self.marks.len();
        let mut is_common = vec![false; ours];
        let mut foreign = Vec::new();
        for mark in word_marks(theirs) {
            if let Ok(at) = self.marks.binary_search(&mark) {
                is_common[at] = true;
            } else if !foreign.contains(&mark) {
                foreign.push(mark);
                if ours * 100 < ALIKE * (ours + foreign.len()) {
                    return false;
                }
            }
        }
        let common = is_common.into_iter().filter(|is_common| *is_common).count();
        common * 100 >= ALIKE * (ours + foreign.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::rules::wording::words;

    fn are_alike(left: &str, right: &str) -> bool {
        Words::of(&word_marks(left).collect::<Vec<_>>()).are_alike(right)
    }

    #[rstest]
    #[case("what is the weather like in paris right now", "So what is the weather like in Paris, right now?", true)]
    #[case("what is the weather like in paris", "what is the weather like in london", false)]
    #[case("fly from paris to london today", "today: fly from London to Paris", true)]
    fn words_are_counted(#[case] left: &str, #[case] right: &str, #[case] expected: bool) {
        assert_eq!(are_alike(left, right), expected);
    }

    proptest! {
        #[test]
        fn it_is_the_share_of_common_words(left in "[a-h ]{1,40}", right in "[a-h ]{1,40}") {
            let ours: HashSet<String> = words(&left).collect();
            let theirs: HashSet<String> = words(&right).collect();
            let (common, all) = (ours.intersection(&theirs).count(), ours.union(&theirs).count());
            prop_assume!(all > 0);
            prop_assert_eq!(are_alike(&left, &right), common * 100 >= ALIKE * all);
        }
    }
}
