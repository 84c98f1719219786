//! Rewritten code of an eval beside today's.

use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::VerdictPair;
use super::counts::AgreementCounts;
use super::{Direction, Estimate, Figures, VersionComparison};
use karat_core::rating::Rating;

/// What a function said of a rated trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatedVerdict {
    pub trace_id: String,
    /// None: an error.
    pub passed: Option<bool>,
    /// The reason, or the error.
    pub reason: String,
    pub rating: Rating,
}

/// What `karat eval refine --format json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat eval refine")]
pub struct Refinement {
    pub eval_id: String,
    /// Today's version.
    pub version: u64,
    /// The model that rewrote it.
    pub model: String,
    /// The traces of which the model was told.
    pub training: PartSize,
    /// The traces of which it was told nothing.
    pub held_out: PartSize,
    pub today: PartedAgreement,
    /// The best on the training part first: whoever chose by the held-out part would make it a training part too.
    pub candidates: Vec<Candidate>,
    /// What the model wrote that is not taken: it is no eval function, or it is today's code or another candidate's.
    pub refused: Vec<RefusedCode>,
}

impl Refinement {
    /// Returns the first candidate that is worth adopting: better than today's version on the training part, and on the
    /// part of which its author knew nothing neither less often right nor more often an error. Few traces are held out,
    /// so that worse code is seldom worse beyond chance: whoever suggests something has to show that it is not.
    pub fn suggested(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| {
            let (now, today) = (&candidate.agreement, &self.today);
            now.training.right() > today.training.right()
                && now.held_out.right() >= today.held_out.right()
                && now.held_out.counts.errored <= today.held_out.counts.errored
                && candidate.held_out_changes.direction != Direction::Worse
        })
    }
}

/// How many traces of each rating there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PartSize {
    pub positive: u64,
    pub negative: u64,
}

impl PartSize {
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

/// How far a function agrees with people on each part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PartedAgreement {
    pub training: PartAgreement,
    pub held_out: PartAgreement,
}

/// How far a function agrees with people.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PartAgreement {
    /// Of all traces of the part, where an error counts as wrong: so every function is measured by the same traces.
    pub accuracy: Option<Estimate>,
    /// Of the verdicts.
    pub kappa: Option<Estimate>,
    pub contradictions: u64,
    pub counts: AgreementCounts,
}

impl PartAgreement {
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
        let accuracy = Estimate::share(right, counts.compared() + counts.errored);
        Self { accuracy, kappa, contradictions: counts.contradictions(), counts }
    }

    /// Returns how many verdicts people agree with.
    fn right(&self) -> u64 {
        self.counts.passed_positive + self.counts.failed_negative
    }
}

/// Code that a model wrote, and how it does.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Candidate {
    /// From 1, by which a person names it.
    pub number: u64,
    /// What the model says that it changed.
    pub why: String,
    pub code: String,
    pub code_hash: String,
    pub agreement: PartedAgreement,
    /// Which held-out verdicts changed, and whether for the better.
    pub held_out_changes: VersionComparison,
    /// Where it was written.
    pub file: Option<String>,
}

impl Candidate {
    /// Measures code by what it said of both parts, each beside what today's version said of the same traces.
    pub fn measure(
        eval_id: &str,
        version: u64,
        (code, code_hash, why): (String, String, String),
        training: &[RatedVerdict],
        (today, held_out): (&[RatedVerdict], &[RatedVerdict]),
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
        let pairs = today.iter().zip(held_out).map(pair).collect();
        let mut held_out_changes = VersionComparison::of(eval_id, version, version, pairs);
        held_out_changes.now.version = None;
        Self {
            number: 0,
            why,
            code,
            code_hash,
            agreement: PartedAgreement { training: PartAgreement::of(training), held_out: PartAgreement::of(held_out) },
            held_out_changes,
            file: None,
        }
    }
}

/// Orders candidates by what they got right of the training part, an error being wrong, and numbers them. Equals stay as
/// the model wrote them.
pub fn rank(candidates: &mut [Candidate]) {
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.agreement.training.right()));
    for (candidate, number) in candidates.iter_mut().zip(1..) {
        candidate.number = number;
    }
}

