//! Recording and replay of answers.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use karat_agents::{RecordingAgent, RecordingChat, RecordingFolder, RecordingMode, RecordingTally};
use karat_core::assertion::Mode;
use karat_core::case::{Case, Expectation};
use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{
    Agent, AgentError, AgentErrorCause, BoxFuture, Conversation, IgnoreWaits, TrialContext, UnusableReply, WaitObserver,
};
use karat_core::redact::Redactor;
use karat_core::trace::{ToolCall, Trace, Usage};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::support::{case, trial};

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

    fn determinants(&self, case: &Case) -> Map<String, Value> {
        let mut parts = self.parts.clone();
        parts.insert("message".to_owned(), case.input.message.as_str().into());
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
    let answer = conversation.send(&case.input.message);
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

#[tokio::test]
async fn file_format_is_readable() {
    let folder = TempDir::new().unwrap();
    let answer = Trace {
        response: "18 °C.\r\n\nTake a jacket.\n".to_owned(),
        tool_calls: vec![ToolCall {
            name: "get_weather".to_owned(),
            success: Some(true),
            duration_ms: Some(0.25),
            params: Map::from_iter([("city".to_owned(), json!("Paris")), ("a".to_owned(), json!(1.0))]),
            raw_params: None,
            result: Some(Value::Null),
            error: None,
        }],
        usage: Some(Usage {
            input_tokens: Some(412),
            output_tokens: Some(9),
            cached_input_tokens: None,
            cost_usd: Some(0.1 + 0.2),
        }),
        model: Some("gpt-x-1".to_owned()),
        stop_reason: Some("stop".to_owned()),
        latency_ms: 812.403_917,
        stderr: Some("one line".to_owned()),
        warnings: vec!["the answer was cut off".to_owned()],
    };
    let inner = FakeAgent::new(model_parts(), [Ok(answer.clone())]);
    let recorded = open(folder.path(), RecordingMode::Record);
    let case = case("What's the weather in Paris?\nAnd should I take a jacket?");
    assert_eq!(ask(&inner, &recorded, &case, 0).await.unwrap(), answer);
    assert_eq!(recorded.tally(), tally(0, 1, 1, 0));
    let file = only_file(folder.path());
    assert_eq!(file.file_name().unwrap(), "what-s-the-weather-in-paris-and-should-i-66de1b758662.json");
    insta::assert_snapshot!(std::fs::read_to_string(&file).unwrap(), @r#"
    {
      "recording": 1,
      "asked": {
        "agent": "openai:gpt-x",
        "model": "gpt-x-1",
        "parameters": {
          "seed": 7,
          "temperature": 0.2
        },
        "systemPrompt": "8d969eef6eca",
        "tools": {
          "get_time": "fcde2b2edba5",
          "get_weather": "2c26b46b68ff"
        },
        "stubs": {
          "get_weather": {
            "sky": [
              "cloudy"
            ],
            "temperature": 18
          }
        },
        "maxTurns": 5,
        "message": [
          "What's the weather in Paris?",
          "And should I take a jacket?"
        ],
        "sample": 0
      },
      "answer": {
        "response": [
          "18 °C.\r",
          "",
          "Take a jacket.",
          ""
        ],
        "toolCalls": [
          {
            "name": "get_weather",
            "success": true,
            "durationMs": 0.25,
            "params": {
              "city": "Paris",
              "a": 1.0
            },
            "result": null
          }
        ],
        "usage": {
          "inputTokens": 412,
          "outputTokens": 9,
          "costUsd": 0.30000000000000004
        },
        "model": "gpt-x-1",
        "stopReason": "stop",
        "latencyMs": 812.403917,
        "stderr": "one line",
        "warnings": [
          "the answer was cut off"
        ]
      }
    }
    "#);
    assert_eq!(replay(model_parts(), folder.path(), &case, 0).await.unwrap(), answer);
}

#[tokio::test]
async fn the_key_contains_only_determinants() {
    let folder = TempDir::new().unwrap();
    let parts = json!({"agent": "fake"});
    ask(&FakeAgent::replying("hello"), &open(folder.path(), RecordingMode::Record), &case("hi"), 0).await.unwrap();
    let mut other = case("hi");
    other.id = "other".to_owned();
    other.description = "other".to_owned();
    other.expect = Expectation { response_contains: Some(vec!["x".to_owned()]), ..Expectation::default() };
    assert_eq!(replay(parts.clone(), folder.path(), &other, 0).await.unwrap(), trace("hello"));
    assert!(replay(parts, folder.path(), &case("ho"), 0).await.is_err());
}

#[tokio::test]
async fn each_sample_has_its_own_recording() {
    let folder = TempDir::new().unwrap();
    let inner = FakeAgent::new(json!({}), ["a", "b"].map(|text| Ok(trace(text))));
    let recorded = open(folder.path(), RecordingMode::Record);
    for sample in [0, 1] {
        ask(&inner, &recorded, &case("hi"), sample).await.unwrap();
    }
    assert_eq!(replay(json!({}), folder.path(), &case("hi"), 1).await.unwrap().response, "b");
    assert_eq!(replay(json!({}), folder.path(), &case("hi"), 0).await.unwrap().response, "a");
    let missed = replay(json!({}), folder.path(), &case("hi"), 2).await.unwrap_err();
    insta::assert_snapshot!(missed.message, @"no recording for this request: the same request is made 3 times in this run but was recorded 2 times");
}

#[tokio::test]
async fn auto_calls_the_agent_only_for_missing_recordings() {
    let folder = TempDir::new().unwrap();
    let first = open(folder.path(), RecordingMode::Auto);
    ask(&FakeAgent::replying("first"), &first, &case("hi"), 0).await.unwrap();
    assert_eq!(first.tally(), tally(0, 1, 1, 0));
    let second = open(folder.path(), RecordingMode::Auto);
    let inner = FakeAgent::replying("second");
    assert_eq!(ask(&inner, &second, &case("hi"), 0).await.unwrap().response, "first");
    assert_eq!((inner.calls(), second.tally()), (0, tally(1, 0, 0, 0)));
    assert_eq!(ask(&inner, &second, &case("ho"), 0).await.unwrap().response, "second");
    assert_eq!((inner.calls(), second.tally()), (1, tally(1, 1, 1, 0)));
}

#[tokio::test]
async fn record_overwrites_existing_recordings() {
    let folder = TempDir::new().unwrap();
    for text in ["first", "second"] {
        ask(&FakeAgent::replying(text), &open(folder.path(), RecordingMode::Record), &case("hi"), 0).await.unwrap();
    }
    only_file(folder.path());
    assert_eq!(replay(json!({"agent": "fake"}), folder.path(), &case("hi"), 0).await.unwrap().response, "second");
}

#[tokio::test]
async fn delegates_metadata_to_the_inner_agent() {
    let folder = TempDir::new().unwrap();
    let inner = FakeAgent::replying("hello");
    let agent = RecordingAgent::new(Arc::clone(&inner) as Arc<dyn Agent>, open(folder.path(), RecordingMode::Record));
    assert_eq!(agent.identity(), inner.identity());
    assert_eq!(agent.parameters(), inner.parameters());
    assert_eq!(agent.determinants(&case("hi")), inner.determinants(&case("hi")));
    assert_eq!(agent.mode(&case("hi")), Mode::Stubbed);
}

#[tokio::test]
async fn an_error_is_replayed_by_strict_and_retried_by_auto() {
    let folder = TempDir::new().unwrap();
    let error = AgentError::new("the agent returned HTTP 500:\nboom\r\n", Duration::from_nanos(1_234_567_891));
    let inner = FakeAgent::new(json!({}), [Ok(trace("good")), Err(error.clone()), Ok(trace("better"))]);
    let recorded = open(folder.path(), RecordingMode::Record);
    assert_eq!(ask(&inner, &recorded, &case("hi"), 0).await, Ok(trace("good")));
    // The last outcome is recorded, even if it is worse.
    assert_eq!(ask(&inner, &recorded, &case("hi"), 0).await, Err(error.clone()));
    assert_eq!(replay(json!({}), folder.path(), &case("hi"), 0).await, Err(error));
    let auto = open(folder.path(), RecordingMode::Auto);
    assert_eq!(ask(&inner, &auto, &case("hi"), 0).await, Ok(trace("better")));
    assert_eq!((auto.tally(), auto.warnings()), (tally(0, 1, 1, 0), Vec::new()));
    assert_eq!(replay(json!({}), folder.path(), &case("hi"), 0).await, Ok(trace("better")));
}

/// Starts a call that never completes and cancels it.
async fn cancel_call(folder: &Arc<RecordingFolder>, case: &Case) -> RecordingAgent {
    let agent = RecordingAgent::new(silent_agent(json!({})), Arc::clone(folder));
    let mut conversation = agent.start(trial(case, 0));
    let answer = conversation.send(&case.input.message);
    assert!(tokio::time::timeout(Duration::from_millis(20), answer).await.is_err());
    drop(conversation);
    agent
}

#[rstest]
#[case(RecordingMode::Record)]
#[case(RecordingMode::Auto)]
#[tokio::test]
async fn an_abandoned_call_is_recorded_as_an_error(#[case] mode: RecordingMode) {
    let folder = TempDir::new().unwrap();
    let case = case("hi");
    if mode == RecordingMode::Record {
        let earlier = open(folder.path(), mode);
        ask(&FakeAgent::new(json!({}), [Ok(trace("good"))]), &earlier, &case, 0).await.unwrap();
    }
    let recorded = open(folder.path(), mode);
    let agent = cancel_call(&recorded, &case).await;
    let timeout = AgentError::timeout(Duration::from_nanos(20_123_457));
    agent.start(trial(&case, 0)).on_abandoned("hi", &timeout);
    assert_eq!(recorded.tally(), tally(0, 1, 1, 0));
    assert_eq!(replay(json!({}), folder.path(), &case, 0).await, Err(timeout.clone()));

    // Strict mode records nothing.
    let strict = open(folder.path(), RecordingMode::Strict);
    let agent = RecordingAgent::new(silent_agent(json!({})), Arc::clone(&strict));
    let panicked = AgentError::new("internal error", Duration::ZERO);
    agent.start(trial(&case, 0)).on_abandoned("hi", &panicked);
    assert_eq!(strict.tally(), tally(0, 0, 0, 0));
    assert_eq!(replay(json!({}), folder.path(), &case, 0).await, Err(timeout));
}

#[tokio::test]
async fn a_cancelled_call_keeps_an_existing_recording() {
    let folder = TempDir::new().unwrap();
    let recorded = open(folder.path(), RecordingMode::Record);
    cancel_call(&recorded, &case("hi")).await;
    assert_eq!((files(folder.path()), recorded.tally()), (Vec::new(), tally(0, 0, 0, 0)));
    ask(&FakeAgent::new(json!({}), [Ok(trace("good"))]), &recorded, &case("hi"), 0).await.unwrap();
    cancel_call(&recorded, &case("hi")).await;
    assert_eq!(replay(json!({}), folder.path(), &case("hi"), 0).await, Ok(trace("good")));
}

#[rstest]
#[case(RecordingMode::Record)]
#[case(RecordingMode::Auto)]
#[tokio::test]
async fn budget_errors_are_not_recorded(#[case] mode: RecordingMode) {
    let folder = TempDir::new().unwrap();
    let exceeded = AgentError::budget("the budget is exceeded");
    let inner = FakeAgent::new(json!({}), [Err(exceeded.clone()), Ok(trace("good")), Err(exceeded.clone())]);
    let recorded = open(folder.path(), mode);
    assert_eq!(ask(&inner, &recorded, &case("hi"), 0).await, Err(exceeded.clone()));
    assert_eq!((files(folder.path()), recorded.tally()), (Vec::new(), tally(0, 0, 0, 0)));
    assert_eq!(ask(&inner, &recorded, &case("hi"), 0).await, Ok(trace("good")));
    let again = ask(&inner, &recorded, &case("hi"), 0).await;
    let is_replayed = mode == RecordingMode::Auto;
    assert_eq!(again, if is_replayed { Ok(trace("good")) } else { Err(exceeded) });
    assert_eq!(recorded.tally(), tally(usize::from(is_replayed), 1, 1, 0));
    assert_eq!(replay(json!({}), folder.path(), &case("hi"), 0).await, Ok(trace("good")));
}

#[tokio::test]
async fn secrets_are_not_recorded_and_can_be_rotated() {
    let folder = TempDir::new().unwrap();
    let leak = "s3cr3t-one";
    let answer = Trace {
        response: format!("your key is {leak}"),
        tool_calls: vec![ToolCall {
            name: format!("tool-{leak}"),
            params: Map::from_iter([(leak.to_owned(), json!([leak, {"n": leak}]))]),
            raw_params: Some(leak.to_owned()),
            result: Some(json!(leak)),
            error: Some(leak.to_owned()),
            ..ToolCall::default()
        }],
        model: Some(leak.to_owned()),
        stop_reason: Some(leak.to_owned()),
        stderr: Some(leak.to_owned()),
        warnings: vec![leak.to_owned()],
        ..trace("")
    };
    let parts = |secret: &str| json!({"agent": format!("http://x?key={secret}"), "tools": {secret: secret}});
    let message = |secret: &str| case(&format!("log in with {secret}"));
    let outcomes = [Ok(answer), Err(AgentError::new(format!("refused {leak}"), Duration::ZERO))];
    let inner = FakeAgent::new(parts(leak), outcomes);
    let recorded = open_with_secrets(folder.path(), RecordingMode::Record, &[leak]);
    let returned = [ask(&inner, &recorded, &message(leak), 0).await, ask(&inner, &recorded, &message(leak), 1).await];
    for file in files(folder.path()) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(leak) && !file.display().to_string().contains("s3cr3t"), "{}: {text}", file.display());
    }
    let rotated = "another-secret";
    let replayed = open_with_secrets(folder.path(), RecordingMode::Strict, &[rotated]);
    for (sample, returned) in [0, 1].into_iter().zip(returned) {
        let inner = silent_agent(parts(rotated));
        // The recording run returned the redacted answer too.
        assert_eq!(ask(&inner, &replayed, &message(rotated), sample).await, returned);
    }
    assert_eq!(replayed.tally(), tally(2, 0, 0, 0));
}

