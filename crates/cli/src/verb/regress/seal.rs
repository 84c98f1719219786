//! `karat regress seal`.

use std::fmt::Write as _;

use karat_core::case::SuiteFile;
use karat_core::exit::ExitStatus;
use karat_core::regression::is_regression;
use karat_report::printable;

use super::{RegressReport, ReportedCase, open, write};
use crate::args::{ConfigArgs, RegressSealArgs};
use crate::diagnostic::print_findings;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::resolve::{edit_lock, resolve_settings};
use karat_json::without_bom;
use karat_project::discover;
use karat_project::{parse_suite_file, read_bytes};

pub(super) fn run(args: &RegressSealArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let config = ConfigArgs { config: args.config.clone(), ..ConfigArgs::default() };
    let settings = resolve_settings(&config, &args.paths, environment, printer)?;
    let _lock = edit_lock(&settings, printer)?;
    let mut report = RegressReport { written: false, cases: Vec::new() };
    let mut told = String::new();
    let mut status = ExitStatus::Success;
    for path in discover(&args.paths, &settings.layout, &settings.layout.here)? {
        let bytes = read_bytes(&path)?;
        let file = match parse_suite_file(&path, &bytes) {
            Ok(SuiteFile::Eval(file)) => file,
            Ok(SuiteFile::Rubric(_)) => continue,
            // It may hold cases to seal; the others are sealed nevertheless.
            Err(findings) => {
                print_findings(&path.shown, &String::from_utf8_lossy(without_bom(&bytes)), &findings, printer);
                status = ExitStatus::Invalid;
                continue;
            }
        };
        let hashes = file.metadata.as_ref().and_then(|metadata| metadata.case_hashes.as_ref());
        let is_open = |id: &str| hashes.is_none_or(|hashes| !hashes.contains_key(id));
        if !file.cases.iter().any(|case| is_regression(&file, case) && is_open(&case.id)) {
            continue;
        }
        let mut editor = match open(&path, printer) {
            Ok(editor) => editor,
            Err(failure) => {
                printer.failure(&failure);
                status = failure.status;
                continue;
            }
        };
        let fail = |error: &dyn std::fmt::Display| Failure::errored(format!("cannot edit {}: {error}", path.shown));
        let sealed = editor.seal().map_err(|error| fail(&error))?;
        let hashes = editor.file().map_err(|error| fail(&error))?.metadata.and_then(|metadata| metadata.case_hashes);
        write(&path.path, &path.shown, &editor.into_text())?;
        report.written = true;
        for id in sealed {
            let _ = writeln!(told, "sealed {} in {}", printable(&id), printable(&path.shown));
            let hash = hashes.as_ref().and_then(|hashes| hashes.get(&id)).cloned().unwrap_or_default();
            report.cases.push(ReportedCase { id, path: path.shown.clone(), archive: None, hash, case: None });
        }
    }
    if report.cases.is_empty() && status == ExitStatus::Success {
        told.push_str("nothing to seal: every regression case has its hash\n");
    }
    report.print(args.format, &told, printer)?;
    Ok(status)
}
