//! Regression cases on disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::exit::ExitStatus;
use karat_core::regression::{Archive, archive_name};

use crate::diagnostic::print_findings;
use crate::failure::Failure;
use crate::load::without_bom;
use crate::printer::Printer;

/// Returns where an eval file's archive is.
pub(crate) fn archive_path(eval_file: &Path) -> PathBuf {
    eval_file.with_file_name(archive_name(&eval_file.file_name().unwrap_or_default().to_string_lossy()))
}

/// Returns the ids of an eval file's archived cases; an archive that cannot be read holds none.
pub(crate) fn archived_ids(eval_file: &Path) -> BTreeSet<String> {
    let archive = std::fs::read(archive_path(eval_file)).ok().and_then(|bytes| Archive::read(&bytes).ok());
    archive.iter().flat_map(|archive| &archive.cases).map(|case| case.id().to_owned()).collect()
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
