//! The tool lock on disk.

use std::path::{Path, PathBuf};

use karat_tools::lock::ToolsLock;

use crate::diagnostic::print_findings;
use crate::failure::Failure;
use crate::load::without_bom;
use crate::printer::Printer;
use crate::settings::Settings;

/// Where the lock is if nobody says so.
const LOCK_FILE: &str = "evals/tools.lock.json";

/// Returns where the lock is.
pub(crate) fn lock_path(flag: Option<&PathBuf>, settings: &Settings) -> PathBuf {
    flag.map_or_else(|| settings.root.join(LOCK_FILE), |path| settings.here.join(path))
}

/// Reads the lock, if there is one.
pub(crate) fn read_lock(path: &Path, shown: &str, printer: &Printer) -> Result<Option<ToolsLock>, Failure> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::invalid(format!("cannot read {shown}: {error}"))),
    };
    ToolsLock::read(&bytes).map(Some).map_err(|findings| {
        print_findings(shown, &String::from_utf8_lossy(without_bom(&bytes)), &findings, printer);
        Failure::invalid(format!("{shown} cannot be read as a tool lock"))
            .hint("if it should be one, remove it, and 'karat tools lock' writes it anew")
    })
}
