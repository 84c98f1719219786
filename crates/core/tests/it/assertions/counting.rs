//! Which checks are counted, in which order they are judged, and strict mode.

use std::collections::BTreeSet;

use karat_core::assertion::{Field, NoVerdict, Strictness};
use karat_core::result::Cause;
use rstest::rstest;
use serde_json::{Value, json};

use super::{ALL, FIRST, STRICT, Scenario, messages};

#[test]
fn fields_are_judged_in_a_fixed_order() {
    let expected = [
        "toolsCalled",
        "toolsAcceptable",
        "toolsNotCalled",
        "toolParams",
        "calls",
        "noToolErrors",
        "responseNonEmpty",
        "responseContains",
        "responseContainsAny",
        "responseNotContains",
        "responseMatches",
        "maxLatencyMs",
        "maxTokens",
        "toolOrder",
        "minToolCalls",
        "maxToolCalls",
        "toolArgsValid",
        "responseJsonSchema",
        "minLength",
        "maxLength",
        "maxCostUsd",
        "maxFirstTokenMs",
        "numbersGrounded",
        "responseEquals",
        "responseStartsWith",
        "responseEndsWith",
        "responseNotMatches",
        "responseJson",
        "minSteps",
        "maxSteps",
        "responseSimilar",
        "evals",
        "state",
        "stateUnchanged",
    ];
    assert_eq!(Field::ALL.map(Field::name), expected);
}

/// Checks of every kind that is counted: values, groups, tools, parameters, flags.
fn many_checks() -> Scenario {
    Scenario::new(
        json!({
            "toolsCalled": ["t"],
            "toolsNotCalled": ["x", "y"],
            "toolParams": [
                { "tool": "t", "paramName": "p", "assertion": "exists" },
                { "tool": "t", "paramName": "p", "assertion": "equals", "value": "{{seed:nope}}" },
                { "tool": "never", "paramName": "p", "assertion": "exists" }
            ],
            "noToolErrors": true,
            "responseNonEmpty": true,
            "responseContains": ["one", "{{snapshot:b}}", "missing", "{{seed:nope}} {{snapshot:a}}"],
            "responseContainsAny": [["one", "{{seed:late}}"], ["{{seed:nope}}"], ["absent"]],
            "responseNotContains": ["absent", "{{snapshot:a}}"],
            "toolOrder": []
        }),
        json!({ "response": "one", "toolCalls": [{ "name": "t", "success": true, "params": { "p": 1 } }] }),
    )
}

#[test]
fn stops_at_the_first_failure() {
    let verdict = many_checks().judge(FIRST);
    assert_eq!(messages(&verdict), ["responseContains: expected 'missing' in response but not found"]);
    // The failed check counts as run; later ones are not evaluated.
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (8, 3));
    assert_eq!(verdict.skipped_tokens, ["{{seed:nope}}", "{{snapshot:b}}"]);
}

#[test]
fn reports_all_failures_on_request() {
    let verdict = many_checks().judge(ALL);
    let expected = [
        "responseContains: expected 'missing' in response but not found",
        "responseContainsAny: expected one of ['absent'] in response but none found",
    ];
    assert_eq!(messages(&verdict), expected);
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (11, 6));
    // Each token once, in order of occurrence.
    assert_eq!(verdict.skipped_tokens, ["{{seed:nope}}", "{{snapshot:b}}", "{{snapshot:a}}", "{{seed:late}}"]);
    assert_eq!(many_checks().judge(STRICT), verdict, "the case is not vacuous");
}

#[rstest]
#[case::nothing_asserted(json!({}), 0)]
#[case::empty_lists(json!({ "responseContains": [], "toolParams": [], "toolOrder": [] }), 0)]
#[case::false_flags(json!({ "noToolErrors": false, "responseNonEmpty": false, "numbersGrounded": false }), 0)]
#[case::token(json!({ "responseContains": ["{{seed:nope}}"] }), 1)]
#[case::unknown_cost(json!({ "maxCostUsd": 1 }), 1)]
#[case::no_registry(json!({ "toolArgsValid": true }), 1)]
#[case::tool_never_called(json!({ "toolParams": [{ "tool": "t", "paramName": "p", "assertion": "exists" }] }), 1)]
#[case::order_without_calls(json!({ "toolOrder": [["a", "b"], ["b", "a"]] }), 2)]
fn a_case_without_run_assertions_is_vacuous(#[case] expect: Value, #[case] skipped: usize) {
    let scenario = Scenario::new(expect, json!({ "response": "x" }));
    let verdict = scenario.judge(FIRST);
    assert!(verdict.vacuous && verdict.passed());
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (0, skipped));
    let strict = scenario.judge(Strictness { all_failures: false, strict: true });
    assert!(strict.vacuous && !strict.passed());
    assert_eq!(messages(&strict), ["strict: no assertion ran"]);
    assert_eq!((strict.assertions_run, strict.assertions_skipped), (0, skipped));
}

