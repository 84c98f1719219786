//! Commands that run to completion.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

use crate::capture::{Capture, Keep};
use crate::group::{MARKER_VARIABLE, new_marker};
use crate::process::{DRAIN_TIMEOUT, Exit, Process, Stdout};

/// A program with its arguments and environment.
#[derive(Debug, Clone)]
pub struct Command {
    /// Looked up in `PATH` unless it contains a `/`.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub folder: PathBuf,
    /// The whole environment; `None` means karat's own.
    pub environment: Option<BTreeMap<String, String>>,
    /// Added to the environment.
    pub variables: BTreeMap<String, String>,
    pub stderr: Capture,
}

/// Resource limits of a command.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub stdout_bytes: usize,
    pub time: Option<Duration>,
}

/// Output of a command that exited by itself.
#[derive(Debug)]
pub struct CommandOutput {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    /// The captured stderr.
    pub stderr: String,
    /// From start to exit.
    pub elapsed: Duration,
}

/// A command that did not run to completion.
#[derive(Debug, thiserror::Error)]
#[error("{failure}")]
pub struct RunError {
    pub failure: Failure,
    /// The captured stderr.
    pub stderr: String,
}

/// The reason that a command did not run to completion.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("cannot be started: {0}")]
    Start(io::Error),
    #[error("wrote more than {limit} bytes to stdout")]
    TooLarge { limit: usize },
    #[error("cannot read its stdout: {0}")]
    Read(io::Error),
    #[error("timed out after {} ms", .limit.as_millis())]
    TimedOut { limit: Duration },
    #[error("cannot wait for its exit")]
    Wait,
}

impl Command {
    /// Creates a command with karat's environment that keeps the first and last lines of stderr.
    pub fn new(program: impl Into<PathBuf>, arguments: &[String], folder: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.to_vec(),
            folder: folder.into(),
            environment: None,
            variables: BTreeMap::new(),
            stderr: Capture { keep: Keep::Ends, max_bytes: 4 * 1024 },
        }
    }

    /// Starts the program and returns its pipes. Must be called within an async runtime.
    pub fn start(&self) -> io::Result<(Process, ChildStdin, Stdout)> {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder).kill_on_drop(true);
        if let Some(environment) = &self.environment {
            command.env_clear().envs(environment);
        }
        command.envs(&self.variables);
        let marker = new_marker();
        command.env(MARKER_VARIABLE, &marker);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        command.process_group(0);
        let started = Instant::now();
        Process::supervise(command.spawn()?, marker, started, self.stderr)
    }

    /// Runs the program to completion with `input` on its stdin. Kills the program and its descendants when the future
    /// is dropped or a limit is exceeded.
    pub async fn run(&self, input: &[u8], limits: Limits) -> Result<CommandOutput, RunError> {
        let started = self.start();
        let (process, stdin, stdout) =
            started.map_err(|error| RunError { failure: Failure::Start(error), stderr: String::new() })?;
        let mut written = Vec::new();
        let exchange = exchange(&process, (stdin, input), (stdout, &mut written), limits.stdout_bytes);
        let ended = match limits.time {
            None => exchange.await,
            Some(limit) => tokio::time::timeout(limit, exchange).await.unwrap_or(Err(Failure::TimedOut { limit })),
        };
        let stderr = process.stderr();
        match ended {
            Ok(Exit { status, elapsed }) => Ok(CommandOutput { status, stdout: written, stderr, elapsed }),
            Err(failure) => Err(RunError { failure, stderr }),
        }
    }
}

/// Writes the input and reads the output until the process exits.
async fn exchange(
    process: &Process,
    (stdin, input): (ChildStdin, &[u8]),
    (stdout, written): (Stdout, &mut Vec<u8>),
    max_bytes: usize,
) -> Result<Exit, Failure> {
    let (writing, reading) = (write_input(stdin, input), read_limited(stdout, written, max_bytes));
    tokio::pin!(writing, reading);
    let (mut is_written, mut is_read) = (false, false);
    let exit = loop {
        tokio::select! {
            biased;
            read = &mut reading, if !is_read => {
                read?;
                is_read = true;
            }
            () = &mut writing, if !is_written => is_written = true,
            exit = process.exited() => break exit.ok_or(Failure::Wait)?,
        }
    };
    // Another process holds the pipe open, but the pipe contains all output of the program by now.
    if !is_read && let Ok(read) = tokio::time::timeout(DRAIN_TIMEOUT, reading).await {
        read?;
    }
    Ok(exit)
}

/// Writes the input and closes the pipe. Errors are ignored, since a program need not read it.
async fn write_input(mut stdin: ChildStdin, input: &[u8]) {
    stdin.write_all(input).await.ok();
}

async fn read_limited(mut stdout: Stdout, written: &mut Vec<u8>, max_bytes: usize) -> Result<(), Failure> {
    loop {
        match stdout.read_buf(written).await {
            Ok(0) => return Ok(()),
            Ok(_) if written.len() > max_bytes => return Err(Failure::TooLarge { limit: max_bytes }),
            Ok(_) => {}
            Err(error) => return Err(Failure::Read(error)),
        }
    }
}
