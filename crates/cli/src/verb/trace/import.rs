//! `karat trace import`: imports traces into the store.

use std::io;
use std::ops::ControlFlow;

use karat_core::exit::ExitStatus;
use karat_core::stored::{ImportReport, RefusalKind};
use karat_report::{counted, import_text, wrap};
use karat_traces::EXPECTED_CONTENT;
use karat_workflows::import_traces::{Event, ImportOutcome, Origin, Request, import_traces};

use crate::args::{OutputFormat, TraceImportArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::progress::Progress;
use crate::surface::Surface;

/// Files without traces that are named.
const MAX_LISTED_FILES: usize = 5;

pub(super) fn run(args: &TraceImportArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let origin = match &args.url {
        Some(url) => Origin::Server { url: url.clone(), since: args.since.clone() },
        None => Origin::Files { paths: args.paths.clone(), stdin: Box::new(io::stdin()) },
    };
    let request = Request { origin, kind: args.from.clone(), feedback: args.feedback, dry_run: args.dry_run };
    let (environment, printer): (&Environment, &Printer) = (surface.environment, surface.printer);
    let mut progress = None;
    let mut on_event = |event| {
        match event {
            Event::Opened { bytes, reads_stdin } => {
                if reads_stdin && environment.stdin_is_terminal {
                    printer.note("reading traces from the terminal");
                }
                progress = Progress::bar(surface, bytes, "0 traces");
            }
            Event::Progress { traces, refused, bytes } => {
                if let Some(progress) = &mut progress {
                    progress.show(bytes, || {
                        let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
                        format!("{traces} traces{refused}")
                    });
                }
            }
        }
        ControlFlow::Continue(())
    };
    let imported =
        surface.run_cancellable(async |cancel| import_traces(request, &context, &mut on_event, cancel).await);
    drop(progress);
    let ImportOutcome { report, files_without_traces, error } = imported?;
    print(&report, args, printer)?;
    // Without any traces, the error names the files.
    if report.traces() > 0 || !report.refused.is_empty() {
        note_files_without_traces(&files_without_traces, printer);
    }
    match error {
        Some(error) => Err(error.into()),
        None => Ok(finish(&report, args, printer)),
    }
}

fn print(report: &ImportReport, args: &TraceImportArgs, printer: &Printer) -> Result<(), Failure> {
    match args.format {
        OutputFormat::Json => printer.print_json(report),
        OutputFormat::Human if report.traces() == 0 && report.refused.is_empty() && !report.interrupted => Ok(()),
        OutputFormat::Human => printer.print(&import_text(report, printer.console())),
    }
}

/// Returns the exit status, and prints next steps.
fn finish(report: &ImportReport, args: &TraceImportArgs, printer: &Printer) -> ExitStatus {
    if report.interrupted {
        return ExitStatus::Interrupted;
    }
    let has = |kind: RefusalKind| report.refused.iter().any(|refused| refused.kind == kind);
    if has(RefusalKind::UnknownSource) && args.format == OutputFormat::Human {
        for line in wrap(&format!("expected {EXPECTED_CONTENT}; pass --from to set the format"), printer.columns) {
            printer.note(&line);
        }
    }
    if has(RefusalKind::Unreadable) {
        return ExitStatus::Errored;
    }
    if args.format == OutputFormat::Human && report.added + report.changed > 0 && !report.dry_run {
        printer.note("next: 'karat trace list', 'karat trace show ID' or 'karat eval run NAME --stored'");
    }
    if report.refused.is_empty() { ExitStatus::Success } else { ExitStatus::Failed }
}

/// Names the files without traces, since the user may have expected some.
fn note_files_without_traces(files: &[String], printer: &Printer) {
    if files.is_empty() {
        return;
    }
    let names: Vec<&str> = files.iter().take(MAX_LISTED_FILES).map(String::as_str).collect();
    let more = match files.len().saturating_sub(MAX_LISTED_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    printer.note(&format!("{} without traces: {}{more}", counted(files.len(), "file"), names.join(", ")));
}
