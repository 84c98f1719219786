//! Puts executions into the store in batches, while others are made.

use std::time::{Duration, Instant};

use karat_core::port::{EvalStore, StoreError};
use karat_core::stored::StoredExecution;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// How many executions are put in at once.
const MOST: usize = 500;

/// How long one waits for others to be put in with it.
const LONGEST: Duration = Duration::from_millis(200);

/// Collects executions, and hands them back when they are in the store.
pub(super) struct Keeper<S> {
    store: S,
    runtime: Handle,
    waiting: Vec<StoredExecution>,
    /// Since when the first of these waits.
    since: Instant,
    under_way: Option<JoinHandle<Kept>>,
}

/// Executions that are in the store, or why they are not.
type Kept = Result<Vec<StoredExecution>, StoreError>;

impl<S: EvalStore + Clone + 'static> Keeper<S> {
    /// Whoever works on this runtime puts them in; the keeper itself is not on it.
    pub(super) fn new(store: S, runtime: Handle) -> Self {
        Self { store, runtime, waiting: Vec::new(), since: Instant::now(), under_way: None }
    }

    /// Takes an execution, and returns others that are in the store by now.
    pub(super) fn take(&mut self, execution: StoredExecution) -> Kept {
        if self.waiting.is_empty() {
            self.since = Instant::now();
        }
        self.waiting.push(execution);
        self.look()
    }

    /// Returns what is in the store by now; puts in what waited long enough.
    pub(super) fn look(&mut self) -> Kept {
        let is_full = self.waiting.len() >= MOST;
        if self.under_way.as_ref().is_some_and(|task| !task.is_finished()) && !is_full {
            return Ok(Vec::new());
        }
        let is_due = is_full || (!self.waiting.is_empty() && self.since.elapsed() >= LONGEST);
        let kept = self.wait()?;
        if is_due {
            self.begin();
        }
        Ok(kept)
    }

    /// Puts in what is left, and returns what was not returned yet.
    pub(super) fn end(&mut self) -> Kept {
        let mut kept = self.wait()?;
        if !self.waiting.is_empty() {
            self.begin();
            kept.extend(self.wait()?);
        }
        Ok(kept)
    }

    fn begin(&mut self) {
        let (store, batch) = (self.store.clone(), std::mem::take(&mut self.waiting));
        self.under_way = Some(self.runtime.spawn(async move {
            store.put_executions(&batch).await?;
            Ok(batch)
        }));
    }

    fn wait(&mut self) -> Kept {
        let Some(task) = self.under_way.take() else { return Ok(Vec::new()) };
        let broken = |error| StoreError { message: format!("cannot keep what was judged: {error}"), hint: None };
        self.runtime.block_on(task).map_err(broken)?
    }
}
