//! A case that was tried several times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::assertion::Failure;
use crate::result::{CaseDetails, CaseResult, Outcome};
use crate::statistics::{Tries, pass_at_k, pass_hat_k, rate, wilson};

/// All tries of a case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trials {
    /// How many were asked for; fewer ran when the run was interrupted.
    pub planned: usize,
    pub passed: usize,
    pub failed: usize,
    /// Tries without a verdict, which no rate counts.
    pub errored: usize,
    /// The share of tries with a verdict that passed; null if none has one.
    pub pass_rate: Option<f64>,
    /// The pass rate's 95 % interval, by Wilson's formula.
    pub pass_rate_low: Option<f64>,
    pub pass_rate_high: Option<f64>,
    /// Some tries passed and some failed.
    pub flaky: bool,
    /// For 1, 2, 4, 8 and so on, and all tries with a verdict.
    pub pass_at: Vec<PassAt>,
    /// In the order in which they were begun.
    pub tries: Vec<Trial>,
}

/// What to expect of several tries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PassAt {
    pub k: usize,
    /// How likely at least one of `k` tries passes.
    pub pass_at_k: f64,
    /// How likely all of `k` tries pass.
    pub pass_hat_k: f64,
}

/// One try of a case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    pub outcome: Outcome,
    pub duration_ms: u64,
    pub assertions_run: usize,
    pub assertions_skipped: usize,
    pub vacuous: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub failures: Vec<Failure>,
    pub details: CaseDetails,
}

/// How many tries ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialCounts {
    pub passed: usize,
    pub failed: usize,
    #[serde(default)]
    pub errored: usize,
}

impl TrialCounts {
    /// Counts a case that was tried once.
    pub fn single(outcome: Outcome) -> Self {
        let mut counts = Self::default();
        counts.count(outcome);
        counts
    }

    pub fn total(self) -> usize {
        self.passed + self.failed + self.errored
    }

    /// Returns the tries that have a verdict.
    pub fn judged(self) -> Tries {
        Tries { passed: self.passed, failed: self.failed }
    }

    pub fn is_mixed(self) -> bool {
        self.passed > 0 && self.failed > 0
    }

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Errored => self.errored += 1,
        }
    }
}

/// The tries of many cases in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialSummary {
    /// How many tries each case was to have.
    pub per_case: usize,
    /// Tries that ended.
    pub total: usize,
    pub passed: usize,
    pub failed: usize,
    /// Tries without a verdict, which the rate does not count.
    pub errored: usize,
    /// Tries of cases that ran, which an interruption or `--fail-fast` kept from running.
    pub not_run: usize,
    /// The share of tries with a verdict that passed; null if none has one.
    pub pass_rate: Option<f64>,
    /// The pass rate's 95 % interval, by Wilson's formula.
    pub pass_rate_low: Option<f64>,
    pub pass_rate_high: Option<f64>,
    /// Cases of which some tries passed and some failed.
    pub flaky: usize,
}

impl TrialSummary {
    /// Sums up the tries of cases; nothing where each was tried once.
    pub fn of<'c>(cases: impl Iterator<Item = &'c CaseResult>) -> Option<Self> {
        let mut sum: Option<Self> = None;
        for trials in cases.filter_map(|case| case.trials.as_deref()) {
            let sum = sum.get_or_insert_default();
            sum.per_case = sum.per_case.max(trials.planned);
            sum.passed += trials.passed;
            sum.failed += trials.failed;
            sum.errored += trials.errored;
            sum.not_run += trials.planned.saturating_sub(trials.tries.len());
            sum.flaky += usize::from(trials.flaky);
        }
        sum.map(Self::rated)
    }

    /// Adds the tries of other cases.
    pub fn add(&mut self, other: &Self) {
        let sum = Self {
            per_case: self.per_case.max(other.per_case),
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            errored: self.errored + other.errored,
            not_run: self.not_run + other.not_run,
            flaky: self.flaky + other.flaky,
            ..Self::default()
        };
        *self = sum.rated();
    }

    fn rated(self) -> Self {
        let judged = self.passed + self.failed;
        let interval = wilson(self.passed, judged);
        Self {
            total: judged + self.errored,
            pass_rate: rate(self.passed, judged),
            pass_rate_low: interval.map(|interval| interval.low),
            pass_rate_high: interval.map(|interval| interval.high),
            ..self
        }
    }
}

