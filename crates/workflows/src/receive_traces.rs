//! Stores traces that agents send while they run.
//!
//! A server passes its requests to a [`TraceReceiver`]; the workflow stores several requests in one transaction,
//! answers each, and reports the stored traces.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karat_core::port::{Clock, StoreError};
use karat_core::stored::{Change, ReceiveTotals, TraceHead};
use karat_store::Store;
use karat_traces::{Piece, TraceParts};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::batch_writer::{BatchOutcome, BatchWriter};
use crate::context::Context;
use crate::error::Error;
use crate::event::EventSink;
pub use crate::ingest::RefusedTrace;
use crate::ingest::{Ingest, IngestOutcome, Totals};

/// Maximum number of traces in a batch.
const MAX_BATCH_TRACES: usize = 1000;

/// Maximum number of queued requests; further senders wait.
const MAX_QUEUED_REQUESTS: usize = 256;

pub struct Request {
    /// Also store ratings by people that are part of the spans.
    pub feedback: bool,
}

pub enum Event {
    /// The store is open and the server starts.
    Ready,
    /// A trace is stored with all its spans so far.
    Stored { change: Change, head: Box<TraceHead> },
    /// A request was refused, in whole or in part. Under load some refusals are not reported.
    Refused(RefusedRequest),
    /// The totals so far; new traces are counted only at the end.
    Progress(ReceiveTotals),
    /// New requests are refused; pending ones are still stored.
    Stopping,
}

/// A request that was refused, in whole or in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRequest {
    /// The HTTP status of the response: 200 if only a part was refused.
    pub status: u16,
    /// The number of refused spans or log records, if the others were accepted.
    pub rejected: u64,
    /// The message of the response, a lower-case fragment; it can quote the request.
    pub message: String,
}

impl RefusedRequest {
    /// Whether the whole request was refused.
    pub fn is_fully_refused(&self) -> bool {
        self.status != 200
    }
}

/// Accepts traces for the store; created by [`receive_traces`].
#[derive(Debug, Clone)]
pub struct TraceReceiver {
    submissions: mpsc::Sender<Arc<Submission>>,
    refusals: mpsc::Sender<RefusedRequest>,
    refused: Arc<RefusedCounts>,
}

impl TraceReceiver {
    /// Waits until the traces are on disk. Returns those that are refused permanently; after an error a retry may help.
    pub async fn store(&self, parts: Vec<TraceParts>) -> Result<Vec<RefusedTrace>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let submission = Arc::new(Submission { parts, reply: Mutex::new(Some(reply)) });
        let stopped = |()| StoreError { message: "the receiver has stopped".to_owned(), hint: None };
        self.submissions.send(submission).await.map_err(|_| stopped(()))?;
        answer.await.unwrap_or_else(|_| Err(stopped(())))
    }

    /// Counts and reports a refused request.
    pub fn refuse(&self, refused: &RefusedRequest) {
        self.refused.add(refused);
        // Invalid requests may arrive faster than they can be reported.
        let _ = self.refusals.try_send(refused.clone());
    }
}

#[derive(Debug, Default)]
struct RefusedCounts {
    requests: AtomicU64,
    rejected: AtomicU64,
}

impl RefusedCounts {
    fn add(&self, refused: &RefusedRequest) {
        if refused.is_fully_refused() {
            self.requests.fetch_add(1, Ordering::Relaxed);
        } else {
            self.rejected.fetch_add(refused.rejected, Ordering::Relaxed);
        }
    }
}

/// The refused traces of a request, or the error of the store.
type StoreResult = Result<Vec<RefusedTrace>, StoreError>;

/// The traces of one request.
#[derive(Debug)]
struct Submission {
    parts: Vec<TraceParts>,
    reply: Mutex<Option<oneshot::Sender<StoreResult>>>,
}

impl Submission {
    fn answer(&self, result: StoreResult) {
        if let Some(reply) = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The client may have disconnected.
            let _ = reply.send(result);
        }
    }

    /// Returns the refused traces of this submission, each once: a batch can refuse the same id several times.
    fn refused_of(&self, refused: &[RefusedTrace]) -> Vec<RefusedTrace> {
        let mut ids: HashSet<&str> = self.parts.iter().map(|part| part.trace_id.as_str()).collect();
        refused.iter().filter(|refusal| ids.remove(refusal.trace_id.as_str())).cloned().collect()
    }
}

/// Stores what the server passes to its receiver, until the server stops.
///
/// `serve` starts the server; its token is cancelled to stop it. Returns the totals and the output of `serve`.
pub async fn receive_traces<S: Future>(
    request: Request,
    context: &Context<'_>,
    events: &mut dyn EventSink<Event>,
    cancel: CancellationToken,
    serve: impl FnOnce(TraceReceiver, CancellationToken) -> S,
) -> Result<(ReceiveTotals, S::Output), Error> {
    let store = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(Error::cancelled()),
        store = context.open_store() => store?,
    };
    let (submissions, submitted) = mpsc::channel(MAX_QUEUED_REQUESTS);
    let (refusals, refused) = mpsc::channel(MAX_QUEUED_REQUESTS);
    let receiver = TraceReceiver { submissions, refusals, refused: Arc::default() };
    let receiving = Ingestion {
        writer: submission_writer(&store, context.clock, request.feedback),
        submitted,
        refused,
        refused_counts: Arc::clone(&receiver.refused),
        totals: Totals::default(),
        spans: 0,
        log_records: 0,
        events,
        cancel: cancel.child_token(),
    };
    let ended = receiving.run(receiver, serve).await;
    store.close().await;
    Ok(ended)
}

