//! Decodes streams of events: server-sent events, or JSON lines.

use karat_json::{parse, without_bom};
use serde_json::{Value, json};

/// How the events of a stream are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    ServerSentEvents,
    JsonLines,
}

/// Splits the bytes of a stream, in chunks of any size, into events.
#[derive(Debug)]
pub(crate) struct EventDecoder {
    framing: Framing,
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// Whether the first line, which may start with a BOM, was read.
    is_started: bool,
    /// Whether the last line ended with CR; a following LF belongs to it.
    ended_with_cr: bool,
    /// The name and data of an incomplete event.
    name: Vec<u8>,
    data: Vec<u8>,
    /// The first line that is not part of an event.
    unrecognised_line: Option<String>,
    is_done: bool,
    events: Vec<Value>,
}

impl EventDecoder {
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            line: Vec::new(),
            is_started: false,
            ended_with_cr: false,
            name: Vec::new(),
            data: Vec::new(),
            unrecognised_line: None,
            is_done: false,
            events: Vec::new(),
        }
    }

    /// The number of complete events.
    pub(crate) fn count(&self) -> usize {
        self.events.len()
    }

    /// Whether the stream announced its end.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    pub(crate) fn push(&mut self, mut chunk: &[u8]) -> Result<(), String> {
        while !chunk.is_empty() && !self.is_done {
            if std::mem::take(&mut self.ended_with_cr) && chunk[0] == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let is_end = |byte: &u8| *byte == b'\n' || *byte == b'\r' && self.framing == Framing::ServerSentEvents;
            let Some(end) = chunk.iter().position(is_end) else {
                self.line.extend_from_slice(chunk);
                return Ok(());
            };
            self.ended_with_cr = chunk[end] == b'\r';
            if self.line.is_empty() {
                self.end_line(&chunk[..end])?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&chunk[..end]);
                self.end_line(&line)?;
            }
            chunk = &chunk[end + 1..];
        }
        Ok(())
    }

    /// Ends the stream and returns its events. Many servers leave out the last empty line.
    pub(crate) fn finish(mut self) -> Result<Vec<Value>, String> {
        if !self.is_done {
            let count = self.events.len();
            let line = std::mem::take(&mut self.line);
            self.end_line(&line).and_then(|()| self.dispatch()).map_err(|error| {
                let is_cut_off = self.events.len() == count;
                if is_cut_off { format!("the stream ends in the middle of an event: {error}") } else { error }
            })?;
        }
        match (self.events.is_empty(), self.unrecognised_line) {
            (true, Some(line)) => Err(format!("the reply is not a stream of events: {line}")),
            (true, None) => Err("the reply has no events".to_owned()),
            (false, _) => Ok(self.events),
        }
    }

    fn end_line(&mut self, line: &[u8]) -> Result<(), String> {
        let line = if std::mem::replace(&mut self.is_started, true) { line } else { without_bom(line) };
        if self.framing == Framing::JsonLines {
            let line = line.trim_ascii();
            return if line.is_empty() { Ok(()) } else { self.push_event(line, b"") };
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.name = value.to_vec(),
            // Comments, which keep the connection alive.
            b"" | b"id" | b"retry" => {}
            _ if self.unrecognised_line.is_none() => {
                self.unrecognised_line = Some(String::from_utf8_lossy(line).into_owned());
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends an event. The data of an event without data is null, since some streams announce their end this way.
    fn dispatch(&mut self) -> Result<(), String> {
        let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        match data.trim_ascii() {
            b"" if name.is_empty() => Ok(()),
            b"" => self.push_event(b"null", &name),
            b"[DONE]" => {
                self.is_done = true;
                Ok(())
            }
            data => self.push_event(data, &name),
        }
    }

    fn push_event(&mut self, data: &[u8], name: &[u8]) -> Result<(), String> {
        let name = String::from_utf8_lossy(name);
        let parsed = std::str::from_utf8(data)
            .map_err(|error| error.to_string())
            .and_then(|text| parse(text).map_err(|error| error.describe(text)));
        let value = match parsed {
            Ok(value) => value,
            // An error may be plain text.
            Err(_) if name == "error" => String::from_utf8_lossy(data).into(),
            Err(error) => {
                let number = self.events.len() + 1;
                let text = String::from_utf8_lossy(data);
                return Err(format!("event {number} of the reply is not valid JSON ({error}): {text}"));
            }
        };
        // `message` is the default name of events.
        let is_repeated = ["type", "event"].iter().any(|key| value.get(key).and_then(Value::as_str) == Some(&name));
        let is_bare = name.is_empty() || name == "message" || is_repeated;
        self.events.push(if is_bare { value } else { json!({"event": name, "data": value}) });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn decode(framing: Framing, chunks: &[&[u8]]) -> Result<Vec<Value>, String> {
        let mut decoder = EventDecoder::new(framing);
        chunks.iter().try_for_each(|chunk| decoder.push(chunk))?;
        decoder.finish()
    }

    fn sse(text: &str) -> Result<Value, String> {
        decode(Framing::ServerSentEvents, &[text.as_bytes()]).map(Value::Array)
    }

    #[rstest]
    #[case("data: {\"a\": 1}\n\n", json!([{"a": 1}]))]
    #[case("\u{feff}data:1\n\ndata:  2\n\n", json!([1, 2]))]
    #[case("data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n", json!([1, 2, 3]))]
    #[case("data: {\ndata: \"a\":\ndata: 1}\n\n", json!([{"a": 1}]))]
    #[case(": hello\n\nid: 5\nretry: 10\ndata: 1\n\n:\n\n", json!([1]))]
    #[case("event: end\n\ndata: 1\n\n", json!([{"event": "end", "data": null}, 1]))]
    #[case("event: values\ndata: {\"a\": 1}\n\n", json!([{"event": "values", "data": {"a": 1}}]))]
    #[case("data: {\"type\": \"x\"}\nevent: x\n\n", json!([{"type": "x"}]))]
    #[case("event: x\ndata: {\"event\": \"x\"}\n\n", json!([{"event": "x"}]))]
    #[case("event: message\ndata: 1\n\n", json!([1]))]
    #[case("event: error\ndata: it broke\n\n", json!([{"event": "error", "data": "it broke"}]))]
    #[case("data: 1\n\ndata: [DONE]\n\ndata: nonsense\n\n", json!([1]))]
    #[case("data: 1\n\ndata: [DONE]", json!([1]))]
    #[case("data: 1\n\ndata: 2", json!([1, 2]))]
    #[case("data: 1\n\ndata: 2\n", json!([1, 2]))]
    #[case("data\ndata: 1\n\n", json!([1]))]
    fn reads_server_sent_events(#[case] text: &str, #[case] expected: Value) {
        assert_eq!(sse(text), Ok(expected));
    }

    #[rstest]
    #[case("", "the reply has no events")]
    #[case(": only a comment\n\n", "the reply has no events")]
    #[case("data: [DONE]\n\n", "the reply has no events")]
    #[case("<html>\n</html>", "the reply is not a stream of events: <html>")]
    #[case("data: 1\n\ndata: x\n\n", "event 2 of the reply is not valid JSON (expected value at line 1 column 1): x")]
    #[case(
        "data: {\"a\": 1, \"a\": 2}\n\n",
        "event 1 of the reply is not valid JSON (duplicate key 'a' at line 1 column 10): {\"a\": 1, \"a\": 2}"
    )]
    #[case(
        "data: 1\n\ndata: {\"a",
        "the stream ends in the middle of an event: event 2 of the reply is not valid JSON (EOF while parsing a string at line 1 column 4): {\"a"
    )]
    fn rejects_invalid_streams(#[case] text: &str, #[case] message: &str) {
        assert_eq!(sse(text), Err(message.to_owned()));
    }

    #[rstest]
    #[case("{\"a\": 1}\n\n 2 \r\n3", Ok(json!([{"a": 1}, 2, 3])))]
    #[case("\u{feff}1\n", Ok(json!([1])))]
    #[case("\n", Err("the reply has no events".to_owned()))]
    #[case("1\n{\"a\"", Err("the stream ends in the middle of an event: event 2 of the reply is not valid JSON (EOF while parsing an object at line 1 column 5): {\"a\"".to_owned()))]
    fn reads_json_lines(#[case] text: &str, #[case] expected: Result<Value, String>) {
        assert_eq!(decode(Framing::JsonLines, &[text.as_bytes()]).map(Value::Array), expected);
    }

    const STREAM: &str =
        "\u{feff}: hi\r\ndata: {\"t\": \"日本\r\rdata: \"😀\"\r\n\r\nevent: x\ndata: [1,\ndata: 2]\n\ndata: [DONE]\n\n";

    #[test]
    fn decodes_streams_split_at_any_byte() {
        let stream = STREAM.replace("日本", "日本\"}");
        let expected = json!([{"t": "日本"}, "😀", {"event": "x", "data": [1, 2]}]);
        assert_eq!(sse(&stream), Ok(expected.clone()));
        for at in 0..=stream.len() {
            let (left, right) = stream.as_bytes().split_at(at);
            let events = decode(Framing::ServerSentEvents, &[left, right]);
            assert_eq!(events.map(Value::Array), Ok(expected.clone()), "split at {at}");
        }
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(decode(Framing::ServerSentEvents, &bytes).map(Value::Array), Ok(expected));
    }

    proptest! {
        #[test]
        fn chunk_sizes_do_not_change_the_events(
            text in "((data|event|id|x)?(: ?)?([\\[{}1a\"]|\\[DONE\\]){0,3}(\r|\n|\r\n|\n\n)){0,12}",
            sizes in proptest::collection::vec(1_usize..6, 1..40),
            json_lines: bool,
        ) {
            let framing = if json_lines { Framing::JsonLines } else { Framing::ServerSentEvents };
            let mut rest = text.as_bytes();
            let mut chunks = Vec::new();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            prop_assert_eq!(decode(framing, &chunks), decode(framing, &[text.as_bytes()]));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), json_lines: bool) {
            let framing = if json_lines { Framing::JsonLines } else { Framing::ServerSentEvents };
            let _ = decode(framing, &[&bytes]);
        }
    }
}
