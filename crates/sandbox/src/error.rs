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
    #[error("{}: {why}", .path.display())]
    Untrusted { path: PathBuf, why: String },
    #[error("the sandbox cannot start: {0}")]
    Engine(String),
    #[error("cannot read the traces: {0}")]
    Traces(std::io::Error),
}

impl From<wasmtime::Error> for SandboxError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(format!("{error:#}"))
    }
}
