//! Adds missing hashes of regression cases.

use std::path::PathBuf;

use karat_cases::SuiteFile;
use karat_json::InvalidFile;
use karat_project::{EvalPath, discover, parse_suite_file, read_bytes};

use super::{RegressReport, ReportedCase, cannot_edit, open_editor, unsealed, write_file};
use crate::context::Context;
use crate::error::Error;

pub struct SealOutcome {
    pub report: RegressReport,
    /// Errors of files that could not be sealed.
    pub failures: Vec<Error>,
}

/// Seals the eval files of these paths; all eval files of the project if empty.
pub fn seal(paths: &[PathBuf], context: &Context<'_>) -> Result<SealOutcome, Error> {
    let layout = &context.settings.layout;
    let _lock = context.edit_lock()?;
    let mut cases = Vec::new();
    let mut failures = Vec::new();
    for path in discover(paths, layout, &layout.current_dir)? {
        let bytes = read_bytes(&path)?;
        let file = match parse_suite_file(&path, &bytes) {
            Ok(SuiteFile::Eval(file)) => file,
            Ok(SuiteFile::Rubric(_)) => continue,
            Err(findings) => {
                failures.push(Error::invalid_files(vec![InvalidFile::new(&path.display_path, &bytes, findings)]));
                continue;
            }
        };
        if unsealed(&file).next().is_some() {
            match open_editor(&path) {
                Ok(editor) => cases.extend(seal_file(editor, &path)?),
                Err(error) => failures.push(error),
            }
        }
    }
    Ok(SealOutcome { report: RegressReport { written: !cases.is_empty(), cases }, failures })
}

fn seal_file(
    mut editor: karat_cases::regression::RegressionEditor,
    path: &EvalPath,
) -> Result<Vec<ReportedCase>, Error> {
    let sealed = editor.seal().map_err(|error| cannot_edit(&path.display_path, &error))?;
    let file = editor.file().map_err(|error| cannot_edit(&path.display_path, &error))?;
    let mut hashes = file.metadata.and_then(|metadata| metadata.case_hashes).unwrap_or_default();
    write_file(&path.path, &path.display_path, &editor.into_text())?;
    let reported = sealed.into_iter().map(|id| {
        let hash = hashes.remove(&id).unwrap_or_default();
        ReportedCase { id, path: path.display_path.clone(), archive: None, hash, case: None }
    });
    Ok(reported.collect())
}
