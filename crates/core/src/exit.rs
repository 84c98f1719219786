//! Exit codes: a promise to scripts, the same for every command.

use crate::event::RunTotals;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Everything passed.
    Success,
    /// A case failed or regressed, or a gate did not hold.
    Failed,
    /// Usage, configuration or input is invalid; nothing was run.
    Invalid,
    /// Something errored, so that there is no verdict.
    Errored,
    /// Nothing was selected.
    NothingSelected,
    /// Interrupted; what had finished was written.
    Interrupted,
}

impl ExitStatus {
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Success => 0,
            ExitStatus::Failed => 1,
            ExitStatus::Invalid => 2,
            ExitStatus::Errored => 3,
            ExitStatus::NothingSelected => 4,
            ExitStatus::Interrupted => 130,
        }
    }

    /// Returns how a run ended: an error ranks above a failure, since it hides one.
    pub fn of_run(totals: &RunTotals) -> Self {
        let rubric_has_no_verdict = totals.rubric.as_ref().is_some_and(|rubric| {
            // Where all that was selected was skipped, nothing was found out.
            rubric.errored > 0 || totals.cases == 0 && rubric.judged == 0
        });
        if totals.interrupted {
            ExitStatus::Interrupted
        } else if rubric_has_no_verdict || totals.errored > 0 || totals.not_run > 0 && totals.failed == 0 {
            // A case that did not run for no known reason has no verdict either.
            ExitStatus::Errored
        } else if totals.failed > 0 || totals.regressions > 0 {
            ExitStatus::Failed
        } else {
            ExitStatus::Success
        }
    }
}
