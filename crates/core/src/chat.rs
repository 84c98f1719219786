//! Models that give one structured answer to a prompt.

use serde_json::{Map, Value};

use crate::port::{AgentError, BoxFuture, WaitObserver};
use crate::trace::Usage;

/// A model that gives one structured answer to a prompt, used by judges and drafters.
pub trait ChatModel: Send + Sync {
    fn identity(&self) -> String;

    /// Returns the parameters that are recorded with each reply.
    fn parameters(&self) -> Map<String, Value>;

    fn complete<'a>(
        &'a self,
        prompt: &'a ChatPrompt,
        wait_observer: &'a dyn WaitObserver,
    ) -> BoxFuture<'a, Result<ChatReply, AgentError>>;

    /// Called when the caller stops waiting for a reply, after a timeout or panic, with the error that replaces it.
    fn on_abandoned(&self, _prompt: &ChatPrompt, _error: &AgentError) {}
}

/// A prompt with the schema of its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatPrompt {
    pub system: String,
    pub user: String,
    /// The name of the answer's schema: letters and `_`.
    pub name: String,
    /// The JSON Schema of the answer.
    pub schema: Value,
}

/// A model's reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatReply {
    /// The caller has to validate it against the schema.
    pub value: Value,
    pub usage: Option<Usage>,
    pub latency_ms: f64,
}
