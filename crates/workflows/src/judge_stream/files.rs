//! Reads several trace files as one stream.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use karat_sandbox::{Input, InputError, MAX_BATCH_BYTES, MAX_BATCH_TRACES, MAX_TRACE_BYTES};
use karat_traces::{EXPECTED_CONTENT, Piece, ReadError, TraceParts, TraceReader, assemble, read};

use super::content::{Content, PeekedReader, UnsupportedFormat, detect_content};
use crate::error::Error;
use crate::hint::Hint;

/// The argument for standard input.
const STDIN: &str = "-";

/// Open trace files.
pub(super) struct TraceFiles {
    sources: Vec<Source>,
    /// The total size, if all are regular files.
    pub(super) bytes: Option<u64>,
}

struct Source {
    name: String,
    reader: Box<dyn Read + Send>,
    /// The content of a pipe is detected only when it is read, since the pipe may block.
    is_pipe: bool,
}

impl Source {
    fn is_stdin(&self) -> bool {
        self.is_pipe && self.name == "stdin"
    }
}

/// The location of a trace in one of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileLocation {
    /// The index of the file.
    pub(super) file: usize,
    /// `line 3`, `item 12`, `trace 4bf9…`.
    pub(super) location: String,
}

/// The number of bytes and traces read so far.
#[derive(Clone, Default)]
pub(super) struct ReadProgress {
    bytes: Arc<AtomicU64>,
    traces: Arc<AtomicU64>,
}

