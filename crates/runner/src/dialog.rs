//! Sends the messages of a case to an agent.

use std::time::Duration;

use karat_cases::Case;
use karat_core::conversation::Exchange;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext};
use karat_core::state::CapturedStates;
use karat_core::trace::Trace;
use serde_json::{Map, Value};

use crate::stopwatch::Stopwatch;
use crate::timeout::with_timeout;

/// A conversation with an agent, within one time limit for all messages.
pub(crate) struct Dialog<'a> {
    conversation: Box<dyn Conversation + 'a>,
    timeout: Duration,
    watch: &'a Stopwatch,
    has_started: bool,
}

impl<'a> Dialog<'a> {
    pub(crate) fn start(
        agent: &'a dyn Agent,
        trial: TrialContext<'a>,
        timeout: Duration,
        watch: &'a Stopwatch,
    ) -> Self {
        Self { conversation: agent.start(trial), timeout, watch, has_started: false }
    }

    /// Whether recorded answers and states are replayed.
    pub(crate) fn replays(&mut self, sources: &Map<String, Value>) -> bool {
        self.conversation.replays(sources)
    }

    /// Returns the recorded states, or those that are captured.
    pub(crate) async fn states<'s>(
        &'s mut self,
        sources: &'s Map<String, Value>,
        capture: BoxFuture<'s, Result<CapturedStates, AgentError>>,
    ) -> Result<CapturedStates, AgentError> {
        self.conversation.states(sources, capture).await
    }

    /// Sends a message and awaits the answer. The elapsed time of an error is that of this message.
    pub(crate) async fn send(&mut self, message: &str) -> Result<Trace, AgentError> {
        let before = if self.has_started { self.watch.elapsed() } else { Duration::ZERO };
        self.has_started = true;
        let conversation = &mut self.conversation;
        let answer = with_timeout(self.timeout, self.watch, || conversation.send(message)).await;
        answer.unwrap_or_else(|abandoned| {
            abandoned.after(before).notify(|error| conversation.on_abandoned(message, error))
        })
    }

    /// Sends all messages of a case, up to the first without an answer.
    pub(crate) async fn send_all(&mut self, case: &Case) -> Result<Vec<Exchange>, AgentError> {
        let mut exchanges: Vec<Exchange> = Vec::new();
        for message in case.messages() {
            let trace = self.send(message).await.map_err(|error| {
                let earlier: f64 = exchanges.iter().map(|exchange| exchange.trace.latency_ms / 1000.0).sum();
                AgentError {
                    elapsed: error.elapsed + Duration::try_from_secs_f64(earlier).unwrap_or_default(),
                    ..error
                }
            })?;
            exchanges.push(Exchange { message: message.to_owned(), trace });
        }
        Ok(exchanges)
    }
}
