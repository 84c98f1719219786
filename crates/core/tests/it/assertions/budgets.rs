//! Latency, cost, length, tokens and numbers.

use rstest::rstest;
use serde_json::{Value, json};

use super::{FIRST, Fails, Holds, Nothing, Outcome, Scenario, Skipped, messages};

#[rstest]
#[case(json!({ "maxLatencyMs": 100 }), Holds)]
#[case(json!({ "maxLatencyMs": 99.9 }), Fails)]
#[case(json!({ "maxFirstTokenMs": 40 }), Holds)]
#[case(json!({ "maxFirstTokenMs": 39.9 }), Fails)]
#[case(json!({ "maxCostUsd": 0.25 }), Holds)]
#[case(json!({ "maxCostUsd": 0.2 }), Fails)]
// Five characters, regardless of their bytes; a combining mark counts separately.
#[case(json!({ "minLength": 5 }), Holds)]
#[case(json!({ "minLength": 6 }), Fails)]
#[case(json!({ "maxLength": 5 }), Holds)]
#[case(json!({ "maxLength": 4 }), Fails)]
#[case(json!({ "minLength": 0 }), Holds)]
#[case(json!({ "maxLength": 0 }), Fails)]
fn budgets_include_their_limit(#[case] expect: Value, #[case] outcome: Outcome) {
    let trace =
        json!({ "response": "日🗼ße\u{301}", "latencyMs": 100, "firstTokenMs": 40, "usage": { "costUsd": 0.25 } });
    assert_eq!(Scenario::new(expect, trace).outcome(), outcome);
}

#[rstest]
#[case(json!({}))]
#[case(json!({ "usage": {} }))]
#[case(json!({ "usage": { "inputTokens": 5, "outputTokens": 7 } }))]
fn an_unknown_cost_is_skipped_with_a_warning(#[case] trace: Value) {
    let scenario = Scenario::new(json!({ "maxCostUsd": 0.01 }), trace);
    assert_eq!(scenario.outcome(), Skipped);
    assert_eq!(scenario.judge(FIRST).warnings, ["maxCostUsd: the cost of the answer is unknown"]);
}

#[test]
fn an_unknown_time_of_the_first_text_is_skipped_with_a_warning() {
    let scenario = Scenario::new(json!({ "maxFirstTokenMs": 1 }), json!({ "latencyMs": 100 }));
    assert_eq!(scenario.outcome(), Skipped);
    let warning = "maxFirstTokenMs: the time of the first text is unknown, since the reply is not a stream";
    assert_eq!(scenario.judge(FIRST).warnings, [warning]);
}

#[test]
fn a_cost_of_zero_is_known() {
    let scenario = Scenario::new(json!({ "maxCostUsd": 0.01 }), json!({ "usage": { "costUsd": 0.0 } }));
    assert_eq!(scenario.outcome(), Holds);
}

#[rstest]
#[case("", 0, 0)]
#[case("hello world", 2, 2)]
#[case("こんにちは世界", 2, 4)]
#[case("<|endoftext|>", 7, 7)]
fn counts_tokens_with_the_selected_tokenizer(#[case] response: &str, #[case] o200k: u64, #[case] cl100k: u64) {
    for (name, count) in [("o200k_base", o200k), ("cl100k_base", cl100k)] {
        let scenario = |max: u64| {
            Scenario::new(json!({ "maxTokens": max.max(1) }), json!({ "response": response })).with("tokenizer", name)
        };
        assert_eq!(scenario(count).outcome(), Holds, "{name}");
        if count > 1 {
            let verdict = scenario(count - 1).judge(FIRST);
            let expected =
                format!("maxTokens: expected at most {} tokens but the response has {count} ({name})", count - 1);
            assert_eq!(messages(&verdict), [expected]);
        }
    }
}

#[rstest]
#[case("no number", json!([]), Holds)]
#[case("7", json!([]), Holds)]
#[case("07.0", json!([]), Holds)]
#[case("8", json!([]), Fails)]
#[case("-7", json!([]), Holds)]
#[case("it is 18.50 °C", json!([{ "name": "t", "result": { "a": [{ "b": 18.5 }] } }]), Holds)]
#[case("it is 1,234,567.5", json!([{ "name": "t", "result": 1_234_567.5 }]), Holds)]
#[case("it is 1234", json!([{ "name": "t", "result": "about 1,234 of them" }]), Holds)]
#[case("it is 1000", json!([{ "name": "t", "result": 1e3 }]), Holds)]
#[case("it is 1e21", json!([{ "name": "t", "result": 1e21 }]), Holds)]
#[case("62% or 62 %", json!([{ "name": "t", "result": 0.62 }]), Holds)]
#[case("62 of them", json!([{ "name": "t", "result": 0.62 }]), Fails)]
#[case("0.62", json!([{ "name": "t", "result": 62 }]), Fails)]
#[case("3 days", json!([{ "name": "t", "params": { "days": 3 }, "result": "ok" }]), Holds)]
#[case("3 days", json!([{ "name": "t", "params": { "days": "3" }, "result": "ok" }]), Holds)]
#[case("3 days", json!([{ "name": "t", "params": { "3": "x" }, "result": "ok" }]), Fails)]
#[case("18 and 19", json!([{ "name": "t", "result": 18 }, { "name": "u", "result": 19 }]), Holds)]
#[case("18 and 19", json!([{ "name": "t", "result": 18 }, { "name": "u" }]), Fails)]
#[case("1. Paris\n2. Rome", json!([]), Holds)]
#[case("Paris 2. Rome", json!([]), Fails)]
#[case("H2O and v2", json!([]), Holds)]
#[case("1e999", json!([{ "name": "t", "result": [0, 1, 999] }]), Fails)]
#[case("18", json!([{ "name": "t", "params": { "n": 18 } }]), Holds)]
#[case("19", json!([{ "name": "t", "params": { "n": 18 } }]), Fails)]
#[case("in 2024: 12345678901234567890", json!([{ "name": "t", "result": { "2024": 12_345_678_901_234_567_890_u64 } }]), Holds)]
fn numbers_grounded(#[case] response: &str, #[case] made: Value, #[case] outcome: Outcome) {
    let trace = json!({ "response": response, "toolCalls": made });
    let calls = trace["toolCalls"].as_array().expect("a list");
    let is_unreported = !calls.is_empty() && calls.iter().all(|call| call.get("result").is_none());
    let scenario = Scenario::new(json!({ "numbersGrounded": true }), trace.clone())
        .with("case", json!({ "input": { "message": "7 days?" } }));
    assert_eq!(scenario.outcome(), outcome);
    assert_eq!(!scenario.judge(FIRST).warnings.is_empty(), is_unreported);
    assert_eq!(Scenario::new(json!({ "numbersGrounded": false }), trace).outcome(), Nothing);
}

#[test]
fn lists_only_some_of_many_ungrounded_numbers() {
    let numbers: Vec<String> = (1_000..200_000).map(|number| number.to_string()).collect();
    let scenario = Scenario::new(json!({ "numbersGrounded": true }), json!({ "response": numbers.join(" ") }));
    let verdict = scenario.judge(FIRST);
    assert!(messages(&verdict)[0].ends_with("'1009'] and 198990 more do not"), "{:?}", verdict.failures);
}
