//! The findings of `karat eval check`.

use std::fmt::Write as _;

use karat_json::{Finding, Location, Position};
use karat_lints::Severity;
use karat_workflows::check_functions::{CheckedFile, EvalCheckReport, FileFinding};

use crate::console::{ConsoleSettings, Verbosity};
use crate::source_problem::SourceProblem;
use crate::terminal_text::printable;
use crate::tools::counted;

/// Maximum number of printed findings of a file.
const MAX_FINDINGS: usize = 50;

/// Renders the findings of a file, or its valid function.
pub fn checked_file_text(file: &CheckedFile, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    for finding in file.findings.iter().take(MAX_FINDINGS) {
        let _ = writeln!(out, "{}\n", source_problem(file, finding).text(settings));
    }
    let path = printable(&file.path);
    if let Some(more) = file.findings.len().checked_sub(MAX_FINDINGS).filter(|more| *more > 0) {
        let line = format!("{} and {more} more in {path}", settings.symbols.ellipsis);
        let _ = writeln!(out, "{line}\npass --format json to list all\n");
    } else if let Some(function) = &file.function
        && file.is_valid()
        && settings.verbosity != Verbosity::Quiet
    {
        let sign = settings.palette.success(settings.symbols.passed);
        let _ = writeln!(out, "{sign} {path}: {}", printable(function));
    }
    out
}

fn source_problem(file: &CheckedFile, finding: &FileFinding) -> SourceProblem {
    let position = Position { line: finding.line, column: finding.column };
    let location = Location { range: finding.range.clone(), position };
    let (message, help) = (finding.message.clone(), finding.help.clone());
    let finding_view = Finding { location, pointer: None, case_id: None, message, help };
    SourceProblem::new(&file.path, &file.text, finding_view, Severity::Error, Some(finding.rule.clone()))
}

/// Renders the number of files, invalid files and findings.
pub fn checked_functions_text(report: &EvalCheckReport, settings: ConsoleSettings) -> String {
    let invalid = report.files.iter().filter(|file| !file.is_valid()).count();
    let findings: usize = report.files.iter().map(|file| file.findings.len()).sum();
    let line = format!("{}: {invalid} invalid, {}", counted(report.files.len(), "file"), counted(findings, "finding"));
    if invalid > 0 { settings.palette.failure(line) } else { settings.palette.success(line) }
}