#[tokio::test]
async fn a_miss_reports_what_changed() {
    let folder = TempDir::new().unwrap();
    let strict = || open(folder.path(), RecordingMode::Strict);
    let empty = strict();
    let missed = ask(&silent_agent(model_parts()), &empty, &case("What's the weather?"), 0).await.unwrap_err();
    insta::assert_snapshot!(missed.message, @"no recording for this request: no similar recording in recordings");
    assert_eq!((missed.elapsed, missed.cause), (Duration::ZERO, AgentErrorCause::NoAnswer));
    assert_eq!(empty.tally(), tally(0, 0, 0, 1));

    let inner = FakeAgent::new(model_parts(), [Ok(trace("cloudy"))]);
    ask(&inner, &open(folder.path(), RecordingMode::Record), &case("What's the weather?"), 0).await.unwrap();
    let mut parts = model_parts();
    parts["systemPrompt"] = json!("000000000000");
    parts["tools"]["get_weather"] = json!("000000000000");
    parts["parameters"]["temperature"] = json!(0.7);
    let missed = ask(&silent_agent(parts), &strict(), &case("What's the weather?"), 0).await.unwrap_err();
    insta::assert_snapshot!(missed.message, @"no recording for this request: temperature was 0.2 and is now 0.7, the system prompt changed, 1 tool changed (get_weather)");
    let missed = ask(&silent_agent(model_parts()), &strict(), &case("What's the weather now?"), 0).await.unwrap_err();
    insta::assert_snapshot!(missed.message, @"no recording for this request: the message was 'What's the weather?' and is now 'What's the weather now?'");
    let missed = ask(&silent_agent(json!({"agent": "b"})), &strict(), &case("Sing!"), 0).await.unwrap_err();
    insta::assert_snapshot!(missed.message, @"no recording for this request: no similar recording in recordings");
}

