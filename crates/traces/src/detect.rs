//! Detects the format of a value by its keys.

use serde_json::{Map, Value};

use crate::format::TraceFormat;
use crate::otlp::is_span;
use crate::{adk, claude_code, codex, deepeval, swe_agent};

/// The content by which formats are detected, for use in a message.
pub const EXPECTED_CONTENT: &str = "a document with 'trace_id' and 'steps' (karat), 'resourceSpans', 'resourceLogs' \
     or 'batches' (otlp), 'data' with 'traceID' and 'spans' (jaeger), 'trace' with 'observations' (langfuse), runs with \
     'run_type' (langsmith), 'messages' (openai, anthropic), 'traj' with 'reward' (tau-bench), 'simulations' \
     (tau2-bench), 'eval' with 'samples' (inspect), 'info' with 'data' (mlflow), 'trace.span' objects (openai-agents), \
     session files (claude-code, codex), 'events' or 'eval_cases' (adk), 'trajectory' (swe-agent), 'actual_output', \
     'turns' or 'testCases' (deepeval)";

/// Keys under which APIs and exports wrap a list.
const WRAPPER_KEYS: [&str; 6] = ["data", "runs", "traces", "results", "items", "conversations"];

/// Detects the format of a value. Messages that fit both APIs get the format of the `previous` value.
pub(crate) fn detect(value: &Value, previous: Option<TraceFormat>) -> Option<TraceFormat> {
    match value {
        Value::Object(object) => detect_object(object, previous),
        Value::Array(items) if items.iter().any(is_message) => Some(messages_format(value, previous)),
        Value::Array(items) => items.iter().find_map(|item| detect(item, previous)),
        _ => None,
    }
}

/// Returns the key of a wrapped list.
pub(crate) fn wrapper_key(object: &Map<String, Value>) -> Option<&'static str> {
    WRAPPER_KEYS.into_iter().find(|name| object.get(*name).is_some_and(Value::is_array))
}

/// Whether a value is a single message of a conversation.
pub(crate) fn is_message(value: &Value) -> bool {
    value.get("role").is_some_and(Value::is_string) && value.get("messages").is_none()
}

fn detect_object(object: &Map<String, Value>, previous: Option<TraceFormat>) -> Option<TraceFormat> {
    let has = |name: &str| object.contains_key(name);
    let is_list = |name: &str| object.get(name).is_some_and(Value::is_array);
    if has_spans(object) || object.get("trace").and_then(Value::as_object).is_some_and(has_spans) {
        return Some(TraceFormat::Otlp);
    }
    if is_list("spans") && has("traceID") {
        return Some(TraceFormat::Jaeger);
    }
    if let Some(format) = detect_program(object) {
        return Some(format);
    }
    if is_list("observations") && (has("trace") || has("id")) || is_langfuse_list_entry(object) {
        return Some(TraceFormat::Langfuse);
    }
    if has("run_type") && (has("trace_id") || has("id")) {
        return Some(TraceFormat::LangSmith);
    }
    if has("steps") {
        return Some(TraceFormat::Karat);
    }
    let has_messages =
        |name: &str| object.get(name).is_some_and(|part| part.get("messages").is_some_and(Value::is_array));
    if is_list("messages") || has_messages("request") || has_messages("body") {
        return Some(detect_api(object, previous));
    }
    // OpenAI Responses API.
    let request = part(object, "request").or_else(|| part(object, "body"));
    let has_output =
        part(object, "response").is_some_and(|response| response.get("output").is_some_and(Value::is_array));
    if has_output && request.is_some_and(|request| request.contains_key("input")) {
        return Some(TraceFormat::OpenAi);
    }
    let start_keys = ["startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime", "child_spans"];
    if is_span(object) && start_keys.iter().any(|name| has(name)) {
        return Some(TraceFormat::Otlp);
    }
    if let Some(Value::Array(spans)) = object.get("spans") {
        return spans.iter().find_map(|span| detect(span, previous)).filter(|format| *format == TraceFormat::Otlp);
    }
    let items = object.get(wrapper_key(object)?)?.as_array()?;
    items.iter().find_map(|item| detect(item, previous))
}

/// Detects formats that a single program writes.
fn detect_program(object: &Map<String, Value>) -> Option<TraceFormat> {
    let has = |name: &str| object.contains_key(name);
    let is_list = |name: &str| object.get(name).is_some_and(Value::is_array);
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    if is_list("traj") {
        return Some(TraceFormat::TauBench);
    }
    if is_list("simulations") || is_list("messages") && has("reward_info") && has("task_id") {
        return Some(TraceFormat::Tau2Bench);
    }
    if part(object, "eval").is_some() && (has("plan") || has("samples")) {
        return Some(TraceFormat::Inspect);
    }
    let mlflow_spans = part(object, "data").and_then(|data| data.get("spans"));
    if part(object, "info").is_some() && mlflow_spans.is_some_and(Value::is_array) {
        return Some(TraceFormat::Mlflow);
    }
    if text("object") == Some("trace.span") || text("object") == Some("trace") && has("workflow_name") {
        return Some(TraceFormat::OpenAiAgents);
    }
    if claude_code::is_entry(object) {
        return Some(TraceFormat::ClaudeCode);
    }
    if codex::is_entry(object) {
        return Some(TraceFormat::Codex);
    }
    if adk::is_item(object) {
        return Some(TraceFormat::Adk);
    }
    if swe_agent::is_trajectory(object) {
        return Some(TraceFormat::SweAgent);
    }
    deepeval::is_item(object).then_some(TraceFormat::DeepEval)
}

