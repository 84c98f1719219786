//! Limits calls to a server: by a rate, by requested waits, and by the number of parallel calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

/// Limits the calls to one server.
///
/// The number of parallel calls is halved when the server returns "too many requests", and grows again with every
/// successful call. Calls are served in the order of arrival, and retries keep their position.
#[derive(Debug)]
pub struct Throttle {
    max_parallel: usize,
    /// The minimum time between the starts of two attempts.
    interval: Option<Duration>,
    state: Mutex<State>,
    /// Notified when the next attempt waits for a time instead of a free slot.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// Maximum number of parallel attempts; grows by fractions.
    window: f64,
    running: usize,
    /// No attempt starts before this time.
    resume_at: Instant,
    /// When the rate allows the next attempt.
    next_slot: Instant,
    /// When the window was last halved; attempts from before do not count against the new window.
    halved_at: Instant,
    arrived: u64,
    /// The number of attempts that were answered.
    answered: u64,
    was_limited: bool,
    /// Waiting attempts, by the number of their call.
    queue: BTreeMap<u64, oneshot::Sender<Permit>>,
}

/// A call with its position in the order of arrival; may take several attempts.
#[derive(Debug)]
pub struct Call {
    throttle: Arc<Throttle>,
    number: u64,
}

/// Permission for one attempt; released on drop.
#[derive(Debug)]
pub struct Permit {
    throttle: Arc<Throttle>,
    started_at: Instant,
    /// The number of attempts that had been answered when this one started.
    answered_before: u64,
    /// Whether the permit was never received, so that there is nothing to release.
    is_void: bool,
}

impl Throttle {
    /// Allows this many parallel attempts and, if given, this many per minute, evenly spaced.
    pub fn new(max_parallel: usize, per_minute: Option<u64>) -> Self {
        let now = Instant::now();
        let max_parallel = max_parallel.max(1);
        Self {
            max_parallel,
            interval: per_minute.map(|rate| Duration::from_mins(1).div_f64(to_f64(rate.max(1)))),
            state: Mutex::new(State {
                window: to_f64(max_parallel as u64),
                running: 0,
                resume_at: now,
                next_slot: now,
                halved_at: now,
                arrived: 0,
                answered: 0,
                was_limited: false,
                queue: BTreeMap::new(),
            }),
            changed: Notify::new(),
        }
    }

    /// Registers a call at the end of the queue.
    pub fn enter(self: &Arc<Self>) -> Call {
        let mut state = self.state();
        state.arrived += 1;
        Call { throttle: Arc::clone(self), number: state.arrived }
    }

