//! Asks a model once, for an answer of a given shape.

use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, Pending, UnusableReply, Waiting};
use serde_json::{Map, Value};

use super::client::{Answered, ModelClient};
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
        waiting: &'a dyn Waiting,
    ) -> Pending<'a, Result<ChatReply, AgentError>> {
        Box::pin(async move {
            let system = Some(prompt.system.as_str());
            let messages = self.first_messages(system, &prompt.user);
            let answered = self.ask(system, &messages, None, Some(prompt), waiting).await?;
            let Answered { mut turn, usage, latency } = answered;
            let value = match (turn.cut_off.take(), self.api()) {
                (Some(why), _) => Err(why),
                (None, Api::Openai) => openai::structured(&turn),
                (None, Api::Anthropic) => anthropic::structured(&turn),
            };
            match value {
                Ok(value) => Ok(ChatReply { value, usage, latency_ms: latency.as_secs_f64() * 1000.0 }),
                Err(why) => Err(AgentError::unusable(why, latency, UnusableReply { text: turn.said(), usage })),
            }
        })
    }
}