/// Code that is not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedCode {
    pub code: String,
    pub reasons: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(said: &[(Option<bool>, Rating)]) -> Vec<RatedVerdict> {
        let verdict = |(at, (passed, rating)): (usize, &(Option<bool>, Rating))| RatedVerdict {
            trace_id: format!("t{at}"),
            passed: *passed,
            reason: String::new(),
            rating: *rating,
        };
        said.iter().enumerate().map(verdict).collect()
    }

    fn candidate(why: &str, training: &[RatedVerdict]) -> Candidate {
        beside(why, training, (&[], &[]))
    }

    fn beside(why: &str, training: &[RatedVerdict], held_out: (&[RatedVerdict], &[RatedVerdict])) -> Candidate {
        Candidate::measure("eval_x", 3, (String::new(), String::new(), why.to_owned()), training, held_out)
    }

    #[test]
    fn errors_are_not_agreement() {
        let part = PartAgreement::of(&verdicts(&[
            (Some(true), Rating::Positive),
            (Some(true), Rating::Negative),
            (None, Rating::Negative),
        ]));
        assert_eq!((part.contradictions, part.counts.errored, part.right()), (1, 1, 1));
        assert_eq!(part.accuracy, Estimate::share(1, 3));
    }

    #[test]
    fn the_best_on_the_training_part_is_first() {
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
        let order: Vec<(u64, &str)> = all.iter().map(|one| (one.number, one.why.as_str())).collect();
        assert_eq!(order, [(1, "two of three"), (2, "also two of three"), (3, "one of three, two errors")]);
    }

    #[test]
    fn what_is_worse_is_not_suggested() {
        let (right, wrong) = ((Some(true), Rating::Positive), (Some(false), Rating::Positive));
        let lost = (None, Rating::Positive);
        let (today, better) = (verdicts(&[right, wrong, wrong]), verdicts(&[right, right, wrong]));
        let part = PartAgreement::of(&today);
        let mut refinement = Refinement {
            eval_id: "eval_x".to_owned(),
            version: 3,
            model: String::new(),
            training: PartSize::default(),
            held_out: PartSize::default(),
            today: PartedAgreement { training: part, held_out: part },
            candidates: vec![beside("as today", &verdicts(&[wrong, right, wrong]), (&today, &today))],
            refused: Vec::new(),
        };
        assert_eq!(refinement.suggested(), None);
        let fitted = beside("learnt by heart", &verdicts(&[right, right, right]), (&today, &today));
        let changes = VersionComparison { direction: Direction::Worse, ..fitted.held_out_changes.clone() };
        refinement.candidates.push(Candidate { held_out_changes: changes, ..fitted });
        assert_eq!(refinement.suggested(), None);
        // One trace proves nothing, and still nobody is told to adopt what does worse on it.
        for held_out in [[wrong, wrong, wrong], [right, wrong, lost]] {
            let held_out = verdicts(&held_out);
            let worse = beside("a little worse", &better, (&today, &held_out));
            assert_ne!(worse.held_out_changes.direction, Direction::Worse);
            refinement.candidates.push(worse);
            assert_eq!(refinement.suggested(), None);
        }
        refinement.candidates.push(beside("better", &better, (&today, &today)));
        assert_eq!(refinement.suggested().map(|one| one.why.as_str()), Some("better"));
    }

    #[test]
    fn a_candidate_is_held_against_today() {
        let before = verdicts(&[(Some(true), Rating::Negative), (Some(true), Rating::Positive)]);
        let now = verdicts(&[(Some(false), Rating::Negative), (Some(true), Rating::Positive)]);
        let parts = (String::new(), String::new(), String::new());
        let changes = Candidate::measure("eval_x", 3, parts, &[], (&before, &now)).held_out_changes;
        assert_eq!((changes.before.version, changes.now.version), (Some(3), None));
        assert_eq!((changes.better, changes.worse, changes.changed.len()), (1, 0, 1));
    }
}
