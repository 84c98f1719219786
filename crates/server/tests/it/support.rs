//! A receiver on its own port, a sink in memory, and requests.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use karat_core::port::{BoxFuture, StoreError};
use karat_server::{Limits, Shutdown, TraceSink, otlp_router, serve};
use karat_traces::TraceParts;
use karat_workflows::receive_traces::{RefusedRequest, RefusedTrace};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use reqwest::Client;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Stores traces in memory.
#[derive(Default)]
pub(crate) struct MemorySink {
    pub(crate) traces: Mutex<BTreeMap<String, TraceParts>>,
    pub(crate) refusals: Mutex<Vec<RefusedRequest>>,
    /// Number of calls of `store`.
    pub(crate) writes: AtomicUsize,
    /// Delay of `store`.
    pub(crate) delay: Duration,
    /// Reasons for refusal by trace id: `panic` panics, a string that starts with `full` fails the whole call.
    pub(crate) refused_traces: BTreeMap<String, &'static str>,
}

impl MemorySink {
    pub(crate) fn traces(&self) -> BTreeMap<String, TraceParts> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn refusals(&self) -> Vec<RefusedRequest> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl TraceSink for MemorySink {
    fn store(&self, parts: Vec<TraceParts>) -> BoxFuture<'_, Result<Vec<RefusedTrace>, StoreError>> {
        Box::pin(async move {
            self.writes.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(self.delay).await;
            let mut refused = Vec::new();
            let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
            let mut updated = traces.clone();
            for part in parts {
                match self.refused_traces.get(&part.trace_id) {
                    Some(&"panic") => panic!("the sink panics"),
                    Some(reason) if reason.starts_with("full") => {
                        return Err(StoreError { message: (*reason).to_owned(), hint: None });
                    }
                    Some(reason) => {
                        refused.push(RefusedTrace { trace_id: part.trace_id, message: (*reason).to_owned() });
                    }
                    None => match updated.get_mut(&part.trace_id) {
                        Some(existing) => existing.merge(part),
                        None => {
                            updated.insert(part.trace_id.clone(), part);
                        }
                    },
                }
            }
            *traces = updated;
            Ok(refused)
        })
    }

    fn on_refused(&self, refusal: &RefusedRequest) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(refusal.clone());
    }
}

/// A running receiver.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    pub(crate) sink: Arc<MemorySink>,
    pub(crate) client: Client,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<Shutdown>>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        Self::with(MemorySink::default(), Limits::default()).await
    }

    pub(crate) async fn with(sink: MemorySink, limits: Limits) -> Self {
        let sink = Arc::new(sink);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("cannot bind a port");
        let address = listener.local_addr().expect("the listener is bound");
        let (stop, stopped) = oneshot::channel::<()>();
        let router = otlp_router(Arc::clone(&sink) as Arc<dyn TraceSink>, limits);
        let stop_signal = async { stopped.await.unwrap_or_default() };
        let server = tokio::spawn(serve(listener, router, stop_signal, Duration::from_secs(2)));
        Self { address, sink, client: client(), stop, server }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Starts the shutdown and returns the server's task.
    pub(crate) fn stop(self) -> JoinHandle<std::io::Result<Shutdown>> {
        let _ = self.stop.send(());
        self.server
    }

    pub(crate) async fn send(&self, path: &str, media_type: &str, body: impl Into<reqwest::Body>) -> Response {
        let request = self.client.post(self.url(path)).header("content-type", media_type).body(body);
        Response::read(request.send().await.expect("no response")).await
    }

    pub(crate) async fn send_compressed(&self, media_type: &str, compression: &str, body: Vec<u8>) -> Response {
        let request = self.client.post(self.url("/v1/traces"));
        let request = request.header("content-type", media_type).header("content-encoding", compression).body(body);
        Response::read(request.send().await.expect("no response")).await
    }
}

pub(crate) const PROTOBUF: &str = "application/x-protobuf";
pub(crate) const JSON: &str = "application/json";

fn client() -> Client {
    // The client requires a TLS provider even for plain HTTP; it can be installed only once.
    rustls::crypto::ring::default_provider().install_default().ok();
    Client::builder().no_proxy().build().expect("cannot build the client")
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) media_type: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) allow: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) async fn read(response: reqwest::Response) -> Self {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            status: response.status().as_u16(),
            media_type: header("content-type").unwrap_or_default(),
            retry_after: header("retry-after"),
            allow: header("allow"),
            body: response.bytes().await.expect("cannot read the response").to_vec(),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(crate) fn trace_id(number: u32) -> Vec<u8> {
    let mut id = vec![0xab; 12];
    id.extend(number.to_be_bytes());
    id
}

pub(crate) fn hex_trace_id(number: u32) -> String {
    format!("{}{number:08x}", "ab".repeat(12))
}

pub(crate) fn span(trace: u32, id: u8) -> Span {
    Span {
        trace_id: trace_id(trace),
        span_id: vec![id; 8],
        name: format!("span {id}"),
        start_time_unix_nano: 1_790_000_000_000_000_000 + u64::from(id),
        end_time_unix_nano: 1_790_000_001_000_000_000 + u64::from(id),
        ..Span::default()
    }
}

pub(crate) fn spans(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }
}

pub(crate) fn log(trace: u32, id: u8, text: &str) -> LogRecord {
    let body = AnyValue { value: Some(any_value::Value::StringValue(text.to_owned())) };
    LogRecord {
        trace_id: trace_id(trace),
        span_id: vec![id; 8],
        event_name: "gen_ai.user.message".to_owned(),
        body: Some(body),
        time_unix_nano: 1_790_000_000_000_000_000,
        ..LogRecord::default()
    }
}

pub(crate) fn logs(log_records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("writing to memory cannot fail");
    encoder.finish().expect("writing to memory cannot fail")
}
