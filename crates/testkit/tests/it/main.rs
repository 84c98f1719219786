//! The test tools' own tests: a player that sees no fault, or a server that is kinder than it should be, would make
//! every other test worthless.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

#[cfg(unix)]
mod conformance;
mod fixed;
#[cfg(unix)]
mod litellm;
mod matching;
mod models;
#[cfg(unix)]
mod project;
mod server;
mod test_model;
mod wire;