type SubmissionWriter<'r> = BatchWriter<'r, Arc<Submission>, IngestOutcome>;

/// Writes queued submissions without delay: the next batch collects while one is written.
fn submission_writer<'r>(store: &'r Store, clock: &'r dyn Clock, with_feedback: bool) -> SubmissionWriter<'r> {
    let write = move |batch: Arc<Vec<Arc<Submission>>>| {
        let (store, now) = (store.clone(), clock.now());
        async move {
            let parts = batch.iter().flat_map(|item| &item.parts);
            let pieces: Vec<Piece> = parts.map(|part| Piece::Parts(Box::new(part.clone()))).collect();
            // Spawned so that a panic fails only this batch.
            let writing = tokio::spawn(async move { Ingest { store: &store, now, with_feedback }.write(pieces).await });
            writing.await.unwrap_or_else(|error| {
                Err(StoreError { message: format!("cannot store traces: {error}"), hint: None })
            })
        }
    };
    BatchWriter::new(write)
        .max_rows(MAX_QUEUED_REQUESTS)
        .max_delay(Duration::ZERO)
        .max_weight(MAX_BATCH_TRACES, |submission| submission.parts.len())
}

struct Ingestion<'r> {
    writer: SubmissionWriter<'r>,
    submitted: mpsc::Receiver<Arc<Submission>>,
    refused: mpsc::Receiver<RefusedRequest>,
    refused_counts: Arc<RefusedCounts>,
    totals: Totals,
    /// Stored spans and log records.
    spans: u64,
    log_records: u64,
    events: &'r mut dyn EventSink<Event>,
    cancel: CancellationToken,
}

impl Ingestion<'_> {
    async fn run<S: Future>(
        mut self,
        receiver: TraceReceiver,
        serve: impl FnOnce(TraceReceiver, CancellationToken) -> S,
    ) -> (ReceiveTotals, S::Output) {
        self.emit(Event::Ready);
        let stop = CancellationToken::new();
        let serving = serve(receiver, stop.clone());
        tokio::pin!(serving);
        let served = loop {
            tokio::select! {
                served = &mut serving => break served,
                written = self.writer.next() => self.record(written),
                Some(submission) = self.submitted.recv(), if !self.writer.is_full() => self.writer.push(submission),
                Some(refused) = self.refused.recv() => self.report_refused(refused),
                () = self.cancel.cancelled(), if !stop.is_cancelled() => {
                    self.emit(Event::Stopping);
                    stop.cancel();
                }
            }
        };
        while let Some(written) = self.writer.flush().await {
            self.record(written);
        }
        while let Ok(refused) = self.refused.try_recv() {
            self.report_refused(refused);
        }
        let totals = self.totals_so_far();
        let report = self.totals.into_report();
        let (added, changed, unchanged) = (report.added, report.changed, report.unchanged);
        (ReceiveTotals { traces: report.traces(), added, changed, unchanged, ..totals }, served)
    }

    /// Answers the senders of a batch and reports the stored traces.
    fn record(&mut self, written: BatchOutcome<Arc<Submission>, IngestOutcome>) {
        let BatchOutcome { committed, results, failed } = written;
        for (submission, error) in failed {
            submission.answer(Err(error));
        }
        let refused: Vec<RefusedTrace> = results.iter().flat_map(|result| &result.refused).cloned().collect();
        let refused_ids: HashSet<&str> = refused.iter().map(|refusal| refusal.trace_id.as_str()).collect();
        for submission in committed {
            submission.answer(Ok(submission.refused_of(&refused)));
            for part in submission.parts.iter().filter(|part| !refused_ids.contains(part.trace_id.as_str())) {
                self.spans += part.spans.len() as u64;
                self.log_records += part.logs.len() as u64;
            }
        }
        for ingested in results {
            for trace in &ingested.traces {
                self.emit(Event::Stored { change: trace.put.into(), head: Box::new(trace.head.clone()) });
            }
            self.totals.add(ingested);
        }
        self.emit(Event::Progress(self.totals_so_far()));
    }

    fn report_refused(&mut self, refused: RefusedRequest) {
        self.emit(Event::Refused(refused));
        self.emit(Event::Progress(self.totals_so_far()));
    }

    fn totals_so_far(&self) -> ReceiveTotals {
        ReceiveTotals {
            traces: self.totals.traces() as u64,
            spans: self.spans,
            log_records: self.log_records,
            refused_requests: self.refused_counts.requests.load(Ordering::Relaxed),
            rejected: self.refused_counts.rejected.load(Ordering::Relaxed),
            ..ReceiveTotals::default()
        }
    }

    fn emit(&mut self, event: Event) {
        if self.events.emit(event) == ControlFlow::Break(()) {
            self.cancel.cancel();
        }
    }
}
