//! Tests that call workflows directly, with a temporary project and a fixed clock.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod agreement;
mod check;
mod check_functions;
mod compare_runs;
mod coverage;
mod doctor;
mod evals;
mod feedback;
mod forge;
mod functions;
mod import_traces;
mod init;
mod judge_stored;
mod judge_stream;
mod overlaps;
mod project;
mod project_store;
mod receive_traces;
mod refine;
mod regress;
mod review;
mod run_suites;
mod security_cases;
mod simulated_users;
mod test_evals;
mod tools;
mod traces;
mod watch;
