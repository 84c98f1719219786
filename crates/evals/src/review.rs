//! Which traces a person rates next, and what they decided so far.

use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;
use karat_core::rating::Rating;
use serde::{Deserialize, Serialize};

/// A trace that somebody could look at, and what evals say of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewCandidate {
    pub trace_id: String,
    /// The newest versions' verdicts on it.
    pub passed: u64,
    pub failed: u64,
    pub errored: u64,
    pub started_at: Option<Timestamp>,
}

/// How much a rating of the trace would teach, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Interest {
    /// Evals say opposite things: one of them is wrong, whatever the person says.
    Disputed,
    /// An eval has no verdict.
    Errored,
    /// All evals say the same.
    Agreed,
    Unjudged,
}

fn interest(candidate: &ReviewCandidate) -> Interest {
    match (candidate.passed, candidate.failed, candidate.errored) {
        (1.., 1.., _) => Interest::Disputed,
        (_, _, 1..) => Interest::Errored,
        (0, 0, 0) => Interest::Unjudged,
        _ => Interest::Agreed,
    }
}

/// Puts the traces first that teach most about the evals: those on which evals disagree, the nearest to one half before
/// the others; then those that an eval could not judge; then those on which all agree; then those that none has judged.
/// Of equals the newest is first.
///
/// Where all agree, one that passed and one that failed follow each other as long as there are both, for an eval that
/// passes nearly everything is only found out by what it fails. Which of the two is first does not depend on the verdict,
/// so that the place in the row does not betray it.
///
/// The order depends on the candidates alone, not on the order in which they came.
pub fn order(mut candidates: Vec<ReviewCandidate>) -> Vec<ReviewCandidate> {
    candidates.sort_by(|left, right| {
        interest(left).cmp(&interest(right)).then_with(|| dispute(left, right)).then_with(|| newest_first(left, right))
    });
    let first = candidates.partition_point(|candidate| interest(candidate) < Interest::Agreed);
    let end = candidates.partition_point(|candidate| interest(candidate) <= Interest::Agreed);
    let agreed: Vec<ReviewCandidate> = candidates.drain(first..end).collect();
    let unjudged = candidates.split_off(first);
    candidates.extend(in_turn(agreed));
    candidates.extend(unjudged);
    candidates
}

/// Compares how near to one half the verdicts are, the nearest first; of equals, those with more verdicts.
fn dispute(left: &ReviewCandidate, right: &ReviewCandidate) -> Ordering {
    let parts = |candidate: &ReviewCandidate| {
        let (passed, failed) = (u128::from(candidate.passed), u128::from(candidate.failed));
        (passed.min(failed), passed + failed)
    };
    let ((left_fewer, left_all), (right_fewer, right_all)) = (parts(left), parts(right));
    (right_fewer * left_all).cmp(&(left_fewer * right_all)).then(right_all.cmp(&left_all))
}

fn newest_first(left: &ReviewCandidate, right: &ReviewCandidate) -> Ordering {
    let key = |candidate: &ReviewCandidate| Reverse(candidate.started_at);
    key(left).cmp(&key(right)).then_with(|| left.trace_id.cmp(&right.trace_id))
}

fn in_turn(agreed: Vec<ReviewCandidate>) -> Vec<ReviewCandidate> {
    let mut turns = Vec::with_capacity(agreed.len());
    let (passed, failed): (Vec<_>, Vec<_>) = agreed.into_iter().partition(|candidate| candidate.passed > 0);
    let (mut passed, mut failed) = (passed.into_iter(), failed.into_iter());
    loop {
        let mut pair: Vec<ReviewCandidate> = passed.next().into_iter().chain(failed.next()).collect();
        if pair.is_empty() {
            return turns;
        }
        pair.sort_by(|left, right| left.trace_id.cmp(&right.trace_id));
        turns.extend(pair);
    }
}

/// What a person did with a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Rated(Rating),
    /// For this review only: the next one shows the trace again.
    Skipped,
}

/// The traces of one review in order, and the decisions on the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewQueue {
    candidates: Vec<ReviewCandidate>,
    /// Of the first candidates.
    decisions: Vec<Decision>,
    beyond: usize,
}

impl ReviewQueue {
    /// Begins with these traces, in this order; so many more are left for another review.
    pub fn new(candidates: Vec<ReviewCandidate>, beyond: usize) -> Self {
        Self { candidates, decisions: Vec::new(), beyond }
    }

    /// Returns the trace that waits for a decision; none when all are decided.
    pub fn current(&self) -> Option<&ReviewCandidate> {
        self.candidates.get(self.decisions.len())
    }

    /// Notes what was decided of the current trace.
    pub fn decide(&mut self, decision: Decision) {
        if self.current().is_some() {
            self.decisions.push(decision);
        }
    }

    /// Returns what was decided last, and of which trace.
    pub fn last(&self) -> Option<(&ReviewCandidate, Decision)> {
        let decision = *self.decisions.last()?;
        Some((self.candidates.get(self.decisions.len() - 1)?, decision))
    }

    /// Takes the last decision back, so that its trace is the current one again.
    pub fn undo(&mut self) {
        self.decisions.pop();
    }

    /// Returns the current trace's number, from 1.
    pub fn number(&self) -> usize {
        (self.decisions.len() + 1).min(self.len())
    }

    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// Returns how many were decided so.
    pub fn count(&self, decision: Decision) -> usize {
        self.decisions.iter().filter(|made| **made == decision).count()
    }

