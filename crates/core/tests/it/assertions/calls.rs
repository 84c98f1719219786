//! Errors, order, number and arguments of tool calls.

use rstest::rstest;
use serde_json::{Value, json};

use super::{FIRST, Fails, Holds, Nothing, Outcome, Scenario, Skipped, calls};

#[rstest]
#[case(json!([]), Holds)]
#[case(json!([{ "name": "a", "success": true }]), Holds)]
#[case(json!([{ "name": "a", "success": true }, { "name": "b", "success": false }]), Fails)]
#[case(json!([{ "name": "a" }]), Skipped)]
#[case(json!([{ "name": "a" }, { "name": "b" }]), Skipped)]
#[case(json!([{ "name": "a" }, { "name": "b", "success": true }]), Holds)]
#[case(json!([{ "name": "a" }, { "name": "b", "success": false }]), Fails)]
fn no_tool_errors_with_an_endpoint(#[case] made: Value, #[case] outcome: Outcome) {
    let trace = json!({ "toolCalls": made });
    let scenario = Scenario::new(json!({ "noToolErrors": true }), trace.clone());
    assert_eq!(scenario.outcome(), outcome);
    let stubbed_file = scenario.with("case", json!({ "stubs": {} }));
    assert_eq!(stubbed_file.outcome(), outcome, "stubs do not apply to an endpoint");
    assert_eq!(Scenario::new(json!({ "noToolErrors": false }), trace).outcome(), Nothing);
}

#[test]
fn warns_about_calls_without_a_status() {
    for made in [json!([{ "name": "a" }]), json!([{ "name": "b", "success": true }, { "name": "a" }])] {
        let scenario = Scenario::new(json!({ "noToolErrors": true }), json!({ "toolCalls": made }));
        assert_eq!(scenario.judge(FIRST).warnings, ["noToolErrors: the agent does not report whether 'a' succeeded"]);
    }
    let reported = Scenario::new(json!({ "noToolErrors": true }), json!({ "toolCalls": calls(&["a"]) }));
    assert_eq!(reported.judge(FIRST).warnings, Vec::<String>::new());
}

#[rstest]
#[case(json!({ "a": { "t": 1 } }), &["a", "a"], Holds)]
#[case(json!({ "a": null }), &["a"], Holds)]
#[case(json!({ "a": null }), &["b"], Fails)]
#[case(json!({ "a": null }), &[], Holds)]
#[case(json!({}), &["a"], Fails)]
#[case(json!({}), &[], Holds)]
fn no_tool_errors_with_stubs(#[case] stubs: Value, #[case] made: &[&str], #[case] outcome: Outcome) {
    // The reported status is ignored; only the stubs matter.
    for success in [json!(true), json!(false), Value::Null] {
        let made: Value = made.iter().map(|name| json!({ "name": name, "success": success })).collect();
        let scenario = Scenario::new(json!({ "noToolErrors": true }), json!({ "toolCalls": made }))
            .with("case", json!({ "stubs": stubs }))
            .with("mode", "stubbed");
        assert_eq!(scenario.outcome(), outcome);
    }
}

#[test]
fn no_tool_errors_is_neither_run_nor_skipped_for_routing() {
    let trace = json!({ "toolCalls": [{ "name": "a", "success": false }] });
    let scenario = Scenario::new(json!({ "noToolErrors": true }), trace).with("mode", "routingOnly");
    assert_eq!(scenario.outcome(), Nothing);
    let verdict = scenario.judge(FIRST);
    assert!(verdict.vacuous && verdict.passed());
    assert_eq!(verdict.warnings, Vec::<String>::new());
}

