//! Imports traces into the store, from files or a Langfuse server.

mod cursor;
mod reader;
mod server;
mod trace_files;

use std::io::Read;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use karat_core::port::StoreError;
use karat_core::stored::{ImportReport, RefusalKind, RefusedPiece};
use karat_store::{Location, Store};
use karat_traces::{Piece, TraceFormat};
use tokio_util::sync::CancellationToken;

use self::reader::{Content, FileReader};
use self::server::Server;
use self::trace_files::{EXTENSIONS_TEXT, TraceFiles};
use crate::batch_writer::{BatchOutcome, BatchWriter};
use crate::context::Context;
use crate::error::Error;
use crate::event::EventSink;
use crate::ingest::{Ingest, IngestOutcome, Totals};
use crate::trace_filter::source_kind;

/// Maximum estimated memory of a batch.
const MAX_BATCH_BYTES: usize = 16 << 20;

/// Maximum length of a trace id in a report, in characters.
const MAX_ID_LENGTH: usize = 60;

pub struct Request {
    pub origin: Origin,
    /// The name of the source format; detected from the content by default.
    pub kind: Option<String>,
    /// Also import ratings.
    pub feedback: bool,
    /// Read everything, but store nothing.
    pub dry_run: bool,
}

pub enum Origin {
    /// Files and folders; `-` reads `stdin`.
    Files { paths: Vec<PathBuf>, stdin: Box<dyn Read + Send> },
    Server {
        url: String,
        /// Only traces that started at this time or later, as the user gave it.
        since: Option<String>,
    },
}

pub enum Event {
    /// The store is open and reading starts. `bytes` is the size of all files, if known.
    Opened { bytes: Option<u64>, reads_stdin: bool },
    /// A batch was stored. Has the totals so far: traces, refused pieces and bytes read.
    Progress { traces: usize, refused: usize, bytes: u64 },
}

/// The result of an import.
#[derive(Debug)]
pub struct ImportOutcome {
    pub report: ImportReport,
    pub files_without_traces: Vec<String>,
    /// The error if the import ended early or there was nothing to import.
    pub error: Option<Error>,
}

/// Imports all traces, or stores what was read until it was cancelled.
///
/// Returns `Err` only if nothing was imported or refused before the error.
pub async fn import_traces(
    request: Request,
    context: &Context<'_>,
    events: &mut dyn EventSink<Event>,
    cancel: CancellationToken,
) -> Result<ImportOutcome, Error> {
    let Request { origin, kind, feedback, dry_run } = request;
    let kind = kind.as_deref().map(source_kind).transpose()?;
    let source = Source::find(origin, kind, dry_run, context)?;
    // A dry run writes to a temporary store.
    let folder = dry_run.then(tempfile::tempdir).transpose();
    let folder = folder.map_err(|error| Error::unavailable(format!("cannot create a temporary folder: {error}")))?;
    let opening = async {
        match &folder {
            Some(folder) => Ok(Store::open(&Location::File(folder.path().join("dry.db"))).await?),
            None => context.open_store().await,
        }
    };
    let store = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(Error::cancelled()),
        store = opening => store?,
    };
    let mut import = Import {
        store: &store,
        writer: piece_writer(&store, context, feedback),
        totals: Totals::default(),
        names: source.names(),
        files_without_traces: Vec::new(),
        events,
        cancel: cancel.child_token(),
    };
    import.begin(&source, feedback, dry_run);
    let nothing_found = source.nothing_found();
    let done = match source {
        Source::Server(server) => import.read_server(*server).await,
        Source::Files { files, stdin } => import.read_files(FileReader::start(files.files, stdin, kind)).await,
    };
    let ended = import.end(done, nothing_found);
    store.close().await;
    ended
}

/// The source of the traces.
enum Source {
    Files { files: TraceFiles, stdin: Box<dyn Read + Send> },
    Server(Box<Server>),
}

impl Source {
    fn find(origin: Origin, kind: Option<TraceFormat>, dry_run: bool, context: &Context<'_>) -> Result<Self, Error> {
        match origin {
            Origin::Server { url, since } => {
                let since = since.as_deref();
                Ok(Self::Server(Box::new(Server::new(&url, kind, since, dry_run, context)?)))
            }
            Origin::Files { paths, stdin } => {
                let files = TraceFiles::find(&paths, &context.process_env.current_dir)?;
                let source = Self::Files { files, stdin };
                match &source {
                    Self::Files { files, .. } if files.files.is_empty() && files.unreadable.is_empty() => {
                        Err(source.nothing_found())
                    }
                    _ => Ok(source),
                }
            }
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Files { files, .. } => files.files.iter().map(|file| file.display_path.clone()).collect(),
            Self::Server(server) => vec![server.url.clone()],
        }
    }

    fn nothing_found(&self) -> Error {
        match self {
            Self::Server(server) => Error::nothing_selected(format!("no new traces at {}", server.url)),
            Self::Files { files, .. } => {
                let error = Error::nothing_selected("no traces found");
                match files.skipped.as_slice() {
                    [] => error.hint(format!("expected files with the extension {EXTENSIONS_TEXT}")),
                    [first, ..] => error.hint(format!(
                        "in folders only {EXTENSIONS_TEXT} files are read; {first} was skipped: pass a file's path to read \
                         it whatever its extension"
                    )),
                }
            }
        }
    }
}

/// A piece and the index of its file.
#[derive(Clone)]
struct FilePiece {
    file: usize,
    piece: Piece,
}

