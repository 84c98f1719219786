//! Converts a trace's JSON text to Python's marshal format.
//!
//! Python in WebAssembly takes longer to parse JSON than to judge most traces; it reads marshal data in a third of the
//! time. Values are those of Python's `json.loads`: lone surrogates are allowed, integers have any length, and the last
//! of two equal keys wins.

use std::collections::HashMap;
use std::fmt;

/// Maximum nesting of a trace, as in Python's own parser.
const MAX_DEPTH: usize = 990;

/// Maximum number of digits of an integer, as in Python.
const MAX_INTEGER_DIGITS: usize = 4300;

/// Longest key that is written once and then referenced, in bytes.
const MAX_SHARED_KEY_BYTES: usize = 64;
/// Maximum number of shared keys; a trace with more has keys that do not repeat.
const MAX_SHARED_KEYS: usize = 4096;

/// A trace in Python's marshal format.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MarshalTrace {
    pub(crate) marshal: Vec<u8>,
    /// The `trace_id` of the trace: a string, or the digits of a number.
    pub(crate) trace_id: Option<String>,
}

/// The error for a string that is not a valid trace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TranscodeError {
    /// A lower-case fragment.
    message: String,
    /// In bytes, from 0.
    offset: usize,
}

impl fmt::Display for TranscodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at column {}", self.message, self.offset + 1)
    }
}

/// Converts a trace's JSON text to Python's marshal format.
pub(crate) fn transcode(text: &[u8]) -> Result<MarshalTrace, TranscodeError> {
    let mut transcoder = Transcoder {
        text,
        at: 0,
        depth: 0,
        out: Vec::with_capacity(text.len() + 64),
        keys: HashMap::new(),
        trace_id: None,
    };
    transcoder.object_document()?;
    Ok(MarshalTrace { marshal: transcoder.out, trace_id: transcoder.trace_id })
}

/// Converts two JSON objects to a Python tuple of both.
pub(crate) fn transcode_pair(first: &[u8], second: &[u8]) -> Result<Vec<u8>, TranscodeError> {
    const SMALL_TUPLE: u8 = b')';
    let mut pair = vec![SMALL_TUPLE, 2];
    let mut keys = HashMap::new();
    for text in [first, second] {
        // References to keys count the objects of the whole tuple.
        let mut transcoder = Transcoder { text, at: 0, depth: 0, out: pair, keys, trace_id: None };
        transcoder.object_document()?;
        (pair, keys) = (transcoder.out, transcoder.keys);
    }
    Ok(pair)
}

struct Transcoder<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
    out: Vec<u8>,
    /// Index of each key in the list of shared objects.
    keys: HashMap<Vec<u8>, u32>,
    trace_id: Option<String>,
}

/// Flag of an object that can be referenced later.
const SHARED: u8 = 0x80;

type ParseResult = Result<(), TranscodeError>;

