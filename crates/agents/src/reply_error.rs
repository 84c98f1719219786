//! Finds the error in a reply that has no answer.

use serde_json::Value;

/// Returns the error that a reply reports about itself, under any of the common keys.
pub(crate) fn find_error(reply: &Value) -> Option<String> {
    // A stream or a list of items may consist of the error alone.
    let reply = match reply {
        Value::Array(items) if items.len() == 1 => &items[0],
        other => other,
    };
    ["error", "__error__", "detail", "errors", "errorMessage", "error_message"]
        .iter()
        .find_map(|key| reply.get(key).filter(|error| is_error(error)))
        .map(describe)
}

/// Returns the error that an event of a stream reports.
pub(crate) fn find_error_event(events: &Value) -> Option<String> {
    let is_named =
        |event: &&Value| ["event", "type"].iter().any(|key| event.get(key).is_some_and(|name| name == "error"));
    let event = events.as_array()?.iter().find(is_named)?;
    let data = event.get("data").unwrap_or(event);
    Some(find_error(data).unwrap_or_else(|| describe(data)))
}

fn is_error(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// Returns the message of an error with its kind, or the whole error as JSON.
fn describe(error: &Value) -> String {
    let text = |key| error.get(key).and_then(Value::as_str);
    match (error, text("message")) {
        (Value::String(text), _) => text.clone(),
        (_, Some(message)) => match ["error", "type", "name", "code"].iter().find_map(|key| text(key)) {
            Some(kind) => format!("{kind}: {message}"),
            None => message.to_owned(),
        },
        (other, None) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"error": "no"}), Some("no"))]
    #[case(json!({"error": {"message": "no", "code": 5}}), Some("no"))]
    #[case(json!({"__error__": {"error": "RuntimeError", "message": "no"}}), Some("RuntimeError: no"))]
    #[case(json!({"jsonrpc": "2.0", "error": {"code": -32603, "message": "no", "data": null}}), Some("no"))]
    #[case(json!({"detail": [{"loc": ["body"], "msg": "no"}]}), Some(r#"[{"loc":["body"],"msg":"no"}]"#))]
    #[case(json!({"error": true, "other": 1}), Some("true"))]
    #[case(json!({"error": null, "detail": "no"}), Some("no"))]
    #[case(json!({"error": "", "detail": []}), None)]
    #[case(json!([{"error": "no"}]), Some("no"))]
    #[case(json!([{"error": "no"}, {}]), None)]
    #[case(json!("error"), None)]
    fn finds_errors(#[case] reply: Value, #[case] expected: Option<&str>) {
        assert_eq!(find_error(&reply).as_deref(), expected);
    }

    #[rstest]
    #[case(json!([{"text": "a"}, {"event": "error", "data": {"error": "E", "message": "no"}}]), Some("E"))]
    #[case(json!([{"event": "error", "data": "no"}]), Some("no"))]
    #[case(json!([{"type": "error", "message": "no"}]), Some("error: no"))]
    #[case(json!([{"type": "error", "errorText": "no"}]), Some(r#"{"type":"error","errorText":"no"}"#))]
    #[case(json!([{"type": "text", "error": null}]), None)]
    #[case(json!({"type": "error"}), None)]
    fn finds_error_events(#[case] events: Value, #[case] expected: Option<&str>) {
        assert_eq!(find_error_event(&events).as_deref(), expected);
    }
}
