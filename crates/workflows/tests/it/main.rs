//! Use cases called directly, with a temporary project and a fixed clock.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod check;
mod check_functions;
mod compare_runs;
mod coverage;
mod doctor;
mod evals;
mod functions;
mod init;
mod overlaps;
mod project;
mod test_evals;
mod tools;
