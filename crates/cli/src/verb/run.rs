//! `karat run`: runs eval files against an agent.

pub(crate) mod telemetry;
mod watch;

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use karat_core::event::{ReportError, Reporter};
use karat_core::exit::ExitStatus;
use karat_core::port::DISK_FULL;
use karat_report::destination::Destination;
use karat_report::github::{GithubReporter, StepSummaryReporter};
use karat_report::{
    ConsoleReporter, ConsoleSettings, FailedIds, JsonLinesReporter, JsonReporter, Report, case_list_text, counted,
    not_stored_warnings, rerun_command, with_run_ids,
};
use karat_workflows::run_suites::{Outcome, Request, SelectionRequest, list_cases, run_suites};
use karat_workflows::{CancellationToken, Context, Error, relative_run_id};

use self::watch::watch;
use crate::args::{RunArgs, RunFormat, SelectionArgs};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::progress::ProgressReporter;
use crate::surface::Surface;

pub(crate) fn run(args: &RunArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let paths = args.paths();
    let context = surface.context(&paths)?;
    let request = Request { paths, selection: selection(&args.selection), store: !args.no_store, telemetry: None };
    if args.list {
        return list(args, &request, &context, surface.printer);
    }
    surface.run_interactive(async |cancel| {
        if args.watch {
            watch(args, &request, context, surface, &cancel).await
        } else {
            run_once(args, request, &context, surface, &cancel).await
        }
    })
}

fn list(args: &RunArgs, request: &Request, context: &Context<'_>, printer: &Printer) -> Result<ExitStatus, Failure> {
    let list = list_cases(request, context)?;
    match args.format {
        RunFormat::Human => printer.print(&case_list_text(&list, printer.console()))?,
        RunFormat::Json | RunFormat::Jsonl => printer.print_json(&list)?,
    }
    Ok(ExitStatus::Success)
}

async fn run_once(
    args: &RunArgs,
    request: Request,
    context: &Context<'_>,
    surface: &Surface<'_>,
    cancel: &CancellationToken,
) -> Result<ExitStatus, Failure> {
    let reports = parse_reports(&args.report, args.format)?;
    let failed_ids = FailedIds::default();
    let create_reporters = |cases| {
        let mut all = reporters(args.format, reports, cases, surface)?;
        all.push(Box::new(failed_ids.clone()));
        Ok::<_, Error>(all)
    };
    // Resolved before this run becomes the newest.
    let arguments =
        with_run_ids(&surface.environment.arguments, |name| relative_run_id(name, &context.settings.layout));
    let receiver = telemetry::start(context, surface.printer).await?;
    let telemetry = receiver.as_ref().map(|receiver| Arc::clone(&receiver.telemetry));
    let request = Request { telemetry, ..request };
    let outcome = tokio::select! {
        outcome = run_suites(request, context, create_reporters, cancel) => outcome,
        never = announce_interrupt(cancel, surface.printer) => match never {},
    };
    surface.printer.set_progress_bar(None);
    let outcome = outcome?;
    let status = finish(&outcome, context, surface.printer);
    report_result_files(&outcome, status, context, surface.printer);
    let failed_ids = failed_ids.into_ids();
    let is_complete = !outcome.totals.interrupted;
    // A watched run is repeated anyway.
    if (!failed_ids.is_empty() || !is_complete) && !args.watch {
        let has_baseline = context.settings.baseline.is_some();
        let failed_ids = is_complete.then_some(&failed_ids[..]);
        let command = rerun_command(&arguments, &selection(&args.selection), failed_ids, has_baseline);
        let what = if is_complete { "rerun what did not pass" } else { "run the other cases, and those that failed" };
        surface.printer.note(&format!("to {what}: {command}"));
    }
    Ok(report_recordings(&outcome, status, surface.printer))
}

