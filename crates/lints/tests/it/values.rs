//! Rules for messages, ids, stubs and expected values.

use karat_json::canonical::canonical_hash;
use karat_lints::{PLACEHOLDER_RESULT, Rule};
use rstest::rstest;
use serde_json::{Value, json};

use super::{LintInput, case};

#[rstest]
#[case("x.golden.json", json!({}), &["0/expect"])]
#[case("x.golden.json", json!({ "responseContains": [] }), &["0/expect"])]
#[case("x.golden.json", json!({ "responseContains": ["18"] }), &["0/expect"])]
#[case("x.golden.json", json!({ "responseContains": ["18", "19"] }), &[])]
#[case("x.labeled.json", json!({ "responseContains": ["18"] }), &[])]
#[case("x.regression.json", json!({}), &[])]
#[case("x.json", json!({}), &["0/expect"])]
fn few_proof_values(#[case] name: &'static str, #[case] expect: Value, #[case] locations: &[&str]) {
    // Without a tier in the file name, the prefix of the id makes it golden.
    assert_eq!(LintInput::from_case(name, json!({ "expect": expect })).locations(Rule::FewProofValues), locations);
}

/// An approved draft needs one proof value or check, not two.
#[rstest]
#[case(json!({ "responseContains": ["18"] }), &["1/expect"])]
#[case(json!({ "responseContainsAny": [["sunny", "clear"]] }), &["1/expect"])]
#[case(json!({ "responseMatches": ["\\d+ °C"] }), &["1/expect"])]
#[case(json!({ "evals": ["eval_tone"] }), &["1/expect"])]
#[case(json!({ "numbersGrounded": true }), &["1/expect"])]
#[case(json!({}), &["0/expect", "1/expect"])]
#[case(json!({ "responseContains": [] }), &["0/expect", "1/expect"])]
#[case(json!({ "toolsCalled": ["x"], "noToolErrors": true, "responseNotContains": ["{\""] }), &["0/expect", "1/expect"])]
fn approved_drafts_need_one_proof_value(#[case] expect: Value, #[case] locations: &[&str]) {
    let approval = json!({ "approvedBy": "Ada", "approvedAt": "2026-01-01T00:00:00Z", "drafter": "template", "cases": ["gs-x-001"] });
    let cases = json!([case("gs-x-001", json!({ "expect": expect })), case("gs-x-002", json!({}))]);
    let input = LintInput::new("x.golden.json", json!({ "metadata": { "approvals": [approval] }, "cases": cases }));
    assert_eq!(input.locations(Rule::FewProofValues), locations);
}

#[rstest]
#[case(&["Tokyo"], &["0/expect/responseContains"])]
#[case(&["Tokyo", "Weather"], &["0/expect/responseContains"])]
#[case(&["Tokyo", "18"], &[])]
#[case(&["tokyo"], &[])]
#[case(&["{{seed:Tokyo}}"], &[])]
#[case(&[], &[])]
fn proof_echoes_prompt(#[case] values: &[&str], #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "responseContains": values } }));
    assert_eq!(input.locations(Rule::ProofEchoesPrompt), locations);
}

#[rstest]
#[case(&["one", "two"], &[])]
#[case(&["one", "one"], &["1/input/message"])]
#[case(&["one", " ONE\n"], &["1/input/message"])]
#[case(&["Straße", "STRASSE"], &[])]
#[case(&["ÉTÉ", "été", "x", "Été "], &["1/input/message", "3/input/message"])]
#[case(&["o ne", "one"], &[])]
fn same_prompt(#[case] prompts: &[&str], #[case] locations: &[&str]) {
    let cases = prompts
        .iter()
        .enumerate()
        .map(|(number, message)| case(&format!("ls-x-{number:03}"), json!({ "input": { "message": message } })));
    assert_eq!(LintInput::new("x.labeled.json", cases.collect()).locations(Rule::SamePrompt), locations);
}

#[rstest]
#[case(json!([["a"], ["b", "c"], ["d"]]), &["0/expect/responseContainsAny/0", "0/expect/responseContainsAny/2"])]
#[case(json!([[], ["a", "b"]]), &["0/expect/responseContainsAny/0"])]
#[case(json!([["a", "b"]]), &[])]
#[case(json!([]), &[])]
fn lonely_synonym(#[case] groups: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "responseContainsAny": groups } }));
    assert_eq!(input.locations(Rule::LonelySynonym), locations);
}

#[rstest]
#[case(json!({ "stubs": {} }), &["0/stubs"])]
#[case(json!({ "stubs": { "a": null } }), &[])]
#[case(json!({}), &[])]
fn empty_stubs(#[case] members: Value, #[case] locations: &[&str]) {
    assert_eq!(LintInput::from_case("x.labeled.json", members).locations(Rule::EmptyStubs), locations);
}

#[rstest]
#[case(json!({ "a": { "result": PLACEHOLDER_RESULT }, "b": 1 }), &["0/stubs/a"])]
#[case(json!({ "a/b": PLACEHOLDER_RESULT }), &["0/stubs/a~1b"])]
#[case(json!({ "a": { "result": "sunny" }, "b": null, "c": [PLACEHOLDER_RESULT] }), &[])]
fn placeholder_stub(#[case] stubs: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "stubs": stubs }));
    assert_eq!(input.locations(Rule::PlaceholderStub), locations);
}

