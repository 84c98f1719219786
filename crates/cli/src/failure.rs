//! Why a command could not do its work.

use karat_core::exit::ExitStatus;
use karat_json::InvalidFile;
use karat_workflows::{Error, ErrorKind};

use crate::hint::hint_text;

/// An error with the exit status that belongs to it, and hints that help.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: ExitStatus,
    /// A lower-case fragment that fits after "error:"; empty when everything was said already.
    pub(crate) message: String,
    /// What somebody else said of it, in lines of which the first and the last ones are shown.
    pub(crate) quoted: String,
    pub(crate) hints: Vec<String>,
    /// Files with invalid places, which are shown in their source.
    pub(crate) files: Vec<InvalidFile>,
}

impl Failure {
    /// Usage, configuration or input is invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            status: ExitStatus::Invalid,
            message: message.into(),
            quoted: String::new(),
            hints: Vec::new(),
            files: Vec::new(),
        }
    }

    pub(crate) fn nothing_selected(message: impl Into<String>) -> Self {
        Self {
            status: ExitStatus::NothingSelected,
            message: message.into(),
            quoted: String::new(),
            hints: Vec::new(),
            files: Vec::new(),
        }
    }

    pub(crate) fn errored(message: impl Into<String>) -> Self {
        Self {
            status: ExitStatus::Errored,
            message: message.into(),
            quoted: String::new(),
            hints: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The findings were printed; only the status is left to say.
    pub(crate) fn reported(status: ExitStatus) -> Self {
        Self { status, message: String::new(), quoted: String::new(), hints: Vec::new(), files: Vec::new() }
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
        Self { status: status_of(kind), message, quoted, hints, files }
    }
}

fn status_of(kind: ErrorKind) -> ExitStatus {
    match kind {
        ErrorKind::Invalid | ErrorKind::NotFound => ExitStatus::Invalid,
        ErrorKind::NothingSelected => ExitStatus::NothingSelected,
        ErrorKind::NoVerdict | ErrorKind::Conflict | ErrorKind::Unavailable => ExitStatus::Errored,
        ErrorKind::Cancelled => ExitStatus::Interrupted,
    }
}
