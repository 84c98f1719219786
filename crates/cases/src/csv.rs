//! A CSV reader that returns the byte range of every field.
//!
//! Most CSV readers treat the rest of a file as one field if a quote is not closed. This one reports an error with its
//! position.

use std::borrow::Cow;
use std::ops::Range;

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell<'t> {
    pub text: Cow<'t, str>,
    /// Byte range, including quotes.
    pub range: Range<usize>,
}

/// An error in a record; the rest of the file is not parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvError {
    pub range: Range<usize>,
    pub message: &'static str,
    pub help: &'static str,
}

/// Field separators. Spreadsheets write semicolons in locales where the decimal separator is a comma.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// Iterates over records, skipping blank lines.
pub struct Records<'t> {
    text: &'t str,
    position: usize,
    separator: u8,
}

impl<'t> Records<'t> {
    /// Detects the separator from the header.
    pub fn new(text: &'t str) -> Self {
        let header = text.trim_start_matches(['\r', '\n']).lines().next().unwrap_or_default();
        let separator = SEPARATORS.into_iter().find(|separator| header.bytes().any(|byte| byte == *separator));
        Self { text, position: 0, separator: separator.unwrap_or(b',') }
    }

    /// Parses a field and its separator, and returns whether another field follows.
    fn cell(&mut self) -> Result<(Cell<'t>, bool), CsvError> {
        let (text, bytes, start) = (self.text, self.text.as_bytes(), self.position);
        let content = if bytes.get(start) == Some(&b'"') {
            self.quoted()?
        } else {
            let is_end = |byte: &u8| *byte == self.separator || *byte == b'\n';
            self.position = bytes[start..].iter().position(is_end).map_or(bytes.len(), |length| start + length);
            let is_line_end = bytes.get(self.position) != Some(&self.separator);
            let end = if is_line_end && bytes[start..self.position].ends_with(b"\r") {
                self.position - 1
            } else {
                self.position
            };
            let cell = Cell { text: Cow::Borrowed(&text[start..end]), range: start..end };
            return Ok((cell, self.skip_field_end()));
        };
        let range = start..self.position;
        if bytes[self.position..].starts_with(b"\r\n") || &bytes[self.position..] == b"\r" {
            self.position += 1;
        }
        match bytes.get(self.position) {
            Some(byte) if *byte != self.separator && *byte != b'\n' => {
                let next = text[self.position..].chars().next().map_or(1, char::len_utf8);
                Err(CsvError {
                    range: self.position..self.position + next,
                    message: "unexpected text after a closing quote",
                    help: "write a quote inside a quoted field twice: \"\"",
                })
            }
            _ => Ok((Cell { text: content, range }, self.skip_field_end())),
        }
    }

    /// Skips the end of a field, and returns whether another field follows.
    fn skip_field_end(&mut self) -> bool {
        let has_next = self.text.as_bytes().get(self.position) == Some(&self.separator);
        self.position = (self.position + 1).min(self.text.len());
        has_next
    }

    /// Parses a quoted field and moves past the closing quote.
    fn quoted(&mut self) -> Result<Cow<'t, str>, CsvError> {
        let opening = self.position;
        let mut content = Cow::Borrowed("");
        let mut start = opening + 1;
        loop {
            let Some(length) = self.text[start..].find('"') else {
                return Err(CsvError {
                    range: opening..opening + 1,
                    message: "unclosed quote",
                    help: "a field that begins with a quote must end with one",
                });
            };
            let end = start + length;
            let piece = &self.text[start..end];
            if content.is_empty() {
                content = Cow::Borrowed(piece);
            } else {
                content.to_mut().push_str(piece);
            }
            if !self.text[end + 1..].starts_with('"') {
                self.position = end + 1;
                return Ok(content);
            }
            content.to_mut().push('"');
            start = end + 2;
        }
    }
}

impl<'t> Iterator for Records<'t> {
    type Item = Result<Vec<Cell<'t>>, CsvError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.position < self.text.len() {
            let mut cells = Vec::with_capacity(8);
            loop {
                match self.cell() {
                    Ok((cell, has_next)) => {
                        cells.push(cell);
                        if !has_next {
                            break;
                        }
                    }
                    Err(error) => {
                        self.position = self.text.len();
                        return Some(Err(error));
                    }
                }
            }
            let is_blank = cells.len() == 1 && cells[0].range.is_empty();
            if !is_blank {
                return Some(Ok(cells));
            }
        }
        None
    }
}

