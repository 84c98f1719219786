//! Counts unused stubs.

use karat_cases::Case;
use karat_core::assertion::Mode;
use karat_core::port::Agent;

/// Returns the number of cases with stubs that are unused because the agent runs real tools.
pub(crate) fn count_unused_stubs<'c>(cases: impl Iterator<Item = &'c Case>, agent: &dyn Agent) -> usize {
    cases.filter(|case| case.has_stubs() && agent.mode(case) == Mode::Endpoint).count()
}
