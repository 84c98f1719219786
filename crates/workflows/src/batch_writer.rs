//! Writes many items in few transactions.
//!
//! The owner pushes items and awaits batches on one task, so that pushing needs no lock:
//!
//! ```ignore
//! let mut writer = BatchWriter::new(|batch: Arc<Vec<_>>| async move { store.put_executions(&batch).await });
//! loop {
//!     tokio::select! {
//!         written = writer.next() => report(written),
//!         item = items.recv(), if !writer.is_full() => match item {
//!             Some(item) => writer.push(item),
//!             None => break,
//!         },
//!     }
//! }
//! while let Some(written) = writer.flush().await {
//!     report(written);
//! }
//! ```
//!
//! [`BatchWriter::drain`] runs this loop for a channel; [`BatchWriter::poll`] is for code that must not wait.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use karat_core::port::StoreError;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, Sleep, sleep_until};
use tracing::{Instrument as _, debug, debug_span};

/// Default maximum number of items in a batch.
pub(crate) const MAX_BATCH_ROWS: usize = 500;

/// Default maximum time that an item waits for its batch to fill.
pub(crate) const MAX_BATCH_DELAY: Duration = Duration::from_millis(200);

/// How long items of a failed batch are retried one by one without a success. Invalid items fail immediately; after
/// this time the store itself is considered down.
const MAX_RETRY_DURATION: Duration = Duration::from_secs(10);

type WriteFuture<'w, T> = Pin<Box<dyn Future<Output = T> + Send + 'w>>;
type Write<'w, T, R, E> = dyn Fn(Arc<Vec<T>>) -> WriteFuture<'w, Result<R, E>> + Send + Sync + 'w;

/// Collects items and writes them in batches, one batch at a time, while collecting more.
///
/// A batch that fails is retried item by item, so that an invalid item does not affect the others.
pub struct BatchWriter<'w, T, R = (), E = StoreError> {
    write: Arc<Write<'w, T, R, E>>,
    max_rows: usize,
    max_delay: Duration,
    max_weight: usize,
    weight: fn(&T) -> usize,
    waiting: Vec<T>,
    waiting_weight: usize,
    /// When the oldest waiting item must be written.
    due: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    running: Option<WriteFuture<'w, BatchOutcome<T, R, E>>>,
}

/// The outcome of one batch. Every pushed item is in exactly one of `committed` and `failed`, in order.
#[derive(Debug)]
pub struct BatchOutcome<T, R = (), E = StoreError> {
    pub committed: Vec<T>,
    /// Results of the write function: one for the whole batch, or one per item that was committed separately.
    pub results: Vec<R>,
    pub failed: Vec<(T, E)>,
}

impl<T, R, E> BatchOutcome<T, R, E> {
    /// Returns the committed items, or the first error if any item failed.
    pub fn into_result(self) -> Result<Vec<T>, E> {
        match self.failed.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(self.committed),
        }
    }
}

