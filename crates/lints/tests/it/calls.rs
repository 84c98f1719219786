//! Rules for whole calls, and for the response as a whole.

use karat_cases::registry::{Registry, Tool};
use karat_cases::token::TokenSources;
use karat_lints::Rule;
use rstest::rstest;
use serde_json::{Value, json};

use super::LintInput;

fn locations(expect: &Value, rule: Rule) -> Vec<String> {
    LintInput::from_case("x.labeled.json", json!({ "expect": expect })).locations(rule)
}

#[rstest]
#[case(json!([{ "paramName": "a", "call": "any" }, { "paramName": "b", "call": "any" }]), &["0/expect/toolParams/1"])]
#[case(json!([{ "paramName": "a", "call": "any" }, { "paramName": "a", "call": "any" }]), &[])]
#[case(json!([{ "paramName": "a", "call": "any" }, { "paramName": "b" }]), &[])]
#[case(json!([{ "paramName": "a", "call": "any" }, { "paramName": "b", "call": "any", "tool": "u" }]), &[])]
#[case(json!([{ "paramName": "a", "call": "all" }, { "paramName": "b", "call": "all" }]), &[])]
fn separate_params(#[case] params: Value, #[case] expected: &[&str]) {
    let params: Value = params
        .as_array()
        .into_iter()
        .flatten()
        .map(|param| {
            let mut whole = json!({ "tool": "t", "assertion": "exists" });
            whole.as_object_mut().expect("object").extend(param.as_object().expect("object").clone());
            whole
        })
        .collect();
    assert_eq!(locations(&json!({ "toolParams": params }), Rule::SeparateParams), expected);
}

#[rstest]
#[case(json!({ "calls": { "list": [{ "tool": "a" }] }, "toolsNotCalled": ["a"] }), &["0/expect/calls/list/0/tool"])]
#[case(json!({ "calls": { "forbidden": [{ "tool": "a" }] }, "toolsNotCalled": ["a"] }), &[])]
#[case(json!({ "calls": { "match": "subset", "list": [{ "tool": "a" }] }, "toolsNotCalled": ["a"] }), &[])]
#[case(json!({ "calls": { "list": [{ "tool": "a" }, { "tool": "b" }] }, "maxToolCalls": 1 }), &["0/expect/maxToolCalls"])]
#[case(json!({ "minSteps": 3, "maxSteps": 2 }), &["0/expect/minSteps"])]
#[case(json!({ "minSteps": 2, "maxSteps": 2 }), &[])]
#[case(json!({ "responseEquals": " a" }), &["0/expect/responseEquals"])]
#[case(json!({ "responseStartsWith": "a ", "responseEndsWith": " a" }), &[])]
#[case(json!({ "responseStartsWith": " a" }), &["0/expect/responseStartsWith"])]
#[case(json!({ "responseEndsWith": "a\n" }), &["0/expect/responseEndsWith"])]
#[case(json!({ "responseNotMatches": ["a", ""] }), &["0/expect/responseNotMatches/1"])]
fn contradictions(#[case] expect: Value, #[case] expected: &[&str]) {
    assert_eq!(locations(&expect, Rule::Contradiction), expected);
}

#[rstest]
#[case(json!({ "calls": { "list": [{ "tool": "a", "paramsMatch": "includes", "ignore": ["/b"] }] } }),
    &["0/expect/calls/list/0/paramsMatch", "0/expect/calls/list/0/ignore"])]
#[case(json!({ "calls": { "list": [{ "tool": "a", "params": {}, "ignore": ["/b"] }] } }), &[])]
#[case(json!({ "calls": { "anyOf": [[{ "tool": "a", "where": [{ "assertion": "exists", "value": 1 }] }]] } }),
    &["0/expect/calls/anyOf/0/0/where/0/value"])]
