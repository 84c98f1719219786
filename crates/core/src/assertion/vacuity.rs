//! Finds cases that cannot fail.

use super::{Evidence, Mode, Strictness, judge};
use crate::tokenizer::Tokenizer;
use crate::trace::Trace;
use karat_cases::token::TokenSources;
use karat_cases::{Case, Expectation, ToolsCalledMatch};

/// Whether some answer could fail the case. An expectation without checks, or with checks that hold for every answer,
/// is vacuous.
pub fn can_fail(case: &Case) -> bool {
    let turns = (0..case.turns().len()).filter_map(|turn| case.of_turn(turn));
    turns.into_iter().any(|turn| can_fail_alone(&turn)) || can_fail_alone(case)
}

/// Whether some answer could fail the expectations of the case itself.
fn can_fail_alone(case: &Case) -> bool {
    let expect = without_vacuous_checks(&case.expect);
    if expect.max_tokens.is_some() {
        // Return early, without loading a vocabulary.
        return true;
    }
    let evidence = Evidence {
        case: &Case { expect, ..case.clone() },
        trace: &Trace::default(),
        earlier: &[],
        mode: Mode::Endpoint,
        tokens: &TokenSources::default(),
        registry: None,
        tokenizer: Tokenizer::default(),
    };
    let verdict = judge(evidence, Strictness { all_failures: true, strict: false });
    // A check that an empty answer skips can run on another answer.
    verdict.assertions_run + verdict.assertions_skipped > 0
}

/// Removes checks that hold for every answer.
fn without_vacuous_checks(expect: &Expectation) -> Expectation {
    let mut expect = expect.clone();
    if let Some(texts) = &mut expect.response_contains {
        texts.retain(|text| !text.is_empty());
    }
    if let Some(groups) = &mut expect.response_contains_any {
        groups.retain(|group| group.iter().any(|text| !text.is_empty()));
    }
    if let Some(patterns) = &mut expect.response_matches {
        patterns.retain(|pattern| !pattern.is_empty());
    }
    let is_partial_match =
        matches!(expect.tools_called_match, Some(ToolsCalledMatch::InOrder | ToolsCalledMatch::Includes));
    if is_partial_match && expect.tools_called.as_ref().is_some_and(Vec::is_empty) {
        expect.tools_called = None;
    }
    expect.response_starts_with = expect.response_starts_with.filter(|text| !text.is_empty());
    expect.response_ends_with = expect.response_ends_with.filter(|text| !text.is_empty());
    if let Some(similar) = &mut expect.response_similar {
        similar.retain(|expected| expected.at_least > 0.0);
    }
    if let Some(unchanged) = &mut expect.state_unchanged {
        unchanged.retain(|entry| !entry.except.iter().any(String::is_empty));
    }
    expect.min_steps = expect.min_steps.filter(|min| *min > 0);
    expect.min_tool_calls = expect.min_tool_calls.filter(|min| *min > 0);
    expect.min_length = expect.min_length.filter(|min| *min > 0);
    expect
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use karat_cases::{EvalFile, Origin};

    #[rstest]
    #[case(json!({}), false)]
    #[case(json!({"noToolErrors": false}), false)]
    #[case(json!({"noToolErrors": true}), true)]
    #[case(json!({"responseNonEmpty": false, "toolArgsValid": false}), false)]
    #[case(json!({"toolArgsValid": true}), true)]
    #[case(json!({"responseContainsAny": []}), false)]
    #[case(json!({"responseContainsAny": [[]]}), false)]
    #[case(json!({"responseContainsAny": [["", ""]]}), false)]
    #[case(json!({"responseContainsAny": [["rain", ""]]}), true)]
    #[case(json!({"responseContainsAny": [["rain"]]}), true)]
    #[case(json!({"responseContains": [""]}), false)]
    #[case(json!({"responseMatches": [""]}), false)]
    #[case(json!({"responseMatches": ["", "a"]}), true)]
    #[case(json!({"responseContains": ["{{seed:city}}"]}), true)]
    #[case(json!({"toolsNotCalled": []}), false)]
    #[case(json!({"toolsCalled": []}), true)]
    #[case(json!({"toolsCalled": [], "toolsCalledMatch": "includes"}), false)]
    #[case(json!({"toolOrder": [["a", "b"]]}), true)]
    #[case(json!({"toolParams": []}), false)]
    #[case(json!({"minToolCalls": 0, "minLength": 0}), false)]
    #[case(json!({"maxToolCalls": 0}), true)]
    #[case(json!({"maxTokens": 9}), true)]
    #[case(json!({"maxCostUsd": 1}), true)]
    #[case(json!({"numbersGrounded": true}), true)]
    #[case(json!({"calls": {"list": []}}), true)]
    #[case(json!({"calls": {"forbidden": []}}), false)]
    #[case(json!({"calls": {"forbidden": [{"tool": "t"}]}}), true)]
    #[case(json!({"calls": {"match": "subset", "list": [{"tool": "t"}]}}), true)]
    #[case(json!({"responseEquals": ""}), true)]
    #[case(json!({"responseStartsWith": "", "responseEndsWith": ""}), false)]
    #[case(json!({"responseNotMatches": []}), false)]
    #[case(json!({"responseJson": [], "responseJsonFrom": "fence"}), false)]
    #[case(json!({"responseJson": [{"path": "/a", "assertion": "notExists"}]}), true)]
    #[case(json!({"state": []}), false)]
    #[case(json!({"state": [{"source": "db", "assertion": "exists"}]}), true)]
    #[case(json!({"stateUnchanged": []}), false)]
    #[case(json!({"stateUnchanged": [{"source": "db", "except": ["/a", ""]}]}), false)]
    #[case(json!({"stateUnchanged": [{"source": "db", "except": ["/a"]}]}), true)]
    #[case(json!({"minSteps": 0}), false)]
    #[case(json!({"maxSteps": 0}), true)]
    #[case(json!({"responseSimilar": [{"to": "a", "method": "rouge1", "atLeast": 0}]}), false)]
    #[case(json!({"responseSimilar": [{"to": "a", "method": "rouge1", "atLeast": 0.1}]}), true)]
    #[case(json!({"evals": []}), false)]
    #[case(json!({"evals": ["eval_tone"]}), true)]
    fn detects_cases_that_cannot_fail(#[case] expect: Value, #[case] expected: bool) {
        let file = json!([{"id": "a", "input": {"message": "m"}, "expect": expect}]).to_string();
        let file = EvalFile::parse(file.as_bytes(), Origin::new("t.labeled.json")).expect("valid");
        assert_eq!(can_fail(&file.cases[0]), expected);
    }
}
