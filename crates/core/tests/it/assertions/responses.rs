//! Strings, patterns and JSON in responses.

use rstest::rstest;
use serde_json::{Value, json};

use super::{FIRST, Fails, Holds, Nothing, Outcome, Scenario, Skipped, messages};

#[rstest]
#[case("", Fails)]
#[case(" \n\t\r\u{2003}", Fails)]
#[case("\u{200b}", Fails)]
#[case("0", Holds)]
fn response_non_empty(#[case] response: &str, #[case] outcome: Outcome) {
    let trace = json!({ "response": response });
    assert_eq!(Scenario::new(json!({ "responseNonEmpty": true }), trace.clone()).outcome(), outcome);
    assert_eq!(Scenario::new(json!({ "responseNonEmpty": false }), trace).outcome(), Nothing);
}

#[rstest]
#[case(json!({ "responseContains": ["kyo"] }), Holds)]
#[case(json!({ "responseContains": ["KYO"] }), Fails)]
#[case(json!({ "responseContains": [""] }), Skipped)]
#[case(json!({ "responseContains": ["{{seed:city}}, "] }), Holds)]
#[case(json!({ "responseContains": ["{{seed:nope}}"] }), Skipped)]
#[case(json!({ "responseContains": ["Tokyo {{seed:nope}}"] }), Skipped)]
#[case(json!({ "responseContains": ["{{ seed:city }}"] }), Fails)]
#[case(json!({ "responseContains": [] }), Nothing)]
#[case(json!({ "responseContainsAny": [["Oslo", "Tokyo"]] }), Holds)]
#[case(json!({ "responseContainsAny": [["Oslo", "tokyo"]] }), Fails)]
#[case(json!({ "responseContainsAny": [["{{seed:nope}}", "Tokyo"]] }), Holds)]
#[case(json!({ "responseContainsAny": [["{{seed:nope}}", "Oslo"]] }), Fails)]
#[case(json!({ "responseContainsAny": [["{{seed:nope}}", "{{snapshot:x}}"]] }), Skipped)]
#[case(json!({ "responseContainsAny": [["", "Oslo"]] }), Fails)]
#[case(json!({ "responseContainsAny": [[""]] }), Skipped)]
#[case(json!({ "responseContainsAny": [[]] }), Skipped)]
#[case(json!({ "responseContainsAny": [] }), Nothing)]
#[case(json!({ "responseNotContains": ["Oslo"] }), Holds)]
#[case(json!({ "responseNotContains": ["tokyo"] }), Holds)]
#[case(json!({ "responseNotContains": ["Tokyo"] }), Fails)]
#[case(json!({ "responseNotContains": [""] }), Fails)]
#[case(json!({ "responseNotContains": ["{{seed:city}}"] }), Fails)]
#[case(json!({ "responseNotContains": ["{{seed:nope}}"] }), Skipped)]
#[case(json!({ "responseNotContains": [] }), Nothing)]
#[case(json!({ "responseMatches": ["\\d+ °C$"] }), Holds)]
#[case(json!({ "responseMatches": ["^tokyo"] }), Fails)]
#[case(json!({ "responseMatches": ["^.{12}$"] }), Holds)]
#[case(json!({ "responseMatches": ["{{seed:city}}"] }), Fails)]
#[case(json!({ "responseMatches": [] }), Nothing)]
fn response_texts(#[case] expect: Value, #[case] outcome: Outcome) {
    let scenario =
        Scenario::new(expect, json!({ "response": "Tokyo, 18 °C" })).with("seed", json!({ "city": "Tokyo" }));
    assert_eq!(scenario.outcome(), outcome);
}

#[rstest]
#[case("(a+)+$")]
#[case("(a*)*\\1$")]
#[case("(?=(a+)+b)x")]
#[case("^(\\w+\\s?)*\\1$")]
fn catastrophic_backtracking_ends(#[case] pattern: &str) {
    let scenario =
        Scenario::new(json!({ "responseMatches": [pattern] }), json!({ "response": format!("{}!", "a".repeat(60)) }));
    assert_eq!(scenario.outcome(), Fails);
}

#[rstest]
#[case(json!({ "type": "object" }), "{}", Holds)]
#[case(json!({ "type": "object" }), " \n{} ", Holds)]
#[case(json!({ "type": "string" }), "\"x\"", Holds)]
#[case(json!({ "type": "string" }), "x", Fails)]
#[case(json!({}), "null", Holds)]
#[case(json!({}), "", Fails)]
#[case(json!({}), "Here it is: {}", Fails)]
#[case(json!({}), "```json\n{}\n```", Fails)]
#[case(json!({}), "{} {}", Fails)]
#[case(json!({ "required": ["a"] }), "{\"b\": 1}", Fails)]
#[case(json!({ "$ref": "#" }), "{\"a\": [1]}", Holds)]
#[case(json!({ "allOf": [{ "$ref": "#" }], "type": "array" }), "{}", Fails)]
#[case(json!({ "pattern": "^(a|a)*$" }), "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"", Fails)]
#[case(json!({ "pattern": "(?=(a+)+$)b" }), "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"", Fails)]
fn response_json_schema(#[case] schema: Value, #[case] response: &str, #[case] outcome: Outcome) {
    let scenario = Scenario::new(json!({ "responseJsonSchema": schema }), json!({ "response": response }));
    assert_eq!(scenario.outcome(), outcome);
}

#[test]
fn deeply_nested_json_fails_with_a_short_message() {
    let scenario = Scenario::new(json!({ "responseJsonSchema": {} }), json!({ "response": "[".repeat(200_000) }));
    assert_eq!(scenario.outcome(), Fails);
    assert!(messages(&scenario.judge(FIRST))[0].chars().count() < 300);
}
