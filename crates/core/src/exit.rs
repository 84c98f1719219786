//! Exit codes: stable for scripts, and the same for every command.

mod run_status;

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Everything passed.
    Success,
    /// A case failed or regressed, or a gate failed.
    Failed,
    /// Usage, configuration or input is invalid; nothing was run.
    Invalid,
    /// An error occurred, so there is no verdict.
    Errored,
    /// Nothing was selected.
    NothingSelected,
    /// Interrupted; finished work was written.
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
}
