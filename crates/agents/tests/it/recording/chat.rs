//! Recordings of chat models.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use karat_agents::{RecordingChat, RecordingMode};
use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, BoxFuture, IgnoreWaits, WaitObserver};
use karat_core::trace::Usage;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{open, open_with_secrets, tally};

/// Replies with the number of earlier calls.
struct FakeChat {
    calls: AtomicUsize,
    parameters: Map<String, Value>,
}

impl FakeChat {
    fn new(temperature: f64) -> Arc<Self> {
        let parameters = Map::from_iter([("temperature".to_owned(), json!(temperature))]);
        Arc::new(Self { calls: AtomicUsize::new(0), parameters })
    }
}

impl ChatModel for FakeChat {
    fn identity(&self) -> String {
        "openai:judge".to_owned()
    }

    fn parameters(&self) -> Map<String, Value> {
        self.parameters.clone()
    }

    fn complete<'a>(
        &'a self,
        _prompt: &'a ChatPrompt,
        _wait_observer: &'a dyn WaitObserver,
    ) -> BoxFuture<'a, Result<ChatReply, AgentError>> {
        Box::pin(async {
            let calls = self.calls.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
            let usage = Some(Usage { cost_usd: Some(1e-7), ..Usage::default() });
            Ok(ChatReply { value: json!({"score": calls, "big": u64::MAX, "why": "key-1234"}), usage, latency_ms: 5.1 })
        })
    }
}

fn prompt(user: &str) -> ChatPrompt {
    ChatPrompt {
        system: "You judge.".to_owned(),
        user: user.to_owned(),
        name: "verdict".to_owned(),
        schema: json!({"type": "object"}),
    }
}

#[tokio::test]
async fn a_chat_model_is_recorded_and_replayed() {
    let folder = TempDir::new().unwrap();
    let inner = FakeChat::new(0.0);
    let recorded = open_with_secrets(folder.path(), RecordingMode::Record, &["key-1234"]);
    let chat = RecordingChat::new(Arc::clone(&inner) as Arc<dyn ChatModel>, Arc::clone(&recorded));
    assert_eq!((chat.identity(), chat.parameters()), (inner.identity(), inner.parameters()));
    let (first, same) = (prompt("How good is this?\nVery."), prompt("How good is this?\nVery."));
    let (left, right) = tokio::join!(chat.complete(&first, &IgnoreWaits), chat.complete(&same, &IgnoreWaits));
    // Equal prompts share one recording.
    assert_eq!(left, right);
    assert_eq!(inner.calls.load(Ordering::Relaxed), 1);
    let other = chat.complete(&prompt("And this?"), &IgnoreWaits).await.unwrap();
    assert_eq!(other.value, json!({"score": 1, "big": u64::MAX, "why": "***"}));
    assert_eq!(recorded.tally(), tally(0, 2, 2, 0));

    let replayed = open(folder.path(), RecordingMode::Strict);
    let judge = FakeChat::new(0.0);
    let chat = RecordingChat::new(Arc::clone(&judge) as Arc<dyn ChatModel>, Arc::clone(&replayed));
    assert_eq!(chat.complete(&first, &IgnoreWaits).await, left);
    assert_eq!(chat.complete(&prompt("And this?"), &IgnoreWaits).await, Ok(other));
    let changed = ChatPrompt { schema: json!({"type": "object", "required": ["score"]}), ..prompt("And this?") };
    let missed = chat.complete(&changed, &IgnoreWaits).await.unwrap_err();
    assert_eq!(missed.message, "no recording for this request: schema required was added");
    let warmer = RecordingChat::new(FakeChat::new(0.7), Arc::clone(&replayed));
    let missed = warmer.complete(&prompt("And this?"), &IgnoreWaits).await.unwrap_err();
    assert_eq!(missed.message, "no recording for this request: temperature was 0.0 and is now 0.7");
    assert_eq!((judge.calls.load(Ordering::Relaxed), replayed.tally()), (0, tally(2, 0, 0, 2)));
}

/// The number of waits, their total time and the start of the current one.
#[derive(Default)]
struct Waits(Mutex<(usize, Duration, Option<Instant>)>);

impl WaitObserver for Waits {
    fn begin(&self) {
        self.0.lock().unwrap().2 = Some(Instant::now());
    }

    fn end(&self) {
        let mut waits = self.0.lock().unwrap();
        let start = waits.2.take().expect("a wait has begun");
        waits.0 += 1;
        waits.1 += start.elapsed();
    }
}

#[tokio::test]
async fn waiting_for_an_equal_prompt_counts_as_waiting() {
    let folder = TempDir::new().unwrap();
    let chat = RecordingChat::new(FakeChat::new(0.0), open(folder.path(), RecordingMode::Record));
    let (asks, waits, late) = (Waits::default(), Waits::default(), Waits::default());
    let same = prompt("How good is this?");
    let (left, right) = tokio::join!(chat.complete(&same, &asks), chat.complete(&same, &waits));
    assert_eq!(left, right);
    assert_eq!(chat.complete(&same, &late).await, left);
    let total = |waits: &Waits| waits.0.lock().unwrap().1;
    assert!(total(&waits) >= Duration::from_millis(4), "{:?}", total(&waits));
    assert!(total(&asks) < total(&waits), "{:?}", total(&asks));
    assert!([&asks, &waits, &late].iter().all(|waits| waits.0.lock().unwrap().2.is_none()), "all waits have ended");
}

#[tokio::test]
async fn an_abandoned_chat_call_is_recorded_as_an_error() {
    let folder = TempDir::new().unwrap();
    let recorded = open(folder.path(), RecordingMode::Record);
    let timeout = AgentError::timeout(Duration::from_millis(20));
    RecordingChat::new(FakeChat::new(0.0), Arc::clone(&recorded)).on_abandoned(&prompt("And this?"), &timeout);
    assert_eq!(recorded.tally(), tally(0, 1, 1, 0));
    let chat = RecordingChat::new(FakeChat::new(0.0), open(folder.path(), RecordingMode::Strict));
    assert_eq!(chat.complete(&prompt("And this?"), &IgnoreWaits).await, Err(timeout));
}
