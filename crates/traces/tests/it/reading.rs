//! Reading of files in any format.

use std::io::{self, Cursor, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use karat_traces::{EXPECTED_CONTENT, Piece, ReadError, TraceFormat, read};
use rstest::rstest;

use crate::fixture::read_text;

/// Renders each result as one line.
fn render(read: impl IntoIterator<Item = Result<Piece, ReadError>>) -> Vec<String> {
    let show = |result: Result<Piece, ReadError>| match result {
        Ok(Piece::Whole(imported)) => format!("{} {}", imported.format, imported.trace_id),
        Ok(Piece::Parts(parts)) => format!("{} part of {}: {} spans", parts.source, parts.trace_id, parts.spans.len()),
        Err(error) => format!("! {error}"),
    };
    read.into_iter().map(show).collect()
}

const A: &str = r#"{"trace_id":"a","steps":[]}"#;
const B: &str = r#"{"trace_id":"b","steps":[]}"#;

#[rstest]
#[case::empty("", &[])]
#[case::one_document(A, &["karat a"])]
#[case::lines(&format!("{A}\n\n{B}\n"), &["karat a", "karat b"])]
#[case::a_list(&format!("[{A}, {B}]"), &["karat a", "karat b"])]
#[case::a_wrapper(&format!("{{\"traces\": [{A}, {B}]}}"), &["karat a", "karat b"])]
#[case::broken_lines(
    &format!("{A}\n{{\"trace_id\":\n{{\"steps\":[]}}\n{{\"x\":1}}\n{B}\n"),
    &["karat a", "! line 2: invalid JSON: unexpected end of input", "! line 3: missing 'trace_id'", "! line 4: unrecognised trace format", "karat b"]
)]
#[case::a_broken_element(&format!("[{A}, {{1: 2}}, {B}]"), &["karat a", "! item 2: invalid JSON: object keys must be in double quotes", "karat b"])]
#[case::truncated_list(&format!("[{A}, {{\"trace_id\""), &["karat a", "! item 2: incomplete value at line 1: the file is truncated"])]
#[case::a_document_with_a_trailing_comma(
    "\n{\n  \"trace_id\": \"a\",\n  \"steps\": [],\n}\n",
    &["! line 2: invalid JSON: trailing comma (line 5)"]
)]
#[case::truncated_document(
    "{\n  \"trace_id\": \"a\",\n  \"steps\": [\n",
    &["! line 1: incomplete value at line 4: the file is truncated"]
)]
#[case::several_formats_in_one_file(
    &format!("{A}\n{{\"id\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hi\"}}]}}\n"),
    &["karat a", "openai m-f392fa9b660d"]
)]
#[case::lists_of_messages(
    "[{\"role\":\"user\",\"content\":\"Hi\"}]\n[{\"role\":\"user\",\"content\":\"Ho\"}]\n",
    &["openai openai-557f6d9586f57ae72d24a7d34f47ed21", "openai openai-b51315f6694299a53dcc7fcb727d4b29"]
)]
#[case::too_deep(&format!("{A}\n{}{}\n{B}", "[".repeat(500), "]".repeat(500)), &["karat a", "! line 2: invalid JSON: nested more than 127 levels deep", "karat b"])]
fn reads_valid_values_and_reports_the_others(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(render(read_text(None, text)), expected);
}

#[test]
fn reads_compressed_files() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(format!("{A}\n{B}\n").as_bytes()).expect("memory");
    let packed = encoder.finish().expect("memory");
    assert_eq!(render(read(None, Cursor::new(packed))), ["karat a", "karat b"]);
}

/// The order of lines does not matter.
#[test]
fn reads_traces_after_values_without_a_known_format() {
    let text = format!("{{\"hello\": 1}}\n{{\"hello\": 2}}\n{A}\n{{\"hello\": 3}}\n{B}\n");
    let expected = [
        "! line 1: unrecognised trace format",
        "! line 2: unrecognised trace format",
        "karat a",
        "! line 4: unrecognised trace format",
        "karat b",
    ];
    assert_eq!(render(read_text(None, &text)), expected);
    let list = format!("[{{\"hello\": 1}}, {A}]");
    assert_eq!(render(read_text(None, &list)), ["! item 1: unrecognised trace format", "karat a"]);
}

