//! Reads files on a separate thread, ahead of the writer.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use karat_core::stored::{RefusalKind, RefusedPiece};
use karat_traces::{Piece, ReadError, TraceFormat, read};
use tokio::sync::mpsc;

use super::refused;
use super::trace_files::TraceFile;

/// Number of pieces to read ahead.
const READ_AHEAD: usize = 1000;

/// An item of a file, in order.
pub(super) enum Content {
    /// The file was opened.
    Opened,
    Piece(Piece),
    Refused(RefusedPiece),
    /// The file has no traces.
    Empty,
}

pub(super) struct FileReader {
    content: mpsc::Receiver<(usize, Content)>,
    bytes_read: Arc<AtomicU64>,
}

impl FileReader {
    /// Starts the reader thread. It ends with the files or when this is dropped; it is not joined, since a pipe may
    /// never end.
    pub(super) fn start(files: Vec<TraceFile>, stdin: Box<dyn Read + Send>, kind: Option<TraceFormat>) -> Self {
        let (sender, content) = mpsc::channel(READ_AHEAD);
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&bytes_read);
        let mut stdin = Some(stdin);
        std::thread::spawn(move || {
            for (number, file) in files.into_iter().enumerate() {
                let send = |content| sender.blocking_send((number, content)).ok();
                let ended = match file.open(&mut stdin) {
                    Ok(input) => read_file(&file, kind, CountingReader { input, counter: Arc::clone(&counter) }, &send),
                    Err(error) => send(Content::Refused(refused(
                        &file.display_path,
                        None,
                        &error.to_string(),
                        RefusalKind::Unreadable,
                    ))),
                };
                if ended.is_none() {
                    break;
                }
            }
        });
        Self { content, bytes_read }
    }

    /// Returns the next item with the index of its file.
    pub(super) async fn next(&mut self) -> Option<(usize, Content)> {
        self.content.recv().await
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }
}

/// Reads a whole file. Returns `None` if the receiver is closed.
fn read_file(
    file: &TraceFile,
    kind: Option<TraceFormat>,
    input: CountingReader,
    send: &dyn Fn(Content) -> Option<()>,
) -> Option<()> {
    let refused = |location: Option<String>, message: String, kind: RefusalKind| {
        Content::Refused(refused(&file.display_path, location, &message, kind))
    };
    send(Content::Opened)?;
    let mut is_empty = true;
    for piece in read(kind, input) {
        is_empty = false;
        send(match piece {
            Ok(piece) => Content::Piece(piece),
            Err(ReadError::Refused(item)) => refused(Some(item.location), item.message, RefusalKind::Invalid),
            Err(error @ ReadError::UnknownFormat(_)) => refused(None, error.to_string(), RefusalKind::UnknownSource),
            Err(ReadError::Io(error)) => refused(None, error.to_string(), RefusalKind::Unreadable),
        })?;
    }
    if is_empty { send(Content::Empty) } else { Some(()) }
}

/// A reader that counts its bytes.
struct CountingReader {
    input: Box<dyn Read + Send>,
    counter: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(out)?;
        self.counter.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