/// Whether a spreadsheet would evaluate a field, ignoring quotes that escape it.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// Escapes a field that a spreadsheet would evaluate as a formula, with a leading quote.
pub fn escape_formula(text: &str) -> Cow<'_, str> {
    if is_formula(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// Removes the quote that [`escape_formula`] added.
pub fn unescape_formula(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.strip_prefix('\'').filter(|rest| is_formula(rest)) {
        Some(rest) => Cow::Owned(rest.to_owned()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn read(text: &str) -> Result<Vec<Vec<String>>, CsvError> {
        let texts = |cells: Vec<Cell<'_>>| cells.into_iter().map(|cell| cell.text.into_owned()).collect();
        Records::new(text).map(|record| record.map(texts)).collect()
    }

    #[rstest]
    #[case::plain("a,b\n1,2\n", r#"[["a","b"],["1","2"]]"#)]
    #[case::without_a_last_line_end("a,b\n1,2", r#"[["a","b"],["1","2"]]"#)]
    #[case::windows("a,b\r\n1,\"2\"\r\n", r#"[["a","b"],["1","2"]]"#)]
    #[case::blank_lines("\n\na,b\n\r\n\n1,2\n\n", r#"[["a","b"],["1","2"]]"#)]
    #[case::quotes("a,b\n\"x, \"\"y\"\"\nz\",\"\"\n", r#"[["a","b"],["x, \"y\"\nz",""]]"#)]
    #[case::only_quotes("a\n\"\"\"\"\n", r#"[["a"],["\""]]"#)]
    #[case::empty_fields("a,b,c\n,,\n", r#"[["a","b","c"],["","",""]]"#)]
    #[case::semicolons("a;b\n1,5;2\n", r#"[["a","b"],["1,5","2"]]"#)]
    #[case::tabs("a\tb\n1\t2\n", r#"[["a","b"],["1","2"]]"#)]
    #[case::a_quote_in_the_middle("a\n5\" wide\n", r#"[["a"],["5\" wide"]]"#)]
    #[case::nothing("", "[]")]
    fn parses_records(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(serde_json::to_string(&read(text).expect("records")).expect("JSON"), expected);
    }

    #[rstest]
    #[case("a,b\n1,\"2\n3,4\n", 6..7, "unclosed quote")]
    #[case("a,b\n\"1\"é,2\n", 7..9, "unexpected text after a closing quote")]
    #[case("a\n\"1\" ,\n", 5..6, "unexpected text after a closing quote")]
    fn rejects_malformed_quotes(#[case] text: &str, #[case] range: Range<usize>, #[case] message: &str) {
        let error = read(text).expect_err("malformed quotes");
        assert_eq!((error.range, error.message), (range, message));
    }

    #[test]
    fn fields_have_byte_ranges() {
        let text = "a,b\r\n\"x\"\"\",é\r\n";
        let ranges: Vec<&str> =
            Records::new(text).flat_map(|cells| cells.expect("cells")).map(|cell| &text[cell.range]).collect();
        assert_eq!(ranges, ["a", "b", "\"x\"\"\"", "é"]);
    }

    proptest! {
        #[test]
        fn quoted_fields_round_trip(rows in proptest::collection::vec(proptest::collection::vec("(?s).{0,12}", 3), 1..6)) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n";
            let text: String = std::iter::once("a,b,c\r\n".to_owned()).chain(rows.iter().map(line)).collect();
            prop_assert_eq!(&read(&text).expect("records")[1..], &rows[..]);
        }

        #[test]
        fn never_panics(text in "[ab\",;\t\r\né]{0,40}") {
            let _ = read(&text);
        }
    }

    #[test]
    fn escaped_formulas_round_trip() {
        for text in ["=1+1", "@SUM(A1)", "\t=1", "-5", "'=1", "it's", "'quoted'", "", "a=b"] {
            let escaped = escape_formula(text);
            assert!(!escaped.starts_with(['=', '+', '-', '@', '\t', '\r']), "{escaped}");
            assert_eq!(unescape_formula(escaped), text);
        }
    }
}
