//! Asks a model once, for an answer of a given shape.

use karat_core::port::{AgentError, ChatModel, ChatPrompt, ChatReply, Pending, Waiting};
use serde_json::{Map, Value};

use super::client::ModelClient;
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
            if let Some(why) = answered.turn.cut_off {
                return Err(AgentError::new(why, answered.latency));
            }
            let value = match self.api() {
                Api::Openai => openai::structured(&answered.turn),
                Api::Anthropic => anthropic::structured(&answered.turn),
            };
            let value = value.map_err(|message| AgentError::new(message, answered.latency))?;
            Ok(ChatReply { value, usage: answered.usage, latency_ms: answered.latency.as_secs_f64() * 1000.0 })
        })
    }
}
