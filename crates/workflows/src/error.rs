//! The error type of all workflows.

use std::io;

use karat_core::document::UnreadableTrace;
use karat_core::port::StoreError;
use karat_json::InvalidFile;
use karat_sandbox::SandboxError;

use crate::hint::Hint;

/// An error whose kind decides the exit code, the HTTP status and whether a retry makes sense.
///
/// A failed assertion is never an error: it is a result.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    /// A lower-case fragment; empty if `files` explains the error.
    pub message: String,
    /// Output of another program that explains the error.
    pub quoted: String,
    pub hints: Vec<Hint>,
    /// Invalid files with their findings, shown as source excerpts.
    pub files: Vec<InvalidFile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request, the configuration or an input is invalid.
    Invalid,
    /// The named item does not exist.
    NotFound,
    /// Nothing matches the selection.
    NothingSelected,
    /// No verdict could be reached.
    NoVerdict,
    /// Another process is changing the same item, or has changed it.
    Conflict,
    /// An external system failed; a retry may help.
    Unavailable,
    /// The user asked to stop.
    Cancelled,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), quoted: String::new(), hints: Vec::new(), files: Vec::new() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    pub fn nothing_selected(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NothingSelected, message)
    }

    pub fn no_verdict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NoVerdict, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// Creates the error for a file or folder that could not be written.
    pub fn cannot_write(display_path: &str, error: &io::Error) -> Self {
        Self::unavailable(format!("cannot write {display_path}: {error}"))
    }

    /// Creates the error for a folder in which no files can be created, before anything was done. A path that is not
    /// a folder is a mistake of the user.
    pub fn unusable_folder(message: &str, error: &io::Error) -> Self {
        let is_mistake = matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists);
        let kind = if is_mistake { ErrorKind::Invalid } else { ErrorKind::Unavailable };
        Self::new(kind, format!("{message}: {error}"))
    }

    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "")
    }

    /// Creates an error for invalid files, without a message.
    pub fn invalid_files(files: Vec<InvalidFile>) -> Self {
        Self { files, ..Self::invalid("") }
    }

    #[must_use]
    pub fn quote(self, quoted: impl Into<String>) -> Self {
        Self { quoted: quoted.into(), ..self }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<karat_project::Error> for Error {
    fn from(error: karat_project::Error) -> Self {
        let kind = match error.kind {
            karat_project::ErrorKind::Invalid => ErrorKind::Invalid,
            karat_project::ErrorKind::NothingSelected => ErrorKind::NothingSelected,
            karat_project::ErrorKind::Conflict => ErrorKind::Conflict,
        };
        Self {
            kind,
            message: error.message,
            quoted: String::new(),
            hints: error.hints.into_iter().map(Hint::from).collect(),
            files: error.files,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self { hints: error.hint.into_iter().map(Hint::from).collect(), ..Self::unavailable(error.message) }
    }
}

impl From<UnreadableTrace> for Error {
    fn from(error: UnreadableTrace) -> Self {
        Self::unavailable(error.to_string()).hint(Hint::ShowRawTrace { trace: error.trace_id })
    }
}

impl From<SandboxError> for Error {
    fn from(error: SandboxError) -> Self {
        let kind = match &error {
            SandboxError::Unreadable { .. } | SandboxError::InvalidGuest { .. } => ErrorKind::Invalid,
            _ => ErrorKind::Unavailable,
        };
        Self { hints: error.hint().map(Hint::from).into_iter().collect(), ..Self::new(kind, error.to_string()) }
    }
}
