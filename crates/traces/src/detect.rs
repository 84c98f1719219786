//! Finds out what wrote a value, by the names in it.

use serde_json::{Map, Value};

use crate::kind::Kind;
use crate::otlp::is_span;

/// What is looked for to find a kind out, in words for whoever has something else.
pub const LOOKED_FOR: &str = "a document with 'trace_id' and 'steps' (karat), 'resourceSpans', 'resourceLogs' \
     or 'batches' (otlp), 'data' with 'traceID' and 'spans' (jaeger), 'trace' with 'observations' (langfuse), runs with \
     'run_type' (langsmith), 'messages' (openai, anthropic), 'traj' with 'reward' (tau-bench)";

/// Wrappers of a list, as APIs and exports have them.
const WRAPPERS: [&str; 6] = ["data", "runs", "traces", "results", "items", "conversations"];

/// Returns the kind of a value. `before` is the kind of what came before it: messages that could be either API's are
/// the same one's as those.
pub(crate) fn detect(value: &Value, before: Option<Kind>) -> Option<Kind> {
    match value {
        Value::Object(object) => of_object(object, before),
        Value::Array(items) if items.iter().any(is_message) => Some(whose_messages(value, before)),
        Value::Array(items) => items.iter().find_map(|item| detect(item, before)),
        _ => None,
    }
}

/// Returns the list within a wrapper, where the value is nothing but that.
pub(crate) fn wrapped(object: &Map<String, Value>) -> Option<&'static str> {
    WRAPPERS.into_iter().find(|name| object.get(*name).is_some_and(Value::is_array))
}

/// Tells whether a value is one message of a conversation.
pub(crate) fn is_message(value: &Value) -> bool {
    value.get("role").is_some_and(Value::is_string) && value.get("messages").is_none()
}

fn of_object(object: &Map<String, Value>, before: Option<Kind>) -> Option<Kind> {
    let has = |name: &str| object.contains_key(name);
    let is_list = |name: &str| object.get(name).is_some_and(Value::is_array);
    if has_spans(object) || object.get("trace").and_then(Value::as_object).is_some_and(has_spans) {
        return Some(Kind::Otlp);
    }
    if is_list("spans") && has("traceID") {
        return Some(Kind::Jaeger);
    }
    if is_list("traj") {
        return Some(Kind::TauBench);
    }
    if is_list("observations") && (has("trace") || has("id")) || is_part_of_langfuse(object) {
        return Some(Kind::Langfuse);
    }
    if has("run_type") && (has("trace_id") || has("id")) {
        return Some(Kind::LangSmith);
    }
    if has("steps") {
        return Some(Kind::Karat);
    }
    let asks = |name: &str| object.get(name).is_some_and(|part| part.get("messages").is_some_and(Value::is_array));
    if is_list("messages") || asks("request") || asks("body") {
        return Some(whose(object, before));
    }
    // OpenAI's Responses.
    let request = part(object, "request").or_else(|| part(object, "body"));
    let answers = part(object, "response").is_some_and(|response| response.get("output").is_some_and(Value::is_array));
    if answers && request.is_some_and(|request| request.contains_key("input")) {
        return Some(Kind::OpenAi);
    }
    let began = ["startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"];
    if is_span(object) && began.iter().any(|name| has(name)) {
        return Some(Kind::Otlp);
    }
    let items = object.get(wrapped(object)?)?.as_array()?;
    items.iter().find_map(|item| detect(item, before))
}

/// Tells whether an object is what Langfuse's lists have: a trace without its observations, or an observation without its
/// trace. Neither can be imported, but its reader says what is missing.
fn is_part_of_langfuse(object: &Map<String, Value>) -> bool {
    let has = |names: &[&str]| names.iter().all(|name| object.contains_key(*name));
    has(&["id", "traceId", "type", "startTime"]) || has(&["id", "timestamp", "htmlPath"])
}

fn has_spans(object: &Map<String, Value>) -> bool {
    let names =
        ["resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs", "scopeSpans", "scope_spans"];
    names.iter().any(|name| object.contains_key(*name))
}

/// Returns whose API a logged call is of.
fn whose(object: &Map<String, Value>, before: Option<Kind>) -> Kind {
    let parts = [Some(object), part(object, "request"), part(object, "body"), part(object, "response")];
    for part in parts.into_iter().flatten() {
        let message = part.get("type").and_then(Value::as_str) == Some("message");
        if part.contains_key("system") || part.contains_key("stop_reason") || message {
            return Kind::Anthropic;
        }
        if part.contains_key("choices") {
            return Kind::OpenAi;
        }
        if let Some(messages) = part.get("messages")
            && let Some(kind) = by_messages(messages)
        {
            return kind;
        }
    }
    fallback(before)
}

fn part<'o>(object: &'o Map<String, Value>, name: &str) -> Option<&'o Map<String, Value>> {
    object.get(name).and_then(Value::as_object)
}

