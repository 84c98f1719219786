//! Why the sandbox cannot be used at all.

use std::path::PathBuf;

/// The sandbox cannot be used: no function of anybody's is to blame.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("this build of karat has no Python: {why}")]
    NoGuest { why: String },
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is not a guest: {why}", .path.display())]
    NotAGuest { path: PathBuf, why: String },
    #[error("the sandbox cannot start: {0}")]
    Engine(String),
}

impl SandboxError {
    /// Returns what somebody can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoGuest { .. } => Some(
                "build karat where Python 3.9 or newer (with venv) and a network are, or name a ready guest with \
                 KARAT_GUEST=guest.cwasm"
                    .to_owned(),
            ),
            Self::Unreadable { .. } | Self::NotAGuest { .. } | Self::Engine(_) => None,
        }
    }
}

impl From<wasmtime::Error> for SandboxError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(format!("{error:#}"))
    }
}
