//! Picks messages that are unlike each other, and the same ones every time.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::observed::Observed;

/// Two texts that have nothing in common are this far from each other.
const FARTHEST: usize = 10_000;

/// Nearer than this, two messages test the same.
const NEAR: usize = 2_000;

/// Traces that were not picked yet, each with the distance to the nearest message that is there already.
pub(super) struct Pool<'o> {
    candidates: Vec<(&'o Observed, usize)>,
}

impl<'o> Pool<'o> {
    pub(super) fn new(observed: impl IntoIterator<Item = &'o Observed>) -> Self {
        Self { candidates: observed.into_iter().map(|one| (one, FARTHEST)).collect() }
    }

    /// Keeps away from a message: what is near to it is not picked.
    pub(super) fn keep_away(&mut self, words: &BTreeSet<String>) {
        for (one, nearest) in &mut self.candidates {
            *nearest = distance(&one.words, words).min(*nearest);
        }
        self.candidates.retain(|(_, nearest)| *nearest >= NEAR);
    }

    /// Takes the trace that suits best (the smallest is the best; none does not suit), of equals the one that is
    /// farthest from all messages so far, of equals that with the first id.
    pub(super) fn take<S: Ord>(&mut self, suits: impl Fn(&Observed) -> Option<S>) -> Option<&'o Observed> {
        let ranked = self.candidates.iter().enumerate();
        let ranked = ranked.filter_map(|(at, (one, nearest))| Some(((suits(one)?, Reverse(*nearest), &one.id), at)));
        let (_, at) = ranked.min()?;
        let (taken, _) = self.candidates.swap_remove(at);
        self.keep_away(&taken.words);
        Some(taken)
    }
}

/// Returns how far two sets of words are from each other: the share of their words that they do not share.
fn distance(left: &BTreeSet<String>, right: &BTreeSet<String>) -> usize {
    let shared = left.intersection(right).count();
    let all = left.len() + right.len() - shared;
    ((all - shared) * FARTHEST).checked_div(all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use karat_tools::similarity::words;
    use proptest::prelude::*;

    use super::*;

    fn observed(id: &str, message: &str) -> Observed {
        let (id, message) = (id.to_owned(), message.to_owned());
        Observed { id, words: words(&message), message, calls: Vec::new(), response: String::new(), proofs: 0 }
    }

    fn picked(all: &[Observed], there: &[&str]) -> Vec<String> {
        let mut pool = Pool::new(all);
        for message in there {
            pool.keep_away(&words(message));
        }
        std::iter::from_fn(|| pool.take(|_| Some(())).map(|one| one.id.clone())).collect()
    }

    #[test]
    fn the_farthest_is_next() {
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
        fn laws(messages in prop::collection::vec("[a-e ]{0,9}", 0..12), turn in 0_usize..12) {
            let all: Vec<Observed> =
                messages.iter().enumerate().map(|(at, text)| observed(&format!("{at:02}"), text)).collect();
            let first = picked(&all, &[]);
            let mut turned = all.clone();
            turned.rotate_left(turn % all.len().max(1));
            prop_assert_eq!(&first, &picked(&turned, &[]));
            let chosen: Vec<&Observed> = all.iter().filter(|one| first.contains(&one.id)).collect();
            for (at, left) in chosen.iter().enumerate() {
                for right in &chosen[at + 1..] {
                    prop_assert!(distance(&left.words, &right.words) >= NEAR);
                }
            }
        }
    }
}
