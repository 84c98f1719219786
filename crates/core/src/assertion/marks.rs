//! The texts to mark in a response that failed.

use super::{Failure, Field};
use crate::case::Expectation;
use crate::token::{Resolved, TokenSources};

/// Returns the texts that failed assertions looked for in the response: missing ones, of which a report can mark near
/// misses, and forbidden ones.
pub fn response_marks(expect: &Expectation, tokens: &TokenSources, failures: &[Failure]) -> Vec<String> {
    let mut marks: Vec<String> = Vec::new();
    for failure in failures {
        let index = failure.pointer.rsplit('/').next().and_then(|index| index.parse::<usize>().ok());
        let Some(index) = index else { continue };
        let in_list = |list: &Option<Vec<String>>| list.as_ref().and_then(|list| list.get(index)).cloned();
        let is = |field: Field| failure.assertion == field.name();
        let values: Vec<String> = if is(Field::ResponseContains) {
            in_list(&expect.response_contains).into_iter().collect()
        } else if is(Field::ResponseNotContains) {
            in_list(&expect.response_not_contains).into_iter().collect()
        } else if is(Field::ResponseContainsAny) {
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
    marks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn returns_missing_and_forbidden_texts() {
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
        let failures = [
            failure("responseContains", "/expect/responseContains/1"),
            failure("responseContains", "/expect/responseContains/2"),
            failure("responseContainsAny", "/expect/responseContainsAny/0"),
            failure("responseNotContains", "/expect/responseNotContains/0"),
            failure("responseNonEmpty", "/expect/responseNonEmpty"),
            failure("toolsNotCalled", "/expect/toolsNotCalled/0"),
        ];
        let tokens = TokenSources { seed: Some(json!({"city": "Tokyo"})), snapshot: None };
        assert_eq!(response_marks(&expect, &tokens, &failures), ["Tokyo", "a", "b", "secret"]);
    }
}
