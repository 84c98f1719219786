//! A trace's JSON text, turned into Python's marshal format.
//!
//! Python inside WebAssembly takes longer to read JSON than to judge most traces; its own format is read in a third of
//! the time, and here is the place to find out that a text is no JSON. What Python's `json.loads` makes of a text is
//! what it finds: lone surrogates, whole numbers of any length, the last of two equal keys.

use std::collections::HashMap;
use std::fmt;

/// How deeply a trace may be nested, as in Python's own reader.
const DEEPEST: usize = 990;

/// How many digits a whole number may have, as in Python.
const MOST_DIGITS: usize = 4300;

/// Keys up to this length are written once and then referred to.
const LONGEST_SHARED_KEY: usize = 64;
/// How many keys are shared: what has more has keys that do not come again.
const MOST_SHARED_KEYS: usize = 4096;

/// A trace as Python reads it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Transcoded {
    pub(crate) marshal: Vec<u8>,
    /// The trace's own id: its text, or the digits of its number.
    pub(crate) trace_id: Option<String>,
}

/// Why a text is no trace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotATrace {
    /// A lower-case fragment.
    what: String,
    /// In bytes, from 0.
    at: usize,
}

impl fmt::Display for NotATrace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at column {}", self.what, self.at + 1)
    }
}

/// Turns a trace's JSON text into what Python reads.
pub(crate) fn transcode(text: &[u8]) -> Result<Transcoded, NotATrace> {
    let mut writer = Transcoder {
        text,
        at: 0,
        depth: 0,
        out: Vec::with_capacity(text.len() + 64),
        keys: HashMap::new(),
        trace_id: None,
    };
    writer.skip_space();
    if writer.peek() != Some(b'{') {
        // Whether it is JSON at all is the better thing to say.
        writer.value()?;
        writer.end()?;
        return Err(NotATrace { what: "a trace must be a JSON object, found something else".to_owned(), at: 0 });
    }
    writer.value()?;
    writer.end()?;
    Ok(Transcoded { marshal: writer.out, trace_id: writer.trace_id })
}

struct Transcoder<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
    out: Vec<u8>,
    /// Where in the list of shared objects a key is.
    keys: HashMap<Vec<u8>, u32>,
    trace_id: Option<String>,
}

/// Marks an object that later ones refer to.
const SHARED: u8 = 0x80;

type Step = Result<(), NotATrace>;

impl Transcoder<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn wrong(&self, what: &str) -> NotATrace {
        let what = if self.at >= self.text.len() { "not JSON: the text ends too early" } else { what };
        NotATrace { what: what.to_owned(), at: self.at }
    }

    fn end(&mut self) -> Step {
        self.skip_space();
        if self.at < self.text.len() { Err(self.wrong("not JSON: something follows the end")) } else { Ok(()) }
    }

    fn value(&mut self) -> Step {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => {
                let text = self.string()?;
                self.write_text(&text, 0);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true", b'T'),
            Some(b'f') => self.word(b"false", b'F'),
            Some(b'n') => self.word(b"null", b'N'),
            _ => Err(self.wrong("not JSON: expected a value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Step) -> Step {
        if self.depth == DEEPEST {
            return Err(self.wrong("nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn word(&mut self, word: &[u8], code: u8) -> Step {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.wrong("not JSON: expected a value"));
        }
        self.at += word.len();
        self.out.push(code);
        Ok(())
    }

    fn list(&mut self) -> Step {
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
                _ => return Err(self.wrong("not JSON: expected ',' or ']'")),
            }
        }
        self.at += 1;
        self.out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
        Ok(())
    }

    fn object(&mut self) -> Step {
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
                return Err(self.wrong("not JSON: expected a key"));
            }
            let key = self.string()?;
            let is_id = self.depth == 1 && key == b"trace_id";
            self.write_key(key);
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.wrong("not JSON: expected ':'"));
            }
            self.at += 1;
            self.skip_space();
            let start = self.at;
            self.value()?;
            if is_id {
                self.keep_id(start);
            }
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.wrong("not JSON: expected ',' or '}'")),
            }
        }
        self.at += 1;
        self.out.push(b'0');
        Ok(())
    }

    fn keep_id(&mut self, start: usize) {
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
        } else if key.len() <= LONGEST_SHARED_KEY && self.keys.len() < MOST_SHARED_KEYS {
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

    /// Reads a text, in UTF-8 where a lone surrogate may stand, as Python writes it too.
    fn string(&mut self) -> Result<Vec<u8>, NotATrace> {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
                self.at += 1;
            }
            let plain = &self.text[start..self.at];
            if let Err(error) = std::str::from_utf8(plain) {
                return Err(NotATrace { what: "not UTF-8".to_owned(), at: start + error.valid_up_to() });
            }
            text.extend(plain);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => self.escape(&mut text)?,
                _ => return Err(self.wrong("not JSON: a control character in a text")),
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Step {
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
            _ => return Err(self.wrong("not JSON: an unknown escape")),
        };
        self.at += 1;
        text.push(plain);
        Ok(())
    }

    fn hex(&mut self) -> Result<u32, NotATrace> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code << 4 | digit.ok_or_else(|| self.wrong("not JSON: expected four hex digits"))?;
            self.at += 1;
        }
        Ok(code)
    }

    fn digits(&mut self) -> Result<usize, NotATrace> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.wrong("not JSON: expected a digit")) } else { Ok(self.at - start) }
    }

    fn number(&mut self) -> Step {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let first = self.at;
        let count = self.digits()?;
        if count > 1 && self.text[first] == b'0' {
            self.at = first;
            return Err(self.wrong("not JSON: a number begins with 0"));
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
            whole = false;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
            whole = false;
        }
        if whole {
            if count > MOST_DIGITS {
                return Err(NotATrace { what: format!("a whole number of more than {MOST_DIGITS} digits"), at: start });
            }
            write_whole(&mut self.out, &self.text[first..self.at], negative);
        } else {
            // Digits only, so it is a text and a number: too large ones are infinite, as in Python.
            let number = std::str::from_utf8(&self.text[start..self.at]).ok().and_then(|text| text.parse::<f64>().ok());
            self.out.push(b'g');
            self.out.extend(number.unwrap_or(f64::NAN).to_le_bytes());
        }
        Ok(())
    }
}

