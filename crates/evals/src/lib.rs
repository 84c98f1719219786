//! Eval functions: versions, verdicts, people's ratings, and how far the two agree.
//!
//! Pure: runs no function, opens no store, and uses no file system, clock or network. A sandbox runs the functions; a
//! store implements the traits of [`port`].

pub mod agreement;
pub mod contradiction;
pub mod execution;
pub mod feedback;
pub mod function_test;
pub mod port;
pub mod report;
pub mod review;
pub mod tally;
pub mod traces;
pub mod version;
