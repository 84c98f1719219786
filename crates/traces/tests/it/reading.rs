//! Files of all kinds and none.

use std::io::{self, Cursor, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use karat_traces::{Kind, LOOKED_FOR, Piece, ReadError, read};
use rstest::rstest;

use crate::fixture::read_text;

/// Shows what is read, one line for each thing.
fn shown(read: impl IntoIterator<Item = Result<Piece, ReadError>>) -> Vec<String> {
    let show = |one: Result<Piece, ReadError>| match one {
        Ok(Piece::Whole(imported)) => format!("{} {}", imported.kind, imported.trace_id),
        Ok(Piece::Parts(parts)) => format!("{} part of {}: {} spans", parts.source, parts.trace_id, parts.spans.len()),
        Err(error) => format!("! {error}"),
    };
    read.into_iter().map(show).collect()
}

const A: &str = r#"{"trace_id":"a","steps":[]}"#;
const B: &str = r#"{"trace_id":"b","steps":[]}"#;

#[rstest]
#[case::nothing("", &[])]
#[case::one(A, &["karat a"])]
#[case::lines(&format!("{A}\n\n{B}\n"), &["karat a", "karat b"])]
#[case::a_list(&format!("[{A}, {B}]"), &["karat a", "karat b"])]
#[case::a_wrapper(&format!("{{\"traces\": [{A}, {B}]}}"), &["karat a", "karat b"])]
#[case::broken_among_good(
    &format!("{A}\n{{\"trace_id\":\n{{\"steps\":[]}}\n{{\"x\":1}}\n{B}\n"),
    &["karat a", "! line 2: not JSON: it ends too early", "! line 3: there is no 'trace_id'", "! line 4: of no known kind", "karat b"]
)]
#[case::a_broken_element(&format!("[{A}, {{1: 2}}, {B}]"), &["karat a", "! item 2: not JSON: a name is not in double quotes", "karat b"])]
#[case::cut_off(&format!("[{A}, {{\"trace_id\""), &["karat a", "! item 2: ends in the middle of a value, on line 1: the file is cut off"])]
#[case::a_document_with_a_comma_too_many(
    "\n{\n  \"trace_id\": \"a\",\n  \"steps\": [],\n}\n",
    &["! line 2: not JSON: a comma stands before a closing bracket (line 5)"]
)]
#[case::a_document_that_is_cut_off(
    "{\n  \"trace_id\": \"a\",\n  \"steps\": [\n",
    &["! line 1: ends in the middle of a value, on line 4: the file is cut off"]
)]
#[case::other_kinds_in_one_file(
    &format!("{A}\n{{\"id\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hi\"}}]}}\n"),
    &["karat a", "openai m-f392fa9b660d"]
)]
#[case::lists_of_messages(
    "[{\"role\":\"user\",\"content\":\"Hi\"}]\n[{\"role\":\"user\",\"content\":\"Ho\"}]\n",
    &["openai openai-557f6d9586f57ae72d24a7d34f47ed21", "openai openai-b51315f6694299a53dcc7fcb727d4b29"]
)]
#[case::too_deep(&format!("{A}\n{}{}\n{B}", "[".repeat(500), "]".repeat(500)), &["karat a", "! line 2: not JSON: too deep: more than 127 brackets are open at once", "karat b"])]
fn files_are_read_as_far_as_they_can_be(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(shown(read_text(None, text)), expected);
}

#[test]
fn compressed_files_are_read() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(format!("{A}\n{B}\n").as_bytes()).expect("memory");
    let packed = encoder.finish().expect("memory");
    assert_eq!(shown(read(None, Cursor::new(packed))), ["karat a", "karat b"]);
}

#[rstest]
#[case("{\"hello\": 1}\n")]
#[case("plain text\n")]
#[case("PK\u{3}\u{4}")]
#[case("42")]
fn who_does_not_know_says_what_was_looked_for(#[case] text: &str) {
    let read = read_text(None, text);
    assert_eq!(read.len(), 1);
    let error = read.into_iter().next().expect("one").expect_err("unknown");
    assert!(matches!(error, ReadError::Unknown(_)));
    let message = error.to_string();
    assert!(message.starts_with("no known kind of traces: "), "{message}");
    assert!(Kind::ALL.iter().all(|kind| LOOKED_FOR.contains(kind.name())));
}

#[test]
fn a_given_kind_is_not_doubted() {
    let read = shown(read_text(Some(Kind::TauBench), &format!("{A}\nnot JSON\n")));
    assert_eq!(read, ["! line 1: 'traj' is not a list of messages", "! line 2: not JSON: it begins with 'not'"]);
}

/// A text without end, made as it is read.
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
fn lines_are_read_one_by_one() {
    let endless = Endless::new(|| format!("{A}\n"));
    assert_eq!(read(None, endless).take(10_000).flatten().count(), 10_000);
}

#[test]
fn elements_of_a_list_are_read_one_by_one() {
    let mut begun = false;
    let endless =
        Endless::new(move || if std::mem::replace(&mut begun, true) { format!(",{A}") } else { format!("[{A}") });
    assert_eq!(read(None, endless).take(10_000).flatten().count(), 10_000);
}

#[test]
fn a_disk_that_fails_ends_the_reading() {
    struct Broken(bool);
    impl Read for Broken {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("disk gone"));
            }
            let text = format!("{A}\n{B}\n{{");
            into[..text.len()].copy_from_slice(text.as_bytes());
            Ok(text.len())
        }
    }
    // The first two bytes are read alone, to see whether it is compressed.
    let read = shown(read(None, Cursor::new(format!("{A}\n")).chain(Broken(false))));
    assert_eq!(read, ["karat a", "karat a", "karat b", "! disk gone"]);
}

#[rstest]
#[case("null", "its JSON is neither an object nor a list")]
#[case("\"a text\"\n", "its JSON is neither an object nor a list")]
#[case("1\n2\n", "its JSON is neither an object nor a list")]
#[case("nothing", "it is neither JSON nor OpenTelemetry's protobuf")]
#[case("12 monkeys", "it is neither JSON nor OpenTelemetry's protobuf")]
fn json_that_holds_no_trace_is_called_json(#[case] text: &str, #[case] why: &str) {
    assert_eq!(shown(read_text(None, text)), [format!("! no known kind of traces: {why}")]);
}

#[test]
fn protobuf_with_a_bracket_for_a_length_is_no_json() {
    // What it is shows by its control characters, not by its second byte.
    let error = read(None, Cursor::new(b"\n{\n\x01\x02".to_vec())).next().expect("one").expect_err("no OTLP either");
    assert!(matches!(error, ReadError::Unknown(_)), "{error}");
}

#[test]
fn half_a_character_costs_nothing_else() {
    let text = r#"{"trace_id": "t", "steps": [{"input": "cut \ud83d", "output": "ok"}]}"#;
    assert_eq!(shown(read_text(None, text)), ["karat t"]);
    let mut read = read_text(None, text);
    let Ok(Piece::Whole(imported)) = read.remove(0) else { panic!("it is whole") };
    assert!(imported.document.contains("cut \u{fffd}") || imported.document.contains("cut \\ufffd"));
}