/// Prints where the results are.
pub(crate) fn report_result_files(outcome: &Outcome, status: ExitStatus, context: &Context<'_>, printer: &Printer) {
    let rubrics = outcome.totals.rubric.as_ref().map_or(0, |rubric| rubric.suites);
    let files = counted(outcome.totals.suites + rubrics, "result file");
    // A different status means that some results were not written.
    if status == outcome.totals.status() {
        let folder = context.settings.display_path(&context.settings.layout.output_dir);
        printer.note(&format!("run {}: {files} in {folder}", outcome.run_id));
    }
}

pub(crate) fn parse_reports(texts: &[String], format: RunFormat) -> Result<Vec<Report>, Failure> {
    let reports = texts.iter().map(|report| Report::parse(report)).collect::<Result<Vec<_>, _>>()?;
    if reports.iter().filter(|report| report.is_stdout()).count() > 1 {
        return Err(Failure::invalid("cannot write two reports to stdout; write one of them to a file"));
    }
    if format != RunFormat::Human && reports.iter().any(Report::is_stdout) {
        return Err(Failure::invalid("cannot write both a report and JSON to stdout; write the report to a file"));
    }
    Ok(reports)
}

fn selection(args: &SelectionArgs) -> SelectionRequest {
    SelectionRequest {
        ids: args.id.clone(),
        tiers: args.tier.clone(),
        difficulties: args.difficulty.clone(),
        tags: args.tag.clone(),
        skip_tags: args.skip_tag.clone(),
        grep: args.grep.clone(),
        functions: Vec::new(),
        only_failed: args.only_failed.is_some(),
        failed_in: args.only_failed.clone().filter(|run| !run.is_empty()),
        shard: args.shard,
        is_part: false,
    }
}

async fn announce_interrupt(cancel: &CancellationToken, printer: &Printer) -> std::convert::Infallible {
    cancel.cancelled().await;
    printer.print_stderr("interrupted: writing finished results (press Ctrl-C again to stop now)");
    std::future::pending().await
}

/// Creates the reporters, and checks that reports can be written.
pub(crate) fn reporters(
    format: RunFormat,
    reports: Vec<Report>,
    cases: usize,
    surface: &Surface<'_>,
) -> Result<Vec<Box<dyn Reporter>>, Error> {
    let Surface { environment, printer, .. } = surface;
    reports.iter().try_for_each(Report::check)?;
    let is_annotated = reports.iter().any(|report| matches!(report, Report::Github(Destination::Stdout)));
    // Workflow commands belong into the log; any other report on stdout is a document of its own.
    let is_document = format != RunFormat::Human || (!is_annotated && reports.iter().any(Report::is_stdout));
    // Annotate the log, unless a report does so already or stdout is a document.
    let annotate = environment.github_actions && !is_document && !is_annotated;
    let mut all = vec![console(format, printer, is_document, annotate || is_annotated)];
    let folder = environment.repository_folder();
    all.extend(reports.into_iter().map(|report| report.reporter(&folder)));
    if annotate {
        all.push(Box::new(GithubReporter::new(Destination::Stdout).with_folder(folder)));
    }
    if let Some(path) = environment.github_step_summary.as_ref().filter(|_| environment.github_actions) {
        all.push(Box::new(StepSummaryReporter::new(path.clone())));
    }
    if let Some(progress) = ProgressReporter::new(surface, cases) {
        all.push(Box::new(progress));
    }
    Ok(all)
}

fn console(format: RunFormat, printer: &Arc<Printer>, is_document: bool, has_annotations: bool) -> Box<dyn Reporter> {
    let stdout = || Box::new(BufWriter::new(io::stdout())) as Box<dyn Write + Send>;
    match format {
        RunFormat::Json => Box::new(JsonReporter::new(stdout())),
        RunFormat::Jsonl => Box::new(JsonLinesReporter::new(stdout())),
        RunFormat::Human => {
            let printer = Arc::clone(printer);
            let console = if is_document {
                let settings = ConsoleSettings { palette: printer.stderr_palette, ..printer.console() };
                ConsoleReporter::new(settings, Box::new(move |text| printer.write_stderr(text)))
            } else {
                ConsoleReporter::new(printer.console(), Box::new(move |text| printer.write_stdout(text)))
            };
            Box::new(if has_annotations { console.with_annotations() } else { console })
        }
    }
}

