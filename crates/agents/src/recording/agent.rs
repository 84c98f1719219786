//! An agent whose answers are recorded and replayed.

use std::sync::Arc;

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, AgentRequest, BoxFuture};
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

    fn key(&self, request: AgentRequest<'_>) -> Key {
        let mut parts = self.inner.determinants(request.case);
        parts.insert(SAMPLE.to_owned(), request.sample.into());
        Key::new(parts, MESSAGE, self.folder.redactor())
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

    fn answer<'a>(&'a self, request: AgentRequest<'a>) -> BoxFuture<'a, Result<Trace, AgentError>> {
        Box::pin(async move {
            let key = self.key(request);
            self.folder.answer(&key, || self.inner.answer(request)).await
        })
    }

    fn on_abandoned(&self, request: AgentRequest<'_>, error: &AgentError) {
        self.inner.on_abandoned(request, error);
        self.folder.record_abandoned::<Trace>(&self.key(request), error);
    }
}
