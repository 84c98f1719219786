//! An agent whose answers are recorded and replayed.

use std::sync::Arc;

use karat_core::port::{Agent, AgentError, AgentLayer, BoxFuture, Conversation, TrialContext};
use karat_core::state::CapturedStates;
use karat_core::trace::Trace;
use serde_json::{Map, Value};

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
            sent: Vec::new(),
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
    /// The messages so far, if a simulated user writes them.
    sent: Vec<Value>,
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
            if let Some(message) = self.sent.last() {
                parts.insert(MESSAGE.to_owned(), message.clone());
            }
            parts.insert("conversation".to_owned(), self.conversation());
            parts.insert("history".to_owned(), history.into());
        }
        parts.insert(SAMPLE.to_owned(), self.trial.sample.into());
        Key::new(parts, MESSAGE, self.agent.folder.redactor())
    }

    /// Returns all messages of the conversation, or those so far of a simulated user.
    fn conversation(&self) -> Value {
        match &self.trial.case.user {
            Some(_) => Value::from(self.sent.as_slice()),
            None => self.trial.case.script(),
        }
    }

    /// Returns the recorded answers to all messages of the conversation, if there are any. Those of a simulated user are
    /// not known before they are written.
    fn recorded_history(&self) -> Option<Vec<Value>> {
        if self.trial.case.user.is_some() {
            return None;
        }
        let mut history = Vec::new();
        for (turn, _) in self.trial.case.messages().enumerate() {
            let answer: Trace = self.agent.folder.find_answer(&self.key(turn, &history))?;
            history.push(answer.response.into());
        }
        Some(history)
    }

    /// Returns the key of the states after the whole conversation.
    fn states_key(&self, sources: &Map<String, Value>, history: &[Value]) -> Key {
        let case = self.trial.case;
        let mut parts = self.agent.inner.determinants(case, 0);
        parts.insert("conversation".to_owned(), self.conversation());
        parts.insert("history".to_owned(), history.into());
        parts.insert("stateSources".to_owned(), Value::Object(sources.clone()));
        parts.insert(SAMPLE.to_owned(), self.trial.sample.into());
        Key::new(parts, MESSAGE, self.agent.folder.redactor())
    }

    /// Whether all answers are recorded, and the states if the case names sources.
    fn is_recorded(&self, sources: &Map<String, Value>) -> bool {
        let Some(history) = self.recorded_history() else { return false };
        let states = || self.agent.folder.find_answer::<CapturedStates>(&self.states_key(sources, &history));
        sources.is_empty() || states().is_some()
    }
}

impl Conversation for RecordingConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(async move {
            let folder = &self.agent.folder;
            if self.turn == 0 && self.trial.case.has_turns() && folder.mode() == RecordingMode::Auto {
                self.may_replay = self.may_replay && self.recorded_history().is_some();
            }
            if self.trial.case.user.is_some() {
                self.sent.push(message.into());
            }
            let key = self.key(self.turn, &self.history);
            let answer = folder.answer(&key, self.may_replay, || self.inner.send(message)).await?;
            self.turn += 1;
            self.history.push(answer.response.as_str().into());
            Ok(answer)
        })
    }

    fn replays(&mut self, sources: &Map<String, Value>) -> bool {
        self.may_replay = match self.agent.folder.mode() {
            RecordingMode::Record => false,
            RecordingMode::Strict => true,
            RecordingMode::Auto => self.is_recorded(sources),
        };
        self.may_replay
    }

    fn states<'s>(
        &'s mut self,
        sources: &'s Map<String, Value>,
        capture: BoxFuture<'s, Result<CapturedStates, AgentError>>,
    ) -> BoxFuture<'s, Result<CapturedStates, AgentError>> {
        Box::pin(async move {
            let key = self.states_key(sources, &self.history);
            self.agent.folder.answer(&key, self.may_replay, || capture).await
        })
    }

    fn on_abandoned(&mut self, message: &str, error: &AgentError) {
        self.inner.on_abandoned(message, error);
        self.agent.folder.record_abandoned::<Trace>(&self.key(self.turn, &self.history), error);
    }
}
