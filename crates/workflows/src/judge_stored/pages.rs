//! Reads traces from the store, page by page, for the sandbox's threads.

use std::collections::VecDeque;

use karat_core::port::{StoreError, TraceStore};
use karat_core::stored::{StoredTrace, TraceFilter};
use karat_evals::port::EvalStore;
use karat_evals::version::EvalVersion;
use karat_sandbox::Input;
use karat_store::Store;
use tokio::runtime::Handle;

use super::Request;
use super::plan::PlannedEval;

/// Number of traces per query.
const PAGE_SIZE: u64 = 100;

/// Limits of the batch that a thread gets: small, so that slow traces are spread over the threads.
const MAX_BATCH_TRACES: usize = 8;
const MAX_BATCH_BYTES: usize = 1 << 20;

pub(super) struct TraceKey {
    pub(super) id: String,
    /// Hash of the trace's text.
    pub(super) hash: String,
}

/// An iterator over batches of traces. It blocks on the store, so it must run on a thread of the sandbox.
pub(super) struct TracePages {
    runtime: Handle,
    store: Store,
    version: EvalVersion,
    execution_hash: String,
    filter: TraceFilter,
    again: bool,
    /// The last trace that was read.
    after: Option<String>,
    waiting: VecDeque<StoredTrace>,
}

impl TracePages {
    pub(super) fn new(store: &Store, planned: &PlannedEval, request: &Request) -> Self {
        Self {
            runtime: Handle::current(),
            store: store.clone(),
            version: planned.version.clone(),
            execution_hash: planned.execution_hash.clone(),
            filter: request.filter.clone(),
            again: request.again,
            after: None,
            waiting: VecDeque::new(),
        }
    }
}

impl Iterator for TracePages {
    type Item = Result<Vec<Input<TraceKey>>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.waiting.is_empty() {
            let (store, version, after) = (&self.store, &self.version, self.after.as_deref());
            let (eval_id, code_hash) = (&version.eval_id, &self.execution_hash);
            let reading = if self.again {
                store.read_traces(&self.filter, after, PAGE_SIZE)
            } else {
                store.unjudged(eval_id, version.version, code_hash, &self.filter, after, PAGE_SIZE)
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
