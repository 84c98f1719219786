//! Traces of the store, page by page, for the sandbox's threads.

use std::collections::VecDeque;

use karat_core::port::{EvalStore, StoreError, TraceStore};
use karat_core::stored::{EvalVersion, StoredTrace, TraceFilter};
use karat_sandbox::Input;
use karat_store::Store;
use tokio::sync::mpsc;

use super::Request;

/// How many traces are asked for at once.
const PAGE_SIZE: u64 = 100;

/// How many traces, and how many bytes of them, go to a thread at once: few, so that slow ones are shared out.
const MAX_BATCH_TRACES: usize = 8;
const MAX_BATCH_BYTES: usize = 1 << 20;

/// A trace as the store names it.
pub(super) struct TraceKey {
    pub(super) id: String,
    /// Of the trace's text.
    pub(super) hash: String,
}

/// An iterator over traces in batches. Pages are read one ahead, while others are judged.
pub(super) struct Pages {
    pages: mpsc::Receiver<Result<Vec<StoredTrace>, StoreError>>,
    waiting: VecDeque<StoredTrace>,
}

impl Pages {
    /// Begins to read, on a task that ends with its receiver.
    pub(super) fn read(store: &Store, version: &EvalVersion, request: &Request) -> Self {
        let (out, pages) = mpsc::channel(1);
        let (store, version, filter) = (store.clone(), version.clone(), request.filter.clone());
        tokio::spawn(read_pages(store, version, filter, request.again, out));
        Self { pages, waiting: VecDeque::new() }
    }
}

async fn read_pages(
    store: Store,
    version: EvalVersion,
    filter: TraceFilter,
    again: bool,
    out: mpsc::Sender<Result<Vec<StoredTrace>, StoreError>>,
) {
    let mut after: Option<String> = None;
    loop {
        let page = if again {
            store.read_traces(&filter, after.as_deref(), PAGE_SIZE).await
        } else {
            store.unjudged(&version.eval_id, version.version, &filter, after.as_deref(), PAGE_SIZE).await
        };
        let last = page.as_ref().ok().and_then(|page| page.last()).map(|trace| trace.head.trace_id.clone());
        let is_end = last.is_none();
        after = last;
        if out.send(page).await.is_err() || is_end {
            return;
        }
    }
}

impl Iterator for Pages {
    type Item = Result<Vec<Input<TraceKey>>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.waiting.is_empty() {
            match self.pages.blocking_recv()? {
                Ok(page) => self.waiting.extend(page),
                Err(error) => return Some(Err(error)),
            }
        }
        let (mut batch, mut size) = (Vec::new(), 0);
        while batch.len() < MAX_BATCH_TRACES && size < MAX_BATCH_BYTES {
            let Some(trace) = self.waiting.pop_front() else { break };
            size += trace.document.len();
            let key = TraceKey { id: trace.head.trace_id, hash: trace.head.hash };
            batch.push(Input { key, text: Ok(trace.document.into_bytes()) });
        }
        (!batch.is_empty()).then_some(Ok(batch))
    }
}
