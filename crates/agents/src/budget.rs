//! What a run may cost.

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
}

/// What is known of a model's calls.
#[derive(Debug)]
pub(crate) struct Experience {
    first: Arc<Semaphore>,
    most: Mutex<Option<Most>>,
}

#[derive(Debug, Clone, Copy)]
struct Most {
    input_tokens_per_byte: f64,
    output_tokens: u64,
}

/// A call that the budget allows; what was set aside for it is freed when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<'b> {
    budget: &'b Budget,
    amount: f64,
    _first: Option<OwnedSemaphorePermit>,
}

/// The budget has no room for another call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UsedUp {
    pub(crate) message: String,
}

impl Default for Experience {
    fn default() -> Self {
        Self { first: Arc::new(Semaphore::new(1)), most: Mutex::default() }
    }
}

impl Budget {
    /// Allows so many US dollars, or any sum.
    pub fn new(limit: Option<f64>) -> Self {
        Self { limit, account: Mutex::default() }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Sets aside what a request of so many bytes may cost.
    pub(crate) async fn reserve(
        &self,
        experience: &Experience,
        price: Option<&Price>,
        bytes: usize,
    ) -> Result<Reservation<'_>, UsedUp> {
        let (Some(limit), Some(price)) = (self.limit, price) else {
            return Ok(Reservation { budget: self, amount: 0.0, _first: None });
        };
        let mut first = None;
        if experience.most().is_none() {
            // Never closed; should it be, the call is made as if it were the first.
            first = Arc::clone(&experience.first).acquire_owned().await.ok();
        }
        let most = *experience.most();
        let expected = most.and_then(|most| price.of(&most.expected(bytes))).unwrap_or(0.0);
        if most.is_some() {
            first = None;
        }
        let mut account = self.account();
        let sum = account.spent + account.reserved + expected;
        // What is spent may be the limit to the cent, and sums of such fractions are not exact.
        if sum > limit * (1.0 + 1e-9) || account.spent >= limit {
            let message = format!(
                "the budget of ${limit} ('maxCostUsd') has no room for another call: ${:.4} spent, ${:.4} under way, \
                 about ${expected:.4} needed",
                account.spent, account.reserved
            );
            return Err(UsedUp { message });
        }
        account.reserved += expected;
        Ok(Reservation { budget: self, amount: expected, _first: first })
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// The call was made and used this much.
    pub(crate) fn settle(self, experience: &Experience, usage: &Usage, cost: f64, bytes: usize) {
        self.budget.account().spent += cost;
        if let (Some(input), Some(output)) = (usage.input_tokens, usage.output_tokens) {
            experience.learn(input, output, bytes);
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut account = self.budget.account();
        account.reserved = (account.reserved - self.amount).max(0.0);
    }
}

impl Experience {
    fn most(&self) -> MutexGuard<'_, Option<Most>> {
        self.most.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, input: u64, output: u64, bytes: usize) {
        let mut most = self.most();
        let before = most.unwrap_or(Most { input_tokens_per_byte: 0.0, output_tokens: 0 });
        *most = Some(Most {
            input_tokens_per_byte: before.input_tokens_per_byte.max(number(input) / number(bytes.max(1) as u64)),
            output_tokens: before.output_tokens.max(output),
        });
    }
}

impl Most {
    fn expected(self, bytes: usize) -> Usage {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a product of counts")]
        let input = (self.input_tokens_per_byte * number(bytes as u64)) as u64;
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

    async fn call(budget: &Budget, experience: &Experience, usage: (u64, u64), bytes: usize) -> Result<(), UsedUp> {
        let reservation = budget.reserve(experience, Some(&price()), bytes).await?;
        let usage = Usage { input_tokens: Some(usage.0), output_tokens: Some(usage.1), ..Usage::default() };
        let cost = price().of(&usage).expect("known");
        reservation.settle(experience, &usage, cost, bytes);
        Ok(())
    }

    #[tokio::test]
    async fn the_call_that_would_pass_the_sum_is_not_made() {
        // Each costs 10 * 0.0001 + 9 * 0.001 = 0.01.
        let (budget, experience) = (Budget::new(Some(0.035)), Experience::default());
        for _ in 0..3 {
            call(&budget, &experience, (10, 9), 100).await.expect("room");
        }
        let used_up = call(&budget, &experience, (10, 9), 100).await.expect_err("no room");
        assert!(used_up.message.contains("$0.035") && used_up.message.contains("$0.0300 spent"), "{used_up:?}");
    }

    #[tokio::test]
    async fn a_sum_can_be_used_to_the_last_cent() {
        let (budget, experience) = (Budget::new(Some(0.03)), Experience::default());
        for _ in 0..3 {
            call(&budget, &experience, (10, 9), 100).await.expect("room");
        }
        call(&budget, &experience, (10, 9), 100).await.expect_err("no room");
    }

    #[tokio::test]
    async fn a_longer_request_is_expected_to_cost_more() {
        let (budget, experience) = (Budget::new(Some(0.021)), Experience::default());
        call(&budget, &experience, (10, 9), 100).await.expect("room");
        assert!(budget.reserve(&experience, Some(&price()), 10_000).await.is_err());
        assert!(budget.reserve(&experience, Some(&price()), 110).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_calls_go_one_by_one_and_those_under_way_count() {
        let (budget, experience) = (Budget::new(Some(0.025)), Experience::default());
        let first = budget.reserve(&experience, Some(&price()), 100).await.expect("room");
        let wait = std::time::Duration::from_secs(1);
        let price = price();
        let second = budget.reserve(&experience, Some(&price), 100);
        assert!(tokio::time::timeout(wait, second).await.is_err(), "nothing is known yet");
        let usage = Usage { input_tokens: Some(10), output_tokens: Some(9), ..Usage::default() };
        first.settle(&experience, &usage, 0.01, 100);
        let _second = budget.reserve(&experience, Some(&price), 100).await.expect("room");
        assert!(budget.reserve(&experience, Some(&price), 100).await.is_err(), "one is under way");
    }

    #[tokio::test]
    async fn without_a_sum_everything_goes() {
        let (budget, experience) = (Budget::new(None), Experience::default());
        for _ in 0..100 {
            call(&budget, &experience, (1_000_000, 1_000_000), 1).await.expect("room");
        }
    }
}
