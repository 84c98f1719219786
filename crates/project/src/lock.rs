//! The tool lock on disk.

use std::path::{Path, PathBuf};

use karat_json::InvalidFile;
use karat_tools::lock::ToolsLock;

use crate::error::Error;
use crate::layout::Layout;
use crate::read::read_file;

const DEFAULT_LOCK_FILE: &str = "evals/tools.lock.json";

/// Returns the path of the lock: the flag's, or the default.
pub fn lock_path(flag: Option<&PathBuf>, layout: &Layout) -> PathBuf {
    flag.map_or_else(|| layout.root.join(DEFAULT_LOCK_FILE), |path| layout.current_dir.join(path))
}

/// Reads the lock. Returns `None` if the file does not exist.
pub fn read_lock(path: &Path, display_path: &str) -> Result<Option<ToolsLock>, Error> {
    let bytes = match read_file(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::invalid(format!("cannot read {display_path}: {error}"))),
    };
    ToolsLock::read(&bytes).map(Some).map_err(|findings| {
        Error::invalid(format!("{display_path} is not a valid tool lock"))
            .with_file(InvalidFile::new(display_path, &bytes, findings))
            .hint("remove it and run 'karat tools lock' to create a new one")
    })
}
