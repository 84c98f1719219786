//! Use cases called directly, with a temporary project and a fixed clock.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod agreement;
mod feedback;
mod project;
mod store_content;
mod traces;
