//! Comparison of rewritten eval code with the current version.

use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::VerdictPair;
use super::counts::AgreementCounts;
use super::{Direction, Estimate, Figures, VersionComparison};
use karat_core::rating::Rating;

/// A function's verdict on a rated trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatedVerdict {
    pub trace_id: String,
    /// `None` on an error.
    pub passed: Option<bool>,
    /// The reason, or the error.
    pub reason: String,
    pub rating: Rating,
}

/// Output of `karat eval refine --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat eval refine")]
pub struct Refinement {
    pub eval_id: String,
    /// The current version.
    pub version: u64,
    /// The model that rewrote it.
    pub model: String,
    /// Traces shown to the model.
    pub training: RatingCounts,
    /// Traces withheld from the model.
    pub held_out: RatingCounts,
    /// Agreement of the current version.
    #[serde(rename = "today")]
    pub current: SplitAgreement,
    /// Best on the training set first. Ranking by the held-out set would turn it into a training set.
    pub candidates: Vec<Candidate>,
    /// Rejected code: not a valid eval function, or equal to the current version or another candidate.
    pub refused: Vec<RefusedCode>,
}

impl Refinement {
    /// Returns the first candidate worth adopting: better than the current version on the training set, and on the
    /// held-out set neither fewer correct verdicts nor more errors. The held-out set is too small to rely on
    /// significance alone.
    pub fn suggested(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| {
            let (new, current) = (&candidate.agreement, &self.current);
            new.training.right() > current.training.right()
                && new.held_out.right() >= current.held_out.right()
                && new.held_out.counts.errored <= current.held_out.counts.errored
                && candidate.held_out_changes.direction != Direction::Worse
        })
    }
}

/// Number of traces per rating.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RatingCounts {
    pub positive: u64,
    pub negative: u64,
}

impl RatingCounts {
    pub fn of(ratings: impl IntoIterator<Item = Rating>) -> Self {
        let mut size = Self::default();
        for rating in ratings {
            match rating {
                Rating::Positive => size.positive += 1,
                Rating::Negative => size.negative += 1,
                Rating::Neutral => {}
            }
        }
        size
    }

    pub fn all(self) -> u64 {
        self.positive + self.negative
    }
}

/// A function's agreement with ratings on both sets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SplitAgreement {
    pub training: SetAgreement,
    pub held_out: SetAgreement,
}

/// A function's agreement with ratings on one set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SetAgreement {
    /// Share of all traces of the set. An error counts as wrong, so that every function is measured by the same traces.
    pub accuracy: Option<Estimate>,
    /// Over traces with a verdict.
    pub kappa: Option<Estimate>,
    pub contradictions: u64,
    pub counts: AgreementCounts,
}

impl SetAgreement {
    pub fn of<'v>(verdicts: impl IntoIterator<Item = &'v RatedVerdict>) -> Self {
        let mut counts = AgreementCounts::default();
        for verdict in verdicts {
            let count = match (verdict.passed, verdict.rating) {
                (None, _) => &mut counts.errored,
                (_, Rating::Neutral) => &mut counts.neutral,
                (Some(true), Rating::Positive) => &mut counts.passed_positive,
                (Some(true), Rating::Negative) => &mut counts.passed_negative,
                (Some(false), Rating::Positive) => &mut counts.failed_positive,
                (Some(false), Rating::Negative) => &mut counts.failed_negative,
            };
            *count += 1;
        }
        let kappa = Figures::of(&counts).kappa;
        let right = counts.passed_positive + counts.failed_negative;
        let accuracy = Estimate::proportion(right, counts.compared() + counts.errored);
        Self { accuracy, kappa, contradictions: counts.contradictions(), counts }
    }

    /// Returns the number of correct verdicts.
    fn right(&self) -> u64 {
        self.counts.passed_positive + self.counts.failed_negative
    }
}

/// Code written by a model, and its agreement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Candidate {
    /// 1-based number, by which a person selects it.
    pub number: u64,
    /// The model's explanation of its changes.
    #[serde(rename = "why")]
    pub explanation: String,
    pub code: String,
    pub code_hash: String,
    pub agreement: SplitAgreement,
    /// Changed verdicts on the held-out set.
    pub held_out_changes: VersionComparison,
    /// Path of the written file.
    pub file: Option<String>,
}

impl Candidate {
    /// Measures code on both sets, compared with the current version.
    pub fn measure(
        eval_id: &str,
        version: u64,
        (code, code_hash, explanation): (String, String, String),
        training: &[RatedVerdict],
        (current, held_out): (&[RatedVerdict], &[RatedVerdict]),
    ) -> Self {
        let reason = |verdict: &RatedVerdict| Some(verdict.reason.clone());
        let pair = |(before, now): (&RatedVerdict, &RatedVerdict)| VerdictPair {
            trace_id: before.trace_id.clone(),
            before: before.passed,
            now: now.passed,
            before_reason: reason(before),
            now_reason: reason(now),
            rating: Some(before.rating),
        };
        let pairs = current.iter().zip(held_out).map(pair).collect();
        let mut held_out_changes = VersionComparison::of(eval_id, version, version, pairs);
        held_out_changes.now.version = None;
        Self {
            number: 0,
            explanation,
            code,
            code_hash,
            agreement: SplitAgreement { training: SetAgreement::of(training), held_out: SetAgreement::of(held_out) },
            held_out_changes,
            file: None,
        }
    }
}

