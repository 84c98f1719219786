//! Converts the return value of a function to a trace.

use karat_chat::{ReplyError, read_reply};
use karat_core::trace::Trace;
use serde_json::Value;

use crate::reply::ResponseMap;
use crate::selector::Selector;

/// Reads a string, a list of messages, an object with messages, or the parts that the configuration selects.
pub(super) fn read_value(value: &Value, map: &ResponseMap) -> Result<Trace, String> {
    let is_mapped =
        map.conversation.is_some() || map.response.is_configured || map.tool_calls.is_configured || map.error.is_some();
    match value {
        Value::Null => Err("the function returned nothing".to_owned()),
        // A string does not report tool calls.
        Value::String(text) if !is_mapped => {
            Ok(Trace { response: text.clone(), calls_unreported: true, ..Trace::default() })
        }
        Value::Object(_) if !is_mapped && value.get("response").is_none() => match read_reply(value) {
            // karat's own format has the more helpful error: it names the missing key.
            Err(ReplyError::UnknownShape(_)) => map.parse_trace(value),
            _ => as_conversation(map).parse_trace(value),
        },
        Value::Array(_) if !is_mapped => as_conversation(map).parse_trace(value),
        Value::Array(_) | Value::Object(_) | Value::String(_) => map.parse_trace(value),
        Value::Bool(_) | Value::Number(_) => {
            Err(format!("the function returned {value}: it must return a string, an object or a list of messages"))
        }
    }
}

/// Reads the whole reply as a conversation.
fn as_conversation(map: &ResponseMap) -> ResponseMap {
    ResponseMap { conversation: Some(Selector::whole()), ..map.clone() }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_string_does_not_report_calls() {
        let trace = read_value(&json!("hi"), &ResponseMap::default()).expect("valid");
        assert_eq!((trace.response.as_str(), trace.calls_unreported), ("hi", true));
        let trace = read_value(&json!({"response": "hi"}), &ResponseMap::default()).expect("valid");
        assert_eq!((trace.response.as_str(), trace.calls_unreported), ("hi", false));
    }

    #[rstest]
    #[case::list(false)]
    #[case::object(true)]
    fn messages_are_a_conversation(#[case] is_object: bool) {
        let messages = json!([
            {"role": "user", "content": "earlier"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "0", "type": "function", "function": {"name": "old", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "0", "content": "x"},
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Rome\"}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "{\"celsius\": 21}"},
            {"role": "assistant", "content": "21 °C"},
        ]);
        let value = if is_object { json!({ "messages": messages }) } else { messages };
        let trace = read_value(&value, &ResponseMap::default()).expect("valid");
        assert_eq!((trace.response.as_str(), trace.tool_names()), ("21 °C", vec!["get_weather"]));
        assert_eq!(trace.tool_calls[0].params["city"], "Rome");
        assert!(!trace.calls_unreported);
    }

    #[rstest]
    #[case(json!(null), "the function returned nothing")]
    #[case(json!(3), "the function returned 3: it must return a string, an object or a list of messages")]
    #[case(json!({"answer": "x"}), "the reply has no text at '/response': it has 'answer', which 'agent.response.response' can point to")]
    fn rejects_invalid_return_values(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(read_value(&value, &ResponseMap::default()).expect_err("invalid"), expected);
    }
}
