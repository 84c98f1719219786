//! Redaction of secrets in events.

use std::time::Duration;

use karat_cases::Case;
use karat_core::redact::Redactor;
use karat_core::trace::{ToolCall, Trace};
use karat_runner::Plan;
use serde_json::{Map, Value, json};

use crate::support::{Act, FakeAgent, case, cases, plan, run_plan, suite};

const SECRET: &str = "s3cr3t-of-the-house";

fn redactor(secrets: &[&str]) -> Redactor {
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

/// A trace with the secret in every text.
fn trace_with_secret() -> Trace {
    let call = ToolCall {
        name: format!("use-{SECRET}"),
        success: None,
        duration_ms: Some(1.0),
        params: object(json!({"auth": SECRET, format!("in-{SECRET}-key"): [{"deep": {SECRET: [1, SECRET]}}], "n": 5})),
        result: Some(json!([{SECRET: format!("{SECRET}{SECRET}")}, null, true])),
        raw_params: Some(format!("raw {SECRET}")),
        error: Some(format!("refused {SECRET}")),
        step: None,
    };
    Trace {
        response: format!("ok, your token is {SECRET}!"),
        tool_calls: vec![call],
        model: Some(format!("model-{SECRET}")),
        stop_reason: Some(format!("stopped at {SECRET}")),
        stderr: Some(format!("log {SECRET}")),
        warnings: vec![format!("note {SECRET}")],
        ..Trace::default()
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_are_redacted_in_every_event() {
    let mut leaking = case(&format!("id-{SECRET}"), "leak");
    leaking.description = format!("tests {SECRET}");
    leaking.expect.no_tool_errors = Some(true);
    leaking.expect.response_contains = Some(vec![format!("{{{{seed:{SECRET}}}}}"), format!("not {SECRET}")]);
    let mut suites = vec![suite("a", vec![leaking])];
    suites[0].file.cases.extend(cases(&["breaks", "panics"]));
    let agent = FakeAgent::default()
        .with_identity(format!("http://me:{SECRET}@host/?key={SECRET}"))
        .on("leak", 1, Act::Answer(Box::new(trace_with_secret())))
        .on("breaks", 1, Act::Fail(format!("refused {SECRET}"), Duration::ZERO))
        .on("panics", 1, Act::Panic(format!("cannot use {SECRET}")));
    let run = run_plan(Plan { redactor: redactor(&[SECRET]), ..plan(suites) }, agent).await;

    let events = serde_json::to_string(&run.events).unwrap();
    assert!(!events.contains(SECRET), "{events}");
    let redacted = run.case("id-***");
    assert_eq!(redacted.description, "tests ***");
    assert_eq!(redacted.error.as_deref(), Some("responseContains: expected 'not ***' in response but not found"));
    assert_eq!(redacted.failures[0].message, "responseContains: expected 'not ***' in response but not found");
    assert_eq!(
        serde_json::to_value(&redacted.details).unwrap(),
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
            "stderr": "log ***",
            "warnings": ["note ***", "noToolErrors: the agent does not report whether 'use-***' succeeded"],
            "assertions": [
                {"assertion": "noToolErrors", "verdict": "skipped"},
                {"assertion": "responseContains", "verdict": "failed"},
            ],
        })
    );
    assert_eq!(run.case("breaks").error.as_deref(), Some("refused ***"));
    assert_eq!(run.case("panics").error.as_deref(), Some("internal error, please report it: cannot use ***"));
    assert_eq!(run.suite().agent_endpoint, "http://me:***@host/?key=***");
    assert_eq!(
        run.suite().warnings,
        [
            "assertions skipped for 1 token without a value: {{seed:***}}",
            "noToolErrors: the agent does not report whether 'use-***' succeeded",
            "note ***",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn secrets_are_redacted_in_the_alignment_of_calls() {
    let mut leaking = case("a", "leak");
    let expect = json!({"list": [{"tool": "use", "params": {"auth": format!("not {SECRET}")}}]});
    let read = json!({"id": "a", "input": {"message": "m"}, "expect": {"calls": expect}});
    leaking.expect = Case::read_one(&read).unwrap().expect;
    let call =
        ToolCall { name: "use".to_owned(), params: object(json!({"auth": SECRET, SECRET: 1})), ..ToolCall::default() };
    let trace = Trace { tool_calls: vec![call], ..Trace::default() };
    let agent = FakeAgent::default().on("leak", 1, Act::Answer(Box::new(trace)));
    let run = run_plan(Plan { redactor: redactor(&[SECRET]), ..plan(vec![suite("a", vec![leaking])]) }, agent).await;
    let events = serde_json::to_string(&run.events).unwrap();
    assert!(!events.contains(SECRET), "{events}");
    assert_eq!(
        serde_json::to_value(&run.case("a").details.calls).unwrap(),
        json!({"match": "exact", "pairs": [{
            "state": "different", "entry": 0, "call": 0, "expected": "use {\"auth\":\"not ***\"}",
            "differences": [
                {"part": "arguments", "pointer": "/auth", "expected": "\"not ***\"", "actual": "\"***\""},
                {"part": "arguments", "pointer": "/***", "actual": "1"},
            ],
        }]})
    );
}

/// Messages are truncated after redaction, which does not recognise a partial secret.
#[tokio::test(start_paused = true)]
async fn truncated_messages_contain_no_partial_secret() {
    for prefix_length in (570..=605).step_by(5) {
        let long = format!("{}{SECRET}{}", "é".repeat(prefix_length), "z".repeat(10_000));
        let mut test_cases = cases(&["breaks", "panics", "fails"]);
        test_cases[2].expect.response_contains = Some(vec![long.clone()]);
        let agent = FakeAgent::default()
            .on("breaks", 1, Act::Fail(long.clone(), Duration::ZERO))
            .on("panics", 1, Act::Panic(long.clone()))
            .on("fails", 1, Act::reply("no"));
        let run = run_plan(Plan { redactor: redactor(&[SECRET]), ..plan(vec![suite("a", test_cases)]) }, agent).await;
        let events = serde_json::to_string(&run.events).unwrap();
        assert!(!events.contains("s3c") && !events.contains("house"), "{events}");
        for id in ["breaks", "panics", "fails"] {
            let error = run.case(id).error.as_deref().unwrap();
            assert!(error.chars().count() == 600 && error.ends_with('…'), "{error}");
        }
        assert_eq!(run.case("fails").failures[0].message, run.case("fails").error.clone().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn judging_happens_before_redaction() {
    let mut test_cases = cases(&["leaks", "redacts"]);
    for case in &mut test_cases {
        case.expect.response_contains = Some(vec![SECRET.to_owned()]);
    }
    let agent = FakeAgent::default().on("leaks", 1, Act::reply(&format!("it is {SECRET}"))).on(
        "redacts",
        1,
        Act::reply("it is ***"),
    );
    let run = run_plan(Plan { redactor: redactor(&[SECRET]), ..plan(vec![suite("a", test_cases)]) }, agent).await;
    assert_eq!((run.case("leaks").passed, run.case("leaks").details.response.as_str()), (true, "it is ***"));
    assert!(!run.case("redacts").passed);
}

#[tokio::test(start_paused = true)]
async fn results_without_secrets_are_unchanged() {
    let agent = || FakeAgent::default().on("leak", 1, Act::Answer(Box::new(trace_with_secret())));
    let suites = || vec![suite("a", cases(&["leak"]))];
    let plain = run_plan(plan(suites()), agent()).await;
    assert_eq!(plain.case("leak").details.response, trace_with_secret().response);
    assert_eq!(plain.case("leak").details.tool_calls, trace_with_secret().tool_calls);
    let other = run_plan(Plan { redactor: redactor(&["another-secret"]), ..plan(suites()) }, agent()).await;
    assert_eq!(other.suite(), plain.suite());
}
