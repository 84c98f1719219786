//! Errors about the project's files.

use karat_json::InvalidFile;

/// An error with hints and the problems found in files.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    /// A lower-case fragment; empty if `files` describe the error.
    pub message: String,
    pub hints: Vec<String>,
    pub files: Vec<InvalidFile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A file is missing, unreadable or invalid.
    Invalid,
    /// No file or case matches the selection.
    NothingSelected,
    /// Another process is editing the project.
    Conflict,
}

impl Error {
    fn new(kind: ErrorKind, message: String) -> Self {
        Self { kind, message, hints: Vec::new(), files: Vec::new() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message.into())
    }

    pub fn nothing_selected(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NothingSelected, message.into())
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message.into())
    }

    pub fn invalid_files(files: Vec<InvalidFile>) -> Self {
        Self { files, ..Self::invalid("") }
    }

    #[must_use]
    pub fn with_file(mut self, file: InvalidFile) -> Self {
        self.files.push(file);
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}
