//! How long a case has really been under way: not counted is what an agent waits for its turn.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use karat_core::port::Waiting;
use tokio::time::{Instant, sleep};

/// Counts the time of one case.
pub(crate) struct Stopwatch {
    started: Instant,
    waits: Mutex<Waits>,
}

#[derive(Default)]
struct Waits {
    /// Of the waits that have ended.
    total: Duration,
    /// Waits can overlap.
    open: usize,
    since: Option<Instant>,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), waits: Mutex::default() }
    }

    /// Returns how long the case has been under way without its waits.
    pub(crate) fn elapsed(&self) -> Duration {
        let now = Instant::now();
        let waits = self.waits();
        let waiting = waits.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        now.saturating_duration_since(self.started).saturating_sub(waits.total + waiting)
    }

    /// Ends when the case has been under way for so long.
    pub(crate) async fn reaches(&self, limit: Duration) {
        loop {
            let left = limit.saturating_sub(self.elapsed());
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting for Stopwatch {
    fn begin(&self) {
        let mut waits = self.waits();
        waits.open += 1;
        if waits.open == 1 {
            waits.since = Some(Instant::now());
        }
    }

    fn end(&self) {
        let mut waits = self.waits();
        waits.open = waits.open.saturating_sub(1);
        if waits.open == 0
            && let Some(since) = waits.since.take()
        {
            waits.total += since.elapsed();
        }
    }
}

/// Returns the whole milliseconds between two moments.
pub(crate) fn millis(begin: Instant, end: Instant) -> u64 {
    u64::try_from(end.saturating_duration_since(begin).as_millis()).unwrap_or(u64::MAX)
}
