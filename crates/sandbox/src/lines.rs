//! Reads traces from JSON lines in batches.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// Maximum size of a trace; larger ones would not fit into a function's memory.
pub const MAX_TRACE_BYTES: usize = 32 << 20;

/// Maximum number of traces in a batch; small, so that slow traces are spread over the threads.
pub const MAX_BATCH_TRACES: usize = 8;

/// Size at which a batch ends.
pub const MAX_BATCH_BYTES: usize = 1 << 20;

/// A trace to judge.
#[derive(Debug, PartialEq, Eq)]
pub struct Input<K> {
    /// Returned with the judgements.
    pub key: K,
    /// The trace's JSON text, or the reason why it is missing.
    pub text: Result<Vec<u8>, InputError>,
}

/// The reason why there is no trace at a position in the input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    #[error("longer than {} MB", MAX_TRACE_BYTES >> 20)]
    TooLong,
    #[error("missing trace")]
    Missing,
    /// The input is not a valid trace.
    #[error("{0}")]
    Invalid(String),
}

/// Position of a trace in its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub unit: Unit,
    /// Starts at 1.
    pub number: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.unit, self.number)
    }
}

/// The unit that a position counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Line,
    Row,
}

impl fmt::Display for Unit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Line => "line",
            Self::Row => "row",
        })
    }
}

/// Reads JSON lines. Blank lines are skipped but counted. A batch is returned before a read could block.
pub fn read_lines<R: Read>(reader: R) -> Lines<R> {
    Lines { reader: BufReader::with_capacity(256 << 10, reader), number: 0, pending_error: None }
}

/// An iterator over batches of lines.
pub struct Lines<R> {
    reader: BufReader<R>,
    number: u64,
    /// A read error, returned after the lines before it.
    pending_error: Option<io::Error>,
}

impl<R: Read> Iterator for Lines<R> {
    type Item = io::Result<Vec<Input<Position>>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.pending_error.take() {
            return Some(Err(error));
        }
        let mut batch = Vec::new();
        let mut size = 0;
        while batch.len() < MAX_BATCH_TRACES && size < MAX_BATCH_BYTES {
            match self.next_line() {
                Ok(Some(input)) => {
                    size += input.text.as_ref().map_or(0, Vec::len);
                    batch.push(input);
                }
                Ok(None) => break,
                Err(error) if batch.is_empty() => return Some(Err(error)),
                Err(error) => {
                    self.pending_error = Some(error);
                    break;
                }
            }
            if self.reader.buffer().is_empty() {
                break;
            }
        }
        (!batch.is_empty()).then_some(Ok(batch))
    }
}

impl<R: Read> Lines<R> {
    /// Reads the next line that is not blank.
    fn next_line(&mut self) -> io::Result<Option<Input<Position>>> {
        loop {
            let mut text = Vec::new();
            let limit = u64::try_from(MAX_TRACE_BYTES).unwrap_or(u64::MAX) + 1;
            if self.reader.by_ref().take(limit).read_until(b'\n', &mut text)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let key = Position { unit: Unit::Line, number: self.number };
            if text.len() > MAX_TRACE_BYTES && text.last() != Some(&b'\n') {
                self.reader.skip_until(b'\n')?;
                return Ok(Some(Input { key, text: Err(InputError::TooLong) }));
            }
            if self.number == 1 && text.starts_with(b"\xEF\xBB\xBF") {
                text.drain(..3);
            }
            text.truncate(text.trim_ascii_end().len());
            if !text.is_empty() {
                return Ok(Some(Input { key, text: Ok(text) }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &[u8]) -> Vec<(u64, Result<String, InputError>)> {
        let inputs = read_lines(io::Cursor::new(text.to_vec())).flat_map(|batch| batch.expect("readable"));
        inputs
            .map(|input| (input.key.number, input.text.map(|text| String::from_utf8_lossy(&text).into_owned())))
            .collect()
    }

    #[test]
    fn skips_but_counts_blank_lines() {
        let lines = read_all(b"\xEF\xBB\xBF{\"a\":1}\r\n\n  \n{\"b\":2}\n{\"c\":3}");
        let expected = [(1, "{\"a\":1}"), (4, "{\"b\":2}"), (5, "{\"c\":3}")];
        assert_eq!(lines, expected.map(|(number, text)| (number, Ok(text.to_owned()))));
    }

    #[test]
    fn reports_an_overlong_line_and_reads_the_next() {
        let mut text = vec![b'x'; MAX_TRACE_BYTES + 10];
        text.extend(b"\n{}\n");
        assert_eq!(read_all(&text), [(1, Err(InputError::TooLong)), (2, Ok("{}".to_owned()))]);
        assert_eq!(InputError::TooLong.to_string(), "longer than 32 MB");
    }

    #[test]
    fn returns_lines_before_a_read_error() {
        struct FailingReader(bool);
        impl Read for FailingReader {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(io::Error::other("disconnected"));
                }
                buffer[..6].copy_from_slice(b"{}\n{}\n");
                Ok(6)
            }
        }
        let mut lines = read_lines(FailingReader(false));
        assert_eq!(lines.next().and_then(Result::ok).map(|batch| batch.len()), Some(2));
        assert!(lines.next().is_some_and(|batch| batch.is_err()));
    }
}
