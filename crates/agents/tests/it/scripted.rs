//! Scripted agents.

use std::time::{Duration, Instant};

use karat_agents::ScriptedAgent;
use karat_core::assertion::Mode;
use karat_core::port::{Agent, TrialContext};
use karat_core::trace::{ToolCall, Trace, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{ask, case, trial};

fn agent(script: &Value) -> ScriptedAgent {
    ScriptedAgent::parse(&script.to_string(), "scripted:a.json".to_owned()).unwrap()
}

/// Returns each finding as `line:column message`.
fn findings(text: &str) -> Vec<String> {
    let error = ScriptedAgent::parse(text, String::new()).expect_err(text);
    assert_eq!(error.to_string(), "the script is invalid");
    let line = |finding: karat_json::Finding| {
        let position = finding.location.position;
        format!("{}:{} {}", position.line, position.column, finding.message)
    };
    error.findings.into_iter().map(line).collect()
}

#[tokio::test]
async fn replies_like_an_agent_that_streams_or_does_not_report_calls() {
    let agent = agent(&json!({"replies": {}, "otherwise": {"firstTokenMs": 40, "callsUnreported": true}}));
    let trace = ask(&agent, "hi").await.unwrap();
    assert_eq!((trace.first_token_ms, trace.calls_unreported), (Some(40.0), true));
    let contradiction = r#"{"replies": {"a": {"toolCalls": [{"name": "t"}], "callsUnreported": true}}}"#;
    assert_eq!(findings(contradiction), ["1:69 'callsUnreported' contradicts 'toolCalls'"]);
}

#[tokio::test]
async fn replies_by_message() {
    let agent = agent(&json!({
        "$schema": "../script.schema.json",
        "replies": {
            "full": {
                "response": "18 °C",
                "toolCalls": [{"name": "t", "params": {"a": 1}, "success": true, "durationMs": 2, "result": null}],
                "usage": {"inputTokens": 1, "outputTokens": 2, "costUsd": 0.5},
                "model": "m",
            },
            "empty": {},
            "": {"response": "silence"},
        },
        "otherwise": {"response": "what?"},
    }));
    let full = ask(&agent, "full").await.unwrap();
    let call = ToolCall {
        name: "t".to_owned(),
        success: Some(true),
        duration_ms: Some(2.0),
        params: json!({"a": 1}).as_object().cloned().unwrap(),
        result: Some(Value::Null),
        ..ToolCall::default()
    };
    let usage = Usage { input_tokens: Some(1), output_tokens: Some(2), cost_usd: Some(0.5), ..Usage::default() };
    let expected = Trace {
        response: "18 °C".to_owned(),
        tool_calls: vec![call],
        usage: Some(usage),
        model: Some("m".to_owned()),
        latency_ms: full.latency_ms,
        ..Trace::default()
    };
    assert_eq!(full, expected);
    let empty = ask(&agent, "empty").await.unwrap();
    assert_eq!(empty, Trace { latency_ms: empty.latency_ms, ..Trace::default() });
    for (message, response) in [("", "silence"), ("Full", "what?"), ("full ", "what?")] {
        assert_eq!(ask(&agent, message).await.unwrap().response, response);
    }
    // Replies can be used repeatedly.
    assert_eq!(ask(&agent, "full").await.unwrap().response, "18 °C");
    assert_eq!((agent.identity().as_str(), agent.mode(&case("full"))), ("scripted:a.json", Mode::Endpoint));
}

#[tokio::test]
async fn a_message_without_a_reply_is_an_error() {
    let agent = agent(&json!({"replies": {"a": {}}}));
    assert!(ask(&agent, "a").await.is_ok());
    assert_eq!(ask(&agent, "b").await.expect_err("unknown").message, "the script has no reply to this message");
}

#[tokio::test]
async fn replies_can_be_delayed_and_fail() {
    let agent = agent(&json!({
        "replies": {
            "slow": {"response": "ok", "delayMs": 60},
            "slow error": {"error": "out of cheese", "delayMs": 60},
            "error": {"response": "never seen", "error": ""},
        },
        "otherwise": {"error": "no idea"},
    }));
    let slow = ask(&agent, "slow").await.unwrap();
    assert!((60.0..5_000.0).contains(&slow.latency_ms), "{}", slow.latency_ms);
    let error = ask(&agent, "slow error").await.expect_err("the script has an error");
    assert_eq!(error.message, "out of cheese");
    assert!((Duration::from_millis(60)..Duration::from_secs(5)).contains(&error.elapsed), "{:?}", error.elapsed);
    let error = ask(&agent, "error").await.expect_err("an empty message is still an error");
    assert_eq!(error.message, "");
    assert!(error.elapsed < Duration::from_millis(60), "{:?}", error.elapsed);
    assert_eq!(ask(&agent, "else").await.expect_err("the script has an error").message, "no idea");
}

#[tokio::test]
async fn delays_run_concurrently() {
    let agent = agent(&json!({"replies": {}, "otherwise": {"delayMs": 100}}));
    let started = Instant::now();
    futures::future::join_all((0..50).map(|_| ask(&agent, "hi"))).await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[rstest]
#[case("", &["1:1 the file is empty"])]
#[case("{\"replies\": {}", &["1:14 the file ends in the middle of an object"])]
#[case("[]", &["1:1 the file must be an object, found an array"])]
#[case("{}", &["1:1 'replies' is missing"])]
#[case("{\"replies\": []}", &["1:13 'replies' must be an object, found an array"])]
#[case("{\"replies\": {\"a\": \"text\"}}", &["1:19 'a' must be an object, found a string"])]
#[case("{\n \"replies\": {},\n \"othervise\": {}\n}", &["3:2 unknown key 'othervise'"])]
#[case("{\"replies\": {\"a\": {\"respons\": \"\"}}}", &["1:20 unknown key 'respons'"])]
#[case("{\"replies\": {\"a\": {\"response\": 5}}}", &["1:32 'response' must be a string, found a number"])]
#[case("{\"replies\": {\"a\": {\"delayMs\": -1}}}", &["1:31 'delayMs' must be an integer of at least 0, found -1"])]
#[case("{\"replies\": {\"a\": {\"error\": true}}}", &["1:29 'error' must be a string, found a boolean"])]
#[case("{\"replies\": {\"a\": {\"model\": 5}}}", &["1:29 'model' must be a string, found a number"])]
#[case("{\"replies\": {\"a\": {\"usage\": 5}}}", &["1:29 'usage' must be an object, found a number"])]
#[case(
    "{\"replies\": {\"a\": {\"response\": \"\",\n\"toolCalls\": {}}}}",
    &["2:14 the reply's '/toolCalls' is an object, not an array"]
)]
#[case(
    "{\"replies\": {},\n\"otherwise\": {\"toolCalls\": [{\"name\": \"t\"}, {}]}}",
    &["2:28 tool call 1 of the reply has no name at '/name'"]
)]
#[case("{\"replies\": {\"a\": {}, \"a\": {}}}", &["1:23 duplicate key 'a'"])]
fn rejects_invalid_scripts_with_positions(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(findings(text), expected);
}

