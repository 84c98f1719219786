//! Splits text into JSON values, holding one at a time in memory.
//!
//! A value is a line, an element of a list, or a whole document. Lines are independent, so a broken line does not
//! affect the others. Elements and documents end at their closing bracket.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// The maximum size of one value. Its parsed form takes several times as much memory.
pub(crate) const MAX_VALUE_BYTES: usize = 256 << 20;

/// Number of bytes that are read ahead to detect the layout.
const MAX_HEAD_BYTES: usize = 1 << 20;

/// The text of a value and its location.
#[derive(Debug)]
pub(crate) struct ValueText {
    pub(crate) location: Location,
    /// The text, or why it could not be read.
    pub(crate) text: Result<Vec<u8>, String>,
}

/// The location of a value, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    /// Starts on this line.
    Line(u64),
    /// This element of the top-level list.
    Item(u64),
    /// This element of the list on that line.
    LineItem(u64, u64),
}

impl Location {
    /// Returns the location of an element of the list at this location.
    pub(crate) fn item(self, number: u64) -> Self {
        match self {
            Self::Line(1) | Self::Item(_) => Self::Item(number),
            Self::Line(line) | Self::LineItem(line, _) => Self::LineItem(line, number),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(out, "line {line}"),
            Self::Item(item) => write!(out, "item {item}"),
            Self::LineItem(line, item) => write!(out, "line {line}, item {item}"),
        }
    }
}

/// How values are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One value per line.
    Lines,
    /// Consecutive documents over any number of lines. A list yields its elements.
    Documents,
}

/// Reads the values of text.
pub(crate) struct ValueReader {
    reader: BufReader<Box<dyn Read + Send>>,
    layout: Layout,
    /// The number of the next line.
    line: u64,
    /// Within a list: the number of elements read so far.
    list: Option<u64>,
    /// Whether a list with this first element is a single value.
    is_single_value: fn(&[u8]) -> bool,
}

/// An input of which the beginning has been read ahead.
pub(crate) struct PeekedInput {
    pub(crate) head: Vec<u8>,
    /// The head is the whole input.
    is_complete: bool,
    rest: Box<dyn Read + Send>,
}

impl PeekedInput {
    /// Reads ahead far enough to detect the layout: one line that is an object, two lines, or 1 MB. A pipe may block
    /// after the first line.
    pub(crate) fn read(mut rest: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut head = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        let (mut lines, mut blank) = (0, true);
        while head.len() < MAX_HEAD_BYTES && lines < 2 {
            match rest.read(&mut chunk) {
                Ok(0) => return Ok(Self { head, is_complete: true, rest }),
                Ok(count) => {
                    for byte in &chunk[..count] {
                        if *byte == b'\n' {
                            lines += usize::from(!blank);
                            blank = true;
                        } else {
                            blank &= is_whitespace(*byte);
                        }
                    }
                    head.extend_from_slice(&chunk[..count]);
                    if lines == 1 && first_line_is_object(&head) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { head, is_complete: false, rest })
    }

    /// Returns the first byte after whitespace and a byte order mark.
    pub(crate) fn first_byte(&self) -> Option<u8> {
        self.head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.head).trim_ascii_start().first().copied()
    }

    /// Whether the input is binary: JSON contains no control characters except tabs and line breaks.
    pub(crate) fn is_binary(&self) -> bool {
        self.head.iter().any(|byte| *byte < b' ' && !is_whitespace(*byte))
    }

    /// Returns a reader of the whole input.
    pub(crate) fn into_reader(self) -> Box<dyn Read + Send> {
        Box::new(io::Cursor::new(self.head).chain(self.rest))
    }

    pub(crate) fn into_values(mut self, is_single_value: fn(&[u8]) -> bool) -> ValueReader {
        if self.head.starts_with(b"\xEF\xBB\xBF") {
            self.head.drain(..3);
        }
        let layout = detect_layout(&self.head, self.is_complete);
        let reader = BufReader::with_capacity(256 << 10, self.into_reader());
        ValueReader { reader, layout, line: 1, list: None, is_single_value }
    }
}

fn first_line_is_object(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"{") && is_value(first)
}

/// Detects whether each line is a value: the first line is one, or the second is one and the first is a broken line.
fn detect_layout(head: &[u8], is_complete: bool) -> Layout {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return Layout::Lines };
    let second = lines.next();
    let is_list = first.starts_with(b"[");
    if second.is_none() {
        // One line, or the start of a long one. A list is read element by element.
        return if is_list || is_complete { Layout::Documents } else { Layout::Lines };
    }
    if is_value(first) {
        return Layout::Lines;
    }
    let is_open = matches!(first.last(), Some(b':' | b',' | b'[' | b'{'));
    if !is_list && !is_open && second.is_some_and(|second| second.starts_with(b"{") && is_value(second)) {
        return Layout::Lines;
    }
    Layout::Documents
}