impl Trials {
    fn of(tries: Vec<Trial>, planned: usize) -> Self {
        let mut counts = TrialCounts::default();
        for one in &tries {
            counts.count(one.outcome);
        }
        let TrialCounts { passed, failed, errored } = counts;
        let judged = passed + failed;
        let interval = wilson(passed, judged);
        Self {
            planned,
            passed,
            failed,
            errored,
            pass_rate: rate(passed, judged),
            pass_rate_low: interval.map(|interval| interval.low),
            pass_rate_high: interval.map(|interval| interval.high),
            flaky: counts.is_mixed(),
            pass_at: pass_at(passed, judged),
            tries,
        }
    }

    pub fn counts(&self) -> TrialCounts {
        TrialCounts { passed: self.passed, failed: self.failed, errored: self.errored }
    }
}

fn pass_at(passed: usize, judged: usize) -> Vec<PassAt> {
    let doubling = std::iter::successors(Some(1_usize), |k| k.checked_mul(2)).take_while(|k| *k < judged);
    let figures = doubling.chain([judged]).filter_map(|k| {
        Some(PassAt { k, pass_at_k: pass_at_k(judged, passed, k)?, pass_hat_k: pass_hat_k(judged, passed, k)? })
    });
    figures.collect()
}

/// Makes one result of a case's tries, of which there is at least one: the worst of their outcomes, as told by the
/// first try that has it.
pub fn combine(mut tries: Vec<CaseResult>, planned: usize) -> Option<CaseResult> {
    if planned <= 1 && tries.len() <= 1 {
        return tries.pop();
    }
    let has = |outcome| tries.iter().any(|one| one.outcome == outcome);
    let worst = [Outcome::Errored, Outcome::Failed, Outcome::Passed].into_iter().find(|outcome| has(*outcome))?;
    let mut combined = tries.iter().find(|one| one.outcome == worst)?.clone();
    combined.duration_ms = tries.iter().map(|one| one.duration_ms).sum();
    combined.assertions_run = tries.iter().map(|one| one.assertions_run).sum();
    combined.assertions_skipped = tries.iter().map(|one| one.assertions_skipped).sum();
    combined.vacuous = tries.iter().any(|one| one.vacuous);
    let trials = Trials::of(tries.into_iter().map(Trial::from).collect(), planned);
    let bad = match worst {
        Outcome::Passed => None,
        Outcome::Failed => Some(format!("{} of {} trials failed", trials.failed, trials.tries.len())),
        Outcome::Errored if trials.failed > 0 => {
            Some(format!("{} of {} trials errored, {} failed", trials.errored, trials.tries.len(), trials.failed))
        }
        Outcome::Errored => Some(format!("{} of {} trials errored", trials.errored, trials.tries.len())),
    };
    combined.error = bad.map(|bad| match combined.error {
        Some(error) => format!("{bad}: {error}"),
        None => bad,
    });
    combined.trials = Some(Box::new(trials));
    Some(combined)
}

