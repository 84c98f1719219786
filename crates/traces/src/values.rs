//! Cuts a text into its JSON values, without holding more than one of them.
//!
//! A value is a line, an element of a list, or a whole document. Lines stand for themselves, so that a broken one costs
//! nothing but itself. Elements and documents end where their brackets do.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// How long one value may be: it is held as a tree, which takes several times as much.
pub(crate) const LONGEST: usize = 256 << 20;

/// How much is looked at to find out how the text is laid out.
const HEAD: usize = 1 << 20;

/// A value's text, and where it is.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) place: Place,
    /// The text, or why there is none.
    pub(crate) text: Result<Vec<u8>, String>,
}

/// Where a value is, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Begins on this line.
    Line(u64),
    /// This element of the list.
    Item(u64),
    /// This element of the list on that line.
    LineItem(u64, u64),
}

impl Place {
    /// Returns the place of an element of the list that is here.
    pub(crate) fn item(self, number: u64) -> Self {
        match self {
            Self::Line(1) | Self::Item(_) => Self::Item(number),
            Self::Line(line) | Self::LineItem(line, _) => Self::LineItem(line, number),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(out, "line {line}"),
            Self::Item(item) => write!(out, "item {item}"),
            Self::LineItem(line, item) => write!(out, "line {line}, item {item}"),
        }
    }
}

/// How values follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One on each line.
    Lines,
    /// One after another, however they are broken into lines; of a list, its elements.
    Documents,
}

/// The values of a text.
pub(crate) struct Values {
    reader: BufReader<Box<dyn Read + Send>>,
    layout: Layout,
    /// The number of the line that is read next.
    line: u64,
    /// How many elements of a list were read, and whether the list is one value rather than many.
    list: Option<u64>,
    /// Tells by its first element whether a list is one value.
    is_one: fn(&[u8]) -> bool,
}

/// The beginning of a text, read ahead.
pub(crate) struct Opened {
    pub(crate) head: Vec<u8>,
    /// Whether that is all.
    whole: bool,
    rest: Box<dyn Read + Send>,
}

