//! One result of a case's tries.

use super::{CaseResult, Outcome};
use crate::trials::{Trial, Trials};

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
            cause: one.cause,
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
    use crate::assertion::Failure;
    use crate::result::{CaseDetails, Cause, EarlierCase, Summary};
    use crate::trace::Usage;
    use crate::trials::{TrialSummary, pass_at};

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
        let cause = match letter {
            'p' | 'v' => None,
            'f' => Some(Cause::Assertion),
            't' => Some(Cause::Timeout),
            _ => Some(Cause::Agent),
        };
        let error = match letter {
            't' => Some(Cause::TIMEOUT_TEXT.to_owned()),
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
            cause,
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
    #[case("ppp", Outcome::Passed, None, None, "p")]
    #[case(
        "pfpft",
        Outcome::Failed,
        Some(Cause::Assertion),
        Some("3 of 5 trials failed: responseContains: expected 'a'"),
        "f"
    )]
    #[case("ptf", Outcome::Failed, Some(Cause::Timeout), Some("2 of 3 trials failed: timeout"), "t")]
    #[case("pep", Outcome::Errored, Some(Cause::Agent), Some("1 of 3 trials errored: HTTP 500"), "e")]
    #[case("pfe", Outcome::Errored, Some(Cause::Agent), Some("1 of 3 trials errored, 1 failed: HTTP 500"), "e")]
    fn the_worst_outcome_is_told(
        #[case] letters: &str,
        #[case] outcome: Outcome,
        #[case] cause: Option<Cause>,
        #[case] error: Option<&str>,
        #[case] told: &str,
    ) {
        let result = combined(letters);
        assert_eq!((result.outcome, result.cause, result.error.as_deref()), (outcome, cause, error));
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

    #[rstest]
    #[case('p', None)]
    #[case('f', Some(Cause::Assertion))]
    #[case('t', Some(Cause::Timeout))]
    // The text does not say what errored.
    #[case('e', None)]
    fn a_cause_that_is_written_is_read_back(#[case] letter: char, #[case] cause: Option<Cause>) {
        let result = one(letter);
        let written = serde_json::to_value(&result).expect("JSON");
        assert_eq!(written.get("cause"), None, "the format has no such key");
        let read: EarlierCase = serde_json::from_value(written).expect("a case");
        assert_eq!(Cause::read(read.outcome, read.error.as_deref()), cause);
        assert_eq!(result.cause.map_or(Outcome::Passed, Cause::outcome), read.outcome);
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
            let mut sum = TrialSummary::of(cases[..1].iter().filter_map(|case| case.trials.as_deref())).expect("several");
            sum.add(&TrialSummary::of(cases[1..].iter().filter_map(|case| case.trials.as_deref())).expect("several"));
            prop_assert_eq!(Some(sum), TrialSummary::of(cases.iter().filter_map(|case| case.trials.as_deref())));
        }
    }
}
