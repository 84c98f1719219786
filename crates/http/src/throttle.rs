//! Limits how fast a server is called: by a rate, by waits that it asks for, and by the number of parallel calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

/// Paces the calls to one server.
///
/// The number of parallel calls is halved when the server answers "too many requests", and grows again with every call
/// that it answers. Calls are served in the order of arrival, and keep their place when they are tried again.
#[derive(Debug)]
pub struct Throttle {
    max_parallel: usize,
    /// The minimum time between the starts of two attempts.
    interval: Option<Duration>,
    state: Mutex<State>,
    /// Notified when the next attempt waits for a time and no longer for room.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// The number of attempts that may run in parallel; it grows by fractions.
    window: f64,
    running: usize,
    /// No attempt starts before this time.
    resume_at: Instant,
    /// When the rate allows the next attempt.
    next_slot: Instant,
    /// When the window was halved last: attempts that ran then say nothing about the new window.
    cut_at: Instant,
    arrived: u64,
    /// The number of attempts that were answered.
    answered: u64,
    was_limited: bool,
    /// Waiting attempts, by the number of their call.
    queue: BTreeMap<u64, oneshot::Sender<Permit>>,
}

/// A call, with its place in the order of arrival; it may take several attempts.
#[derive(Debug)]
pub struct Call {
    throttle: Arc<Throttle>,
    number: u64,
}

/// Permission for one attempt, which ends when this is dropped.
#[derive(Debug)]
pub struct Permit {
    throttle: Arc<Throttle>,
    started_at: Instant,
    /// The number of attempts that had been answered when this one started.
    answered_before: u64,
    /// Nobody took the permit, so there is nothing to release.
    is_void: bool,
}

impl Throttle {
    /// Allows this many parallel attempts and, where given, so many per minute, evenly spread.
    pub fn new(max_parallel: usize, per_minute: Option<u64>) -> Self {
        let now = Instant::now();
        let max_parallel = max_parallel.max(1);
        Self {
            max_parallel,
            interval: per_minute.map(|rate| Duration::from_mins(1).div_f64(count(rate.max(1)))),
            state: Mutex::new(State {
                window: count(max_parallel as u64),
                running: 0,
                resume_at: now,
                next_slot: now,
                cut_at: now,
                arrived: 0,
                answered: 0,
                was_limited: false,
                queue: BTreeMap::new(),
            }),
            changed: Notify::new(),
        }
    }

    /// Takes the next place in the order.
    pub fn enter(self: &Arc<Self>) -> Call {
        let mut state = self.state();
        state.arrived += 1;
        Call { throttle: Arc::clone(self), number: state.arrived }
    }

    /// Starts what may start; returns when to try again, if only time is missing.
    fn grant_permits(self: &Arc<Self>, state: &mut State) -> Option<Instant> {
        let now = Instant::now();
        while !state.queue.is_empty() && state.running < whole(state.window) {
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
                // The call was given up. The state is locked here, so that the drop must not lock it again.
                Err(mut permit) => permit.is_void = true,
            }
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current number of parallel attempts, if the server ever asked to slow down.
    pub fn slowed_down(&self) -> Option<usize> {
        let state = self.state();
        state.was_limited.then(|| whole(state.window))
    }

    #[cfg(test)]
    fn window(&self) -> usize {
        whole(self.state().window)
    }
}

impl Call {
    /// Waits until an attempt may start: there is room, no wait was asked for, and the rate allows it.
    pub async fn permit(&self) -> Permit {
        let (sender, mut permit) = oneshot::channel();
        self.throttle.state().queue.insert(self.number, sender);
        loop {
            // Listens before it looks, so that no change is missed.
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
        state.window = (state.window + 1.0 / state.window).min(count(self.throttle.max_parallel as u64));
    }

    /// Reports that the server got too many requests, and perhaps for how long it wants none.
    ///
    /// Returns whether other attempts are running, or were answered since an earlier attempt of this call (which had the
    /// given `answered_before`): then all calls together are too fast, and it is not this call that is refused.
    pub fn rate_limited(self, answered_before: u64, retry_after: Option<Duration>) -> bool {
        let mut state = self.throttle.state();
        state.was_limited = true;
        let now = Instant::now();
        if let Some(wait) = retry_after {
            state.resume_at = state.resume_at.max(now + wait);
        }
        // Attempts that started before the cut were sent under the old window: one burst halves it once.
        if self.started_at >= state.cut_at {
            state.window = (state.window / 2.0).max(1.0);
            state.cut_at = now;
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
        // Attempts that waited for room now wait for a time.
        if again.is_some() {
            self.throttle.changed.notify_waiters();
        }
    }
}

fn whole(window: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1, at most a count")]
    let whole = window as usize;
    whole.max(1)
}

fn count(number: u64) -> f64 {
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
        assert!(starts.is_sorted(), "who came first goes first");
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(100)), "{starts:?}");
        // Nor is it slower than it need be.
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
        let company: Vec<bool> =
            calls.into_iter().map(|call| call.rate_limited(0, Some(Duration::from_secs(1)))).collect();
        assert_eq!(throttle.window(), 4, "one storm, one cut");
        assert_eq!(company, [true, true, true, true, true, true, true, false], "the last one is alone");
        let start = Instant::now();
        let again = throttle.enter().permit().await;
        assert!(again.started_at - start >= Duration::from_millis(999), "{:?}", again.started_at - start);
        assert!(!again.rate_limited(0, None), "this one was alone");
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
        assert!(tokio::time::timeout(short, calls[1].permit()).await.is_err(), "there is room for one");
        drop(first);
        // What gave up does not keep its place.
        drop(calls[2].permit().await);
    }

    #[tokio::test(start_paused = true)]
    async fn distinguishes_refused_calls_from_fast_ones() {
        let throttle = Arc::new(Throttle::new(1000, None));
        let (mine, other) = (throttle.enter(), throttle.enter());
        let first = mine.permit().await;
        let before = first.answered_before();
        assert!(!first.rate_limited(before, None));
        assert!(!mine.permit().await.rate_limited(before, None), "nobody was answered");
        drop(other.permit().await);
        assert!(!mine.permit().await.rate_limited(before, None), "nobody was answered still");
        other.permit().await.answered();
        assert!(mine.permit().await.rate_limited(before, None), "somebody was");
        let _other = other.permit().await;
        let last = mine.permit().await;
        let before = last.answered_before();
        assert!(last.rate_limited(before, None), "somebody else is being asked");
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_that_wait_for_room_and_then_for_time_start() {
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
        for one in waiting {
            tokio::time::timeout(Duration::from_secs(10), one).await.expect("is let through").expect("no panic");
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
