//! Documents that have the shape already.

use std::borrow::Cow;

use serde_json::Value;

use crate::identity::checked_id;
use crate::kind::Kind;
use crate::piece::Imported;

/// Checks a document, which stays byte for byte where it is on one line.
pub(crate) fn read(value: &Value, text: &[u8]) -> Result<Imported, String> {
    let Some(object) = value.as_object() else {
        return Err("a trace is an object".to_owned());
    };
    let id = match object.get("trace_id") {
        None | Some(Value::Null) => return Err("there is no 'trace_id'".to_owned()),
        Some(Value::String(id)) => checked_id(id)?,
        Some(_) => return Err("'trace_id' is not a text".to_owned()),
    };
    match object.get("steps") {
        None => return Err("there are no 'steps'".to_owned()),
        Some(Value::Array(steps)) => {
            for (index, step) in steps.iter().enumerate() {
                check_step(step).map_err(|why| format!("steps[{index}]{why}"))?;
            }
        }
        Some(_) => return Err("'steps' is not a list".to_owned()),
    }
    let document = std::str::from_utf8(text).map_err(|_| "not UTF-8".to_owned())?;
    let document = one_line(document.trim()).into_owned();
    Ok(Imported { kind: Kind::Karat, trace_id: id, document, raw: text.to_vec(), feedback: Vec::new() })
}

/// Checks what eval functions lean on.
fn check_step(step: &Value) -> Result<(), String> {
    let Some(step) = step.as_object() else {
        return Err(" is not an object".to_owned());
    };
    match step.get("tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Array(calls)) => {
            for (index, call) in calls.iter().enumerate() {
                let Some(call) = call.as_object() else {
                    return Err(format!(".tool_calls[{index}] is not an object"));
                };
                match call.get("name") {
                    Some(Value::String(_)) => {}
                    None | Some(Value::Null) => return Err(format!(".tool_calls[{index}] has no 'name'")),
                    Some(_) => return Err(format!(".tool_calls[{index}].name is not a text")),
                }
            }
        }
        Some(_) => return Err(".tool_calls is not a list".to_owned()),
    }
    match step.get("error") {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(_) => Err(".error is neither a text nor null".to_owned()),
    }
}

/// Takes the line breaks out of a document that is laid out over several lines; numbers keep their form.
fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\r']) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    let (mut in_text, mut escaped) = (false, false);
    for character in text.chars() {
        if in_text {
            line.push(character);
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_text = false,
                _ => {}
            }
        } else if !matches!(character, ' ' | '\t' | '\n' | '\r') {
            in_text = character == '"';
            line.push(character);
        }
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read_text(text: &str) -> Result<Imported, String> {
        read(&serde_json::from_str(text).expect("JSON"), text.as_bytes())
    }

    #[test]
    fn a_document_stays_byte_for_byte() {
        let text = r#"{"trace_id": "t-1",  "steps": [{"x": 1.50, "tool_calls": [{"name": "a"}], "error": null}], "mine": 1e2}"#;
        let imported = read_text(text).expect("a trace");
        assert_eq!((imported.trace_id.as_str(), imported.document.as_str()), ("t-1", text));
    }

    #[test]
    fn several_lines_become_one() {
        let imported =
            read_text("{\n \"trace_id\": \"a b\\\" c\",\r\n \"steps\": [ ],\n\"n\": 1.50\n}").expect("a trace");
        assert_eq!(imported.document, r#"{"trace_id":"a b\" c","steps":[],"n":1.50}"#);
    }

    #[rstest]
    #[case("[]", "a trace is an object")]
    #[case("{\"steps\": []}", "there is no 'trace_id'")]
    #[case("{\"trace_id\": null, \"steps\": []}", "there is no 'trace_id'")]
    #[case("{\"trace_id\": 7, \"steps\": []}", "'trace_id' is not a text")]
    #[case("{\"trace_id\": \" \", \"steps\": []}", "the trace's id is empty")]
    #[case("{\"trace_id\": \"a\\u0000\", \"steps\": []}", "the trace's id has control characters")]
    #[case("{\"trace_id\": \"a\"}", "there are no 'steps'")]
    #[case("{\"trace_id\": \"a\", \"steps\": {}}", "'steps' is not a list")]
    #[case("{\"trace_id\": \"a\", \"steps\": [{}, 3]}", "steps[1] is not an object")]
    #[case("{\"trace_id\": \"a\", \"steps\": [{\"tool_calls\": {}}]}", "steps[0].tool_calls is not a list")]
    #[case("{\"trace_id\": \"a\", \"steps\": [{\"tool_calls\": [1]}]}", "steps[0].tool_calls[0] is not an object")]
    #[case("{\"trace_id\": \"a\", \"steps\": [{\"tool_calls\": [{}]}]}", "steps[0].tool_calls[0] has no 'name'")]
    #[case(
        "{\"trace_id\": \"a\", \"steps\": [{\"tool_calls\": [{\"name\": 1}]}]}",
        "steps[0].tool_calls[0].name is not a text"
    )]
    #[case("{\"trace_id\": \"a\", \"steps\": [{\"error\": 3}]}", "steps[0].error is neither a text nor null")]
    fn a_wrong_shape_is_refused(#[case] text: &str, #[case] why: &str) {
        assert_eq!(read_text(text).expect_err("refused"), why);
    }
}
