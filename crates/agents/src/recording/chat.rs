//! A model that judges or drafts, whose replies are recorded and replayed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, Pending, Wait, Waiting};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use super::folder::RecordingFolder;
use super::key::{AGENT, Key, USER};

/// Replies from the folder where it can, and else asks.
pub struct RecordingChat {
    inner: Arc<dyn ChatModel>,
    folder: Arc<RecordingFolder>,
    /// What was replied in this run. Nothing tells two equal prompts apart, so both get the reply that is recorded.
    replies: Mutex<HashMap<String, Arc<Reply>>>,
}

type Reply = OnceCell<Result<ChatReply, AgentError>>;

impl RecordingChat {
    pub fn new(inner: Arc<dyn ChatModel>, folder: Arc<RecordingFolder>) -> Self {
        Self { inner, folder, replies: Mutex::default() }
    }

    fn key(&self, prompt: &ChatPrompt) -> Key {
        let ChatPrompt { system, user, name, schema } = prompt;
        let mut parts = Map::new();
        parts.insert(AGENT.to_owned(), self.inner.identity().into());
        parts.insert("parameters".to_owned(), Value::Object(self.inner.parameters()));
        parts.insert("system".to_owned(), system.as_str().into());
        parts.insert(USER.to_owned(), user.as_str().into());
        parts.insert("name".to_owned(), name.as_str().into());
        parts.insert("schema".to_owned(), schema.clone());
        Key::new(parts, USER, self.folder.redactor())
    }

    fn reply(&self, key: &Key) -> Arc<Reply> {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(replies.entry(key.file_name().to_owned()).or_default())
    }
}

impl ChatModel for RecordingChat {
    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn parameters(&self) -> Map<String, Value> {
        self.inner.parameters()
    }

    fn complete<'a>(
        &'a self,
        prompt: &'a ChatPrompt,
        waiting: &'a dyn Waiting,
    ) -> Pending<'a, Result<ChatReply, AgentError>> {
        Box::pin(async move {
            let key = self.key(prompt);
            let reply = self.reply(&key);
            let ask = || self.inner.complete(prompt, waiting);
            // Until it asks itself, if it has to at all.
            let wait = Wait::begin(waiting);
            let begin = || {
                drop(wait);
                self.folder.answer(&key, ask)
            };
            // Whoever is let go while asking leaves the cell empty for the next.
            reply.get_or_init(begin).await.clone()
        })
    }

    fn given_up(&self, prompt: &ChatPrompt, error: &AgentError) {
        self.inner.given_up(prompt, error);
        self.folder.give_up::<ChatReply>(&self.key(prompt), error);
    }
}
