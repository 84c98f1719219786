//! Trials, as text.

use std::fmt::Write as _;

use karat_core::result::CaseResult;
use karat_core::trials::TrialSummary;

/// Returns the number of passed trials, and the pass rate with its interval.
pub(crate) fn trials_line(trials: &TrialSummary) -> String {
    let TrialSummary { total, passed, errored, not_run, .. } = trials;
    let mut line = format!("{passed}/{total} trials passed");
    if *errored > 0 {
        let _ = write!(line, ", {errored} errored");
    }
    if *not_run > 0 {
        let _ = write!(line, ", {not_run} not run");
    }
    if let (Some(rate), Some(low), Some(high)) = (trials.pass_rate, trials.pass_rate_low, trials.pass_rate_high) {
        let of = if *errored > 0 { format!(" of {} verdicts", total - errored) } else { String::new() };
        let (low, high) = (percent(low), percent(high));
        let _ = write!(line, " ({}%{of}, 95% interval {low}–{high}%)", percent(rate));
    }
    line
}

/// Returns the passed trials of a case as a fraction of those that ran.
pub(crate) fn passed_trials(case: &CaseResult) -> Option<String> {
    case.trials.as_ref().map(|trials| format!("{}/{}", trials.passed, trials.attempts.len()))
}

pub(crate) fn is_flaky(case: &CaseResult) -> bool {
    case.trials.as_ref().is_some_and(|trials| trials.flaky)
}

/// Formats a share in percent; only exact values are shown as 0 or 100.
pub(crate) fn percent(share: f64) -> String {
    let percent = (share * 100.0).round();
    if percent >= 100.0 && share < 1.0 {
        ">99".to_owned()
    } else if percent <= 0.0 && share > 0.0 {
        "<1".to_owned()
    } else {
        format!("{percent:.0}")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0.0, "0")]
    #[case(0.004, "<1")]
    #[case(0.94, "94")]
    #[case(0.999, ">99")]
    #[case(1.0, "100")]
    fn only_exact_shares_are_0_or_100_percent(#[case] share: f64, #[case] expected: &str) {
        assert_eq!(percent(share), expected);
    }

    #[rstest]
    #[case(47, 3, 0, 0, "47/50 trials passed (94%, 95% interval 84–98%)")]
    #[case(1, 1, 0, 3, "1/2 trials passed, 3 not run (50%, 95% interval 9–91%)")]
    #[case(47, 3, 2, 0, "47/52 trials passed, 2 errored (94% of 50 verdicts, 95% interval 84–98%)")]
    #[case(0, 0, 5, 0, "0/5 trials passed, 5 errored")]
    fn counts_all_trials(
        #[case] passed: usize,
        #[case] failed: usize,
        #[case] errored: usize,
        #[case] not_run: usize,
        #[case] expected: &str,
    ) {
        let mut trials = TrialSummary::default();
        trials.add(&TrialSummary { passed, failed, errored, not_run, ..TrialSummary::default() });
        assert_eq!(trials_line(&trials), expected);
    }
}
