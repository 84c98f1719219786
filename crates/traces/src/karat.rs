//! Input that already consists of trace documents.

use std::borrow::Cow;

use karat_core::document::TraceDocument;
use karat_json::JsonText;
use serde_json::Value;

use crate::format::TraceFormat;
use crate::piece::ImportedTrace;
use crate::trace_ids::validate_id;

/// Validates a document. A document on one line is kept byte for byte, except that `"tool_calls": null` becomes an empty
/// list: eval functions loop over it.
pub(crate) fn read(value: &Value, text: &[u8], requires_id: bool) -> Result<ImportedTrace, String> {
    TraceDocument::check(value).map_err(|error| error.to_string())?;
    let trace_id = match value.get("trace_id") {
        None | Some(Value::Null | Value::Number(_)) if !requires_id => String::new(),
        None | Some(Value::Null) => return Err("missing 'trace_id'".to_owned()),
        Some(Value::String(id)) => validate_id(id)?,
        Some(_) => return Err("'trace_id' is not a string".to_owned()),
    };
    // Eval functions rely on this.
    let is_valid = |step: &Value| step.get("error").is_none_or(|error| error.is_null() || error.is_string());
    let mut steps = value.get("steps").and_then(Value::as_array).into_iter().flatten();
    if let Some(at) = steps.position(|step| !is_valid(step)) {
        return Err(format!("steps[{at}].error is neither a string nor null"));
    }
    let document = std::str::from_utf8(text).map_err(|_| "not valid UTF-8".to_owned())?;
    let mut document = one_line(document.trim()).into_owned();
    let steps = value.get("steps").and_then(Value::as_array).into_iter().flatten().enumerate();
    let without_calls: Vec<usize> =
        steps.filter(|(_, step)| step.get("tool_calls").is_some_and(Value::is_null)).map(|(at, _)| at).collect();
    if !without_calls.is_empty() {
        document = fill_tool_calls(&document, &without_calls)?;
    }
    Ok(ImportedTrace { format: TraceFormat::Karat, trace_id, document, raw: text.to_vec(), feedback: Vec::new() })
}

/// Replaces `"tool_calls": null` of these steps by an empty list. All other bytes are unchanged.
fn fill_tool_calls(document: &str, steps: &[usize]) -> Result<String, String> {
    let mut text = JsonText::read(document).map_err(|error| error.message)?;
    for step in steps {
        text.replace(&format!("/steps/{step}/tool_calls"), &Value::Array(Vec::new()))
            .map_err(|error| error.to_string())?;
    }
    Ok(text.into_text())
}

/// Removes whitespace from a document on several lines. Numbers keep their notation.
fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\r']) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for character in text.chars() {
        if in_string {
            line.push(character);
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
        } else if !matches!(character, ' ' | '\t' | '\n' | '\r') {
            in_string = character == '"';
            line.push(character);
        }
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read_text(text: &str) -> Result<ImportedTrace, String> {
        read(&serde_json::from_str(text).expect("JSON"), text.as_bytes(), true)
    }

    #[test]
    fn replaces_tool_calls_that_are_null() {
        let text = r#"{"trace_id": "t", "n": 1.50, "steps": [{"x": 1e2, "tool_calls": null}, {"tool_calls": [{"name": "a"}]}]}"#;
        let imported = read_text(text).expect("a trace");
        assert_eq!(imported.document, text.replace("null", "[]"));
    }

    #[test]
    fn an_id_is_required_only_for_import() {
        let text = r#"{"steps": []}"#;
        let imported = read(&serde_json::from_str(text).expect("JSON"), text.as_bytes(), false).expect("a trace");
        assert_eq!((imported.trace_id.as_str(), imported.document.as_str()), ("", text));
    }

    #[test]
    fn keeps_a_document_byte_for_byte() {
        let text = r#"{"trace_id": "t-1",  "steps": [{"x": 1.50, "tool_calls": [{"name": "a"}], "error": null}], "mine": 1e2}"#;
        let imported = read_text(text).expect("a trace");
        assert_eq!((imported.trace_id.as_str(), imported.document.as_str()), ("t-1", text));
    }

    #[test]
    fn joins_a_document_on_several_lines() {
        let imported =
            read_text("{\n \"trace_id\": \"a b\\\" c\",\r\n \"steps\": [ ],\n\"n\": 1.50\n}").expect("a trace");
        assert_eq!(imported.document, r#"{"trace_id":"a b\" c","steps":[],"n":1.50}"#);
    }

    #[rstest]
    #[case("[]", "the trace is not an object")]
    #[case("{\"steps\": []}", "missing 'trace_id'")]
    #[case("{\"trace_id\": null, \"steps\": []}", "missing 'trace_id'")]
    #[case("{\"trace_id\": 7, \"steps\": []}", "'trace_id' is not a string")]
    #[case("{\"trace_id\": \" \", \"steps\": []}", "the trace id is empty")]
    #[case("{\"trace_id\": \"a\\u0000\", \"steps\": []}", "the trace id contains control characters")]
    #[case("{\"trace_id\": \"a\"}", "the trace has no 'steps' list")]
    #[case("{\"trace_id\": \"a\", \"steps\": {}}", "the trace has no 'steps' list")]
    #[case("{\"trace_id\": \"a\", \"steps\": [{}, 3]}", "steps[1] is not an object")]
    #[case("{\"trace_id\": \"a\", \"steps\": [{\"tool_calls\": {}}]}", "steps[0].tool_calls is not a list")]
    #[case("{\"trace_id\": \"a\", \"steps\": [{\"tool_calls\": [1]}]}", "steps[0].tool_calls[0] is not an object")]
    #[case("{\"trace_id\": \"a\", \"steps\": [{\"tool_calls\": [{}]}]}", "steps[0].tool_calls[0] has no 'name'")]
    #[case(
        "{\"trace_id\": \"a\", \"steps\": [{\"tool_calls\": [{\"name\": 1}]}]}",
        "steps[0].tool_calls[0].name is not a string"
    )]
    #[case("{\"trace_id\": \"a\", \"steps\": [{\"error\": 3}]}", "steps[0].error is neither a string nor null")]
    fn rejects_invalid_documents(#[case] text: &str, #[case] reason: &str) {
        assert_eq!(read_text(text).expect_err("refused"), reason);
    }
}
