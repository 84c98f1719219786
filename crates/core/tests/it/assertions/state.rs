//! `state` and `stateUnchanged`: outcomes, failure messages, changes as data.

use rstest::rstest;
use serde_json::{Value, json};

use super::{ALL, FIRST, Fails, Holds, Outcome, STRICT, Scenario, Skipped, messages};

fn state_of(db: &Value, predicate: Value) -> Scenario {
    let mut predicate = predicate;
    predicate["source"] = json!("db");
    let states = json!({ "after": { "db": db } });
    Scenario::new(json!({ "state": [predicate] }), json!({})).with("states", states)
}

fn unchanged(before: &Value, after: &Value, except: &Value) -> Scenario {
    let expect = json!({ "stateUnchanged": [{ "source": "db", "except": except }] });
    let states = json!({ "before": { "db": before }, "after": { "db": after } });
    Scenario::new(expect, json!({})).with("states", states)
}

#[rstest]
#[case::value(json!({"path": "/orders/4411/status", "assertion": "equals", "value": "open"}), Holds)]
#[case::other_value(json!({"path": "/orders/4411/status", "assertion": "equals", "value": "closed"}), Fails)]
#[case::types_count(json!({"path": "/n", "assertion": "equals", "value": "5"}), Fails)]
#[case::number_forms(json!({"path": "/n", "assertion": "equals", "value": 5.0}), Holds)]
#[case::number_in_a_list(json!({"path": "/n", "assertion": "oneOf", "value": ["5", 6]}), Fails)]
#[case::not_equals_by_type(json!({"path": "/n", "assertion": "notEquals", "value": "5"}), Holds)]
#[case::structure(json!({"path": "/orders/4411", "assertion": "equals", "value": {"lines": [1, 2], "status": "open"}}), Holds)]
#[case::whole(json!({"assertion": "hasLength", "value": 2}), Holds)]
#[case::at_most(json!({"path": "/n", "assertion": "atMost", "value": 4}), Fails)]
#[case::absent(json!({"path": "/orders/4412", "assertion": "notExists"}), Holds)]
#[case::absent_and_needed(json!({"path": "/orders/4412", "assertion": "exists"}), Fails)]
#[case::absent_and_optional(json!({"path": "/orders/4412", "assertion": "equals", "value": 1, "optional": true}), Holds)]
#[case::index(json!({"path": "/orders/4411/lines/1", "assertion": "equals", "value": 2}), Holds)]
#[case::token(json!({"path": "/n", "assertion": "equals", "value": "{{seed:five}}"}), Holds)]
#[case::unresolved_token(json!({"path": "/n", "assertion": "equals", "value": "{{seed:six}}"}), Skipped)]
fn judges_the_state_after_the_case(#[case] predicate: Value, #[case] outcome: Outcome) {
    let db = json!({"orders": {"4411": {"status": "open", "lines": [1, 2]}}, "n": 5});
    assert_eq!(state_of(&db, predicate).with("seed", json!({"five": 5})).outcome(), outcome);
}

#[rstest]
#[case::same(json!({"a": 1}), json!({"a": 1}), json!([]), Holds)]
#[case::number_forms(json!({"a": 1}), json!({"a": 1.0}), json!([]), Holds)]
#[case::key_order(json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), json!([]), Holds)]
#[case::type_changed(json!({"a": 1}), json!({"a": "1"}), json!([]), Fails)]
#[case::null_is_not_absent(json!({"a": null}), json!({}), json!([]), Fails)]
#[case::at_the_pointer(json!({"a": 1}), json!({"a": 2}), json!(["/a"]), Holds)]
#[case::below_the_pointer(json!({"a": {"b": [1]}}), json!({"a": {"b": [2], "c": 1}}), json!(["/a"]), Holds)]
#[case::above_the_pointer(json!({"a": {"b": 1}}), json!({}), json!(["/a/b"]), Fails)]
#[case::beside_the_pointer(json!({"a": 1, "ab": 1}), json!({"a": 1, "ab": 2}), json!(["/a"]), Fails)]
#[case::appeared(json!({}), json!({"a": 1}), json!(["/a"]), Holds)]
#[case::disappeared(json!({"a": 1}), json!({}), json!(["/a"]), Holds)]
#[case::escaped_key(json!({"a/b": 1}), json!({"a/b": 2}), json!(["/a~1b"]), Holds)]
#[case::element(json!([1, 2]), json!([9, 2]), json!(["/0"]), Holds)]
#[case::new_element(json!([1]), json!([1, 2]), json!(["/1"]), Holds)]
#[case::arrays_by_index(json!([1, 2]), json!([2]), json!(["/0"]), Fails)]
#[case::everything(json!({"a": 1}), json!(2), json!([""]), Holds)]
#[case::large_numbers(json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64), json!([]), Fails)]
fn judges_what_changed(#[case] before: Value, #[case] after: Value, #[case] except: Value, #[case] outcome: Outcome) {
    assert_eq!(unchanged(&before, &after, &except).outcome(), outcome);
}

