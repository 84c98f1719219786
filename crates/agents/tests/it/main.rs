//! Agents against real servers on loopback, polite and rude, against programs and against scripts.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod asking;
#[cfg(target_os = "linux")]
mod command;
mod configuring;
mod connecting;
mod determining;
mod failing;
mod reading;
mod recording;
mod refusing;
mod scripted;
mod structured;
mod support;
