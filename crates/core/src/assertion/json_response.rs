//! Assertions on a response that is JSON or contains it.

use std::collections::HashSet;
use std::ops::ControlFlow;

use jsonschema::ValidationError;
use serde_json::{Deserializer, Value};

use super::predicate::Predicate;
use super::tally::{Check, Tally};
use super::{Evidence, Field};
use karat_cases::json_schema::compile_schema;
use karat_cases::{JsonFrom, JsonPredicate};

/// Maximum number of brackets at which parsing is tried in the search for JSON in a text.
const MAX_STARTS: usize = 10_000;

/// Maximum number of listed violations of a schema.
const MAX_VIOLATIONS: usize = 100;

pub(super) fn response_json(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(predicates) = &evidence.case.expect.response_json else {
        return ControlFlow::Continue(());
    };
    let response = read_json(evidence);
    for (index, spec) in predicates.iter().enumerate() {
        let check = match Predicate::resolve(spec, evidence.tokens, tally) {
            Ok(Some(predicate)) => match &response {
                Ok(value) => check_part(spec, &predicate, value),
                Err(failure) => Check::Failed(failure.clone()),
            },
            Ok(None) => Check::Skipped,
            Err(failure) => Check::Failed(failure),
        };
        tally.record_item(Field::ResponseJson, index, check)?;
    }
    ControlFlow::Continue(())
}

fn check_part(spec: &JsonPredicate, predicate: &Predicate, response: &Value) -> Check {
    let actual = response.pointer(&spec.path);
    if actual.is_none() && spec.optional {
        return Check::Passed;
    }
    let at = if spec.path.is_empty() { String::new() } else { format!("{}: ", spec.path) };
    predicate.test(actual).map_or_else(|failure| Check::Failed(format!("{at}{failure}")), |()| Check::Passed)
}

pub(super) fn response_json_schema(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(schema) = &evidence.case.expect.response_json_schema else {
        return ControlFlow::Continue(());
    };
    let failures = read_json(evidence)
        .and_then(|value| {
            let validator = compile_schema(&Value::Object(schema.clone()))?;
            let limit = if tally.lists_all_failures() { MAX_VIOLATIONS } else { 1 };
            let mut violations: Vec<String> =
                validator.iter_errors(&value).take(limit).map(|error| violation(&error)).collect();
            // A schema can refer to itself.
            let mut seen = HashSet::new();
            violations.retain(|message| seen.insert(message.clone()));
            Ok(violations)
        })
        .unwrap_or_else(|failure| vec![failure]);
    tally.record_failures(Field::ResponseJsonSchema, failures)
}

/// Describes a violation with its location, the expected and the actual value.
fn violation(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let message = error.to_string();
    let actual = error.instance().to_string();
    let at = if path.is_empty() { String::new() } else { format!("{path}: ") };
    let got = if message.contains(&actual) { String::new() } else { format!(" but got {actual}") };
    format!("the response does not match the schema: {at}{message}{got}")
}

/// Reads the JSON of the response. The error is the message of a failure.
fn read_json(evidence: Evidence<'_>) -> Result<Value, String> {
    let response = evidence.trace.response.as_str();
    match evidence.case.expect.response_json_from.unwrap_or_default() {
        JsonFrom::Whole => karat_json::parse(response).map_err(|error| {
            let invalid = format!("expected JSON but the response is not valid: {}", error.describe(response));
            match json_elsewhere(response) {
                Some(JsonFrom::Fence) => {
                    "expected JSON but the response has it in a code fence: set \"responseJsonFrom\": \"fence\""
                        .to_owned()
                }
                Some(JsonFrom::First) => {
                    format!("{invalid}; it contains JSON: set \"responseJsonFrom\": \"first\"")
                }
                Some(JsonFrom::Whole) | None => invalid,
            }
        }),
        JsonFrom::Fence => {
            let blocks = fenced_blocks(response);
            let [block] = blocks.as_slice() else {
                let found = if blocks.is_empty() { "none".to_owned() } else { blocks.len().to_string() };
                return Err(format!("expected JSON in one code fence but the response has {found}"));
            };
            karat_json::parse(block)
                .map_err(|error| format!("expected JSON but the code fence is not valid: {}", error.describe(block)))
        }
        JsonFrom::First => {
            let Some(text) = first_json(response) else {
                return Err("expected a JSON object or array in the response but found none".to_owned());
            };
            karat_json::parse(text).map_err(|error| {
                format!("expected JSON but the JSON in the response is not valid: {}", error.describe(text))
            })
        }
    }
}

