//! Combines the trials of a case into one result.

use super::{CaseResult, Outcome};
use crate::trials::{Trial, Trials};

/// Combines the trials of a case into one result: the worst outcome, with the details of the first trial that has it.
/// Returns `None` if there are no trials.
pub fn combine(mut results: Vec<CaseResult>, planned: usize) -> Option<CaseResult> {
    if planned <= 1 && results.len() <= 1 {
        return results.pop();
    }
    let has = |outcome| results.iter().any(|result| result.outcome == outcome);
    let worst = [Outcome::Errored, Outcome::Failed, Outcome::Passed].into_iter().find(|outcome| has(*outcome))?;
    let mut combined = results.iter().find(|result| result.outcome == worst)?.clone();
    combined.duration_ms = results.iter().map(|result| result.duration_ms).sum();
    combined.assertions_run = results.iter().map(|result| result.assertions_run).sum();
    combined.assertions_skipped = results.iter().map(|result| result.assertions_skipped).sum();
    combined.vacuous = results.iter().any(|result| result.vacuous);
    let trials = Trials::new(results.into_iter().map(Trial::from).collect(), planned);
    let summary = match worst {
        Outcome::Passed => None,
        Outcome::Failed => Some(format!("{} of {} trials failed", trials.failed, trials.attempts.len())),
        Outcome::Errored if trials.failed > 0 => {
            Some(format!("{} of {} trials errored, {} failed", trials.errored, trials.attempts.len(), trials.failed))
        }
        Outcome::Errored => Some(format!("{} of {} trials errored", trials.errored, trials.attempts.len())),
    };
    combined.error = summary.map(|summary| match combined.error {
        Some(error) => format!("{summary}: {error}"),
        None => summary,
    });
    combined.trials = Some(Box::new(trials));
    Some(combined)
}