#[rstest]
#[case::one(json!({"n": 1}), json!({"n": 2}), "stateUnchanged: db changed at /n (before 1, after 2)")]
#[case::whole(json!("a"), json!("b"), "stateUnchanged: db changed (before \"a\", after \"b\")")]
#[case::added_and_removed(
    json!({"a": 1, "b": null}), json!({"b": null, "c": {"x": 1}}),
    "stateUnchanged: db changed at /a (before 1, after absent), /c (before absent, after {\"x\":1})"
)]
#[case::array(
    json!({"list": [1, 2]}), json!({"list": [1, 3, 4]}),
    "stateUnchanged: db changed at /list/1 (before 2, after 3), /list/2 (before absent, after 4)"
)]
#[case::six(
    json!([1, 1, 1, 1, 1, 1]), json!([2, 2, 2, 2, 2, 2]),
    "stateUnchanged: db changed at /0 (before 1, after 2), /1 (before 1, after 2), /2 (before 1, after 2), \
     /3 (before 1, after 2), /4 (before 1, after 2) and in 1 more place"
)]
#[case::long_values(
    json!({"a": "x".repeat(200), "b": 1}), json!({"a": 1, "b": vec![1; 100]}),
    "stateUnchanged: db changed at /a (before a string of 200 characters, after 1), /b (before 1, after an array of 100 elements)"
)]
fn the_message_names_the_changes(#[case] before: Value, #[case] after: Value, #[case] message: &str) {
    let verdict = unchanged(&before, &after, &json!([])).judge(FIRST);
    assert_eq!(messages(&verdict), [message]);
}

#[test]
fn a_failed_condition_names_source_and_pointer() {
    let predicate = json!({"path": "/a", "assertion": "equals", "value": "x"});
    let verdict = state_of(&json!({"a": 1}), predicate).judge(FIRST);
    assert_eq!(messages(&verdict), ["state: db /a: expected \"x\" but got 1"]);
    assert_eq!(verdict.failures[0].pointer, "/expect/state/0");
    let whole = state_of(&json!("text"), json!({"assertion": "contains", "value": "y"})).judge(FIRST);
    assert_eq!(messages(&whole), ["state: db: expected a value that contains 'y' but got \"text\""]);
}

#[test]
fn the_changes_are_data() {
    let verdict = unchanged(&json!([0, 0, 0, 0, 0, 0]), &json!([1, 1, 1, 1, 1, 1]), &json!([])).judge(FIRST);
    let changes = &verdict.state_changes[0];
    assert_eq!((changes.source.as_str(), changes.changes.len(), changes.total), ("db", 5, 6));
    assert_eq!(json!(changes.changes[0]), json!({"pointer": "/0", "before": "0", "after": "1"}));
}

#[test]
fn state_is_judged_last_and_each_entry_counts() {
    let expect = json!({
        "evals": ["eval_f"],
        "state": [{ "source": "db", "assertion": "exists" }, { "source": "db", "path": "/x", "assertion": "exists" }],
        "stateUnchanged": [{ "source": "db" }],
    });
    let states = json!({ "before": { "db": {} }, "after": { "db": {} } });
    let scenario = Scenario::new(expect, json!({})).with("states", states);
    let verdict = scenario.clone().with("functions", json!({ "eval_f": [false, "no"] })).judge(ALL);
    let names: Vec<&str> = verdict.assertions.iter().map(|each| each.assertion.as_ref()).collect();
    assert_eq!(names, ["evals", "state", "stateUnchanged"]);
    assert_eq!((verdict.assertions_run, verdict.failures.len()), (4, 2));
    // The first failure ends the case.
    let first = scenario.with("functions", json!({ "eval_f": [false, "no"] })).judge(FIRST);
    assert_eq!((first.assertions_run, first.failures.len()), (1, 1));
}

#[test]
fn states_that_were_not_captured_are_skipped_with_a_warning() {
    let expect = json!({
        "state": [{ "source": "db", "assertion": "exists" }], "stateUnchanged": [{ "source": "db" }],
    });
    let scenario = Scenario::new(expect, json!({}));
    let verdict = scenario.judge(ALL);
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped, verdict.vacuous), (0, 2, true));
    let verdict = scenario.with("states", json!({ "after": {} })).judge(STRICT);
    assert_eq!(verdict.warnings.len(), 2, "{:?}", verdict.warnings);
    assert!(!verdict.passed());
}
