//! Enforces a budget on an agent that reports its own cost.

use std::sync::Arc;

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, AgentRequest, BoxFuture, WaitGuard};
use karat_core::trace::Trace;
use serde_json::{Map, Value};

use crate::budget::{Budget, UsageEstimator};

/// Calls the inner agent while the budget covers the most expensive answer so far.
pub struct BudgetedAgent {
    inner: Arc<dyn Agent>,
    budget: Arc<Budget>,
    max_cost: UsageEstimator<f64>,
}

impl BudgetedAgent {
    pub fn new(inner: Arc<dyn Agent>, budget: Arc<Budget>) -> Self {
        Self { inner, budget, max_cost: UsageEstimator::default() }
    }

    async fn answer_within_budget(&self, request: AgentRequest<'_>) -> Result<Trace, AgentError> {
        let wait = WaitGuard::begin(request.wait_observer);
        let reservation = self.budget.reserve(&self.max_cost, |max_cost| max_cost).await;
        drop(wait);
        let reservation = reservation.map_err(|exceeded| AgentError::budget(exceeded.message))?;
        reservation.mark_sent();
        let trace = self.inner.answer(request).await.inspect_err(|_| reservation.mark_unbilled())?;
        let Some(cost) = trace.cost_usd() else {
            reservation.mark_unbilled();
            let message = "the agent does not report its cost, so 'maxCostUsd' cannot be enforced";
            return Err(AgentError::budget(message));
        };
        self.max_cost.record_cost(cost);
        reservation.settle(cost);
        Ok(trace)
    }
}

impl Agent for BudgetedAgent {
    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn parameters(&self) -> Map<String, Value> {
        self.inner.parameters()
    }

    fn determinants(&self, case: &Case) -> Map<String, Value> {
        self.inner.determinants(case)
    }

    fn equality_key(&self, case: &Case) -> String {
        self.inner.equality_key(case)
    }

    fn mode(&self, case: &Case) -> Mode {
        self.inner.mode(case)
    }

    fn answer<'a>(&'a self, request: AgentRequest<'a>) -> BoxFuture<'a, Result<Trace, AgentError>> {
        Box::pin(self.answer_within_budget(request))
    }

    fn on_abandoned(&self, request: AgentRequest<'_>, error: &AgentError) {
        self.inner.on_abandoned(request, error);
    }
}
