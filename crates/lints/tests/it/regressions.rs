//! Rules for regression cases and their seals.

use std::collections::BTreeSet;

use karat_cases::{EvalFile, Origin};
use karat_json::canonical::canonical_hash;
use karat_lints::{LintContext, Rule, lint};
use rstest::rstest;
use serde_json::{Map, Value, json};

use super::{LintInput, case};

#[rstest]
#[case::by_file("x.regression.json", json!({}), &["0/expect/responseContains"])]
#[case::by_case("x.labeled.json", json!({ "difficulty": "regression" }), &["0/expect/responseContains"])]
#[case::elsewhere("x.labeled.json", json!({ "difficulty": "edge" }), &[])]
#[case::golden("x.golden.json", json!({}), &[])]
fn snapshot_in_regression(#[case] name: &'static str, #[case] mut members: Value, #[case] locations: &[&str]) {
    members["expect"] = json!({ "responseContains": ["{{seed:a}}", "is {{snapshot:a.b[0]}}"] });
    assert_eq!(LintInput::from_case(name, members).locations(Rule::SnapshotInRegression), locations);
}

#[rstest]
#[case(json!({ "responseContainsAny": [["a", "{{snapshot:a}}"]] }), &["0/expect/responseContainsAny"])]
#[case(json!({ "responseNotContains": ["{{snapshot:a}}"] }), &["0/expect/responseNotContains"])]
#[case(
    json!({ "toolParams": [{ "tool": "t", "paramName": "p", "assertion": "oneOf", "value": ["x", "{{snapshot:a}}"] }] }),
    &["0/expect/toolParams"]
)]
#[case(json!({ "responseContains": ["{{seed:snapshot}}", "snapshot", "{{snapshot}}"] }), &[])]
fn snapshot_in_any_value_of_a_regression(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.regression.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::SnapshotInRegression), locations);
}

#[rstest]
#[case::untouched(|_: &mut Value| {}, &[])]
#[case::keys_in_another_order(|case: &mut Value| {
    let map = case.as_object_mut().unwrap();
    *map = std::mem::take(map).into_iter().rev().collect::<Map<_, _>>();
}, &[])]
#[case::number_in_another_form(|case: &mut Value| case["maxTurns"] = json!(3.0), &[])]
#[case::another_message(|case: &mut Value| case["input"]["message"] = json!("Weather in Tokyo? "), &["0"])]
#[case::large_number(|case: &mut Value| case["stubs"] = json!({ "t": 12_345_678_901_234_567_999_u64 }), &["0"])]
#[case::weaker_expectation(|case: &mut Value| case["expect"] = json!({}), &["0"])]
#[case::one_more_member(|case: &mut Value| case["description"] = json!(""), &["0"])]
fn edited_regression(#[case] edit: fn(&mut Value), #[case] locations: &[&str]) {
    let stubs = json!({ "t": 12_345_678_901_234_567_890_u64 });
    let own = json!({ "maxTurns": 3, "stubs": stubs, "expect": { "responseContains": ["a", "b"] } });
    let mut regression = case("rg-x-001", own);
    let hashes = json!({ "rg-x-001": canonical_hash(&regression), "rg-gone-001": "0123456789ab" });
    edit(&mut regression);
    let other = case("rg-x-002", json!({ "input": { "message": "not guarded" } }));
    let document = json!({ "metadata": { "caseHashes": hashes }, "cases": [regression, other] });
    assert_eq!(LintInput::new("x.regression.json", document).locations(Rule::EditedRegression), locations);
}

#[test]
fn edits_are_detected_only_with_raw_cases() {
    let text = json!({ "metadata": { "caseHashes": { "rg-x-001": "0" } }, "cases": [case("rg-x-001", json!({}))] });
    let file = EvalFile::parse(text.to_string().as_bytes(), Origin::new("x.regression.json")).unwrap();
    assert!(lint(&file, LintContext::default()).iter().all(|lint| lint.rule != Rule::EditedRegression));
}

#[rstest]
#[case("2026-01-15T09:00:00Z", &[])]
#[case("2026-01-15T09:00:00.123+02:00", &[])]
#[case("2026-01-15", &[])]
#[case("yesterday", &["0/createdAt"])]
#[case("15.01.2026", &["0/createdAt"])]
#[case("", &["0/createdAt"])]
fn created_at(#[case] time: &str, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.regression.json", json!({ "createdAt": time }));
    assert_eq!(input.locations(Rule::CreatedAt), locations);
}

#[test]
fn finds_removed_regression_cases_unless_archived() {
    let document = json!({"metadata": {"caseHashes": {"rg-x/-001": "a", "rg-x-002": "b"}}, "cases": []});
    let mut input = LintInput::new("x.regression.json", document);
    assert_eq!(input.locations(Rule::RemovedRegression), Vec::<String>::new(), "the archive is unknown");
    input.archived = Some(BTreeSet::from(["rg-x-002".to_owned()]));
    assert_eq!(input.locations(Rule::RemovedRegression), ["/metadata/caseHashes/rg-x~1-001"]);
}

#[rstest]
#[case("x.regression.json", json!({}), true, &["0/id"])]
#[case("x.regression.json", json!({}), false, &[])]
#[case("x.regression.json", json!({"bugRef": "#1"}), false, &["0/id"])]
#[case("x.regression.json", json!({"createdAt": "2026-01-01T00:00:00Z"}), false, &["0/id"])]
#[case("x.labeled.json", json!({"bugRef": "#1"}), false, &[])]
#[case("x.labeled.json", json!({"difficulty": "regression"}), true, &["0/id"])]
#[case("x.labeled.json", json!({"difficulty": "edge"}), true, &[])]
fn finds_unsealed_regression_cases(
    #[case] name: &'static str,
    #[case] members: Value,
    #[case] has_hashes: bool,
    #[case] locations: &[&str],
) {
    let metadata = if has_hashes { json!({"caseHashes": {}}) } else { json!({}) };
    let document = json!({"metadata": metadata, "cases": [case("rg-x-001", members)]});
    assert_eq!(LintInput::new(name, document).locations(Rule::UnsealedRegression), locations);
}

#[rstest]
#[case("x.regression.json", Some("rg-x-001"), &["0/id"])]
#[case("x.regression.json", Some("rg-x-002"), &[])]
#[case("x.regression.json", None, &[])]
#[case("x.labeled.json", Some("rg-x-001"), &[])]
fn finds_archived_regression_cases(
    #[case] name: &'static str,
    #[case] archived: Option<&str>,
    #[case] locations: &[&str],
) {
    let archived = archived.map(|id| BTreeSet::from([id.to_owned()]));
    let document = json!({"cases": [case("rg-x-001", json!({}))]});
    assert_eq!(LintInput { archived, ..LintInput::new(name, document) }.locations(Rule::ArchivedRegression), locations);
}
