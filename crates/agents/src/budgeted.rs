//! Enforces a budget on an agent that reports its own cost.

use std::sync::Arc;

use karat_cases::Case;
use karat_core::assertion::Mode;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext, WaitGuard, WaitObserver};
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
}

impl Agent for BudgetedAgent {
    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn parameters(&self) -> Map<String, Value> {
        self.inner.parameters()
    }

    fn determinants(&self, case: &Case, turn: usize) -> Map<String, Value> {
        self.inner.determinants(case, turn)
    }

    fn equality_key(&self, case: &Case) -> String {
        self.inner.equality_key(case)
    }

    fn mode(&self, case: &Case) -> Mode {
        self.inner.mode(case)
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), String>> {
        self.inner.prepare()
    }

    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(BudgetedConversation {
            inner: self.inner.start(trial),
            agent: self,
            wait_observer: trial.wait_observer,
        })
    }
}

struct BudgetedConversation<'a> {
    inner: Box<dyn Conversation + 'a>,
    agent: &'a BudgetedAgent,
    wait_observer: &'a dyn WaitObserver,
}

impl BudgetedConversation<'_> {
    async fn send_within_budget(&mut self, message: &str) -> Result<Trace, AgentError> {
        let BudgetedAgent { budget, max_cost, .. } = self.agent;
        let wait = WaitGuard::begin(self.wait_observer);
        let reservation = budget.reserve(max_cost, |max_cost| max_cost).await;
        drop(wait);
        let reservation = reservation.map_err(|exceeded| AgentError::budget(exceeded.message))?;
        reservation.mark_sent();
        let trace = self.inner.send(message).await.inspect_err(|_| reservation.mark_unbilled())?;
        let Some(cost) = trace.cost_usd() else {
            reservation.mark_unbilled();
            let message = "the agent does not report its cost, so 'maxCostUsd' cannot be enforced";
            return Err(AgentError::budget(message));
        };
        max_cost.record_cost(cost);
        reservation.settle(cost);
        Ok(trace)
    }
}

impl Conversation for BudgetedConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(self.send_within_budget(message))
    }

    fn on_abandoned(&mut self, message: &str, error: &AgentError) {
        self.inner.on_abandoned(message, error);
    }
}
