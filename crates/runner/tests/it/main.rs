//! Complete runs with fake agents, mostly in paused time.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod cancellation;
mod case_results;
mod conversations;
mod eval_functions;
mod injections;
mod invariants;
mod ordering;
mod redaction;
mod rubrics;
mod simulated_users;
mod state;
mod suite_results;
mod support;
mod trials;
mod unreachable;
