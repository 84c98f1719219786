//! Whole runs over agents that behave as a test says, in a time that passes only when nobody has anything to do.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod cancelling;
mod ending;
mod functions;
mod laws;
mod ordering;
mod redacting;
mod reporting;
mod rubrics;
mod support;
mod trying;