impl Transcoder<'_> {
    /// Converts a text that must be one object.
    fn object_document(&mut self) -> ParseResult {
        self.skip_space();
        let is_object = self.peek() == Some(b'{');
        self.value()?;
        self.end()?;
        if is_object {
            return Ok(());
        }
        Err(TranscodeError { message: "a trace must be a JSON object".to_owned(), offset: 0 })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn error(&self, message: &str) -> TranscodeError {
        let message = if self.at >= self.text.len() { "invalid JSON: unexpected end of text" } else { message };
        TranscodeError { message: message.to_owned(), offset: self.at }
    }

    fn end(&mut self) -> ParseResult {
        self.skip_space();
        if self.at < self.text.len() { Err(self.error("invalid JSON: unexpected text after the end")) } else { Ok(()) }
    }

    fn value(&mut self) -> ParseResult {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => {
                let text = self.string()?;
                self.write_text(&text, 0);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true", b'T'),
            Some(b'f') => self.literal(b"false", b'F'),
            Some(b'n') => self.literal(b"null", b'N'),
            _ => Err(self.error("invalid JSON: expected a value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> ParseResult) -> ParseResult {
        if self.depth == MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn literal(&mut self, literal: &[u8], code: u8) -> ParseResult {
        if !self.text[self.at..].starts_with(literal) {
            return Err(self.error("invalid JSON: expected a value"));
        }
        self.at += literal.len();
        self.out.push(code);
        Ok(())
    }

    fn list(&mut self) -> ParseResult {
        self.out.push(b'[');
        let count_at = self.out.len();
        self.out.extend([0; 4]);
        let mut count = 0_u32;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            self.value()?;
            count += 1;
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.error("invalid JSON: expected ',' or ']'")),
            }
        }
        self.at += 1;
        self.out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
        Ok(())
    }

    fn object(&mut self) -> ParseResult {
        self.out.push(b'{');
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.out.push(b'0');
            return Ok(());
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.error("invalid JSON: expected a key"));
            }
            let key = self.string()?;
            let is_id = self.depth == 1 && key == b"trace_id";
            self.write_key(key);
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.error("invalid JSON: expected ':'"));
            }
            self.at += 1;
            self.skip_space();
            let start = self.at;
            self.value()?;
            if is_id {
                self.record_id(start);
            }
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.error("invalid JSON: expected ',' or '}'")),
            }
        }
        self.at += 1;
        self.out.push(b'0');
        Ok(())
    }

    fn record_id(&mut self, start: usize) {
        let end = std::mem::replace(&mut self.at, start);
        self.trace_id = match self.peek() {
            Some(b'"') => self.string().ok().map(|text| String::from_utf8_lossy(&text).into_owned()),
            Some(b'-' | b'0'..=b'9') => Some(String::from_utf8_lossy(&self.text[start..end]).into_owned()),
            _ => None,
        };
        self.at = end;
    }

    fn write_key(&mut self, key: Vec<u8>) {
        if let Some(index) = self.keys.get(&key) {
            self.out.push(b'r');
            self.out.extend(index.to_le_bytes());
        } else if key.len() <= MAX_SHARED_KEY_BYTES && self.keys.len() < MAX_SHARED_KEYS {
            self.write_text(&key, SHARED);
            let next = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
            self.keys.insert(key, next);
        } else {
            self.write_text(&key, 0);
        }
    }

    fn write_text(&mut self, text: &[u8], flag: u8) {
        let long = u32::try_from(text.len()).unwrap_or(u32::MAX);
        match (text.is_ascii(), u8::try_from(text.len())) {
            (true, Ok(short)) => self.out.extend([b'z' | flag, short]),
            (true, Err(_)) => {
                self.out.push(b'a' | flag);
                self.out.extend(long.to_le_bytes());
            }
            (false, _) => {
                self.out.push(b'u' | flag);
                self.out.extend(long.to_le_bytes());
            }
        }
        self.out.extend(text);
    }

    /// Parses a string as UTF-8 that may contain lone surrogates, as in Python's marshal format.
    fn string(&mut self) -> Result<Vec<u8>, TranscodeError> {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
                self.at += 1;
            }
            let plain = &self.text[start..self.at];
            if let Err(error) = std::str::from_utf8(plain) {
                return Err(TranscodeError {
                    message: "invalid UTF-8".to_owned(),
                    offset: start + error.valid_up_to(),
                });
            }
            text.extend(plain);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => self.escape(&mut text)?,
                _ => return Err(self.error("invalid JSON: control character in a string")),
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> ParseResult {
        self.at += 1;
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.at += 1;
                let mut code = self.hex()?;
                if (0xD800..0xDC00).contains(&code) && self.text[self.at..].starts_with(b"\\u") {
                    let before = self.at;
                    self.at += 2;
                    let second = self.hex()?;
                    if (0xDC00..0xE000).contains(&second) {
                        code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
                    } else {
                        self.at = before;
                    }
                }
                push_code(text, code);
                return Ok(());
            }
            _ => return Err(self.error("invalid JSON: unknown escape")),
        };
        self.at += 1;
        text.push(plain);
        Ok(())
    }

    fn hex(&mut self) -> Result<u32, TranscodeError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code << 4 | digit.ok_or_else(|| self.error("invalid JSON: expected four hex digits"))?;
            self.at += 1;
        }
        Ok(code)
    }

    fn digits(&mut self) -> Result<usize, TranscodeError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.error("invalid JSON: expected a digit")) } else { Ok(self.at - start) }
    }

    fn number(&mut self) -> ParseResult {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let first = self.at;
        let count = self.digits()?;
        if count > 1 && self.text[first] == b'0' {
            self.at = first;
            return Err(self.error("invalid JSON: a number must not start with 0"));
        }
        let mut is_integer = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
            is_integer = false;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
            is_integer = false;
        }
        if is_integer {
            if count > MAX_INTEGER_DIGITS {
                let message = format!("integer with more than {MAX_INTEGER_DIGITS} digits");
                return Err(TranscodeError { message, offset: start });
            }
            write_integer(&mut self.out, &self.text[first..self.at], negative);
        } else {
            // The text was checked above, so parsing succeeds. Numbers that are too large are infinite, as in Python.
            let number = std::str::from_utf8(&self.text[start..self.at]).ok().and_then(|text| text.parse::<f64>().ok());
            self.out.push(b'g');
            self.out.extend(number.unwrap_or(f64::NAN).to_le_bytes());
        }
        Ok(())
    }
}

/// Writes a code point as UTF-8, surrogates included.
fn push_code(text: &mut Vec<u8>, code: u32) {
    if let Some(character) = char::from_u32(code) {
        text.extend(character.encode_utf8(&mut [0; 4]).bytes());
    } else {
        let part = |shift: u32, mark: u32| u8::try_from((code >> shift & 0x3F) | mark).unwrap_or(b'?');
        text.extend([part(12, 0xE0), part(6, 0x80), part(0, 0x80)]);
    }
}

