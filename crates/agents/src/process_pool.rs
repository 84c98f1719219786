//! Processes that are kept between cases.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use karat_process::{AskError, Command, LineProcess};

use crate::program::{exit_text, with_stderr};

/// Processes of one program that wait for the next conversation. There are as many as there were conversations at once.
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

    /// Returns an idle process that waits for a request, if there is one.
    pub(crate) async fn take_idle(&self) -> Option<LineProcess> {
        loop {
            let mut process = self.idle().pop()?;
            if !process.is_out_of_step().await {
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

/// The process of a conversation, which returns to the pool at its end.
#[derive(Debug)]
pub(crate) struct PooledProcess<'p> {
    pool: &'p ProcessPool,
    process: Option<LineProcess>,
}

impl<'p> PooledProcess<'p> {
    pub(crate) fn new(pool: &'p ProcessPool) -> Self {
        Self { pool, process: None }
    }

    /// Removes the process of the conversation, or an idle one. It is killed unless it is put back.
    pub(crate) async fn take(&mut self) -> Option<LineProcess> {
        match self.process.take() {
            Some(process) => Some(process),
            None => self.pool.take_idle().await,
        }
    }

    /// Keeps a process that waits for a request.
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
pub(crate) async fn ask_error(name: &str, error: AskError, limit: usize, process: &LineProcess) -> String {
    let message = match error {
        AskError::Exited(exit) => format!("{name} ended with {} before it answered", exit_text(exit.status)),
        AskError::Closed => format!("{name} closed its stdout before it answered"),
        AskError::TooLarge { .. } => format!("the answer is larger than {limit} bytes ('maxResponseBytes')"),
        AskError::Read(error) => format!("cannot read the answer of {name}: {error}"),
    };
    with_stderr(&message, &process.take_stderr().await)
}
