//! Test cases, test runs and traces of `DeepEval`.

use karat_core::rating::Rating;
use karat_traces::{ImportedTrace, TraceFormat};
use serde_json::{Value, json};

use crate::fixture::{document, read_text, whole};

fn traces(value: &Value) -> Vec<ImportedTrace> {
    read_text(None, &value.to_string()).into_iter().map(|piece| whole(piece.expect("readable"))).collect()
}

#[test]
fn reads_test_cases() {
    let cases = json!([
        {"input": "Rain?", "actual_output": "Yes.", "expected_output": "Rain.", "retrieval_context": ["fog"],
            "tools_called": [{"name": "get_rain", "description": "", "input_parameters": {"city": "Rome"}, "output": {"mm": 4}}]},
        {"name": "chat", "scenario": "weather", "turns": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello", "tools_called": [{"name": "greet"}]},
            {"role": "user", "content": "Rain?"}]},
    ]);
    let imported = traces(&cases);
    assert_eq!(imported[0].format, TraceFormat::DeepEval);
    let first = document(&imported[0]);
    assert_eq!(first.steps.len(), 1);
    assert_eq!(first.steps[0].input.message.as_deref(), Some("Rain?"));
    assert_eq!(first.steps[0].output.response, "Yes.");
    let call = &first.steps[0].tool_calls[0];
    assert_eq!(
        (call.name.as_str(), &call.arguments, &call.result),
        ("get_rain", &json!({"city": "Rome"}), &json!({"mm": 4}))
    );
    assert_eq!(
        (&first.metadata["expected_output"], &first.metadata["retrieval_context"]),
        (&json!("Rain."), &json!(["fog"]))
    );
    let chat = document(&imported[1]);
    assert!(imported[1].trace_id.starts_with("chat-"), "{}", imported[1].trace_id);
    assert_eq!((chat.steps.len(), chat.steps[0].tool_calls[0].name.as_str()), (2, "greet"));
    assert_eq!(chat.steps[1].input.message.as_deref(), Some("Rain?"));

    let unnamed = json!({"input": "a", "actual_output": "b", "tools_called": [{"tool": "x"}]});
    let refused = read_text(None, &unnamed.to_string()).remove(0).expect_err("no name").to_string();
    assert_eq!(refused, "line 1: an entry of 'tools_called' has no tool name: {\"tool\":\"x\"}");
}

#[test]
fn reads_test_runs_with_metrics_and_traces() {
    let span = |uuid: &str, parent: Value, more: Value| {
        let mut span = json!({"uuid": uuid, "parentUuid": parent, "name": uuid, "status": "SUCCESS",
            "startTime": "2026-01-02T03:04:05Z", "endTime": "2026-01-02T03:04:06Z"});
        span.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        span
    };
    let trace = json!({
        "uuid": "trace-1", "name": "weather", "threadId": "thread-1", "startTime": "2026-01-02T03:04:05Z", "endTime": "2026-01-02T03:04:07Z",
        "baseSpans": [], "agentSpans": [span("agent", Value::Null, json!({"input": "Rain?", "output": "Yes."}))],
        "llmSpans": [span("llm", json!("agent"), json!({"model": "gpt-x", "inputTokenCount": 9, "outputTokenCount": 2,
            "input": [{"role": "user", "content": "Rain?"}], "output": "Yes."}))],
        "toolSpans": [span("get_rain", json!("agent"), json!({"input": {"city": "Rome"}, "output": "4 mm"}))],
        "retrieverSpans": [],
    });
    let metric =
        |success: bool| json!([{"name": "Relevancy", "score": 0.4, "success": success, "reason": "off topic"}]);
    let run = json!({"testRunData": {
        "testCases": [
            {"name": "test_case_0", "input": "Rain?", "actualOutput": "Yes.", "success": false, "metricsData": metric(false), "trace": trace},
            {"name": "test_case_1", "input": "Hi", "actualOutput": "Hello", "success": true, "metricsData": metric(true)},
        ],
        "conversationalTestCases": [],
    }, "testRunLink": null});
    let imported = traces(&run);
    assert_eq!((imported.len(), imported[0].trace_id.as_str()), (2, "trace-1"));
    let ratings: Vec<Rating> = imported.iter().map(|trace| trace.feedback[0].rating).collect();
    assert_eq!(ratings, [Rating::Negative, Rating::Positive]);
    assert_eq!(imported[0].feedback[0].note.as_deref(), Some("Relevancy: 0.4 (off topic)"));
    let document = document(&imported[0]);
    assert_eq!((document.model.as_deref(), document.session_id.as_deref()), (Some("gpt-x"), Some("thread-1")));
    assert_eq!(document.steps[0].input.message.as_deref(), Some("Rain?"));
    let call = &document.steps[0].tool_calls[0];
    assert_eq!(
        (call.name.as_str(), &call.arguments, &call.result),
        ("get_rain", &json!({"city": "Rome"}), &json!("4 mm"))
    );
}
