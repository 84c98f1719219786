//! Why the sandbox cannot be used at all.

use std::path::PathBuf;

/// The sandbox cannot be used: no function of anybody's is to blame.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("this build of karat has no Python: {why}")]
    NoGuest { why: String },
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("cannot write {}: {source}", .path.display())]
    Unwritable { path: PathBuf, source: std::io::Error },
    #[error("{} is no guest: {why}", .path.display())]
    NotAGuest { path: PathBuf, why: String },
    /// Machine code is run as it is, so it comes only from where nobody else can have put it.
    #[error("{} is not trusted: {why}", .path.display())]
    Untrusted { path: PathBuf, why: String },
    #[error("the sandbox cannot start: {0}")]
    Engine(String),
    #[error("cannot read the traces: {0}")]
    Traces(std::io::Error),
}

impl SandboxError {
    /// Returns what somebody can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoGuest { .. } => Some(
                "name a ready guest with KARAT_GUEST=guest.wasm, or build karat where Python 3.9 or newer (with venv) and \
                 a network are"
                    .to_owned(),
            ),
            Self::Unwritable { .. } => Some("KARAT_CACHE_DIR names another folder".to_owned()),
            Self::Untrusted { path, .. } => {
                Some(format!("remove {}, or name another folder with KARAT_CACHE_DIR", path.display()))
            }
            Self::Unreadable { .. } | Self::NotAGuest { .. } | Self::Engine(_) | Self::Traces(_) => None,
        }
    }
}

impl From<wasmtime::Error> for SandboxError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(format!("{error:#}"))
    }
}