impl From<CaseResult> for Trial {
    fn from(one: CaseResult) -> Self {
        Self {
            outcome: one.outcome,
            duration_ms: one.duration_ms,
            assertions_run: one.assertions_run,
            assertions_skipped: one.assertions_skipped,
            vacuous: one.vacuous,
            error: one.error,
            failures: one.failures,
            details: one.details,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::result::Summary;
    use crate::trace::Usage;

    fn one(letter: char) -> CaseResult {
        let outcome = match letter {
            'p' | 'v' => Outcome::Passed,
            'f' | 't' => Outcome::Failed,
            _ => Outcome::Errored,
        };
        let failure = Failure {
            assertion: "responseContains".to_owned(),
            message: "responseContains: expected 'a'".to_owned(),
            pointer: "/expect/responseContains/0".to_owned(),
        };
        let failures = if letter == 'f' { vec![failure] } else { Vec::new() };
        let error = match letter {
            't' => Some("timeout".to_owned()),
            'e' => Some("HTTP 500".to_owned()),
            _ => failures.first().map(|failure| failure.message.clone()),
        };
        let usage = (outcome != Outcome::Errored).then(|| Usage { cost_usd: Some(0.25), ..Usage::default() });
        CaseResult {
            id: "c".to_owned(),
            description: "d".to_owned(),
            passed: outcome == Outcome::Passed,
            outcome,
            duration_ms: 10,
            assertions_run: 2,
            assertions_skipped: 1,
            vacuous: letter == 'v',
            error,
            failures,
            details: CaseDetails { response: letter.to_string(), usage, ..CaseDetails::default() },
            trials: None,
        }
    }

    fn combined(letters: &str) -> CaseResult {
        combine(letters.chars().map(one).collect(), letters.len()).expect("tries")
    }

    #[rstest]
    #[case("ppp", Outcome::Passed, None, "p")]
    #[case("pfpft", Outcome::Failed, Some("3 of 5 trials failed: responseContains: expected 'a'"), "f")]
    #[case("ptf", Outcome::Failed, Some("2 of 3 trials failed: timeout"), "t")]
    #[case("pep", Outcome::Errored, Some("1 of 3 trials errored: HTTP 500"), "e")]
    #[case("pfe", Outcome::Errored, Some("1 of 3 trials errored, 1 failed: HTTP 500"), "e")]
    fn the_worst_outcome_is_told(
        #[case] letters: &str,
        #[case] outcome: Outcome,
        #[case] error: Option<&str>,
        #[case] told: &str,
    ) {
        let result = combined(letters);
        assert_eq!((result.outcome, result.error.as_deref()), (outcome, error));
        assert_eq!(result.passed, outcome == Outcome::Passed);
        assert_eq!(result.details.response, told);
        assert_eq!(result.duration_ms, 10 * letters.len() as u64);
        assert_eq!((result.assertions_run, result.assertions_skipped), (2 * letters.len(), letters.len()));
    }

    #[test]
    fn errors_count_in_no_rate() {
        let trials = combined("pepf").trials.expect("several");
        assert_eq!((trials.passed, trials.failed, trials.errored, trials.flaky), (2, 1, 1, true));
        assert_eq!(trials.pass_rate, Some(2.0 / 3.0));
        let known: Vec<(usize, f64)> = trials.pass_at.iter().map(|at| (at.k, (at.pass_at_k * 3.0).round())).collect();
        assert_eq!(known, [(1, 2.0), (2, 3.0), (3, 3.0)]);
        let none = combined("ee").trials.expect("several");
        assert_eq!((none.pass_rate, none.pass_rate_low, none.flaky, none.pass_at.len()), (None, None, false, 0));
    }

    #[rstest]
    #[case(1, &[1])]
    #[case(2, &[1, 2])]
    #[case(5, &[1, 2, 4, 5])]
    #[case(8, &[1, 2, 4, 8])]
    fn powers_of_two_and_all(#[case] tries: usize, #[case] expected: &[usize]) {
        assert_eq!(pass_at(1, tries).iter().map(|at| at.k).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn one_try_of_one_is_left_as_it_is() {
        assert_eq!(combine(vec![one('f')], 1), Some(one('f')));
        assert_eq!(combine(Vec::new(), 5), None);
        let cut_short = combine(vec![one('f')], 5).expect("a try");
        assert_eq!(cut_short.error.as_deref(), Some("1 of 1 trials failed: responseContains: expected 'a'"));
        assert_eq!(cut_short.trials.map(|trials| trials.planned), Some(5));
    }

    #[test]
    fn a_vacuous_try_is_not_hidden_by_others() {
        assert!(combined("pvp").vacuous);
    }

    #[test]
    fn a_summary_counts_every_try() {
        let cases = [combined("ppf"), combined("ppp")].map(Arc::new);
        let summary = Summary::of(&cases, 2);
        assert_eq!((summary.total_cases, summary.passed, summary.failed), (2, 1, 1));
        assert_eq!(summary.estimated_cost_usd, Some(1.5));
        let trials = summary.trials.expect("several");
        assert_eq!((trials.per_case, trials.total, trials.passed, trials.flaky), (3, 6, 5, 1));
        assert_eq!(trials.pass_rate, Some(5.0 / 6.0));
        assert_eq!(trials.not_run, 0);
        let cut_short = combine(vec![one('p'), one('f')], 5).expect("tries");
        let trials = Summary::of(&[Arc::new(cut_short)], 1).trials.expect("several");
        assert_eq!((trials.total, trials.not_run), (2, 3));
        let unknown = [combined("ppe"), combined("ppp")].map(Arc::new);
        assert_eq!(Summary::of(&unknown, 2).estimated_cost_usd, None, "nobody knows what the error cost");
        assert_eq!(Summary::of(&[Arc::new(one('p'))], 1).trials, None);
    }

    proptest! {
        #[test]
        fn sums_do_not_depend_on_how_they_are_made(left in "[pfe]{2,6}", right in "[pfe]{2,6}") {
            let cases = [combined(&left), combined(&right)];
            let mut sum = TrialSummary::of(cases[..1].iter()).expect("several");
            sum.add(&TrialSummary::of(cases[1..].iter()).expect("several"));
            prop_assert_eq!(Some(sum), TrialSummary::of(cases.iter()));
        }
    }
}
