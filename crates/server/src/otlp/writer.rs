//! Stores what several requests brought in one go: a store takes many traces together as fast as a few.

use std::sync::Arc;

use karat_core::port::StoreError;
use karat_traces::TraceParts;
use tokio::sync::{mpsc, oneshot};

use super::room::Arrived;
use crate::sink::{RefusedTrace, TraceSink};

/// How many traces are stored together at most.
const MOST_TOGETHER: usize = 1000;

/// How many requests wait to be stored; whoever comes then waits for its turn to wait.
const MOST_WAITING: usize = 256;

/// Hands requests to the one who writes.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    requests: mpsc::Sender<Request>,
}

/// Why nothing was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteProblem {
    /// It may be another request's fault, so it is worth a try alone.
    AmongOthers,
    Store(StoreError),
}

type Written = Result<Arc<[RefusedTrace]>, WriteProblem>;

struct Request {
    parts: Vec<TraceParts>,
    /// Its room is taken until it is stored, even when its sender has gone away.
    arrived: Arc<Arrived>,
    /// Stored with no other, whose fault could be taken for its own.
    alone: bool,
    written: oneshot::Sender<Written>,
}

impl Writer {
    /// Starts to write, until the last of these handles is gone.
    pub(super) fn start(sink: Arc<dyn TraceSink>) -> Self {
        let (requests, queue) = mpsc::channel(MOST_WAITING);
        tokio::spawn(write_all(sink, queue));
        Self { requests }
    }

    /// Returns when all of it is stored, with the traces that could not be.
    pub(super) async fn write(&self, parts: Vec<TraceParts>, arrived: &Arc<Arrived>, alone: bool) -> Written {
        let (written, answer) = oneshot::channel();
        let request = Request { parts, arrived: Arc::clone(arrived), alone, written };
        // Both fail only when the writer is gone.
        let _ = self.requests.send(request).await;
        answer.await.unwrap_or_else(|_| Err(WriteProblem::Store(broken())))
    }
}

fn broken() -> StoreError {
    StoreError { message: "storing failed in a way that nobody foresaw".to_owned(), hint: None }
}

async fn write_all(sink: Arc<dyn TraceSink>, mut queue: mpsc::Receiver<Request>) {
    let mut next = None;
    loop {
        let Some(first) = (match next.take() {
            Some(request) => Some(request),
            None => queue.recv().await,
        }) else {
            return;
        };
        let mut together = vec![first];
        let mut traces = together[0].parts.len();
        while !together[0].alone && traces < MOST_TOGETHER {
            match queue.try_recv() {
                Ok(request) if request.alone => {
                    next = Some(request);
                    break;
                }
                Ok(request) => {
                    traces += request.parts.len();
                    together.push(request);
                }
                Err(_) => break,
            }
        }
        write(&sink, together).await;
    }
}

async fn write(sink: &Arc<dyn TraceSink>, together: Vec<Request>) {
    let mut parts = Vec::new();
    let mut waiting = Vec::with_capacity(together.len());
    let mut arrived = Vec::with_capacity(together.len());
    for request in together {
        parts.extend(request.parts);
        waiting.push(request.written);
        arrived.push(request.arrived);
    }
    // In a task of its own: were the sink to panic, the others would still be served.
    let sink = Arc::clone(sink);
    let stored = tokio::spawn(async move { sink.store(parts).await }).await.unwrap_or_else(|_| Err(broken()));
    drop(arrived);
    let written = match stored {
        Ok(refused) => Ok(Arc::from(refused)),
        Err(_) if waiting.len() > 1 => Err(WriteProblem::AmongOthers),
        Err(error) => Err(WriteProblem::Store(error)),
    };
    for request in waiting {
        // Who has gone away does not want to know.
        let _ = request.send(written.clone());
    }
}
