//! Use cases called directly, with a temporary project and a fixed clock.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod agreement;
mod check_functions;
mod coverage;
mod doctor;
mod evals;
mod feedback;
mod functions;
mod overlaps;
mod project;
mod regress;
mod store_content;
mod test_evals;
mod tools;
mod traces;
