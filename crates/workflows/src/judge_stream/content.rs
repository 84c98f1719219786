//! What a file or a pipe with traces holds, by its first bytes.

use std::io::{self, Read};

use karat_sandbox::{FILE_BEGINNING, STREAM_BEGINNING};

/// What something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A JSON object on each line, or something that nobody knows.
    JsonLines,
    Arrow,
    /// Nothing that is read.
    Other(Known),
}

/// Something that is known and not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// As it stands behind "is".
    pub what: &'static str,
    /// The program that makes JSON lines of it, with the words that go before the file's name.
    pub program: Option<&'static str>,
}

const fn other(what: &'static str, program: &'static str) -> Content {
    Content::Other(Known { what, program: Some(program) })
}

const UTF_16: Content = other("UTF-16 text", "iconv -f UTF-16 -t UTF-8");
const ARRAY: Content = other("a JSON array", "jq -c '.[]'");
const SPREAD_OBJECT: Content = other("a JSON object over several lines", "jq -c .");

/// What something begins with, and what it is.
const BEGINNINGS: [(&[u8], Content); 12] = [
    (&STREAM_BEGINNING, Content::Arrow),
    (&FILE_BEGINNING, Content::Arrow),
    (b"PAR1", Content::Other(Known { what: "a Parquet file", program: None })),
    (b"\x1F\x8B", other("compressed", "zcat")),
    (b"\x28\xB5\x2F\xFD", other("compressed", "zstdcat")),
    (b"BZh", other("compressed", "bzcat")),
    (b"\xFD7zXZ\0", other("compressed", "xzcat")),
    (b"PK\x03\x04", other("compressed", "unzip -p")),
    (b"\xFF\xFE", UTF_16),
    (b"\xFE\xFF", UTF_16),
    // Without a byte order mark.
    (b"{\0", other("UTF-16 text", "iconv -f UTF-16LE -t UTF-8")),
    (b"\0{", other("UTF-16 text", "iconv -f UTF-16BE -t UTF-8")),
];

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Whoever sends so much white space has nothing else to say of what it is.
const MAX_BLANK: usize = 1024;

/// The first bytes again, and then the rest.
pub type Whole<R> = io::Chain<io::Cursor<Vec<u8>>, R>;

/// Finds out what the input holds, reading no more of it than that takes: more may be long in coming.
pub fn recognise<R: Read>(mut input: R) -> io::Result<(Content, Whole<R>)> {
    let mut beginning = Vec::new();
    let content = loop {
        if let Some(content) = content_of(&beginning) {
            break content;
        }
        let mut next = [0];
        match input.read(&mut next) {
            Ok(0) => break Content::JsonLines,
            Ok(_) => beginning.extend(next),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    Ok((content, io::Cursor::new(beginning).chain(input)))
}

/// Returns what begins so; nothing while it cannot be told yet.
fn content_of(bytes: &[u8]) -> Option<Content> {
    if let Some((_, content)) = BEGINNINGS.iter().find(|(known, _)| bytes.starts_with(known)) {
        return Some(*content);
    }
    let may_become = |known: &[u8]| known.len() > bytes.len() && known.starts_with(bytes);
    if may_become(BYTE_ORDER_MARK) || BEGINNINGS.iter().any(|(known, _)| may_become(known)) {
        return None;
    }
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii_start();
    let content = match text {
        [] => None,
        [b'[', ..] => Some(ARRAY),
        [b'{', rest @ ..] => {
            let (blank, member) = rest.split_at(rest.len() - rest.trim_ascii_start().len());
            match member {
                [] => None,
                [b'"' | b'}', ..] if blank.contains(&b'\n') => Some(SPREAD_OBJECT),
                // What is broken off is only a broken line.
                _ => Some(Content::JsonLines),
            }
        }
        _ => Some(Content::JsonLines),
    };
    content.or((bytes.len() > MAX_BLANK).then_some(Content::JsonLines))
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
    #[case(b"", Content::JsonLines)]
    #[case(b"\n{}", Content::JsonLines)]
    #[case(b"{}\n{}\n", Content::JsonLines)]
    #[case(b"{\"a\": 1}\n", Content::JsonLines)]
    #[case(b"{ \t\"a\": 1}\n", Content::JsonLines)]
    #[case(b"\xEF\xBB\xBF{}", Content::JsonLines)]
    #[case(b"\xEF\xBB", Content::JsonLines)]
    #[case(b"\xFF\xFF\xFFx", Content::JsonLines)]
    #[case(b"ARR", Content::JsonLines)]
    #[case(b"{\n{\"a\": 1}\n", Content::JsonLines)]
    #[case(b"\xFF\xFF\xFF\xFF\x10\0\0\0", Content::Arrow)]
    #[case(b"ARROW1\0\0\xFF", Content::Arrow)]
    #[case(b"[{}]", ARRAY)]
    #[case(b"\xEF\xBB\xBF \r\n\t[", ARRAY)]
    #[case(b"{\r\n  \"a\": 1\r\n}", SPREAD_OBJECT)]
    #[case(b"\n{ \n}", SPREAD_OBJECT)]
    #[case(b"\xFF\xFE{\0", UTF_16)]
    #[case(b"\xFE\xFF\0{", UTF_16)]
    fn the_first_bytes_tell(#[case] bytes: &[u8], #[case] expected: Content) {
        let (content, whole) = recognise(Slow(bytes)).expect("memory can be read");
        assert_eq!((content, all(whole).as_slice()), (expected, bytes), "nothing is lost");
        let (content, whole) = recognise(bytes).expect("memory can be read");
        assert_eq!((content, all(whole).as_slice()), (expected, bytes), "nothing is lost");
    }

    #[rstest]
    #[case(b"PAR1\x15", "a Parquet file", None)]
    #[case(b"\x1F\x8B\x08", "compressed", Some("zcat"))]
    #[case(b"\x28\xB5\x2F\xFD\0", "compressed", Some("zstdcat"))]
    #[case(b"BZh9", "compressed", Some("bzcat"))]
    #[case(b"\xFD7zXZ\0\0", "compressed", Some("xzcat"))]
    #[case(b"PK\x03\x04\x14", "compressed", Some("unzip -p"))]
    #[case(b"{\0\"\0", "UTF-16 text", Some("iconv -f UTF-16LE -t UTF-8"))]
    #[case(b"\0{\0\"", "UTF-16 text", Some("iconv -f UTF-16BE -t UTF-8"))]
    fn what_is_not_read_is_known(#[case] bytes: &[u8], #[case] what: &str, #[case] program: Option<&str>) {
        let (content, _) = recognise(bytes).expect("memory can be read");
        let Content::Other(known) = content else { panic!("{content:?}") };
        assert_eq!((known.what, known.program), (what, program));
    }

    /// A pipe that stays open is not waited for.
    #[rstest]
    #[case(b"{\"", b"")]
    #[case(b"{}", b"")]
    #[case(b"[", b"")]
    #[case(b"x", b"more")]
    fn no_more_is_read_than_it_takes(#[case] needed: &[u8], #[case] more: &[u8]) {
        struct Breaks;
        impl Read for Breaks {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("it would wait"))
            }
        }
        assert!(recognise(needed.chain(more).chain(Breaks)).is_ok());
    }

    #[test]
    fn white_space_without_end_is_read_no_further() {
        let (content, _) = recognise(io::repeat(b'\n')).expect("it can be read");
        assert_eq!(content, Content::JsonLines);
    }

    fn all(mut reader: impl Read) -> Vec<u8> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).expect("memory can be read");
        bytes
    }
}
