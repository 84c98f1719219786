//! Which tools were called.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Fails, Holds, Nothing, Outcome, Scenario, calls};

#[rstest]
#[case(&["a"], &["a"], [true, true, true, true])]
#[case(&[], &[], [true, true, true, true])]
#[case(&[], &["a"], [false, false, true, true])]
#[case(&["a"], &[], [false, false, false, false])]
#[case(&["a"], &["A"], [false, false, false, false])]
#[case(&["a", "b"], &["a", "b"], [true, true, true, true])]
#[case(&["a", "b"], &["b", "a"], [false, true, false, true])]
#[case(&["a", "b"], &["a", "x", "b"], [false, false, true, true])]
#[case(&["a", "b"], &["b", "x", "a"], [false, false, false, true])]
#[case(&["a", "a"], &["a"], [false, false, false, false])]
#[case(&["a"], &["a", "a"], [false, false, true, true])]
#[case(&["a", "a"], &["a", "b", "a"], [false, false, true, true])]
#[case(&["a", "b", "a"], &["a", "a", "b"], [false, true, false, true])]
fn tools_called(#[case] expected: &[&str], #[case] actual: &[&str], #[case] held: [bool; 4]) {
    for (mode, held) in ["exact", "anyOrder", "inOrder", "includes"].into_iter().zip(held) {
        let scenario = Scenario::new(
            json!({ "toolsCalled": expected, "toolsCalledMatch": mode }),
            json!({ "toolCalls": calls(actual) }),
        );
        assert_eq!(scenario.outcome(), if held { Holds } else { Fails }, "{mode}");
    }
    let default = Scenario::new(json!({ "toolsCalled": expected }), json!({ "toolCalls": calls(actual) }));
    assert_eq!(default.outcome(), if held[0] { Holds } else { Fails }, "exact is the default");
}

#[rstest]
#[case(json!([["a"]]), &["a"], Holds)]
#[case(json!([["a"]]), &["a", "a", "a"], Holds)]
#[case(json!([["a", "a"]]), &["a"], Holds)]
#[case(json!([["a"], ["b", "a"]]), &["a", "b", "a"], Holds)]
#[case(json!([["a"], ["b"]]), &["a", "b"], Fails)]
#[case(json!([["a", "b"]]), &["a"], Fails)]
#[case(json!([["a"]]), &[], Fails)]
#[case(json!([["__none__"]]), &[], Holds)]
#[case(json!([[]]), &[], Holds)]
#[case(json!([["__none__"]]), &["a"], Fails)]
#[case(json!([[]]), &["a"], Fails)]
#[case(json!([["a"], ["__none__"]]), &[], Holds)]
#[case(json!([["a"], ["__none__"]]), &["a"], Holds)]
#[case(json!([["a"], ["__none__"]]), &["b"], Fails)]
fn tools_acceptable(#[case] sets: Value, #[case] actual: &[&str], #[case] outcome: Outcome) {
    let scenario = Scenario::new(json!({ "toolsAcceptable": sets }), json!({ "toolCalls": calls(actual) }));
    assert_eq!(scenario.outcome(), outcome);
}

#[rstest]
#[case(&["a"], &["b"], Holds)]
#[case(&["a"], &["b", "a"], Fails)]
#[case(&["a"], &["A", "ab"], Holds)]
#[case(&[], &["a"], Nothing)]
fn tools_not_called(#[case] forbidden: &[&str], #[case] actual: &[&str], #[case] outcome: Outcome) {
    let scenario = Scenario::new(json!({ "toolsNotCalled": forbidden }), json!({ "toolCalls": calls(actual) }));
    assert_eq!(scenario.outcome(), outcome);
}