/// Whether an object is an entry of a Langfuse list: a trace without observations, or an observation without its trace.
/// Neither can be imported, but the Langfuse reader reports what is missing.
fn is_langfuse_list_entry(object: &Map<String, Value>) -> bool {
    let has = |names: &[&str]| names.iter().all(|name| object.contains_key(*name));
    has(&["id", "traceId", "type", "startTime"]) || has(&["id", "timestamp", "htmlPath"])
}

fn has_spans(object: &Map<String, Value>) -> bool {
    let names =
        ["resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs", "scopeSpans", "scope_spans"];
    names.iter().any(|name| object.contains_key(*name))
}

/// Detects the API of a logged request.
fn detect_api(object: &Map<String, Value>, previous: Option<TraceFormat>) -> TraceFormat {
    let parts = [Some(object), part(object, "request"), part(object, "body"), part(object, "response")];
    for part in parts.into_iter().flatten() {
        let is_message = part.get("type").and_then(Value::as_str) == Some("message");
        if part.contains_key("system") || part.contains_key("stop_reason") || is_message {
            return TraceFormat::Anthropic;
        }
        if part.contains_key("choices") {
            return TraceFormat::OpenAi;
        }
        if let Some(messages) = part.get("messages")
            && let Some(kind) = specific_format(messages)
        {
            return kind;
        }
    }
    fallback(previous)
}

fn part<'o>(object: &'o Map<String, Value>, name: &str) -> Option<&'o Map<String, Value>> {
    object.get(name).and_then(Value::as_object)
}

fn messages_format(messages: &Value, previous: Option<TraceFormat>) -> TraceFormat {
    specific_format(messages).unwrap_or_else(|| fallback(previous))
}

