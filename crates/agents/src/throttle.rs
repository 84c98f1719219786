//! How fast a provider may be asked: a rate, a pause that it asked for, and as many calls at once as it bears.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

/// Lets calls to one provider through.
///
/// The number of calls at once is halved when the provider says that it is too much, and creeps up again with every
/// call that it answers. Who came first goes first, also when it is for another try.
#[derive(Debug)]
pub struct Throttle {
    most: usize,
    /// The least time between the beginnings of two calls.
    interval: Option<Duration>,
    state: Mutex<State>,
    /// Told when it has become a matter of time who begins next.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// How many calls may be under way at once; a fraction is on its way up to the next whole number.
    window: f64,
    under_way: usize,
    /// Nothing begins before.
    resume_at: Instant,
    /// When the next call may begin by the rate.
    next_slot: Instant,
    /// When the window was cut last: what was under way then says nothing of the new window.
    cut_at: Instant,
    arrived: u64,
    /// How many tries were answered.
    answered: u64,
    was_refused: bool,
    /// Who waits, in the order of arrival.
    queue: BTreeMap<u64, oneshot::Sender<Begun>>,
}

/// A call's place in the order of arrival, for all its tries.
#[derive(Debug)]
pub(crate) struct Turn {
    throttle: Arc<Throttle>,
    number: u64,
}

/// One try of a call, under way until it is dropped.
#[derive(Debug)]
pub(crate) struct Begun {
    throttle: Arc<Throttle>,
    at: Instant,
    /// How many tries had been answered when it began.
    answered_before: u64,
    /// Nobody took it, so there is nothing to give back.
    void: bool,
}

impl Throttle {
    /// Allows `most` calls at once and, where given, so many in a minute, evenly spread.
    pub fn new(most: usize, per_minute: Option<u64>) -> Self {
        let now = Instant::now();
        let most = most.max(1);
        Self {
            most,
            interval: per_minute.map(|rate| Duration::from_mins(1).div_f64(count(rate.max(1)))),
            state: Mutex::new(State {
                window: count(most as u64),
                under_way: 0,
                resume_at: now,
                next_slot: now,
                cut_at: now,
                arrived: 0,
                answered: 0,
                was_refused: false,
                queue: BTreeMap::new(),
            }),
            changed: Notify::new(),
        }
    }

    /// Takes a place in the order.
    pub(crate) fn turn(self: &Arc<Self>) -> Turn {
        let mut state = self.state();
        state.arrived += 1;
        Turn { throttle: Arc::clone(self), number: state.arrived }
    }

