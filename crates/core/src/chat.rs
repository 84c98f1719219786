//! Models that are asked once for an answer of a given shape.

use serde_json::{Map, Value};

use crate::port::{AgentError, Pending, Waiting};
use crate::trace::Usage;

/// A model that is asked once for an answer of a given shape: to judge, or to draft.
pub trait ChatModel: Send + Sync {
    fn identity(&self) -> String;

    /// Returns the parameters that are recorded with what it says.
    fn parameters(&self) -> Map<String, Value>;

    fn complete<'a>(
        &'a self,
        prompt: &'a ChatPrompt,
        waiting: &'a dyn Waiting,
    ) -> Pending<'a, Result<ChatReply, AgentError>>;

    /// Is told what counts instead of a reply that was given up: it took too long, or the model panicked.
    fn given_up(&self, _prompt: &ChatPrompt, _error: &AgentError) {}
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatPrompt {
    pub system: String,
    pub user: String,
    /// What the answer is called: a word of letters and `_`.
    pub name: String,
    /// The JSON Schema of the answer.
    pub schema: Value,
}

/// What a model said.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatReply {
    /// Whether it fits the schema is for the asker to find out.
    pub value: Value,
    pub usage: Option<Usage>,
    pub latency_ms: f64,
}