/// Writes a code point as UTF-8, a surrogate too.
fn push_code(text: &mut Vec<u8>, code: u32) {
    if let Some(character) = char::from_u32(code) {
        text.extend(character.encode_utf8(&mut [0; 4]).bytes());
    } else {
        let part = |shift: u32, mark: u32| u8::try_from((code >> shift & 0x3F) | mark).unwrap_or(b'?');
        text.extend([part(12, 0xE0), part(6, 0x80), part(0, 0x80)]);
    }
}

/// Writes a whole number: in four bytes, or in digits of fifteen bits.
fn write_whole(out: &mut Vec<u8>, digits: &[u8], negative: bool) {
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
    fn writes_what_python_reads(#[case] text: &str, #[case] expected: &[u8]) {
        assert_eq!(marshal(text), expected);
    }

    #[rstest]
    #[case("2147483648", false)]
    #[case("-2147483649", true)]
    #[case("18446744073709551615", false)]
    #[case("170141183460469231731687303715884105727", false)]
    fn writes_long_numbers_in_digits_of_fifteen_bits(#[case] number: &str, #[case] negative: bool) {
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
    fn finds_the_id(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(transcode(text.as_bytes()).expect("a trace").trace_id.as_deref(), expected);
    }

    #[rstest]
    #[case("", "not JSON: the text ends too early at column 1")]
    #[case("[1]", "a trace must be a JSON object, found something else at column 1")]
    #[case("{\"a\":1", "not JSON: the text ends too early at column 7")]
    #[case("{\"a\":01}", "not JSON: a number begins with 0 at column 6")]
    #[case("{\"a\":NaN}", "not JSON: expected a value at column 6")]
    #[case("{'a':1}", "not JSON: expected a key at column 2")]
    #[case("{\"a\":1}}", "not JSON: something follows the end at column 8")]
    #[case("{\"a\":\"\t\"}", "not JSON: a control character in a text at column 7")]
    fn says_what_is_wrong(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(transcode(text.as_bytes()).expect_err("no trace").to_string(), expected);
    }

    #[test]
    fn is_not_nested_without_end() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(transcode(nested(DEEPEST - 1).as_bytes()).is_ok());
        assert!(transcode(nested(DEEPEST).as_bytes()).expect_err("too deep").to_string().contains("nested too deeply"));
        assert!(transcode("{\"a\":".repeat(1_000_000).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn takes_what_is_json_and_nothing_else(text in r#"\{"a":[ \[\]{}",:0-9eE.+\-truefalsn\\]{0,12}\}"#) {
            prop_assert_eq!(transcode(text.as_bytes()).is_ok(), serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = transcode(&bytes);
        }
    }
}
