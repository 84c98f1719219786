//! Files, keys and modes of recordings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_agents::{RecordingAgent, RecordingMode};
use karat_cases::{Case, Expectation};
use karat_core::assertion::Mode;
use karat_core::port::{Agent, AgentError};
use karat_core::trace::{ToolCall, Trace, Usage};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{
    FakeAgent, ask, files, model_parts, only_file, open, open_with_secrets, replay, silent_agent, tally, trace,
};
use crate::support::case;

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
            result: Some(Value::Null),
            ..ToolCall::default()
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
        first_token_ms: Some(96.5),
        stderr: Some("one line".to_owned()),
        warnings: vec!["the answer was cut off".to_owned()],
        ..Trace::default()
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
        "firstTokenMs": 96.5,
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
    assert_eq!(agent.determinants(&case("hi"), 0), inner.determinants(&case("hi"), 0));
    assert_eq!(agent.mode(&case("hi")), Mode::Stubbed);
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
