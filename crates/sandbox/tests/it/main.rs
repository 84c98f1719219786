//! The sandbox, as the program uses it: what it refuses, what it keeps on disk, and whether its promises hold.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

#[cfg(unix)]
mod compiled;
mod doctor;
mod footprint;
mod validate;
