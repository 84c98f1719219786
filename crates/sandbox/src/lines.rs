//! Traces as JSON lines, read in batches.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// How long a trace may be, in bytes: a longer trace would not fit a function's memory anyway.
pub(crate) const MAX_TRACE_BYTES: usize = 32 << 20;

/// How many traces go to a thread at once: few, so that slow ones are shared out.
pub(crate) const MAX_BATCH_TRACES: usize = 8;

/// How many bytes do.
pub(crate) const MAX_BATCH_BYTES: usize = 1 << 20;

/// A trace to be judged.
#[derive(Debug, PartialEq, Eq)]
pub struct Input<K> {
    /// Comes back with the judgements.
    pub key: K,
    /// A trace's text, or why there is none.
    pub text: Result<Vec<u8>, NoText>,
}

/// Why a place in the input has no trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoText {
    #[error("longer than {} MB", MAX_TRACE_BYTES >> 20)]
    TooLong,
    #[error("there is no trace")]
    Missing,
}

/// Where a trace stands in its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub unit: Unit,
    /// From 1.
    pub number: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.unit, self.number)
    }
}

/// What a position counts.
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

/// Reads JSON lines. Blank lines are left out, and counted. A batch is handed on before a read could block.
pub fn read_lines<R: Read>(reader: R) -> Lines<R> {
    Lines { reader: BufReader::with_capacity(256 << 10, reader), number: 0, failed: None }
}

/// An iterator over batches of lines.
pub struct Lines<R> {
    reader: BufReader<R>,
    number: u64,
    /// Why reading ended, while what was read before is handed on.
    failed: Option<io::Error>,
}

impl<R: Read> Iterator for Lines<R> {
    type Item = io::Result<Vec<Input<Position>>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let mut batch = Vec::new();
        let mut size = 0;
        while batch.len() < MAX_BATCH_TRACES && size < MAX_BATCH_BYTES {
            match self.line() {
                Ok(Some(input)) => {
                    size += input.text.as_ref().map_or(0, Vec::len);
                    batch.push(input);
                }
                Ok(None) => break,
                Err(error) if batch.is_empty() => return Some(Err(error)),
                Err(error) => {
                    self.failed = Some(error);
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
    fn line(&mut self) -> io::Result<Option<Input<Position>>> {
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
                return Ok(Some(Input { key, text: Err(NoText::TooLong) }));
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

    fn all(text: &[u8]) -> Vec<(u64, Result<String, NoText>)> {
        let inputs = read_lines(io::Cursor::new(text.to_vec())).flat_map(|batch| batch.expect("readable"));
        inputs.map(|one| (one.key.number, one.text.map(|text| String::from_utf8_lossy(&text).into_owned()))).collect()
    }

    #[test]
    fn blank_lines_are_counted_and_left_out() {
        let lines = all(b"\xEF\xBB\xBF{\"a\":1}\r\n\n  \n{\"b\":2}\n{\"c\":3}");
        let expected = [(1, "{\"a\":1}"), (4, "{\"b\":2}"), (5, "{\"c\":3}")];
        assert_eq!(lines, expected.map(|(number, text)| (number, Ok(text.to_owned()))));
    }

    #[test]
    fn a_line_without_end_is_named_and_the_next_is_read() {
        let mut text = vec![b'x'; MAX_TRACE_BYTES + 10];
        text.extend(b"\n{}\n");
        assert_eq!(all(&text), [(1, Err(NoText::TooLong)), (2, Ok("{}".to_owned()))]);
        assert_eq!(NoText::TooLong.to_string(), "longer than 32 MB");
    }

    #[test]
    fn what_was_read_before_an_error_is_handed_on() {
        struct Breaks(bool);
        impl Read for Breaks {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(io::Error::other("gone"));
                }
                buffer[..6].copy_from_slice(b"{}\n{}\n");
                Ok(6)
            }
        }
        let mut lines = read_lines(Breaks(false));
        assert_eq!(lines.next().and_then(Result::ok).map(|batch| batch.len()), Some(2));
        assert!(lines.next().is_some_and(|batch| batch.is_err()));
    }
}
