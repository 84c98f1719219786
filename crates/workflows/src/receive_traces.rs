//! Stores traces that others send while agents run.
//!
//! A server hands what it gets to a [`TraceReceiver`]; the use case stores what several requests brought in one go, answers
//! each, and reports what is in the store.

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

use crate::batch_writer::{BatchWriter, Written};
use crate::context::Context;
use crate::error::Error;
use crate::event::EventSink;
pub use crate::ingest::RefusedTrace;
use crate::ingest::{Ingest, Ingested, Totals};

/// How many traces are stored together.
const MAX_BATCH_TRACES: usize = 1000;

/// How many requests wait to be stored; further senders wait for their turn.
const MAX_WAITING: usize = 256;

pub struct Request {
    /// Also store the ratings that spans have of people.
    pub feedback: bool,
}

pub enum Event {
    /// The store is open, and serving begins.
    Ready,
    /// A trace is in the store with all that has come of it so far.
    Stored { change: Change, head: Box<TraceHead> },
    /// A request was not taken, or not all of it. Of many in a short time some are not reported.
    Refused(RefusedRequest),
    /// What there is by now; how many traces are new is counted at the end.
    Progress(ReceiveTotals),
    /// Nothing new is taken; what has begun is stored.
    Stopping,
}

/// A request that was not taken, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRequest {
    /// The status of the answer: 200 where only a part was refused.
    pub status: u16,
    /// How many spans or log records were refused, where the others were taken.
    pub rejected: u64,
    /// A lower-case fragment, as it was sent; it can quote the request.
    pub message: String,
}

impl RefusedRequest {
    /// Whether nothing at all was taken.
    pub fn is_whole(&self) -> bool {
        self.status != 200
    }
}

/// Takes in traces for the store; made by [`receive_traces`].
#[derive(Debug, Clone)]
pub struct TraceReceiver {
    submissions: mpsc::Sender<Arc<Submission>>,
    refusals: mpsc::Sender<RefusedRequest>,
    refused: Arc<RefusedCounts>,
}

impl TraceReceiver {
    /// Returns when all of these are on disk, with those that cannot be stored however often they are sent. After an error
    /// a retry may help.
    pub async fn store(&self, parts: Vec<TraceParts>) -> Result<Vec<RefusedTrace>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let submission = Arc::new(Submission { parts, reply: Mutex::new(Some(reply)) });
        let gone = |()| StoreError { message: "traces are not stored any more".to_owned(), hint: None };
        self.submissions.send(submission).await.map_err(|_| gone(()))?;
        answer.await.unwrap_or_else(|_| Err(gone(())))
    }

    /// Counts and reports a request that was not taken, or not all of it.
    pub fn refuse(&self, refused: &RefusedRequest) {
        self.refused.add(refused);
        // Nonsense may come faster than it can be reported.
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
        if refused.is_whole() {
            self.requests.fetch_add(1, Ordering::Relaxed);
        } else {
            self.rejected.fetch_add(refused.rejected, Ordering::Relaxed);
        }
    }
}

/// The traces of a request that were refused, or why none is stored.
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
            // The sender may have gone away.
            let _ = reply.send(result);
        }
    }

    /// Returns those of its traces that were refused, each once: a batch refuses an invalid id as often as it comes.
    fn refused_of(&self, refused: &[RefusedTrace]) -> Vec<RefusedTrace> {
        let mut ids: HashSet<&str> = self.parts.iter().map(|part| part.trace_id.as_str()).collect();
        refused.iter().filter(|one| ids.remove(one.trace_id.as_str())).cloned().collect()
    }
}

/// Stores what the server passes to its receiver, until serving ends.
///
/// `serve` starts the server; its token is cancelled when serving shall end. Returns the totals, and what serving returned.
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
    let (submissions, submitted) = mpsc::channel(MAX_WAITING);
    let (refusals, refused) = mpsc::channel(MAX_WAITING);
    let receiver = TraceReceiver { submissions, refusals, refused: Arc::default() };
    let receiving = Receiving {
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

type SubmissionWriter<'r> = BatchWriter<'r, Arc<Submission>, Ingested>;

/// Stores at once what waits: while one batch is written, the next one gathers.
fn submission_writer<'r>(store: &'r Store, clock: &'r dyn Clock, with_feedback: bool) -> SubmissionWriter<'r> {
    let write = move |batch: Arc<Vec<Arc<Submission>>>| {
        let (store, now) = (store.clone(), clock.now());
        async move {
            let parts = batch.iter().flat_map(|one| &one.parts);
            let pieces: Vec<Piece> = parts.map(|part| Piece::Parts(Box::new(part.clone()))).collect();
            // On a task of its own: a panic fails this batch only.
            let writing = tokio::spawn(async move { Ingest { store: &store, now, with_feedback }.write(pieces).await });
            writing.await.unwrap_or_else(|error| {
                Err(StoreError { message: format!("cannot store traces: {error}"), hint: None })
            })
        }
    };
    BatchWriter::new(write)
        .max_rows(MAX_WAITING)
        .max_delay(Duration::ZERO)
        .max_weight(MAX_BATCH_TRACES, |submission| submission.parts.len())
}

struct Receiving<'r> {
    writer: SubmissionWriter<'r>,
    submitted: mpsc::Receiver<Arc<Submission>>,
    refused: mpsc::Receiver<RefusedRequest>,
    refused_counts: Arc<RefusedCounts>,
    totals: Totals,
    /// Spans and log records that were stored.
    spans: u64,
    log_records: u64,
    events: &'r mut dyn EventSink<Event>,
    cancel: CancellationToken,
}

impl Receiving<'_> {
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
        let sums = self.sums();
        let report = self.totals.into_report();
        let (added, changed, unchanged) = (report.added, report.changed, report.unchanged);
        (ReceiveTotals { traces: report.traces(), added, changed, unchanged, ..sums }, served)
    }

    /// Answers the senders of a batch, and reports what is in the store.
    fn record(&mut self, written: Written<Arc<Submission>, Ingested>) {
        let Written { committed, results, failed } = written;
        for (submission, error) in failed {
            submission.answer(Err(error));
        }
        let refused: Vec<RefusedTrace> = results.iter().flat_map(|one| &one.refused).cloned().collect();
        let refused_ids: HashSet<&str> = refused.iter().map(|one| one.trace_id.as_str()).collect();
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
        self.emit(Event::Progress(self.sums()));
    }

    fn report_refused(&mut self, refused: RefusedRequest) {
        self.emit(Event::Refused(refused));
        self.emit(Event::Progress(self.sums()));
    }

    fn sums(&self) -> ReceiveTotals {
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
