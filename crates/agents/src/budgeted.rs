//! Keeps a budget with an agent that says itself what its answers cost.

use std::sync::Arc;

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, Ask, Pending, Wait};
use karat_core::trace::Trace;
use serde_json::{Map, Value};

use crate::budget::{Budget, Experience};

/// Asks another agent as long as the budget has room for an answer as dear as the dearest so far.
pub struct BudgetedAgent {
    inner: Arc<dyn Agent>,
    budget: Arc<Budget>,
    dearest: Experience<f64>,
}

impl BudgetedAgent {
    pub fn new(inner: Arc<dyn Agent>, budget: Arc<Budget>) -> Self {
        Self { inner, budget, dearest: Experience::default() }
    }

    async fn ask(&self, ask: Ask<'_>) -> Result<Trace, AgentError> {
        let wait = Wait::begin(ask.waiting);
        let reservation = self.budget.reserve(&self.dearest, |dearest| dearest).await;
        drop(wait);
        let reservation = reservation.map_err(|used_up| AgentError::budget(used_up.message))?;
        reservation.sent();
        let trace = self.inner.answer(ask).await.inspect_err(|_| reservation.refused())?;
        let Some(cost) = trace.cost_usd() else {
            reservation.refused();
            let message = "the agent does not say what its answer cost, so 'maxCostUsd' cannot be kept";
            return Err(AgentError::budget(message));
        };
        self.dearest.learn(cost);
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

    fn question(&self, case: &Case) -> String {
        self.inner.question(case)
    }

    fn mode(&self, case: &Case) -> Mode {
        self.inner.mode(case)
    }

    fn answer<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Result<Trace, AgentError>> {
        Box::pin(self.ask(ask))
    }

    fn given_up(&self, ask: Ask<'_>, error: &AgentError) {
        self.inner.given_up(ask, error);
    }
}