/// Returns the API of messages, if one of them is specific to it.
fn specific_format(messages: &Value) -> Option<TraceFormat> {
    messages.as_array()?.iter().find_map(|message| {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if matches!(role, "tool" | "function" | "developer" | "system") || message.get("tool_calls").is_some() {
            return Some(TraceFormat::OpenAi);
        }
        let blocks = message.get("content").and_then(Value::as_array)?;
        let kinds = || blocks.iter().filter_map(|block| block.get("type")).filter_map(Value::as_str);
        if kinds().any(|kind| matches!(kind, "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "image")) {
            return Some(TraceFormat::Anthropic);
        }
        kinds().any(|kind| matches!(kind, "image_url" | "input_audio" | "refusal")).then_some(TraceFormat::OpenAi)
    })
}

fn fallback(previous: Option<TraceFormat>) -> TraceFormat {
    previous.filter(|kind| matches!(kind, TraceFormat::OpenAi | TraceFormat::Anthropic)).unwrap_or(TraceFormat::OpenAi)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"trace_id": "a", "steps": []}), Some(TraceFormat::Karat))]
    #[case(json!({"steps": 3}), Some(TraceFormat::Karat))]
    #[case(json!({"resourceSpans": []}), Some(TraceFormat::Otlp))]
    #[case(json!({"resource_spans": []}), Some(TraceFormat::Otlp))]
    #[case(json!({"resourceLogs": []}), Some(TraceFormat::Otlp))]
    #[case(json!({"batches": []}), Some(TraceFormat::Otlp))]
    #[case(json!({"trace": {"resourceSpans": []}}), Some(TraceFormat::Otlp))]
    #[case(json!({"traceId": "a", "spanId": "b", "startTimeUnixNano": "1"}), Some(TraceFormat::Otlp))]
    #[case(json!({"context": {"trace_id": "0xa", "span_id": "0xb"}, "start_time": "2026-01-01T00:00:00Z"}), Some(TraceFormat::Otlp))]
    #[case(json!({"trace_id": "a", "span_id": "b", "start_time": 1, "messages": []}), Some(TraceFormat::OpenAi))]
    #[case(json!({"data": [{"traceID": "a", "spans": [], "processes": {}}]}), Some(TraceFormat::Jaeger))]
    #[case(json!({"traceID": "a", "spans": []}), Some(TraceFormat::Jaeger))]
    #[case(json!({"trace": {"id": "a"}, "observations": []}), Some(TraceFormat::Langfuse))]
    #[case(json!({"id": "a", "observations": [], "scores": []}), Some(TraceFormat::Langfuse))]
    #[case(json!({"data": [{"id": "a", "observations": []}]}), Some(TraceFormat::Langfuse))]
    #[case(json!({"data": [{"id": "a", "timestamp": "", "htmlPath": "/x"}], "meta": {}}), Some(TraceFormat::Langfuse))]
    #[case(json!({"data": [{"id": "o", "traceId": "a", "type": "SPAN", "startTime": ""}]}), Some(TraceFormat::Langfuse))]
    #[case(json!({"id": "a", "run_type": "llm"}), Some(TraceFormat::LangSmith))]
    #[case(json!({"runs": [{"id": "a", "trace_id": "b", "run_type": "llm"}]}), Some(TraceFormat::LangSmith))]
    #[case(json!({"traj": [], "reward": 1.0, "task_id": 0}), Some(TraceFormat::TauBench))]
    #[case(json!({"simulations": [], "tasks": []}), Some(TraceFormat::Tau2Bench))]
    #[case(json!({"id": "a", "task_id": "1", "messages": [], "reward_info": null}), Some(TraceFormat::Tau2Bench))]
    #[case(json!({"trace_id": "a", "spans": [{"trace_id": "a", "span_id": "b", "child_spans": []}]}), Some(TraceFormat::Otlp))]
    #[case(json!({"version": 2, "eval": {"task": "a"}, "samples": []}), Some(TraceFormat::Inspect))]
    #[case(json!({"info": {"trace_id": "tr-1"}, "data": {"spans": []}}), Some(TraceFormat::Mlflow))]
    #[case(json!({"data": [{"object": "trace", "id": "trace_1", "workflow_name": "a"}]}), Some(TraceFormat::OpenAiAgents))]
    #[case(json!({"object": "trace.span", "id": "span_1", "trace_id": "trace_1"}), Some(TraceFormat::OpenAiAgents))]
    #[case(json!({"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user"}}), Some(TraceFormat::ClaudeCode))]
    #[case(json!({"type": "summary", "summary": "a", "leafUuid": "u"}), Some(TraceFormat::ClaudeCode))]
    #[case(json!({"timestamp": "", "type": "session_meta", "payload": {"id": "a"}}), Some(TraceFormat::Codex))]
    #[case(json!({"id": "a", "timestamp": "", "instructions": null}), Some(TraceFormat::Codex))]
    #[case(json!({"session": {"id": "a"}, "items": []}), Some(TraceFormat::Codex))]
    #[case(json!({"type": "summary", "payload": {}}), None)]
    #[case(json!({"id": "s", "app_name": "a", "user_id": "u", "events": []}), Some(TraceFormat::Adk))]
    #[case(json!([{"id": "s", "appName": "a", "userId": "u", "events": []}]), Some(TraceFormat::Adk))]
    #[case(json!({"eval_set_id": "e", "eval_cases": []}), Some(TraceFormat::Adk))]
    #[case(json!({"evalId": "e", "conversation": []}), Some(TraceFormat::Adk))]
    #[case(json!({"id": "s", "events": []}), None)]
    #[case(json!({"trajectory": [], "info": {}}), Some(TraceFormat::SweAgent))]
    #[case(json!({"trajectory": []}), None)]
    #[case(json!([{"input": "Hi", "actual_output": "Hello"}]), Some(TraceFormat::DeepEval))]
    #[case(json!({"turns": [{"role": "user", "content": "Hi"}]}), Some(TraceFormat::DeepEval))]
    #[case(json!({"testRunData": {"testCases": []}}), Some(TraceFormat::DeepEval))]
    #[case(json!({"uuid": "u", "llmSpans": []}), Some(TraceFormat::DeepEval))]
    #[case(json!({"input": "Hi", "output": "Hello"}), None)]
    #[case(json!({"messages": [{"role": "user", "content": "Hi"}]}), Some(TraceFormat::OpenAi))]
    #[case(json!([{"role": "user", "content": "Hi"}]), Some(TraceFormat::OpenAi))]
    #[case(json!([{"type": "function_call"}, {"role": "user", "content": "Hi"}]), Some(TraceFormat::OpenAi))]
    #[case(json!({"system": "Be kind", "messages": []}), Some(TraceFormat::Anthropic))]
    #[case(json!({"request": {"messages": []}, "response": {"choices": []}}), Some(TraceFormat::OpenAi))]
    #[case(json!({"request": {"input": "Hi"}, "response": {"output": []}}), Some(TraceFormat::OpenAi))]
    #[case(json!({"request": {"messages": []}, "response": {"type": "message", "content": []}}), Some(TraceFormat::Anthropic))]
    #[case(json!({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}), Some(TraceFormat::Anthropic))]
    #[case(json!({"hello": 1}), None)]
    #[case(json!({"data": [1, 2]}), None)]
    #[case(json!([]), None)]
    #[case(json!("text"), None)]
    fn detects_formats(#[case] value: Value, #[case] expected: Option<TraceFormat>) {
        assert_eq!(detect(&value, None), expected);
    }

    #[test]
    fn ambiguous_messages_get_the_previous_format() {
        let plain = json!({"messages": [{"role": "user", "content": "Hi"}]});
        assert_eq!(detect(&plain, Some(TraceFormat::Anthropic)), Some(TraceFormat::Anthropic));
        assert_eq!(detect(&plain, Some(TraceFormat::Karat)), Some(TraceFormat::OpenAi));
    }
}
