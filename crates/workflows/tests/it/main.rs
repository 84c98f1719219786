//! Use cases called directly, with a temporary project and a fixed clock.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod agreement;
mod check;
mod check_functions;
mod compare_runs;
mod coverage;
mod doctor;
mod evals;
mod feedback;
mod functions;
mod init;
mod overlaps;
mod project;
mod regress;
mod store_content;
mod test_evals;
mod tools;
mod traces;
