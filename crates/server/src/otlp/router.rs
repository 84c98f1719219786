//! Routes and request handling.

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
use karat_traces::otlp::{ParseError, ParsedSpans, read_json, read_logs_protobuf, read_traces_protobuf};
use karat_traces::{RefusedItem, TraceParts};
use karat_workflows::receive_traces::{RefusedRequest, RefusedTrace};
use tracing::{Instrument as _, debug, debug_span};

use super::Signal;
use super::body::{BodyError, read_body};
use super::decompress::{DecompressError, decompress};
use super::encoding::{Compression, Encoding};
use super::limits::Limits;
use super::memory::{MemoryBudget, MemoryReservation, ReservedBody};
use super::response::{PartialSuccess, error_response, success_response};
use crate::sink::TraceSink;

/// Maximum number of refused items in a message.
const MAX_LISTED: usize = 3;

/// The state that all requests share.
struct Receiver {
    sink: Arc<dyn TraceSink>,
    memory: MemoryBudget,
    limits: Limits,
}

/// The reason to refuse a whole request.
struct RequestError {
    status: StatusCode,
    message: String,
}

/// Returns the routes for OTLP at `/v1/traces` and `/v1/logs` and a health check at `/healthz`.
pub fn otlp_router(sink: Arc<dyn TraceSink>, limits: Limits) -> Router {
    let receiver = Arc::new(Receiver { sink, memory: MemoryBudget::new(limits.max_total_bytes), limits });
    Router::new()
        .route("/v1/traces", post(traces))
        .route("/v1/logs", post(logs))
        .route("/v1/metrics", post(metrics))
        .route("/healthz", get(healthy))
        .fallback(not_found)
        .with_state(receiver)
        .layer(from_fn(log_request))
}

/// Logs a request and its status.
async fn log_request(request: Request, next: Next) -> Response<Body> {
    let span = debug_span!("request", method = %request.method(), path = %request.uri().path());
    let response = async move {
        let start = Instant::now();
        let response = next.run(request).await;
        debug!(status = response.status().as_u16(), elapsed_ms = start.elapsed().as_millis(), "answered");
        response
    };
    response.instrument(span).await
}

async fn traces(State(receiver): State<Arc<Receiver>>, request: Request) -> Response<Body> {
    receiver.handle(Signal::Traces, request).await
}

async fn logs(State(receiver): State<Arc<Receiver>>, request: Request) -> Response<Body> {
    receiver.handle(Signal::Logs, request).await
}

/// SDKs with a single endpoint also send metrics to it.
async fn metrics(State(receiver): State<Arc<Receiver>>, headers: HeaderMap) -> Response<Body> {
    let message = "metrics are not supported: set OTEL_METRICS_EXPORTER=none";
    receiver.report_refused(StatusCode::NOT_FOUND, 0, message);
    error_response(StatusCode::NOT_FOUND, Encoding::from_headers(&headers).ok(), message)
}

async fn healthy() -> &'static str {
    "ok\n"
}

async fn not_found(State(receiver): State<Arc<Receiver>>, method: Method) -> Response<Body> {
    let message = "not found: send spans to /v1/traces and log records to /v1/logs";
    if method == Method::POST {
        receiver.report_refused(StatusCode::NOT_FOUND, 0, message);
    }
    error_response(StatusCode::NOT_FOUND, None, message)
}

impl Receiver {
    async fn handle(&self, signal: Signal, request: Request) -> Response<Body> {
        let encoding = Encoding::from_headers(request.headers());
        let result = match &encoding {
            Ok(encoding) => self.receive(signal, *encoding, request).await,
            Err(other) => Err(RequestError::unsupported_media_type(other)),
        };
        match result {
            Ok(partial) => {
                if let Some(PartialSuccess { rejected, message }) = &partial {
                    self.report_refused(StatusCode::OK, *rejected, message);
                }
                // The encoding is always known here.
                success_response(signal, encoding.unwrap_or(Encoding::Json), partial)
            }
            Err(RequestError { status, message }) => {
                self.report_refused(status, 0, &message);
                error_response(status, encoding.ok(), &message)
            }
        }
    }

    fn report_refused(&self, status: StatusCode, rejected: u64, message: &str) {
        self.sink.on_refused(&RefusedRequest { status: status.as_u16(), rejected, message: message.to_owned() });
    }

    async fn receive(
        &self,
        signal: Signal,
        encoding: Encoding,
        request: Request,
    ) -> Result<Option<PartialSuccess>, RequestError> {
        let headers = request.headers();
        // Only browsers send `Origin`; without this check any web page could write to the store.
        if headers.contains_key(ORIGIN) {
            return Err(RequestError::new(StatusCode::FORBIDDEN, "requests from browsers are not allowed"));
        }
        let compression =
            Compression::from_headers(headers).map_err(|other| RequestError::unsupported_compression(&other))?;
        let expects_continue = headers.contains_key(EXPECT);
        let mut memory = self.memory.reserve();
        let compressed = read_body(request.into_body(), expects_continue, &self.limits, &mut memory)
            .await
            .map_err(|error| self.body_error(&error))?;
        let body = Arc::new(self.decompress(compressed, compression, memory).await?);
        self.store(signal, encoding, body).await
    }

