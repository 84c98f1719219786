//! Python functions in the sandbox as a user runs them: what they may do, and what they may not.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod features;
mod hostile;
mod soak;
mod streaming;
mod support;