/// A result that cannot be written ranks above a failed one.
pub(crate) fn finish(outcome: &Outcome, context: &Context<'_>, printer: &Printer) -> ExitStatus {
    // A closed pipe is not an error: the results are on disk.
    let errors = outcome.report_errors.iter().filter(|error| error.source.kind() != io::ErrorKind::BrokenPipe);
    let (full, other): (Vec<&ReportError>, Vec<&ReportError>) =
        errors.partition(|error| error.source.kind() == io::ErrorKind::StorageFull);
    let mut status = outcome.totals.status();
    // A reporter that cannot write fails at every event.
    let messages: BTreeSet<String> =
        other.into_iter().map(|error| printer.redactor.text(&error.to_string()).into_owned()).collect();
    let mut failures: Vec<Failure> = messages.into_iter().map(Failure::errored).collect();
    let targets: BTreeSet<&str> = full.into_iter().map(|error| error.target.as_str()).collect();
    let full_store = outcome.store_error.as_ref().filter(|error| error.is_disk_full());
    let full_store = full_store.map(|_| context.settings.display_store());
    if let Some(message) = disk_full_message(&targets.into_iter().collect::<Vec<_>>(), full_store.as_deref()) {
        failures.push(Failure::errored(message).hint("free some space and run the command again"));
    }
    for warning in not_stored_warnings(&outcome.not_stored, printer.symbols.ellipsis) {
        printer.warn(&warning);
    }
    if let Some(error) = outcome.store_error.as_ref().filter(|error| !error.is_disk_full()) {
        let failure = Failure::errored(format!("the run is incomplete in the store: {}", error.message));
        failures.push(failure);
    }
    failures.extend(outcome.hook_error.as_ref().map(Failure::errored));
    for failure in failures {
        printer.failure(&failure);
        if status != ExitStatus::Interrupted {
            status = ExitStatus::Errored;
        }
    }
    status
}

/// Returns one error for everything that a full disk left unwritten.
fn disk_full_message(targets: &[&str], store: Option<&str>) -> Option<String> {
    let files = match targets {
        [] => None,
        [file] => Some(format!("cannot write {file}")),
        [file, rest @ ..] => Some(format!("cannot write {file} and {} more", rest.len())),
    };
    let store = store.map(|store| format!("the run is incomplete in the store {store}"));
    let parts: Vec<String> = files.into_iter().chain(store).collect();
    (!parts.is_empty()).then(|| format!("{DISK_FULL}: {}", parts.join("; ")))
}

/// Prints the outcome of recording; an answer that cannot be recorded is an error.
fn report_recordings(outcome: &Outcome, status: ExitStatus, printer: &Printer) -> ExitStatus {
    let Some(recordings) = &outcome.recordings else { return status };
    recordings.warnings.iter().for_each(|warning| printer.warn(warning));
    for failure in &recordings.failures {
        printer.failure(&Failure::errored(failure));
    }
    printer.note(&recordings.summary);
    if recordings.failures.is_empty() || status == ExitStatus::Interrupted { status } else { ExitStatus::Errored }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_one_error() {
        assert_eq!(disk_full_message(&[], None), None);
        assert_eq!(
            disk_full_message(&["a.json", "b.json", "c.json"], Some("karat.db")).as_deref(),
            Some(
                "no space left on device: cannot write a.json and 2 more; the run is incomplete in the store karat.db"
            )
        );
        assert_eq!(
            disk_full_message(&["a.json"], None).as_deref(),
            Some("no space left on device: cannot write a.json")
        );
    }
}
