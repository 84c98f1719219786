//! An agent whose answers are recorded and replayed.

use std::sync::Arc;

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext};
use karat_core::trace::Trace;
use serde_json::{Map, Value};

use super::folder::RecordingFolder;
use super::key::{Key, MESSAGE, SAMPLE};

/// Replays recorded answers; depending on the mode, calls the inner agent for the others.
pub struct RecordingAgent {
    inner: Arc<dyn Agent>,
    folder: Arc<RecordingFolder>,
}

impl RecordingAgent {
    pub fn new(inner: Arc<dyn Agent>, folder: Arc<RecordingFolder>) -> Self {
        Self { inner, folder }
    }
}

impl Agent for RecordingAgent {
    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn parameters(&self) -> Map<String, Value> {
        self.inner.parameters()
    }

    fn determinants(&self, case: &Case) -> Map<String, Value> {
        self.inner.determinants(case)
    }

    fn equality_key(&self, case: &Case) -> String {
        self.inner.equality_key(case)
    }

    fn mode(&self, case: &Case) -> Mode {
        self.inner.mode(case)
    }

    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(RecordingConversation { inner: self.inner.start(trial), agent: self, trial })
    }
}

struct RecordingConversation<'a> {
    inner: Box<dyn Conversation + 'a>,
    agent: &'a RecordingAgent,
    trial: TrialContext<'a>,
}

impl RecordingConversation<'_> {
    fn key(&self) -> Key {
        let mut parts = self.agent.inner.determinants(self.trial.case);
        parts.insert(SAMPLE.to_owned(), self.trial.sample.into());
        Key::new(parts, MESSAGE, self.agent.folder.redactor())
    }
}

impl Conversation for RecordingConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(async move {
            let key = self.key();
            self.agent.folder.answer(&key, || self.inner.send(message)).await
        })
    }

    fn on_abandoned(&mut self, message: &str, error: &AgentError) {
        self.inner.on_abandoned(message, error);
        self.agent.folder.record_abandoned::<Trace>(&self.key(), error);
    }
}
