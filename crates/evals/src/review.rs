//! The order in which a person rates traces, and the decisions made so far.

use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;
use karat_core::rating::Rating;
use serde::{Deserialize, Serialize};

/// An unrated trace and the evals' verdicts on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewCandidate {
    pub trace_id: String,
    /// Verdict counts of the newest versions.
    pub passed: u64,
    pub failed: u64,
    pub errored: u64,
    pub started_at: Option<Timestamp>,
}

/// The priority of a trace for review: how informative a rating would be, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    /// Evals disagree: at least one of them is wrong.
    Disputed,
    /// An eval errored.
    Errored,
    /// All evals agree.
    Agreed,
    Unjudged,
}

fn priority(candidate: &ReviewCandidate) -> Priority {
    match (candidate.passed, candidate.failed, candidate.errored) {
        (1.., 1.., _) => Priority::Disputed,
        (_, _, 1..) => Priority::Errored,
        (0, 0, 0) => Priority::Unjudged,
        _ => Priority::Agreed,
    }
}

/// Orders traces by how informative a rating would be: first those on which evals disagree, most evenly split first;
/// then those on which an eval errored; then those on which all agree; then unjudged ones. Among equals the newest
/// comes first.
///
/// Traces on which all agree alternate between passed and failed, because an eval that passes nearly everything is only
/// exposed by what it fails. Which of a pair comes first does not depend on the verdict, so that the position does not
/// reveal it.
///
/// The order does not depend on the input order.
pub fn order(mut candidates: Vec<ReviewCandidate>) -> Vec<ReviewCandidate> {
    candidates.sort_by(|left, right| {
        priority(left)
            .cmp(&priority(right))
            .then_with(|| compare_split(left, right))
            .then_with(|| newest_first(left, right))
    });
    let first = candidates.partition_point(|candidate| priority(candidate) < Priority::Agreed);
    let end = candidates.partition_point(|candidate| priority(candidate) <= Priority::Agreed);
    let agreed: Vec<ReviewCandidate> = candidates.drain(first..end).collect();
    let unjudged = candidates.split_off(first);
    candidates.extend(interleave(agreed));
    candidates.extend(unjudged);
    candidates
}

/// Compares how evenly the verdicts are split, most even first; among equals, more verdicts first.
fn compare_split(left: &ReviewCandidate, right: &ReviewCandidate) -> Ordering {
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

fn interleave(agreed: Vec<ReviewCandidate>) -> Vec<ReviewCandidate> {
    let mut interleaved = Vec::with_capacity(agreed.len());
    let (passed, failed): (Vec<_>, Vec<_>) = agreed.into_iter().partition(|candidate| candidate.passed > 0);
    let (mut passed, mut failed) = (passed.into_iter(), failed.into_iter());
    loop {
        let mut pair: Vec<ReviewCandidate> = passed.next().into_iter().chain(failed.next()).collect();
        if pair.is_empty() {
            return interleaved;
        }
        pair.sort_by(|left, right| left.trace_id.cmp(&right.trace_id));
        interleaved.extend(pair);
    }
}

/// A person's decision on a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Rated(Rating),
    /// Only for this review: the next one shows the trace again.
    Skipped,
}

/// The traces of one review in order, with the decisions on the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewQueue {
    candidates: Vec<ReviewCandidate>,
    /// Decisions on the first candidates.
    decisions: Vec<Decision>,
    #[serde(rename = "beyond")]
    omitted: usize,
}

impl ReviewQueue {
    /// Creates a queue of traces in this order; `omitted` more are left for another review.
    pub fn new(candidates: Vec<ReviewCandidate>, omitted: usize) -> Self {
        Self { candidates, decisions: Vec::new(), omitted }
    }

    /// Returns the next trace to decide on; `None` when all are decided.
    pub fn current(&self) -> Option<&ReviewCandidate> {
        self.candidates.get(self.decisions.len())
    }

    /// Records the decision on the current trace.
    pub fn decide(&mut self, decision: Decision) {
        if self.current().is_some() {
            self.decisions.push(decision);
        }
    }

    /// Returns the last decision and its trace.
    pub fn last(&self) -> Option<(&ReviewCandidate, Decision)> {
        let decision = *self.decisions.last()?;
        Some((self.candidates.get(self.decisions.len() - 1)?, decision))
    }

    /// Undoes the last decision, so that its trace is current again.
    pub fn undo(&mut self) {
        self.decisions.pop();
    }