fn is_value(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

impl ValueReader {
    /// Whether more of the text is in memory, so that the next read may not block.
    pub(crate) fn has_buffered(&self) -> bool {
        !self.reader.buffer().is_empty()
    }

    /// Reads the next value, or `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<ValueText>> {
        match self.layout {
            Layout::Lines => self.next_line(),
            Layout::Documents => self.next_document(),
        }
    }

    fn next_line(&mut self) -> io::Result<Option<ValueText>> {
        loop {
            let mut text = Vec::new();
            if self.reader.by_ref().take(MAX_VALUE_BYTES as u64 + 1).read_until(b'\n', &mut text)? == 0 {
                return Ok(None);
            }
            let location = Location::Line(self.line);
            self.line += 1;
            if text.len() > MAX_VALUE_BYTES && text.last() != Some(&b'\n') {
                self.reader.skip_until(b'\n')?;
                return Ok(Some(ValueText { location, text: Err(too_long()) }));
            }
            let trimmed = text.trim_ascii();
            if !trimmed.is_empty() {
                let text = if trimmed.len() == text.len() { text } else { trimmed.to_vec() };
                return Ok(Some(ValueText { location, text: Ok(text) }));
            }
        }
    }

    fn next_document(&mut self) -> io::Result<Option<ValueText>> {
        loop {
            let Some(byte) = self.skip_whitespace()? else {
                return Ok(self.list.take().map(|read| ValueText {
                    location: Location::Item(read + 1),
                    text: Err(format!("unclosed list at line {}: the file is truncated", self.line)),
                }));
            };
            match (byte, self.list) {
                (b',', Some(_)) => self.reader.consume(1),
                (b']', Some(_)) => {
                    self.reader.consume(1);
                    self.list = None;
                }
                (b'[', None) => {
                    self.reader.consume(1);
                    if let Some(value) = self.start_list()? {
                        return Ok(Some(value));
                    }
                }
                (_, Some(read)) => {
                    self.list = Some(read + 1);
                    let text = self.read_value()?;
                    return Ok(Some(ValueText { location: Location::Item(read + 1), text }));
                }
                (_, None) => {
                    let location = Location::Line(self.line);
                    let text = self.read_value()?;
                    return Ok(Some(ValueText { location, text }));
                }
            }
        }
    }

    /// Reads the first element of a list. Returns it, or the whole list if it is a single value.
    fn start_list(&mut self) -> io::Result<Option<ValueText>> {
        let location = Location::Line(self.line);
        match self.skip_whitespace()? {
            None | Some(b']' | b',') => {
                self.list = Some(0);
                return Ok(None);
            }
            Some(_) => {}
        }
        let first = self.read_value()?;
        if !first.as_ref().is_ok_and(|first| (self.is_single_value)(first)) {
            self.list = Some(1);
            return Ok(Some(ValueText { location: Location::Item(1), text: first }));
        }
        let mut whole = vec![b'['];
        let mut next = first;
        loop {
            match next {
                Ok(text) if whole.len() + text.len() < MAX_VALUE_BYTES => whole.extend_from_slice(&text),
                Ok(_) => return Ok(Some(ValueText { location, text: Err(too_long()) })),
                Err(reason) => return Ok(Some(ValueText { location, text: Err(reason) })),
            }
            loop {
                match self.skip_whitespace()? {
                    Some(b',') => self.reader.consume(1),
                    Some(b']') => {
                        self.reader.consume(1);
                        whole.push(b']');
                        return Ok(Some(ValueText { location, text: Ok(whole) }));
                    }
                    Some(_) => break,
                    None => return Ok(Some(ValueText { location, text: Err(truncated(self.line)) })),
                }
            }
            whole.push(b',');
            next = self.read_value()?;
        }
    }

    /// Skips whitespace and returns the next byte.
    fn skip_whitespace(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let space = buffer.iter().take_while(|byte| is_whitespace(**byte)).count();
            let lines = count_lines(&buffer[..space]);
            let next = buffer.get(space).copied();
            self.reader.consume(space);
            self.line += lines;
            if next.is_some() {
                return Ok(next);
            }
        }
    }

    /// Reads one value, which starts at the next byte. An invalid value extends to the next whitespace, comma or
    /// bracket, so every call makes progress.
    fn read_value(&mut self) -> io::Result<Result<Vec<u8>, String>> {
        let mut scan = ValueScanner::default();
        let mut text = Vec::new();
        let mut length = 0_usize;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                if scan.depth > 0 || scan.in_string {
                    // The enclosing list is truncated too: report it only once.
                    self.list = None;
                    return Ok(Err(truncated(self.line)));
                }
                return Ok(if length > MAX_VALUE_BYTES { Err(too_long()) } else { Ok(text) });
            }
            let end = scan.find_end(buffer);
            let length_read = end.unwrap_or(buffer.len());
            length += length_read;
            if length <= MAX_VALUE_BYTES {
                text.extend_from_slice(&buffer[..length_read]);
            } else {
                text = Vec::new();
            }
            self.line += count_lines(&buffer[..length_read]);
            self.reader.consume(length_read);
            if end.is_some() {
                return Ok(if length > MAX_VALUE_BYTES { Err(too_long()) } else { Ok(text) });
            }
        }
    }
}

fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn count_lines(text: &[u8]) -> u64 {
    text.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

fn too_long() -> String {
    format!("longer than {} MB", MAX_VALUE_BYTES >> 20)
}

fn truncated(line: u64) -> String {
    format!("incomplete value at line {line}: the file is truncated")
}

/// The state of a scan for the end of a value.
#[derive(Default)]
struct ValueScanner {
    started: bool,
    depth: u64,
    in_string: bool,
    escaped: bool,
}

impl ValueScanner {
    /// Scans more of the value and returns its end, if it is within these bytes.
    fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' | b'{' | b'[' | b'}' | b']' | b',' if self.started && self.depth == 0 => return Some(at),
                byte if self.started && self.depth == 0 && is_whitespace(*byte) => return Some(at),
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 1 => return Some(at + 1),
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                _ => {}
            }
            self.started = true;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// Yields at most three bytes per read.
    struct SlowReader(io::Cursor<Vec<u8>>);

    impl Read for SlowReader {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = into.len().min(3);
            self.0.read(&mut into[..length])
        }
    }

    fn read_all(text: &[u8]) -> Vec<String> {
        let input = Box::new(SlowReader(io::Cursor::new(text.to_vec())));
        let mut values = PeekedInput::read(input).expect("memory").into_values(|first| first.starts_with(b"{\"role\""));
        let mut lines = Vec::new();
        while let Some(value) = values.next().expect("memory") {
            let text =
                value.text.map_or_else(|reason| format!("! {reason}"), |text| String::from_utf8_lossy(&text).into());
            lines.push(format!("{}: {text}", value.location));
        }
        lines
    }

    #[rstest]
    #[case::nothing("", &[])]
    #[case::blank(" \n\n", &[])]
    #[case::one("{\"a\":1}", &["line 1: {\"a\":1}"])]
    #[case::lines("{\"a\":1}\n\n {\"b\":2}\r\n", &["line 1: {\"a\":1}", "line 3: {\"b\":2}"])]
    #[case::byte_order_mark("\u{feff}{}\n{}", &["line 1: {}", "line 2: {}"])]
    #[case::a_broken_line("{\"a\":\"x\n{\"b\":2}\n{\"c\":3}\n", &["line 1: {\"a\":\"x", "line 2: {\"b\":2}", "line 3: {\"c\":3}"])]
    #[case::a_later_broken_line("{}\n{\"a\n{}\n", &["line 1: {}", "line 2: {\"a", "line 3: {}"])]
    #[case::a_document("{\n  \"a\": [\n    1\n  ]\n}\n", &["line 1: {\n  \"a\": [\n    1\n  ]\n}"])]
    #[case::documents("{\n \"a\": 1\n}\n{\n \"b\": 2}", &["line 1: {\n \"a\": 1\n}", "line 4: {\n \"b\": 2}"])]
    #[case::a_list("[{\"a\":\"]\\\"\"}, {\"b\":{}}]", &["item 1: {\"a\":\"]\\\"\"}", "item 2: {\"b\":{}}"])]
    #[case::a_list_of_lines("[\n{\"a\":1},\n{\"b\":2}\n]\n", &["item 1: {\"a\":1}", "item 2: {\"b\":2}"])]
    #[case::lists("[{\"a\":1}]\n[{\"b\":2}]\n", &["line 1: [{\"a\":1}]", "line 2: [{\"b\":2}]"])]
    #[case::a_list_as_one_value("[\n{\"role\":1},\n{\"x\":[2]}\n]", &["line 1: [{\"role\":1},{\"x\":[2]}]"])]
    #[case::scalars("[1, \"a\", null]", &["item 1: 1", "item 2: \"a\"", "item 3: null"])]
    #[case::truncated("[{\"a\":1},\n{\"b\"", &["item 1: {\"a\":1}", "item 2: ! incomplete value at line 2: the file is truncated"])]
    #[case::truncated_between_items("[{\"a\":1},\n", &["item 1: {\"a\":1}", "item 2: ! unclosed list at line 2: the file is truncated"])]
    #[case::empty_list("[]", &[])]
    #[case::stray_brackets("[{}}, 1]", &["item 1: {}", "item 2: }", "item 3: 1"])]
    fn reads_values_with_their_locations(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(read_all(text.as_bytes()), expected);
    }

    #[test]
    fn a_line_that_ends_with_a_colon_is_continued() {
        assert_eq!(read_all(b"{\"a\":\n{\"b\":1}\n}"), ["line 1: {\"a\":\n{\"b\":1}\n}"]);
    }

    proptest! {
        #[test]
        fn reading_terminates_for_any_bytes(bytes in proptest::collection::vec(prop_oneof![Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b'"'), Just(b'\\'), Just(b','), Just(b'\n'), Just(b'1'), any::<u8>()], 0..60)) {
            read_all(&bytes);
        }
    }
}
