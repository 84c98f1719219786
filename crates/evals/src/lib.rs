//! What karat knows of eval functions: their versions and verdicts, what people said of the same traces, and how far the
//! two agree.
//!
//! Pure: runs no function, opens no store and touches no files, clock or network. A sandbox runs the functions, a store
//! implements the traits of [`port`].

pub mod agreement;
pub mod contradiction;
pub mod execution;
pub mod feedback;
pub mod function_test;
pub mod port;
pub mod report;
pub mod review;
pub mod shown;
pub mod tally;
pub mod version;
