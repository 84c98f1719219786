//! Reads a file or stream of any supported format.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;

use crate::detect::{detect, is_message, wrapper_key};
use crate::format::TraceFormat;
use crate::gzip;
use crate::otlp::ParsedSpans;
use crate::piece::{ImportedTrace, Piece, RefusedItem};
use crate::values::{Location, MAX_VALUE_BYTES, PeekedInput, ValueReader, ValueText};
use crate::zip::{self, ZipReader};
use crate::{
    adk, claude_code, codex, deepeval, inspect, jaeger, karat, langfuse, langsmith, messages, mlflow, openai_agents,
    otlp, swe_agent, tau_bench, tau2_bench,
};
use karat_chat::lenient::{json_error, replace_lone_surrogates};

/// Maximum number of values without a known format before the first one that has one.
const MAX_UNRECOGNISED: usize = 1000;

const UNKNOWN_FORMAT: &str = "unrecognised trace format";
const UNKNOWN_ENCODING: &str = "neither JSON nor OpenTelemetry protobuf";

/// Why a piece could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// One item could not be read. Reading continues after it.
    #[error("{}: {}", .0.location, .0.message)]
    Refused(RefusedItem),
    /// The input has none of the [`EXPECTED_CONTENT`](crate::EXPECTED_CONTENT). Reading has ended.
    #[error("unrecognised trace format ({0})")]
    UnknownFormat(String),
    /// Reading has ended.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads traces from JSON documents, lists and lines, and from protobuf, optionally compressed with gzip. The format is
/// detected unless it is given.
///
/// Holds one line or list element at a time, so files may have any size. A line, an element, or a document other than
/// a list is limited to 256 MB. Decompression stops at 400 times the size of the file.
pub fn read(format: Option<TraceFormat>, input: impl Read + Send + 'static) -> TraceReader {
    TraceReader {
        given_format: format,
        last_format: None,
        state: State::Unopened(Box::new(input)),
        ready: VecDeque::new(),
        location: String::new(),
        line_messages: Vec::new(),
        first_message_location: None,
        session: None,
        unrecognised: Vec::new(),
        requires_id: true,
    }
}

/// An iterator over the pieces of a source.
pub struct TraceReader {
    given_format: Option<TraceFormat>,
    /// The format of the last value.
    last_format: Option<TraceFormat>,
    state: State,
    /// The next pieces, each with its location.
    ready: VecDeque<(String, Result<Piece, RefusedItem>)>,
    /// The location of the last piece.
    location: String,
    /// The messages of a conversation with one message per line, and the location of the first one.
    line_messages: Vec<Value>,
    first_message_location: Option<Location>,
    session: Option<Session>,
    /// The values before the first one with a known format.
    unrecognised: Vec<Location>,
    requires_id: bool,
}

/// The lines of a coding agent's session that were read so far.
struct Session {
    format: TraceFormat,
    location: Location,
    entries: Vec<Value>,
    bytes: usize,
}

enum State {
    Unopened(Box<dyn Read + Send>),
    Open(Box<ValueReader>),
    /// An Inspect log, and the `eval` object of its header.
    Zip(Box<ZipReader>, Value),
    Ended,
}

impl TraceReader {
    /// Also accepts trace documents without `trace_id`. Their [`ImportedTrace::trace_id`](crate::ImportedTrace) is empty.
    #[must_use]
    pub fn without_required_ids(mut self) -> Self {
        self.requires_id = false;
        self
    }

    /// Returns the format that was given or detected. `None` before the first value unless it was given.
    pub fn format(&self) -> Option<TraceFormat> {
        self.given_format.or(self.last_format)
    }

    /// Returns the location of the last whole trace or spans: `line 3`, `item 12`.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Whether more of the input is in memory, so that the next piece may be available without blocking.
    pub fn has_buffered(&self) -> bool {
        !self.ready.is_empty() || matches!(&self.state, State::Open(values) if values.has_buffered())
    }