#[rstest]
#[case(json!({ "responseNonEmpty": true }), true)]
#[case(json!({ "responseContains": ["a"] }), true)]
#[case(json!({ "responseContainsAny": [["a", "b"]] }), true)]
#[case(json!({ "responseNotContains": ["a"] }), true)]
#[case(json!({ "responseMatches": ["a"] }), true)]
#[case(json!({ "responseJsonSchema": {} }), true)]
#[case(json!({ "maxTokens": 5 }), true)]
#[case(json!({ "minLength": 5 }), true)]
#[case(json!({ "maxLength": 5 }), true)]
#[case(json!({ "numbersGrounded": true }), true)]
#[case(json!({ "responseNonEmpty": false, "numbersGrounded": false }), false)]
#[case(json!({ "responseContains": [], "responseMatches": [], "responseContainsAny": [] }), false)]
#[case(json!({ "evals": ["eval_routing"] }), false)]
#[case(json!({ "toolsCalled": ["a"], "maxLatencyMs": 5, "maxCostUsd": 1, "noToolErrors": true }), false)]
fn response_in_routing_only(#[case] expect: Value, #[case] fires: bool) {
    let input = |members: Value, routing_only: bool| {
        LintInput { routing_only, ..LintInput::from_case("x.labeled.json", members) }
            .locations(Rule::ResponseInRoutingOnly)
    };
    let expected: &[&str] = if fires { &["0/expect"] } else { &[] };
    assert_eq!(input(json!({ "expect": expect }), true), expected);
    let none: &[&str] = &[];
    assert_eq!(input(json!({ "expect": expect }), false), none, "an agent gives a final answer");
    assert_eq!(input(json!({ "expect": expect, "stubs": {} }), true), none, "a stubbed model gives a final answer");
}

#[rstest]
#[case("x.golden.json", &[
    "0/difficulty", "0/expect/toolsAcceptable", "0/expect/toolsNotCalled", "0/expect/responseMatches", "0/expect/maxTokens"
])]
#[case("x.labeled.json", &[])]
#[case("x.regression.json", &[])]
fn labeled_field_in_golden(#[case] name: &'static str, #[case] locations: &[&str]) {
    let expect =
        json!({ "toolsAcceptable": [["a"]], "toolsNotCalled": ["b"], "responseMatches": ["c"], "maxTokens": 5 });
    let input = LintInput::from_case(name, json!({ "difficulty": "edge", "expect": expect }));
    assert_eq!(input.locations(Rule::LabeledFieldInGolden), locations);
    let shared = json!({ "toolsCalled": ["a"], "responseContains": ["x", "y"], "maxLatencyMs": 5, "minLength": 1 });
    let none: &[&str] = &[];
    assert_eq!(LintInput::from_case(name, json!({ "expect": shared })).locations(Rule::LabeledFieldInGolden), none);
}

#[rstest]
#[case("get_weather.golden.json", "gs-get-weather-001", true)]
#[case("get_weather.golden.json", "gs-get_weather-001", true)]
#[case("get-weather.golden.json", "gs-get_weather-1234", true)]
#[case("get_weather.golden.json", "ls-get-weather-001", false)]
#[case("get_weather.golden.json", "gs-get-weather-01", false)]
#[case("get_weather.golden.json", "gs-get-weather-00a", false)]
#[case("get_weather.golden.json", "gs-get-weather-٠٠١", false)]
#[case("get_weather.golden.json", "gs-get-weather", false)]
#[case("get_weather.golden.json", "gs-001", false)]
#[case("get_weather.golden.json", "gs-get-forecast-001", false)]
#[case("get_weather.golden.json", "GS-get-weather-001", false)]
#[case("get_weather.labeled.json", "ls-get-weather-001", true)]
#[case("get_weather.labeled.json", "gs-get-weather-001", false)]
#[case("get_weather.regression.json", "rg-get-weather-001", true)]
#[case("get_weather.regression.json", "ls-get-weather-001", false)]
#[case("get_weather.json", "whatever", true)]
#[case("get_weather.rubric.json", "whatever", true)]
fn id_form(#[case] name: &'static str, #[case] id: &str, #[case] is_valid: bool) {
    let input = LintInput::new(name, json!([case(id, json!({}))]));
    let expected: &[&str] = if is_valid { &[] } else { &["0/id"] };
    assert_eq!(input.locations(Rule::IdForm), expected);
}

#[rstest]
#[case("exists", Some(json!(1)), &["0/expect/toolParams/0/value"])]
#[case("notExists", Some(Value::Null), &["0/expect/toolParams/0/value"])]
#[case("exists", None, &[])]
#[case("equals", Some(json!(1)), &[])]
#[case("oneOf", Some(json!([1])), &[])]
fn ignored_value(#[case] assertion: &str, #[case] value: Option<Value>, #[case] locations: &[&str]) {
    let mut param = json!({ "tool": "t", "paramName": "p", "assertion": assertion });
    if let Some(value) = value {
        param["value"] = value;
    }
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "toolParams": [param] } }));
    assert_eq!(input.locations(Rule::IgnoredValue), locations);
}

