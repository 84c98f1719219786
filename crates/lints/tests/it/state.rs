//! Rules for expectations on state.

use karat_lints::Rule;
use rstest::rstest;
use serde_json::{Value, json};

use super::LintInput;

#[rstest]
#[case(json!({ "state": [{ "source": "db", "assertion": "exists", "value": 1 }] }), &["0/expect/state/0/value"])]
#[case(json!({ "state": [{ "source": "db", "assertion": "equals", "value": 1 }] }), &[])]
#[case(json!({ "stateUnchanged": [{ "source": "db", "except": ["/a", "/b", "/ab"] }] }), &[])]
#[case(json!({ "stateUnchanged": [{ "source": "db", "except": ["/a/b", "/a"] }] }), &["0/expect/stateUnchanged/0/except/0"])]
#[case(json!({ "stateUnchanged": [{ "source": "db", "except": ["/a", "/a"] }] }), &["0/expect/stateUnchanged/0/except/1"])]
#[case(json!({ "stateUnchanged": [{ "source": "db", "except": [""] }] }), &["0/expect/stateUnchanged/0/except/0"])]
fn keys_without_effect(#[case] expect: Value, #[case] expected: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::IgnoredValue), expected);
}

#[rstest]
#[case(json!({ "stateUnchanged": [{ "source": "db" }] }), 0)]
#[case(json!({ "stateUnchanged": [{ "source": "db", "except": [""] }] }), 1)]
#[case(json!({ "state": [], "stateUnchanged": [] }), 1)]
fn cases_that_cannot_fail(#[case] expect: Value, #[case] count: usize) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::CannotFail).len(), count);
}

#[test]
fn a_value_of_the_state_may_look_volatile() {
    let state = json!([{ "source": "db", "path": "/at", "assertion": "equals", "value": "2026-05-01" }]);
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "state": state } }));
    assert_eq!(input.locations(Rule::VolatileValue), Vec::<String>::new());
}
