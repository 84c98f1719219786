//! `karat feedback import`: imports ratings from CSV or JSON Lines.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use karat_core::exit::ExitStatus;
use karat_evals::feedback::FeedbackFormat;
use karat_report::counted;
use karat_workflows::feedback::{FeedbackImportReport, ImportRequest, Imported, import};

use crate::args::{FeedbackImportArgs, FeedbackKind, OutputFormat};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

/// Skipped rows that are listed in warnings.
const MAX_WARNINGS: usize = 10;

pub(super) fn run(args: &FeedbackImportArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    // Only needed for rows without an author, so a missing name is not an error here.
    let author = match args.author.name(surface.environment) {
        Err(failure) if args.author.author.is_some() => return Err(failure),
        author => author.ok(),
    };
    let context = surface.store_context(&args.store)?;
    let (name, bytes) = read_file(&args.file, &surface.environment.process.current_dir)?;
    let request = ImportRequest {
        name: name.clone(),
        bytes,
        format: args.from.map(|kind| match kind {
            FeedbackKind::Csv => FeedbackFormat::Csv,
            FeedbackKind::Jsonl => FeedbackFormat::JsonLines,
        }),
        author,
        ignore_unknown: args.ignore_unknown,
        skip_invalid: args.skip_invalid,
        dry_run: args.dry_run,
        unknown_trace_help: Some("run 'karat trace list' to list traces".to_owned()),
    };
    let Imported { report, refused } = surface.run(import(request, &context))?;
    let printer = surface.printer;
    if refused.is_none() {
        warn_skipped(&name, &report, printer);
    }
    if args.format == OutputFormat::Json {
        printer.print_json(&report)?;
    }
    if let Some(error) = refused {
        return Err(error.into());
    }
    if args.format == OutputFormat::Human {
        printer.print(&summary(&report, &name))?;
    }
    // Lets scripts see that rows were skipped.
    Ok(if report.invalid.is_empty() { ExitStatus::Success } else { ExitStatus::Failed })
}

fn read_file(file: &Path, current_dir: &Path) -> Result<(String, Vec<u8>), Failure> {
    let mut bytes = Vec::new();
    let (name, read) = if file.as_os_str() == "-" {
        ("stdin".to_owned(), std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes))
    } else {
        (file.display().to_string(), std::fs::read(current_dir.join(file)))
    };
    match read {
        Ok(bytes) => Ok((name, bytes)),
        Err(error) => Err(Failure::invalid(format!("cannot read {name}: {error}"))),
    }
}

fn warn_skipped(name: &str, report: &FeedbackImportReport, printer: &Printer) {
    for row in report.invalid.iter().take(MAX_WARNINGS) {
        printer.warn(&format!("{name}:{}:{}: {}", row.line, row.column, row.message));
    }
    if let Some(more) = report.invalid.len().checked_sub(MAX_WARNINGS).filter(|more| *more > 0) {
        printer.warn(&format!("and {more} more in {name}; pass --format json to list all"));
    }
}

fn summary(report: &FeedbackImportReport, name: &str) -> String {
    let count = |number: u64, noun: &str| counted(usize::try_from(number).unwrap_or(usize::MAX), noun);
    let action = if report.written { "imported" } else { "would import" };
    let mut text = format!("{action} {} from {name}", count(report.added, "rating"));
    if report.unchanged > 0 {
        let _ = write!(text, "; {} unchanged", count(report.unchanged, "row"));
    }
    if !report.invalid.is_empty() {
        let _ = write!(text, "; {} left out", count(report.rows - report.added - report.unchanged, "row"));
    }
    text + "\n"
}
