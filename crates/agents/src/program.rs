//! Runs a program: a text to its stdin, JSON from its stdout.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use karat_process::{Capture, Command, Failure, Finished, Keep, Limits, RunError};
use serde_json::Value;

/// What is kept of stderr.
const STDERR: Capture = Capture { keep: Keep::Last, max_bytes: 64 * 1024 };

/// The characters of stderr that an error quotes, in whole lines.
const MAX_QUOTED: usize = 300;

/// Why a command line names no program.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("'command:' names no program")]
    Empty,
    #[error("the command cannot be split into words: a quotation mark is not closed")]
    Quotes,
    #[error("there is no program '{0}'")]
    Missing(String),
    #[error("'request.message': the body has no place '{0}'")]
    NoPlace(String),
}

/// A program that answers in JSON.
#[derive(Debug)]
pub(crate) struct Program(pub(crate) Command);

impl Program {
    /// Splits a command line into words as a shell does, without one; a program with a `/` is relative to `folder`.
    pub(crate) fn new(command: &str, folder: &Path) -> Result<Self, CommandError> {
        let words = shell_words::split(command).map_err(|_| CommandError::Quotes)?;
        let (name, arguments) = words.split_first().ok_or(CommandError::Empty)?;
        if name.is_empty() {
            return Err(CommandError::Empty);
        }
        let is_path = Path::new(name).components().count() > 1 || name.contains('/');
        let path = if is_path { folder.join(name) } else { PathBuf::from(name) };
        if is_path && !path.is_file() {
            return Err(CommandError::Missing(name.clone()));
        }
        Ok(Self(Command { stderr: STDERR, ..Command::new(path, arguments, folder) }))
    }

    /// Runs the program to its end; an error quotes stderr. Dropping the future kills the program and its children.
    pub(crate) async fn run(&self, request: &str, limits: Limits) -> Result<Finished, String> {
        self.0.run(request.as_bytes(), limits).await.map_err(|RunError { failure, stderr }| {
            let what = match failure {
                Failure::Start(error) => format!("cannot start {}: {error}", self.0.program.display()),
                Failure::TooLarge { limit } => {
                    format!("the program's answer is larger than {limit} bytes ('maxResponseBytes')")
                }
                Failure::Read(error) => format!("cannot read the program's answer: {error}"),
                Failure::TimedOut { limit } => format!("the program did not answer within {} s", limit.as_secs()),
                Failure::Lost => "cannot wait for the program".to_owned(),
            };
            with_stderr(&what, &stderr)
        })
    }
}

/// Reads the answer of a program.
pub(crate) fn read_json(finished: &Finished) -> Result<Value, String> {
    let fails = |what: &str| with_stderr(what, &finished.stderr);
    if !finished.status.success() {
        // As in "exit status: 3" and "signal: 9 (SIGKILL)".
        let how = finished.status.to_string().replacen(": ", " ", 1);
        return Err(fails(&format!("the program ended with {how}")));
    }
    if finished.stdout.trim_ascii().is_empty() {
        return Err(fails("the program wrote nothing to stdout"));
    }
    serde_json::from_slice(&finished.stdout).map_err(|error| {
        // Not shortened here: the redactor does not recognise half a secret.
        let stdout = String::from_utf8_lossy(&finished.stdout);
        format!("{}: {}", fails(&format!("the program's answer is no JSON ({error})")), stdout.trim())
    })
}

/// Adds the last lines of stderr to an error.
pub(crate) fn with_stderr(what: &str, stderr: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut quoted = 0;
    for line in stderr.trim_end().lines().rev() {
        quoted += line.chars().count() + 1;
        // Only whole lines, since half a secret is not recognised.
        if !lines.is_empty() && quoted > MAX_QUOTED {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    let mut out = what.to_owned();
    if !lines.is_empty() {
        let _ = write!(out, "; its stderr: {}", lines.join("\n"));
    }
    out
}
