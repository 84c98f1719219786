//! Selects the strings to highlight in a response that failed.

use super::{Field, Verdict};
use karat_cases::Expectation;
use karat_cases::token::{Resolved, TokenSources};

/// Returns the strings that failed assertions searched for, missing or forbidden, followed by their near misses.
/// Missing strings are included because a report can highlight similar parts.
pub fn response_marks(expect: &Expectation, tokens: &TokenSources, verdict: &Verdict) -> Vec<String> {
    let mut marks: Vec<String> = Vec::new();
    for failure in &verdict.failures {
        let index = failure.pointer.rsplit('/').next().and_then(|index| index.parse::<usize>().ok());
        let Some(index) = index else { continue };
        let item = |list: &Option<Vec<String>>| list.as_ref().and_then(|list| list.get(index)).cloned();
        let is_field = |field: Field| failure.assertion == field.name();
        let values: Vec<String> = if is_field(Field::ResponseContains) {
            item(&expect.response_contains).into_iter().collect()
        } else if is_field(Field::ResponseNotContains) {
            item(&expect.response_not_contains).into_iter().collect()
        } else if is_field(Field::ResponseContainsAny) {
            expect.response_contains_any.as_ref().and_then(|groups| groups.get(index)).cloned().unwrap_or_default()
        } else {
            Vec::new()
        };
        for value in values {
            if let Resolved::Text(text) = tokens.resolve(&value)
                && !text.is_empty()
                && !marks.contains(&text)
            {
                marks.push(text);
            }
        }
    }
    let is_failed = |pointer: &String| verdict.failures.iter().any(|failure| failure.pointer == *pointer);
    marks.extend(verdict.near_misses.iter().filter(|near| is_failed(&near.pointer)).map(|near| near.found.clone()));
    marks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::assertion::{Failure, NearMiss};

    #[test]
    fn returns_missing_and_forbidden_strings() {
        let texts = |list: &[&str]| Some(list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let expect = Expectation {
            response_contains: texts(&["held", "{{seed:city}}", "{{seed:unknown}}"]),
            response_contains_any: Some(vec![vec!["a".to_owned(), "b".to_owned()]]),
            response_not_contains: texts(&["secret"]),
            ..Expectation::default()
        };
        let failure = |assertion: &str, pointer: &str| Failure {
            assertion: assertion.to_owned(),
            message: String::new(),
            pointer: pointer.to_owned(),
        };
        let failures = vec![
            failure("responseContains", "/expect/responseContains/1"),
            failure("responseContains", "/expect/responseContains/2"),
            failure("responseContainsAny", "/expect/responseContainsAny/0"),
            failure("responseNotContains", "/expect/responseNotContains/0"),
            failure("responseNonEmpty", "/expect/responseNonEmpty"),
            failure("toolsNotCalled", "/expect/toolsNotCalled/0"),
        ];
        let tokens = TokenSources { seed: Some(json!({"city": "Tokyo"})), snapshot: None };
        let near_miss = |pointer: &str, found: &str| NearMiss {
            pointer: pointer.to_owned(),
            expected: String::new(),
            found: found.to_owned(),
        };
        let near_misses =
            vec![near_miss("/expect/responseContains/0", "Passed"), near_miss("/expect/responseContains/1", "TOKYO")];
        let verdict = Verdict { failures, near_misses, ..Verdict::default() };
        assert_eq!(response_marks(&expect, &tokens, &verdict), ["Tokyo", "a", "b", "secret", "TOKYO"]);
    }
}