/// Sorts candidates by correct verdicts on the training set (an error counts as wrong) and numbers them. The sort is
/// stable.
pub fn rank(candidates: &mut [Candidate]) {
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.agreement.training.right()));
    for (candidate, number) in candidates.iter_mut().zip(1..) {
        candidate.number = number;
    }
}

/// Rejected code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedCode {
    pub code: String,
    pub reasons: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(pairs: &[(Option<bool>, Rating)]) -> Vec<RatedVerdict> {
        let verdict = |(at, (passed, rating)): (usize, &(Option<bool>, Rating))| RatedVerdict {
            trace_id: format!("t{at}"),
            passed: *passed,
            reason: String::new(),
            rating: *rating,
        };
        pairs.iter().enumerate().map(verdict).collect()
    }

    fn candidate(explanation: &str, training: &[RatedVerdict]) -> Candidate {
        candidate_with_held_out(explanation, training, (&[], &[]))
    }

    fn candidate_with_held_out(
        explanation: &str,
        training: &[RatedVerdict],
        held_out: (&[RatedVerdict], &[RatedVerdict]),
    ) -> Candidate {
        Candidate::measure("eval_x", 3, (String::new(), String::new(), explanation.to_owned()), training, held_out)
    }

    #[test]
    fn an_error_counts_as_wrong() {
        let agreement = SetAgreement::of(&verdicts(&[
            (Some(true), Rating::Positive),
            (Some(true), Rating::Negative),
            (None, Rating::Negative),
        ]));
        assert_eq!((agreement.contradictions, agreement.counts.errored, agreement.right()), (1, 1, 1));
        assert_eq!(agreement.accuracy, Estimate::proportion(1, 3));
    }

    #[test]
    fn ranks_by_the_training_set() {
        let (right, wrong) = ((Some(true), Rating::Positive), (Some(false), Rating::Positive));
        let mut all = [
            candidate(
                "one of three, two errors",
                &verdicts(&[right, (None, Rating::Positive), (None, Rating::Positive)]),
            ),
            candidate("two of three", &verdicts(&[right, right, wrong])),
            candidate("also two of three", &verdicts(&[wrong, right, right])),
        ];
        rank(&mut all);
        let order: Vec<(u64, &str)> =
            all.iter().map(|candidate| (candidate.number, candidate.explanation.as_str())).collect();
        assert_eq!(order, [(1, "two of three"), (2, "also two of three"), (3, "one of three, two errors")]);
    }

    #[test]
    fn does_not_suggest_a_worse_candidate() {
        let (right, wrong) = ((Some(true), Rating::Positive), (Some(false), Rating::Positive));
        let lost = (None, Rating::Positive);
        let (current, better) = (verdicts(&[right, wrong, wrong]), verdicts(&[right, right, wrong]));
        let agreement = SetAgreement::of(&current);
        let mut refinement = Refinement {
            eval_id: "eval_x".to_owned(),
            version: 3,
            model: String::new(),
            training: RatingCounts::default(),
            held_out: RatingCounts::default(),
            current: SplitAgreement { training: agreement, held_out: agreement },
            candidates: vec![candidate_with_held_out(
                "as the current version",
                &verdicts(&[wrong, right, wrong]),
                (&current, &current),
            )],
            refused: Vec::new(),
        };
        assert_eq!(refinement.suggested(), None);
        let fitted = candidate_with_held_out("overfitted", &verdicts(&[right, right, right]), (&current, &current));
        let changes = VersionComparison { direction: Direction::Worse, ..fitted.held_out_changes.clone() };
        refinement.candidates.push(Candidate { held_out_changes: changes, ..fitted });
        assert_eq!(refinement.suggested(), None);
        // Not significant, but still worse on the held-out set.
        for held_out in [[wrong, wrong, wrong], [right, wrong, lost]] {
            let held_out = verdicts(&held_out);
            let worse = candidate_with_held_out("a little worse", &better, (&current, &held_out));
            assert_ne!(worse.held_out_changes.direction, Direction::Worse);
            refinement.candidates.push(worse);
            assert_eq!(refinement.suggested(), None);
        }
        refinement.candidates.push(candidate_with_held_out("better", &better, (&current, &current)));
        assert_eq!(refinement.suggested().map(|candidate| candidate.explanation.as_str()), Some("better"));
    }

    #[test]
    fn compares_a_candidate_with_the_current_version() {
        let before = verdicts(&[(Some(true), Rating::Negative), (Some(true), Rating::Positive)]);
        let now = verdicts(&[(Some(false), Rating::Negative), (Some(true), Rating::Positive)]);
        let parts = (String::new(), String::new(), String::new());
        let changes = Candidate::measure("eval_x", 3, parts, &[], (&before, &now)).held_out_changes;
        assert_eq!((changes.before.version, changes.now.version), (Some(3), None));
        assert_eq!((changes.better, changes.worse, changes.changed.len()), (1, 0, 1));
    }
}