#[rstest]
#[case("{\"hello\": 1}\n")]
#[case("{\"hello\": 1}\n{\"hello\": 2}\n")]
#[case(&"{\"hello\": 1}\n".repeat(2000))]
#[case("plain text\n")]
#[case::zip(&format!("PK\u{3}\u{4}\u{14}{}\u{1}\0\0\0a", "\0".repeat(21)))]
#[case("42")]
fn rejects_unrecognised_formats(#[case] text: &str) {
    let read = read_text(None, text);
    assert_eq!(read.len(), 1);
    let error = read.into_iter().next().expect("one result").expect_err("unknown format");
    assert!(matches!(error, ReadError::UnknownFormat(_)));
    let message = error.to_string();
    assert!(message.starts_with("unrecognised trace format ("), "{message}");
    assert!(TraceFormat::ALL.iter().all(|format| EXPECTED_CONTENT.contains(format.name())));
}

#[test]
fn a_given_format_is_not_detected_again() {
    let read = render(read_text(Some(TraceFormat::TauBench), &format!("{A}\nnot JSON\n")));
    assert_eq!(read, ["! line 1: 'traj' is not a list of messages", "! line 2: invalid JSON: starts with 'not'"]);
}

/// An endless text, generated while it is read.
struct Endless<F> {
    next: F,
    left: Cursor<Vec<u8>>,
}

impl<F: FnMut() -> String> Endless<F> {
    fn new(next: F) -> Self {
        Self { next, left: Cursor::default() }
    }
}

impl<F: FnMut() -> String> Read for Endless<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.left.read(into)? {
            0 => {
                self.left = Cursor::new((self.next)().into_bytes());
                self.left.read(into)
            }
            count => Ok(count),
        }
    }
}

#[test]
fn reads_lines_one_by_one() {
    let endless = Endless::new(|| format!("{A}\n"));
    assert_eq!(read(None, endless).take(10_000).flatten().count(), 10_000);
}

#[test]
fn reads_list_elements_one_by_one() {
    let mut started = false;
    let endless =
        Endless::new(move || if std::mem::replace(&mut started, true) { format!(",{A}") } else { format!("[{A}") });
    assert_eq!(read(None, endless).take(10_000).flatten().count(), 10_000);
}

#[test]
fn an_io_error_ends_the_iteration() {
    struct BrokenReader(bool);
    impl Read for BrokenReader {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("disk gone"));
            }
            let text = format!("{A}\n{B}\n{{");
            into[..text.len()].copy_from_slice(text.as_bytes());
            Ok(text.len())
        }
    }
    // The first two bytes are read separately to detect compression.
    let read = render(read(None, Cursor::new(format!("{A}\n")).chain(BrokenReader(false))));
    assert_eq!(read, ["karat a", "karat a", "karat b", "! disk gone"]);
}

#[rstest]
#[case("null", "the JSON is neither an object nor a list")]
#[case("\"a text\"\n", "the JSON is neither an object nor a list")]
#[case("1\n2\n", "the JSON is neither an object nor a list")]
#[case("nothing", "neither JSON nor OpenTelemetry protobuf")]
#[case("12 monkeys", "neither JSON nor OpenTelemetry protobuf")]
fn reports_why_the_format_is_unrecognised(#[case] text: &str, #[case] reason: &str) {
    assert_eq!(render(read_text(None, text)), [format!("! unrecognised trace format ({reason})")]);
}

#[test]
fn protobuf_with_a_bracket_as_length_is_not_json() {
    // It is recognised by its control characters, not by its second byte.
    let error =
        read(None, Cursor::new(b"\n{\n\x01\x02".to_vec())).next().expect("one result").expect_err("not OTLP either");
    assert!(matches!(error, ReadError::UnknownFormat(_)), "{error}");
}

#[test]
fn replaces_lone_surrogates() {
    let text = r#"{"trace_id": "t", "steps": [{"input": "cut \ud83d", "output": "ok"}]}"#;
    assert_eq!(render(read_text(None, text)), ["karat t"]);
    let mut read = read_text(None, text);
    let Ok(Piece::Whole(imported)) = read.remove(0) else { panic!("expected a whole trace") };
    assert!(imported.document.contains("cut \u{fffd}") || imported.document.contains("cut \\ufffd"));
}