impl ReadProgress {
    /// Estimates how many of the bytes belong to this number of judged traces: reading is ahead of judging.
    pub(super) fn judged_bytes(&self, judged: u64) -> u64 {
        let (bytes, traces) = (self.bytes.load(Ordering::Relaxed), self.traces.load(Ordering::Relaxed));
        let bytes = u128::from(bytes) * u128::from(judged.min(traces)) / u128::from(traces.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl TraceFiles {
    /// Opens all files, so that missing or unsupported files are detected before anything is judged.
    pub(super) fn open(paths: &[PathBuf], stdin: Box<dyn Read + Send>, current_dir: &Path) -> Result<Self, Error> {
        let mut sources: Vec<Source> = Vec::with_capacity(paths.len());
        let (mut bytes, mut stdin) = (Some(0), Some(stdin));
        for path in paths {
            if path.as_os_str() == STDIN {
                let Some(reader) = stdin.take() else {
                    return Err(Error::invalid("--traces - is given twice: stdin can be read only once"));
                };
                sources.push(Source { name: "stdin".to_owned(), reader, is_pipe: true });
                bytes = None;
            } else {
                let name = path.display().to_string();
                let (file, length) = open(&current_dir.join(path)).map_err(|error| unreadable(&name, &error))?;
                bytes = bytes.zip(length).map(|(bytes, length)| bytes + length);
                let is_pipe = length.is_none();
                let reader: Box<dyn Read + Send> =
                    if is_pipe { Box::new(file) } else { Box::new(check_content(file, &name)?) };
                sources.push(Source { name, reader, is_pipe });
            }
        }
        Ok(Self { sources, bytes })
    }

    pub(super) fn reads_stdin(&self) -> bool {
        self.sources.iter().any(Source::is_stdin)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(|source| source.name.as_str())
    }

    /// Returns the traces of all files in batches, and how much of them was read.
    pub(super) fn into_batches(self) -> (Batches, ReadProgress) {
        let progress = ReadProgress::default();
        let waiting = self.sources.into_iter().enumerate();
        let batches =
            Batches { waiting, current: None, progress: progress.clone(), spans: SpanTraces::default(), error: None };
        (batches, progress)
    }
}

/// The traces of several files, in batches: whole traces in the order of the files, then those that consist of spans,
/// which may be spread over files.
pub(super) struct Batches {
    waiting: std::iter::Enumerate<std::vec::IntoIter<Source>>,
    current: Option<CurrentFile>,
    progress: ReadProgress,
    spans: SpanTraces,
    /// An error, returned after the traces before it.
    error: Option<Error>,
}

struct CurrentFile {
    file: usize,
    name: String,
    traces: TraceReader,
}

type TraceInput = Input<FileLocation>;

impl Iterator for Batches {
    type Item = Result<Vec<TraceInput>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < MAX_BATCH_TRACES && bytes < MAX_BATCH_BYTES {
            match self.next_trace() {
                Ok(Some(input)) => {
                    bytes += input.text.as_ref().map_or(0, Vec::len);
                    batch.push(input);
                }
                Ok(None) => break,
                Err(error) if batch.is_empty() => return Some(Err(error)),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
            // The next read may block.
            if !self.current.as_ref().is_some_and(|current| current.traces.has_buffered()) {
                break;
            }
        }
        self.progress.traces.fetch_add(batch.len() as u64, Ordering::Relaxed);
        (!batch.is_empty()).then_some(Ok(batch))
    }
}

impl Batches {
    fn next_trace(&mut self) -> Result<Option<TraceInput>, Error> {
        loop {
            let Some(current) = &mut self.current else {
                match self.waiting.next() {
                    Some((file, source)) => self.current = Some(self.open(file, source)?),
                    None => return Ok(self.spans.next()),
                }
                continue;
            };
            let Some(piece) = current.traces.next() else {
                self.current = None;
                continue;
            };
            match piece {
                Ok(Piece::Whole(whole)) => {
                    let key = FileLocation { file: current.file, location: current.traces.location().to_owned() };
                    return Ok(Some(input(key, whole.document)));
                }
                Ok(Piece::Parts(parts)) => self.spans.add(current.file, *parts),
                Err(ReadError::Refused(refused)) => {
                    let key = FileLocation { file: current.file, location: refused.location };
                    return Ok(Some(Input { key, text: Err(InputError::Invalid(refused.message)) }));
                }
                Err(error @ ReadError::UnknownFormat(_)) => {
                    let message = format!("cannot read the traces: {}: {error}", current.name);
                    return Err(Error::invalid(message).hint(format!("expected {EXPECTED_CONTENT}")));
                }
                Err(ReadError::Io(error)) => {
                    return Err(Error::no_verdict(format!("cannot read the traces: {}: {error}", current.name)));
                }
            }
        }
    }

    fn open(&self, file: usize, source: Source) -> Result<CurrentFile, Error> {
        let Source { name, mut reader, is_pipe } = source;
        if is_pipe {
            reader = Box::new(check_content(reader, &name)?);
        }
        let counted = CountingReader { reader, bytes_read: Arc::clone(&self.progress.bytes) };
        Ok(CurrentFile { file, name, traces: read(None, counted).without_required_ids() })
    }
}

fn input(key: FileLocation, document: String) -> TraceInput {
    let text = if document.len() > MAX_TRACE_BYTES { Err(InputError::TooLong) } else { Ok(document.into_bytes()) };
    Input { key, text }
}

/// The traces that arrive as spans, in the order of their first span.
#[derive(Default)]
struct SpanTraces {
    traces: VecDeque<(usize, TraceParts)>,
    /// Indices into `traces`, by trace id.
    indices: HashMap<String, usize>,
}

impl SpanTraces {
    fn add(&mut self, file: usize, parts: TraceParts) {
        if let Some((_, known)) = self.indices.get(&parts.trace_id).and_then(|index| self.traces.get_mut(*index)) {
            known.merge(parts);
        } else {
            self.indices.insert(parts.trace_id.clone(), self.traces.len());
            self.traces.push_back((file, parts));
        }
    }

    /// Assembles and removes the first trace. No spans are added afterwards.
    fn next(&mut self) -> Option<TraceInput> {
        let (file, parts) = self.traces.pop_front()?;
        let key = FileLocation { file, location: format!("trace {}", parts.trace_id) };
        Some(input(key, assemble(&parts).document.to_text()))
    }
}

/// A reader that counts bytes.
struct CountingReader {
    reader: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(out)?;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Rejects known formats that contain no traces.
fn check_content<R: Read>(input: R, name: &str) -> Result<PeekedReader<R>, Error> {
    let (content, whole) = detect_content(input).map_err(|error| unreadable(name, &error))?;
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '/' | '_' | '-');
    let file = if name != "stdin" && name.chars().all(is_plain) { name } else { "FILE" }.to_owned();
    let (description, hint) = match content {
        Content::JsonLines | Content::Unsupported(UnsupportedFormat { is_importable: true, .. }) => return Ok(whole),
        Content::Arrow => ("Arrow", Hint::JudgeArrow { file }),
        Content::Unsupported(UnsupportedFormat { description, converter: Some(program), .. }) => {
            (description, Hint::ConvertTraces { program, file })
        }
        Content::Unsupported(UnsupportedFormat { description, converter: None, .. }) => {
            (description, Hint::from("export the data as JSON Lines from the program that wrote it"))
        }
    };
    Err(Error::invalid(format!("{name} is {description}, not JSON")).hint(hint))
}

fn unreadable(name: &str, error: &io::Error) -> Error {
    Error::invalid(format!("cannot read the traces {name}: {error}"))
}

/// Opens a file. Also returns its size, if it is a regular file.
fn open(path: &Path) -> io::Result<(File, Option<u64>)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let length = metadata.is_file().then_some(metadata.len());
    Ok((file, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, text: &'static str) -> Source {
        Source { name: name.to_owned(), reader: Box::new(text.as_bytes()), is_pipe: true }
    }

    fn read_all(texts: &[(&str, &'static str)]) -> Vec<(usize, String, Result<String, InputError>)> {
        let sources = texts.iter().map(|(name, text)| source(name, text)).collect();
        let (batches, _) = TraceFiles { sources, bytes: None }.into_batches();
        let text = |text: Vec<u8>| String::from_utf8_lossy(&text).into_owned();
        let inputs = batches.flat_map(|batch| batch.expect("readable"));
        inputs.map(|input| (input.key.file, input.key.location, input.text.map(text))).collect()
    }

    #[test]
    fn returns_the_file_and_line_of_each_trace() {
        let trace = "{\"steps\":[]}";
        let texts = [
            ("a", "{\"steps\":[]}\n{\"steps\":[]}\n"),
            ("none", "\n"),
            ("b", "{\"steps\":[]}"),
            ("c", "{\"steps\":[]}\n\n{\"steps\":[]}"),
        ];
        let locations: Vec<_> = read_all(&texts)
            .into_iter()
            .map(|(file, location, text)| {
                assert_eq!(text.as_deref(), Ok(trace));
                format!("{file} {location}")
            })
            .collect();
        assert_eq!(locations, ["0 line 1", "0 line 2", "2 line 1", "3 line 1", "3 line 3"]);
    }

    #[test]
    fn rejects_objects_that_are_not_traces() {
        let read = read_all(&[(
            "a",
            "{\"trace_id\":\"a\",\"steps\":[]}\n{\"trace_id\":\"d\",\"steps\":\"x\"}\n{\"foo\":1}\n",
        )]);
        let messages: Vec<_> = read.into_iter().skip(1).map(|(_, location, text)| (location, text)).collect();
        let invalid = |message: &str| Err(InputError::Invalid(message.to_owned()));
        let expected = [
            ("line 2".to_owned(), invalid("the trace has no 'steps' list")),
            ("line 3".to_owned(), invalid("unrecognised trace format")),
        ];
        assert_eq!(messages, expected);
    }

    #[test]
    fn progress_is_that_of_judging() {
        let text = "{\"steps\":[]}\n".repeat(30).leak();
        let (batches, progress) = TraceFiles { sources: vec![source("a", text)], bytes: None }.into_batches();
        assert_eq!(progress.judged_bytes(0), 0);
        assert_eq!(batches.map(|batch| batch.expect("readable").len()).sum::<usize>(), 30);
        let total = text.len() as u64;
        assert_eq!([0, 15, 30].map(|judged| progress.judged_bytes(judged)), [0, total / 2, total]);
    }

    #[test]
    fn an_unknown_format_ends_the_run() {
        let (mut batches, _) = TraceFiles { sources: vec![source("a", "{\"foo\":1}")], bytes: None }.into_batches();
        let error = batches.next().expect("a batch").expect_err("unknown");
        assert_eq!(error.message, "cannot read the traces: a: unrecognised trace format (line 1)");
    }

    #[test]
    fn converts_other_formats() {
        let log = r#"[{"messages": [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No"}]}]"#;
        let spans = r#"{"traceId": "ab", "spanId": "1", "startTimeUnixNano": "1771237534567093000", "name": "a"}"#;
        let more = r#"{"traceId": "ab", "spanId": "2", "startTimeUnixNano": "1771237534567093001", "name": "b"}"#;
        let read = read_all(&[("spans", spans), ("log", log), ("more", more)]);
        let locations: Vec<_> =
            read.iter().map(|(file, location, text)| (*file, location.as_str(), text.is_ok())).collect();
        assert_eq!(locations, [(1, "item 1", true), (0, "trace ab", true)]);
    }

    #[test]
    fn detects_the_content_of_a_pipe_when_it_is_read() {
        let sources = vec![source("a", "{\"steps\":[]}\n"), source("stdin", "PAR1")];
        let (mut batches, _) = TraceFiles { sources, bytes: None }.into_batches();
        assert!(batches.next().is_some_and(|batch| batch.is_ok()));
        let refused = batches.next().expect("a second file").expect_err("Parquet");
        assert_eq!(refused.message, "stdin is a Parquet file, not JSON");
    }
}