impl FilePiece {
    fn trace_id(&self) -> &str {
        match &self.piece {
            Piece::Whole(whole) => &whole.trace_id,
            Piece::Parts(parts) => &parts.trace_id,
        }
    }

    /// Estimates the memory of a piece.
    fn bytes(&self) -> usize {
        /// Rough size of a span with its attributes.
        const SPAN_BYTES: usize = 4096;
        match &self.piece {
            Piece::Whole(whole) => whole.document.len() + whole.raw.len(),
            Piece::Parts(parts) => (parts.spans.len() + parts.logs.len()) * SPAN_BYTES,
        }
    }
}

type PieceWriter<'i> = BatchWriter<'i, FilePiece, IngestOutcome>;

fn piece_writer<'i>(store: &'i Store, context: &'i Context<'_>, with_feedback: bool) -> PieceWriter<'i> {
    let clock = context.clock;
    let write = move |batch: Arc<Vec<FilePiece>>| async move {
        let ingest = Ingest { store, now: clock.now(), with_feedback };
        ingest.write(batch.iter().map(|piece| piece.piece.clone()).collect()).await
    };
    BatchWriter::new(write).max_weight(MAX_BATCH_BYTES, FilePiece::bytes)
}

/// A running import.
struct Import<'i> {
    store: &'i Store,
    writer: PieceWriter<'i>,
    totals: Totals,
    /// The names of the files, or of the server.
    names: Vec<String>,
    files_without_traces: Vec<String>,
    events: &'i mut dyn EventSink<Event>,
    cancel: CancellationToken,
}

impl Import<'_> {
    fn begin(&mut self, source: &Source, feedback: bool, dry_run: bool) {
        let report = self.totals.report_mut();
        report.dry_run = dry_run;
        report.feedback.asked = feedback;
        let opened = match source {
            Source::Server(_) => Event::Opened { bytes: None, reads_stdin: false },
            Source::Files { files, .. } => {
                report.passed_over.clone_from(&files.skipped);
                let unreadable =
                    files.unreadable.iter().map(|(file, reason)| refused(file, None, reason, RefusalKind::Unreadable));
                report.refused.extend(unreadable);
                Event::Opened { bytes: files.bytes(), reads_stdin: files.reads_stdin() }
            }
        };
        self.emit(opened);
    }

    async fn read_files(&mut self, mut reader: FileReader) -> Result<(), Error> {
        loop {
            let (file, content) = tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    self.totals.report_mut().interrupted = true;
                    break;
                }
                written = self.writer.next() => {
                    self.record(written, reader.bytes_read())?;
                    continue;
                }
                read = reader.next(), if !self.writer.is_full() => match read {
                    Some(read) => read,
                    None => break,
                },
            };
            match content {
                Content::Opened => self.totals.report_mut().files += 1,
                Content::Piece(piece) => self.writer.push(FilePiece { file, piece }),
                Content::Refused(refused) => self.totals.report_mut().refused.push(refused),
                Content::Empty => self.files_without_traces.push(self.names[file].clone()),
            }
        }
        self.flush(reader.bytes_read()).await
    }

    async fn flush(&mut self, bytes: u64) -> Result<(), Error> {
        while let Some(written) = self.writer.flush().await {
            self.record(written, bytes)?;
        }
        Ok(())
    }

    /// Counts a written batch. Refuses pieces that cannot be stored; if none can be, returns the store's error.
    fn record(&mut self, written: BatchOutcome<FilePiece, IngestOutcome>, bytes: u64) -> Result<(), Error> {
        let BatchOutcome { committed, results, failed } = written;
        for mut ingested in results {
            for refusal in ingested.refused.drain(..) {
                let file =
                    committed.iter().find(|piece| piece.trace_id() == refusal.trace_id).map_or(0, |piece| piece.file);
                self.refuse_trace(file, &refusal.trace_id, &refusal.message);
            }
            self.totals.add(ingested);
        }
        if committed.is_empty()
            && let Some((_, error)) = failed.first()
        {
            return Err(error.clone().into());
        }
        for (piece, StoreError { message, .. }) in failed {
            self.refuse_trace(piece.file, piece.trace_id(), &message);
        }
        let refused = self.totals.report_mut().refused.len();
        self.emit(Event::Progress { traces: self.totals.traces(), refused, bytes });
        Ok(())
    }

    fn refuse_trace(&mut self, file: usize, trace_id: &str, message: &str) {
        let location = format!("trace {}", trace_id.chars().take(MAX_ID_LENGTH).collect::<String>());
        let refused = refused(&self.names[file], Some(location), message, RefusalKind::Invalid);
        self.totals.report_mut().refused.push(refused);
    }

    fn emit(&mut self, event: Event) {
        if self.events.emit(event) == ControlFlow::Break(()) {
            self.cancel.cancel();
        }
    }

    fn end(self, done: Result<(), Error>, nothing_found: Error) -> Result<ImportOutcome, Error> {
        let report = self.totals.into_report();
        let is_empty = report.traces() == 0 && report.refused.is_empty();
        let error = match done {
            Err(error) if is_empty => return Err(error),
            Err(error) => Some(error),
            Ok(()) => (is_empty && !report.interrupted).then_some(nothing_found),
        };
        Ok(ImportOutcome { report, files_without_traces: self.files_without_traces, error })
    }
}

fn refused(file: &str, location: Option<String>, message: &str, kind: RefusalKind) -> RefusedPiece {
    RefusedPiece { file: file.to_owned(), location, message: message.to_owned(), kind }
}