#[rstest]
#[case(json!({ "responseContains": ["a", ""] }), &["0/expect/responseContains/1"])]
#[case(json!({ "responseContains": ["", ""] }), &["0/expect/responseContains/0", "0/expect/responseContains/1"])]
// Such a case always fails, so the rule does not report it.
#[case(json!({ "responseNotContains": [""] }), &[])]
#[case(json!({ "responseContainsAny": [["a", "b"], ["c", ""]] }), &["0/expect/responseContainsAny/1/1"])]
#[case(json!({ "responseContains": [" ", "{{seed:a}}"], "responseContainsAny": [[]] }), &[])]
#[case(json!({ "responseMatches": [""] }), &["0/expect/responseMatches/0"])]
fn empty_value(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::EmptyValue), locations);
}

#[rstest]
#[case::both("x.golden.json", json!({ "expect": { "toolsCalled": ["x"] } }), "noToolErrors|responseNonEmpty")]
#[case::one("x.golden.json", json!({ "expect": { "toolsCalled": ["x"], "noToolErrors": false } }), "responseNonEmpty")]
#[case::implied("x.golden.json", json!({ "expect": { "toolsCalled": ["x"], "responseContains": ["18"] } }), "noToolErrors")]
#[case::asks_first("x.golden.json", json!({ "expect": { "toolsCalled": [], "responseNonEmpty": true } }), "")]
#[case::labeled("x.labeled.json", json!({ "expect": { "responseNonEmpty": true } }), "difficulty|toolsCalled")]
#[case::edge("x.labeled.json", json!({ "difficulty": "edge", "expect": { "toolsNotCalled": ["x"] } }), "")]
#[case::ambiguous("x.labeled.json", json!({ "difficulty": "ambiguous", "expect": {} }), "")]
#[case::regression("x.regression.json", json!({}), "difficulty|createdAt|bugRef")]
#[case::no_bug("x.regression.json", json!({ "difficulty": "regression", "createdAt": "2025-01-15" }), "bugRef")]
#[case::other_tier("x.labeled.json", json!({ "difficulty": "regression" }), "createdAt|bugRef")]
fn missing_keys(#[case] name: &'static str, #[case] members: Value, #[case] keys: &str) {
    let lints = LintInput::from_case(name, members).lints();
    let messages: Vec<&str> =
        lints.iter().filter(|lint| lint.rule == Rule::MissingKey).map(|lint| lint.message.as_str()).collect();
    assert_eq!(messages.is_empty(), keys.is_empty(), "{messages:?}");
    let messages = messages.join("; ");
    let all = ["noToolErrors", "responseNonEmpty", "difficulty", "createdAt", "bugRef", "toolsCalled"];
    let expected: Vec<&str> = keys.split('|').collect();
    for key in all {
        assert_eq!(messages.contains(&format!("'{key}'")), expected.contains(&key), "{key}: {messages}");
    }
}

#[test]
fn routing_only_and_sealed_cases_need_no_further_keys() {
    let golden = LintInput::from_case("x.golden.json", json!({ "expect": { "toolsCalled": ["x"] } }));
    let golden = LintInput { routing_only: true, ..golden };
    assert_eq!(golden.locations(Rule::MissingKey), Vec::<String>::new());
    let sealed = case("rg-x-001", json!({ "expect": { "responseNonEmpty": true } }));
    let hashes = json!({ "rg-x-001": canonical_hash(&sealed) });
    let document = json!({ "metadata": { "caseHashes": hashes }, "cases": [sealed] });
    assert_eq!(LintInput::new("x.regression.json", document).locations(Rule::MissingKey), Vec::<String>::new());
}

#[rstest]
#[case(json!({ "toolsCalled": ["a"], "toolsNotCalled": ["a"] }), Rule::Contradiction, &["0/expect/toolsCalled/0"])]
#[case(json!({ "minToolCalls": 3, "maxToolCalls": 2 }), Rule::Contradiction, &["0/expect/minToolCalls"])]
#[case(
    json!({ "responseContains": ["Paris"], "responseNotContains": ["Par"] }),
    Rule::Contradiction,
    &["0/expect/responseContains/0"]
)]
#[case(
    json!({ "toolsCalled": ["a"], "toolParams": [{ "tool": "b", "paramName": "p", "assertion": "exists" }] }),
    Rule::UnusedAssertion,
    &["0/expect/toolParams/0/tool"]
)]
#[case(json!({ "noToolErrors": false }), Rule::CannotFail, &["0/expect"])]
#[case(json!({ "toolsCalled": ["a"] }), Rule::CannotFail, &[])]
fn contradictions_and_vacuous_cases(#[case] expect: Value, #[case] rule: Rule, #[case] locations: &[&str]) {
    assert_eq!(LintInput::from_case("x.labeled.json", json!({ "expect": expect })).locations(rule), locations);
}