impl<'w, T, R, E> BatchWriter<'w, T, R, E>
where
    T: Clone + Send + Sync + 'w,
    R: Send + 'w,
    E: Clone + Send + 'w,
{
    /// Creates a writer. `write` must be atomic, or idempotent for each item. It should spawn a task if the owner is
    /// too busy to drive the write.
    pub fn new<F: Future<Output = Result<R, E>> + Send + 'w>(
        write: impl Fn(Arc<Vec<T>>) -> F + Send + Sync + 'w,
    ) -> Self {
        Self {
            write: Arc::new(move |batch| Box::pin(write(batch))),
            max_rows: MAX_BATCH_ROWS,
            max_delay: MAX_BATCH_DELAY,
            max_weight: usize::MAX,
            weight: |_| 0,
            waiting: Vec::new(),
            waiting_weight: 0,
            due: Instant::now(),
            timer: None,
            running: None,
        }
    }

    #[must_use]
    pub fn max_rows(self, max_rows: usize) -> Self {
        Self { max_rows: max_rows.max(1), ..self }
    }

    #[must_use]
    pub fn max_delay(self, max_delay: Duration) -> Self {
        Self { max_delay, ..self }
    }

    /// Also limits the total weight of a batch, for example its bytes.
    #[must_use]
    pub fn max_weight(self, max_weight: usize, weight: fn(&T) -> usize) -> Self {
        Self { max_weight, weight, ..self }
    }

    /// Adds an item without writing; [`Self::next`], [`Self::poll`] and [`Self::flush`] write.
    pub fn push(&mut self, item: T) {
        if self.waiting.is_empty() {
            self.due = Instant::now() + self.max_delay;
        }
        self.waiting_weight += (self.weight)(&item);
        self.waiting.push(item);
    }

    /// Whether a full batch is waiting. Push more only after [`Self::next`], else memory grows while the store is slow.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.max_rows || self.waiting_weight >= self.max_weight
    }

    /// Waits until the next full or due batch is written; never returns without one. Cancel safe: a started write
    /// continues with the next call.
    pub async fn next(&mut self) -> BatchOutcome<T, R, E> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Returns a batch that was written in the meantime, without waiting, and starts the next one if it is full or due.
    pub fn poll(&mut self) -> Option<BatchOutcome<T, R, E>> {
        if self.running.is_none() && (self.is_full() || self.is_due()) {
            self.begin();
        }
        let mut context = Context::from_waker(Waker::noop());
        match self.poll_running(&mut context) {
            Poll::Ready(written) => written,
            Poll::Pending => None,
        }
    }

    /// Writes the remaining items without delay. Call it until it returns `None`.
    pub async fn flush(&mut self) -> Option<BatchOutcome<T, R, E>> {
        if self.running.is_none() && !self.waiting.is_empty() {
            self.begin();
        }
        poll_fn(|context| self.poll_running(context)).await
    }

    /// Writes the items of a channel until it is closed or `on_written` breaks. When the channel is closed, the
    /// remaining items are written.
    pub async fn drain(
        mut self,
        mut items: Receiver<T>,
        mut on_written: impl FnMut(BatchOutcome<T, R, E>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut received = Vec::new();
        loop {
            let available = self.max_rows.saturating_sub(self.waiting.len());
            tokio::select! {
                written = self.next() => on_written(written)?,
                count = items.recv_many(&mut received, available), if !self.is_full() => {
                    if count == 0 {
                        break;
                    }
                    received.drain(..).for_each(|item| self.push(item));
                }
            }
        }
        while let Some(written) = self.flush().await {
            on_written(written)?;
        }
        ControlFlow::Continue(())
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<BatchOutcome<T, R, E>> {
        if self.running.is_none() {
            if self.waiting.is_empty() {
                // No waker is needed: the next push happens on this task, which then polls again.
                return Poll::Pending;
            }
            if !self.is_full() && !self.is_due() {
                ready!(self.poll_timer(context));
            }
            self.begin();
        }
        match ready!(self.poll_running(context)) {
            Some(written) => Poll::Ready(written),
            None => Poll::Pending,
        }
    }

    fn is_due(&self) -> bool {
        !self.waiting.is_empty() && Instant::now() >= self.due
    }

    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let due = self.due;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(context)
    }

    fn poll_running(&mut self, context: &mut Context<'_>) -> Poll<Option<BatchOutcome<T, R, E>>> {
        let Some(running) = &mut self.running else { return Poll::Ready(None) };
        let written = ready!(running.as_mut().poll(context));
        self.running = None;
        Poll::Ready(Some(written))
    }

    fn begin(&mut self) {
        let rest = self.waiting.split_off(self.waiting.len().min(self.max_rows));
        let batch = std::mem::replace(&mut self.waiting, rest);
        // `due` is unchanged: the remaining items have already waited.
        self.waiting_weight = self.waiting.iter().map(self.weight).sum();
        let write = Arc::clone(&self.write);
        let span = debug_span!("batch", rows = batch.len());
        let writing = async move {
            let start = Instant::now();
            let batch = Arc::new(batch);
            let result = write(Arc::clone(&batch)).await;
            let batch = Arc::unwrap_or_clone(batch);
            let written = match result {
                Ok(result) => BatchOutcome { committed: batch, results: vec![result], failed: Vec::new() },
                Err(error) if batch.len() == 1 => {
                    let failed = batch.into_iter().map(|item| (item, error.clone())).collect();
                    BatchOutcome { committed: Vec::new(), results: Vec::new(), failed }
                }
                Err(_) => write_each(&*write, batch).await,
            };
            let (committed, failed) = (written.committed.len(), written.failed.len());
            debug!(committed, failed, elapsed_ms = start.elapsed().as_millis(), "batch written");
            written
        };
        self.running = Some(Box::pin(writing.instrument(span)));
    }
}

