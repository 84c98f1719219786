//! Parameters of tool calls.

use rstest::rstest;
use serde_json::{Value, json};

use super::{FIRST, Fails, Holds, Outcome, Scenario, Skipped, messages};

/// Three calls: the second is of another tool.
fn weather_calls() -> Value {
    json!([
        { "name": "t", "params": { "city": "Tokyo", "days": 1, "unit": "C" } },
        { "name": "u", "params": { "city": "Cairo" } },
        { "name": "t", "params": { "city": "Oslo", "days": 2, "deep": { "k": [1.0, "x"] }, "no": null } }
    ])
}

#[rstest]
// The first call is the default.
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Tokyo" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "tokyo" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo", "call": "last" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Tokyo", "call": "last" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo", "call": "any" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Cairo", "call": "any" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Tokyo", "call": "all" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": ["Oslo", "Tokyo"], "call": "all" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Tokyo", "call": 0 }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo", "call": 1 }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo", "call": 2 }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo", "call": 2, "optional": true }), Fails)]
// Text form on both sides.
#[case(json!({ "paramName": "days", "assertion": "equals", "value": "1" }), Holds)]
#[case(json!({ "paramName": "days", "assertion": "equals", "value": 1.0 }), Holds)]
#[case(json!({ "paramName": "days", "assertion": "equals", "value": true }), Fails)]
#[case(json!({ "paramName": "deep", "assertion": "equals", "value": { "k": [1, "x"] }, "call": "last" }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "equals", "value": "{\"k\":[1,\"x\"]}", "call": "last" }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "contains", "value": "[1,\"x\"]", "call": "last" }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "contains", "value": [1, "x"], "call": "last" }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "matches", "value": "^\\{.*\\}$", "call": "last" }), Holds)]
#[case(json!({ "paramName": "days", "assertion": "oneOf", "value": [3, "1"] }), Holds)]
#[case(json!({ "paramName": "days", "assertion": "oneOf", "value": [3, 4] }), Fails)]
// Null is a value, and its text is `null`.
#[case(json!({ "paramName": "no", "assertion": "exists", "call": "last" }), Holds)]
#[case(json!({ "paramName": "no", "assertion": "notExists", "call": "last" }), Fails)]
#[case(json!({ "paramName": "no", "assertion": "equals", "value": "null", "call": "last" }), Holds)]
#[case(json!({ "paramName": "no", "assertion": "equals", "value": null, "call": "last" }), Holds)]
// `contains` and `matches` apply anywhere in the text.
#[case(json!({ "paramName": "city", "assertion": "contains", "value": "oky" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "contains", "value": "" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "contains", "value": "OKY" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "matches", "value": "o.y" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "matches", "value": "^o" }), Fails)]
// An absent parameter fails, except for `notExists` and if it is optional.
#[case(json!({ "paramName": "deep", "assertion": "exists" }), Fails)]
#[case(json!({ "paramName": "deep", "assertion": "notExists" }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "contains", "value": "" }), Fails)]
#[case(json!({ "paramName": "deep", "assertion": "matches", "value": "" }), Fails)]
#[case(json!({ "paramName": "deep", "assertion": "equals", "value": "undefined" }), Fails)]
#[case(json!({ "paramName": "deep", "assertion": "equals", "value": "x", "optional": true }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "exists", "optional": true }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "x", "optional": true }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "notExists", "optional": true }), Fails)]
#[case(json!({ "paramName": "unit", "assertion": "exists", "call": "all" }), Fails)]
#[case(json!({ "paramName": "unit", "assertion": "exists", "call": "all", "optional": true }), Holds)]
#[case(json!({ "paramName": "unit", "assertion": "equals", "value": "F", "call": "any", "optional": true }), Holds)]
#[case(json!({ "paramName": "unit", "assertion": "notExists", "call": "any" }), Holds)]
#[case(json!({ "paramName": "unit", "assertion": "notExists", "call": "all" }), Fails)]
// Tools that were not called are covered by the routing assertions, but a call that is asked for by its number must be
// made.
#[case(json!({ "tool": "never", "paramName": "p", "assertion": "exists" }), Skipped)]
#[case(json!({ "tool": "never", "paramName": "p", "assertion": "notExists", "call": "all" }), Skipped)]
#[case(json!({ "tool": "never", "paramName": "p", "assertion": "exists", "call": 0 }), Fails)]
#[case(json!({ "tool": "never", "paramName": "p", "assertion": "notExists", "call": 5 }), Fails)]
#[case(json!({ "tool": "T", "paramName": "city", "assertion": "exists" }), Skipped)]
// Tokens.
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "{{seed:city}}" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "{{seed:nope}}" }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Tokyo{{seed:nope}}" }), Skipped)]
#[case(json!({ "paramName": "deep", "assertion": "equals", "value": "{{seed:nope}}" }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "exists", "value": "{{seed:nope}}" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": "{{seed:cities}}" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": "{{seed:city}}" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": "{{seed:nope}}" }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": "{{seed:none}}" }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": ["{{seed:nope}}"] }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": ["{{seed:nope}}", "Oslo"] }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": ["{{seed:nope}}", "{{seed:city}}"] }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "matches", "value": "^{{seed:city}}$" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "matches", "value": "{{seed:nope}}(" }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "matches", "value": "{{seed:broken}}" }), Fails)]
fn tool_params(#[case] mut assertion: Value, #[case] outcome: Outcome) {
    if assertion.get("tool").is_none() {
        assertion["tool"] = "t".into();
    }
    let scenario = Scenario::new(json!({ "toolParams": [assertion] }), json!({ "toolCalls": weather_calls() }))
        .with("seed", json!({ "city": "Tokyo", "cities": ["Oslo", "Tokyo"], "none": [], "broken": "(" }));
    assert_eq!(scenario.outcome(), outcome);
}

#[test]
fn reports_a_pattern_that_a_token_makes_invalid() {
    let expect =
        json!({ "toolParams": [{ "tool": "t", "paramName": "city", "assertion": "matches", "value": "{{seed:b}}" }] });
    let scenario = Scenario::new(expect, json!({ "toolCalls": weather_calls() })).with("seed", json!({ "b": "(" }));
    let verdict = scenario.judge(FIRST);
    assert!(messages(&verdict)[0].starts_with("toolParams: t.city: /(/ is not a valid regular expression: "));
}

/// Nothing is known of arguments that are not a JSON object.
#[rstest]
#[case(json!({ "toolParams": [{ "tool": "t", "paramName": "city", "assertion": "exists" }] }), "toolParams: t.city: the arguments are not a JSON object: {\"city\": ")]
#[case(json!({ "toolParams": [{ "tool": "t", "paramName": "city", "assertion": "notExists" }] }), "toolParams: t.city: the arguments are not a JSON object: {\"city\": ")]
#[case(json!({ "toolParams": [{ "tool": "t", "paramName": "city", "assertion": "exists", "optional": true }] }), "toolParams: t.city: the arguments are not a JSON object: {\"city\": ")]
#[case(json!({ "toolArgsValid": true }), "toolArgsValid: the arguments of 't' are not a JSON object: {\"city\": ")]
fn no_assertion_holds_for_broken_arguments(#[case] expect: Value, #[case] message: &str) {
    let call = json!({ "name": "t", "params": {}, "rawParams": "{\"city\": " });
    let scenario = Scenario::new(expect, json!({ "toolCalls": [call] }))
        .with("registry", json!([{ "name": "t", "inputSchema": { "type": "object" } }]));
    assert_eq!(messages(&scenario.judge(FIRST)), [message]);
}
