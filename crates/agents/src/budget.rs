//! The cost budget of a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karat_core::cost::dollars;
use karat_core::trace::Usage;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::price::Price;

/// Limits the cost of a run: a call that would exceed the limit is not made.
///
/// The cost of a call is not known in advance. It is estimated from the largest answer and the highest number of input
/// tokens per request byte so far. Until a model's first call completes, its calls run one at a time.
#[derive(Debug)]
pub struct Budget {
    limit: Option<f64>,
    account: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    spent: f64,
    /// The estimated cost of calls in flight.
    reserved: f64,
    /// Whether a call was cancelled whose cost cannot be determined.
    has_unknown_cost: bool,
}

/// Estimates the next call from the maximum usage or cost of past calls.
#[derive(Debug)]
pub(crate) struct UsageEstimator<T> {
    /// Serialises calls until the first one completes.
    first_call: Arc<Semaphore>,
    observed: Mutex<Option<T>>,
}

/// The maximum token usage of a model's calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaxTokenUsage {
    input_tokens_per_byte: f64,
    output_tokens: u64,
}

/// A share of the budget that is reserved for one call and released on drop.
#[derive(Debug)]
pub(crate) struct Reservation<'b> {
    budget: &'b Budget,
    amount: f64,
    /// A sent call is billed even if its answer is never read.
    is_sent: AtomicBool,
    _first_call: Option<OwnedSemaphorePermit>,
}

/// The budget does not cover another call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BudgetExceeded {
    pub(crate) message: String,
}

impl Budget {
    /// Creates a budget in US dollars; `None` means unlimited.
    pub fn new(limit: Option<f64>) -> Self {
        Self { limit, account: Mutex::default() }
    }

    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Reserves the estimated cost of a request with a body of `bytes` bytes.
    pub(crate) async fn reserve_tokens(
        &self,
        estimator: &UsageEstimator<MaxTokenUsage>,
        price: Option<&Price>,
        bytes: usize,
    ) -> Result<Reservation<'_>, BudgetExceeded> {
        let estimate = |max: MaxTokenUsage| price.and_then(|price| price.cost(&max.estimate(bytes))).unwrap_or(0.0);
        self.reserve(estimator, estimate).await
    }

    /// Reserves the estimated cost of a call; calls wait until the first one completes.
    pub(crate) async fn reserve<T: Copy>(
        &self,
        estimator: &UsageEstimator<T>,
        estimate: impl Fn(T) -> f64,
    ) -> Result<Reservation<'_>, BudgetExceeded> {
        let Some(limit) = self.limit else {
            return Ok(self.reservation(0.0, None));
        };
        let mut first_call = None;
        if estimator.observed().is_none() {
            // The semaphore is never closed.
            first_call = Arc::clone(&estimator.first_call).acquire_owned().await.ok();
        }
        let observed = *estimator.observed();
        let estimated = observed.map_or(0.0, estimate);
        if observed.is_some() {
            first_call = None;
        }
        let mut account = self.account();
        let Account { spent, reserved, has_unknown_cost } = *account;
        if has_unknown_cost {
            let message =
                "a call was cancelled before it reported its usage, so 'maxCostUsd' cannot be enforced".to_owned();
            return Err(BudgetExceeded { message });
        }
        // The tolerance lets a run spend exactly its limit despite rounding errors.
        if spent + reserved + estimated > limit * (1.0 + 1e-9) || spent >= limit {
            let message = format!(
                "the budget of ${limit} ('maxCostUsd') does not cover another call: {} spent, {} in flight, about {} \
                 needed",
                dollars(spent),
                dollars(reserved),
                dollars(estimated),
            );
            return Err(BudgetExceeded { message });
        }
        account.reserved += estimated;
        Ok(self.reservation(estimated, first_call))
    }

    fn reservation(&self, amount: f64, first_call: Option<OwnedSemaphorePermit>) -> Reservation<'_> {
        Reservation { budget: self, amount, is_sent: AtomicBool::new(false), _first_call: first_call }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// Marks the call as sent, so that it is billed if it is cancelled.
    pub(crate) fn mark_sent(&self) {
        self.is_sent.store(true, Ordering::Relaxed);
    }

    /// Marks the call as not billed, because it failed.
    pub(crate) fn mark_unbilled(&self) {
        self.is_sent.store(false, Ordering::Relaxed);
    }

    /// Records the actual cost of an answered call.
    pub(crate) fn settle(self, cost: f64) {
        self.mark_unbilled();
        self.budget.account().spent += cost;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut account = self.budget.account();
        account.reserved = (account.reserved - self.amount).max(0.0);
        if self.is_sent.load(Ordering::Relaxed) {
            account.spent += self.amount;
            account.has_unknown_cost |= self.amount == 0.0;
        }
    }
}

