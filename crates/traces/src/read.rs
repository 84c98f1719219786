//! Reads a file or a stream, whatever kind it is of.

use std::collections::VecDeque;
use std::io::{self, Read};

use serde_json::Value;

use crate::detect::{detect, is_message, wrapped};
use crate::gzip;
use crate::json::{why_no_json, without_half_characters};
use crate::kind::Kind;
use crate::otlp::SpansRead;
use crate::piece::{Piece, Refused};
use crate::values::{LONGEST, Opened, Place, Text, Values};
use crate::{jaeger, karat, langfuse, langsmith, messages, otlp, tau_bench};

const NEITHER: &str = "it is neither JSON nor OpenTelemetry's protobuf";

/// Why there is no piece.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// One thing could not be read; what follows it can.
    #[error("{}: {}", .0.place, .0.message)]
    Refused(Refused),
    /// Nobody knows what it is: nothing of [`LOOKED_FOR`](crate::LOOKED_FOR) is there. Reading has ended.
    #[error("no known kind of traces: {0}")]
    Unknown(String),
    /// Reading has ended.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads traces from JSON documents, lists and lines, from protobuf, and from any of these compressed by gzip. The kind
/// is found out by the content where it is not given.
///
/// One line or element of a list is held at a time, so that a file may be of any size. A line, an element, or a document
/// that is no list may be 256 MB long. What gzip makes 400 times larger than the file is not unpacked.
pub fn read(kind: Option<Kind>, input: impl Read + Send + 'static) -> Reading {
    Reading {
        kind,
        before: None,
        state: State::Closed(Box::new(input)),
        ready: VecDeque::new(),
        told: Vec::new(),
        told_from: None,
    }
}

/// An iterator over what a source says.
pub struct Reading {
    /// The kind, where it was given.
    kind: Option<Kind>,
    /// The kind of what was read last.
    before: Option<Kind>,
    state: State,
    ready: VecDeque<Result<Piece, Refused>>,
    /// The messages of a conversation of which each has a line, and where the first is.
    told: Vec<Value>,
    told_from: Option<Place>,
}

enum State {
    Closed(Box<dyn Read + Send>),
    Open(Box<Values>),
    Ended,
}

impl Reading {
    /// Returns the kind that was given or found out, once something was read.
    pub fn kind(&self) -> Option<Kind> {
        self.kind.or(self.before)
    }

    fn open(&mut self, input: Box<dyn Read + Send>) -> Result<State, ReadError> {
        let opened = Opened::read(gzip::unpacked(input)?)?;
        match opened.first_byte() {
            None => Ok(State::Ended),
            // A message of OpenTelemetry begins with a line break and may go on with a bracket, so this comes first.
            _ if opened.is_binary() && self.kind.is_none_or(|kind| kind == Kind::Otlp) => {
                self.read_protobuf(opened.into_reader())
            }
            Some(b'{' | b'[') => Ok(State::Open(Box::new(opened.into_values(is_conversation)))),
            _ if self.kind.is_some() => Ok(State::Open(Box::new(opened.into_values(is_conversation)))),
            _ if is_json(&opened.head) => Err(unknown("its JSON is neither an object nor a list")),
            _ => Err(unknown(NEITHER)),
        }
    }

