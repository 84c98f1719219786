//! Rules for tokens and values that change.

use karat_cases::token::TokenSources;
use karat_lints::Rule;
use rstest::rstest;
use serde_json::{Value, json};

use super::LintInput;

#[rstest]
#[case(json!({ "responseMatches": ["a", "^{{seed:a.b[0]}}$"] }), &["0/expect/responseMatches/1"])]
#[case(json!({ "responseMatches": ["{{snapshot:a}}", "{{seed:a}}"] }), &["0/expect/responseMatches/0", "0/expect/responseMatches/1"])]
#[case(json!({ "responseMatches": ["a{2}", "{{seed a}}", "seed:a"] }), &[])]
#[case(json!({ "responseContains": ["{{seed:a}}"] }), &[])]
#[case(
    json!({ "toolParams": [{ "tool": "t", "paramName": "p", "assertion": "matches", "value": "^{{seed:a}}" }] }),
    &[]
)]
fn token_in_pattern(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::TokenInPattern), locations);
}

#[rstest]
#[case(json!({ "responseContains": ["{{seed:city}}"] }), &[])]
#[case(json!({ "responseContains": ["{{seed:citty}}"] }), &["0/expect/responseContains/0"])]
#[case(json!({ "responseNotContains": ["{{seed:a..b}}"] }), &["0/expect/responseNotContains/0"])]
#[case(json!({ "responseContains": ["{{snapshot:anything}}"] }), &[])]
#[case(
    json!({ "toolParams": [{ "tool": "t", "paramName": "p", "assertion": "oneOf", "value": ["x", "{{seed:no}}"] }] }),
    &["0/expect/toolParams/0/value/1"]
)]
fn unresolved_token(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = || LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    let sources = TokenSources { seed: Some(json!({ "city": "Oslo" })), snapshot: None };
    assert_eq!(LintInput { tokens: Some(sources), ..input() }.locations(Rule::UnresolvedToken), locations);
    let none: &[&str] = &[];
    assert_eq!(input().locations(Rule::UnresolvedToken), none, "the manifest is unknown");
}

#[rstest]
#[case("{{ seed:city }}", true)]
#[case("{{Seed:city}}", true)]
#[case("{{SNAPSHOT : price}}", true)]
#[case("{{seed:city}", true)]
#[case("{{ row:city }}", true)]
#[case("{{Row:city}}", true)]
#[case("{{row:city}}", false)]
#[case("{{seed:city}}", false)]
#[case("{{name}}", false)]
#[case("seed:city", false)]
fn stray_token(#[case] text: &str, #[case] fires: bool) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "responseNotContains": [text] } }));
    let expected: &[&str] = if fires { &["0/expect/responseNotContains/0"] } else { &[] };
    assert_eq!(input.locations(Rule::StrayToken), expected);
}

#[rstest]
#[case::message(json!({ "input": { "message": "in {{row:city}}?" } }), &["0/input/message"])]
#[case::stubs(json!({ "stubs": { "x": [{ "city": "{{row:city}}" }] } }), &["0/stubs"])]
#[case::expect(json!({ "expect": { "responseContains": ["{{row:city}}"] } }), &["0/expect"])]
#[case::rows(
    json!({
        "input": { "message": "in {{row:city}}?" }, "expect": { "responseContains": ["{{row:city}}"] },
        "each": [{ "city": "Oslo" }],
    }),
    &[]
)]
#[case::no_token(json!({ "input": { "message": "{{row}} row:city {{ row:city }}" } }), &[])]
fn row_token(#[case] members: Value, #[case] locations: &[&str]) {
    assert_eq!(LintInput::from_case("x.labeled.json", members).locations(Rule::RowToken), locations);
}

#[test]
fn reports_misspelt_row_tokens_in_messages() {
    let members = json!({ "input": { "message": "in {{ row:city }}?" }, "each": [{ "city": "Oslo" }] });
    assert_eq!(LintInput::from_case("x.labeled.json", members).locations(Rule::StrayToken), ["0/input/message"]);
}

#[rstest]
#[case(json!({ "responseContains": ["2026-05-01"] }), &["0/expect/responseContains/0"])]
#[case(json!({ "responseContainsAny": [["12:30", "noon"]] }), &["0/expect/responseContainsAny/0/0"])]
#[case(json!({ "responseNotContains": ["2026-05-01"] }), &[])]
#[case(json!({ "responseContains": ["due {{seed:due}}"] }), &[])]
#[case(json!({ "responseContains": ["18"] }), &[])]
fn volatile_value(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::VolatileValue), locations);
}