#[test]
fn a_near_miss_of_a_forbidden_string_fails_in_strict_mode() {
    let expect = json!({ "responseNotContains": ["Paris", "I don't know"] });
    let scenario = Scenario::new(expect, json!({ "response": "Sorry, I Don’t know." }));
    let verdict = scenario.judge(FIRST);
    assert!(verdict.passed());
    let near = &verdict.near_misses[0];
    assert_eq!((near.pointer.as_str(), near.found.as_str()), ("/expect/responseNotContains/1", "I Don’t know"));
    let message = "responseNotContains: expected no 'I don't know' in response but found 'I Don’t know', which differs \
                   only in capitals or typography";
    assert_eq!(messages(&scenario.judge(STRICT)), [message]);
    let exact = json!({ "responseNotContains": ["I don't know"], "textMatch": "exact" });
    assert!(Scenario::new(exact, json!({ "response": "I Don’t know" })).judge(STRICT).passed());
}

#[rstest]
#[case(json!({ "responseNonEmpty": true, "responseNotContains": ["{{ seed:city }}"] }))]
#[case(json!({ "responseNonEmpty": true, "toolParams": [
    { "tool": "t", "paramName": "p", "assertion": "equals", "value": { "city": ["{{ seed:city }}"] } }
] }))]
fn a_misspelt_token_is_a_warning_and_fails_in_strict_mode(#[case] expect: Value) {
    let scenario = Scenario::new(expect, json!({ "response": "x" }));
    let verdict = scenario.judge(FIRST);
    assert!(verdict.passed());
    assert_eq!(verdict.warnings, ["'{{ seed:city }}' is not a valid token and is compared literally"]);
    assert_eq!(
        messages(&scenario.judge(STRICT)),
        ["strict: '{{ seed:city }}' is not a valid token and is compared literally"]
    );
}

#[rstest]
#[case("{{ row:city }}")]
#[case("{{Row:city}}")]
fn a_misspelt_row_token_is_a_warning_and_fails_in_strict_mode(#[case] text: &str) {
    let scenario = Scenario::new(json!({ "responseNotContains": [text] }), json!({ "response": "x" }));
    let message = format!("'{text}' is not a valid token and is compared literally");
    assert!(scenario.judge(FIRST).passed());
    assert_eq!(scenario.judge(FIRST).warnings, [message.as_str()]);
    assert_eq!(messages(&scenario.judge(STRICT)), [format!("strict: {message}").as_str()]);
}

#[test]
fn an_invalid_schema_in_the_registry_is_no_verdict() {
    let trace = json!({ "toolCalls": [{ "name": "t", "params": {} }] });
    let scenario = Scenario::new(json!({ "toolArgsValid": true }), trace)
        .with("registry", json!([{ "name": "t", "inputSchema": { "type": "dict" } }]));
    let verdict = scenario.judge(FIRST);
    let NoVerdict { message: error, cause } = verdict.error.clone().expect("no verdict");
    assert_eq!(cause, Cause::Check);
    assert!(error.starts_with("toolArgsValid: the registry's schema of 't' is not a valid JSON Schema:"), "{error}");
    assert!(verdict.failures.is_empty() && !verdict.vacuous);
}

#[rstest]
#[case(json!({ "toolsCalled": [] }))]
#[case(json!({ "maxToolCalls": 0 }))]
#[case(json!({ "toolArgsValid": true, "responseNonEmpty": true }))]
fn one_run_assertion_is_enough(#[case] expect: Value) {
    let verdict = Scenario::new(expect, json!({ "response": "x" })).judge(STRICT);
    assert!(!verdict.vacuous && verdict.passed());
}

#[test]
fn warnings_are_not_repeated() {
    let scenario = Scenario::new(
        json!({ "noToolErrors": true, "maxCostUsd": 1, "numbersGrounded": true }),
        json!({ "toolCalls": [{ "name": "a" }, { "name": "a" }] }),
    );
    let warnings = scenario.judge(ALL).warnings;
    let distinct: BTreeSet<&String> = warnings.iter().collect();
    assert_eq!((warnings.len(), distinct.len()), (3, 3), "{warnings:?}");
}
