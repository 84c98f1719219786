//! Reads a model's answer.

use karat_json::text::shorten;
use karat_json::type_name;
use serde_json::Value;

use super::rewriting::Proposed;

/// How long what a model says of its code may be.
const LONGEST_WHY: usize = 400;

/// Reads candidates, or says why there are none. What a model adds beside them is passed over.
pub(super) fn read(value: &Value) -> Result<Vec<Proposed>, String> {
    let candidates = match value.get("candidates") {
        Some(Value::Array(candidates)) => candidates,
        Some(other) => return Err(format!("'candidates' must be an array, found {}", type_name(other))),
        None => return Err("the answer must be an object with 'candidates', which is missing".to_owned()),
    };
    if candidates.is_empty() {
        return Err("'candidates' is empty".to_owned());
    }
    candidates.iter().enumerate().map(|(at, candidate)| proposed(at, candidate)).collect()
}

fn proposed(at: usize, candidate: &Value) -> Result<Proposed, String> {
    let code = candidate.get("code").and_then(Value::as_str).filter(|code| !code.trim().is_empty());
    let code = code.ok_or_else(|| format!("candidates[{at}] has no text 'code'"))?;
    let why = candidate.get("why").and_then(Value::as_str).unwrap_or_default();
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Proposed { code: without_fence(code), why: shorten(&why, LONGEST_WHY).into_owned() })
}

/// Takes code out of the fence that models like to put around it.
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
    #[case(json!([]), "the answer must be an object with 'candidates', which is missing")]
    #[case(json!({"candidates": "x"}), "'candidates' must be an array, found a string")]
    #[case(json!({"candidates": []}), "'candidates' is empty")]
    #[case(json!({"candidates": [{"why": "x"}]}), "candidates[0] has no text 'code'")]
    #[case(json!({"candidates": [{"code": " "}]}), "candidates[0] has no text 'code'")]
    fn what_is_no_answer_is_said(#[case] value: Value, #[case] why: &str) {
        assert_eq!(read(&value), Err(why.to_owned()));
    }

    #[rstest]
    #[case("def f():\n    pass", "def f():\n    pass\n")]
    #[case("```python\ndef f():\n    pass\n```\n", "def f():\n    pass\n")]
    #[case("x = '```'\n", "x = '```'\n")]
    fn code_stands_alone(#[case] said: &str, #[case] code: &str) {
        assert_eq!(without_fence(said), code);
    }
}
