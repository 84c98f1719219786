//! Programs that read and write JSON.

use std::path::{Path, PathBuf};

use karat_process::{Capture, Command, CommandOutput, Failure, Keep, Limits, RunError, describe_exit, with_stderr};
use serde_json::Value;

use crate::reply::parse_reply;

/// Only the end of stderr is captured.
pub(crate) const STDERR: Capture = Capture { keep: Keep::Last, max_bytes: 64 * 1024 };

/// An invalid command line.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("missing program after 'command:'")]
    MissingProgram,
    #[error("the command has an unclosed quote")]
    UnclosedQuote,
    #[error("program '{0}' not found")]
    ProgramNotFound(String),
    #[error("'request': {0}")]
    InvalidRequest(String),
}

/// A program that answers in JSON.
#[derive(Debug)]
pub(crate) struct Program(pub(crate) Command);

impl Program {
    /// Splits a command line by shell rules, without running a shell; a program name with a `/` is relative to
    /// `folder`.
    pub(crate) fn new(command: &str, folder: &Path) -> Result<Self, CommandError> {
        let words = shell_words::split(command).map_err(|_| CommandError::UnclosedQuote)?;
        let (name, arguments) = words.split_first().ok_or(CommandError::MissingProgram)?;
        if name.is_empty() {
            return Err(CommandError::MissingProgram);
        }
        let is_path = Path::new(name).components().count() > 1 || name.contains('/');
        let path = if is_path { folder.join(name) } else { PathBuf::from(name) };
        if is_path && !path.is_file() {
            return Err(CommandError::ProgramNotFound(name.clone()));
        }
        Ok(Self(Command { stderr: STDERR, ..Command::new(path, arguments, folder) }))
    }

    /// Runs the program to completion; errors quote stderr. Dropping the future kills the program and its children.
    pub(crate) async fn run(&self, request: &str, limits: Limits) -> Result<CommandOutput, String> {
        self.0.run(request.as_bytes(), limits).await.map_err(|RunError { failure, stderr }| {
            let message = match failure {
                Failure::Start(error) => format!("cannot start {}: {error}", self.0.program.display()),
                Failure::TooLarge { limit } => {
                    format!("the program's answer is larger than {limit} bytes ('maxResponseBytes')")
                }
                Failure::Read(error) => format!("cannot read the program's answer: {error}"),
                Failure::TimedOut { limit } => format!("the program did not answer within {} s", limit.as_secs()),
                Failure::Wait => "cannot wait for the program".to_owned(),
            };
            with_stderr(&message, &stderr)
        })
    }
}

/// Parses a program's stdout.
pub(crate) fn parse_json(finished: &CommandOutput) -> Result<Value, String> {
    let fail = |message: &str| with_stderr(message, &finished.stderr);
    if !finished.status.success() {
        return Err(fail(&format!("the program ended with {}", describe_exit(finished.status))));
    }
    if finished.stdout.trim_ascii().is_empty() {
        return Err(fail("the program wrote nothing to stdout"));
    }
    parse_answer(&finished.stdout, &finished.stderr)
}

/// Parses the answer of a program; errors quote it.
pub(crate) fn parse_answer(answer: &[u8], stderr: &str) -> Result<Value, String> {
    parse_reply(answer).map_err(|error| {
        // Not truncated here: the redactor does not recognise a partial secret.
        let text = String::from_utf8_lossy(answer);
        let message = format!("the program's answer is not valid JSON ({error})");
        format!("{}: {}", with_stderr(&message, stderr), text.trim())
    })
}
