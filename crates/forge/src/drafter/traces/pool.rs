//! Picks dissimilar messages, deterministically.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::observed::ObservedTurn;

/// The distance of two texts without common words.
const MAX_DISTANCE: usize = 10_000;

/// Messages with a smaller distance count as duplicates.
const MIN_DISTANCE: usize = 2_000;

/// Traces that were not picked yet, each with its distance to the nearest existing message.
pub(super) struct Pool<'o> {
    candidates: Vec<(&'o ObservedTurn, usize)>,
}

impl<'o> Pool<'o> {
    pub(super) fn new(observed: impl IntoIterator<Item = &'o ObservedTurn>) -> Self {
        Self { candidates: observed.into_iter().map(|turn| (turn, MAX_DISTANCE)).collect() }
    }

    /// Excludes traces whose messages are near this one.
    pub(super) fn exclude_near(&mut self, words: &BTreeSet<String>) {
        for (turn, nearest) in &mut self.candidates {
            *nearest = distance(&turn.words, words).min(*nearest);
        }
        self.candidates.retain(|(_, nearest)| *nearest >= MIN_DISTANCE);
    }

    /// Takes the trace with the lowest score. Ties go to the trace farthest from all messages so far, then to the
    /// smallest id. `score` returns `None` for unsuitable traces.
    pub(super) fn take<S: Ord>(&mut self, score: impl Fn(&ObservedTurn) -> Option<S>) -> Option<&'o ObservedTurn> {
        let ranked = self.candidates.iter().enumerate();
        let ranked = ranked.filter_map(|(at, (turn, nearest))| Some(((score(turn)?, Reverse(*nearest), &turn.id), at)));
        let (_, at) = ranked.min()?;
        let (taken, _) = self.candidates.swap_remove(at);
        self.exclude_near(&taken.words);
        Some(taken)
    }
}

/// Returns the Jaccard distance of two sets of words, scaled to [`MAX_DISTANCE`].
fn distance(left: &BTreeSet<String>, right: &BTreeSet<String>) -> usize {
    let shared = left.intersection(right).count();
    let all = left.len() + right.len() - shared;
    ((all - shared) * MAX_DISTANCE).checked_div(all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use karat_tools::similarity::words;
    use proptest::prelude::*;

    use super::*;

    fn observed(id: &str, message: &str) -> ObservedTurn {
        let (id, message) = (id.to_owned(), message.to_owned());
        ObservedTurn { id, words: words(&message), message, calls: Vec::new(), response: String::new(), proofs: 0 }
    }

    fn picked(all: &[ObservedTurn], existing: &[&str]) -> Vec<String> {
        let mut pool = Pool::new(all);
        for message in existing {
            pool.exclude_near(&words(message));
        }
        std::iter::from_fn(|| pool.take(|_| Some(())).map(|turn| turn.id.clone())).collect()
    }

    #[test]
    fn picks_the_farthest_message_next() {
        let all = [
            observed("a", "rain in Paris tomorrow"),
            observed("b", "rain in Paris today"),
            observed("c", "umbrella for Rome"),
            observed("d", "Rain in PARIS, tomorrow?"),
        ];
        assert_eq!(picked(&all, &[]), ["a", "c", "b"]);
        assert_eq!(picked(&all, &["umbrella for Rome?", "rain in Paris tomorrow!"]), ["b"]);
    }

    proptest! {
        #[test]
        fn picks_are_distinct_and_independent_of_order(messages in prop::collection::vec("[a-e ]{0,9}", 0..12), turn in 0_usize..12) {
            let all: Vec<ObservedTurn> =
                messages.iter().enumerate().map(|(at, text)| observed(&format!("{at:02}"), text)).collect();
            let first = picked(&all, &[]);
            let mut rotated = all.clone();
            rotated.rotate_left(turn % all.len().max(1));
            prop_assert_eq!(&first, &picked(&rotated, &[]));
            let chosen: Vec<&ObservedTurn> = all.iter().filter(|turn| first.contains(&turn.id)).collect();
            for (at, left) in chosen.iter().enumerate() {
                for right in &chosen[at + 1..] {
                    prop_assert!(distance(&left.words, &right.words) >= MIN_DISTANCE);
                }
            }
        }
    }
}
