//! `karat eval check`: checks eval functions without running them.

use karat_core::exit::ExitStatus;
use karat_core::lint::Severity;
use karat_json::{Finding, Location, Position};
use karat_report::{SourceProblem, counted, printable};
use karat_workflows::check_functions::{CheckedFile, EvalCheckReport, FileFinding, Request, check_functions};
use karat_workflows::functions::path_arguments;

use crate::args::{EvalCheckArgs, OutputFormat};
use crate::failure::Failure;
use crate::hint::hint_text;
use crate::printer::Printer;
use crate::surface::Surface;

/// Findings of one file in text output.
const MAX_FINDINGS: usize = 50;

pub(super) fn run(args: &EvalCheckArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let paths = path_arguments(&args.functions, &surface.environment.process.current_dir);
    let context = surface.context(&args.config, &paths)?;
    let report = check_functions(&Request { functions: args.functions.clone() }, &context)?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => {
            report.files.iter().try_for_each(|file| print_file(file, printer))?;
            printer.print(&format!("{}\n", totals(&report, printer)))?;
        }
    }
    Ok(if report.files.iter().all(CheckedFile::is_valid) { ExitStatus::Success } else { ExitStatus::Invalid })
}

fn print_file(file: &CheckedFile, printer: &Printer) -> Result<(), Failure> {
    if let Some(error) = &file.error {
        let hints = file.hints.iter().cloned().map(hint_text).collect();
        printer.failure(&Failure { hints, ..Failure::invalid(error) });
        return Ok(());
    }
    for finding in file.findings.iter().take(MAX_FINDINGS) {
        let problem = source_problem(file, finding);
        printer.print(&format!("{}\n\n", problem.text(printer.console())))?;
    }
    if let Some(more) = file.findings.len().checked_sub(MAX_FINDINGS).filter(|more| *more > 0) {
        let line = format!("{} and {more} more in {}", printer.symbols.ellipsis, printable(&file.path));
        printer.print(&format!("{line}\npass --format json to list all\n\n"))?;
    } else if let Some(function) = file.function.as_ref().filter(|_| !printer.quiet) {
        let sign = printer.stdout_palette.success(printer.symbols.passed);
        printer.print(&format!("{sign} {}: {}\n", printable(&file.path), printable(function)))?;
    }
    Ok(())
}

fn source_problem(file: &CheckedFile, finding: &FileFinding) -> SourceProblem {
    let position = Position { line: finding.line, column: finding.column };
    let location = Location { range: finding.range.clone(), position };
    let (message, help) = (finding.message.clone(), finding.help.clone());
    let finding_view = Finding { location, pointer: None, case_id: None, message, help };
    SourceProblem::new(&file.path, &file.text, finding_view, Severity::Error, Some(finding.rule.clone()))
}

fn totals(report: &EvalCheckReport, printer: &Printer) -> String {
    let invalid = report.files.iter().filter(|file| !file.is_valid()).count();
    let findings: usize = report.files.iter().map(|file| file.findings.len()).sum();
    let line = format!("{}: {invalid} invalid, {}", counted(report.files.len(), "file"), counted(findings, "finding"));
    if invalid > 0 { printer.stdout_palette.failure(line) } else { printer.stdout_palette.success(line) }
}
