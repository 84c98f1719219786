//! A receiver on a port of its own, a sink that only remembers, and requests.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use karat_core::port::{Pending, StoreError};
use karat_server::{Ending, Limits, TraceSink, otlp_router, serve};
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

/// Remembers what it was given.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) traces: Mutex<BTreeMap<String, TraceParts>>,
    pub(crate) refusals: Mutex<Vec<RefusedRequest>>,
    /// How often it was asked to store something.
    pub(crate) writes: AtomicUsize,
    /// How long it takes.
    pub(crate) delay: Duration,
    /// What it does with a trace by its id: a text that begins with `full` fails everything, another refuses it.
    pub(crate) refuses: BTreeMap<String, &'static str>,
}

impl Memory {
    pub(crate) fn traces(&self) -> BTreeMap<String, TraceParts> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn refusals(&self) -> Vec<RefusedRequest> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl TraceSink for Memory {
    fn store(&self, parts: Vec<TraceParts>) -> Pending<'_, Result<Vec<RefusedTrace>, StoreError>> {
        Box::pin(async move {
            self.writes.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(self.delay).await;
            let mut refused = Vec::new();
            let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
            let mut now = traces.clone();
            for part in parts {
                match self.refuses.get(&part.trace_id) {
                    Some(&"panic") => panic!("a sink that panics"),
                    Some(why) if why.starts_with("full") => {
                        return Err(StoreError { message: (*why).to_owned(), hint: None });
                    }
                    Some(why) => refused.push(RefusedTrace { trace_id: part.trace_id, message: (*why).to_owned() }),
                    None => match now.get_mut(&part.trace_id) {
                        Some(known) => known.merge(part),
                        None => {
                            now.insert(part.trace_id.clone(), part);
                        }
                    },
                }
            }
            *traces = now;
            Ok(refused)
        })
    }

    fn refused(&self, refusal: &RefusedRequest) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(refusal.clone());
    }
}

/// A receiver that listens.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    pub(crate) sink: Arc<Memory>,
    pub(crate) client: Client,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<Ending>>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        Self::with(Memory::default(), Limits::default()).await
    }

    pub(crate) async fn with(sink: Memory, limits: Limits) -> Self {
        let sink = Arc::new(sink);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = oneshot::channel::<()>();
        let router = otlp_router(Arc::clone(&sink) as Arc<dyn TraceSink>, limits);
        let until = async { stopped.await.unwrap_or_default() };
        let served = tokio::spawn(serve(listener, router, until, Duration::from_secs(2)));
        Self { address, sink, client: client(), stop, served }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Asks it to stop, and returns who says how it ended.
    pub(crate) fn stop(self) -> JoinHandle<std::io::Result<Ending>> {
        let _ = self.stop.send(());
        self.served
    }

    /// Sends a body of this type.
    pub(crate) async fn send(&self, path: &str, media_type: &str, body: impl Into<reqwest::Body>) -> Answer {
        let request = self.client.post(self.url(path)).header("content-type", media_type).body(body);
        Answer::of(request.send().await.expect("an answer comes")).await
    }

    pub(crate) async fn send_packed(&self, media_type: &str, packing: &str, body: Vec<u8>) -> Answer {
        let request = self.client.post(self.url("/v1/traces"));
        let request = request.header("content-type", media_type).header("content-encoding", packing).body(body);
        Answer::of(request.send().await.expect("an answer comes")).await
    }
}

pub(crate) const PROTOBUF: &str = "application/x-protobuf";
pub(crate) const JSON: &str = "application/json";

fn client() -> Client {
    // Nothing here is encrypted, but the client wants to know who would do it; a second word about it is refused.
    rustls::crypto::ring::default_provider().install_default().ok();
    Client::builder().no_proxy().build().expect("a client needs nothing")
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) media_type: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) allow: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) async fn of(response: reqwest::Response) -> Self {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            status: response.status().as_u16(),
            media_type: header("content-type").unwrap_or_default(),
            retry_after: header("retry-after"),
            allow: header("allow"),
            body: response.bytes().await.expect("the answer is whole").to_vec(),
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

pub(crate) fn trace_name(number: u32) -> String {
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
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}
