//! Rules for the tools that a case names.

use karat_cases::registry::{Gap, GapKind, Registry, Tool, ToolLocation};
use karat_lints::Rule;
use rstest::rstest;
use serde_json::{Value, json};

use super::{LintInput, registry};

#[rstest]
#[case(json!({ "toolsCalled": ["a"], "toolsAcceptable": [["a"]] }), &["0/expect/toolsAcceptable"])]
#[case(json!({ "toolsCalled": [], "toolsAcceptable": [["__none__"]] }), &["0/expect/toolsAcceptable"])]
#[case(json!({ "toolsCalled": ["a"], "toolsNotCalled": ["b"] }), &[])]
#[case(json!({ "toolsAcceptable": [["a"]] }), &[])]
fn both_routing_kinds(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::BothRoutingKinds), locations);
}

#[rstest]
#[case("ambiguous", json!({}), &["0/expect"])]
#[case("ambiguous", json!({ "toolsCalled": ["a"] }), &["0/expect"])]
#[case("ambiguous", json!({ "toolsAcceptable": [["a"]] }), &[])]
#[case("straightforward", json!({ "toolsCalled": ["a"] }), &[])]
#[case("edge", json!({}), &[])]
#[case("regression", json!({}), &[])]
fn ambiguous_without_sets(#[case] difficulty: &str, #[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "difficulty": difficulty, "expect": expect }));
    assert_eq!(input.locations(Rule::AmbiguousWithoutSets), locations);
}

#[rstest]
#[case("edge", json!({}), &["0/expect"])]
#[case("edge", json!({ "toolsCalled": ["a"], "responseNonEmpty": true }), &["0/expect"])]
#[case("edge", json!({ "toolsNotCalled": [], "responseNotContains": [] }), &["0/expect"])]
#[case("edge", json!({ "maxToolCalls": 1 }), &["0/expect"])]
#[case("edge", json!({ "toolsAcceptable": [["a"]] }), &["0/expect"])]
#[case("edge", json!({ "toolsNotCalled": ["a"] }), &[])]
#[case("edge", json!({ "responseNotContains": ["a"] }), &[])]
#[case("edge", json!({ "toolsCalled": [] }), &[])]
#[case("edge", json!({ "maxToolCalls": 0 }), &[])]
#[case("edge", json!({ "toolsAcceptable": [["__none__"]] }), &[])]
#[case("edge", json!({ "toolsAcceptable": [["a"], []] }), &[])]
#[case("ambiguous", json!({}), &[])]
fn edge_without_negative(#[case] difficulty: &str, #[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "difficulty": difficulty, "expect": expect }));
    assert_eq!(input.locations(Rule::EdgeWithoutNegative), locations);
}

#[rstest]
#[case(json!({ "toolsCalled": ["known", "a"] }), &["0/expect/toolsCalled/1"])]
#[case(json!({ "toolsNotCalled": ["a", "known"] }), &["0/expect/toolsNotCalled/0"])]
#[case(json!({ "toolsAcceptable": [["known"], ["known", "a"]] }), &["0/expect/toolsAcceptable/1/1"])]
#[case(json!({ "toolsAcceptable": [["__none__"], []] }), &[])]
#[case(
    json!({ "toolParams": [{ "tool": "a", "paramName": "p", "assertion": "exists" }] }),
    &["0/expect/toolParams/0/tool"]
)]
#[case(json!({ "toolOrder": [["known", "a"], ["b", "known"]] }), &["0/expect/toolOrder/0/1", "0/expect/toolOrder/1/0"])]
#[case(json!({ "toolsCalled": ["Known", "kno-wn"] }), &["0/expect/toolsCalled/0", "0/expect/toolsCalled/1"])]
#[case(json!({ "toolsCalled": ["known"], "responseContains": ["a"] }), &[])]
fn unknown_tool(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = || LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    let known = LintInput { registry: Some(registry(&["known"])), ..input() };
    assert_eq!(known.locations(Rule::UnknownTool), locations);
    let none: &[&str] = &[];
    assert_eq!(input().locations(Rule::UnknownTool), none, "without a registry no tool is unknown");
    let mut with_gap = known;
    let location = ToolLocation { source: "tools.ts".to_owned(), position: None };
    let gap = Gap { kind: GapKind::Unknown, location, message: "tools are created in a loop".to_owned() };
    with_gap.registry.iter_mut().for_each(|registry| registry.add_gap(gap.clone()));
    assert_eq!(with_gap.locations(Rule::UnknownTool), none, "it may be in a gap");
    assert_eq!(with_gap.locations(Rule::ToolNotKnown), locations);
}

#[test]
fn suggests_the_nearest_tool() {
    let message = |tool: &str| {
        let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "toolsCalled": [tool] } }));
        let input = LintInput { registry: Some(registry(&["get_forecast", "get_weather"])), ..input };
        input.lints().into_iter().find(|lint| lint.rule == Rule::UnknownTool).unwrap().message
    };
    assert_eq!(message("get_wether"), "the registry has no tool 'get_wether' (did you mean 'get_weather'?)");
    assert_eq!(message("zzz"), "the registry has no tool 'zzz'");
}

