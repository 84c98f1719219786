//! Regression cases on disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_cases::regression::{Archive, archive_name, find_regression_ids};
use karat_json::InvalidFile;

use crate::discover::{discover_archives, discover_or_empty};
use crate::error::Error;
use crate::layout::Layout;
use crate::load::read_bytes;
use crate::read::read_file;

/// Returns the path of an eval file's archive.
pub fn archive_path(eval_file: &Path) -> PathBuf {
    eval_file.with_file_name(archive_name(&eval_file.file_name().unwrap_or_default().to_string_lossy()))
}

/// Returns the ids of an eval file's archived cases, or `None` if its archive cannot be read.
pub fn archived_ids(eval_file: &Path) -> Option<BTreeSet<String>> {
    match read_file(&archive_path(eval_file)) {
        Ok(bytes) => {
            let archive = Archive::parse(&bytes).ok()?;
            Some(archive.cases.iter().map(|case| case.id().to_owned()).collect())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(BTreeSet::new()),
        Err(_) => None,
    }
}

/// Returns the ids of regression cases in all eval files and archives of the project, including invalid files, so that
/// no id is assigned twice.
pub fn regression_ids(layout: &Layout) -> Result<BTreeSet<String>, Error> {
    let mut paths = discover_or_empty(&[], layout, &layout.current_dir)?;
    paths.extend(discover_archives(&[], layout, &layout.current_dir)?);
    let mut ids = BTreeSet::new();
    for path in &paths {
        ids.append(&mut find_regression_ids(&read_bytes(path)?));
    }
    Ok(ids)
}

/// Reads an archive. Returns an empty one if the file does not exist.
pub fn read_archive(path: &Path, display_path: &str) -> Result<Archive, Error> {
    let bytes = match read_file(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Archive::empty()),
        Err(error) => return Err(Error::invalid(format!("cannot read {display_path}: {error}"))),
    };
    Archive::parse(&bytes)
        .map_err(|findings| Error::invalid_files(vec![InvalidFile::new(display_path, &bytes, findings)]))
}
