//! Detects an agent that is down, so that it is not called once per case.

use std::sync::{Mutex, MutexGuard, PoisonError};

use karat_core::port::{AgentError, AgentErrorCause};

/// Number of consecutive connection failures after which an agent that has never replied is not called again.
const MAX_FAILURES: u32 = 5;

/// Whether an agent can be reached.
#[derive(Default)]
pub(crate) struct Reachability {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of consecutive connection failures.
    failures: u32,
    has_replied: bool,
    /// The last connection failure.
    error: String,
    not_run: usize,
}

impl State {
    fn is_down(&self) -> bool {
        !self.has_replied && self.failures >= MAX_FAILURES
    }
}

impl Reachability {
    /// Whether to skip a call because the agent is down. Counts skipped calls.
    pub(crate) fn skips_call(&self) -> bool {
        let mut state = self.state();
        let is_down = state.is_down();
        state.not_run += usize::from(is_down);
        is_down
    }

    /// Records the outcome of a call.
    pub(crate) fn record<T>(&self, outcome: &Result<T, AgentError>) {
        let mut state = self.state();
        // A late reply to a parallel call does not change that: cases are already reported as not run.
        if state.is_down() {
            return;
        }
        match outcome {
            Err(AgentError { cause: AgentErrorCause::Unreachable { attempts }, message, .. }) => {
                state.failures = state.failures.saturating_add(*attempts);
                state.error.clone_from(message);
            }
            // Neither a reply nor a connection failure.
            Err(AgentError { cause: AgentErrorCause::Timeout | AgentErrorCause::Budget, .. }) => state.failures = 0,
            Ok(_) | Err(_) => state.has_replied = true,
        }
    }

    /// Returns the last connection failure if the agent is down.
    pub(crate) fn error(&self) -> Option<String> {
        let state = self.state();
        state.is_down().then(|| state.error.clone())
    }

    /// Returns the number of skipped calls.
    pub(crate) fn not_run(&self) -> usize {
        self.state().not_run
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;

    use super::*;

    /// `c` is a connection failure, `C` one after two retries, `t` a timeout, `e` an error reply, `o` a reply.
    #[rstest]
    #[case("cccc", false)]
    #[case("ccccc", true)]
    #[case("CC", true)]
    #[case("ccccto", false)]
    #[case("cccctc", false)]
    #[case("eccccccc", false)]
    #[case("occcccccc", false)]
    #[case("ccccco", true)]
    fn an_agent_is_unreachable_after_five_connection_failures(#[case] outcomes: &str, #[case] is_down: bool) {
        let reachability = Reachability::default();
        for letter in outcomes.chars() {
            let outcome = match letter {
                'c' => Err(AgentError::unreachable("refused", Duration::ZERO, 1)),
                'C' => Err(AgentError::unreachable("refused", Duration::ZERO, 3)),
                't' => Err(AgentError::timeout(Duration::ZERO)),
                'e' => Err(AgentError::new("HTTP 500", Duration::ZERO)),
                _ => Ok(()),
            };
            reachability.record(&outcome);
        }
        assert_eq!(reachability.skips_call(), is_down);
        assert_eq!((reachability.error().is_some(), reachability.not_run()), (is_down, usize::from(is_down)));
    }
}