#[case(json!({ "calls": { "forbidden": [{ "tool": "a", "result": [{ "assertion": "notExists", "value": 1 }] }] } }),
    &["0/expect/calls/forbidden/0/result/0/value"])]
#[case(json!({ "responseJson": [{ "assertion": "exists", "value": 1 }] }), &["0/expect/responseJson/0/value"])]
fn ignored_values(#[case] expect: Value, #[case] expected: &[&str]) {
    assert_eq!(locations(&expect, Rule::IgnoredValue), expected);
}

#[rstest]
#[case(json!({ "responseStartsWith": "", "responseEndsWith": "a" }), &["0/expect/responseStartsWith"])]
#[case(json!({ "responseEquals": "" }), &[])]
#[case(json!({ "responseNotMatches": [""] }), &[])]
fn empty_values(#[case] expect: Value, #[case] expected: &[&str]) {
    assert_eq!(locations(&expect, Rule::EmptyValue), expected);
}

#[test]
fn tools_and_arguments_are_checked_against_the_registry() {
    let schema = json!({ "properties": { "city": { "type": "string" }, "days": { "type": "integer" } } });
    let tool = Tool { name: "get".to_owned(), input_schema: Some(schema).into(), ..Tool::default() };
    let calls = json!({
        "list": [
            { "tool": "get", "params": { "city": "Oslo", "days": "3" } },
            { "tool": "get", "params": { "town": 1, "days": "{{seed:days}}" } },
            { "tool": "got" }
        ],
        "forbidden": [{ "tool": "gone", "params": { "a": 1 } }]
    });
    let input = LintInput {
        registry: Some(Registry::from_tools([tool])),
        tokens: Some(TokenSources { seed: Some(json!({ "days": 3.5 })), snapshot: None }),
        ..LintInput::from_case("x.labeled.json", json!({ "expect": { "calls": calls } }))
    };
    assert_eq!(input.locations(Rule::UnknownTool), ["0/expect/calls/list/2/tool", "0/expect/calls/forbidden/0/tool"]);
    assert_eq!(input.locations(Rule::UnknownParam), ["0/expect/calls/list/1/params/town"]);
    assert_eq!(
        input.locations(Rule::ParamValue),
        ["0/expect/calls/list/0/params/days", "0/expect/calls/list/1/params/days"]
    );
}

#[test]
fn texts_of_all_assertions_are_checked() {
    let expect = json!({
        "calls": { "list": [{ "tool": "a", "params": { "x/y": ["2026-05-01"] }, "where": [{ "assertion": "contains", "value": "{{ seed:a }}" }] }] },
        "responseEquals": "at 14:30",
        "responseJson": [{ "path": "/a", "assertion": "equals", "value": { "b": "$12.99" } }],
        "responseSimilar": [{ "to": ["x", "{{Seed:a}}"], "method": "rouge1", "atLeast": 0.5 }]
    });
    assert_eq!(
        locations(&expect, Rule::VolatileValue),
        ["0/expect/calls/list/0/params/x~1y/0", "0/expect/responseEquals", "0/expect/responseJson/0/value/b"]
    );
    assert_eq!(
        locations(&expect, Rule::StrayToken),
        ["0/expect/calls/list/0/where/0/value", "0/expect/responseSimilar/0/to/1"]
    );
}

#[rstest]
#[case("x.golden.json", json!({ "calls": { "list": [{ "tool": "x" }] } }), Rule::GoldenTool, &[])]
#[case("x.golden.json", json!({ "calls": { "list": [{ "tool": "y" }] } }), Rule::GoldenTool, &["0/expect"])]
#[case("x.labeled.json", json!({ "calls": { "list": [] } }), Rule::MissingKey, &["0/id"])]
fn calls_count_as_routing(
    #[case] name: &'static str,
    #[case] expect: Value,
    #[case] rule: Rule,
    #[case] expected: &[&str],
) {
    assert_eq!(LintInput::from_case(name, json!({ "expect": expect })).locations(rule), expected);
}