impl<T> Default for UsageEstimator<T> {
    fn default() -> Self {
        Self { first_call: Arc::new(Semaphore::new(1)), observed: Mutex::default() }
    }
}

impl<T> UsageEstimator<T> {
    fn observed(&self) -> MutexGuard<'_, Option<T>> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UsageEstimator<MaxTokenUsage> {
    /// Records the usage of a request with a body of `bytes` bytes.
    pub(crate) fn record_usage(&self, usage: &Usage, bytes: usize) {
        let (Some(input), Some(output)) = (usage.input_tokens, usage.output_tokens) else {
            return;
        };
        let mut observed = self.observed();
        let previous = observed.unwrap_or(MaxTokenUsage { input_tokens_per_byte: 0.0, output_tokens: 0 });
        *observed = Some(MaxTokenUsage {
            input_tokens_per_byte: previous.input_tokens_per_byte.max(to_f64(input) / to_f64(bytes.max(1) as u64)),
            output_tokens: previous.output_tokens.max(output),
        });
    }
}

impl UsageEstimator<f64> {
    pub(crate) fn record_cost(&self, cost: f64) {
        let mut observed = self.observed();
        *observed = Some(observed.unwrap_or(0.0).max(cost));
    }
}

impl MaxTokenUsage {
    fn estimate(self, bytes: usize) -> Usage {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a product of non-negative counts")]
        let input = (self.input_tokens_per_byte * to_f64(bytes as u64)).round() as u64;
        Usage { input_tokens: Some(input), output_tokens: Some(self.output_tokens), ..Usage::default() }
    }
}