async fn write_each<T: Clone, R, E: Clone>(write: &Write<'_, T, R, E>, batch: Vec<T>) -> BatchOutcome<T, R, E> {
    let mut written: BatchOutcome<T, R, E> =
        BatchOutcome { committed: Vec::new(), results: Vec::new(), failed: Vec::new() };
    let mut last_success = Instant::now();
    for item in batch {
        if let Some((_, error)) = written.failed.last()
            && last_success.elapsed() >= MAX_RETRY_DURATION
        {
            let error = error.clone();
            written.failed.push((item, error));
            continue;
        }
        let single = Arc::new(vec![item]);
        let result = write(Arc::clone(&single)).await;
        let mut single = Arc::unwrap_or_clone(single).into_iter();
        match result {
            Ok(result) => {
                last_success = Instant::now();
                written.results.push(result);
                written.committed.extend(single);
            }
            Err(error) => written.failed.extend(single.next().map(|item| (item, error))),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::mpsc;
    use tokio::time::{sleep, timeout};

    use super::*;

    /// A store of numbers that rejects 13.
    #[derive(Default)]
    struct FakeStore {
        batches: Mutex<Vec<Vec<u32>>>,
    }

    impl FakeStore {
        async fn put(&self, batch: &[u32]) -> Result<usize, String> {
            sleep(Duration::from_millis(5)).await;
            if batch.contains(&13) {
                return Err("13 is rejected".to_owned());
            }
            self.batches.lock().unwrap().push(batch.to_vec());
            Ok(batch.len())
        }

        fn writer(&self) -> BatchWriter<'_, u32, usize, String> {
            BatchWriter::new(move |batch: Arc<Vec<u32>>| async move { self.put(&batch).await })
        }

        fn sizes(&self) -> Vec<usize> {
            self.batches.lock().unwrap().iter().map(Vec::len).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn writes_a_full_batch_immediately() {
        let (numbers, started) = (FakeStore::default(), Instant::now());
        let mut writer = numbers.writer().max_rows(3);
        (1..=4).for_each(|number| writer.push(number));
        assert!(writer.is_full());
        let written = writer.next().await;
        assert_eq!((written.committed, written.results), (vec![1, 2, 3], vec![3]));
        assert!(started.elapsed() < MAX_BATCH_DELAY && !writer.is_full());
        assert_eq!(writer.next().await.committed, [4]);
        assert!(started.elapsed() >= MAX_BATCH_DELAY);
    }

    #[tokio::test(start_paused = true)]
    async fn writes_a_partial_batch_after_the_delay() {
        let numbers = FakeStore::default();
        let mut writer = numbers.writer();
        assert!(timeout(Duration::from_mins(1), writer.next()).await.is_err(), "nothing to write");
        let started = Instant::now();
        writer.push(1);
        sleep(MAX_BATCH_DELAY / 2).await;
        writer.push(2);
        assert_eq!(writer.next().await.committed, [1, 2]);
        assert!((MAX_BATCH_DELAY..MAX_BATCH_DELAY * 2).contains(&started.elapsed()), "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn limits_a_batch_by_weight() {
        let (numbers, started) = (FakeStore::default(), Instant::now());
        let mut writer = numbers.writer().max_weight(10, |number| *number as usize);
        writer.push(4);
        assert!(!writer.is_full());
        writer.push(6);
        assert!(writer.is_full());
        assert_eq!(writer.next().await.committed, [4, 6]);
        assert!(started.elapsed() < MAX_BATCH_DELAY && !writer.is_full());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_item_does_not_affect_others() {
        let numbers = FakeStore::default();
        let mut writer = numbers.writer();
        (11..=15).for_each(|number| writer.push(number));
        let written = writer.next().await;
        assert_eq!((&written.committed, &written.results), (&vec![11, 12, 14, 15], &vec![1; 4]));
        assert_eq!(written.failed, [(13, "13 is rejected".to_owned())]);
        assert!(written.into_result().is_err());
        writer.push(13);
        let written = writer.next().await;
        assert_eq!((written.committed.len(), written.failed.len()), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn gives_up_if_every_write_fails() {
        let mut writer: BatchWriter<'_, u32, (), &str> = BatchWriter::new(|_| async {
            sleep(Duration::from_secs(4)).await;
            Err("the store is gone")
        });
        (0..500).for_each(|number| writer.push(number));
        let started = Instant::now();
        let written = writer.flush().await.expect("a batch");
        assert_eq!((written.committed.len(), written.failed.len()), (0, 500));
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn flush_completes_a_cancelled_write_and_all_remaining_batches() {
        let numbers = FakeStore::default();
        let mut writer = numbers.writer().max_rows(2);
        (1..=5).for_each(|number| writer.push(number));
        // Dropped while the first batch is being written.
        assert!(timeout(Duration::from_millis(1), writer.next()).await.is_err());
        let mut committed = Vec::new();
        while let Some(written) = writer.flush().await {
            committed.extend(written.committed);
        }
        assert_eq!((committed, numbers.sizes()), (vec![1, 2, 3, 4, 5], vec![2, 2, 1]));
    }

    #[tokio::test(start_paused = true)]
    async fn poll_never_waits() {
        let numbers = Arc::new(FakeStore::default());
        let mut writer = BatchWriter::new(|batch: Arc<Vec<u32>>| {
            let numbers = Arc::clone(&numbers);
            async move { tokio::spawn(async move { numbers.put(&batch).await }).await.expect("no panic") }
        });
        assert!(writer.poll().is_none());
        writer.push(1);
        assert!(writer.poll().is_none() && numbers.sizes().is_empty());
        sleep(MAX_BATCH_DELAY).await;
        assert!(writer.poll().is_none(), "still being written");
        writer.push(2);
        sleep(Duration::from_millis(6)).await;
        assert_eq!(writer.poll().expect("written").committed, [1]);
        assert_eq!(writer.flush().await.expect("written").committed, [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn drain_loses_nothing() {
        let numbers = FakeStore::default();
        let (sender, receiver) = mpsc::channel(64);
        let send = async move {
            for number in 0..20_000 {
                sender.send(number).await.expect("receiver is open");
            }
        };
        let (mut committed, mut failed) = (Vec::new(), Vec::new());
        let drain = numbers.writer().drain(receiver, |written| {
            committed.extend(written.committed);
            failed.extend(written.failed);
            ControlFlow::Continue(())
        });
        let (ended, ()) = tokio::join!(drain, send);
        assert!(ended.is_continue());
        let expected: Vec<u32> = (0..20_000).filter(|number| *number != 13).collect();
        assert_eq!((committed, failed.len()), (expected, 1));
        assert!(numbers.sizes().iter().all(|size| *size <= MAX_BATCH_ROWS));
    }

    #[tokio::test(start_paused = true)]
    async fn drain_stops_on_break() {
        let numbers = FakeStore::default();
        let (sender, receiver) = mpsc::channel(4);
        sender.send(1).await.expect("channel has room");
        let ended = numbers.writer().drain(receiver, |_| ControlFlow::Break(())).await;
        assert!(ended.is_break() && sender.is_closed());
    }
}