/// Returns where the response contains JSON, if it is not JSON as a whole.
fn json_elsewhere(response: &str) -> Option<JsonFrom> {
    match fenced_blocks(response).as_slice() {
        [block] if karat_json::parse(block).is_ok() => Some(JsonFrom::Fence),
        _ => first_json(response).map(|_| JsonFrom::First),
    }
}

/// Returns the contents of the fenced code blocks of Markdown. A block that is not closed ends with the text.
fn fenced_blocks(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut open: Option<(Fence, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        match (&open, Fence::of(line)) {
            (None, Some(fence)) => open = Some((fence, end)),
            (Some((opening, from)), Some(fence)) if fence.closes(opening) => {
                blocks.push(&text[*from..start]);
                open = None;
            }
            _ => {}
        }
        start = end;
    }
    blocks.extend(open.map(|(_, from)| &text[from..]));
    blocks
}

/// A line that opens or closes a block.
struct Fence {
    marker: char,
    length: usize,
    /// Whether text follows the marker, such as the language.
    has_info: bool,
}

impl Fence {
    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let marker = line.chars().next().filter(|marker| matches!(marker, '`' | '~'))?;
        let rest = line.trim_start_matches(marker);
        let length = line.len() - rest.len();
        // Inline code has its closing backticks on the same line.
        let is_inline = marker == '`' && rest.contains('`');
        (length >= 3 && !is_inline).then_some(Self { marker, length, has_info: !rest.is_empty() })
    }

    fn closes(&self, opening: &Self) -> bool {
        self.marker == opening.marker && self.length >= opening.length && !self.has_info
    }
}

/// Returns the text of the first complete object or array.
fn first_json(text: &str) -> Option<&str> {
    let starts = text.char_indices().filter(|(_, character)| matches!(character, '{' | '['));
    // The parser limits the depth of values, so a text of many brackets takes bounded time.
    starts.take(MAX_STARTS).map(|(start, _)| &text[start..]).find_map(|rest| {
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        values.next()?.ok()?;
        rest.get(..values.byte_offset())
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none("text", &[])]
    #[case::one("Here:\n```json\n{\"a\": 1}\n```\nDone.", &["{\"a\": 1}\n"])]
    #[case::tildes("~~~\n1\n~~~", &["1\n"])]
    #[case::two("```\n1\n```\n```\n2\n```", &["1\n", "2\n"])]
    #[case::longer("````md\n```\n1\n```\n````", &["```\n1\n```\n"])]
    #[case::not_closed("```\n1\n", &["1\n"])]
    #[case::inline("```1``` and ``2``", &[])]
    #[case::indented("- a\n  ```\n  1\n  ```", &["  1\n"])]
    #[case::empty("```\n```", &[""])]
    #[case::windows("```\r\n1\r\n```\r\n", &["1\r\n"])]
    fn finds_fenced_blocks(#[case] text: &str, #[case] blocks: &[&str]) {
        assert_eq!(fenced_blocks(text), blocks);
    }

    #[rstest]
    #[case::none("1 and \"a\"", None)]
    #[case::object("I found {\"a\": [1]} here.", Some("{\"a\": [1]}"))]
    #[case::array("[1, 2]", Some("[1, 2]"))]
    #[case::braces_before("{x} {\"a\": 1}", Some("{\"a\": 1}"))]
    #[case::not_complete("{\"a\": {\"b\": 1}", Some("{\"b\": 1}"))]
    #[case::brackets_in_a_string("{\"a\": \"}\"}", Some("{\"a\": \"}\"}"))]
    #[case::empty("{}", Some("{}"))]
    fn finds_the_first_json(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(first_json(text), expected);
    }

    #[test]
    fn searches_hostile_text_in_bounded_time() {
        for text in ["[".repeat(1 << 20), "{\"a\":".repeat(1 << 18), "[1,".repeat(1 << 18)] {
            assert_eq!(first_json(&text), None);
        }
    }
}
