//! `karat trace import`: traces of other programs into the store.

mod cursor;
mod files;
mod reading;
mod server;

use karat_core::exit::ExitStatus;
use karat_core::stored::{ImportReport, RefusalKind, RefusedPiece};
use karat_report::{counted, import_text, wrap};
use karat_store::{Location, Store};
use karat_traces::{LOOKED_FOR, Piece};

use super::progress::ImportProgress;
use crate::args::{OutputFormat, TraceImportArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::ingest::{Ingest, Totals};
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::open_store;
use crate::trace_files::{TraceFile, TraceFiles};
use karat_workflows::context::clock::SystemClock;
use karat_workflows::trace_filter::source_kind;

/// How many files without traces are named.
const MOST_NAMED: usize = 5;

pub(crate) fn run(args: &TraceImportArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let kind = args.from.as_deref().map(source_kind).transpose()?;
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let server = args.url.as_ref().map(|url| server::Server::new(url, kind, args, &settings, printer)).transpose()?;
    let files = TraceFiles::find(&args.paths, &environment.process.current_dir)?;
    if server.is_none() && files.files.is_empty() && files.unreadable.is_empty() {
        return Err(nothing(&files.passed_over));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    let interrupts = Interrupts::listen(&runtime);
    // What a dry run would keep is kept where nobody finds it.
    let folder = args.dry_run.then(tempfile::tempdir).transpose();
    let folder = folder.map_err(|error| Failure::errored(format!("cannot make a temporary folder: {error}")))?;
    let opening = async {
        match &folder {
            Some(folder) => Store::open(&Location::File(folder.path().join("dry.db"))).await.map_err(Failure::from),
            None => open_store(&settings).await,
        }
    };
    let store = match runtime.block_on(interrupts.unless_asked(opening)) {
        Ok(store) => store,
        Err(failure) => {
            // What was given up must not keep the program.
            runtime.shutdown_background();
            return Err(failure);
        }
    };
    if environment.stdin_is_terminal && files.files.iter().any(TraceFile::is_stdin) {
        printer.note("reading traces from the terminal");
    }
    let mut totals = Totals::default();
    let report = totals.report_mut();
    report.dry_run = args.dry_run;
    report.feedback.asked = args.feedback;
    report.passed_over.clone_from(&files.passed_over);
    let unreadable =
        files.unreadable.iter().map(|(file, why)| refused(file, None, why.clone(), RefusalKind::Unreadable));
    report.refused.extend(unreadable);
    let bytes = if server.is_some() { None } else { files.bytes() };
    let mut import = Import {
        store: &store,
        ingest: Ingest::new(&store, &SystemClock).with_feedback(args.feedback),
        totals,
        waiting: Vec::new(),
        progress: ImportProgress::new(environment, printer, bytes),
        without_traces: Vec::new(),
    };
    let done = runtime.block_on(async {
        match server {
            Some(server) => import.read_server(server, &interrupts).await,
            None => import.read_files(files.files, kind, &interrupts).await,
        }
    });
    if let Some(progress) = import.progress.take() {
        progress.end(printer);
    }
    let without_traces = std::mem::take(&mut import.without_traces);
    let report = import.totals.into_report();
    runtime.block_on(store.close());
    // Where nothing was done before it failed, there is nothing to report.
    if done.is_ok() || report.traces() > 0 || !report.refused.is_empty() {
        print(&report, args, printer)?;
    }
    // Where no file holds any, that is the failure.
    if report.traces() > 0 || !report.refused.is_empty() {
        tell_of_nothing(&without_traces, printer);
    }
    done?;
    conclude(&report, args, printer)
}

fn print(report: &ImportReport, args: &TraceImportArgs, printer: &Printer) -> Result<(), Failure> {
    match args.format {
        OutputFormat::Json => printer.print_json(report),
        OutputFormat::Human if report.traces() == 0 && report.refused.is_empty() && !report.interrupted => Ok(()),
        OutputFormat::Human => printer.print(&import_text(report, printer.console())),
    }
}

/// Returns how the import ended, and says what could be done next.
fn conclude(report: &ImportReport, args: &TraceImportArgs, printer: &Printer) -> Result<ExitStatus, Failure> {
    if report.interrupted {
        return Ok(ExitStatus::Interrupted);
    }
    let has = |kind: RefusalKind| report.refused.iter().any(|refused| refused.kind == kind);
    if has(RefusalKind::UnknownSource) && args.format == OutputFormat::Human {
        for line in wrap(&format!("looked for {LOOKED_FOR}; --from KIND names the kind"), printer.columns) {
            printer.note(&line);
        }
    }
    if has(RefusalKind::Unreadable) {
        return Ok(ExitStatus::Errored);
    }
    if report.traces() == 0 && report.refused.is_empty() {
        return Err(match &args.url {
            Some(url) => Failure::nothing_selected(format!("there are no new traces at {url}")),
            None => nothing(&report.passed_over),
        });
    }
    if args.format == OutputFormat::Human && report.added + report.changed > 0 && !report.dry_run {
        printer.note("next: karat trace list, karat trace show ID, karat eval run NAME --stored");
    }
    Ok(if report.refused.is_empty() { ExitStatus::Success } else { ExitStatus::Failed })
}

/// Names files in which there was nothing: whoever named them may have expected something else.
fn tell_of_nothing(files: &[String], printer: &Printer) {
    if files.is_empty() {
        return;
    }
    let names: Vec<&str> = files.iter().take(MOST_NAMED).map(String::as_str).collect();
    let more = match files.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let hold = if files.len() == 1 { "holds" } else { "hold" };
    printer.note(&format!("{} {hold} no traces: {}{more}", counted(files.len(), "file"), names.join(", ")));
}

fn nothing(passed_over: &[String]) -> Failure {
    let failure = Failure::nothing_selected("there are no traces");
    match passed_over {
        [] => failure.hint("files hold traces in JSON, JSON lines or OpenTelemetry's protobuf"),
        [first, ..] => failure.hint(format!(
            "of folders only .json, .jsonl, .ndjson, .pb and .binpb are read; {first} was passed over: name files to have \
             them read whatever their names are"
        )),
    }
}

fn refused(file: &str, place: Option<String>, message: String, kind: RefusalKind) -> RefusedPiece {
    RefusedPiece { file: file.to_owned(), place, message, kind }
}

/// An import under way.
struct Import<'i> {
    store: &'i Store,
    ingest: Ingest<'i, Store>,
    totals: Totals,
    /// What was read and is not written yet.
    waiting: Vec<Piece>,
    progress: Option<ImportProgress>,
    /// Files in which there was nothing.
    without_traces: Vec<String>,
}

impl Import<'_> {
    /// Writes what waits. `file` is where it came from, and `read` how many bytes were read by now.
    async fn write(&mut self, file: &str, read: u64) -> Result<(), Failure> {
        let mut taken = self.ingest.take(std::mem::take(&mut self.waiting)).await?;
        for one in taken.refused.drain(..) {
            let place = format!("trace {}", one.trace_id.chars().take(60).collect::<String>());
            self.totals.report_mut().refused.push(refused(file, Some(place), one.message, RefusalKind::Invalid));
        }
        self.totals.add(taken);
        if let Some(progress) = &self.progress {
            let refused = self.totals.report_mut().refused.len();
            progress.show(self.totals.traces(), refused, read);
        }
        Ok(())
    }
}
