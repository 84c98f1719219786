//! Errors of commands.

use karat_core::exit::ExitStatus;
use karat_json::InvalidFile;
use karat_workflows::{Error, ErrorKind};

use crate::hint::hint_text;

/// An error with its exit status and hints.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: ExitStatus,
    /// A lower-case fragment that fits after "error:"; empty if it was already printed.
    pub(crate) message: String,
    /// Output of another program; its first and last lines are shown.
    pub(crate) quoted: String,
    pub(crate) hints: Vec<String>,
    /// Invalid files, shown with the source at each finding.
    pub(crate) files: Vec<InvalidFile>,
}

impl Failure {
    fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), quoted: String::new(), hints: Vec::new(), files: Vec::new() }
    }

    /// Creates a failure for invalid usage, configuration or input.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Invalid, message)
    }

    pub(crate) fn nothing_selected(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::NothingSelected, message)
    }

    pub(crate) fn errored(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Errored, message)
    }

    /// Creates a failure whose error was already printed.
    pub(crate) fn reported(status: ExitStatus) -> Self {
        Self::new(status, "")
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let Error { kind, message, quoted, hints, files } = error;
        let hints = hints.into_iter().map(hint_text).collect();
        Self { status: exit_status(kind), message, quoted, hints, files }
    }
}

fn exit_status(kind: ErrorKind) -> ExitStatus {
    match kind {
        ErrorKind::Invalid | ErrorKind::NotFound => ExitStatus::Invalid,
        ErrorKind::NothingSelected => ExitStatus::NothingSelected,
        ErrorKind::NoVerdict | ErrorKind::Conflict | ErrorKind::Unavailable => ExitStatus::Errored,
        ErrorKind::Cancelled => ExitStatus::Interrupted,
    }
}
