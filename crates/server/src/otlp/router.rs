//! The addresses, and what becomes of a request.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{EXPECT, ORIGIN};
use axum::http::{HeaderMap, Method, Response, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::routing::{get, post};
use karat_traces::otlp::{SpansRead, Unreadable, read_json, read_logs_protobuf, read_traces_protobuf};
use karat_traces::{Refused, TraceParts};
use karat_workflows::receive_traces::{RefusedRequest, RefusedTrace};
use tracing::{Instrument as _, debug, debug_span};

use super::Signal;
use super::answer::{Partial, refused, stored};
use super::body::{BodyProblem, read_body};
use super::encoding::{Encoding, Packing};
use super::limits::Limits;
use super::room::{Arrived, Place, Room};
use super::unpack::{UnpackProblem, unpack};
use crate::sink::TraceSink;

/// How many refusals a message lists.
const MAX_LISTED: usize = 3;

/// What requests share.
struct Receiver {
    sink: Arc<dyn TraceSink>,
    room: Room,
    limits: Limits,
}

/// Why nothing of a request was taken.
struct Refusal {
    status: StatusCode,
    message: String,
}

/// Returns what takes OTLP at `/v1/traces` and `/v1/logs` and says at `/healthz` that it is there.
pub fn otlp_router(sink: Arc<dyn TraceSink>, limits: Limits) -> Router {
    let receiver = Arc::new(Receiver { sink, room: Room::new(limits.total_bytes), limits });
    Router::new()
        .route("/v1/traces", post(traces))
        .route("/v1/logs", post(logs))
        .route("/v1/metrics", post(metrics))
        .route("/healthz", get(healthy))
        .fallback(nothing_here)
        .with_state(receiver)
        .layer(from_fn(logged))
}

/// Logs a request and how it was answered.
async fn logged(request: Request, next: Next) -> Response<Body> {
    let span = debug_span!("request", method = %request.method(), path = %request.uri().path());
    let answer = async move {
        let start = Instant::now();
        let response = next.run(request).await;
        debug!(status = response.status().as_u16(), elapsed_ms = start.elapsed().as_millis(), "answered");
        response
    };
    answer.instrument(span).await
}

async fn traces(State(receiver): State<Arc<Receiver>>, request: Request) -> Response<Body> {
    receiver.answer(Signal::Traces, request).await
}

async fn logs(State(receiver): State<Arc<Receiver>>, request: Request) -> Response<Body> {
    receiver.answer(Signal::Logs, request).await
}

/// SDKs that are told one address send everything to it.
async fn metrics(State(receiver): State<Arc<Receiver>>, headers: HeaderMap) -> Response<Body> {
    let message = "metrics are not taken: OTEL_METRICS_EXPORTER=none keeps the SDK from sending them";
    receiver.tell(StatusCode::NOT_FOUND, 0, message);
    refused(StatusCode::NOT_FOUND, Encoding::of(&headers).ok(), message)
}

async fn healthy() -> &'static str {
    "ok\n"
}

async fn nothing_here(State(receiver): State<Arc<Receiver>>, method: Method) -> Response<Body> {
    let message = "nothing is here: spans are taken at /v1/traces, log records at /v1/logs";
    if method == Method::POST {
        receiver.tell(StatusCode::NOT_FOUND, 0, message);
    }
    refused(StatusCode::NOT_FOUND, None, message)
}

impl Receiver {
    async fn answer(&self, signal: Signal, request: Request) -> Response<Body> {
        let encoding = Encoding::of(request.headers());
        let answered = match &encoding {
            Ok(encoding) => self.take(signal, *encoding, request).await,
            Err(other) => Err(Refusal::media_type(other)),
        };
        match answered {
            Ok(partial) => {
                if let Some(Partial { rejected, message }) = &partial {
                    self.tell(StatusCode::OK, *rejected, message);
                }
                // An encoding that was not understood took nothing.
                stored(signal, encoding.unwrap_or(Encoding::Json), partial)
            }
            Err(Refusal { status, message }) => {
                self.tell(status, 0, &message);
                refused(status, encoding.ok(), &message)
            }
        }
    }

    fn tell(&self, status: StatusCode, rejected: u64, message: &str) {
        self.sink.refused(&RefusedRequest { status: status.as_u16(), rejected, message: message.to_owned() });
    }