#[tokio::test]
async fn reports_invalid_recordings() {
    let folder = TempDir::new().unwrap();
    let parts = json!({"agent": "fake"});
    ask(&FakeAgent::replying("hello"), &open(folder.path(), RecordingMode::Record), &case("hi"), 0).await.unwrap();
    let file = only_file(folder.path());
    let good = std::fs::read_to_string(&file).unwrap();
    let broken = [
        ("cut off", good[..good.len() / 2].to_owned()),
        ("empty", String::new()),
        ("another version", r#"{"recording": 2, "question": "hi"}"#.to_owned()),
        ("another request", good.replace("\"hi\"", "\"ho\"")),
        ("another sample", good.replace("\"sample\": 0", "\"sample\": 1")),
        ("no answer", good.split("  \"answer\"").next().unwrap().trim_end().trim_end_matches(',').to_owned() + "}"),
        ("an unknown key", good.replace("\"latencyMs\"", "\"latency\": 1, \"latencyMs\"")),
    ];
    let mut messages = Vec::new();
    for (name, text) in broken {
        assert_ne!(text, good, "{name}");
        std::fs::write(&file, &text).unwrap();
        let missed = replay(parts.clone(), folder.path(), &case("hi"), 0).await.unwrap_err();
        let auto = open(folder.path(), RecordingMode::Auto);
        assert_eq!(
            ask(&FakeAgent::replying("again"), &auto, &case("hi"), 0).await.unwrap().response,
            "again",
            "{name}"
        );
        assert_eq!(auto.warnings(), [format!("{}; it was not replayed", missed.message)]);
        assert_eq!(replay(parts.clone(), folder.path(), &case("hi"), 0).await.unwrap().response, "again", "{name}");
        messages.push(format!("{name}: {}", missed.message));
    }
    insta::assert_snapshot!(messages.join("\n"), @"
    cut off: the recording recordings/hi-da1b17deb0aa.json is corrupt: EOF while parsing a string at line 6 column 6
    empty: the recording recordings/hi-da1b17deb0aa.json is corrupt: EOF while parsing a value at line 1 column 0
    another version: the recording recordings/hi-da1b17deb0aa.json has unsupported version 2: record it again
    another request: the recording recordings/hi-da1b17deb0aa.json belongs to another request; it may have been edited
    another sample: the recording recordings/hi-da1b17deb0aa.json belongs to another request; it may have been edited
    no answer: the recording recordings/hi-da1b17deb0aa.json is corrupt: expected one of 'answer' and 'error'
    an unknown key: the recording recordings/hi-da1b17deb0aa.json is corrupt: unknown field `latency`, expected one of `response`, `toolCalls`, `usage`, `model`, `stopReason`, `latencyMs`, `stderr`, `warnings` at line 10 column 13
    ");
}

#[tokio::test]
async fn corrupt_files_are_skipped_when_a_miss_is_explained() {
    let folder = TempDir::new().unwrap();
    ask(&FakeAgent::replying("hello"), &open(folder.path(), RecordingMode::Record), &case("hi"), 0).await.unwrap();
    std::fs::write(folder.path().join("a.json"), "{").unwrap();
    std::fs::write(folder.path().join("b.json"), [0xff, 0xfe]).unwrap();
    std::fs::create_dir(folder.path().join("c.json")).unwrap();
    let missed = replay(json!({"agent": "other"}), folder.path(), &case("hi"), 0).await.unwrap_err();
    assert_eq!(missed.message, "no recording for this request: the agent was 'fake' and is now 'other'");
}

#[tokio::test]
async fn an_answer_that_cannot_be_recorded_is_still_returned() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("taken");
    std::fs::write(&path, "a file").unwrap();
    let recorded = open(&path, RecordingMode::Record);
    assert_eq!(ask(&FakeAgent::replying("hello"), &recorded, &case("hi"), 0).await, Ok(trace("hello")));
    assert_eq!(recorded.tally(), tally(0, 1, 0, 0));
    let failures = recorded.failures();
    assert!(failures.len() == 1 && failures[0].starts_with("cannot write the recording recordings"), "{failures:?}");

    // Nested more deeply than the JSON parser allows.
    let deep = (0..130).fold(json!(1), |value, _| json!([value]));
    let call = ToolCall { params: Map::from_iter([("p".to_owned(), deep)]), ..ToolCall::default() };
    let answer = Trace { tool_calls: vec![call], ..trace("deep") };
    let recorded = open(folder.path(), RecordingMode::Record);
    let inner = FakeAgent::new(json!({}), [Ok(answer.clone())]);
    assert_eq!(ask(&inner, &recorded, &case("hi"), 0).await, Ok(answer));
    let failures = recorded.failures();
    assert!(failures.len() == 1 && failures[0].contains("recursion limit"), "{failures:?}");
    assert_eq!(files(folder.path()), [path]);
}

/// As several processes would; no file is partial and no temporary file is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_runs_can_record_into_one_folder() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("deep/down");
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let recorded = open(&path, RecordingMode::Record);
        tasks.spawn(async move {
            for number in 0..50 {
                let text = format!("{writer} ").repeat(2_000);
                let inner = FakeAgent::replying(&text);
                ask(&inner, &recorded, &case(&format!("message {number}")), 0).await.unwrap();
            }
            assert_eq!(recorded.failures(), Vec::<String>::new());
        });
    }
    tasks.join_all().await;
    assert_eq!(files(&path).len(), 50);
    for number in 0..50 {
        let case = case(&format!("message {number}"));
        let response = replay(json!({"agent": "fake"}), &path, &case, 0).await.unwrap().response;
        assert!(response == response[..2].repeat(2_000), "{response}");
    }
}

