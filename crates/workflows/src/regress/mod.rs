//! Regression cases: adds, archives and seals them.

mod add;
mod archive;
mod from_run;
mod from_trace;
mod seal;
mod template;

use std::path::{Path, PathBuf};

use karat_cases::regression::{RegressionEditError, RegressionEditor, is_regression};
use karat_cases::{Case, EvalFile, SuiteFile};
use karat_json::{InvalidFile, parse, without_bom};
use karat_project::{EvalPath, LoadedSuite, discover, parse_suite_file, read_bytes, replace_file};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use self::add::{AddOutcome, AddRequest, Outcome, Source, add};
pub use self::archive::{ArchiveRequest, archive};
pub use self::seal::{SealOutcome, seal};
use crate::context::Context;
use crate::error::Error;
use crate::settings::Settings;

/// The result of a regress command.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat regress report")]
pub struct RegressReport {
    /// Whether files were written; false with --dry-run, or if there was nothing to do.
    pub written: bool,
    pub cases: Vec<ReportedCase>,
}

/// A case that was added, archived or sealed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedCase {
    pub id: String,
    /// The eval file of the case; for an archived case, its former file.
    pub path: String,
    /// The archive, if the case was archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// The hash that detects later edits.
    pub hash: String,
    /// The case as written, if it was added or already exists for the same trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<Value>,
}

/// Reads the project's eval files; skips invalid ones with a warning.
fn load_valid(context: &Context<'_>) -> Result<Vec<LoadedSuite>, Error> {
    let layout = &context.settings.layout;
    // A new project may not have any eval files.
    let discovered = discover(&[], layout, &layout.current_dir).unwrap_or_default();
    let mut loaded = Vec::new();
    for path in discovered {
        let bytes = read_bytes(&path)?;
        match parse_suite_file(&path, &bytes) {
            Ok(SuiteFile::Eval(file)) => loaded.push(LoadedSuite { path, file }),
            Ok(SuiteFile::Rubric(_)) => {}
            Err(_) => {
                let warning = format!("skipped invalid file {}; run 'karat check' for details", path.display_path);
                context.notices.warn(&warning);
            }
        }
    }
    Ok(loaded)
}

/// Returns the path of a file given by the user, relative to the current directory.
fn user_file(file: &Path, settings: &Settings) -> EvalPath {
    eval_path(settings.layout.current_dir.join(file), file.display().to_string(), settings)
}

/// Returns the path of a file of the project.
pub(crate) fn project_file(path: PathBuf, settings: &Settings) -> EvalPath {
    let display_path = settings.display_path(&path);
    eval_path(path, display_path, settings)
}

fn eval_path(path: PathBuf, display_path: String, settings: &Settings) -> EvalPath {
    let in_project = path.strip_prefix(&settings.layout.root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
    EvalPath { path, display_path, in_project }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn open_editor(path: &EvalPath) -> Result<RegressionEditor, Error> {
    let bytes = read_bytes(path)?;
    RegressionEditor::open(&bytes, &file_name(&path.path)).map_err(|error| match error {
        RegressionEditError::Invalid(invalid) => {
            Error::invalid_files(vec![InvalidFile::new(&path.display_path, &bytes, invalid.findings)])
        }
        RegressionEditError::BareList => Error::invalid(format!("{}: {error}", path.display_path))
            .hint("wrap the list in an object: {\"metadata\": {}, \"cases\": [...]}"),
        error => cannot_edit(&path.display_path, &error),
    })
}

fn cannot_edit(display_path: &str, error: &dyn std::fmt::Display) -> Error {
    Error::unavailable(format!("cannot edit {display_path}: {error}"))
}

/// Writes a file atomically.
fn write_file(path: &Path, display_path: &str, text: &str) -> Result<(), Error> {
    replace_file(path, text).map_err(|error| Error::cannot_write(display_path, &error))
}

/// Returns the regression cases of a file without a hash.
fn unsealed(file: &EvalFile) -> impl Iterator<Item = &Case> {
    let hashes = file.metadata.as_ref().and_then(|metadata| metadata.case_hashes.as_ref());
    let is_sealed = move |id: &str| hashes.is_some_and(|hashes| hashes.contains_key(id));
    file.cases.iter().filter(move |case| is_regression(file, case) && !is_sealed(&case.id))
}

/// Returns the JSON of a case in a valid eval file.
fn raw_case(bytes: &[u8], id: &str) -> Option<Value> {
    let tree = parse(&String::from_utf8_lossy(without_bom(bytes))).ok()?;
    let cases = tree.get("cases").unwrap_or(&tree).as_array()?;
    cases.iter().find(|case| case.get("id").and_then(Value::as_str) == Some(id)).cloned()
}
