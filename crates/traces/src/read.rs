//! Reads a file or stream of any supported format.

use std::collections::VecDeque;
use std::io::{self, Read};

use serde_json::Value;

use crate::detect::{detect, is_message, wrapper_key};
use crate::format::TraceFormat;
use crate::gzip;
use crate::json::{json_error, replace_lone_surrogates};
use crate::otlp::ParsedSpans;
use crate::piece::{Piece, RefusedItem};
use crate::values::{Location, MAX_VALUE_BYTES, PeekedInput, ValueReader, ValueText};
use crate::{jaeger, karat, langfuse, langsmith, messages, otlp, tau_bench};

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
        line_messages: Vec::new(),
        first_message_location: None,
    }
}

/// An iterator over the pieces of a source.
pub struct TraceReader {
    given_format: Option<TraceFormat>,
    /// The format of the last value.
    last_format: Option<TraceFormat>,
    state: State,
    ready: VecDeque<Result<Piece, RefusedItem>>,
    /// The messages of a conversation with one message per line, and the location of the first one.
    line_messages: Vec<Value>,
    first_message_location: Option<Location>,
}

enum State {
    Unopened(Box<dyn Read + Send>),
    Open(Box<ValueReader>),
    Ended,
}

impl TraceReader {
    /// Returns the format that was given or detected. `None` before the first value unless it was given.
    pub fn format(&self) -> Option<TraceFormat> {
        self.given_format.or(self.last_format)
    }

    fn open(&mut self, input: Box<dyn Read + Send>) -> Result<State, ReadError> {
        let peeked = PeekedInput::read(gzip::decompress(input)?)?;
        match peeked.first_byte() {
            None => Ok(State::Ended),
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
                Err(error) => self.ready.push_back(Err(RefusedItem { location, message: error.to_string() })),
            }
        }
        if is_truncated {
            let message = "unexpected end of input: the file is truncated".to_owned();
            self.ready.push_back(Err(RefusedItem { location: next, message }));
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
        let Some(format) = self.given_format.or_else(|| detect(&value, self.last_format)) else {
            if self.last_format.is_none() {
                return Err(unknown(&text.location.to_string()));
            }
            return Err(ReadError::Refused(refused("unrecognised trace format".to_owned())));
        };
        self.last_format = Some(format);
        self.read_value(format, value, &bytes, text.location);
        Ok(())
    }

    /// Reads the collected conversation with one message per line.
    fn flush_conversation(&mut self) {
        let Some(location) = self.first_message_location.take() else { return };
        let value = Value::Array(std::mem::take(&mut self.line_messages));
        let format = self.given_format.or_else(|| detect(&value, self.last_format)).unwrap_or(TraceFormat::OpenAi);
        self.last_format = Some(format);
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
        let location = location.to_string();
        let spans = match format {
            TraceFormat::Otlp => otlp::read_value(value),
            TraceFormat::Jaeger => jaeger::read_value(value),
            TraceFormat::LangSmith => Ok(langsmith::read(&value)),
            TraceFormat::Karat
            | TraceFormat::OpenAi
            | TraceFormat::Anthropic
            | TraceFormat::TauBench
            | TraceFormat::Langfuse => {
                let whole = match format {
                    TraceFormat::Karat => karat::read(&value, text),
                    TraceFormat::TauBench => tau_bench::read(&value, text),
                    TraceFormat::Langfuse => langfuse::read(&value, text),
                    _ => messages::read(format, &value, text),
                };
                self.ready.push_back(match whole {
                    Ok(imported) => Ok(Piece::Whole(Box::new(imported))),
                    Err(message) => Err(RefusedItem { location, message }),
                });
                return;
            }
        };
        match spans {
            Ok(read) => self.push_spans(read, Some(&location)),
            Err(error) => self.ready.push_back(Err(RefusedItem { location, message: error.to_string() })),
        }
    }

    fn push_spans(&mut self, read: ParsedSpans, location: Option<&String>) {
        self.ready.extend(read.traces.into_iter().map(|parts| Ok(Piece::Parts(Box::new(parts)))));
        self.ready.extend(read.refused.into_iter().map(|refused| {
            let location = location
                .map_or_else(|| refused.location.clone(), |location| format!("{location}, {}", refused.location));
            Err(RefusedItem { location, message: refused.message })
        }));
    }
}

impl Iterator for TraceReader {
    type Item = Result<Piece, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(result) = self.ready.pop_front() {
                return Some(result.map_err(ReadError::Refused));
            }
            let state = std::mem::replace(&mut self.state, State::Ended);
            let step = match state {
                State::Ended => return None,
                State::Unopened(input) => self.open(input).map(|state| self.state = state),
                State::Open(mut values) => match values.next() {
                    Ok(None) => {
                        self.flush_conversation();
                        return self.next_ready();
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
            };
            if let Err(error) = step {
                return Some(Err(error));
            }
        }
    }
}

impl TraceReader {
    fn next_ready(&mut self) -> Option<Result<Piece, ReadError>> {
        self.ready.pop_front().map(|result| result.map_err(ReadError::Refused))
    }
}

/// Whether the head of a text is one or more JSON values.
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
