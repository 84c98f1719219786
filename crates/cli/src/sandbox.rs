//! Opens the sandbox that eval functions run in, for the verbs that need it.

use karat_core::judgement::{Limits, LowerLimits, TooLarge};
use karat_sandbox::{Guest, Isolation, Sandbox, SandboxError};

use crate::args::{IsolationName, LimitArgs};
use crate::environment::Environment;
use crate::failure::Failure;

/// More threads than any machine has processors are a mistake.
const MOST_JOBS: usize = 1024;

pub(crate) fn open_sandbox(environment: &Environment) -> Result<Sandbox, Failure> {
    Sandbox::open(&find_guest(environment)?).map_err(sandbox_failure)
}

/// Takes the Python that the variable names, or else the program's own.
pub(crate) fn find_guest(environment: &Environment) -> Result<Guest, Failure> {
    Guest::find(environment.guest.as_deref()).map_err(|error| {
        let failure = sandbox_failure(error);
        match &environment.guest {
            Some(_) => Failure { message: format!("KARAT_GUEST: {}", failure.message), ..failure },
            None => failure,
        }
    })
}

/// Says why there is no sandbox; nobody's function is to blame.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
pub(crate) fn sandbox_failure(error: SandboxError) -> Failure {
    let failure = match &error {
        SandboxError::Unreadable { .. } | SandboxError::NotAGuest { .. } => Failure::invalid(error.to_string()),
        _ => Failure::errored(error.to_string()),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

impl LimitArgs {
    /// Returns what functions may use: flags rank above the configuration, and neither gives more than the largest.
    pub(crate) fn limits(&self, configured: LowerLimits) -> Result<Limits, Failure> {
        let flags = LowerLimits { time_ms: self.limit_ms, memory_mb: self.limit_mb };
        flags.or(configured).limits().map_err(|too_large| {
            Failure::invalid(match too_large {
                TooLarge::TimeMs(largest) => format!("--limit-ms must be from 1 to {largest}"),
                TooLarge::MemoryMb(largest) => format!("--limit-mb must be from 1 to {largest}"),
            })
        })
    }

    pub(crate) fn isolation(&self) -> Isolation {
        match self.isolation {
            IsolationName::Namespace => Isolation::Namespace,
            IsolationName::Strict => Isolation::Strict,
        }
    }

    pub(crate) fn jobs(&self) -> Result<usize, Failure> {
        let Some(jobs) = self.jobs else {
            return Ok(std::thread::available_parallelism().map_or(1, usize::from).min(MOST_JOBS));
        };
        let jobs = usize::try_from(jobs).ok().filter(|jobs| (1..=MOST_JOBS).contains(jobs));
        jobs.ok_or_else(|| Failure::invalid(format!("--jobs must be from 1 to {MOST_JOBS}")))
    }
}