#[test]
fn reports_all_problems() {
    let text = "{\n \"replies\": {\n  \"a\": {\"error\": 1},\n  \"b\": 2,\n  \"c/d\": {\"toolCalls\": [1], \"x\": 0}\n },\n \"y\": 0\n}";
    let mut problems = findings(text);
    problems.sort();
    assert_eq!(
        problems,
        [
            "3:18 'error' must be a string, found a number",
            "4:8 'b' must be an object, found a number",
            "5:24 tool call 0 of the reply has no name at '/name'",
            "5:29 unknown key 'x'",
            "7:2 unknown key 'y'",
        ]
    );
}

#[tokio::test]
async fn null_is_treated_as_absent_as_in_http_replies() {
    let agent = agent(&json!({"replies": {"a": {"toolCalls": null, "usage": null, "model": null}}}));
    let trace = ask(&agent, "a").await.unwrap();
    assert_eq!((trace.tool_calls.len(), trace.usage, trace.model), (0, None, None));
}

#[tokio::test]
async fn the_first_message_may_have_a_reply_per_turn() {
    let agent = agent(&json!({"replies": {
        "a": {"turns": [{"response": "1"}, {"response": "2"}]},
        "b": {"response": "single"},
    }}));
    let case = case("a");
    let trial = TrialContext { has_turns: true, ..trial(&case, 0) };
    let mut conversation = agent.start(trial);
    let mut responses = Vec::new();
    for message in ["a", "b", "c"] {
        let answer = conversation.send(message).await;
        responses.push(answer.map(|trace| trace.response).map_err(|error| error.message));
    }
    let expected = [Ok("1".to_owned()), Ok("2".to_owned()), Err("the script has no reply in turn 3".to_owned())];
    assert_eq!(responses, expected);
    let mut other = agent.start(trial);
    assert_eq!(other.send("b").await.unwrap().response, "single");
    assert!(other.send("a").await.is_err(), "its replies are for a conversation that begins with it");
    assert_eq!(findings(r#"{"replies": {"a": {"turns": []}}}"#), ["1:29 'turns' needs at least one reply"]);
    assert_eq!(findings(r#"{"replies": {"a": {"turns": [{}], "model": "m"}}}"#), ["1:35 unknown key 'model'"]);
}
