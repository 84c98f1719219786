//! Files of traces, one after the other, as one stream.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use karat_sandbox::{Input, Lines, read_lines};

use crate::environment::Environment;
use crate::failure::Failure;

/// What stands for standard input.
const STDIN: &str = "-";

/// Traces that are ready to be read.
pub(crate) struct Traces {
    files: Vec<(String, Box<dyn Read + Send>)>,
    /// How many bytes there are, where all are files.
    pub(crate) bytes: Option<u64>,
}

/// Knows which file a trace came from, and how much was read.
pub(crate) struct Origins {
    names: Vec<String>,
    /// For each file that was begun, how many traces came before it.
    starts: Mutex<Vec<u64>>,
    read: AtomicU64,
}

impl Traces {
    /// Opens all files, so that one that is missing is found before anything is judged.
    pub(crate) fn open(paths: &[PathBuf], environment: &Environment) -> Result<Self, Failure> {
        let mut files: Vec<(String, Box<dyn Read + Send>)> = Vec::with_capacity(paths.len());
        let mut bytes = Some(0);
        for path in paths {
            if path.as_os_str() == STDIN {
                if files.iter().any(|(name, _)| name == "stdin") {
                    return Err(Failure::invalid("--traces - is given twice: stdin can be read once"));
                }
                files.push(("stdin".to_owned(), Box::new(io::stdin())));
                bytes = None;
            } else {
                let (file, length) = open(&environment.current_dir.join(path))
                    .map_err(|error| Failure::invalid(format!("cannot read the traces {}: {error}", path.display())))?;
                bytes = bytes.zip(length).map(|(bytes, length)| bytes + length);
                files.push((path.display().to_string(), Box::new(file)));
            }
        }
        Ok(Self { files, bytes })
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.files.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the lines of all files in batches, and what knows where they came from.
    pub(crate) fn into_batches(self) -> (Batches, Arc<Origins>) {
        let names = self.files.iter().map(|(name, _)| name.clone()).collect();
        let origins = Arc::new(Origins { names, starts: Mutex::default(), read: AtomicU64::new(0) });
        let waiting = self.files.into_iter();
        (Batches { waiting, current: None, count: 0, origins: Arc::clone(&origins) }, origins)
    }
}

/// The lines of several files, in batches; each file's lines are counted from 1.
pub(crate) struct Batches {
    waiting: std::vec::IntoIter<(String, Box<dyn Read + Send>)>,
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
            let (name, reader) = self.waiting.next()?;
            self.origins.begin(self.count);
            let counted = Counted { reader, origins: Arc::clone(&self.origins) };
            self.current = Some((name, read_lines(counted)));
        }
    }
}

impl Origins {
    fn begin(&self, count: u64) {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).push(count);
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

    #[test]
    fn each_trace_knows_its_file_though_some_are_empty() {
        let file =
            |name: &str, text: &'static str| (name.to_owned(), Box::new(text.as_bytes()) as Box<dyn Read + Send>);
        let files = vec![file("a", "{}\n{}\n"), file("none", "\n"), file("b", "{}"), file("c", "{}\n\n{}")];
        let (batches, origins) = Traces { files, bytes: None }.into_batches();
        let inputs: Vec<Input> = batches.flat_map(|batch| batch.expect("readable")).collect();
        let numbers: Vec<u64> = inputs.iter().map(|input| input.number).collect();
        assert_eq!(numbers, [1, 2, 1, 1, 3]);
        let names: Vec<Option<&str>> = (0..5).map(|count| origins.of(count)).collect();
        assert_eq!(names, [Some("a"), Some("a"), Some("b"), Some("c"), Some("c")]);
        assert_eq!(origins.read(), 15);
    }

    #[test]
    fn one_file_needs_no_name() {
        let files = vec![("a".to_owned(), Box::new("{}".as_bytes()) as Box<dyn Read + Send>)];
        let (batches, origins) = Traces { files, bytes: None }.into_batches();
        assert_eq!(batches.count(), 1);
        assert_eq!(origins.of(0), None);
    }
}
