//! `karat regress`: cases that keep fixed bugs fixed.

mod add;
mod archive;
mod basis;
mod expect;
mod from_run;
mod from_trace;
mod seal;

use std::path::{Path, PathBuf};

use karat_core::case::SuiteFile;
use karat_core::exit::ExitStatus;
use karat_core::regression::{RegressionEditError, RegressionEditor};
use karat_json::without_bom;
use karat_project::replace_file;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::args::{OutputFormat, RegressAction, RegressArgs};
use crate::diagnostic::print_findings;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use karat_project::{EvalPath, discover};
use karat_project::{Loaded, parse_suite_file, read_bytes};
use karat_workflows::settings::Settings;

pub(crate) fn run(args: RegressArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    match args.action {
        RegressAction::Add(args) => add::run(&args, environment, printer),
        RegressAction::Archive(args) => archive::run(&args, environment, printer),
        RegressAction::Seal(args) => seal::run(&args, environment, printer),
    }
}

/// What was done with regression cases.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat regress report")]
pub(crate) struct RegressReport {
    /// Whether files were written; false for --dry-run, and where nothing was to do.
    written: bool,
    cases: Vec<ReportedCase>,
}

/// A case that was added, archived or sealed.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReportedCase {
    id: String,
    /// The eval file that it is in, or was in.
    path: String,
    /// Where it was archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<String>,
    /// The hash by which an edit of it is found.
    hash: String,
    /// The case as it is written, where it was added, or was made of the same trace before.
    #[serde(skip_serializing_if = "Option::is_none")]
    case: Option<Value>,
}

impl RegressReport {
    /// Prints the report, or what people are told in its place.
    fn print(&self, format: OutputFormat, told: &str, printer: &Printer) -> Result<(), Failure> {
        match format {
            OutputFormat::Json => printer.print_json(self),
            OutputFormat::Human => printer.print(told),
        }
    }
}

/// Reads the project's eval files; those that are invalid are named, and are nobody's.
fn load_valid(paths: &[PathBuf], settings: &Settings, printer: &Printer) -> Result<Vec<Loaded>, Failure> {
    let found = match discover(paths, &settings.layout, &settings.layout.here) {
        // A project may have none yet.
        Err(_) if paths.is_empty() => Vec::new(),
        found => found?,
    };
    let mut loaded = Vec::new();
    for path in found {
        let bytes = read_bytes(&path)?;
        match parse_suite_file(&path, &bytes) {
            Ok(SuiteFile::Eval(file)) => loaded.push(Loaded { path, file }),
            Ok(SuiteFile::Rubric(_)) => {}
            Err(_) => printer.warn(&format!("{} is invalid and is passed over; 'karat check' shows why", path.shown)),
        }
    }
    Ok(loaded)
}

/// Returns a file that somebody named.
fn named_file(file: &Path, settings: &Settings) -> EvalPath {
    let path = settings.layout.here.join(file);
    let in_project = path.strip_prefix(&settings.layout.root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
    EvalPath { shown: file.display().to_string(), in_project, path }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Begins to edit an eval file.
fn open(path: &EvalPath, printer: &Printer) -> Result<RegressionEditor, Failure> {
    let bytes = read_bytes(path)?;
    RegressionEditor::open(&bytes, &file_name(&path.path)).map_err(|error| match error {
        RegressionEditError::Invalid(invalid) => {
            print_findings(&path.shown, &String::from_utf8_lossy(without_bom(&bytes)), &invalid.findings, printer);
            Failure::reported(ExitStatus::Invalid)
        }
        RegressionEditError::BareList => Failure::invalid(format!("{}: {error}", path.shown))
            .hint("put the list under 'cases' of an object: {\"metadata\": {}, \"cases\": [...]}"),
        error => Failure::errored(format!("cannot edit {}: {error}", path.shown)),
    })
}

/// Writes a file whole, or leaves it as it was.
fn write(path: &Path, shown: &str, text: &str) -> Result<(), Failure> {
    replace_file(path, text).map_err(|error| Failure::errored(format!("cannot write {shown}: {error}")))
}