    fn open(&mut self, input: Box<dyn Read + Send>) -> Result<State, ReadError> {
        let peeked = PeekedInput::read(gzip::decompress(input)?)?;
        match peeked.first_byte() {
            None => Ok(State::Ended),
            _ if peeked.head.starts_with(zip::MAGIC) => {
                self.last_format = Some(TraceFormat::Inspect);
                Ok(State::Zip(Box::new(ZipReader::new(peeked.into_reader())), Value::Null))
            }
            // Checked first: an OpenTelemetry message starts with a line feed and may continue with a bracket.
            _ if peeked.is_binary() && self.given_format.is_none_or(|format| format == TraceFormat::Otlp) => {
                self.read_protobuf(peeked.into_reader())
            }
            Some(b'{' | b'[') => Ok(State::Open(Box::new(peeked.into_values(is_conversation)))),
            _ if self.given_format.is_some() => Ok(State::Open(Box::new(peeked.into_values(is_conversation)))),
            _ if is_json(&peeked.head) => Err(unknown("the JSON is neither an object nor a list")),
            _ => Err(unknown(UNKNOWN_ENCODING)),
        }
    }

    fn read_protobuf(&mut self, input: Box<dyn Read + Send>) -> Result<State, ReadError> {
        let mut bytes = Vec::new();
        input.take(MAX_VALUE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MAX_VALUE_BYTES {
            let message = format!("longer than {} MB; JSON Lines files may have any size", MAX_VALUE_BYTES >> 20);
            return Err(ReadError::Refused(RefusedItem { location: "the message".to_owned(), message }));
        }
        let (messages, is_truncated) = split_length_prefixed(&bytes).unwrap_or_else(|| (vec![&bytes], false));
        let has_many = messages.len() > 1 || is_truncated;
        let next = format!("message {}", messages.len() + 1);
        for (number, message) in (1_u64..).zip(messages) {
            let location = format!("message {number}");
            match otlp::read_protobuf(message) {
                Ok(read) => self.push_spans(read, has_many.then_some(&location)),
                Err(_) if self.given_format.is_none() && self.ready.is_empty() => {
                    return Err(unknown(UNKNOWN_ENCODING));
                }
                Err(error) => self.refuse(location, error.to_string()),
            }
        }
        if is_truncated {
            let message = "unexpected end of input: the file is truncated".to_owned();
            self.refuse(next, message);
        }
        self.last_format = Some(TraceFormat::Otlp);
        Ok(State::Ended)
    }

    /// Reads one value.
    fn read_text(&mut self, text: ValueText) -> Result<(), ReadError> {
        let refused = |message: String| RefusedItem { location: text.location.to_string(), message };
        let bytes = match text.text {
            Ok(bytes) => bytes,
            Err(error) => return Err(ReadError::Refused(refused(error))),
        };
        let (value, bytes): (Value, Vec<u8>) = match serde_json::from_slice(&bytes) {
            Ok(value) => (value, bytes),
            Err(error) => {
                let repaired = replace_lone_surrogates(&bytes);
                match repaired.and_then(|repaired| Some((serde_json::from_slice(&repaired).ok()?, repaired))) {
                    Some(repaired) => repaired,
                    None => {
                        return Err(ReadError::Refused(refused(describe_json_error(&bytes, &error, text.location))));
                    }
                }
            }
        };
        let is_line_message = matches!(text.location, Location::Line(_)) && value.is_object() && is_message(&value);
        if is_line_message
            && self.given_format.or(self.last_format).is_none_or(is_message_log)
            && detect(&value, None).is_none()
        {
            self.line_messages.push(value);
            self.first_message_location.get_or_insert(text.location);
            return Ok(());
        }
        self.flush_conversation();
        let format = self.given_format.or_else(|| self.session_format(&value));
        let Some(format) = format.or_else(|| detect(&value, self.last_format)) else {
            // Coding agents add kinds of lines with each version.
            if self.session.is_some() && value.is_object() {
                return Ok(());
            }
            if self.last_format.is_none() {
                self.unrecognised.push(text.location);
                return if self.unrecognised.len() < MAX_UNRECOGNISED { Ok(()) } else { self.reject_unrecognised() };
            }
            return Err(ReadError::Refused(refused(UNKNOWN_FORMAT.to_owned())));
        };
        self.recognise(format);
        self.read_value(format, value, &bytes, text.location);
        Ok(())
    }

    /// Sets the format of the last value, and refuses the values before the first one with a format.
    fn recognise(&mut self, format: TraceFormat) {
        self.last_format = Some(format);
        let unrecognised = std::mem::take(&mut self.unrecognised);
        // Coding agents add kinds of lines with each version.
        if !matches!(format, TraceFormat::ClaudeCode | TraceFormat::Codex) {
            for location in unrecognised {
                self.refuse(location.to_string(), UNKNOWN_FORMAT.to_owned());
            }
        }
    }

    /// Returns an error if no value had a known format.
    fn reject_unrecognised(&mut self) -> Result<(), ReadError> {
        let unrecognised = std::mem::take(&mut self.unrecognised);
        unrecognised.first().map_or(Ok(()), |first| Err(unknown(&first.to_string())))
    }

    /// Returns the format of the open session if a value is recognised only within it.
    fn session_format(&self, value: &Value) -> Option<TraceFormat> {
        let format = self.session.as_ref()?.format;
        (format == TraceFormat::Codex && value.as_object().is_some_and(codex::is_item)).then_some(format)
    }

    fn add_to_session(&mut self, format: TraceFormat, value: Value, bytes: usize, location: Location) {
        if self.session.as_ref().is_some_and(|session| session.format != format) {
            self.flush_session();
        }
        let session = self.session.get_or_insert_with(|| Session { format, location, entries: Vec::new(), bytes: 0 });
        if session.bytes + bytes > MAX_VALUE_BYTES {
            self.refuse(location.to_string(), format!("the session is longer than {} MB", MAX_VALUE_BYTES >> 20));
            return;
        }
        session.bytes += bytes;
        session.entries.push(value);
    }

    /// Reads the collected session.
    fn flush_session(&mut self) {
        let Some(session) = self.session.take() else { return };
        let traces = match session.format {
            TraceFormat::ClaudeCode => claude_code::read(&session.entries),
            _ => vec![codex::read(&session.entries)],
        };
        for trace in traces {
            self.push_whole(trace, session.location.to_string());
        }
    }

    /// Reads the next sample of an Inspect log. Returns whether there may be more.
    fn read_sample(&mut self, zip: &mut ZipReader, header: &mut Value) -> Result<bool, ReadError> {
        let is_header = |name: &str| matches!(name, "_journal/start.json" | "header.json");
        let is_sample = |name: &str| {
            name.starts_with("samples/") && Path::new(name).extension().is_some_and(|extension| extension == "json")
        };
        let Some(entry) = zip.next(|name| is_header(name) || is_sample(name))? else {
            if self.ready.is_empty() && header.is_null() {
                return Err(unknown("a zip file that is not an Inspect log"));
            }
            return Ok(false);
        };
        let refused = |message: String| ReadError::Refused(RefusedItem { location: entry.name.clone(), message });
        let bytes = entry.content.map_err(refused)?;
        let value: Value = serde_json::from_slice(&bytes)
            .or_else(|error| {
                let repaired = replace_lone_surrogates(&bytes).ok_or(error)?;
                serde_json::from_slice(&repaired)
            })
            .map_err(|error| refused(json_error(&bytes, &error).to_string()))?;
        if is_header(&entry.name) {
            *header = value.get("eval").cloned().unwrap_or_default();
        } else {
            self.push_whole(inspect::read_sample(&value, header), entry.name);
        }
        Ok(true)
    }

    fn push_whole(&mut self, trace: Result<ImportedTrace, String>, location: String) {
        match trace {
            Ok(imported) => self.ready.push_back((location, Ok(Piece::Whole(Box::new(imported))))),
            Err(message) => self.refuse(location, message),
        }
    }

    fn refuse(&mut self, location: String, message: String) {
        self.ready.push_back((location.clone(), Err(RefusedItem { location, message })));
    }

    /// Reads the collected conversation with one message per line.
    fn flush_conversation(&mut self) {
        let Some(location) = self.first_message_location.take() else { return };
        let value = Value::Array(std::mem::take(&mut self.line_messages));
        let format = self.given_format.or_else(|| detect(&value, self.last_format)).unwrap_or(TraceFormat::OpenAi);
        self.recognise(format);
        let text = value.to_string();
        self.read_item(format, value, text.as_bytes(), location);
    }

    fn read_value(&mut self, format: TraceFormat, value: Value, text: &[u8], location: Location) {
        let is_list = match &value {
            Value::Array(items) => !(is_message_log(format) && items.iter().any(is_message)),
            Value::Object(object) => {
                // The Jaeger and OpenTelemetry readers handle their own wrappers.
                !matches!(format, TraceFormat::Jaeger | TraceFormat::Otlp)
                    && wrapper_key(object).is_some()
                    && detect(&value, None).is_some()
                    && !is_single_trace(format, &value)
            }
            _ => false,
        };
        if is_list {
            let items = match value {
                Value::Array(items) => items,
                Value::Object(mut object) => match wrapper_key(&object).and_then(|name| object.shift_remove(name)) {
                    Some(Value::Array(items)) => items,
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            };
            for (number, item) in (1..).zip(items) {
                let text = item.to_string();
                self.read_item(format, item, text.as_bytes(), location.item(number));
            }
            return;
        }
        self.read_item(format, value, text, location);
    }

    fn read_item(&mut self, format: TraceFormat, value: Value, text: &[u8], location: Location) {
        let spans = match format {
            TraceFormat::Otlp => otlp::read_value(value),
            TraceFormat::Jaeger => jaeger::read_value(value),
            TraceFormat::LangSmith => Ok(langsmith::read(&value)),
            TraceFormat::OpenAiAgents => Ok(openai_agents::read(&value)),
            TraceFormat::Tau2Bench | TraceFormat::Inspect | TraceFormat::Adk | TraceFormat::DeepEval => {
                let traces = match format {
                    TraceFormat::Inspect => inspect::read(&value),
                    TraceFormat::Adk => adk::read(&value),
                    TraceFormat::DeepEval => deepeval::read(&value),
                    _ => tau2_bench::read(&value),
                };
                // A single trace has the location of its value.
                if traces.len() == 1 && matches!(format, TraceFormat::Adk | TraceFormat::DeepEval) {
                    for trace in traces {
                        self.push_whole(trace, location.to_string());
                    }
                    return;
                }
                for (number, trace) in (1..).zip(traces) {
                    self.push_whole(trace, location.item(number).to_string());
                }
                return;
            }
            TraceFormat::ClaudeCode | TraceFormat::Codex => {
                self.add_to_session(format, value, text.len(), location);
                return;
            }
            TraceFormat::Karat
            | TraceFormat::OpenAi
            | TraceFormat::Anthropic
            | TraceFormat::TauBench
            | TraceFormat::Mlflow
            | TraceFormat::SweAgent
            | TraceFormat::Langfuse => {
                let whole = match format {
                    TraceFormat::Karat => karat::read(&value, text, self.requires_id),
                    TraceFormat::TauBench => tau_bench::read(&value, text),
                    TraceFormat::Langfuse => langfuse::read(&value, text),
                    TraceFormat::Mlflow => mlflow::read(&value, text),
                    TraceFormat::SweAgent => swe_agent::read(&value, text),
                    _ => messages::read(format, &value, text),
                };
                self.push_whole(whole, location.to_string());
                return;
            }
        };
        let location = location.to_string();
        match spans {
            Ok(read) => self.push_spans(read, Some(&location)),
            Err(error) => self.refuse(location, error.to_string()),
        }
    }

    fn push_spans(&mut self, read: ParsedSpans, location: Option<&String>) {
        for parts in read.traces {
            self.ready.push_back((location.cloned().unwrap_or_default(), Ok(Piece::Parts(Box::new(parts)))));
        }
        for refused in read.refused {
            let location = location
                .map_or_else(|| refused.location.clone(), |location| format!("{location}, {}", refused.location));
            self.refuse(location, refused.message);
        }
    }

    fn next_ready(&mut self) -> Option<Result<Piece, ReadError>> {
        let (location, piece) = self.ready.pop_front()?;
        self.location = location;
        Some(piece.map_err(ReadError::Refused))
    }
}

impl Iterator for TraceReader {
    type Item = Result<Piece, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(result) = self.next_ready() {
                return Some(result);
            }
            let state = std::mem::replace(&mut self.state, State::Ended);
            let step = match state {
                State::Ended => return None,
                State::Unopened(input) => self.open(input).map(|state| self.state = state),
                State::Open(mut values) => match values.next() {
                    Ok(None) => {
                        self.flush_conversation();
                        self.flush_session();
                        return self.next_ready().or_else(|| self.reject_unrecognised().err().map(Err));
                    }
                    Ok(Some(text)) => {
                        let result = self.read_text(text);
                        if !matches!(result, Err(ReadError::UnknownFormat(_) | ReadError::Io(_))) {
                            self.state = State::Open(values);
                        }
                        result
                    }
                    Err(error) => Err(error.into()),
                },
                State::Zip(mut zip, mut header) => {
                    let result = self.read_sample(&mut zip, &mut header);
                    if matches!(result, Ok(true) | Err(ReadError::Refused(_))) {
                        self.state = State::Zip(zip, header);
                    }
                    result.map(|_| ())
                }
            };
            if let Err(error) = step {
                return Some(Err(error));
            }
        }
    }
}

