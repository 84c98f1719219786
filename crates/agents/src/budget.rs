//! What a run may cost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karat_core::trace::Usage;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::price::Price;

/// Keeps a run's calls below a sum: a call that would pass it is not made.
///
/// What a call will cost is not known before it was made. The most that an answer used so far, and the most tokens that
/// a byte of a request made, stand for the next one; while nothing is known of a model, its calls go one by one.
#[derive(Debug)]
pub struct Budget {
    limit: Option<f64>,
    account: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    spent: f64,
    /// For calls that are under way.
    reserved: f64,
    /// A call was made of which nobody will ever know what it cost.
    is_unknown: bool,
}

/// What is known of calls before they are made: nothing until the first has ended.
#[derive(Debug)]
pub(crate) struct Experience<T> {
    first: Arc<Semaphore>,
    known: Mutex<Option<T>>,
}

/// The most that a model's calls used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MostUsed {
    input_tokens_per_byte: f64,
    output_tokens: u64,
}

/// A call that the budget allows; what was set aside for it is freed when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<'b> {
    budget: &'b Budget,
    amount: f64,
    /// The call is on its way: if nobody waits for its answer, it costs all the same.
    is_sent: AtomicBool,
    _first: Option<OwnedSemaphorePermit>,
}

/// The budget has no room for another call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UsedUp {
    pub(crate) message: String,
}

impl Budget {
    /// Allows so many US dollars, or any sum.
    pub fn new(limit: Option<f64>) -> Self {
        Self { limit, account: Mutex::default() }
    }

    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Sets aside what a request of so many bytes may cost.
    pub(crate) async fn reserve_tokens(
        &self,
        experience: &Experience<MostUsed>,
        price: Option<&Price>,
        bytes: usize,
    ) -> Result<Reservation<'_>, UsedUp> {
        let expect = |most: MostUsed| price.and_then(|price| price.of(&most.expected(bytes))).unwrap_or(0.0);
        self.reserve(experience, expect).await
    }

    /// Sets aside what a call may cost; the first goes alone.
    pub(crate) async fn reserve<T: Copy>(
        &self,
        experience: &Experience<T>,
        expect: impl Fn(T) -> f64,
    ) -> Result<Reservation<'_>, UsedUp> {
        let Some(limit) = self.limit else {
            return Ok(self.reservation(0.0, None));
        };
        let mut first = None;
        if experience.known().is_none() {
            // Never closed; should it be, the call is made as if it were the first.
            first = Arc::clone(&experience.first).acquire_owned().await.ok();
        }
        let known = *experience.known();
        let expected = known.map_or(0.0, expect);
        if known.is_some() {
            first = None;
        }
        let mut account = self.account();
        let Account { spent, reserved, is_unknown } = *account;
        if is_unknown {
            let message = "a call was given up before it said what it used, so 'maxCostUsd' cannot be kept".to_owned();
            return Err(UsedUp { message });
        }
        // What is spent may be the limit to the cent, and sums of such fractions are not exact.
        if spent + reserved + expected > limit * (1.0 + 1e-9) || spent >= limit {
            let message = format!(
                "the budget of ${limit} ('maxCostUsd') has no room for another call: ${spent:.4} spent, ${reserved:.4} \
                 under way, about ${expected:.4} needed"
            );
            return Err(UsedUp { message });
        }
        account.reserved += expected;
        Ok(self.reservation(expected, first))
    }

    fn reservation(&self, amount: f64, first: Option<OwnedSemaphorePermit>) -> Reservation<'_> {
        Reservation { budget: self, amount, is_sent: AtomicBool::new(false), _first: first }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// The call is on its way.
    pub(crate) fn sent(&self) {
        self.is_sent.store(true, Ordering::Relaxed);
    }

    /// The call came back without an answer, for which nobody asks money.
    pub(crate) fn refused(&self) {
        self.is_sent.store(false, Ordering::Relaxed);
    }

    /// The call was answered and cost this much.
    pub(crate) fn settle(self, cost: f64) {
        self.refused();
        self.budget.account().spent += cost;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut account = self.budget.account();
        account.reserved = (account.reserved - self.amount).max(0.0);
        if self.is_sent.load(Ordering::Relaxed) {
            account.spent += self.amount;
            account.is_unknown |= self.amount == 0.0;
        }
    }
}

impl<T> Default for Experience<T> {
    fn default() -> Self {
        Self { first: Arc::new(Semaphore::new(1)), known: Mutex::default() }
    }
}

impl<T> Experience<T> {
    fn known(&self) -> MutexGuard<'_, Option<T>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Experience<MostUsed> {
    /// Takes note of what a request of so many bytes used.
    pub(crate) fn learn_tokens(&self, usage: &Usage, bytes: usize) {
        let (Some(input), Some(output)) = (usage.input_tokens, usage.output_tokens) else {
            return;
        };
        let mut known = self.known();
        let before = known.unwrap_or(MostUsed { input_tokens_per_byte: 0.0, output_tokens: 0 });
        *known = Some(MostUsed {
            input_tokens_per_byte: before.input_tokens_per_byte.max(number(input) / number(bytes.max(1) as u64)),
            output_tokens: before.output_tokens.max(output),
        });
    }
}

impl Experience<f64> {
    /// Takes note of what a call cost.
    pub(crate) fn learn(&self, cost: f64) {
        let mut known = self.known();
        *known = Some(known.unwrap_or(0.0).max(cost));
    }
}

