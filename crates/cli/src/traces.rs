//! Files of traces, one after the other, as one stream.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use karat_sandbox::{Input, Lines, read_lines};

use crate::beginning::{Content, Known, Whole, recognise};
use crate::environment::Environment;
use crate::failure::Failure;

/// What stands for standard input.
const STDIN: &str = "-";

/// Traces that are ready to be read.
pub(crate) struct Traces {
    sources: Vec<Source>,
    /// How many bytes there are, where all are files.
    pub(crate) bytes: Option<u64>,
}

struct Source {
    name: String,
    reader: Box<dyn Read + Send>,
    /// What it holds is found out when its turn comes: who writes into a pipe may take long.
    is_pipe: bool,
}

impl Source {
    fn is_stdin(&self) -> bool {
        self.is_pipe && self.name == "stdin"
    }
}

/// Knows which file a trace came from, and how much was read.
pub(crate) struct Origins {
    names: Vec<String>,
    /// For each file that was begun, how many traces came before it.
    starts: Mutex<Vec<u64>>,
    read: AtomicU64,
    /// Why a pipe is not read.
    refused: Mutex<Option<Failure>>,
}

impl Traces {
    /// Opens all files, so that one that is missing or holds something else is found before anything is judged.
    pub(crate) fn open(paths: &[PathBuf], environment: &Environment) -> Result<Self, Failure> {
        let mut sources: Vec<Source> = Vec::with_capacity(paths.len());
        let mut bytes = Some(0);
        for path in paths {
            if path.as_os_str() == STDIN {
                if sources.iter().any(Source::is_stdin) {
                    return Err(Failure::invalid("--traces - is given twice: stdin can be read once"));
                }
                sources.push(Source { name: "stdin".to_owned(), reader: Box::new(io::stdin()), is_pipe: true });
                bytes = None;
            } else {
                let name = path.display().to_string();
                let (file, length) =
                    open(&environment.process.current_dir.join(path)).map_err(|error| unreadable(&name, &error))?;
                bytes = bytes.zip(length).map(|(bytes, length)| bytes + length);
                let is_pipe = length.is_none();
                let reader: Box<dyn Read + Send> =
                    if is_pipe { Box::new(file) } else { Box::new(lines_of(file, &name)?) };
                sources.push(Source { name, reader, is_pipe });
            }
        }
        Ok(Self { sources, bytes })
    }

    /// Tells whether traces come from standard input.
    pub(crate) fn read_stdin(&self) -> bool {
        self.sources.iter().any(Source::is_stdin)
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.sources.iter().map(|source| source.name.as_str()).collect()
    }

    /// Returns the lines of all files in batches, and what knows where they came from.
    pub(crate) fn into_batches(self) -> (Batches, Arc<Origins>) {
        let names = self.sources.iter().map(|source| source.name.clone()).collect();
        let origins = Origins { names, starts: Mutex::default(), read: AtomicU64::new(0), refused: Mutex::default() };
        let (waiting, origins) = (self.sources.into_iter(), Arc::new(origins));
        (Batches { waiting, current: None, count: 0, origins: Arc::clone(&origins) }, origins)
    }
}

/// The lines of several files, in batches; each file's lines are counted from 1.
pub(crate) struct Batches {
    waiting: std::vec::IntoIter<Source>,
    current: Option<(String, Lines<Counted>)>,
    /// How many traces were handed on.
    count: u64,
    origins: Arc<Origins>,
}

impl Iterator for Batches {
    type Item = io::Result<Vec<Input>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((name, lines)) = &mut self.current {
                match lines.next() {
                    Some(Ok(batch)) => {
                        self.count += batch.len() as u64;
                        return Some(Ok(batch));
                    }
                    Some(Err(error)) => return Some(Err(io::Error::new(error.kind(), format!("{name}: {error}")))),
                    None => {}
                }
            }
            let Source { name, mut reader, is_pipe } = self.waiting.next()?;
            self.origins.begin(self.count);
            if is_pipe {
                match lines_of(reader, &name) {
                    Ok(lines) => reader = Box::new(lines),
                    Err(failure) => return Some(Err(self.origins.refuse(failure))),
                }
            }
            let counted = Counted { reader, origins: Arc::clone(&self.origins) };
            self.current = Some((name, read_lines(counted)));
        }
    }
}

