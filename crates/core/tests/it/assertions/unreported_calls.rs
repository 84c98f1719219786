//! Agents that do not report their tool calls.

use karat_core::assertion::{AssertionOutcome, Field, NoVerdict};
use karat_core::result::Cause;
use rstest::rstest;
use serde_json::{Value, json};

use super::{ALL, FIRST, STRICT, Scenario, messages};

fn unreported(expect: Value) -> Scenario {
    Scenario::new(expect, json!({ "response": "It is 18 °C.", "callsUnreported": true }))
}

/// Every assertion about calls, most of which an empty list of calls would fail or fulfil.
fn every_assertion() -> Value {
    json!({
        "toolsCalled": ["a"],
        "toolsAcceptable": [["a"]],
        "toolsNotCalled": ["b", "c"],
        "toolParams": [
            { "tool": "a", "paramName": "p", "assertion": "exists" },
            { "tool": "a", "paramName": "p", "assertion": "exists", "call": 0 }
        ],
        "calls": { "list": [{ "tool": "a" }], "forbidden": [{ "tool": "b" }, { "tool": "c" }] },
        "noToolErrors": true,
        "toolOrder": [["a", "b"], ["b", "c"]],
        "minToolCalls": 1,
        "maxToolCalls": 0,
        "toolArgsValid": true,
        "numbersGrounded": true
    })
}

#[test]
fn every_assertion_about_calls_is_skipped_and_counted() {
    let verdict = unreported(every_assertion()).judge(ALL);
    assert_eq!(messages(&verdict), Vec::<&str>::new());
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped, verdict.vacuous), (0, 16, true));
    assert!(verdict.passed() && verdict.warnings.is_empty());
    let judged: Vec<(&str, AssertionOutcome)> =
        verdict.assertions.iter().map(|line| (line.assertion.as_ref(), line.verdict)).collect();
    let about_calls = Field::ALL.into_iter().filter(|field| field.is_about_calls());
    let skipped: Vec<_> = about_calls.map(|field| (field.name(), AssertionOutcome::Skipped)).collect();
    assert_eq!(judged, skipped);
}

#[rstest]
#[case("toolsCalled", json!([]))]
#[case("toolsNotCalled", json!(["a"]))]
#[case("calls", json!({ "list": [] }))]
#[case("calls", json!({ "forbidden": [{ "tool": "a" }] }))]
#[case("noToolErrors", json!(true))]
#[case("maxToolCalls", json!(0))]
#[case("numbersGrounded", json!(true))]
fn nothing_is_proved_by_calls_that_are_not_reported(#[case] key: &str, #[case] value: Value) {
    let expect = json!({ key: value });
    let verdict = unreported(expect.clone()).judge(FIRST);
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (0, 1));
    let reported = Scenario::new(expect, json!({ "response": "fine" })).judge(FIRST);
    assert_eq!((reported.assertions_run, reported.assertions_skipped), (1, 0));
}

#[test]
fn other_assertions_are_judged() {
    let expect = json!({ "toolsCalled": ["a"], "responseContains": ["18", "19"], "minToolCalls": 1 });
    let verdict = unreported(expect).judge(ALL);
    assert_eq!(messages(&verdict), ["responseContains: expected '19' in response but not found"]);
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (2, 2));
}

#[rstest]
#[case(json!({ "toolsCalled": ["a"], "responseContains": ["19"] }), "toolsCalled")]
#[case(json!({ "responseContains": ["18"], "maxToolCalls": 3 }), "maxToolCalls")]
fn strict_judging_gives_no_verdict(#[case] expect: Value, #[case] key: &str) {
    let verdict = unreported(expect).judge(STRICT);
    let message =
        format!("{key}: the agent does not report its tool calls, and --strict does not skip assertions about them");
    assert_eq!(verdict.error, Some(NoVerdict { message, cause: Cause::UnreportedCalls }));
    assert!(verdict.failures.is_empty() && !verdict.vacuous && !verdict.passed());
}

#[test]
fn an_earlier_failure_remains_the_verdict_in_strict_judging() {
    let verdict = unreported(json!({ "responseContains": ["19"], "maxToolCalls": 3 })).judge(STRICT);
    assert_eq!(messages(&verdict), ["responseContains: expected '19' in response but not found"]);
    assert_eq!((verdict.error, verdict.assertions_skipped), (None, 1));
}

#[rstest]
#[case(json!({ "responseContains": ["18"] }))]
#[case(json!({ "responseContains": ["18"], "toolsNotCalled": [], "noToolErrors": false }))]
fn cases_without_assertions_about_calls_are_unaffected(#[case] expect: Value) {
    let verdict = unreported(expect).judge(STRICT);
    assert!(verdict.passed());
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (1, 0));
}