#[rstest]
#[case(&["a", "b"], Holds)]
#[case(&["a", "x", "b", "a"], Holds)]
#[case(&["b", "a"], Fails)]
#[case(&["b", "a", "b"], Fails)]
#[case(&["b"], Fails)]
#[case(&["a"], Skipped)]
#[case(&[], Skipped)]
fn tool_order(#[case] made: &[&str], #[case] outcome: Outcome) {
    let scenario = Scenario::new(json!({ "toolOrder": [["a", "b"]] }), json!({ "toolCalls": calls(made) }));
    assert_eq!(scenario.outcome(), outcome);
}

#[rstest]
#[case(json!({ "minToolCalls": 0 }), 0, Holds)]
#[case(json!({ "minToolCalls": 2 }), 1, Fails)]
#[case(json!({ "minToolCalls": 2 }), 2, Holds)]
#[case(json!({ "maxToolCalls": 0 }), 0, Holds)]
#[case(json!({ "maxToolCalls": 0 }), 1, Fails)]
#[case(json!({ "maxToolCalls": 2 }), 2, Holds)]
#[case(json!({ "maxToolCalls": 2 }), 3, Fails)]
fn tool_call_counts(#[case] expect: Value, #[case] count: usize, #[case] outcome: Outcome) {
    let scenario = Scenario::new(expect, json!({ "toolCalls": calls(&vec!["same"; count]) }));
    assert_eq!(scenario.outcome(), outcome);
}

#[rstest]
#[case(json!([{ "name": "t", "params": { "days": 2 } }]), Holds)]
#[case(json!([{ "name": "t", "params": { "days": 2.0 } }]), Holds)]
#[case(json!([{ "name": "t", "params": { "days": "2" } }]), Fails)]
#[case(json!([{ "name": "t", "params": {} }]), Fails)]
#[case(json!([{ "name": "t", "params": { "days": 2, "more": 1 } }]), Fails)]
#[case(json!([{ "name": "free", "params": { "anything": [] } }]), Holds)]
#[case(json!([{ "name": "T", "params": { "days": 2 } }]), Fails)]
#[case(json!([{ "name": "t", "params": { "days": 2 } }, { "name": "unknown" }]), Fails)]
#[case(json!([{ "name": "loop", "params": { "x": 1 } }]), Holds)]
#[case(json!([]), Holds)]
fn tool_args_valid(#[case] made: Value, #[case] outcome: Outcome) {
    let days = json!({
        "type": "object", "properties": { "days": { "type": "integer" } }, "required": ["days"], "additionalProperties": false
    });
    let scenario = Scenario::new(json!({ "toolArgsValid": true }), json!({ "toolCalls": made }));
    let known = scenario.clone().with(
        "registry",
        json!([{ "name": "t", "inputSchema": days }, { "name": "free" }, { "name": "loop", "inputSchema": { "$ref": "#" } }]),
    );
    assert_eq!(known.outcome(), outcome);
    assert_eq!(scenario.outcome(), Skipped, "nothing to check against");
    assert_eq!(scenario.judge(FIRST).warnings, ["toolArgsValid: no tool registry to validate against"]);
}

#[rstest]
#[case::in_the_gap(&["t", "elsewhere"], Skipped, "toolArgsValid: 'elsewhere' is not in the readable part of the tool registry")]
#[case::no_schema_yet(&["late", "late"], Skipped, "toolArgsValid: the schema of 'late' is unknown: the value is a call")]
#[case::known_tool_still_fails(&["late", "strict"], Fails, "")]
#[case::all_known(&["t"], Holds, "")]
fn tool_args_valid_with_unknown_schemas(#[case] called: &[&str], #[case] outcome: Outcome, #[case] warning: &str) {
    let scenario = Scenario::new(json!({ "toolArgsValid": true }), json!({ "toolCalls": calls(called) }))
        .with(
            "registry",
            json!([
                { "name": "t" }, { "name": "late", "inputSchema": false, "unknown": true },
                { "name": "strict", "inputSchema": false },
            ]),
        )
        .with("gap", true);
    assert_eq!(scenario.outcome(), outcome);
    assert_eq!(scenario.judge(FIRST).warnings.join("\n"), warning);
}
