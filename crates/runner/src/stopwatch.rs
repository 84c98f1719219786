//! Measures the time of a case, without the time that an agent waits for rate limits or other calls.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use karat_core::port::WaitObserver;
use tokio::time::{Instant, sleep};

pub(crate) struct Stopwatch {
    started: Instant,
    waits: Mutex<Waits>,
}

#[derive(Default)]
struct Waits {
    /// Total time of finished waits.
    total: Duration,
    /// Number of open waits, which can overlap.
    open: usize,
    since: Option<Instant>,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), waits: Mutex::default() }
    }

    /// Returns the elapsed time without waits.
    pub(crate) fn elapsed(&self) -> Duration {
        let now = Instant::now();
        let waits = self.waits();
        let waiting = waits.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        now.saturating_duration_since(self.started).saturating_sub(waits.total + waiting)
    }

    /// Completes when the elapsed time reaches the limit.
    pub(crate) async fn sleep_until(&self, limit: Duration) {
        loop {
            let remaining = limit.saturating_sub(self.elapsed());
            if remaining.is_zero() {
                return;
            }
            sleep(remaining).await;
        }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitObserver for Stopwatch {
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

/// Returns the whole milliseconds between two instants.
pub(crate) fn millis_between(begin: Instant, end: Instant) -> u64 {
    u64::try_from(end.saturating_duration_since(begin).as_millis()).unwrap_or(u64::MAX)
}
