//! The one way in which karat starts a child process.
//!
//! A process gets a group of its own, which is killed as a whole: when its handle is dropped, when it exceeds a limit, and
//! for what is left of the group after it exits. Output is kept within limits. Elsewhere than on Unix there are no
//! groups, and only the process itself is killed.

mod capture;
mod command;
mod group;
mod process;

pub use capture::{Capture, Keep};
pub use command::{Command, Failure, Finished, Limits, RunError};
pub use group::kill_all;
pub use process::{Exit, Process, Stdout};
