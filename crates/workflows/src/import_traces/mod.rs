//! Imports traces of other programs into the store: out of files, or from a Langfuse server.

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
use karat_traces::{Kind, Piece};
use tokio_util::sync::CancellationToken;

use self::reader::{Content, FileReader};
use self::server::Server;
use self::trace_files::TraceFiles;
use crate::batch_writer::{BatchWriter, Written};
use crate::context::Context;
use crate::error::Error;
use crate::event::EventSink;
use crate::ingest::{Ingest, Ingested, Totals};
use crate::trace_filter::source_kind;

/// How much memory pieces take that wait to be written together.
const MAX_BATCH_BYTES: usize = 16 << 20;

/// How many characters of a trace's id a report shows.
const MAX_SHOWN_ID: usize = 60;

pub struct Request {
    pub origin: Origin,
    /// The name of the kind of source; found out by the content where none is given.
    pub kind: Option<String>,
    /// Also import the ratings that the source has of people.
    pub feedback: bool,
    /// Read everything, and store nothing.
    pub dry_run: bool,
}

pub enum Origin {
    /// Files and folders; `-` is `stdin`.
    Files { paths: Vec<PathBuf>, stdin: Box<dyn Read + Send> },
    Server {
        url: String,
        /// Only traces that began then or later, in words.
        since: Option<String>,
    },
}

pub enum Event {
    /// The store is open, and reading begins: the size of all files, where it is known, and whether stdin is among them.
    Opened { bytes: Option<u64>, reads_stdin: bool },
    /// A batch is in the store: how many traces there are by now, how many pieces were refused, and how many bytes were
    /// read.
    Progress { traces: usize, refused: usize, bytes: u64 },
}

/// What came of an import.
#[derive(Debug)]
pub struct Imported {
    pub report: ImportReport,
    pub files_without_traces: Vec<String>,
    /// Why the import ended early, or that there was nothing to import.
    pub error: Option<Error>,
}

/// Imports what there is, until its end or until it is cancelled; what was read by then is stored.
///
/// Fails where nothing was imported or refused before the error.
pub async fn import_traces(
    request: Request,
    context: &Context<'_>,
    events: &mut dyn EventSink<Event>,
    cancel: CancellationToken,
) -> Result<Imported, Error> {
    let Request { origin, kind, feedback, dry_run } = request;
    let kind = kind.as_deref().map(source_kind).transpose()?;
    let source = Source::find(origin, kind, dry_run, context)?;
    // A dry run writes to a store that is thrown away.
    let folder = dry_run.then(tempfile::tempdir).transpose();
    let folder = folder.map_err(|error| Error::unavailable(format!("cannot make a temporary folder: {error}")))?;
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

/// Where traces are read from.
enum Source {
    Files { files: TraceFiles, stdin: Box<dyn Read + Send> },
    Server(Box<Server>),
}

impl Source {
    fn find(origin: Origin, kind: Option<Kind>, dry_run: bool, context: &Context<'_>) -> Result<Self, Error> {
        match origin {
            Origin::Server { url, since } => {
                let since = since.as_deref();
                Ok(Self::Server(Box::new(Server::new(&url, kind, since, dry_run, context)?)))
            }
            Origin::Files { paths, stdin } => {
                let files = TraceFiles::find(&paths, &context.surroundings.current_dir)?;
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
            Self::Files { files, .. } => files.files.iter().map(|file| file.shown.clone()).collect(),
            Self::Server(server) => vec![server.url.clone()],
        }
    }

    fn nothing_found(&self) -> Error {
        match self {
            Self::Server(server) => Error::nothing_selected(format!("there are no new traces at {}", server.url)),
            Self::Files { files, .. } => {
                let error = Error::nothing_selected("there are no traces");
                match files.passed_over.as_slice() {
                    [] => error.hint("files hold traces in JSON, JSON lines or OpenTelemetry's protobuf"),
                    [first, ..] => error.hint(format!(
                        "of folders only .json, .jsonl, .ndjson, .pb and .binpb are read; {first} was passed over: name \
                         files to have them read whatever their names are"
                    )),
                }
            }
        }
    }
}

/// A piece, and which of the files it came from.
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

    /// Estimates the memory that a piece takes.
    fn bytes(&self) -> usize {
        /// A span with its attributes, roughly.
        const SPAN: usize = 4096;
        match &self.piece {
            Piece::Whole(whole) => whole.document.len() + whole.raw.len(),
            Piece::Parts(parts) => (parts.spans.len() + parts.logs.len()) * SPAN,
        }
    }
}

type PieceWriter<'i> = BatchWriter<'i, FilePiece, Ingested>;

fn piece_writer<'i>(store: &'i Store, context: &'i Context<'_>, with_feedback: bool) -> PieceWriter<'i> {
    let clock = context.clock;
    let write = move |batch: Arc<Vec<FilePiece>>| async move {
        let ingest = Ingest { store, now: clock.now(), with_feedback };
        ingest.write(batch.iter().map(|one| one.piece.clone()).collect()).await
    };
    BatchWriter::new(write).max_weight(MAX_BATCH_BYTES, FilePiece::bytes)
}

/// An import under way.
struct Import<'i> {
    store: &'i Store,
    writer: PieceWriter<'i>,
    totals: Totals,
    /// The files, or the server.
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
                report.passed_over.clone_from(&files.passed_over);
                let unreadable =
                    files.unreadable.iter().map(|(file, why)| refused(file, None, why, RefusalKind::Unreadable));
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

    /// Counts a batch that was written. A piece that cannot be stored is refused; where none can, the store is at fault.
    fn record(&mut self, written: Written<FilePiece, Ingested>, bytes: u64) -> Result<(), Error> {
        let Written { committed, results, failed } = written;
        for mut ingested in results {
            for one in ingested.refused.drain(..) {
                let file =
                    committed.iter().find(|piece| piece.trace_id() == one.trace_id).map_or(0, |piece| piece.file);
                self.refuse_trace(file, &one.trace_id, &one.message);
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
        let place = format!("trace {}", trace_id.chars().take(MAX_SHOWN_ID).collect::<String>());
        let refused = refused(&self.names[file], Some(place), message, RefusalKind::Invalid);
        self.totals.report_mut().refused.push(refused);
    }

    fn emit(&mut self, event: Event) {
        if self.events.emit(event) == ControlFlow::Break(()) {
            self.cancel.cancel();
        }
    }

    fn end(self, done: Result<(), Error>, nothing_found: Error) -> Result<Imported, Error> {
        let report = self.totals.into_report();
        let is_empty = report.traces() == 0 && report.refused.is_empty();
        let error = match done {
            Err(error) if is_empty => return Err(error),
            Err(error) => Some(error),
            Ok(()) => (is_empty && !report.interrupted).then_some(nothing_found),
        };
        Ok(Imported { report, files_without_traces: self.files_without_traces, error })
    }
}

fn refused(file: &str, place: Option<String>, message: &str, kind: RefusalKind) -> RefusedPiece {
    RefusedPiece { file: file.to_owned(), place, message: message.to_owned(), kind }
}
