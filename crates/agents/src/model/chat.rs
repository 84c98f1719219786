//! Requests a single answer that fits a schema.

use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, BoxFuture, UnusableReply, WaitObserver};
use serde_json::{Map, Value};

use super::client::{Completion, ModelClient};
use super::provider::Api;
use super::{anthropic, openai};

impl ChatModel for ModelClient {
    fn identity(&self) -> String {
        ModelClient::identity(self)
    }

    fn parameters(&self) -> Map<String, Value> {
        ModelClient::parameters(self)
    }

    fn complete<'a>(
        &'a self,
        prompt: &'a ChatPrompt,
        wait_observer: &'a dyn WaitObserver,
    ) -> BoxFuture<'a, Result<ChatReply, AgentError>> {
        Box::pin(async move {
            let system = Some(prompt.system.as_str());
            let messages = self.first_messages(system, &prompt.user);
            let completion = self.next_turn(system, &messages, None, Some(prompt), wait_observer).await?;
            let Completion { mut turn, usage, latency } = completion;
            let value = match (turn.incomplete_reason.take(), self.api()) {
                (Some(reason), _) => Err(reason),
                (None, Api::Openai) => openai::parse_structured(&turn),
                (None, Api::Anthropic) => anthropic::parse_structured(&turn),
            };
            match value {
                Ok(value) => Ok(ChatReply { value, usage, latency_ms: latency.as_secs_f64() * 1000.0 }),
                Err(reason) => {
                    Err(AgentError::unusable(reason, latency, UnusableReply { text: turn.into_raw_text(), usage }))
                }
            }
        })
    }
}