impl From<CaseResult> for Trial {
    fn from(result: CaseResult) -> Self {
        Self {
            outcome: result.outcome,
            duration_ms: result.duration_ms,
            assertions_run: result.assertions_run,
            assertions_skipped: result.assertions_skipped,
            vacuous: result.vacuous,
            cause: result.cause,
            error: result.error,
            failures: result.failures,
            details: result.details,
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

    fn result(letter: char) -> CaseResult {
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
            message: "m".to_owned(),
            passed: outcome == Outcome::Passed,
            outcome,
            duration_ms: 10,
            assertions_run: 2,
            assertions_skipped: 1,
            vacuous: letter == 'v',
            cause,
            error,
            failures,
            marks: Vec::new(),
            details: CaseDetails { response: letter.to_string(), usage: usage.map(Box::new), ..CaseDetails::default() },
            trials: None,
        }
    }

    fn combined(letters: &str) -> CaseResult {
        combine(letters.chars().map(result).collect(), letters.len()).expect("trials")
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
    fn reports_the_worst_outcome(
        #[case] letters: &str,
        #[case] outcome: Outcome,
        #[case] cause: Option<Cause>,
        #[case] error: Option<&str>,
        #[case] response: &str,
    ) {
        let result = combined(letters);
        assert_eq!((result.outcome, result.cause, result.error.as_deref()), (outcome, cause, error));
        assert_eq!(result.passed, outcome == Outcome::Passed);
        assert_eq!(result.details.response, response);
        assert_eq!(result.duration_ms, 10 * letters.len() as u64);
        assert_eq!((result.assertions_run, result.assertions_skipped), (2 * letters.len(), letters.len()));
    }

    #[test]
    fn errored_trials_count_in_no_rate() {
        let trials = combined("pepf").trials.expect("several");
        assert_eq!((trials.passed, trials.failed, trials.errored, trials.flaky), (2, 1, 1, true));
        assert_eq!(trials.pass_rate, Some(2.0 / 3.0));
        let rounded: Vec<(usize, f64)> = trials.pass_at.iter().map(|at| (at.k, (at.pass_at_k * 3.0).round())).collect();
        assert_eq!(rounded, [(1, 2.0), (2, 3.0), (3, 3.0)]);
        let errored = combined("ee").trials.expect("several");
        assert_eq!(
            (errored.pass_rate, errored.pass_rate_low, errored.flaky, errored.pass_at.len()),
            (None, None, false, 0)
        );
    }

    #[rstest]
    #[case(1, &[1])]
    #[case(2, &[1, 2])]
    #[case(5, &[1, 2, 4, 5])]
    #[case(8, &[1, 2, 4, 8])]
    fn pass_at_uses_powers_of_two_and_the_total(#[case] trials: usize, #[case] expected: &[usize]) {
        assert_eq!(pass_at(1, trials).iter().map(|at| at.k).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_single_trial_is_unchanged() {
        assert_eq!(combine(vec![result('f')], 1), Some(result('f')));
        assert_eq!(combine(Vec::new(), 5), None);
        let interrupted = combine(vec![result('f')], 5).expect("one trial");
        assert_eq!(interrupted.error.as_deref(), Some("1 of 1 trials failed: responseContains: expected 'a'"));
        assert_eq!(interrupted.trials.map(|trials| trials.planned), Some(5));
    }

    #[rstest]
    #[case('p', None)]
    #[case('f', Some(Cause::Assertion))]
    #[case('t', Some(Cause::Timeout))]
    // The text does not say what errored.
    #[case('e', None)]
    fn recovers_the_cause_from_a_written_result(#[case] letter: char, #[case] cause: Option<Cause>) {
        let result = result(letter);
        let written = serde_json::to_value(&result).expect("serializable");
        assert_eq!(written.get("cause"), None, "not part of the format");
        let read: EarlierCase = serde_json::from_value(written).expect("valid case");
        assert_eq!(Cause::read(read.outcome, read.error.as_deref()), cause);
        assert_eq!(result.cause.map_or(Outcome::Passed, Cause::outcome), read.outcome);
    }

    #[test]
    fn one_vacuous_trial_makes_the_case_vacuous() {
        assert!(combined("pvp").vacuous);
    }

    #[test]
    fn summary_counts_every_trial() {
        let cases = [combined("ppf"), combined("ppp")].map(Arc::new);
        let summary = Summary::from_cases(&cases, 2, 0);
        assert_eq!((summary.total_cases, summary.passed, summary.failed), (2, 1, 1));
        assert_eq!(summary.estimated_cost_usd, Some(1.5));
        let trials = summary.trials.expect("several");
        assert_eq!((trials.per_case, trials.total, trials.passed, trials.flaky), (3, 6, 5, 1));
        assert_eq!(trials.pass_rate, Some(5.0 / 6.0));
        assert_eq!(trials.not_run, 0);
        let interrupted = combine(vec![result('p'), result('f')], 5).expect("trials");
        let trials = Summary::from_cases(&[Arc::new(interrupted)], 1, 0).trials.expect("several");
        assert_eq!((trials.total, trials.not_run), (2, 3));
        let unknown = [combined("ppe"), combined("ppp")].map(Arc::new);
        assert_eq!(Summary::from_cases(&unknown, 2, 0).estimated_cost_usd, None, "the cost of the error is unknown");
        assert_eq!(Summary::from_cases(&[Arc::new(result('p'))], 1, 0).trials, None);
    }

    proptest! {
        #[test]
        fn adding_summaries_equals_summing_all_cases(left in "[pfe]{2,6}", right in "[pfe]{2,6}") {
            let cases = [combined(&left), combined(&right)];
            let mut sum = TrialSummary::from_trials(cases[..1].iter().filter_map(|case| case.trials.as_deref())).expect("several");
            sum.add(&TrialSummary::from_trials(cases[1..].iter().filter_map(|case| case.trials.as_deref())).expect("several"));
            prop_assert_eq!(Some(sum), TrialSummary::from_trials(cases.iter().filter_map(|case| case.trials.as_deref())));
        }
    }
}
