//! An agent whose answers are recorded and replayed.

use std::sync::Arc;

use karat_core::port::{Agent, AgentError, AgentLayer, BoxFuture, Conversation, TrialContext};
use karat_core::trace::Trace;
use serde_json::Value;

use super::folder::{RecordingFolder, RecordingMode};
use super::key::{Key, MESSAGE, SAMPLE, TURN};

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

impl AgentLayer for RecordingAgent {
    fn inner(&self) -> &dyn Agent {
        self.inner.as_ref()
    }

    fn start_conversation<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(RecordingConversation {
            inner: self.inner.start(trial),
            agent: self,
            trial,
            turn: 0,
            history: Vec::new(),
            may_replay: true,
        })
    }
}

struct RecordingConversation<'a> {
    inner: Box<dyn Conversation + 'a>,
    agent: &'a RecordingAgent,
    trial: TrialContext<'a>,
    turn: usize,
    /// The answers to the messages before this turn.
    history: Vec<Value>,
    /// Whether recorded answers are replayed. Either all answers of a conversation are, or none: the agent does not know
    /// about messages that it did not receive.
    may_replay: bool,
}

impl RecordingConversation<'_> {
    fn key(&self, turn: usize, history: &[Value]) -> Key {
        let case = self.trial.case;
        let mut parts = self.agent.inner.determinants(case, turn);
        if case.has_turns() {
            parts.insert(TURN.to_owned(), turn.into());
            // Conversations that begin alike are recorded apart, since their answers may differ.
            parts.insert("conversation".to_owned(), case.messages().map(Value::from).collect());
            parts.insert("history".to_owned(), history.into());
        }
        parts.insert(SAMPLE.to_owned(), self.trial.sample.into());
        Key::new(parts, MESSAGE, self.agent.folder.redactor())
    }

    /// Whether there are recorded answers to all messages of the conversation.
    fn is_recorded(&self) -> bool {
        let mut history = Vec::new();
        (0..self.trial.case.turns().len()).all(|turn| {
            let answer = self.agent.folder.find_answer::<Trace>(&self.key(turn, &history));
            history.extend(answer.as_ref().map(|trace| Value::from(trace.response.as_str())));
            answer.is_some()
        })
    }
}

impl Conversation for RecordingConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(async move {
            let folder = &self.agent.folder;
            if self.turn == 0 && self.trial.case.has_turns() && folder.mode() == RecordingMode::Auto {
                self.may_replay = self.is_recorded();
            }
            let key = self.key(self.turn, &self.history);
            let answer = folder.answer(&key, self.may_replay, || self.inner.send(message)).await?;
            self.turn += 1;
            self.history.push(answer.response.as_str().into());
            Ok(answer)
        })
    }

    fn on_abandoned(&mut self, message: &str, error: &AgentError) {
        self.inner.on_abandoned(message, error);
        self.agent.folder.record_abandoned::<Trace>(&self.key(self.turn, &self.history), error);
    }
}
