//! Parses a model's answer.

use karat_json::text::shorten;
use karat_json::type_name;
use serde_json::Value;

use super::rewrite::ProposedCode;

/// Maximum length of a model's explanation, in characters.
const MAX_EXPLANATION: usize = 400;

/// Parses the candidates; other keys are ignored. The error says why the answer is not valid.
pub(super) fn parse(value: &Value) -> Result<Vec<ProposedCode>, String> {
    let candidates = match value.get("candidates") {
        Some(Value::Array(candidates)) => candidates,
        Some(other) => return Err(format!("'candidates' must be an array, found {}", type_name(other))),
        None => return Err("the answer must be an object with 'candidates', but 'candidates' is missing".to_owned()),
    };
    if candidates.is_empty() {
        return Err("'candidates' is empty".to_owned());
    }
    candidates.iter().enumerate().map(|(at, candidate)| proposed(at, candidate)).collect()
}

fn proposed(at: usize, candidate: &Value) -> Result<ProposedCode, String> {
    let code = candidate.get("code").and_then(Value::as_str).filter(|code| !code.trim().is_empty());
    let code = code.ok_or_else(|| format!("candidates[{at}] has no 'code'"))?;
    let explanation = candidate.get("why").and_then(Value::as_str).unwrap_or_default();
    let explanation = explanation.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(ProposedCode { code: without_fence(code), explanation: shorten(&explanation, MAX_EXPLANATION).into_owned() })
}

/// Removes a Markdown fence around the code.
fn without_fence(code: &str) -> String {
    let trimmed = code.trim();
    let inner = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = inner.and_then(|rest| rest.split_once('\n')).map_or(trimmed, |(_, inner)| inner);
    format!("{}\n", inner.trim_matches('\n').trim_end())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!([]), "the answer must be an object with 'candidates', but 'candidates' is missing")]
    #[case(json!({"candidates": "x"}), "'candidates' must be an array, found a string")]
    #[case(json!({"candidates": []}), "'candidates' is empty")]
    #[case(json!({"candidates": [{"why": "x"}]}), "candidates[0] has no 'code'")]
    #[case(json!({"candidates": [{"code": " "}]}), "candidates[0] has no 'code'")]
    fn rejects_invalid_answers(#[case] value: Value, #[case] reason: &str) {
        assert_eq!(parse(&value), Err(reason.to_owned()));
    }

    #[rstest]
    #[case("def f():\n    pass", "def f():\n    pass\n")]
    #[case("```python\ndef f():\n    pass\n```\n", "def f():\n    pass\n")]
    #[case("x = '```'\n", "x = '```'\n")]
    fn removes_fences(#[case] text: &str, #[case] code: &str) {
        assert_eq!(without_fence(text), code);
    }
}
