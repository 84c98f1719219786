//! Reads the tool calls of an agent from its telemetry.

use std::sync::Arc;

use karat_cases::Case;
use karat_core::assertion::Mode;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, Telemetry, TrialContext, WaitGuard};
use karat_core::trace::Trace;
use serde_json::{Map, Value};
use std::time::Duration;

/// Calls the inner agent and replaces the tool calls of its replies with those in its spans.
pub struct TelemetryAgent {
    inner: Arc<dyn Agent>,
    telemetry: Arc<dyn Telemetry>,
}

impl TelemetryAgent {
    pub fn new(inner: Arc<dyn Agent>, telemetry: Arc<dyn Telemetry>) -> Self {
        Self { inner, telemetry }
    }
}

impl Agent for TelemetryAgent {
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
        Box::new(TelemetryConversation { inner: self.inner.start(trial), agent: self, trial, turn: 0 })
    }
}

struct TelemetryConversation<'a> {
    inner: Box<dyn Conversation + 'a>,
    agent: &'a TelemetryAgent,
    trial: TrialContext<'a>,
    turn: usize,
}

impl TelemetryConversation<'_> {
    async fn send_and_observe(&mut self, message: &str) -> Result<Trace, AgentError> {
        let telemetry = &self.agent.telemetry;
        let context = self.trial.trace_context(self.turn);
        self.turn += 1;
        telemetry.expect(&context);
        let trace = self.inner.send(message).await.inspect_err(|_| telemetry.forget(&context))?;
        let wait = WaitGuard::begin(self.trial.wait_observer);
        let observed = telemetry.observe(&context).await;
        drop(wait);
        let observed = observed.map_err(|error| {
            AgentError::new(error.to_string(), Duration::from_secs_f64(trace.latency_ms.max(0.0) / 1000.0))
        })?;
        let mut warnings = trace.warnings;
        warnings.extend(observed.warnings);
        Ok(Trace {
            tool_calls: observed.tool_calls,
            steps: observed.steps,
            calls_unreported: false,
            usage: trace.usage.or(observed.usage),
            model: trace.model.or(observed.model),
            warnings,
            ..trace
        })
    }
}

impl Conversation for TelemetryConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(self.send_and_observe(message))
    }

    fn on_abandoned(&mut self, message: &str, error: &AgentError) {
        self.agent.telemetry.forget(&self.trial.trace_context(self.turn.saturating_sub(1)));
        self.inner.on_abandoned(message, error);
    }
}
