//! Errors, abandoned calls, and recordings that are missing or invalid.

use std::sync::Arc;
use std::time::Duration;

use karat_agents::{RecordingAgent, RecordingFolder, RecordingMode};
use karat_cases::Case;
use karat_core::port::{Agent, AgentError, AgentErrorCause};
use karat_core::trace::{ToolCall, Trace};
use rstest::rstest;
use serde_json::{Map, json};
use tempfile::TempDir;

use super::{FakeAgent, ask, files, model_parts, only_file, open, replay, silent_agent, tally, trace};
use crate::support::{case, trial};

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

#[rstest]
#[case(RecordingMode::Record)]
#[case(RecordingMode::Auto)]
#[tokio::test]
async fn an_unreachable_agent_is_recorded_as_an_error(#[case] mode: RecordingMode) {
    let folder = TempDir::new().unwrap();
    let refused = AgentError::unreachable("cannot reach the agent: connection refused", Duration::from_nanos(15), 3);
    let inner = FakeAgent::new(json!({}), [Err(refused.clone())]);
    let recorded = open(folder.path(), mode);
    // This run still learns that there is no connection, so that it can stop.
    assert_eq!(ask(&inner, &recorded, &case("hi"), 0).await, Err(refused.clone()));
    assert_eq!((recorded.failures(), recorded.tally()), (Vec::new(), tally(0, 1, 1, 0)));
    let replayed = replay(json!({}), folder.path(), &case("hi"), 0).await.unwrap_err();
    assert_eq!(replayed, AgentError::new(refused.message, refused.elapsed));
}

/// Starts a call that never completes and cancels it.
async fn cancel_call(folder: &Arc<RecordingFolder>, case: &Case) -> RecordingAgent {
    let agent = RecordingAgent::new(silent_agent(json!({})), Arc::clone(folder));
    let mut conversation = agent.start(trial(case, 0));
    let answer = conversation.send(case.message(0));
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
    an unknown key: the recording recordings/hi-da1b17deb0aa.json is corrupt: unknown field `latency`, expected one of `response`, `toolCalls`, `steps`, `usage`, `model`, `stopReason`, `latencyMs`, `firstTokenMs`, `callsUnreported`, `stderr`, `warnings` at line 10 column 13
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
