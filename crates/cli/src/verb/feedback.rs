//! `karat feedback`: ratings of traces.

use std::io::Read as _;
use std::path::Path;

use karat_core::exit::ExitStatus;
use karat_report::{feedback_change_text, feedback_csv, feedback_import_text, feedback_list_notes, feedback_list_text};
use karat_workflows::feedback::{
    FeedbackImportReport, ImportOutcome, ImportRequest, ListRequest, RateRequest, import, list, rate,
};

use super::list_limit;
use crate::args::{
    FeedbackAction, FeedbackArgs, FeedbackImportArgs, FeedbackListArgs, FeedbackListFormat, OutputFormat,
};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

/// Source of ratings from the command line.
const SOURCE: &str = "cli";

/// Default number of ratings in text output.
const DEFAULT_LIMIT: u64 = 50;

/// Maximum number of skipped rows in warnings.
const MAX_WARNINGS: usize = 10;

pub(crate) fn run(args: FeedbackArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        FeedbackAction::Add(args) => {
            let author = args.author.name(surface.environment)?;
            let (trace, rating, note) = (args.trace, Some(args.rating.into()), args.note);
            run_rate(RateRequest { trace, rating, note, author, source: SOURCE }, args.format, surface)
        }
        FeedbackAction::Retract(args) => {
            let author = args.author.name(surface.environment)?;
            let (trace, note) = (args.trace, args.note);
            run_rate(RateRequest { trace, rating: None, note, author, source: SOURCE }, args.format, surface)
        }
        FeedbackAction::Import(args) => run_import(&args, surface),
        FeedbackAction::List(args) => run_list(args, surface),
    }
}

fn run_rate(request: RateRequest, format: OutputFormat, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let change = surface.run(rate(request, &context))?;
    surface.printer.print_result(format, &change, |change, _| feedback_change_text(change))?;
    Ok(ExitStatus::Success)
}

fn run_import(args: &FeedbackImportArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    // Only needed for rows without an author, so a missing name is not an error here.
    let author = match args.author.name(surface.environment) {
        Err(failure) if args.author.author.is_some() => return Err(failure),
        author => author.ok(),
    };
    let context = surface.context(&[])?;
    let (name, bytes) = read_file(&args.file, &surface.environment.process.current_dir)?;
    let request = ImportRequest {
        name: name.clone(),
        bytes,
        format: args.from,
        author,
        ignore_unknown: args.ignore_unknown,
        skip_invalid: args.skip_invalid,
        dry_run: args.dry_run,
        unknown_trace_help: Some("run 'karat trace list' to list traces".to_owned()),
    };
    let ImportOutcome { report, refused } = surface.run(import(request, &context))?;
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
        printer.print(&feedback_import_text(&report, &name))?;
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

fn run_list(args: FeedbackListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let FeedbackListArgs { trace, author, history, limit, format, .. } = args;
    let context = surface.context(&[])?;
    let is_human = format == FeedbackListFormat::Human;
    let limit = list_limit(limit, is_human, DEFAULT_LIMIT);
    let list = surface.run(list(ListRequest { trace, author, history, short_ids: is_human, limit }, &context))?;
    let printer = surface.printer;
    match format {
        FeedbackListFormat::Human => {
            let (before, after) = feedback_list_notes(&list, history);
            printer.notes(before);
            let (console, columns) = (printer.console(), printer.terminal_columns);
            printer.print(&feedback_list_text(&list.feedback, &list.short_ids, console, columns))?;
            printer.notes(after);
        }
        FeedbackListFormat::Json => printer.print_json(&list)?,
        FeedbackListFormat::Jsonl => list.feedback.iter().try_for_each(|line| printer.print_json_line(line))?,
        FeedbackListFormat::Csv => {
            let failed = |error| Failure::errored(format!("cannot write the table: {error}"));
            printer.print(&feedback_csv(&list.feedback).map_err(failed)?)?;
        }
    }
    Ok(ExitStatus::Success)
}