/// Writes an integer in four bytes or in 15-bit digits.
fn write_integer(out: &mut Vec<u8>, digits: &[u8], negative: bool) {
    let text = std::str::from_utf8(digits).unwrap_or("0");
    if let Ok(number) = text.parse::<i64>()
        && let Ok(short) = i32::try_from(if negative { -number } else { number })
    {
        out.push(b'i');
        out.extend(short.to_le_bytes());
        return;
    }
    let mut parts: Vec<u16> = Vec::new();
    for chunk in digits.chunks(4) {
        let (scale, added) =
            chunk.iter().fold((1_u32, 0_u32), |(scale, sum), digit| (scale * 10, sum * 10 + u32::from(digit - b'0')));
        let mut carry = added;
        for part in &mut parts {
            let sum = u32::from(*part) * scale + carry;
            *part = low_bits(sum);
            carry = sum >> 15;
        }
        while carry > 0 {
            parts.push(low_bits(carry));
            carry >>= 15;
        }
    }
    let count = i32::try_from(parts.len()).unwrap_or(i32::MAX);
    out.push(b'l');
    out.extend((if negative { -count } else { count }).to_le_bytes());
    for part in parts {
        out.extend(part.to_le_bytes());
    }
}

fn low_bits(number: u32) -> u16 {
    u16::try_from(number & 0x7FFF).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::Value;

    use super::*;

    fn marshal(text: &str) -> Vec<u8> {
        transcode(text.as_bytes()).expect("a trace").marshal
    }

    #[rstest]
    #[case("{}", b"{0")]
    #[case(r#"{"a":null}"#, b"{\xfa\x01aN0")]
    #[case(r#" { "a" : [ true , false ] } "#, b"{\xfa\x01a[\x02\0\0\0TF0")]
    #[case(r#"{"a":1,"a":-1}"#, b"{\xfa\x01ai\x01\0\0\0r\0\0\0\0i\xff\xff\xff\xff0")]
    #[case(r#"{"a":1.5}"#, b"{\xfa\x01ag\0\0\0\0\0\0\xf8\x3f0")]
    #[case(r#"{"a":"\u00e9"}"#, b"{\xfa\x01au\x02\0\0\0\xc3\xa90")]
    #[case(r#"{"a":"\ud83d\ude00"}"#, b"{\xfa\x01au\x04\0\0\0\xf0\x9f\x98\x800")]
    #[case(r#"{"a":"\ud83dx"}"#, b"{\xfa\x01au\x04\0\0\0\xed\xa0\xbdx0")]
    fn writes_marshal_data(#[case] text: &str, #[case] expected: &[u8]) {
        assert_eq!(marshal(text), expected);
    }

    #[rstest]
    #[case("2147483648", false)]
    #[case("-2147483649", true)]
    #[case("18446744073709551615", false)]
    #[case("170141183460469231731687303715884105727", false)]
    fn writes_large_integers_in_15_bit_digits(#[case] number: &str, #[case] negative: bool) {
        let written = marshal(&format!("{{\"a\":{number}}}"));
        let (head, digits) = written[4..written.len() - 1].split_at(5);
        let count = i32::from_le_bytes(head[1..].try_into().expect("four bytes"));
        assert_eq!((head[0], count < 0, digits.len()), (b'l', negative, 2 * count.unsigned_abs() as usize));
        let value =
            digits.chunks(2).rev().fold(0_u128, |sum, two| sum << 15 | u128::from(two[0]) | u128::from(two[1]) << 8);
        assert_eq!(value.to_string(), number.trim_start_matches('-'));
    }

    #[rstest]
    #[case(r#"{"trace_id":"a\nb"}"#, Some("a\nb"))]
    #[case(r#"{"trace_id":17}"#, Some("17"))]
    #[case(r#"{"trace_id":null}"#, None)]
    #[case(r#"{"steps":[{"trace_id":"inner"}]}"#, None)]
    #[case(r#"{"trace_id":"a","trace_id":"b"}"#, Some("b"))]
    fn finds_the_trace_id(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(transcode(text.as_bytes()).expect("a trace").trace_id.as_deref(), expected);
    }

    #[rstest]
    #[case("", "invalid JSON: unexpected end of text at column 1")]
    #[case("[1]", "a trace must be a JSON object at column 1")]
    #[case("{\"a\":1", "invalid JSON: unexpected end of text at column 7")]
    #[case("{\"a\":01}", "invalid JSON: a number must not start with 0 at column 6")]
    #[case("{\"a\":NaN}", "invalid JSON: expected a value at column 6")]
    #[case("{'a':1}", "invalid JSON: expected a key at column 2")]
    #[case("{\"a\":1}}", "invalid JSON: unexpected text after the end at column 8")]
    #[case("{\"a\":\"\t\"}", "invalid JSON: control character in a string at column 7")]
    fn reports_the_error_and_column(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(transcode(text.as_bytes()).expect_err("an invalid trace").to_string(), expected);
    }

    #[test]
    fn limits_nesting() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(transcode(nested(MAX_DEPTH - 1).as_bytes()).is_ok());
        assert!(
            transcode(nested(MAX_DEPTH).as_bytes()).expect_err("too deep").to_string().contains("nested too deeply")
        );
        assert!(transcode("{\"a\":".repeat(1_000_000).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn accepts_only_valid_json(text in r#"\{"a":[ \[\]{}",:0-9eE.+\-truefalsn\\]{0,12}\}"#) {
            prop_assert_eq!(transcode(text.as_bytes()).is_ok(), serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = transcode(&bytes);
        }
    }
}