/// Whether the head of text is one or more JSON values.
fn is_json(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    serde_json::Deserializer::from_slice(text).into_iter::<Value>().all(|value| value.is_ok())
}

/// Whether a list with this first element is a conversation.
fn is_conversation(first: &[u8]) -> bool {
    serde_json::from_slice::<Value>(first).is_ok_and(|value| is_message(&value))
}

fn is_message_log(format: TraceFormat) -> bool {
    matches!(format, TraceFormat::OpenAi | TraceFormat::Anthropic)
}

/// Whether an object is a trace rather than a wrapper of several.
fn is_single_trace(format: TraceFormat, value: &Value) -> bool {
    let names: &[&str] = match format {
        TraceFormat::Karat => &["steps", "trace_id"],
        TraceFormat::Langfuse => &["observations", "trace"],
        TraceFormat::LangSmith => &["run_type"],
        TraceFormat::OpenAi | TraceFormat::Anthropic => &["messages", "request", "body"],
        TraceFormat::TauBench => &["traj"],
        TraceFormat::Tau2Bench => &["simulations", "messages"],
        TraceFormat::Inspect => &["eval"],
        TraceFormat::Mlflow => &["info"],
        TraceFormat::OpenAiAgents => &["object"],
        TraceFormat::ClaudeCode => &["type"],
        TraceFormat::Codex => &["type", "session"],
        TraceFormat::Adk => &["events", "eval_cases", "evalCases", "eval_id", "evalId"],
        TraceFormat::SweAgent => &["trajectory"],
        TraceFormat::DeepEval => deepeval::KEYS,
        TraceFormat::Otlp | TraceFormat::Jaeger => &[],
    };
    names.iter().any(|name| value.get(*name).is_some())
}

/// Splits a file of the OpenTelemetry Collector into its messages, each prefixed with its length in four bytes. Also
/// returns whether the last one is truncated, which happens while the Collector writes. Other files do not start with a
/// complete message: the first bytes of a request would mean a length of 160 MB.
fn split_length_prefixed(mut bytes: &[u8]) -> Option<(Vec<&[u8]>, bool)> {
    let mut messages = Vec::new();
    while let Some((message, rest)) = first_message(bytes) {
        messages.push(message);
        bytes = rest;
    }
    messages.iter().any(|message| !message.is_empty()).then_some((messages, !bytes.is_empty()))
}

fn first_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

fn unknown(detail: &str) -> ReadError {
    ReadError::UnknownFormat(detail.to_owned())
}

/// Explains why a value is not valid JSON. The line of the error is relative to the first line of the value.
fn describe_json_error(text: &[u8], error: &serde_json::Error, location: Location) -> String {
    let reason = json_error(text, error);
    match location {
        Location::Line(first) if error.line() > 1 => format!("{reason} (line {})", first + error.line() as u64 - 1),
        Location::Line(_) | Location::Item(_) | Location::LineItem(..) => reason.to_string(),
    }
}
