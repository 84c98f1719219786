//! Recording and replay of answers.

mod chat;
mod errors;
mod properties;
mod recordings;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_agents::{RecordingAgent, RecordingFolder, RecordingMode, RecordingTally};
use karat_cases::Case;
use karat_core::assertion::Mode;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext};
use karat_core::redact::Redactor;
use karat_core::trace::Trace;
use serde_json::{Map, Value, json};

use crate::support::trial;

type Outcome = Result<Trace, AgentError>;

/// Returns the given outcomes one after the other, then never answers.
struct FakeAgent {
    parts: Map<String, Value>,
    outcomes: Mutex<VecDeque<Outcome>>,
    calls: AtomicUsize,
}

impl FakeAgent {
    fn new(parts: Value, outcomes: impl IntoIterator<Item = Outcome>) -> Arc<Self> {
        let Value::Object(parts) = parts else { panic!("expected an object") };
        Arc::new(Self { parts, outcomes: Mutex::new(outcomes.into_iter().collect()), calls: AtomicUsize::new(0) })
    }

    fn replying(text: &str) -> Arc<Self> {
        Self::new(json!({"agent": "fake"}), [Ok(trace(text))])
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Agent for FakeAgent {
    fn identity(&self) -> String {
        "fake".to_owned()
    }

    fn parameters(&self) -> Map<String, Value> {
        Map::from_iter([("temperature".to_owned(), json!(0.5))])
    }

    fn determinants(&self, case: &Case, turn: usize) -> Map<String, Value> {
        let mut parts = self.parts.clone();
        parts.insert("message".to_owned(), case.message(turn).into());
        parts
    }

    fn mode(&self, _case: &Case) -> Mode {
        Mode::Stubbed
    }

    fn start<'a>(&'a self, _trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(FakeConversation(self))
    }
}

struct FakeConversation<'a>(&'a FakeAgent);

impl Conversation for FakeConversation<'_> {
    fn send<'s>(&'s mut self, _message: &'s str) -> BoxFuture<'s, Outcome> {
        Box::pin(async {
            self.0.calls.fetch_add(1, Ordering::Relaxed);
            let next = self.0.outcomes.lock().unwrap().pop_front();
            match next {
                Some(outcome) => outcome,
                None => std::future::pending().await,
            }
        })
    }
}

/// Returns an agent that never answers, for requests that must be replayed.
fn silent_agent(parts: Value) -> Arc<FakeAgent> {
    FakeAgent::new(parts, [])
}

fn trace(response: &str) -> Trace {
    Trace { response: response.to_owned(), latency_ms: 12.5, ..Trace::default() }
}

fn open(folder: &Path, mode: RecordingMode) -> Arc<RecordingFolder> {
    open_with_secrets(folder, mode, &[])
}

fn open_with_secrets(folder: &Path, mode: RecordingMode, secrets: &[&str]) -> Arc<RecordingFolder> {
    let redactor = Redactor::default();
    for secret in secrets {
        redactor.add(secret);
    }
    Arc::new(RecordingFolder::new(folder.to_path_buf(), "recordings".to_owned(), mode, redactor))
}

async fn ask(inner: &Arc<FakeAgent>, folder: &Arc<RecordingFolder>, case: &Case, sample: u32) -> Outcome {
    let agent = RecordingAgent::new(Arc::clone(inner) as Arc<dyn Agent>, Arc::clone(folder));
    let mut conversation = agent.start(trial(case, sample));
    let answer = conversation.send(case.message(0));
    tokio::time::timeout(Duration::from_secs(10), answer).await.expect("the agent must not be called")
}

/// Replays a request in strict mode.
async fn replay(parts: Value, folder: &Path, case: &Case, sample: u32) -> Outcome {
    let inner = silent_agent(parts);
    let outcome = ask(&inner, &open(folder, RecordingMode::Strict), case, sample).await;
    assert_eq!(inner.calls(), 0);
    outcome
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn only_file(folder: &Path) -> PathBuf {
    let files = files(folder);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn tally(replayed: usize, requested: usize, recorded: usize, missed: usize) -> RecordingTally {
    RecordingTally { replayed, requested, recorded, missed }
}

fn model_parts() -> Value {
    json!({
        "agent": "openai:gpt-x", "model": "gpt-x-1", "parameters": {"temperature": 0.2, "seed": 7},
        "systemPrompt": "8d969eef6eca", "tools": {"get_weather": "2c26b46b68ff", "get_time": "fcde2b2edba5"},
        "stubs": {"get_weather": {"temperature": 18, "sky": ["cloudy"]}}, "maxTurns": 5,
    })
}