    /// Grants permits to waiting attempts; returns when to try again, if the next one waits for a time.
    fn grant_permits(self: &Arc<Self>, state: &mut State) -> Option<Instant> {
        let now = Instant::now();
        while !state.queue.is_empty() && state.running < to_slots(state.window) {
            let earliest = state.resume_at.max(if self.interval.is_some() { state.next_slot } else { now });
            if earliest > now {
                return Some(earliest);
            }
            let Some((_, waiting)) = state.queue.pop_first() else { break };
            let answered_before = state.answered;
            let permit = Permit { throttle: Arc::clone(self), started_at: now, answered_before, is_void: false };
            match waiting.send(permit) {
                Ok(()) => {
                    state.running += 1;
                    if let Some(interval) = self.interval {
                        state.next_slot = now + interval;
                    }
                }
                // The call was cancelled. The state is locked here, so the drop must not lock it again.
                Err(mut permit) => permit.is_void = true,
            }
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current number of parallel attempts if the server ever rate-limited, otherwise `None`.
    pub fn reduced_window(&self) -> Option<usize> {
        let state = self.state();
        state.was_limited.then(|| to_slots(state.window))
    }

    #[cfg(test)]
    fn window(&self) -> usize {
        to_slots(self.state().window)
    }
}

impl Call {
    /// Waits until an attempt may start: there is a free slot, no requested wait, and the rate allows it.
    pub async fn permit(&self) -> Permit {
        let (sender, mut permit) = oneshot::channel();
        self.throttle.state().queue.insert(self.number, sender);
        loop {
            // Subscribe before checking, so that no change is missed.
            let changed = self.throttle.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let again = self.throttle.grant_permits(&mut self.throttle.state());
            let time = async {
                match again {
                    Some(again) => sleep_until(again).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Ok(permit) = &mut permit => return permit,
                () = time => {}
                () = changed => {}
            }
        }
    }
}

impl Permit {
    /// Returns the number of attempts that had been answered when this one started.
    pub fn answered_before(&self) -> u64 {
        self.answered_before
    }

    /// Reports that the attempt was answered.
    pub fn answered(self) {
        let mut state = self.throttle.state();
        state.answered += 1;
        state.window = (state.window + 1.0 / state.window).min(to_f64(self.throttle.max_parallel as u64));
    }

    /// Reports that the server was sent too many requests, with the wait it requested, if any.
    ///
    /// Returns whether other attempts are running, or were answered since an earlier attempt of this call (with the
    /// given `answered_before`): then the calls together are too fast, rather than this call being refused.
    pub fn rate_limited(self, answered_before: u64, retry_after: Option<Duration>) -> bool {
        let mut state = self.throttle.state();
        state.was_limited = true;
        let now = Instant::now();
        if let Some(wait) = retry_after {
            state.resume_at = state.resume_at.max(now + wait);
        }
        // Attempts that started before the window was halved belong to the old one: a burst halves it only once.
        if self.started_at >= state.halved_at {
            state.window = (state.window / 2.0).max(1.0);
            state.halved_at = now;
        }
        state.running > 1 || state.answered > answered_before
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.is_void {
            return;
        }
        let mut state = self.throttle.state();
        state.running = state.running.saturating_sub(1);
        let again = self.throttle.grant_permits(&mut state);
        drop(state);
        // Attempts that waited for a slot now wait for a time.
        if again.is_some() {
            self.throttle.changed.notify_waiters();
        }
    }
}

fn to_slots(window: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1, at most a count")]
    let whole = window as usize;
    whole.max(1)
}

fn to_f64(number: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a count of calls is far below 2^53")]
    let count = number as f64;
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn keeps_the_rate() {
        let throttle = Arc::new(Throttle::new(50, Some(600)));
        let start = Instant::now();
        let calls = (0..50).map(|_| {
            let call = throttle.enter();
            tokio::spawn(async move {
                let permit = call.permit().await;
                let at = permit.started_at;
                permit.answered();
                at
            })
        });
        let mut starts = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            starts.push(call.await.expect("no panic"));
        }
        assert!(starts.is_sorted(), "first come, first served");
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(100)), "{starts:?}");
        // No attempt waits longer than necessary.
        assert!(starts[49] - start <= Duration::from_millis(4_960), "{:?}", starts[49] - start);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_refusals_halves_the_window_once() {
        let throttle = Arc::new(Throttle::new(8, None));
        let mut calls = Vec::new();
        for _ in 0..8 {
            calls.push(throttle.enter().permit().await);
        }
        tokio::time::advance(Duration::from_millis(10)).await;
        let runs_in_parallel: Vec<bool> =
            calls.into_iter().map(|call| call.rate_limited(0, Some(Duration::from_secs(1)))).collect();
        assert_eq!(throttle.window(), 4, "one burst halves the window once");
        assert_eq!(
            runs_in_parallel,
            [true, true, true, true, true, true, true, false],
            "no other attempt is running for the last one"
        );
        let start = Instant::now();
        let again = throttle.enter().permit().await;
        assert!(again.started_at - start >= Duration::from_millis(999), "{:?}", again.started_at - start);
        assert!(!again.rate_limited(0, None), "no other attempt was running");
        assert_eq!(throttle.window(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn retries_count_towards_the_window() {
        let throttle = Arc::new(Throttle::new(4, None));
        let calls: Vec<Call> = (0..4).map(|_| throttle.enter()).collect();
        for _ in 0..3 {
            let permit = calls[0].permit().await;
            tokio::time::advance(Duration::from_millis(1)).await;
            permit.rate_limited(0, None);
        }
        assert_eq!(throttle.window(), 1);
        let first = calls[0].permit().await;
        let short = Duration::from_secs(1);
        assert!(tokio::time::timeout(short, calls[1].permit()).await.is_err(), "one slot only");
        drop(first);
        // A cancelled attempt does not keep its position.
        drop(calls[2].permit().await);
    }

    #[tokio::test(start_paused = true)]
    async fn distinguishes_refused_calls_from_fast_ones() {
        let throttle = Arc::new(Throttle::new(1000, None));
        let (mine, other) = (throttle.enter(), throttle.enter());
        let first = mine.permit().await;
        let before = first.answered_before();
        assert!(!first.rate_limited(before, None));
        assert!(!mine.permit().await.rate_limited(before, None), "no answer yet");
        drop(other.permit().await);
        assert!(!mine.permit().await.rate_limited(before, None), "still no answer");
        other.permit().await.answered();
        assert!(mine.permit().await.rate_limited(before, None), "another call was answered");
        let _other = other.permit().await;
        let last = mine.permit().await;
        let before = last.answered_before();
        assert!(last.rate_limited(before, None), "another attempt is running");
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_waiting_for_a_slot_and_then_for_a_time_start() {
        let throttle = Arc::new(Throttle::new(1, Some(600)));
        let first = throttle.enter().permit().await;
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let call = throttle.enter();
                tokio::spawn(async move { call.permit().await.answered() })
            })
            .collect();
        tokio::time::advance(Duration::from_millis(5)).await;
        first.rate_limited(0, Some(Duration::from_secs(1)));
        for attempt in waiting {
            tokio::time::timeout(Duration::from_secs(10), attempt).await.expect("is granted").expect("no panic");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_widen_the_window_up_to_the_limit() {
        let throttle = Arc::new(Throttle::new(4, None));
        for _ in 0..3 {
            tokio::time::advance(Duration::from_millis(1)).await;
            throttle.enter().permit().await.rate_limited(0, None);
        }
        assert_eq!(throttle.window(), 1);
        for _ in 0..40 {
            throttle.enter().permit().await.answered();
        }
        assert_eq!(throttle.window(), 4);
    }
}
