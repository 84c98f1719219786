//! Tests of the sandbox: validation, isolation and limits.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod adopt;
mod comparison;
mod doctor;
mod features;
mod generator;
mod hostile;
mod isolation;
mod options;
mod soak;
mod streaming;
mod support;
mod validate;
