//! Secrets reach no reporter.

use std::time::Duration;

use karat_core::redact::Redactor;
use karat_core::trace::{ToolCall, Trace};
use karat_runner::Plan;
use serde_json::{Map, Value, json};

use crate::support::{Act, FakeAgent, case, cases, plan, play, suite};

const SECRET: &str = "s3cr3t-of-the-house";

fn keeping(secrets: &[&str]) -> Redactor {
    let redactor = Redactor::default();
    for secret in secrets {
        redactor.add(secret);
    }
    redactor
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("not an object: {value}") };
    map
}

/// A trace in which every text holds the secret.
fn leak() -> Trace {
    let call = ToolCall {
        name: format!("use-{SECRET}"),
        success: None,
        duration_ms: Some(1.0),
        params: object(json!({"auth": SECRET, format!("in-{SECRET}-key"): [{"deep": {SECRET: [1, SECRET]}}], "n": 5})),
        result: Some(json!([{SECRET: format!("{SECRET}{SECRET}")}, null, true])),
        raw_params: Some(format!("raw {SECRET}")),
        error: Some(format!("refused {SECRET}")),
    };
    Trace {
        response: format!("ok, your token is {SECRET}!"),
        tool_calls: vec![call],
        usage: None,
        model: Some(format!("model-{SECRET}")),
        stop_reason: Some(format!("stopped at {SECRET}")),
        stderr: Some(format!("said {SECRET}")),
        warnings: vec![format!("odd {SECRET}")],
        latency_ms: 0.0,
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_masked_in_every_text_of_every_event() {
    let mut leaking = case(&format!("id-{SECRET}"), "leak");
    leaking.description = format!("tests {SECRET}");
    leaking.expect.no_tool_errors = Some(true);
    leaking.expect.response_contains = Some(vec![format!("{{{{seed:{SECRET}}}}}"), format!("not {SECRET}")]);
    let mut suites = vec![suite("a", vec![leaking])];
    suites[0].file.cases.extend(cases(&["breaks", "panics"]));
    let agent = FakeAgent::default()
        .called(format!("http://me:{SECRET}@host/?key={SECRET}"))
        .on("leak", 1, Act::Answer(Box::new(leak())))
        .on("breaks", 1, Act::Break(format!("refused {SECRET}"), Duration::ZERO))
        .on("panics", 1, Act::Panic(format!("cannot use {SECRET}")));
    let ran = play(Plan { redactor: keeping(&[SECRET]), ..plan(suites) }, agent).await;

    let told = serde_json::to_string(&ran.events).unwrap();
    assert!(!told.contains(SECRET), "{told}");
    let masked = ran.case("id-***");
    assert_eq!(masked.description, "tests ***");
    assert_eq!(masked.error.as_deref(), Some("responseContains: expected 'not ***' in response but not found"));
    assert_eq!(masked.failures[0].message, "responseContains: expected 'not ***' in response but not found");
    assert_eq!(
        serde_json::to_value(&masked.details).unwrap(),
        json!({
            "toolsCalled": ["use-***"],
            "responseLength": 38,
            "skippedTokens": ["{{seed:***}}"],
            "response": "ok, your token is ***!",
            "toolCalls": [{
                "name": "use-***",
                "durationMs": 1.0,
                "params": {"auth": "***", "in-***-key": [{"deep": {"***": [1, "***"]}}], "n": 5},
                "rawParams": "raw ***",
                "result": [{"***": "******"}, null, true],
                "error": "refused ***",
            }],
            "usage": null,
            "model": "model-***",
            "stopReason": "stopped at ***",
            "stderr": "said ***",
            "warnings": ["odd ***", "noToolErrors: the agent does not say whether 'use-***' succeeded"],
        })
    );
    assert_eq!(ran.case("breaks").error.as_deref(), Some("refused ***"));
    assert_eq!(ran.case("panics").error.as_deref(), Some("internal error, please report it: cannot use ***"));
    assert_eq!(ran.suite().agent_endpoint, "http://me:***@host/?key=***");
    assert_eq!(
        ran.suite().warnings,
        [
            "checks were skipped for 1 token without a value: {{seed:***}}",
            "noToolErrors: the agent does not say whether 'use-***' succeeded",
            "odd ***",
        ]
    );
}

/// A message is cut behind the masking, since half a secret is not recognised as one.
#[tokio::test(start_paused = true)]
async fn no_half_of_a_secret_is_left_at_the_end_of_a_long_message() {
    for lead in (570..=605).step_by(5) {
        let long = format!("{}{SECRET}{}", "é".repeat(lead), "z".repeat(10_000));
        let mut wants = cases(&["breaks", "panics", "fails"]);
        wants[2].expect.response_contains = Some(vec![long.clone()]);
        let agent = FakeAgent::default()
            .on("breaks", 1, Act::Break(long.clone(), Duration::ZERO))
            .on("panics", 1, Act::Panic(long.clone()))
            .on("fails", 1, Act::say("no"));
        let ran = play(Plan { redactor: keeping(&[SECRET]), ..plan(vec![suite("a", wants)]) }, agent).await;
        let told = serde_json::to_string(&ran.events).unwrap();
        assert!(!told.contains("s3c") && !told.contains("house"), "{told}");
        for id in ["breaks", "panics", "fails"] {
            let error = ran.case(id).error.as_deref().unwrap();
            assert!(error.chars().count() == 600 && error.ends_with('…'), "{error}");
        }
        assert_eq!(ran.case("fails").failures[0].message, ran.case("fails").error.clone().unwrap());
    }
}

/// The judge sees what the agent said, the reader what may be shown.
#[tokio::test(start_paused = true)]
async fn the_verdict_is_reached_before_secrets_are_taken_out() {
    let mut wants = cases(&["says", "hides"]);
    for case in &mut wants {
        case.expect.response_contains = Some(vec![SECRET.to_owned()]);
    }
    let agent =
        FakeAgent::default().on("says", 1, Act::say(&format!("it is {SECRET}"))).on("hides", 1, Act::say("it is ***"));
    let ran = play(Plan { redactor: keeping(&[SECRET]), ..plan(vec![suite("a", wants)]) }, agent).await;
    assert_eq!((ran.case("says").passed, ran.case("says").details.response.as_str()), (true, "it is ***"));
    assert!(!ran.case("hides").passed);
}

#[tokio::test(start_paused = true)]
async fn without_secrets_nothing_is_changed() {
    let agent = || FakeAgent::default().on("leak", 1, Act::Answer(Box::new(leak())));
    let suites = || vec![suite("a", cases(&["leak"]))];
    let plain = play(plan(suites()), agent()).await;
    assert_eq!(plain.case("leak").details.response, leak().response);
    assert_eq!(plain.case("leak").details.tool_calls, leak().tool_calls);
    let other = play(Plan { redactor: keeping(&["another-secret"]), ..plan(suites()) }, agent()).await;
    assert_eq!(other.suite(), plain.suite());
}