    async fn decompress(
        &self,
        compressed: Vec<u8>,
        compression: Compression,
        memory: MemoryReservation,
    ) -> Result<ReservedBody, RequestError> {
        if compression == Compression::None {
            return Ok(ReservedBody::new(compressed, memory));
        }
        let limit = self.limits.max_request_bytes;
        let (result, memory) = run_blocking(move || {
            let mut memory = memory;
            (decompress(&compressed, compression, limit, &mut memory), memory)
        })
        .await?;
        match result {
            Ok(bytes) => Ok(ReservedBody::new(bytes, memory)),
            Err(DecompressError::TooLarge) => Err(self.body_error(&BodyError::TooLarge)),
            Err(DecompressError::MemoryExceeded) => Err(self.body_error(&BodyError::MemoryExceeded)),
            Err(DecompressError::Invalid(reason)) => {
                Err(RequestError::new(StatusCode::BAD_REQUEST, format!("cannot decompress the body: {reason}")))
            }
        }
    }

    async fn store(
        &self,
        signal: Signal,
        encoding: Encoding,
        body: Arc<ReservedBody>,
    ) -> Result<Option<PartialSuccess>, RequestError> {
        let input = Arc::clone(&body);
        let result = run_blocking(move || parse(signal, encoding, &input.bytes)).await?;
        let ParsedSpans { traces: parts, mut refused } = result
            .map_err(|error| RequestError::new(StatusCode::BAD_REQUEST, format!("cannot parse the body: {error}")))?;
        let mut rejected = refused.len() as u64;
        if !parts.is_empty() {
            let mut item_counts: BTreeMap<String, u64> = BTreeMap::new();
            for part in &parts {
                *item_counts.entry(part.trace_id.clone()).or_default() += (part.spans.len() + part.logs.len()) as u64;
            }
            for RefusedTrace { trace_id, message } in self.write(parts, body).await? {
                rejected += item_counts.remove(&trace_id).unwrap_or_default();
                refused.push(RefusedItem { location: format!("trace {trace_id}"), message });
            }
        }
        Ok((rejected > 0).then(|| PartialSuccess { rejected, message: refusal_message(signal, rejected, &refused) }))
    }

    /// Stores traces on a separate task, so that they are stored even if the client disconnects, their memory stays
    /// reserved until then, and a panic of the sink affects only this request.
    async fn write(&self, parts: Vec<TraceParts>, body: Arc<ReservedBody>) -> Result<Vec<RefusedTrace>, RequestError> {
        let sink = Arc::clone(&self.sink);
        let store = async move {
            let result = sink.store(parts).await;
            drop(body);
            result
        };
        match tokio::spawn(store.in_current_span()).await {
            Ok(Ok(refused)) => Ok(refused),
            Ok(Err(error)) => Err(RequestError::new(StatusCode::SERVICE_UNAVAILABLE, error.message)),
            Err(_) => Err(RequestError::new(StatusCode::SERVICE_UNAVAILABLE, "cannot store the traces")),
        }
    }

    fn body_error(&self, error: &BodyError) -> RequestError {
        let mebibytes = self.limits.max_request_bytes >> 20;
        match error {
            BodyError::TooLarge => RequestError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the request is too large: at most {mebibytes} MiB after decompression"),
            ),
            BodyError::MemoryExceeded => {
                RequestError::new(StatusCode::SERVICE_UNAVAILABLE, "too many requests in progress: try again later")
            }
            BodyError::TimedOut => {
                RequestError::new(StatusCode::REQUEST_TIMEOUT, "timed out while receiving the request")
            }
            BodyError::Closed => RequestError::new(StatusCode::BAD_REQUEST, "the connection was closed"),
        }
    }
}

impl RequestError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn unsupported_media_type(other: &str) -> Self {
        let supported = "application/x-protobuf or application/json";
        let message = if other.is_empty() {
            format!("missing Content-Type: use {supported}")
        } else {
            format!("unsupported Content-Type '{other}': use {supported}")
        };
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    fn unsupported_compression(other: &str) -> Self {
        let message = format!("unsupported Content-Encoding '{other}': use gzip or deflate");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }
}

/// Parses a request body. Log records without a trace are ignored, because most of them are unrelated.
fn parse(signal: Signal, encoding: Encoding, bytes: &[u8]) -> Result<ParsedSpans, ParseError> {
    match (encoding, signal) {
        (Encoding::Json, _) => read_json(bytes),
        (Encoding::Protobuf, Signal::Traces) => read_traces_protobuf(bytes),
        (Encoding::Protobuf, Signal::Logs) => read_logs_protobuf(bytes),
    }
}

/// Runs CPU-bound work outside the async runtime.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, RequestError> {
    let panicked = |_| RequestError::new(StatusCode::INTERNAL_SERVER_ERROR, "cannot process the request");
    tokio::task::spawn_blocking(work).await.map_err(panicked)
}

/// Describes the refused items for the log of the sender.
fn refusal_message(signal: Signal, rejected: u64, refused: &[RefusedItem]) -> String {
    let plural = if rejected == 1 { "" } else { "s" };
    let mut message = format!("{rejected} {}{plural} refused", signal.item_name());
    for (index, RefusedItem { location, message: reason }) in refused.iter().take(MAX_LISTED).enumerate() {
        message.push_str(if index == 0 { ": " } else { "; " });
        message.push_str(location);
        message.push_str(": ");
        message.push_str(reason);
    }
    if let Some(more) = refused.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
        let _ = write!(message, "; and {more} more");
    }
    message
}
