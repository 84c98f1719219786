//! Eval functions in cases.

use karat_core::judgement::ErrorKind;
use rstest::rstest;
use serde_json::{Value, json};

use super::{ALL, FIRST, STRICT, Scenario, messages};

fn with_functions(functions: Value) -> Scenario {
    let names: Vec<String> = functions.as_object().expect("functions").keys().cloned().collect();
    Scenario::new(json!({ "responseContains": ["rain"], "evals": names }), json!({ "response": "rain" }))
        .with("functions", functions)
}

#[rstest]
#[case::passed(json!({ "eval_a": [true, "fine"], "eval_b": [true, ""] }), Some(3), None, &[Some(true), Some(true)])]
#[case::failed(json!({ "eval_a": [false, "too short"], "eval_b": [true, ""] }), None, None, &[Some(false)])]
#[case::errored(
    json!({ "eval_a": ["timeout", "took longer than 5 s"], "eval_b": [false, ""] }),
    None, Some("evals: eval_a errored (timeout): took longer than 5 s"), &[None],
)]
#[case::traceback_is_shortened(
    json!({ "eval_a": [true, ""], "eval_b": ["exception", "KeyError: 'x'\nTraceback:\n…"] }),
    None, Some("evals: eval_b errored (exception): KeyError: 'x'"), &[Some(true), None],
)]
fn eval_functions_run_in_order(
    #[case] functions: Value,
    #[case] passed_with: Option<usize>,
    #[case] error: Option<&str>,
    #[case] results: &[Option<bool>],
) {
    let verdict = with_functions(functions).judge(FIRST);
    assert_eq!(verdict.passed().then_some(verdict.assertions_run), passed_with);
    assert_eq!(verdict.error.as_ref().map(|error| error.message.as_str()), error);
    assert_eq!(verdict.failures.is_empty(), passed_with.is_some() || error.is_some(), "{:?}", verdict.failures);
    assert_eq!(verdict.evals.iter().map(|eval| eval.result).collect::<Vec<_>>(), results);
}

#[test]
fn records_results_of_eval_functions() {
    let verdict = with_functions(json!({ "eval_a": [true, "fine"], "eval_b": ["exception", "E\nT"] })).judge(FIRST);
    let [passed, errored] = &verdict.evals[..] else { panic!("{:?}", verdict.evals) };
    assert_eq!(
        (passed.name.as_str(), passed.reason.as_deref(), passed.error.as_deref()),
        ("eval_a", Some("fine"), None)
    );
    assert_eq!((passed.execution_time_ms, passed.stdout.as_str()), (3, "printed"));
    assert_eq!((errored.reason.as_deref(), errored.error.as_deref()), (None, Some("E\nT")));
    assert_eq!(errored.error_kind, Some(ErrorKind::Exception));
}

#[test]
fn eval_functions_do_not_run_if_the_case_is_decided() {
    let mut scenario = with_functions(json!({ "eval_a": [true, ""] }));
    scenario.0["trace"]["response"] = json!("sun");
    assert_eq!(scenario.judge(FIRST).evals, []);
    assert_eq!(scenario.judge(ALL).evals.len(), 1);
}

#[test]
fn an_earlier_failure_outweighs_a_function_error() {
    let mut scenario =
        with_functions(json!({ "eval_a": ["memory", "too much"], "eval_b": [false, "rude"], "eval_c": [true, ""] }));
    scenario.0["trace"]["response"] = json!("sun");
    let verdict = scenario.judge(ALL);
    assert_eq!(verdict.error, None);
    assert_eq!(verdict.warnings, ["evals: eval_a errored (memory): too much"]);
    assert_eq!(messages(&verdict)[1..], ["evals: eval_b failed: rude"]);
    assert_eq!((verdict.evals.len(), verdict.assertions_run), (3, 3));
}

#[test]
fn a_function_error_ends_the_case_without_a_failure() {
    let scenario = Scenario::new(json!({ "evals": ["eval_a", "eval_b"] }), json!({}))
        .with("functions", json!({ "eval_a": ["return", "must return (bool, str)"], "eval_b": [false, ""] }));
    for strictness in [FIRST, ALL, STRICT] {
        let verdict = scenario.judge(strictness);
        assert!(!verdict.passed() && !verdict.vacuous && verdict.failures.is_empty(), "{verdict:?}");
        assert_eq!((verdict.evals.len(), verdict.assertions_run, verdict.assertions_skipped), (1, 0, 0));
    }
}

#[test]
fn a_function_that_did_not_run_is_skipped() {
    let verdict = Scenario::new(json!({ "evals": ["eval_a"] }), json!({})).judge(ALL);
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped, verdict.vacuous), (0, 1, true));
    assert_eq!(verdict.warnings, ["evals: eval_a was not run"]);
}

#[test]
fn a_function_that_is_not_applicable_is_skipped() {
    let verdict = with_functions(json!({ "eval_a": [null, "no refund"], "eval_b": [true, "", 0.75] })).judge(FIRST);
    assert_eq!((verdict.passed(), verdict.assertions_run, verdict.assertions_skipped), (true, 2, 1));
    let [skipped, scored] = &verdict.evals[..] else { panic!("{:?}", verdict.evals) };
    assert_eq!((skipped.applicable, skipped.result, skipped.reason.as_deref()), (false, None, Some("no refund")));
    assert_eq!((scored.applicable, scored.result, scored.score), (true, Some(true), Some(0.75)));
    assert_eq!((&skipped.error, skipped.error_kind), (&None, None));
}

#[test]
fn a_failure_names_the_score() {
    let verdict = with_functions(json!({ "eval_a": [false, "far off", 0.25] })).judge(FIRST);
    assert_eq!(messages(&verdict), ["evals: eval_a failed with score 0.25: far off"]);
}

#[test]
fn tokens_in_parameters_are_resolved() {
    let entry =
        |value: &str| json!([{ "name": "eval_a", "params": { "min": value, "list": [1] }, "reference": value }]);
    let judge = |value: &str| {
        let scenario = Scenario::new(json!({ "evals": entry(value) }), json!({ "response": "rain" }));
        scenario.with("functions", json!({ "eval_a": [true, ""] })).with("seed", json!({ "min": 3 })).judge(ALL)
    };
    let verdict = judge("{{seed:min}}");
    let eval = &verdict.evals[0];
    assert_eq!((&eval.params["min"], &eval.params["list"], &eval.reference), (&json!(3), &json!([1]), &Some(json!(3))));
    let verdict = judge("{{seed:max}}");
    assert_eq!((verdict.evals.len(), verdict.assertions_run, verdict.assertions_skipped), (0, 0, 1));
    assert_eq!(verdict.skipped_tokens, ["{{seed:max}}"]);
    let verdict = judge("{{sed:min}}");
    assert_eq!(verdict.warnings, ["'{{sed:min}}' is not a valid token and is passed literally"]);
}