/// Debug builds have a higher limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_takes_less_than_a_millisecond() {
    const CASES: usize = 2_000;
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 5 } else { 1 });
    let folder = TempDir::new().unwrap();
    let cases: Vec<Case> = (0..CASES).map(|number| case(&format!("What's the weather, wording {number}?"))).collect();
    let answer = Trace { response: "It is 18 °C and cloudy.\n".repeat(40), ..trace("") };
    let recorded = open(folder.path(), RecordingMode::Record);
    let inner = FakeAgent::new(model_parts(), (0..CASES).map(|_| Ok(answer.clone())));
    for case in &cases {
        ask(&inner, &recorded, case, 0).await.unwrap();
    }
    let strict = open(folder.path(), RecordingMode::Strict);
    let inner = silent_agent(model_parts());
    let start = Instant::now();
    for case in &cases {
        assert_eq!(ask(&inner, &strict, case, 0).await.unwrap(), answer);
    }
    let each = start.elapsed() / 2_000;
    assert_eq!(strict.tally(), tally(CASES, 0, 0, 0));
    assert!(each < limit, "{each:?} per case");

    // A changed system prompt makes every request miss.
    let mut parts = model_parts();
    parts["systemPrompt"] = json!("000000000000");
    let inner = silent_agent(parts);
    let start = Instant::now();
    for case in &cases {
        let missed = ask(&inner, &strict, case, 0).await.unwrap_err();
        assert_eq!(missed.message, "no recording for this request: the system prompt changed");
    }
    let each = start.elapsed() / 2_000;
    assert!(each < limit * 4, "{each:?} per miss");
}

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

