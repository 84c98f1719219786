//! What stdin holds, by its first bytes.

use std::io::{self, Read};

use karat_sandbox::{FILE_BEGINNING, STREAM_BEGINNING};

use crate::args::InputFormat;
use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    JsonLines,
    Arrow,
}

/// What something begins with, and what it is; else it is taken for JSON lines.
const BEGINNINGS: [(&[u8], Known); 6] = [
    (&STREAM_BEGINNING, Known::Arrow),
    (&FILE_BEGINNING, Known::Arrow),
    (b"PAR1", Known::Other("a Parquet file", "let the engine that wrote it send Arrow or JSON lines")),
    (b"\x1F\x8B", Known::Other("compressed", "zcat FILE | karat eval batch …")),
    (b"\x28\xB5\x2F\xFD", Known::Other("compressed", "zstdcat FILE | karat eval batch …")),
    (b"[", Known::Other("a JSON array", "jq -c '.[]' FILE | karat eval batch …")),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Arrow,
    /// Nothing that is read, and how it is made something that is.
    Other(&'static str, &'static str),
}

/// The first bytes again, and then the rest.
pub(super) type Whole<R> = io::Chain<io::Cursor<Vec<u8>>, R>;

/// Finds out what the input holds, reading no more of it than that takes: more may be long in coming.
pub(super) fn recognise<R: Read>(mut input: R, asked: InputFormat) -> Result<(Format, Whole<R>), Failure> {
    let mut beginning = Vec::new();
    let format = match asked {
        InputFormat::Jsonl => Format::JsonLines,
        InputFormat::Arrow => Format::Arrow,
        InputFormat::Auto => match known(&mut input, &mut beginning)? {
            None => Format::JsonLines,
            Some(Known::Arrow) => Format::Arrow,
            Some(Known::Other(what, hint)) => {
                return Err(Failure::invalid(format!("stdin is {what}, not JSON lines nor an Arrow stream")).hint(hint));
            }
        },
    };
    Ok((format, io::Cursor::new(beginning).chain(input)))
}

fn known(input: &mut impl Read, beginning: &mut Vec<u8>) -> Result<Option<Known>, Failure> {
    loop {
        if let Some((_, known)) = BEGINNINGS.iter().find(|(bytes, _)| beginning.starts_with(bytes)) {
            return Ok(Some(*known));
        }
        let missing = BEGINNINGS.iter().filter(|(bytes, _)| bytes.starts_with(beginning)).map(|(bytes, _)| bytes.len());
        let Some(missing) = missing.min().map(|length| length - beginning.len()) else { return Ok(None) };
        let mut bytes = [0; FILE_BEGINNING.len()];
        let room = bytes.get_mut(..missing).unwrap_or_default();
        match input.read(room) {
            Ok(0) => return Ok(None),
            Ok(count) => beginning.extend(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::errored(format!("cannot read stdin: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Gives one byte at a time, as a slow pipe does.
    struct Slow<'b>(&'b [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    #[rstest]
    #[case(b"", Some(Format::JsonLines))]
    #[case(b"\n{}", Some(Format::JsonLines))]
    #[case(b"{\"a\": 1}\n", Some(Format::JsonLines))]
    #[case(b"\xEF\xBB\xBF{}", Some(Format::JsonLines))]
    #[case(b"\xFF\xFF\xFFx", Some(Format::JsonLines))]
    #[case(b"ARR", Some(Format::JsonLines))]
    #[case(b"\xFF\xFF\xFF\xFF\x10\0\0\0", Some(Format::Arrow))]
    #[case(b"ARROW1\0\0\xFF", Some(Format::Arrow))]
    #[case(b"PAR1\x15", None)]
    #[case(b"\x1F\x8B\x08", None)]
    #[case(b"[{}]", None)]
    fn the_first_bytes_tell(#[case] bytes: &[u8], #[case] expected: Option<Format>) {
        for (format, whole) in [
            recognise(bytes, InputFormat::Auto).map(|(format, mut whole)| (format, all(&mut whole))),
            recognise(Slow(bytes), InputFormat::Auto).map(|(format, mut whole)| (format, all(&mut whole))),
        ]
        .into_iter()
        .flatten()
        {
            assert_eq!(Some(format), expected);
            assert_eq!(whole, bytes, "nothing is lost");
        }
        assert_eq!(recognise(bytes, InputFormat::Auto).is_ok(), expected.is_some());
    }

    fn all(reader: &mut impl Read) -> Vec<u8> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).expect("memory can be read");
        bytes
    }

    #[test]
    fn what_is_asked_for_is_not_looked_for() {
        let never = Slow(b"PAR1");
        assert_eq!(recognise(never, InputFormat::Jsonl).map(|(format, _)| format).ok(), Some(Format::JsonLines));
    }
}