    async fn take(&self, signal: Signal, encoding: Encoding, request: Request) -> Result<Option<Partial>, Refusal> {
        let headers = request.headers();
        // No agent's process says where it comes from; a page in a browser always does, and any page could write here.
        if headers.contains_key(ORIGIN) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "pages in a browser may not write here"));
        }
        let packing = Packing::of(headers).map_err(|other| Refusal::packing(&other))?;
        let waits = headers.contains_key(EXPECT);
        let mut place = self.room.place();
        let packed = read_body(request.into_body(), waits, &self.limits, &mut place)
            .await
            .map_err(|problem| self.body_refusal(&problem))?;
        let arrived = Arc::new(self.unpacked(packed, packing, place).await?);
        self.store(signal, encoding, arrived).await
    }

    async fn unpacked(&self, packed: Vec<u8>, packing: Packing, place: Place) -> Result<Arrived, Refusal> {
        if packing == Packing::Plain {
            return Ok(Arrived::new(packed, place));
        }
        let limit = self.limits.request_bytes;
        let (unpacked, place) = aside(move || {
            let mut place = place;
            (unpack(&packed, packing, limit, &mut place), place)
        })
        .await?;
        match unpacked {
            Ok(bytes) => Ok(Arrived::new(bytes, place)),
            Err(UnpackProblem::TooLong) => Err(self.body_refusal(&BodyProblem::TooLong)),
            Err(UnpackProblem::NoRoom) => Err(self.body_refusal(&BodyProblem::NoRoom)),
            Err(UnpackProblem::Broken(why)) => {
                Err(Refusal::new(StatusCode::BAD_REQUEST, format!("the body cannot be unpacked: {why}")))
            }
        }
    }

    async fn store(
        &self,
        signal: Signal,
        encoding: Encoding,
        arrived: Arc<Arrived>,
    ) -> Result<Option<Partial>, Refusal> {
        let body = Arc::clone(&arrived);
        let read = aside(move || read(signal, encoding, &body.bytes)).await?;
        let SpansRead { traces: parts, mut refused } =
            read.map_err(|why| Refusal::new(StatusCode::BAD_REQUEST, format!("the body cannot be read: {why}")))?;
        let mut rejected = refused.len() as u64;
        if !parts.is_empty() {
            let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
            for part in &parts {
                *sizes.entry(part.trace_id.clone()).or_default() += (part.spans.len() + part.logs.len()) as u64;
            }
            for RefusedTrace { trace_id, message } in self.write(parts, arrived).await? {
                rejected += sizes.remove(&trace_id).unwrap_or_default();
                refused.push(Refused { place: format!("trace {trace_id}"), message });
            }
        }
        Ok((rejected > 0).then(|| Partial { rejected, message: listed(signal, rejected, &refused) }))
    }

    /// Stores traces on a task of its own: what has arrived is stored even where the sender goes away, takes its room as long,
    /// and where the sink panics, others are still served.
    async fn write(&self, parts: Vec<TraceParts>, arrived: Arc<Arrived>) -> Result<Vec<RefusedTrace>, Refusal> {
        let sink = Arc::clone(&self.sink);
        let storing = async move {
            let stored = sink.store(parts).await;
            drop(arrived);
            stored
        };
        let storing = tokio::spawn(storing.in_current_span());
        match storing.await {
            Ok(Ok(refused)) => Ok(refused),
            Ok(Err(error)) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.message)),
            Err(_) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "storing failed")),
        }
    }

    fn body_refusal(&self, problem: &BodyProblem) -> Refusal {
        let mebibytes = self.limits.request_bytes >> 20;
        match problem {
            BodyProblem::TooLong => Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the request is too long: {mebibytes} MiB are the most, unpacked"),
            ),
            BodyProblem::NoRoom => {
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too much is under way: try again in a moment")
            }
            BodyProblem::TooSlow => {
                Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request did not arrive within its time")
            }
            BodyProblem::Broken => Refusal::new(StatusCode::BAD_REQUEST, "the connection broke"),
        }
    }
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn media_type(other: &str) -> Self {
        let known = "application/x-protobuf and application/json are";
        let message = if other.is_empty() {
            format!("the request has no Content-Type: {known} taken")
        } else {
            format!("'{other}' is not taken: {known}")
        };
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    fn packing(other: &str) -> Self {
        let message = format!("the Content-Encoding is not taken: {other} (gzip and deflate are)");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }
}

/// Reads a request's body. Log records that belong to no trace are passed over: processes log much besides.
fn read(signal: Signal, encoding: Encoding, bytes: &[u8]) -> Result<SpansRead, Unreadable> {
    match (encoding, signal) {
        (Encoding::Json, _) => read_json(bytes),
        (Encoding::Protobuf, Signal::Traces) => read_traces_protobuf(bytes),
        (Encoding::Protobuf, Signal::Logs) => read_logs_protobuf(bytes),
    }
}

/// Does work that takes a while where it holds nobody up.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let failed = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "this request could not be handled");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// Says what was refused, so that whoever reads a log of the sender finds it.
fn listed(signal: Signal, rejected: u64, refused: &[Refused]) -> String {
    let plural = if rejected == 1 { "" } else { "s" };
    let mut message = format!("{rejected} {}{plural} refused", signal.item());
    for (index, Refused { place, message: why }) in refused.iter().take(MAX_LISTED).enumerate() {
        message.push_str(if index == 0 { ": " } else { "; " });
        message.push_str(place);
        message.push_str(": ");
        message.push_str(why);
    }
    if let Some(more) = refused.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
        let _ = write!(message, "; and {more} more");
    }
    message
}
