//! Tests of the sandbox: validation, isolation and limits.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod doctor;
mod features;
mod hostile;
mod soak;
mod stateless;
mod streaming;
mod support;
mod validate;
