//! Reads files on a thread of their own, ahead of what is written.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use karat_core::stored::{RefusalKind, RefusedPiece};
use karat_traces::{Kind, Piece, ReadError, read};
use tokio::sync::mpsc;

use crate::trace_files::TraceFile;

/// How many pieces are read ahead.
const AHEAD: usize = 1000;

/// What is read, as it comes.
pub(super) enum Said {
    /// A file was opened.
    Began,
    /// A piece, and about how much memory it takes.
    Piece(Piece, usize),
    Refused(RefusedPiece),
    /// A file was read to its end, and there was nothing in it.
    Nothing,
}

/// Files that are being read.
pub(super) struct Reading {
    said: mpsc::Receiver<(usize, Said)>,
    names: Vec<String>,
    /// Which file was last heard of.
    current: usize,
    bytes: Arc<AtomicU64>,
}

impl Reading {
    /// Begins to read. The thread ends with the files, or when nobody listens any more; who waits for a pipe may wait for
    /// ever, so nobody waits for the thread.
    pub(super) fn begin(files: Vec<TraceFile>, kind: Option<Kind>) -> Self {
        let (sender, said) = mpsc::channel(AHEAD);
        let names = files.iter().map(|file| file.shown.clone()).collect();
        let bytes = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&bytes);
        std::thread::spawn(move || {
            for (number, file) in files.into_iter().enumerate() {
                if read_file(&file, kind, &counter, &|said| sender.blocking_send((number, said)).is_ok()).is_none() {
                    break;
                }
            }
        });
        Self { said, names, current: 0, bytes }
    }

    pub(super) async fn next(&mut self) -> Option<Said> {
        let (number, said) = self.said.recv().await?;
        self.current = number;
        Some(said)
    }

    /// Returns the file that was last heard of.
    pub(super) fn name(&self) -> &str {
        self.names.get(self.current).map_or("", String::as_str)
    }

    /// Returns how many bytes were read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Reads a file to its end, and returns nothing where nobody listens any more.
fn read_file(
    file: &TraceFile,
    kind: Option<Kind>,
    counter: &Arc<AtomicU64>,
    tell: &dyn Fn(Said) -> bool,
) -> Option<()> {
    let tell = |said| tell(said).then_some(());
    let refused = |place: Option<String>, message: String, kind: RefusalKind| {
        Said::Refused(RefusedPiece { file: file.shown.clone(), place, message, kind })
    };
    let input = match file.open() {
        Ok(input) => input,
        Err(error) => return tell(refused(None, error.to_string(), RefusalKind::Unreadable)),
    };
    tell(Said::Began)?;
    let mut is_empty = true;
    for piece in read(kind, Counted { input, counter: Arc::clone(counter) }) {
        is_empty = false;
        tell(match piece {
            Ok(piece) => {
                let bytes = weight(&piece);
                Said::Piece(piece, bytes)
            }
            Err(ReadError::Refused(why)) => refused(Some(why.place), why.message, RefusalKind::Invalid),
            Err(error @ ReadError::Unknown(_)) => refused(None, error.to_string(), RefusalKind::UnknownSource),
            Err(ReadError::Io(error)) => refused(None, error.to_string(), RefusalKind::Unreadable),
        })?;
    }
    if is_empty { tell(Said::Nothing) } else { Some(()) }
}

/// Returns about how much memory a piece takes.
fn weight(piece: &Piece) -> usize {
    /// A span with its attributes; it is not worth more to know it better.
    const SPAN: usize = 4096;
    match piece {
        Piece::Whole(whole) => whole.document.len() + whole.raw.len(),
        Piece::Parts(parts) => (parts.spans.len() + parts.logs.len()) * SPAN,
    }
}

/// A reader that says how much it read.
struct Counted {
    input: Box<dyn Read + Send>,
    counter: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(out)?;
        self.counter.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