#[rstest]
#[case("x.golden.json", json!({ "toolsCalled": ["x"] }), &[])]
#[case("x.golden.json", json!({ "toolsNotCalled": ["x"] }), &[])]
#[case("x.golden.json", json!({ "toolsCalled": [] }), &[])]
#[case("x.golden.json", json!({}), &["0/expect"])]
#[case("x.golden.json", json!({ "toolsCalled": ["y"] }), &["0/expect/toolsCalled"])]
#[case("x.golden.json", json!({ "toolsCalled": ["x", "x"] }), &["0/expect/toolsCalled"])]
#[case("x.labeled.json", json!({}), &[])]
fn golden_tool(#[case] name: &'static str, #[case] expect: Value, #[case] locations: &[&str]) {
    assert_eq!(LintInput::from_case(name, json!({ "expect": expect })).locations(Rule::GoldenTool), locations);
}

#[rstest]
#[case(json!({ "toolsCalled": ["x", "y"] }), &[])]
#[case(json!({ "toolsCalled": ["x"] }), &["0/expect/toolsCalled"])]
#[case(json!({ "toolsCalled": ["y", "z"] }), &["0/expect/toolsCalled"])]
#[case(json!({}), &["0/expect"])]
fn straightforward_tools(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "difficulty": "straightforward", "expect": expect }));
    assert_eq!(input.locations(Rule::StraightforwardTools), locations);
}

#[rstest]
#[case(json!([["x"], ["y"]]), &[])]
#[case(json!([["__none__"]]), &[])]
#[case(json!([["y"], ["z"]]), &["0/expect/toolsAcceptable"])]
fn ambiguous_tools(#[case] sets: Value, #[case] locations: &[&str]) {
    let expect = json!({ "toolsAcceptable": sets });
    let input = LintInput::from_case("x.labeled.json", json!({ "difficulty": "ambiguous", "expect": expect }));
    assert_eq!(input.locations(Rule::AmbiguousTools), locations);
}

#[rstest]
#[case("Call get_weather for Oslo", None, &["0/input/message"])]
#[case("Call `getForecast`.", None, &["0/input/message"])]
#[case("Call get_weather for Oslo", Some("edge"), &[])]
#[case("Get weather for Oslo", None, &[])]
#[case("What does my_get_weather_2 do?", None, &[])]
fn message_names_tool(#[case] message: &str, #[case] difficulty: Option<&str>, #[case] locations: &[&str]) {
    let mut members = json!({ "input": { "message": message } });
    if let Some(difficulty) = difficulty {
        members["difficulty"] = json!(difficulty);
    }
    let registry = Some(registry(&["get_weather", "getForecast"]));
    let input = LintInput { registry, ..LintInput::from_case("x.labeled.json", members) };
    assert_eq!(input.locations(Rule::MessageNamesTool), locations);
}

#[test]
fn checks_parameters_and_stubs_against_the_registry() {
    let schema = json!({ "type": "object", "properties": { "units": { "enum": ["metric", "imperial"] } } });
    let tool = Tool { name: "get_weather".to_owned(), input_schema: Some(schema).into(), ..Tool::default() };
    let param = |name: &str, value: &str| json!({ "tool": "get_weather", "paramName": name, "assertion": "equals", "value": value });
    let members = json!({
        "stubs": { "get_wether": 1 },
        "expect": {
            "toolsCalled": ["get_weather"],
            "toolParams": [param("units", "metric"), param("units", "kelvin"), param("unit", "metric")],
        }
    });
    let input = LintInput {
        registry: Some(Registry::from_tools([tool])),
        ..LintInput::from_case("get_weather.labeled.json", members)
    };
    assert_eq!(input.locations(Rule::ParamValue), ["0/expect/toolParams/1/value"]);
    assert_eq!(input.locations(Rule::UnknownParam), ["0/expect/toolParams/2/paramName"]);
    assert_eq!(input.locations(Rule::MissingStub), ["0/stubs"]);
    assert_eq!(input.locations(Rule::UnknownTool), ["0/stubs/get_wether"]);
}

/// Without `metadata.toolName`, the file name is the tool's name, unless the registry has no such tool.
#[test]
fn rules_about_the_own_tool_need_its_name() {
    let cases = || {
        json!([
            super::case("a", json!({"difficulty": "straightforward", "expect": {"toolsCalled": ["get_weather"]}})),
            super::case("b", json!({"difficulty": "ambiguous", "expect": {"toolsAcceptable": [["get_weather"]]}})),
        ])
    };
    let rules = |document: Value, registry: Option<Registry>| {
        let lints = LintInput { registry, ..LintInput::new("routing.labeled.json", document) }.lints();
        let own = [Rule::IdForm, Rule::StraightforwardTools, Rule::AmbiguousTools];
        lints.iter().filter(|lint| own.contains(&lint.rule)).count()
    };
    let known = || Some(registry(&["get_weather"]));
    assert_eq!(rules(cases(), known()), 0);
    assert_eq!(rules(cases(), Some(registry(&["get_weather", "routing"]))), 4);
    assert_eq!(rules(cases(), None), 4);
    assert_eq!(rules(json!({"metadata": {"toolName": "get_weather"}, "cases": cases()}), known()), 3);
}