impl Opened {
    /// Reads ahead as far as is needed to see how a text is laid out: two lines, or a megabyte.
    pub(crate) fn read(mut rest: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut head = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        let (mut lines, mut blank) = (0, true);
        while head.len() < HEAD && lines < 2 {
            match rest.read(&mut chunk) {
                Ok(0) => return Ok(Self { head, whole: true, rest }),
                Ok(count) => {
                    for byte in &chunk[..count] {
                        if *byte == b'\n' {
                            lines += usize::from(!blank);
                            blank = true;
                        } else {
                            blank &= is_space(*byte);
                        }
                    }
                    head.extend_from_slice(&chunk[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { head, whole: false, rest })
    }

    /// Returns the first byte that is neither white space nor a byte order mark.
    pub(crate) fn first_byte(&self) -> Option<u8> {
        self.head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.head).trim_ascii_start().first().copied()
    }

    /// Tells whether this is no text: JSON has no control characters but tabs and line breaks.
    pub(crate) fn is_binary(&self) -> bool {
        self.head.iter().any(|byte| *byte < b' ' && !is_space(*byte))
    }

    /// Returns everything, for what is no text.
    pub(crate) fn into_reader(self) -> Box<dyn Read + Send> {
        Box::new(io::Cursor::new(self.head).chain(self.rest))
    }

    pub(crate) fn into_values(mut self, is_one: fn(&[u8]) -> bool) -> Values {
        if self.head.starts_with(b"\xEF\xBB\xBF") {
            self.head.drain(..3);
        }
        let layout = layout(&self.head, self.whole);
        let reader = BufReader::with_capacity(256 << 10, self.into_reader());
        Values { reader, layout, line: 1, list: None, is_one }
    }
}

/// Finds out whether each line is a value: the first one is, or the second one is and the first is none's beginning.
fn layout(head: &[u8], whole: bool) -> Layout {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return Layout::Lines };
    let second = lines.next();
    let is_list = first.starts_with(b"[");
    if second.is_none() {
        // One line, or the start of a long one: a list is read element by element.
        return if is_list || whole { Layout::Documents } else { Layout::Lines };
    }
    if is_value(first) {
        return Layout::Lines;
    }
    let open = matches!(first.last(), Some(b':' | b',' | b'[' | b'{'));
    if !is_list && !open && second.is_some_and(|second| second.starts_with(b"{") && is_value(second)) {
        return Layout::Lines;
    }
    Layout::Documents
}

fn is_value(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

impl Values {
    /// Reads the next value; nothing at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Text>> {
        match self.layout {
            Layout::Lines => self.next_line(),
            Layout::Documents => self.next_document(),
        }
    }

    fn next_line(&mut self) -> io::Result<Option<Text>> {
        loop {
            let mut text = Vec::new();
            if self.reader.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut text)? == 0 {
                return Ok(None);
            }
            let place = Place::Line(self.line);
            self.line += 1;
            if text.len() > LONGEST && text.last() != Some(&b'\n') {
                self.reader.skip_until(b'\n')?;
                return Ok(Some(Text { place, text: Err(too_long()) }));
            }
            let trimmed = text.trim_ascii();
            if !trimmed.is_empty() {
                let text = if trimmed.len() == text.len() { text } else { trimmed.to_vec() };
                return Ok(Some(Text { place, text: Ok(text) }));
            }
        }
    }

    fn next_document(&mut self) -> io::Result<Option<Text>> {
        loop {
            let Some(byte) = self.skip_space()? else {
                return Ok(self.list.take().map(|read| Text {
                    place: Place::Item(read + 1),
                    text: Err(format!("the list does not end, on line {}: the file is cut off", self.line)),
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
                    if let Some(one) = self.begin_list()? {
                        return Ok(Some(one));
                    }
                }
                (_, Some(read)) => {
                    self.list = Some(read + 1);
                    let text = self.value()?;
                    return Ok(Some(Text { place: Place::Item(read + 1), text }));
                }
                (_, None) => {
                    let place = Place::Line(self.line);
                    let text = self.value()?;
                    return Ok(Some(Text { place, text }));
                }
            }
        }
    }

    /// Reads a list's first element: returns it, or the whole list where it is one value.
    fn begin_list(&mut self) -> io::Result<Option<Text>> {
        let place = Place::Line(self.line);
        match self.skip_space()? {
            None | Some(b']' | b',') => {
                self.list = Some(0);
                return Ok(None);
            }
            Some(_) => {}
        }
        let first = self.value()?;
        if !first.as_ref().is_ok_and(|first| (self.is_one)(first)) {
            self.list = Some(1);
            return Ok(Some(Text { place: Place::Item(1), text: first }));
        }
        let mut whole = vec![b'['];
        let mut next = first;
        loop {
            match next {
                Ok(text) if whole.len() + text.len() < LONGEST => whole.extend_from_slice(&text),
                Ok(_) => return Ok(Some(Text { place, text: Err(too_long()) })),
                Err(why) => return Ok(Some(Text { place, text: Err(why) })),
            }
            loop {
                match self.skip_space()? {
                    Some(b',') => self.reader.consume(1),
                    Some(b']') => {
                        self.reader.consume(1);
                        whole.push(b']');
                        return Ok(Some(Text { place, text: Ok(whole) }));
                    }
                    Some(_) => break,
                    None => return Ok(Some(Text { place, text: Err(cut_off(self.line)) })),
                }
            }
            whole.push(b',');
            next = self.value()?;
        }
    }

    /// Skips white space, and returns the byte that follows.
    fn skip_space(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let space = buffer.iter().take_while(|byte| is_space(**byte)).count();
            let lines = count_lines(&buffer[..space]);
            let next = buffer.get(space).copied();
            self.reader.consume(space);
            self.line += lines;
            if next.is_some() {
                return Ok(next);
            }
        }
    }

    /// Reads one value, whose first byte comes next. What is no value is read up to the next white space, comma or
    /// bracket, so that something is read always.
    fn value(&mut self) -> io::Result<Result<Vec<u8>, String>> {
        let mut scan = Scan::default();
        let mut text = Vec::new();
        let mut length = 0_usize;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                if scan.depth > 0 || scan.in_text {
                    // The list that it was in is cut off with it, which need not be said again.
                    self.list = None;
                    return Ok(Err(cut_off(self.line)));
                }
                return Ok(if length > LONGEST { Err(too_long()) } else { Ok(text) });
            }
            let end = scan.end(buffer);
            let taken = end.unwrap_or(buffer.len());
            length += taken;
            if length <= LONGEST {
                text.extend_from_slice(&buffer[..taken]);
            } else {
                text = Vec::new();
            }
            self.line += count_lines(&buffer[..taken]);
            self.reader.consume(taken);
            if end.is_some() {
                return Ok(if length > LONGEST { Err(too_long()) } else { Ok(text) });
            }
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn count_lines(text: &[u8]) -> u64 {
    text.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

fn too_long() -> String {
    format!("longer than {} MB", LONGEST >> 20)
}

fn cut_off(line: u64) -> String {
    format!("ends in the middle of a value, on line {line}: the file is cut off")
}

/// Where a scan for a value's end stands.
#[derive(Default)]
struct Scan {
    begun: bool,
    depth: u64,
    in_text: bool,
    escaped: bool,
}

impl Scan {
    /// Goes over more of the value and returns where it ends, if it ends here.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_text {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_text = false;
                        if self.depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' | b'{' | b'[' | b'}' | b']' | b',' if self.begun && self.depth == 0 => return Some(at),
                byte if self.begun && self.depth == 0 && is_space(*byte) => return Some(at),
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 1 => return Some(at + 1),
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                _ => {}
            }
            self.begun = true;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// Gives its content in pieces of three bytes.
    struct Drip(io::Cursor<Vec<u8>>);

    impl Read for Drip {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = into.len().min(3);
            self.0.read(&mut into[..most])
        }
    }

    fn all(text: &[u8]) -> Vec<String> {
        let input = Box::new(Drip(io::Cursor::new(text.to_vec())));
        let mut values = Opened::read(input).expect("memory").into_values(|first| first.starts_with(b"{\"role\""));
        let mut shown = Vec::new();
        while let Some(one) = values.next().expect("memory") {
            let text = one.text.map_or_else(|why| format!("! {why}"), |text| String::from_utf8_lossy(&text).into());
            shown.push(format!("{}: {text}", one.place));
        }
        shown
    }

    #[rstest]
    #[case::nothing("", &[])]
    #[case::blank(" \n\n", &[])]
    #[case::one("{\"a\":1}", &["line 1: {\"a\":1}"])]
    #[case::lines("{\"a\":1}\n\n {\"b\":2}\r\n", &["line 1: {\"a\":1}", "line 3: {\"b\":2}"])]
    #[case::byte_order_mark("\u{feff}{}\n{}", &["line 1: {}", "line 2: {}"])]
    #[case::a_broken_line("{\"a\":\"x\n{\"b\":2}\n{\"c\":3}\n", &["line 1: {\"a\":\"x", "line 2: {\"b\":2}", "line 3: {\"c\":3}"])]
    #[case::a_later_one("{}\n{\"a\n{}\n", &["line 1: {}", "line 2: {\"a", "line 3: {}"])]
    #[case::a_document("{\n  \"a\": [\n    1\n  ]\n}\n", &["line 1: {\n  \"a\": [\n    1\n  ]\n}"])]
    #[case::documents("{\n \"a\": 1\n}\n{\n \"b\": 2}", &["line 1: {\n \"a\": 1\n}", "line 4: {\n \"b\": 2}"])]
    #[case::a_list("[{\"a\":\"]\\\"\"}, {\"b\":{}}]", &["item 1: {\"a\":\"]\\\"\"}", "item 2: {\"b\":{}}"])]
    #[case::a_list_of_lines("[\n{\"a\":1},\n{\"b\":2}\n]\n", &["item 1: {\"a\":1}", "item 2: {\"b\":2}"])]
    #[case::lists("[{\"a\":1}]\n[{\"b\":2}]\n", &["line 1: [{\"a\":1}]", "line 2: [{\"b\":2}]"])]
    #[case::one_list("[\n{\"role\":1},\n{\"x\":[2]}\n]", &["line 1: [{\"role\":1},{\"x\":[2]}]"])]
    #[case::no_objects("[1, \"a\", null]", &["item 1: 1", "item 2: \"a\"", "item 3: null"])]
    #[case::cut_off("[{\"a\":1},\n{\"b\"", &["item 1: {\"a\":1}", "item 2: ! ends in the middle of a value, on line 2: the file is cut off"])]
    #[case::cut_off_between("[{\"a\":1},\n", &["item 1: {\"a\":1}", "item 2: ! the list does not end, on line 2: the file is cut off"])]
    #[case::empty_list("[]", &[])]
    #[case::stray_brackets("[{}}, 1]", &["item 1: {}", "item 2: }", "item 3: 1"])]
    fn values_have_their_places(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(all(text.as_bytes()), expected);
    }

    #[test]
    fn a_broken_colon_is_no_new_line() {
        assert_eq!(all(b"{\"a\":\n{\"b\":1}\n}"), ["line 1: {\"a\":\n{\"b\":1}\n}"]);
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(bytes in proptest::collection::vec(prop_oneof![Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b'"'), Just(b'\\'), Just(b','), Just(b'\n'), Just(b'1'), any::<u8>()], 0..60)) {
            all(&bytes);
        }
    }
}