fn to_f64(count: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "byte and token counts are far below 2^53")]
    let count = count as f64;
    count
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

    type TokenEstimator = UsageEstimator<MaxTokenUsage>;

    async fn call(
        budget: &Budget,
        estimator: &TokenEstimator,
        usage: (u64, u64),
        bytes: usize,
    ) -> Result<(), BudgetExceeded> {
        let reservation = budget.reserve_tokens(estimator, Some(&price()), bytes).await?;
        reservation.mark_sent();
        let usage = Usage { input_tokens: Some(usage.0), output_tokens: Some(usage.1), ..Usage::default() };
        estimator.record_usage(&usage, bytes);
        reservation.settle(price().cost(&usage).expect("both token counts are given"));
        Ok(())
    }

    #[tokio::test]
    async fn a_call_that_would_exceed_the_limit_is_not_made() {
        // Each call costs 10 * 0.0001 + 9 * 0.001 = 0.01.
        let (budget, estimator) = (Budget::new(Some(0.035)), TokenEstimator::default());
        for _ in 0..3 {
            call(&budget, &estimator, (10, 9), 100).await.expect("within the budget");
        }
        let exceeded = call(&budget, &estimator, (10, 9), 100).await.expect_err("over the budget");
        assert!(exceeded.message.contains("$0.035") && exceeded.message.contains("$0.0300 spent"), "{exceeded:?}");
    }

    #[tokio::test]
    async fn equal_requests_have_the_same_estimate() {
        for bytes in 1..2_000 {
            let estimator = TokenEstimator::default();
            let usage = Usage { input_tokens: Some(7), output_tokens: Some(3), ..Usage::default() };
            estimator.record_usage(&usage, bytes);
            let max = estimator.observed().expect("usage is recorded");
            assert_eq!(max.estimate(bytes).input_tokens, Some(7), "{bytes} bytes");
        }
    }

    #[tokio::test]
    async fn small_amounts_are_not_rounded_away() {
        let budget = Budget::new(Some(0.0001));
        let estimator = UsageEstimator::<f64>::default();
        budget.reserve(&estimator, |cost| cost).await.expect("the first call").settle(0.000_06);
        estimator.record_cost(0.000_06);
        let exceeded = budget.reserve(&estimator, |cost| cost).await.expect_err("over the budget");
        let expected = "the budget of $0.0001 ('maxCostUsd') does not cover another call: $0.0000600 spent, $0.00 in \
                        flight, about $0.0000600 needed";
        assert_eq!(exceeded.message, expected);
    }

    #[tokio::test]
    async fn a_budget_can_be_spent_exactly() {
        let (budget, estimator) = (Budget::new(Some(0.03)), TokenEstimator::default());
        for _ in 0..3 {
            call(&budget, &estimator, (10, 9), 100).await.expect("within the budget");
        }
        call(&budget, &estimator, (10, 9), 100).await.expect_err("over the budget");
    }

    #[tokio::test]
    async fn a_longer_request_has_a_higher_estimate() {
        let (budget, estimator) = (Budget::new(Some(0.021)), TokenEstimator::default());
        call(&budget, &estimator, (10, 9), 100).await.expect("within the budget");
        assert!(budget.reserve_tokens(&estimator, Some(&price()), 10_000).await.is_err());
        assert!(budget.reserve_tokens(&estimator, Some(&price()), 110).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn first_calls_are_serialised_and_calls_in_flight_count() {
        let (budget, estimator) = (Budget::new(Some(0.025)), TokenEstimator::default());
        let first = budget.reserve_tokens(&estimator, Some(&price()), 100).await.expect("within the budget");
        let wait = std::time::Duration::from_secs(1);
        let price = price();
        let second = budget.reserve_tokens(&estimator, Some(&price), 100);
        assert!(tokio::time::timeout(wait, second).await.is_err(), "no usage is recorded yet");
        let usage = Usage { input_tokens: Some(10), output_tokens: Some(9), ..Usage::default() };
        estimator.record_usage(&usage, 100);
        first.settle(0.01);
        let _second = budget.reserve_tokens(&estimator, Some(&price), 100).await.expect("within the budget");
        assert!(budget.reserve_tokens(&estimator, Some(&price), 100).await.is_err(), "one call is in flight");
    }

    #[tokio::test]
    async fn an_unlimited_budget_allows_every_call() {
        let (budget, estimator) = (Budget::new(None), TokenEstimator::default());
        for _ in 0..100 {
            call(&budget, &estimator, (1_000_000, 1_000_000), 1).await.expect("within the budget");
        }
    }

    #[tokio::test]
    async fn a_cancelled_call_costs_its_reservation_or_ends_the_run() {
        let (budget, estimator) = (Budget::new(Some(0.035)), TokenEstimator::default());
        call(&budget, &estimator, (10, 9), 100).await.expect("within the budget");
        let price = price();
        for _ in 0..2 {
            let cancelled = budget.reserve_tokens(&estimator, Some(&price), 100).await.expect("within the budget");
            cancelled.mark_sent();
        }
        let exceeded = budget.reserve_tokens(&estimator, Some(&price), 1).await.expect_err("0.03 is spent");
        assert!(exceeded.message.contains("$0.0300 spent"), "{exceeded:?}");

        let (budget, estimator) = (Budget::new(Some(1.0)), TokenEstimator::default());
        let failed = budget.reserve_tokens(&estimator, Some(&price), 100).await.expect("within the budget");
        failed.mark_sent();
        failed.mark_unbilled();
        drop(failed);
        budget.reserve_tokens(&estimator, Some(&price), 100).await.expect("a failed call is free").mark_sent();
        let unknown = budget.reserve_tokens(&estimator, Some(&price), 100).await.expect_err("the cost is unknown");
        assert!(unknown.message.contains("cancelled"), "{unknown:?}");
    }
}
