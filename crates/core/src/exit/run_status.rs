//! Decides the exit code of a run.

use super::ExitStatus;
use crate::event::RunTotals;

impl RunTotals {
    /// Returns how the run ended. An error ranks above a failure, since it may hide one. Gates, if set, decide.
    pub fn status(&self) -> ExitStatus {
        let totals = self;
        let rubric_has_no_verdict = totals.rubric.as_ref().is_some_and(|rubric| {
            // If everything selected was skipped, there is no verdict.
            rubric.errored > 0 || totals.cases == 0 && rubric.judged == 0
        });
        if totals.interrupted {
            ExitStatus::Interrupted
        } else if rubric_has_no_verdict || totals.errored > 0 || totals.is_incomplete() && totals.failed == 0 {
            // A case that did not run, for no known reason, has no verdict either.
            ExitStatus::Errored
        } else if totals.cases == 0 && totals.skipped > 0 && !totals.is_shard {
            // All cases were skipped, so none passed.
            ExitStatus::NothingSelected
        } else if totals.cases == 0 && totals.is_shard && totals.rubric.is_none() {
            // The cases are in other shards; gates need at least one case.
            ExitStatus::Success
        } else if !totals.gates.is_empty() {
            self.gates_status()
        } else if totals.failed > 0 || totals.regressions > 0 {
            ExitStatus::Failed
        } else {
            ExitStatus::Success
        }
    }

    fn gates_status(&self) -> ExitStatus {
        let totals = self;
        let any = |held| totals.gates.iter().any(|gate| gate.held == held);
        if any(None) {
            ExitStatus::Errored
        } else if any(Some(false)) {
            ExitStatus::Failed
        } else if totals.is_incomplete() {
            // Gates that pass for some of the cases may fail for all of them.
            ExitStatus::Errored
        } else {
            ExitStatus::Success
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::gate::{Gate, GateResult};

    #[rstest]
    #[case(0, 2, false, ExitStatus::NothingSelected)]
    #[case(0, 2, true, ExitStatus::Success)]
    #[case(0, 0, true, ExitStatus::Success)]
    #[case(1, 2, false, ExitStatus::Success)]
    fn skipped_cases_do_not_pass(
        #[case] cases: usize,
        #[case] skipped: usize,
        #[case] is_shard: bool,
        #[case] expected: ExitStatus,
    ) {
        let totals = RunTotals { cases, passed: cases, skipped, is_shard, ..RunTotals::default() };
        assert_eq!(totals.status(), expected);
    }

    fn gate(held: Option<bool>) -> GateResult {
        GateResult { gate: Gate::PassRate, agent: None, limit: 0.5, actual: None, held, note: None }
    }

    #[rstest]
    #[case(&[Some(true)], (5, 0, 0), ExitStatus::Success)]
    #[case(&[Some(true), Some(false)], (0, 0, 0), ExitStatus::Failed)]
    #[case(&[Some(false), None], (5, 0, 0), ExitStatus::Errored)]
    #[case(&[Some(true)], (1, 1, 0), ExitStatus::Errored)]
    #[case(&[Some(true)], (0, 0, 1), ExitStatus::Errored)]
    #[case(&[Some(true)], (1, 0, 1), ExitStatus::Errored)]
    #[case(&[Some(false)], (1, 0, 1), ExitStatus::Failed)]
    #[case(&[], (5, 0, 0), ExitStatus::Failed)]
    #[case(&[], (0, 0, 0), ExitStatus::Success)]
    fn gates_decide_the_status(
        #[case] held: &[Option<bool>],
        #[case] (failed, errored, not_run): (usize, usize, usize),
        #[case] expected: ExitStatus,
    ) {
        let gates = held.iter().copied().map(gate).collect();
        let totals =
            RunTotals { cases: 9, failed, errored, not_run, gates, regressions: failed, ..RunTotals::default() };
        assert_eq!(totals.status(), expected);
        assert_eq!(RunTotals { interrupted: true, ..totals }.status(), ExitStatus::Interrupted);
    }
}