    fn read_protobuf(&mut self, input: Box<dyn Read + Send>) -> Result<State, ReadError> {
        let mut bytes = Vec::new();
        input.take(LONGEST as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > LONGEST {
            let message = format!("longer than {} MB; as JSON lines it may have any size", LONGEST >> 20);
            return Err(ReadError::Refused(Refused { place: "the message".to_owned(), message }));
        }
        let (messages, is_cut_off) = length_prefixed(&bytes).unwrap_or_else(|| (vec![&bytes], false));
        let many = messages.len() > 1 || is_cut_off;
        let next = format!("message {}", messages.len() + 1);
        for (number, message) in (1_u64..).zip(messages) {
            let place = format!("message {number}");
            match otlp::read_protobuf(message) {
                Ok(read) => self.take_spans(read, many.then_some(&place)),
                Err(_) if self.kind.is_none() && self.ready.is_empty() => return Err(unknown(NEITHER)),
                Err(why) => self.ready.push_back(Err(Refused { place, message: why.to_string() })),
            }
        }
        if is_cut_off {
            let message = "it ends too early: the file is cut off".to_owned();
            self.ready.push_back(Err(Refused { place: next, message }));
        }
        self.before = Some(Kind::Otlp);
        Ok(State::Ended)
    }

    /// Reads what one value says.
    fn take(&mut self, text: Text) -> Result<(), ReadError> {
        let refused = |message: String| Refused { place: text.place.to_string(), message };
        let bytes = match text.text {
            Ok(bytes) => bytes,
            Err(why) => return Err(ReadError::Refused(refused(why))),
        };
        let (value, bytes): (Value, Vec<u8>) = match serde_json::from_slice(&bytes) {
            Ok(value) => (value, bytes),
            Err(error) => {
                let mended = without_half_characters(&bytes);
                match mended.and_then(|mended| Some((serde_json::from_slice(&mended).ok()?, mended))) {
                    Some(mended) => mended,
                    None => return Err(ReadError::Refused(refused(no_json(&bytes, &error, text.place)))),
                }
            }
        };
        let is_line = matches!(text.place, Place::Line(_)) && value.is_object() && is_message(&value);
        if is_line && self.kind.or(self.before).is_none_or(is_log) && detect(&value, None).is_none() {
            self.told.push(value);
            self.told_from.get_or_insert(text.place);
            return Ok(());
        }
        self.end_conversation();
        let Some(kind) = self.kind.or_else(|| detect(&value, self.before)) else {
            if self.before.is_none() {
                return Err(unknown(&format!("{} is of none", text.place)));
            }
            return Err(ReadError::Refused(refused("of no known kind".to_owned())));
        };
        self.before = Some(kind);
        self.take_value(kind, value, &bytes, text.place);
        Ok(())
    }

    /// Reads the conversation of which each message had a line.
    fn end_conversation(&mut self) {
        let Some(place) = self.told_from.take() else { return };
        let value = Value::Array(std::mem::take(&mut self.told));
        let kind = self.kind.or_else(|| detect(&value, self.before)).unwrap_or(Kind::OpenAi);
        self.before = Some(kind);
        let text = value.to_string();
        self.take_one(kind, value, text.as_bytes(), place);
    }

    fn take_value(&mut self, kind: Kind, value: Value, text: &[u8], place: Place) {
        let many = match &value {
            Value::Array(items) => !(is_log(kind) && items.iter().any(is_message)),
            Value::Object(object) => {
                // Jaeger's and OpenTelemetry's readers know their own wrappers.
                !matches!(kind, Kind::Jaeger | Kind::Otlp)
                    && wrapped(object).is_some()
                    && detect(&value, None).is_some()
                    && !speaks_itself(kind, &value)
            }
            _ => false,
        };
        if many {
            let items = match value {
                Value::Array(items) => items,
                Value::Object(mut object) => match wrapped(&object).and_then(|name| object.shift_remove(name)) {
                    Some(Value::Array(items)) => items,
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            };
            for (number, item) in (1..).zip(items) {
                let text = item.to_string();
                self.take_one(kind, item, text.as_bytes(), place.item(number));
            }
            return;
        }
        self.take_one(kind, value, text, place);
    }

    fn take_one(&mut self, kind: Kind, value: Value, text: &[u8], place: Place) {
        let place = place.to_string();
        let spans = match kind {
            Kind::Otlp => otlp::read_value(value),
            Kind::Jaeger => jaeger::read_value(value),
            Kind::LangSmith => Ok(langsmith::read(&value)),
            Kind::Karat | Kind::OpenAi | Kind::Anthropic | Kind::TauBench | Kind::Langfuse => {
                let whole = match kind {
                    Kind::Karat => karat::read(&value, text),
                    Kind::TauBench => tau_bench::read(&value, text),
                    Kind::Langfuse => langfuse::read(&value, text),
                    _ => messages::read(kind, &value, text),
                };
                self.ready.push_back(match whole {
                    Ok(imported) => Ok(Piece::Whole(Box::new(imported))),
                    Err(message) => Err(Refused { place, message }),
                });
                return;
            }
        };
        match spans {
            Ok(read) => self.take_spans(read, Some(&place)),
            Err(why) => self.ready.push_back(Err(Refused { place, message: why.to_string() })),
        }
    }

    fn take_spans(&mut self, read: SpansRead, place: Option<&String>) {
        self.ready.extend(read.traces.into_iter().map(|parts| Ok(Piece::Parts(Box::new(parts)))));
        self.ready.extend(read.refused.into_iter().map(|refused| {
            let place = place.map_or_else(|| refused.place.clone(), |place| format!("{place}, {}", refused.place));
            Err(Refused { place, message: refused.message })
        }));
    }
}

impl Iterator for Reading {
    type Item = Result<Piece, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(one) = self.ready.pop_front() {
                return Some(one.map_err(ReadError::Refused));
            }
            let state = std::mem::replace(&mut self.state, State::Ended);
            let step = match state {
                State::Ended => return None,
                State::Closed(input) => self.open(input).map(|state| self.state = state),
                State::Open(mut values) => match values.next() {
                    Ok(None) => {
                        self.end_conversation();
                        return self.next_ready();
                    }
                    Ok(Some(text)) => {
                        let taken = self.take(text);
                        if !matches!(taken, Err(ReadError::Unknown(_) | ReadError::Io(_))) {
                            self.state = State::Open(values);
                        }
                        taken
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

impl Reading {
    fn next_ready(&mut self) -> Option<Result<Piece, ReadError>> {
        self.ready.pop_front().map(|one| one.map_err(ReadError::Refused))
    }
}

/// Tells whether the beginning of a text is JSON, whatever it says: one value, or several one after another.
fn is_json(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    serde_json::Deserializer::from_slice(text).into_iter::<Value>().all(|value| value.is_ok())
}

/// Tells whether a list is one conversation, by its first element.
fn is_conversation(first: &[u8]) -> bool {
    serde_json::from_slice::<Value>(first).is_ok_and(|value| is_message(&value))
}

fn is_log(kind: Kind) -> bool {
    matches!(kind, Kind::OpenAi | Kind::Anthropic)
}

/// Tells whether an object is a trace rather than a wrapper of many.
fn speaks_itself(kind: Kind, value: &Value) -> bool {
    let names: &[&str] = match kind {
        Kind::Karat => &["steps", "trace_id"],
        Kind::Langfuse => &["observations", "trace"],
        Kind::LangSmith => &["run_type"],
        Kind::OpenAi | Kind::Anthropic => &["messages", "request", "body"],
        Kind::TauBench => &["traj"],
        Kind::Otlp | Kind::Jaeger => &[],
    };
    names.iter().any(|name| value.get(*name).is_some())
}

/// Cuts up what the OpenTelemetry Collector writes into files: messages, each after its length in four bytes. Tells also
/// whether the last one is cut off, as while the Collector writes. What is no such file has no whole message at its
/// beginning: that of a request has a length of 160 MB.
fn length_prefixed(mut bytes: &[u8]) -> Option<(Vec<&[u8]>, bool)> {
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

fn unknown(why: &str) -> ReadError {
    ReadError::Unknown(why.to_owned())
}

/// Says why a value is no JSON. The line that the error names counts from the value's first one.
fn no_json(text: &[u8], error: &serde_json::Error, place: Place) -> String {
    let why = why_no_json(text, error);
    match place {
        Place::Line(first) if error.line() > 1 => format!("{why} (line {})", first + error.line() as u64 - 1),
        Place::Line(_) | Place::Item(_) | Place::LineItem(..) => why.to_string(),
    }
}