    /// Lets begin whoever may; returns when to look again, if it is only a matter of time.
    fn let_begin(self: &Arc<Self>, state: &mut State) -> Option<Instant> {
        let now = Instant::now();
        while !state.queue.is_empty() && state.under_way < whole(state.window) {
            let earliest = state.resume_at.max(if self.interval.is_some() { state.next_slot } else { now });
            if earliest > now {
                return Some(earliest);
            }
            let Some((_, waiting)) = state.queue.pop_first() else { break };
            let answered_before = state.answered;
            let begun = Begun { throttle: Arc::clone(self), at: now, answered_before, void: false };
            match waiting.send(begun) {
                Ok(()) => {
                    state.under_way += 1;
                    if let Some(interval) = self.interval {
                        state.next_slot = now + interval;
                    }
                }
                // It was given up in the meantime. The state is locked, so that dropping must not look at it.
                Err(mut begun) => begun.void = true,
            }
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many calls may be under way at once by now, if the provider ever asked to slow down.
    pub fn slowed_down(&self) -> Option<usize> {
        let state = self.state();
        state.was_refused.then(|| whole(state.window))
    }

    #[cfg(test)]
    fn window(&self) -> usize {
        whole(self.state().window)
    }
}

impl Turn {
    /// Waits until a try may begin: there is room, no pause is asked for, and the rate allows it.
    pub(crate) async fn begin(&self) -> Begun {
        let (sender, mut begun) = oneshot::channel();
        self.throttle.state().queue.insert(self.number, sender);
        loop {
            // Listening before looking, so that no change is missed.
            let changed = self.throttle.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let again = self.throttle.let_begin(&mut self.throttle.state());
            let time = async {
                match again {
                    Some(again) => sleep_until(again).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Ok(begun) = &mut begun => return begun,
                () = time => {}
                () = changed => {}
            }
        }
    }
}

impl Begun {
    /// Returns how many tries had been answered when it began.
    pub(crate) fn answered_before(&self) -> u64 {
        self.answered_before
    }

    /// The try was answered.
    pub(crate) fn succeeded(self) {
        let mut state = self.throttle.state();
        state.answered += 1;
        state.window = (state.window + 1.0 / state.window).min(count(self.throttle.most as u64));
    }

    /// The provider said that it is asked too much, and perhaps for how long to leave it alone.
    ///
    /// Returns whether others are being asked at the same time, or were answered since the call's first or latest try
    /// began (`answered_before` then): then it is us who were too fast, and not this call that is refused for itself.
    pub(crate) fn refused(self, answered_before: u64, pause: Option<Duration>) -> bool {
        let mut state = self.throttle.state();
        state.was_refused = true;
        let now = Instant::now();
        if let Some(pause) = pause {
            state.resume_at = state.resume_at.max(now + pause);
        }
        // One storm cuts once: what began before the cut is answered by the old window's rules.
        if self.at >= state.cut_at {
            state.window = (state.window / 2.0).max(1.0);
            state.cut_at = now;
        }
        state.under_way > 1 || state.answered > answered_before
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.void {
            return;
        }
        let mut state = self.throttle.state();
        state.under_way = state.under_way.saturating_sub(1);
        let again = self.throttle.let_begin(&mut state);
        drop(state);
        // Those who waited for room wait for a time now.
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
    async fn a_rate_is_never_passed() {
        let throttle = Arc::new(Throttle::new(50, Some(600)));
        let start = Instant::now();
        let calls = (0..50).map(|_| {
            let turn = throttle.turn();
            tokio::spawn(async move {
                let begun = turn.begin().await;
                let at = begun.at;
                begun.succeeded();
                at
            })
        });
        let mut begun = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            begun.push(call.await.expect("no panic"));
        }
        assert!(begun.is_sorted(), "who came first goes first");
        assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(100)), "{begun:?}");
        // Nor is it slower than it need be.
        assert!(begun[49] - start <= Duration::from_millis(4_960), "{:?}", begun[49] - start);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_halves_the_window_once_and_pauses_everybody() {
        let throttle = Arc::new(Throttle::new(8, None));
        let mut calls = Vec::new();
        for _ in 0..8 {
            calls.push(throttle.turn().begin().await);
        }
        tokio::time::advance(Duration::from_millis(10)).await;
        let company: Vec<bool> = calls.into_iter().map(|call| call.refused(0, Some(Duration::from_secs(1)))).collect();
        assert_eq!(throttle.window(), 4, "one storm, one cut");
        assert_eq!(company, [true, true, true, true, true, true, true, false], "the last one is alone");
        let start = Instant::now();
        let again = throttle.turn().begin().await;
        assert!(again.at - start >= Duration::from_millis(999), "{:?}", again.at - start);
        assert!(!again.refused(0, None), "this one was alone");
        assert_eq!(throttle.window(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_window_holds_for_those_who_try_again_as_well() {
        let throttle = Arc::new(Throttle::new(4, None));
        let turns: Vec<Turn> = (0..4).map(|_| throttle.turn()).collect();
        for _ in 0..3 {
            let begun = turns[0].begin().await;
            tokio::time::advance(Duration::from_millis(1)).await;
            begun.refused(0, None);
        }
        assert_eq!(throttle.window(), 1);
        let first = turns[0].begin().await;
        let short = Duration::from_secs(1);
        assert!(tokio::time::timeout(short, turns[1].begin()).await.is_err(), "there is room for one");
        drop(first);
        // What gave up does not keep its place.
        drop(turns[2].begin().await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_refused_for_itself_is_told_so() {
        let throttle = Arc::new(Throttle::new(1000, None));
        let (mine, other) = (throttle.turn(), throttle.turn());
        let first = mine.begin().await;
        let before = first.answered_before();
        assert!(!first.refused(before, None));
        assert!(!mine.begin().await.refused(before, None), "nobody was answered");
        drop(other.begin().await);
        assert!(!mine.begin().await.refused(before, None), "nobody was answered still");
        other.begin().await.succeeded();
        assert!(mine.begin().await.refused(before, None), "somebody was");
        let _other = other.begin().await;
        let last = mine.begin().await;
        let before = last.answered_before();
        assert!(last.refused(before, None), "somebody else is being asked");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_forgotten_who_waits_for_room_and_then_for_time() {
        let throttle = Arc::new(Throttle::new(1, Some(600)));
        let first = throttle.turn().begin().await;
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let turn = throttle.turn();
                tokio::spawn(async move { turn.begin().await.succeeded() })
            })
            .collect();
        tokio::time::advance(Duration::from_millis(5)).await;
        first.refused(0, Some(Duration::from_secs(1)));
        for one in waiting {
            tokio::time::timeout(Duration::from_secs(10), one).await.expect("is let through").expect("no panic");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_widen_the_window_again_up_to_the_most() {
        let throttle = Arc::new(Throttle::new(4, None));
        for _ in 0..3 {
            tokio::time::advance(Duration::from_millis(1)).await;
            throttle.turn().begin().await.refused(0, None);
        }
        assert_eq!(throttle.window(), 1);
        for _ in 0..40 {
            throttle.turn().begin().await.succeeded();
        }
        assert_eq!(throttle.window(), 4);
    }
}
