//! How fast a provider may be asked: a rate, a pause that it asked for, and as many calls at once as it bears.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

/// Lets calls to one provider through.
///
/// The number of calls at once is halved when the provider says that it is too much, and creeps up again with every
/// call that it answers.
#[derive(Debug)]
pub struct Throttle {
    permits: Semaphore,
    most: usize,
    /// The least time between the beginnings of two calls.
    interval: Option<Duration>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How many calls may be under way at once; a fraction is on its way up to the next whole number.
    window: f64,
    /// Permits to take back as soon as they are given back.
    owed: usize,
    under_way: usize,
    /// Nothing begins before.
    resume_at: Instant,
    /// When the next call may begin by the rate.
    next_slot: Instant,
    /// Grows when slots that were given away are void.
    plan: u64,
    /// When the window was cut last: what was under way then says nothing of the new window.
    cut_at: Instant,
}

/// A call that may be made, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'t> {
    throttle: &'t Throttle,
    permit: Option<SemaphorePermit<'t>>,
}

/// One try of a call, under way until it is dropped.
#[derive(Debug)]
pub(crate) struct Begun<'t> {
    throttle: &'t Throttle,
    at: Instant,
}

impl Throttle {
    /// Allows `most` calls at once and, where given, so many in a minute, evenly spread.
    pub fn new(most: usize, per_minute: Option<u64>) -> Self {
        let now = Instant::now();
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            permits: Semaphore::new(most),
            most,
            interval: per_minute.map(|rate| Duration::from_mins(1).div_f64(count(rate.max(1)))),
            state: Mutex::new(State {
                window: count(most as u64),
                owed: 0,
                under_way: 0,
                resume_at: now,
                next_slot: now,
                plan: 0,
                cut_at: now,
            }),
        }
    }

    /// Waits for a place among the calls under way.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        // The semaphore is never closed; without it, there would be nothing to hold back.
        Turn { throttle: self, permit: self.permits.acquire().await.ok() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a try begin, or says when to ask again. A slot is the plan it belongs to: a pause makes a new plan.
    fn admit(&self, slot: &mut Option<u64>) -> Result<Begun<'_>, Instant> {
        let mut state = self.state();
        let now = Instant::now();
        if state.resume_at > now {
            return Err(state.resume_at);
        }
        if let Some(interval) = self.interval
            && *slot != Some(state.plan)
        {
            *slot = Some(state.plan);
            let at = state.next_slot.max(now);
            state.next_slot = at + interval;
            if at > now {
                return Err(at);
            }
        }
        state.under_way += 1;
        Ok(Begun { throttle: self, at: now })
    }

    /// Gives or owes permits until there are as many as the window has room for.
    fn resize(&self, state: &mut State, from: usize, to: usize) {
        if to < from {
            let taken = self.permits.forget_permits(from - to);
            state.owed += from - to - taken;
        } else {
            let paid = state.owed.min(to - from);
            state.owed -= paid;
            self.permits.add_permits(to - from - paid);
        }
    }

    #[cfg(test)]
    fn window(&self) -> usize {
        whole(self.state().window)
    }
}

impl<'t> Turn<'t> {
    /// Waits until a try may begin: no pause is asked for, and the rate allows it.
    pub(crate) async fn begin(&self) -> Begun<'t> {
        let mut slot = None;
        loop {
            match self.throttle.admit(&mut slot) {
                Ok(begun) => return begun,
                Err(until) => sleep_until(until).await,
            }
        }
    }
}

impl Begun<'_> {
    /// The try was answered.
    pub(crate) fn succeeded(self) {
        let mut state = self.throttle.state();
        let before = whole(state.window);
        state.window = (state.window + 1.0 / state.window).min(count(self.throttle.most as u64));
        let after = whole(state.window);
        if after > before {
            self.throttle.resize(&mut state, before, after);
        }
    }

    /// The provider said that it is asked too much, and perhaps for how long to leave it alone; returns whether other
    /// calls were under way, so that it is us who were too fast and not this call that is refused for itself.
    pub(crate) fn refused(self, pause: Option<Duration>) -> bool {
        let mut state = self.throttle.state();
        let now = Instant::now();
        if let Some(pause) = pause {
            state.resume_at = state.resume_at.max(now + pause);
            state.next_slot = state.next_slot.min(state.resume_at);
            state.plan += 1;
        }
        // One storm cuts once: what began before the cut is answered by the old window's rules.
        if self.at >= state.cut_at {
            let before = whole(state.window);
            state.window = (state.window / 2.0).max(1.0);
            state.cut_at = now;
            let after = whole(state.window);
            self.throttle.resize(&mut state, before, after);
        }
        state.under_way > 1
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut state = self.throttle.state();
        state.under_way = state.under_way.saturating_sub(1);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.throttle.state();
        if state.owed > 0
            && let Some(permit) = self.permit.take()
        {
            state.owed -= 1;
            permit.forget();
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
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_never_passed() {
        let throttle = Arc::new(Throttle::new(50, Some(600)));
        let start = Instant::now();
        let calls = (0..50).map(|_| {
            let throttle = Arc::clone(&throttle);
            tokio::spawn(async move {
                let turn = throttle.turn().await;
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
        begun.sort();
        assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(99)), "{begun:?}");
        // Nor is it slower than it need be.
        assert!(begun[49] - start <= Duration::from_millis(4_960), "{:?}", begun[49] - start);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_halves_the_window_once_and_pauses_everybody() {
        let throttle = Throttle::new(8, None);
        let mut turns = Vec::new();
        for _ in 0..8 {
            let turn = throttle.turn().await;
            let begun = turn.begin().await;
            turns.push((turn, begun));
        }
        tokio::time::advance(Duration::from_millis(10)).await;
        let mut had_company = Vec::new();
        for (turn, begun) in turns {
            had_company.push(begun.refused(Some(Duration::from_secs(1))));
            drop(turn);
        }
        assert_eq!(throttle.window(), 4, "one storm, one cut");
        assert_eq!(had_company, [true, true, true, true, true, true, true, false], "the last one was alone");
        assert_eq!(throttle.permits.available_permits(), 4);
        let start = Instant::now();
        let turn = throttle.turn().await;
        let begun = turn.begin().await;
        assert!(begun.at - start >= Duration::from_millis(999), "{:?}", begun.at - start);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_widen_the_window_again_up_to_the_most() {
        let throttle = Throttle::new(4, None);
        let turn = throttle.turn().await;
        for _ in 0..3 {
            tokio::time::advance(Duration::from_millis(1)).await;
            let begun = turn.begin().await;
            begun.refused(None);
        }
        drop(turn);
        assert_eq!((throttle.window(), throttle.permits.available_permits()), (1, 1));
        for _ in 0..40 {
            let turn = throttle.turn().await;
            let begun = turn.begin().await;
            begun.succeeded();
        }
        assert_eq!((throttle.window(), throttle.permits.available_permits()), (4, 4));
    }
}
