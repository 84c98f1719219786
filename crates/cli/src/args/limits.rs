//! Resolves the sandbox flags of eval functions.

use karat_core::judgement::{LimitOutOfRange, Limits, LowerLimits};
use karat_workflows::context::sandbox::SandboxOptions;

use super::LimitArgs;
use crate::failure::Failure;

/// More than the number of processors of any machine.
const MAX_JOBS: usize = 1024;

impl LimitArgs {
    pub(crate) fn options(&self, configured: LowerLimits) -> Result<SandboxOptions, Failure> {
        Ok(SandboxOptions { limits: self.limits(configured)?, isolation: self.isolation, jobs: self.jobs()? })
    }

    /// Returns the limits of functions; flags override the configuration.
    pub(crate) fn limits(&self, configured: LowerLimits) -> Result<Limits, Failure> {
        let flags = LowerLimits { time_ms: self.limit_ms, memory_mb: self.limit_mb };
        flags.or(configured).limits().map_err(|error| {
            Failure::invalid(match error {
                LimitOutOfRange::TimeMs(max) => format!("--limit-ms must be between 1 and {max}"),
                LimitOutOfRange::MemoryMb(max) => format!("--limit-mb must be between 1 and {max}"),
            })
        })
    }

    pub(crate) fn jobs(&self) -> Result<usize, Failure> {
        let Some(jobs) = self.jobs else {
            return Ok(std::thread::available_parallelism().map_or(1, usize::from).min(MAX_JOBS));
        };
        let jobs = usize::try_from(jobs).ok().filter(|jobs| (1..=MAX_JOBS).contains(jobs));
        jobs.ok_or_else(|| Failure::invalid(format!("--jobs must be between 1 and {MAX_JOBS}")))
    }
}
