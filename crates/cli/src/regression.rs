//! Regression cases on disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::exit::ExitStatus;
use karat_core::regression::{Archive, archive_name, named_ids};

use crate::diagnostic::print_findings;
use crate::discover::{discover_any, discover_archives};
use crate::failure::Failure;
use crate::load::{read_bytes, without_bom};
use crate::printer::Printer;
use crate::settings::Settings;

/// Returns where an eval file's archive is.
pub(crate) fn archive_path(eval_file: &Path) -> PathBuf {
    eval_file.with_file_name(archive_name(&eval_file.file_name().unwrap_or_default().to_string_lossy()))
}

/// Returns the ids of an eval file's archived cases; nothing where it has an archive that cannot be read.
pub(crate) fn archived_ids(eval_file: &Path) -> Option<BTreeSet<String>> {
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
pub(crate) fn project_ids(settings: &Settings) -> Result<BTreeSet<String>, Failure> {
    let mut paths = discover_any(&[], settings, &settings.here)?;
    paths.extend(discover_archives(&[], settings, &settings.here)?);
    let mut ids = BTreeSet::new();
    for path in &paths {
        ids.append(&mut named_ids(&read_bytes(path)?));
    }
    Ok(ids)
}

/// Reads an archive, or begins one where there is no file.
pub(crate) fn read_archive(path: &Path, shown: &str, printer: &Printer) -> Result<Archive, Failure> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Archive::empty()),
        Err(error) => return Err(Failure::invalid(format!("cannot read {shown}: {error}"))),
    };
    Archive::read(&bytes).map_err(|findings| {
        print_findings(shown, &String::from_utf8_lossy(without_bom(&bytes)), &findings, printer);
        Failure::reported(ExitStatus::Invalid)
    })
}
