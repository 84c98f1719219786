//! The tool lock on disk.

use std::path::{Path, PathBuf};

use karat_json::InvalidFile;
use karat_tools::lock::ToolsLock;

use crate::error::Error;
use crate::layout::Layout;

/// Where the lock is if nobody says so.
const LOCK_FILE: &str = "evals/tools.lock.json";

/// Returns where the lock is.
pub fn lock_path(flag: Option<&PathBuf>, layout: &Layout) -> PathBuf {
    flag.map_or_else(|| layout.root.join(LOCK_FILE), |path| layout.here.join(path))
}

/// Reads the lock, if there is one.
pub fn read_lock(path: &Path, shown: &str) -> Result<Option<ToolsLock>, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::invalid(format!("cannot read {shown}: {error}"))),
    };
    ToolsLock::read(&bytes).map(Some).map_err(|findings| {
        Error::invalid(format!("{shown} cannot be read as a tool lock"))
            .with_file(InvalidFile::new(shown, &bytes, findings))
            .hint("if it should be one, remove it, and 'karat tools lock' writes it anew")
    })
}
