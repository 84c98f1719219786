//! Processes that are reused for several cases.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use karat_process::{Command, LineProcess, LineProcessError, describe_exit, with_stderr};

/// Idle processes of one program. The pool grows to the maximum number of concurrent conversations.
#[derive(Debug)]
pub(crate) struct ProcessPool {
    command: Command,
    idle: Mutex<Vec<LineProcess>>,
}

impl ProcessPool {
    pub(crate) fn new(command: Command) -> Self {
        Self { command, idle: Mutex::default() }
    }

    pub(crate) fn command(&self) -> &Command {
        &self.command
    }

    /// Removes an idle process that can be reused from the pool.
    pub(crate) async fn take_idle(&self) -> Option<LineProcess> {
        loop {
            let mut process = self.idle().pop()?;
            if !process.is_unusable().await {
                return Some(process);
            }
        }
    }

    /// Starts a process.
    pub(crate) fn start(&self) -> Result<LineProcess, String> {
        LineProcess::start(&self.command).map_err(|error| start_error(&self.command, &error))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<LineProcess>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process of a conversation. It is returned to the pool on drop.
#[derive(Debug)]
pub(crate) struct PooledProcess<'p> {
    pool: &'p ProcessPool,
    process: Option<LineProcess>,
}

impl<'p> PooledProcess<'p> {
    pub(crate) fn new(pool: &'p ProcessPool) -> Self {
        Self { pool, process: None }
    }

    /// Takes the process of the conversation, or an idle one. It is killed unless it is put back.
    pub(crate) async fn take(&mut self) -> Option<LineProcess> {
        match self.process.take() {
            Some(process) => Some(process),
            None => self.pool.take_idle().await,
        }
    }

    /// Puts a process back that is ready for the next request.
    pub(crate) fn put_back(&mut self, process: LineProcess) {
        self.process = Some(process);
    }
}

impl Drop for PooledProcess<'_> {
    fn drop(&mut self) {
        self.pool.idle().extend(self.process.take());
    }
}

pub(crate) fn start_error(command: &Command, error: &io::Error) -> String {
    format!("cannot start {}: {error}", command.program.display())
}

/// Describes why a process did not answer with at most `limit` bytes, and quotes its stderr.
pub(crate) async fn no_answer_message(
    name: &str,
    error: LineProcessError,
    limit: usize,
    process: &LineProcess,
) -> String {
    let message = match error {
        LineProcessError::Exited(exit) => {
            format!("{name} ended with {} before it answered", describe_exit(exit.status))
        }
        LineProcessError::Closed => format!("{name} closed its stdout before it answered"),
        LineProcessError::TooLarge { .. } => format!("the answer is larger than {limit} bytes ('maxResponseBytes')"),
        LineProcessError::Read(error) => format!("cannot read the answer of {name}: {error}"),
    };
    with_stderr(&message, &process.take_stderr().await)
}
