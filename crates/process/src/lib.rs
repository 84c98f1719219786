//! Starts and supervises all child processes of karat.
//!
//! Each process gets its own process group, which is killed as a whole: when its handle is dropped, when it exceeds a
//! limit, and after the process exits. On Linux, descendants that left the group are killed too, even if their parents
//! have exited: they are found by an environment variable that they inherit. A descendant escapes only if it leaves the
//! group, loses its parent and clears its environment. Captured output is bounded. On systems other than Unix, only the
//! process itself is killed.

mod capture;
mod command;
mod describe;
mod group;
mod line_process;
mod process;

pub use capture::{Capture, Keep};
pub use command::{Command, CommandOutput, Failure, Limits, RunError};
pub use describe::{describe_exit, with_stderr};
pub use group::kill_all;
pub use line_process::{LineProcess, LineProcessError};
pub use process::{Exit, Process, Stdout};