impl MostUsed {
    fn expected(self, bytes: usize) -> Usage {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a product of counts")]
        let input = (self.input_tokens_per_byte * number(bytes as u64)).round() as u64;
        Usage { input_tokens: Some(input), output_tokens: Some(self.output_tokens), ..Usage::default() }
    }
}

fn number(count: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a count of bytes or tokens is far below 2^53")]
    let number = count as f64;
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price() -> Price {
        Price {
            input_usd_per_million: 100.0,
            output_usd_per_million: 1000.0,
            cached_input_usd_per_million: None,
            as_of: None,
        }
    }

    type Tokens = Experience<MostUsed>;

    async fn call(budget: &Budget, experience: &Tokens, usage: (u64, u64), bytes: usize) -> Result<(), UsedUp> {
        let reservation = budget.reserve_tokens(experience, Some(&price()), bytes).await?;
        reservation.sent();
        let usage = Usage { input_tokens: Some(usage.0), output_tokens: Some(usage.1), ..Usage::default() };
        experience.learn_tokens(&usage, bytes);
        reservation.settle(price().of(&usage).expect("known"));
        Ok(())
    }

    #[tokio::test]
    async fn the_call_that_would_pass_the_sum_is_not_made() {
        // Each costs 10 * 0.0001 + 9 * 0.001 = 0.01.
        let (budget, experience) = (Budget::new(Some(0.035)), Tokens::default());
        for _ in 0..3 {
            call(&budget, &experience, (10, 9), 100).await.expect("room");
        }
        let used_up = call(&budget, &experience, (10, 9), 100).await.expect_err("no room");
        assert!(used_up.message.contains("$0.035") && used_up.message.contains("$0.0300 spent"), "{used_up:?}");
    }

    #[tokio::test]
    async fn equal_calls_are_expected_to_cost_the_same_to_the_token() {
        for bytes in 1..2_000 {
            let experience = Tokens::default();
            let usage = Usage { input_tokens: Some(7), output_tokens: Some(3), ..Usage::default() };
            experience.learn_tokens(&usage, bytes);
            let most = experience.known().expect("learnt");
            assert_eq!(most.expected(bytes).input_tokens, Some(7), "{bytes} bytes");
        }
    }

    #[tokio::test]
    async fn a_sum_can_be_used_to_the_last_cent() {
        let (budget, experience) = (Budget::new(Some(0.03)), Tokens::default());
        for _ in 0..3 {
            call(&budget, &experience, (10, 9), 100).await.expect("room");
        }
        call(&budget, &experience, (10, 9), 100).await.expect_err("no room");
    }

    #[tokio::test]
    async fn a_longer_request_is_expected_to_cost_more() {
        let (budget, experience) = (Budget::new(Some(0.021)), Tokens::default());
        call(&budget, &experience, (10, 9), 100).await.expect("room");
        assert!(budget.reserve_tokens(&experience, Some(&price()), 10_000).await.is_err());
        assert!(budget.reserve_tokens(&experience, Some(&price()), 110).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_calls_go_one_by_one_and_those_under_way_count() {
        let (budget, experience) = (Budget::new(Some(0.025)), Tokens::default());
        let first = budget.reserve_tokens(&experience, Some(&price()), 100).await.expect("room");
        let wait = std::time::Duration::from_secs(1);
        let price = price();
        let second = budget.reserve_tokens(&experience, Some(&price), 100);
        assert!(tokio::time::timeout(wait, second).await.is_err(), "nothing is known yet");
        let usage = Usage { input_tokens: Some(10), output_tokens: Some(9), ..Usage::default() };
        experience.learn_tokens(&usage, 100);
        first.settle(0.01);
        let _second = budget.reserve_tokens(&experience, Some(&price), 100).await.expect("room");
        assert!(budget.reserve_tokens(&experience, Some(&price), 100).await.is_err(), "one is under way");
    }

    #[tokio::test]
    async fn without_a_sum_everything_goes() {
        let (budget, experience) = (Budget::new(None), Tokens::default());
        for _ in 0..100 {
            call(&budget, &experience, (1_000_000, 1_000_000), 1).await.expect("room");
        }
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_costs_what_was_set_aside_or_ends_it_all() {
        let (budget, experience) = (Budget::new(Some(0.035)), Tokens::default());
        call(&budget, &experience, (10, 9), 100).await.expect("room");
        let price = price();
        for _ in 0..2 {
            let given_up = budget.reserve_tokens(&experience, Some(&price), 100).await.expect("room");
            given_up.sent();
        }
        let refused = budget.reserve_tokens(&experience, Some(&price), 1).await.expect_err("0.03 are spent");
        assert!(refused.message.contains("$0.0300 spent"), "{refused:?}");

        let (budget, experience) = (Budget::new(Some(1.0)), Tokens::default());
        let came_back = budget.reserve_tokens(&experience, Some(&price), 100).await.expect("room");
        came_back.sent();
        came_back.refused();
        drop(came_back);
        budget.reserve_tokens(&experience, Some(&price), 100).await.expect("a refusal costs nothing").sent();
        let unknown = budget.reserve_tokens(&experience, Some(&price), 100).await.expect_err("nobody knows");
        assert!(unknown.message.contains("given up"), "{unknown:?}");
    }
}