/// Texts with line endings, control characters and non-ASCII characters.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z \"\\\\/{}\\[\\]:,]{0,8}",
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\r".to_owned()),
        Just("\u{2028}\u{0}\u{1b}[31m\u{7f}".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![Just(1.0), Just(-0.0), Just(1e300), Just(5e-324), Just(1e16), Just(0.1 + 0.2)]
            .prop_map(Value::from),
        Just(json!(9_007_199_254_740_993_u64)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number(), text().prop_map(Value::from)];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((text(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn members() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec((text(), value()), 0..4).prop_map(|members| members.into_iter().collect())
}

fn maybe<T: std::fmt::Debug + Clone>(some: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(some)
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1e6, any::<f64>().prop_filter("finite", |number| number.is_finite())]
}

fn tool_call() -> impl Strategy<Value = ToolCall> {
    let all = (text(), maybe(any::<bool>()), maybe(finite()), members(), maybe(text()), maybe(value()), maybe(text()));
    all.prop_map(|(name, success, duration_ms, params, raw_params, result, error)| ToolCall {
        name,
        success,
        duration_ms,
        params,
        raw_params,
        result,
        error,
    })
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || maybe(any::<u64>());
    (count(), count(), count(), maybe(finite())).prop_map(
        |(input_tokens, output_tokens, cached_input_tokens, cost_usd)| Usage {
            input_tokens,
            output_tokens,
            cached_input_tokens,
            cost_usd,
        },
    )
}

fn any_trace() -> impl Strategy<Value = Trace> {
    let calls = proptest::collection::vec(tool_call(), 0..3);
    let warnings = proptest::collection::vec(text(), 0..2);
    let all = (text(), calls, maybe(usage()), maybe(text()), maybe(text()), finite(), maybe(text()), warnings);
    all.prop_map(|(response, tool_calls, usage, model, stop_reason, latency_ms, stderr, warnings)| Trace {
        response,
        tool_calls,
        usage,
        model,
        stop_reason,
        latency_ms,
        stderr,
        warnings,
    })
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let unusable = (text(), maybe(usage())).prop_map(|(text, usage)| Box::new(UnusableReply { text, usage }));
    let cause = prop_oneof![
        Just(AgentErrorCause::NoAnswer),
        Just(AgentErrorCause::Timeout),
        unusable.prop_map(AgentErrorCause::Unusable),
    ];
    let error = (text(), 0..1_u64 << 51, cause).prop_map(|(message, nanos, cause)| AgentError {
        cause,
        ..AgentError::new(message, Duration::from_nanos(nanos))
    });
    prop_oneof![4 => any_trace().prop_map(Ok), 1 => error.prop_map(Err)]
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn replays_are_identical_to_the_recorded_outcome(outcome in any_outcome(), parts in members(), message in text()) {
        let folder = TempDir::new().unwrap();
        let parts = Value::Object(parts);
        let case = case(&message);
        let inner = FakeAgent::new(parts.clone(), [outcome.clone()]);
        let recorded = open(folder.path(), RecordingMode::Record);
        let returned = run(ask(&inner, &recorded, &case, 3));
        prop_assert_eq!(recorded.failures(), Vec::<String>::new());
        prop_assert_eq!(&returned, &outcome);
        let replayed = run(replay(parts, folder.path(), &case, 3));
        prop_assert_eq!(&replayed, &outcome);
        // Also distinguishes -0.0 from 0.0 and the order of keys.
        prop_assert_eq!(format!("{replayed:?}"), format!("{outcome:?}"));
    }

    #[test]
    fn an_edited_request_is_not_replayed(index in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let folder = TempDir::new().unwrap();
        let inner = FakeAgent::new(model_parts(), [Ok(trace("hello"))]);
        run(ask(&inner, &open(folder.path(), RecordingMode::Record), &case("hi"), 0)).unwrap();
        let file = only_file(folder.path());
        let good = std::fs::read(&file).unwrap();
        let end = good.windows(8).position(|bytes| bytes == b"\"answer\"").unwrap();
        let mut bytes = good.clone();
        let index = index.index(end);
        bytes[index] = byte;
        let before: Option<Value> = serde_json::from_slice(&good).ok();
        let after: Option<Value> = serde_json::from_slice(&bytes).ok();
        std::fs::write(&file, &bytes).unwrap();
        let replayed = run(replay(model_parts(), folder.path(), &case("hi"), 0));
        prop_assert_eq!(replayed.is_ok(), before == after, "byte {} is {}", index, byte);
    }
}
