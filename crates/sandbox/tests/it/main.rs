//! The sandbox, as the program uses it.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod footprint;
mod validate;
