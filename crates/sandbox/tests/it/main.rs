//! The sandbox, as the program uses it: what it refuses, and whether its promises hold.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod doctor;
mod features;
mod footprint;
mod hostile;
mod soak;
mod streaming;
mod support;
mod validate;