    /// Returns how many were rated.
    pub fn rated(&self) -> usize {
        self.decisions.len() - self.count(Decision::Skipped)
    }

    /// Returns how many wait for a decision, in this review or another one.
    pub fn left(&self) -> usize {
        self.len().saturating_sub(self.decisions.len()) + self.beyond
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn candidate(id: &str, verdicts: (u64, u64, u64), started_at: Option<&str>) -> ReviewCandidate {
        let (passed, failed, errored) = verdicts;
        let started_at = started_at.map(|time| time.parse().expect("a time"));
        ReviewCandidate { trace_id: id.to_owned(), passed, failed, errored, started_at }
    }

    fn ids(candidates: &[ReviewCandidate]) -> Vec<&str> {
        candidates.iter().map(|candidate| candidate.trace_id.as_str()).collect()
    }

    #[rstest]
    #[case::what_is_disputed_comes_first(&[("a", (0, 0, 0)), ("b", (2, 0, 0)), ("c", (0, 0, 1)), ("d", (1, 1, 0))], "d c b a")]
    #[case::the_nearest_to_one_half_comes_first(&[("a", (9, 1, 0)), ("b", (2, 3, 0)), ("c", (1, 2, 0))], "b c a")]
    #[case::of_equal_shares_more_verdicts_come_first(&[("a", (1, 1, 0)), ("b", (2, 2, 0))], "b a")]
    #[case::an_error_does_not_hide_a_dispute(&[("a", (3, 0, 1)), ("b", (1, 1, 1))], "b a")]
    #[case::passed_and_failed_take_turns(
        &[("a", (1, 0, 0)), ("b", (1, 0, 0)), ("c", (1, 0, 0)), ("d", (0, 1, 0))], "a d b c"
    )]
    #[case::the_verdict_does_not_tell_who_is_first_of_a_pair(
        &[("a", (0, 1, 0)), ("b", (1, 0, 0)), ("c", (1, 0, 0)), ("d", (0, 1, 0))], "a b c d"
    )]
    fn the_most_informative_come_first(#[case] given: &[(&str, (u64, u64, u64))], #[case] expected: &str) {
        let given = given.iter().map(|(id, verdicts)| candidate(id, *verdicts, None)).collect();
        assert_eq!(ids(&order(given)).join(" "), expected);
    }

    #[test]
    fn of_equals_the_newest_is_first_and_one_without_a_time_last() {
        let given = vec![
            candidate("none", (0, 0, 0), None),
            candidate("old", (0, 0, 0), Some("2026-01-01T00:00:00Z")),
            candidate("new", (0, 0, 0), Some("2026-02-01T00:00:00Z")),
        ];
        assert_eq!(ids(&order(given)), ["new", "old", "none"]);
    }

    #[test]
    fn a_decision_can_be_taken_back_to_the_first() {
        let mut queue = ReviewQueue::new(vec![candidate("a", (0, 0, 0), None), candidate("b", (0, 0, 0), None)], 0);
        assert_eq!((queue.number(), queue.last()), (1, None));
        queue.decide(Decision::Rated(Rating::Negative));
        queue.decide(Decision::Skipped);
        assert_eq!((queue.current(), queue.rated(), queue.left(), queue.number()), (None, 1, 0, 2));
        queue.decide(Decision::Skipped);
        assert_eq!(queue.count(Decision::Skipped), 1, "there is nothing to decide any more");
        queue.undo();
        assert_eq!(queue.current().map(|current| current.trace_id.as_str()), Some("b"));
        assert_eq!(queue.last().map(|(_, decision)| decision), Some(Decision::Rated(Rating::Negative)));
        queue.undo();
        queue.undo();
        assert_eq!((queue.number(), queue.rated(), queue.left()), (1, 0, 2));
    }

    fn candidates() -> impl Strategy<Value = Vec<ReviewCandidate>> {
        let verdicts = (0_u64..4, 0_u64..4, 0_u64..2, proptest::option::of(0_i64..3));
        proptest::collection::vec(verdicts, 0..40).prop_map(|list| {
            let one = |(number, (passed, failed, errored, second)): (usize, (u64, u64, u64, Option<i64>))| {
                let started_at = second.map(|second| jiff::Timestamp::from_second(second).expect("a time"));
                ReviewCandidate { trace_id: format!("t{number}"), passed, failed, errored, started_at }
            };
            list.into_iter().enumerate().map(one).collect()
        })
    }

    proptest! {
        #[test]
        fn the_order_does_not_depend_on_how_they_came(given in candidates(), seed in any::<u64>()) {
            let mut shuffled = given.clone();
            shuffled.sort_by_key(|one| karat_json::hash::short_hash(format!("{seed}{}", one.trace_id).as_bytes()));
            prop_assert_eq!(order(given), order(shuffled));
        }

        #[test]
        fn none_is_lost_and_the_ranks_stay_together(given in candidates()) {
            let ordered = order(given.clone());
            let mut before: Vec<&str> = ids(&given);
            let mut after: Vec<&str> = ids(&ordered);
            before.sort_unstable();
            after.sort_unstable();
            prop_assert_eq!(before, after);
            prop_assert!(ordered.is_sorted_by_key(interest));
        }
    }
}
