//! Commands, and running one to its end.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

use crate::capture::{Capture, Keep};
use crate::process::{DRAIN_TIME, Exit, Process, Stdout};

/// A program and how it is started.
#[derive(Debug, Clone)]
pub struct Command {
    /// A name without a `/` is looked up in `PATH`.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub folder: PathBuf,
    /// The whole environment; where none is given, that of karat.
    pub environment: Option<BTreeMap<String, String>>,
    pub stderr: Capture,
}

/// What a command may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub stdout_bytes: usize,
    pub time: Option<Duration>,
}

/// A command that ended by itself.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    /// What is kept of stderr.
    pub stderr: String,
    /// From the start of the program to its end.
    pub elapsed: Duration,
}

/// A command that could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[error("{failure}")]
pub struct RunError {
    pub failure: Failure,
    /// What is kept of stderr.
    pub stderr: String,
}

/// Why a command could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("cannot be started: {0}")]
    Start(io::Error),
    #[error("wrote more than {limit} bytes to stdout")]
    TooLarge { limit: usize },
    #[error("its stdout cannot be read: {0}")]
    Read(io::Error),
    #[error("no end within {} ms", .limit.as_millis())]
    TimedOut { limit: Duration },
    #[error("its end cannot be waited for")]
    Lost,
}

impl Command {
    /// Takes the environment of karat, and keeps the first and last lines of stderr.
    pub fn new(program: impl Into<PathBuf>, arguments: &[String], folder: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.to_vec(),
            folder: folder.into(),
            environment: None,
            stderr: Capture { keep: Keep::Ends, max_bytes: 4 * 1024 },
        }
    }

    /// Starts the program, within an async runtime; returns the ends of its pipes too.
    pub fn start(&self) -> io::Result<(Process, ChildStdin, Stdout)> {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder).kill_on_drop(true);
        if let Some(environment) = &self.environment {
            command.env_clear().envs(environment);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        command.process_group(0);
        let started = Instant::now();
        Process::supervise(command.spawn()?, started, self.stderr)
    }

    /// Runs the program to its end, with this on its stdin. Dropping the future kills the program and all that it
    /// started, and so does exceeding a limit.
    pub async fn run(&self, input: &[u8], limits: Limits) -> Result<Finished, RunError> {
        let started = self.start();
        let (process, stdin, stdout) =
            started.map_err(|error| RunError { failure: Failure::Start(error), stderr: String::new() })?;
        let mut written = Vec::new();
        let talking = talk(&process, (stdin, input), (stdout, &mut written), limits.stdout_bytes);
        let ended = match limits.time {
            None => talking.await,
            Some(limit) => tokio::time::timeout(limit, talking).await.unwrap_or(Err(Failure::TimedOut { limit })),
        };
        let stderr = process.stderr();
        match ended {
            Ok(Exit { status, elapsed }) => Ok(Finished { status, stdout: written, stderr, elapsed }),
            Err(failure) => Err(RunError { failure, stderr }),
        }
    }
}

/// Writes the input and reads the output until the process ends.
async fn talk(
    process: &Process,
    (stdin, input): (ChildStdin, &[u8]),
    (stdout, written): (Stdout, &mut Vec<u8>),
    max_bytes: usize,
) -> Result<Exit, Failure> {
    let (feeding, reading) = (feed(stdin, input), read_limited(stdout, written, max_bytes));
    tokio::pin!(feeding, reading);
    let (mut is_fed, mut is_read) = (false, false);
    let exit = loop {
        tokio::select! {
            biased;
            read = &mut reading, if !is_read => {
                read?;
                is_read = true;
            }
            () = &mut feeding, if !is_fed => is_fed = true,
            exit = process.exited() => break exit.ok_or(Failure::Lost)?,
        }
    };
    // Somebody holds the pipe, but what the program wrote is in it by now.
    if !is_read && let Ok(read) = tokio::time::timeout(DRAIN_TIME, reading).await {
        read?;
    }
    Ok(exit)
}

/// Writes the input and closes the pipe; a program need not read it.
async fn feed(mut stdin: ChildStdin, input: &[u8]) {
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
