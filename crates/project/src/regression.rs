//! Regression cases on disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::regression::{Archive, archive_name, named_ids};
use karat_json::InvalidFile;

use crate::discover::{discover_any, discover_archives};
use crate::error::Error;
use crate::layout::Layout;
use crate::load::read_bytes;

/// Returns where an eval file's archive is.
pub fn archive_path(eval_file: &Path) -> PathBuf {
    eval_file.with_file_name(archive_name(&eval_file.file_name().unwrap_or_default().to_string_lossy()))
}

/// Returns the ids of an eval file's archived cases; nothing where it has an archive that cannot be read.
pub fn archived_ids(eval_file: &Path) -> Option<BTreeSet<String>> {
    match std::fs::read(archive_path(eval_file)) {
        Ok(bytes) => {
            let archive = Archive::read(&bytes).ok()?;
            Some(archive.cases.iter().map(|case| case.id().to_owned()).collect())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(BTreeSet::new()),
        Err(_) => None,
    }
}

/// Returns all ids of regression cases that the project's eval files and archives name, also those that are invalid: no
/// id is given out twice, whatever file it was in.
pub fn project_ids(layout: &Layout) -> Result<BTreeSet<String>, Error> {
    let mut paths = discover_any(&[], layout, &layout.here)?;
    paths.extend(discover_archives(&[], layout, &layout.here)?);
    let mut ids = BTreeSet::new();
    for path in &paths {
        ids.append(&mut named_ids(&read_bytes(path)?));
    }
    Ok(ids)
}

/// Reads an archive, or begins one where there is no file.
pub fn read_archive(path: &Path, shown: &str) -> Result<Archive, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Archive::empty()),
        Err(error) => return Err(Error::invalid(format!("cannot read {shown}: {error}"))),
    };
    Archive::read(&bytes).map_err(|findings| Error::invalid_files(vec![InvalidFile::new(shown, &bytes, findings)]))
}
