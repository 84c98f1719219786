//! Reads several trace files as one stream.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use karat_sandbox::{Input, Lines, Position, read_lines};

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

/// A line of one of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileLine {
    /// The index of the file.
    pub(super) file: usize,
    pub(super) position: Position,
}

/// The number of bytes read so far.
#[derive(Clone, Default)]
pub(super) struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
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
                    if is_pipe { Box::new(file) } else { Box::new(lines_of(file, &name)?) };
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

    /// Returns the lines of all files in batches, and the counter of bytes read.
    pub(super) fn into_batches(self) -> (Batches, BytesRead) {
        let bytes_read = BytesRead::default();
        let waiting = self.sources.into_iter().enumerate();
        (Batches { waiting, current: None, bytes_read: bytes_read.clone() }, bytes_read)
    }
}

/// The lines of several files, in batches. Line numbers start at 1 in each file.
pub(super) struct Batches {
    waiting: std::iter::Enumerate<std::vec::IntoIter<Source>>,
    current: Option<CurrentFile>,
    bytes_read: BytesRead,
}

struct CurrentFile {
    file: usize,
    name: String,
    lines: Lines<Counted>,
}

impl Iterator for Batches {
    type Item = Result<Vec<Input<FileLine>>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(CurrentFile { file, name, lines }) = &mut self.current {
                let file = *file;
                match lines.next() {
                    Some(Ok(batch)) => {
                        let of_file = |input: Input<Position>| Input {
                            key: FileLine { file, position: input.key },
                            text: input.text,
                        };
                        return Some(Ok(batch.into_iter().map(of_file).collect()));
                    }
                    Some(Err(error)) => {
                        return Some(Err(Error::no_verdict(format!("cannot read the traces: {name}: {error}"))));
                    }
                    None => {}
                }
            }
            let (file, Source { name, mut reader, is_pipe }) = self.waiting.next()?;
            if is_pipe {
                match lines_of(reader, &name) {
                    Ok(lines) => reader = Box::new(lines),
                    Err(error) => return Some(Err(error)),
                }
            }
            let counted = Counted { reader, bytes_read: self.bytes_read.clone() };
            self.current = Some(CurrentFile { file, name, lines: read_lines(counted) });
        }
    }
}

/// A reader that counts bytes.
struct Counted {
    reader: Box<dyn Read + Send>,
    bytes_read: BytesRead,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(out)?;
        self.bytes_read.0.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Rejects known formats other than JSON Lines, which would otherwise give an error for every line.
fn lines_of<R: Read>(input: R, name: &str) -> Result<PeekedReader<R>, Error> {
    let (content, whole) = detect_content(input).map_err(|error| unreadable(name, &error))?;
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '/' | '_' | '-');
    let file = if name != "stdin" && name.chars().all(is_plain) { name } else { "FILE" }.to_owned();
    let (description, hint) = match content {
        Content::JsonLines => return Ok(whole),
        Content::Arrow => ("Arrow", Hint::JudgeArrow { file }),
        Content::Unsupported(UnsupportedFormat { description, converter: Some(program) }) => {
            (description, Hint::ConvertTraces { program, file })
        }
        Content::Unsupported(UnsupportedFormat { description, converter: None }) => {
            (description, Hint::from("export the data as JSON Lines from the program that wrote it"))
        }
    };
    Err(Error::invalid(format!("{name} is {description}, not JSON Lines")).hint(hint))
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

    #[test]
    fn returns_the_file_and_line_of_each_trace() {
        let texts = [("a", "{}\n{}\n"), ("none", "\n"), ("b", "{}"), ("c", "{}\n\n{}")];
        let sources = texts.into_iter().map(|(name, text)| source(name, text)).collect();
        let (batches, bytes_read) = TraceFiles { sources, bytes: None }.into_batches();
        let keys = batches.flat_map(|batch| batch.expect("readable")).map(|input| input.key);
        let keys: Vec<(usize, u64)> = keys.map(|key| (key.file, key.position.number)).collect();
        assert_eq!(keys, [(0, 1), (0, 2), (2, 1), (3, 1), (3, 3)]);
        assert_eq!(bytes_read.get(), 15);
    }

    #[test]
    fn detects_the_content_of_a_pipe_when_it_is_read() {
        let sources = vec![source("a", "{}\n"), source("stdin", "[{}]")];
        let (mut batches, _) = TraceFiles { sources, bytes: None }.into_batches();
        assert!(batches.next().is_some_and(|batch| batch.is_ok()));
        let refused = batches.next().expect("a second file").expect_err("an array");
        assert_eq!(refused.message, "stdin is a JSON array, not JSON Lines");
    }
}