impl Origins {
    fn begin(&self, count: u64) {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).push(count);
    }

    /// Keeps why a pipe is not read, for whoever is told that reading ended.
    fn refuse(&self, failure: Failure) -> io::Error {
        let error = io::Error::other(failure.message.clone());
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        error
    }

    /// Returns why a pipe was not read, if one was not.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns which file a trace came from, by how many were before it; none where there is only one.
    pub(crate) fn of(&self, count: u64) -> Option<&str> {
        if self.names.len() < 2 {
            return None;
        }
        let starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = starts.partition_point(|start| *start <= count);
        self.names.get(begun.checked_sub(1)?).map(String::as_str)
    }

    /// Returns how many bytes were read.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

/// A reader that says how much it read.
pub(crate) struct Counted {
    reader: Box<dyn Read + Send>,
    origins: Arc<Origins>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(out)?;
        self.origins.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Refuses what is known to hold no JSON lines, which would else be an error in every line.
fn lines_of<R: Read>(input: R, name: &str) -> Result<Whole<R>, Failure> {
    let (content, whole) = recognise(input).map_err(|error| unreadable(name, &error))?;
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '/' | '_' | '-');
    let file = if name != "stdin" && name.chars().all(is_plain) { name } else { "FILE" };
    let (what, hint) = match content {
        Content::JsonLines => return Ok(whole),
        Content::Arrow => ("Arrow", format!("karat eval batch … <{file}, which reads Arrow and writes it")),
        Content::Other(Known { what, program: Some(program) }) => {
            (what, format!("{program} {file} | karat eval run … --traces -"))
        }
        Content::Other(Known { what, program: None }) => {
            (what, "let the engine that wrote it write JSON lines".to_owned())
        }
    };
    Err(Failure::invalid(format!("{name} is {what}, not JSON lines")).hint(hint))
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::invalid(format!("cannot read the traces {name}: {error}"))
}

/// Opens a file, and returns how long it is where that is known.
fn open(path: &Path) -> io::Result<(File, Option<u64>)> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let length = about.is_file().then_some(about.len());
    Ok((file, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, text: &'static str) -> Source {
        Source { name: name.to_owned(), reader: Box::new(text.as_bytes()), is_pipe: true }
    }

    #[test]
    fn each_trace_knows_its_file_though_some_are_empty() {
        let texts = [("a", "{}\n{}\n"), ("none", "\n"), ("b", "{}"), ("c", "{}\n\n{}")];
        let sources = texts.into_iter().map(|(name, text)| source(name, text)).collect();
        let (batches, origins) = Traces { sources, bytes: None }.into_batches();
        let inputs: Vec<Input> = batches.flat_map(|batch| batch.expect("readable")).collect();
        let numbers: Vec<u64> = inputs.iter().map(|input| input.number).collect();
        assert_eq!(numbers, [1, 2, 1, 1, 3]);
        let names: Vec<Option<&str>> = (0..5).map(|count| origins.of(count)).collect();
        assert_eq!(names, [Some("a"), Some("a"), Some("b"), Some("c"), Some("c")]);
        assert_eq!(origins.read(), 15);
    }

    #[test]
    fn one_file_needs_no_name() {
        let sources = vec![source("a", "{}")];
        let (batches, origins) = Traces { sources, bytes: None }.into_batches();
        assert_eq!(batches.count(), 1);
        assert_eq!(origins.of(0), None);
    }

    #[test]
    fn a_pipe_is_looked_at_when_its_turn_comes() {
        let sources = vec![source("a", "{}\n"), source("stdin", "[{}]")];
        let (mut batches, origins) = Traces { sources, bytes: None }.into_batches();
        assert!(batches.next().is_some_and(|batch| batch.is_ok()));
        assert!(origins.refusal().is_none());
        assert!(batches.next().is_some_and(|batch| batch.is_err()));
        assert_eq!(
            origins.refusal().map(|failure| failure.message).as_deref(),
            Some("stdin is a JSON array, not JSON lines")
        );
    }
}
