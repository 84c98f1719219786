//! Traces of the store, page by page, for the sandbox's threads.

use std::collections::VecDeque;

use karat_core::port::{StoreError, TraceStore};
use karat_core::stored::{StoredTrace, TraceFilter};
use karat_evals::port::EvalStore;
use karat_evals::version::EvalVersion;
use karat_sandbox::Input;
use karat_store::Store;
use tokio::runtime::Handle;

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

/// An iterator over traces in batches, for a thread of the sandbox: it waits for the store.
pub(super) struct Pages {
    runtime: Handle,
    store: Store,
    version: EvalVersion,
    filter: TraceFilter,
    again: bool,
    /// The last trace that was read.
    after: Option<String>,
    waiting: VecDeque<StoredTrace>,
}

impl Pages {
    pub(super) fn new(store: &Store, version: &EvalVersion, request: &Request) -> Self {
        Self {
            runtime: Handle::current(),
            store: store.clone(),
            version: version.clone(),
            filter: request.filter.clone(),
            again: request.again,
            after: None,
            waiting: VecDeque::new(),
        }
    }
}

impl Iterator for Pages {
    type Item = Result<Vec<Input<TraceKey>>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.waiting.is_empty() {
            let (store, version, after) = (&self.store, &self.version, self.after.as_deref());
            let reading = if self.again {
                store.read_traces(&self.filter, after, PAGE_SIZE)
            } else {
                store.unjudged(&version.eval_id, version.version, &self.filter, after, PAGE_SIZE)
            };
            match self.runtime.block_on(reading) {
                Ok(page) => self.waiting.extend(page),
                Err(error) => return Some(Err(error)),
            }
            self.after = self.waiting.back().map(|trace| trace.head.trace_id.clone());
        }
        let (mut batch, mut size) = (Vec::new(), 0);
        while batch.len() < MAX_BATCH_TRACES && size < MAX_BATCH_BYTES {
            let Some(trace) = self.waiting.pop_front() else { break };
            size += trace.text.len();
            let key = TraceKey { id: trace.head.trace_id, hash: trace.head.hash };
            batch.push(Input { key, text: Ok(trace.text.into_bytes()) });
        }
        (!batch.is_empty()).then_some(Ok(batch))
    }
}