    /// Returns the 1-based number of the current trace.
    pub fn number(&self) -> usize {
        (self.decisions.len() + 1).min(self.len())
    }

    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// Returns the number of traces with this decision.
    pub fn count(&self, decision: Decision) -> usize {
        self.decisions.iter().filter(|made| **made == decision).count()
    }

    /// Returns the number of rated traces.
    pub fn rated(&self) -> usize {
        self.decisions.len() - self.count(Decision::Skipped)
    }

    /// Returns the number of undecided traces, in this review or a later one.
    pub fn left(&self) -> usize {
        self.len().saturating_sub(self.decisions.len()) + self.omitted
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
    #[case::disputed_traces_come_first(&[("a", (0, 0, 0)), ("b", (2, 0, 0)), ("c", (0, 0, 1)), ("d", (1, 1, 0))], "d c b a")]
    #[case::the_most_even_split_comes_first(&[("a", (9, 1, 0)), ("b", (2, 3, 0)), ("c", (1, 2, 0))], "b c a")]
    #[case::more_verdicts_break_ties(&[("a", (1, 1, 0)), ("b", (2, 2, 0))], "b a")]
    #[case::an_error_does_not_hide_a_dispute(&[("a", (3, 0, 1)), ("b", (1, 1, 1))], "b a")]
    #[case::passed_and_failed_alternate(
        &[("a", (1, 0, 0)), ("b", (1, 0, 0)), ("c", (1, 0, 0)), ("d", (0, 1, 0))], "a d b c"
    )]
    #[case::order_within_a_pair_ignores_the_verdict(
        &[("a", (0, 1, 0)), ("b", (1, 0, 0)), ("c", (1, 0, 0)), ("d", (0, 1, 0))], "a b c d"
    )]
    fn the_most_informative_come_first(#[case] candidates: &[(&str, (u64, u64, u64))], #[case] expected: &str) {
        let candidates = candidates.iter().map(|(id, verdicts)| candidate(id, *verdicts, None)).collect();
        assert_eq!(ids(&order(candidates)).join(" "), expected);
    }

    #[test]
    fn ties_are_ordered_newest_first_and_undated_last() {
        let candidates = vec![
            candidate("none", (0, 0, 0), None),
            candidate("old", (0, 0, 0), Some("2026-01-01T00:00:00Z")),
            candidate("new", (0, 0, 0), Some("2026-02-01T00:00:00Z")),
        ];
        assert_eq!(ids(&order(candidates)), ["new", "old", "none"]);
    }

    #[test]
    fn undo_goes_back_to_the_first_decision() {
        let mut queue = ReviewQueue::new(vec![candidate("a", (0, 0, 0), None), candidate("b", (0, 0, 0), None)], 0);
        assert_eq!((queue.number(), queue.last()), (1, None));
        queue.decide(Decision::Rated(Rating::Negative));
        queue.decide(Decision::Skipped);
        assert_eq!((queue.current(), queue.rated(), queue.left(), queue.number()), (None, 1, 0, 2));
        queue.decide(Decision::Skipped);
        assert_eq!(queue.count(Decision::Skipped), 1, "nothing is left to decide");
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
            let candidate = |(number, (passed, failed, errored, second)): (usize, (u64, u64, u64, Option<i64>))| {
                let started_at = second.map(|second| jiff::Timestamp::from_second(second).expect("a time"));
                ReviewCandidate { trace_id: format!("t{number}"), passed, failed, errored, started_at }
            };
            list.into_iter().enumerate().map(candidate).collect()
        })
    }

    proptest! {
        #[test]
        fn order_is_independent_of_input_order(candidates in candidates(), seed in any::<u64>()) {
            let mut shuffled = candidates.clone();
            shuffled.sort_by_key(|candidate| karat_json::hash::short_hash(format!("{seed}{}", candidate.trace_id).as_bytes()));
            prop_assert_eq!(order(candidates), order(shuffled));
        }

        #[test]
        fn keeps_every_candidate_and_sorts_by_priority(candidates in candidates()) {
            let ordered = order(candidates.clone());
            let mut before: Vec<&str> = ids(&candidates);
            let mut after: Vec<&str> = ids(&ordered);
            before.sort_unstable();
            after.sort_unstable();
            prop_assert_eq!(before, after);
            prop_assert!(ordered.is_sorted_by_key(priority));
        }
    }
}