fn whose_messages(messages: &Value, before: Option<Kind>) -> Kind {
    by_messages(messages).unwrap_or_else(|| fallback(before))
}

/// Returns whose messages these are, where one of them shows it.
fn by_messages(messages: &Value) -> Option<Kind> {
    messages.as_array()?.iter().find_map(|message| {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if matches!(role, "tool" | "function" | "developer" | "system") || message.get("tool_calls").is_some() {
            return Some(Kind::OpenAi);
        }
        let blocks = message.get("content").and_then(Value::as_array)?;
        let kinds = || blocks.iter().filter_map(|block| block.get("type")).filter_map(Value::as_str);
        if kinds().any(|kind| matches!(kind, "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "image")) {
            return Some(Kind::Anthropic);
        }
        kinds().any(|kind| matches!(kind, "image_url" | "input_audio" | "refusal")).then_some(Kind::OpenAi)
    })
}

fn fallback(before: Option<Kind>) -> Kind {
    before.filter(|kind| matches!(kind, Kind::OpenAi | Kind::Anthropic)).unwrap_or(Kind::OpenAi)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"trace_id": "a", "steps": []}), Some(Kind::Karat))]
    #[case(json!({"steps": 3}), Some(Kind::Karat))]
    #[case(json!({"resourceSpans": []}), Some(Kind::Otlp))]
    #[case(json!({"resource_spans": []}), Some(Kind::Otlp))]
    #[case(json!({"resourceLogs": []}), Some(Kind::Otlp))]
    #[case(json!({"batches": []}), Some(Kind::Otlp))]
    #[case(json!({"trace": {"resourceSpans": []}}), Some(Kind::Otlp))]
    #[case(json!({"traceId": "a", "spanId": "b", "startTimeUnixNano": "1"}), Some(Kind::Otlp))]
    #[case(json!({"context": {"trace_id": "0xa", "span_id": "0xb"}, "start_time": "2026-01-01T00:00:00Z"}), Some(Kind::Otlp))]
    #[case(json!({"trace_id": "a", "span_id": "b", "start_time": 1, "messages": []}), Some(Kind::OpenAi))]
    #[case(json!({"data": [{"traceID": "a", "spans": [], "processes": {}}]}), Some(Kind::Jaeger))]
    #[case(json!({"traceID": "a", "spans": []}), Some(Kind::Jaeger))]
    #[case(json!({"trace": {"id": "a"}, "observations": []}), Some(Kind::Langfuse))]
    #[case(json!({"id": "a", "observations": [], "scores": []}), Some(Kind::Langfuse))]
    #[case(json!({"data": [{"id": "a", "observations": []}]}), Some(Kind::Langfuse))]
    #[case(json!({"data": [{"id": "a", "timestamp": "", "htmlPath": "/x"}], "meta": {}}), Some(Kind::Langfuse))]
    #[case(json!({"data": [{"id": "o", "traceId": "a", "type": "SPAN", "startTime": ""}]}), Some(Kind::Langfuse))]
    #[case(json!({"id": "a", "run_type": "llm"}), Some(Kind::LangSmith))]
    #[case(json!({"runs": [{"id": "a", "trace_id": "b", "run_type": "llm"}]}), Some(Kind::LangSmith))]
    #[case(json!({"traj": [], "reward": 1.0, "task_id": 0}), Some(Kind::TauBench))]
    #[case(json!({"messages": [{"role": "user", "content": "Hi"}]}), Some(Kind::OpenAi))]
    #[case(json!([{"role": "user", "content": "Hi"}]), Some(Kind::OpenAi))]
    #[case(json!([{"type": "function_call"}, {"role": "user", "content": "Hi"}]), Some(Kind::OpenAi))]
    #[case(json!({"system": "Be kind", "messages": []}), Some(Kind::Anthropic))]
    #[case(json!({"request": {"messages": []}, "response": {"choices": []}}), Some(Kind::OpenAi))]
    #[case(json!({"request": {"input": "Hi"}, "response": {"output": []}}), Some(Kind::OpenAi))]
    #[case(json!({"request": {"messages": []}, "response": {"type": "message", "content": []}}), Some(Kind::Anthropic))]
    #[case(json!({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}), Some(Kind::Anthropic))]
    #[case(json!({"hello": 1}), None)]
    #[case(json!({"data": [1, 2]}), None)]
    #[case(json!([]), None)]
    #[case(json!("text"), None)]
    fn names_show_the_kind(#[case] value: Value, #[case] expected: Option<Kind>) {
        assert_eq!(detect(&value, None), expected);
    }

    #[test]
    fn what_could_be_either_is_what_came_before() {
        let plain = json!({"messages": [{"role": "user", "content": "Hi"}]});
        assert_eq!(detect(&plain, Some(Kind::Anthropic)), Some(Kind::Anthropic));
        assert_eq!(detect(&plain, Some(Kind::Karat)), Some(Kind::OpenAi));
    }
}
