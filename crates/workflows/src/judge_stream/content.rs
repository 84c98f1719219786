//! Detects the content of a file or pipe from its first bytes.

use std::io::{self, Read};

use karat_sandbox::{FILE_MAGIC, STREAM_MAGIC};

/// The content of a file or pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// JSON lines, or an unknown format.
    JsonLines,
    Arrow,
    Unsupported(UnsupportedFormat),
}

/// A known format that is not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsupportedFormat {
    /// Completes "the file is …".
    pub description: &'static str,
    /// The command that converts it to JSON lines, without the file name.
    pub converter: Option<&'static str>,
    /// Whether files of traces may have it. A stream of a data engine may not.
    pub is_importable: bool,
}

const fn unsupported(description: &'static str, converter: &'static str) -> Content {
    Content::Unsupported(UnsupportedFormat { description, converter: Some(converter), is_importable: false })
}

const fn importable(description: &'static str, converter: &'static str) -> Content {
    Content::Unsupported(UnsupportedFormat { description, converter: Some(converter), is_importable: true })
}

const UTF_16: Content = unsupported("UTF-16 text", "iconv -f UTF-16 -t UTF-8");
const ARRAY: Content = importable("a JSON array", "jq -c '.[]'");
const MULTILINE_OBJECT: Content = importable("a JSON object over several lines", "jq -c .");

/// Magic bytes and their content.
const MAGIC_BYTES: [(&[u8], Content); 12] = [
    (&STREAM_MAGIC, Content::Arrow),
    (&FILE_MAGIC, Content::Arrow),
    (
        b"PAR1",
        Content::Unsupported(UnsupportedFormat {
            description: "a Parquet file",
            converter: None,
            is_importable: false,
        }),
    ),
    (b"\x1F\x8B", importable("compressed", "zcat")),
    (b"\x28\xB5\x2F\xFD", unsupported("compressed", "zstdcat")),
    (b"BZh", unsupported("compressed", "bzcat")),
    (b"\xFD7zXZ\0", unsupported("compressed", "xzcat")),
    (b"PK\x03\x04", importable("compressed", "unzip -p")),
    (b"\xFF\xFE", UTF_16),
    (b"\xFE\xFF", UTF_16),
    // UTF-16 without a byte order mark.
    (b"{\0", unsupported("UTF-16 text", "iconv -f UTF-16LE -t UTF-8")),
    (b"\0{", unsupported("UTF-16 text", "iconv -f UTF-16BE -t UTF-8")),
];

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Maximum leading whitespace before the content is assumed to be JSON lines.
const MAX_WHITESPACE_BYTES: usize = 1024;

/// A reader that returns the first bytes again, then the rest.
pub type PeekedReader<R> = io::Chain<io::Cursor<Vec<u8>>, R>;

/// Detects the content of an input. Reads as few bytes as possible, since a pipe may block.
pub fn detect_content<R: Read>(mut input: R) -> io::Result<(Content, PeekedReader<R>)> {
    let mut first_bytes = Vec::new();
    let content = loop {
        if let Some(content) = content_of(&first_bytes) {
            break content;
        }
        let mut next = [0];
        match input.read(&mut next) {
            Ok(0) => break Content::JsonLines,
            Ok(_) => first_bytes.extend(next),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    Ok((content, io::Cursor::new(first_bytes).chain(input)))
}

/// Returns the content that starts with these bytes; `None` if more bytes are needed.
fn content_of(bytes: &[u8]) -> Option<Content> {
    if let Some((_, content)) = MAGIC_BYTES.iter().find(|(known, _)| bytes.starts_with(known)) {
        return Some(*content);
    }
    let may_become = |known: &[u8]| known.len() > bytes.len() && known.starts_with(bytes);
    if may_become(BYTE_ORDER_MARK) || MAGIC_BYTES.iter().any(|(known, _)| may_become(known)) {
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
                [b'"' | b'}', ..] if blank.contains(&b'\n') => Some(MULTILINE_OBJECT),
                // A truncated object is an invalid line.
                _ => Some(Content::JsonLines),
            }
        }
        _ => Some(Content::JsonLines),
    };
    content.or((bytes.len() > MAX_WHITESPACE_BYTES).then_some(Content::JsonLines))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Returns one byte per read, like a slow pipe.
    struct SlowReader<'b>(&'b [u8]);

    impl Read for SlowReader<'_> {
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
    #[case(b"{\r\n  \"a\": 1\r\n}", MULTILINE_OBJECT)]
    #[case(b"\n{ \n}", MULTILINE_OBJECT)]
    #[case(b"\xFF\xFE{\0", UTF_16)]
    #[case(b"\xFE\xFF\0{", UTF_16)]
    fn detects_content_and_loses_no_bytes(#[case] bytes: &[u8], #[case] expected: Content) {
        let (content, whole) = detect_content(SlowReader(bytes)).expect("reading from memory");
        assert_eq!((content, all(whole).as_slice()), (expected, bytes));
        let (content, whole) = detect_content(bytes).expect("reading from memory");
        assert_eq!((content, all(whole).as_slice()), (expected, bytes));
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
    fn detects_unsupported_formats(#[case] bytes: &[u8], #[case] description: &str, #[case] converter: Option<&str>) {
        let (content, _) = detect_content(bytes).expect("reading from memory");
        let Content::Unsupported(known) = content else { panic!("{content:?}") };
        assert_eq!((known.description, known.converter), (description, converter));
    }

    /// Reading more would block on an open pipe.
    #[rstest]
    #[case(b"{\"", b"")]
    #[case(b"{}", b"")]
    #[case(b"[", b"")]
    #[case(b"x", b"more")]
    fn reads_no_more_than_needed(#[case] needed: &[u8], #[case] more: &[u8]) {
        struct BrokenReader;
        impl Read for BrokenReader {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("would block"))
            }
        }
        assert!(detect_content(needed.chain(more).chain(BrokenReader)).is_ok());
    }

    #[test]
    fn stops_after_too_much_whitespace() {
        let (content, _) = detect_content(io::repeat(b'\n')).expect("readable");
        assert_eq!(content, Content::JsonLines);
    }

    fn all(mut reader: impl Read) -> Vec<u8> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).expect("reading from memory");
        bytes
    }
}
