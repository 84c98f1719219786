//! The reply to an HTTP request: JSON, or a stream of events.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use karat_http::header::{CONTENT_TYPE, LOCATION};
use karat_http::{Response, RetryClass, StatusCode, read_body, read_chunks};
use serde_json::Value;

use crate::exchange::ExchangeRecord;
use crate::reply::parse_reply;
use crate::reply_error::find_error_event;
use crate::response_map::Format;
use crate::retry::AttemptError;
use crate::stream::{EventDecoder, Framing};

/// A reply whose body is not parsed yet.
#[derive(Debug)]
pub(crate) struct HttpReply {
    status: StatusCode,
    pub(crate) class: RetryClass,
    location: Option<String>,
    body: Body,
    pub(crate) elapsed: Duration,
}

#[derive(Debug)]
enum Body {
    Bytes(Vec<u8>),
    Events { events: Result<Vec<Value>, String>, arrivals: Vec<Duration> },
}

/// The content of a successful reply.
#[derive(Debug)]
pub(crate) struct Content {
    /// A stream is the list of its events.
    pub(crate) value: Value,
    pub(crate) is_stream: bool,
    /// When each event arrived, since the request was sent.
    pub(crate) arrivals: Vec<Duration>,
}

impl HttpReply {
    /// Receives the body of a response to a request that was sent at `start`.
    pub(crate) async fn receive(
        response: Response,
        format: Option<Format>,
        max_bytes: u64,
        start: Instant,
        mut record: Option<&mut ExchangeRecord<'_>>,
    ) -> Result<Self, AttemptError> {
        if let Some(record) = &mut record {
            record.set_response(&response);
        }
        let (status, class) = (response.status(), RetryClass::of(&response));
        let location =
            response.headers().get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let body = match framing(&response, format) {
            None => {
                let body = read_body(response, max_bytes).await?;
                if let Some(record) = record {
                    record.push(&body);
                }
                Body::Bytes(body)
            }
            Some(framing) => receive_events(response, framing, max_bytes, start, record).await?,
        };
        Ok(Self { status, class, location, body, elapsed: start.elapsed() })
    }

    /// Returns an error message if the status is not 2xx.
    pub(crate) fn check_status(&self) -> Result<(), String> {
        if self.status.is_success() {
            return Ok(());
        }
        let mut message = format!("the agent returned HTTP {}", self.status);
        if let Some(location) = self.location.as_ref().filter(|_| self.status.is_redirection()) {
            // Redirects are not followed, so that headers are not sent to other hosts.
            let _ = write!(message, " (redirect to {location}): set that URL as the endpoint");
        } else if let Body::Bytes(body) = &self.body
            && !body.is_empty()
        {
            let _ = write!(message, ": {}", String::from_utf8_lossy(body).trim());
        }
        if matches!(self.status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY) {
            message.push_str(" (the keys of the request are set by 'agent.request' in karat.json)");
        }
        Err(message)
    }

    /// Parses the body. With `allow_json_lines`, a body that is not a single JSON value may consist of JSON lines,
    /// regardless of its content type.
    pub(crate) fn into_content(self, format: Option<Format>, allow_json_lines: bool) -> Result<Content, String> {
        self.check_status()?;
        let body = match self.body {
            Body::Bytes(body) => body,
            Body::Events { events, arrivals } => {
                return Ok(Content { value: Value::Array(events?), is_stream: true, arrivals });
            }
        };
        if body.trim_ascii().is_empty() {
            return Err("the reply is empty".to_owned());
        }
        let value = match parse_reply(&body) {
            Ok(value) => value,
            Err(error) => {
                let mut decoder = EventDecoder::new(Framing::JsonLines);
                let lines = Some(&body).filter(|_| allow_json_lines && format.is_none());
                let events = lines.and_then(|body| decoder.push(body).and_then(|()| decoder.finish()).ok());
                let Some(events) = events.filter(|events| events.len() > 1) else {
                    let body = String::from_utf8_lossy(&body);
                    return Err(format!("the reply is not valid JSON ({error}): {body}"));
                };
                return Ok(Content { value: Value::Array(events), is_stream: true, arrivals: Vec::new() });
            }
        };
        let is_stream = format.is_some_and(|format| format != Format::Json);
        // An agent may answer without a stream, for example with an error.
        let value = if is_stream && !value.is_array() { Value::Array(vec![value]) } else { value };
        Ok(Content { value, is_stream, arrivals: Vec::new() })
    }
}

/// Returns how events are separated, if the response is a stream.
fn framing(response: &Response, format: Option<Format>) -> Option<Framing> {
    if !response.status().is_success() || format == Some(Format::Json) {
        return None;
    }
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match (format, media_type.as_str()) {
        (Some(Format::Jsonl), _) => Some(Framing::JsonLines),
        (Some(Format::Sse), "application/json") => None,
        (Some(Format::Sse), _) | (None, "text/event-stream") => Some(Framing::ServerSentEvents),
        (None, "application/x-ndjson" | "application/ndjson" | "application/jsonl" | "application/x-jsonlines") => {
            Some(Framing::JsonLines)
        }
        _ => None,
    }
}

async fn receive_events(
    response: Response,
    framing: Framing,
    max_bytes: u64,
    start: Instant,
    mut record: Option<&mut ExchangeRecord<'_>>,
) -> Result<Body, AttemptError> {
    let mut decoder = EventDecoder::new(framing);
    let mut arrivals = Vec::new();
    let mut failure = None;
    let received = read_chunks(response, max_bytes, |chunk| {
        if let Some(record) = &mut record {
            record.push(chunk);
        }
        failure = decoder.push(chunk).err();
        arrivals.resize(decoder.count(), start.elapsed());
        if failure.is_some() || decoder.is_done() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .await;
    let count = decoder.count();
    let events = match failure {
        Some(failure) => Err(failure),
        None => decoder.finish(),
    };
    if let Err(error) = received {
        let error = AttemptError::from(error);
        // Some servers send an error event and then break the connection.
        let reported = events.map(Value::Array).ok().as_ref().and_then(find_error_event);
        return Err(match reported {
            Some(reported) => AttemptError { message: format!("the agent replied with an error: {reported}"), ..error },
            None => AttemptError { message: format!("{} (after {count} events)", error.message), ..error },
        });
    }
    arrivals.resize(count.max(events.as_ref().map_or(0, Vec::len)), start.elapsed());
    Ok(Body::Events { events, arrivals })
}
