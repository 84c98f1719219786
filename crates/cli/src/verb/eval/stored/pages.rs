//! Traces out of the store, page by page, for the sandbox's threads.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use karat_core::port::{EvalStore, StoreError, TraceStore};
use karat_core::stored::{StoredTrace, TraceFilter};
use karat_sandbox::{Input, Unit};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// How many traces are asked for at once.
const PAGE: u64 = 100;

/// How many traces, and how many bytes of them, go to a thread at once: few, so that slow ones are shared out.
const MOST_TRACES: usize = 8;
const MOST_BYTES: usize = 1 << 20;

/// Which traces are wanted.
pub(super) struct Wanted {
    pub(super) eval_id: String,
    pub(super) version: u64,
    pub(super) filter: TraceFilter,
    /// Those too that were judged before.
    pub(super) again: bool,
}

/// A trace by the names that the store has for it: its id, and its text's hash.
pub(super) struct Named {
    pub(super) id: String,
    pub(super) hash: String,
}

/// What the store said in place of a page.
#[derive(Clone, Default)]
pub(super) struct Troubles(Arc<Mutex<Option<StoreError>>>);

impl Troubles {
    pub(super) fn take(&self) -> Option<StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An iterator over traces in batches. Pages are read one ahead, while others are judged.
pub(super) struct Pages {
    read: mpsc::Receiver<Result<Vec<StoredTrace>, StoreError>>,
    waiting: VecDeque<StoredTrace>,
    names: Sender<Named>,
    number: u64,
    troubles: Troubles,
}

impl Pages {
    /// Begins to read. What the traces are called comes out beside them, in their order.
    pub(super) fn read<S>(store: S, wanted: Wanted, runtime: &Handle) -> (Self, Receiver<Named>)
    where
        S: TraceStore + EvalStore + 'static,
    {
        let (out, read) = mpsc::channel(1);
        // A task, so that whoever ends the runtime ends it too.
        runtime.spawn(read_pages(store, wanted, out));
        let (names, heard) = channel();
        (Self { read, waiting: VecDeque::new(), names, number: 0, troubles: Troubles::default() }, heard)
    }

    pub(super) fn troubles(&self) -> Troubles {
        self.troubles.clone()
    }
}

async fn read_pages(
    store: impl TraceStore + EvalStore,
    wanted: Wanted,
    out: mpsc::Sender<Result<Vec<StoredTrace>, StoreError>>,
) {
    let Wanted { eval_id, version, filter, again } = wanted;
    let mut after: Option<String> = None;
    loop {
        let page = if again {
            store.read_traces(&filter, after.as_deref(), PAGE).await
        } else {
            store.unjudged(&eval_id, version, &filter, after.as_deref(), PAGE).await
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
    type Item = io::Result<Vec<Input>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.waiting.is_empty() {
            match self.read.blocking_recv()? {
                Ok(page) => self.waiting.extend(page),
                Err(error) => {
                    let told = io::Error::other(error.message.clone());
                    *self.troubles.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return Some(Err(told));
                }
            }
        }
        let (mut batch, mut size) = (Vec::new(), 0);
        while batch.len() < MOST_TRACES && size < MOST_BYTES {
            let Some(trace) = self.waiting.pop_front() else { break };
            self.number += 1;
            size += trace.document.len();
            // Whoever listened may have gone; then nobody asks for the name.
            let _ = self.names.send(Named { id: trace.head.trace_id, hash: trace.head.hash });
            batch.push(Input { unit: Unit::Row, number: self.number, text: Ok(trace.document.into_bytes()) });
        }
        (!batch.is_empty()).then_some(Ok(batch))
    }
}
