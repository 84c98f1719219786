//! Cases that keep fixed bugs fixed: add one, archive one, add missing hashes.

mod add;
mod archive;
mod from_run;
mod from_trace;
mod seal;
mod template;

use std::path::{Path, PathBuf};

use karat_core::case::{Case, EvalFile, SuiteFile};
use karat_core::regression::{RegressionEditError, RegressionEditor, is_regression};
use karat_json::{InvalidFile, parse, without_bom};
use karat_project::{EvalPath, Loaded, discover, parse_suite_file, read_bytes, replace_file};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use self::add::{AddRequest, Added, Outcome, Source, add};
pub use self::archive::{ArchiveRequest, archive};
pub use self::seal::{Sealed, seal};
use crate::context::Context;
use crate::error::Error;
use crate::settings::Settings;

/// What was done with regression cases.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat regress report")]
pub struct RegressReport {
    /// Whether files were written; false for --dry-run, and where nothing was to do.
    pub written: bool,
    pub cases: Vec<ReportedCase>,
}

/// A case that was added, archived or sealed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedCase {
    pub id: String,
    /// The eval file that it is in, or was in.
    pub path: String,
    /// Where it was archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// The hash by which an edit of it is found.
    pub hash: String,
    /// The case as it is written, where it was added, or was made of the same trace before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<Value>,
}

/// Reads the project's eval files; skips invalid ones with a warning.
fn load_valid(context: &Context<'_>) -> Result<Vec<Loaded>, Error> {
    let layout = &context.settings.layout;
    // A project may have none yet.
    let found = discover(&[], layout, &layout.here).unwrap_or_default();
    let mut loaded = Vec::new();
    for path in found {
        let bytes = read_bytes(&path)?;
        match parse_suite_file(&path, &bytes) {
            Ok(SuiteFile::Eval(file)) => loaded.push(Loaded { path, file }),
            Ok(SuiteFile::Rubric(_)) => {}
            Err(_) => {
                let warning = format!("{} is invalid and is passed over; 'karat check' shows why", path.shown);
                context.notices.warn(&warning);
            }
        }
    }
    Ok(loaded)
}

/// Returns a file that the user named, relative to the current folder.
fn named_file(file: &Path, settings: &Settings) -> EvalPath {
    eval_path(settings.layout.here.join(file), file.display().to_string(), settings)
}

/// Returns a file of the project.
fn project_file(path: PathBuf, settings: &Settings) -> EvalPath {
    let shown = settings.shown(&path);
    eval_path(path, shown, settings)
}

fn eval_path(path: PathBuf, shown: String, settings: &Settings) -> EvalPath {
    let in_project = path.strip_prefix(&settings.layout.root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
    EvalPath { path, shown, in_project }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn open_editor(path: &EvalPath) -> Result<RegressionEditor, Error> {
    let bytes = read_bytes(path)?;
    RegressionEditor::open(&bytes, &file_name(&path.path)).map_err(|error| match error {
        RegressionEditError::Invalid(invalid) => {
            Error::invalid_files(vec![InvalidFile::new(&path.shown, &bytes, invalid.findings)])
        }
        RegressionEditError::BareList => Error::invalid(format!("{}: {error}", path.shown))
            .hint("put the list under 'cases' of an object: {\"metadata\": {}, \"cases\": [...]}"),
        error => cannot_edit(&path.shown, &error),
    })
}

fn cannot_edit(shown: &str, error: &dyn std::fmt::Display) -> Error {
    Error::unavailable(format!("cannot edit {shown}: {error}"))
}

/// Writes a file whole, or leaves it as it was.
fn write_file(path: &Path, shown: &str, text: &str) -> Result<(), Error> {
    replace_file(path, text).map_err(|error| Error::unavailable(format!("cannot write {shown}: {error}")))
}

/// Returns the regression cases of a file that have no hash.
fn unsealed(file: &EvalFile) -> impl Iterator<Item = &Case> {
    let hashes = file.metadata.as_ref().and_then(|metadata| metadata.case_hashes.as_ref());
    let is_sealed = move |id: &str| hashes.is_some_and(|hashes| hashes.contains_key(id));
    file.cases.iter().filter(move |case| is_regression(file, case) && !is_sealed(&case.id))
}

/// Returns a case of a valid eval file as it is written.
fn raw_case(bytes: &[u8], id: &str) -> Option<Value> {
    let tree = parse(&String::from_utf8_lossy(without_bom(bytes))).ok()?;
    let cases = tree.get("cases").unwrap_or(&tree).as_array()?;
    cases.iter().find(|case| case.get("id").and_then(Value::as_str) == Some(id)).cloned()
}
