//! Errors of the sandbox itself.

use std::path::PathBuf;

/// The sandbox cannot be used, whatever the function.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("karat was built without Python: {reason}")]
    NoGuest { reason: String },
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is not a valid guest: {reason}", .path.display())]
    InvalidGuest { path: PathBuf, reason: String },
    #[error("cannot start the sandbox: {0}")]
    Engine(String),
}

impl SandboxError {
    /// Returns a hint on how to fix the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoGuest { .. } => Some(
                "build karat with Python 3.9 or newer (with venv) and network access, or set \
                 KARAT_GUEST=guest.cwasm to use a prebuilt guest"
                    .to_owned(),
            ),
            Self::Unreadable { .. } | Self::InvalidGuest { .. } | Self::Engine(_) => None,
        }
    }
}

impl From<wasmtime::Error> for SandboxError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(format!("{error:#}"))
    }
}
