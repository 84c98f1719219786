//! Rules for cases with several turns.

use karat_lints::Rule;
use rstest::rstest;
use serde_json::{Value, json};

use super::{LintInput, registry};

fn conversation(members: Value) -> Value {
    let mut case = json!({"id": "ls-pay-001", "difficulty": "edge", "turns": [
        {"message": "Pay it", "expect": {"toolsCalled": []}},
        {"message": "42", "expect": {"toolsCalled": ["pay"], "responseContains": ["paid"]}},
    ]});
    let Value::Object(members) = members else { panic!("expected an object") };
    case.as_object_mut().expect("case object").extend(members);
    case
}

fn rules(input: &LintInput) -> Vec<(Rule, String)> {
    input.lints().into_iter().map(|lint| (lint.rule, lint.pointer)).collect()
}

#[test]
fn a_turn_that_expects_no_calls_is_a_negative_assertion() {
    assert_eq!(rules(&LintInput::new("pay.labeled.json", json!([conversation(json!({}))]))), []);
    let turns = json!([{"message": "Pay it"}, {"message": "42", "expect": {"toolsCalled": ["pay"]}}]);
    let input = LintInput::new("pay.labeled.json", json!([conversation(json!({"turns": turns}))]));
    assert_eq!(rules(&input), [(Rule::EdgeWithoutNegative, "/turns".to_owned())]);
}

#[rstest]
#[case(json!({"message": "a", "expect": {"toolsCalled": ["pya"]}}), Rule::UnknownTool, "/turns/0/expect/toolsCalled/0")]
#[case(json!({"message": "a", "stubs": {"pya": 1}}), Rule::UnknownTool, "/turns/0/stubs/pya")]
#[case(json!({"message": "{{seed:a}}"}), Rule::StrayToken, "/turns/0/message")]
#[case(json!({"message": "{{row:a}}"}), Rule::RowToken, "/turns/0/message")]
#[case(json!({"message": "sum 42", "expect": {"responseContains": ["42"]}}), Rule::ProofEchoesPrompt, "/turns/0/expect/responseContains")]
#[case(json!({"message": "a", "expect": {"minLength": 2, "maxLength": 1}}), Rule::Contradiction, "/turns/0/expect/minLength")]
fn reports_the_turn(#[case] turn: Value, #[case] rule: Rule, #[case] pointer: &str) {
    let case = conversation(json!({"turns": [turn], "expect": {"toolsCalled": []}}));
    let input = LintInput { registry: Some(registry(&["pay"])), ..LintInput::new("pay.labeled.json", json!([case])) };
    assert!(rules(&input).contains(&(rule, pointer.to_owned())), "{:?}", rules(&input));
}

#[test]
fn checks_stubs_of_the_case_once_for_all_turns() {
    let case = conversation(json!({"stubs": {"pay": 1, "pya": 1}}));
    let input = LintInput { registry: Some(registry(&["pay"])), ..LintInput::new("pay.labeled.json", json!([case])) };
    assert_eq!(rules(&input), [(Rule::UnknownTool, "/stubs/pya".to_owned())]);
    let case = conversation(json!({"stubs": {"find": 1}}));
    let input = LintInput::new("pay.labeled.json", json!([case]));
    assert_eq!(rules(&input), [(Rule::MissingStub, "/turns/1/expect".to_owned())]);
}

#[test]
fn compares_all_messages_of_conversations() {
    let other = |id: &str, second: &str| {
        let turns = json!([{"message": "Pay it", "expect": {"toolsCalled": []}}, {"message": second}]);
        conversation(json!({"id": id, "turns": turns}))
    };
    let cases = json!([other("ls-pay-001", "42"), other("ls-pay-002", "43"), other("ls-pay-003", "42")]);
    assert_eq!(rules(&LintInput::new("pay.labeled.json", cases)), [(Rule::SamePrompt, "/turns".to_owned())]);
}

#[test]
fn reports_conversations_without_assertions() {
    let turns = json!([{"message": "Pay it", "expect": {}}, {"message": "42"}]);
    let case =
        conversation(json!({"turns": turns, "difficulty": "ambiguous", "expect": {"toolsAcceptable": [["pay"]]}}));
    assert_eq!(rules(&LintInput::new("pay.labeled.json", json!([case]))), []);
    let case = conversation(json!({"turns": turns, "difficulty": "regression"}));
    assert!(
        rules(&LintInput::new("pay.labeled.json", json!([case]))).contains(&(Rule::CannotFail, "/turns".to_owned()))
    );
}
