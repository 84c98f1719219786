//! A chat model whose replies are recorded and replayed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, BoxFuture, WaitGuard, WaitObserver};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use super::folder::RecordingFolder;
use super::key::{AGENT, Key, USER};

/// Replays recorded replies; depending on the mode, calls the inner model for the others.
pub struct RecordingChat {
    inner: Arc<dyn ChatModel>,
    folder: Arc<RecordingFolder>,
    /// The replies of this run. Equal prompts share a recording, so they must get the same reply.
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
        wait_observer: &'a dyn WaitObserver,
    ) -> BoxFuture<'a, Result<ChatReply, AgentError>> {
        Box::pin(async move {
            let key = self.key(prompt);
            let reply = self.reply(&key);
            let complete = || self.inner.complete(prompt, wait_observer);
            // Waits while another task completes the same prompt.
            let wait = WaitGuard::begin(wait_observer);
            let init = || {
                drop(wait);
                self.folder.answer(&key, true, complete)
            };
            // If this future is dropped, the cell stays empty and the next task initialises it.
            reply.get_or_init(init).await.clone()
        })
    }

    fn on_abandoned(&self, prompt: &ChatPrompt, error: &AgentError) {
        self.inner.on_abandoned(prompt, error);
        self.folder.record_abandoned::<ChatReply>(&self.key(prompt), error);
    }
}
