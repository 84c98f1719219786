//! The messages of a conversation so far, for agents that receive them with each request.

use karat_core::port::TrialContext;
use serde_json::{Map, Value, json};

/// The messages of a conversation.
pub(crate) struct History<'a> {
    trial: TrialContext<'a>,
    turn: usize,
    messages: Vec<Value>,
}

impl<'a> History<'a> {
    pub(crate) fn new(trial: TrialContext<'a>) -> Self {
        Self { trial, turn: 0, messages: Vec::new() }
    }

    pub(crate) fn trial(&self) -> TrialContext<'a> {
        self.trial
    }

    /// Returns the value of `traceparent` for the next message.
    pub(crate) fn traceparent(&self) -> String {
        self.trial.trace_context(self.turn).traceparent()
    }

    /// Returns the request members that describe the conversation before the next message.
    pub(crate) fn members(&self) -> Map<String, Value> {
        let members = [
            ("conversationId", Value::from(self.trial.conversation_id())),
            ("turn", self.turn.into()),
            ("messages", self.messages.clone().into()),
        ];
        members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Adds a message and the answer to it.
    pub(crate) fn push(&mut self, message: &str, response: &str) {
        self.turn += 1;
        self.messages.push(json!({"role": "user", "content": message}));
        self.messages.push(json!({"role": "assistant", "content": response}));
    }
}
