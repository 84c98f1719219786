//! Sessions and eval sets of Google ADK.

use karat_traces::{ImportedTrace, TraceFormat};
use serde_json::{Value, json};

use crate::fixture::{document, read_text, whole, whole_traces};

fn traces(value: &Value) -> Vec<ImportedTrace> {
    read_text(None, &value.to_string()).into_iter().map(|piece| whole(piece.expect("readable"))).collect()
}

#[test]
fn reads_sessions() {
    let event = |author: &str, parts: Value, more: Value| {
        let mut event = json!({"author": author, "invocationId": "e-1", "timestamp": 1_771_237_534.5,
            "content": {"role": "model", "parts": parts}});
        event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        event
    };
    let session = json!({
        "id": "s-1", "appName": "weather", "userId": "ada", "state": {"unit": "C"}, "lastUpdateTime": 1_771_237_540.0,
        "events": [
            event("user", json!([{"text": "Rain in Rome?"}]), json!({})),
            event("agent", json!([{"text": "I"}]), json!({"partial": true})),
            event("agent", json!([{"text": "hm", "thought": true}, {"text": "I look."},
                {"functionCall": {"id": "c1", "name": "get_rain", "args": {"city": "Rome"}}},
                {"functionCall": {"id": "c2", "name": "get_wind", "args": {}}}]),
                json!({"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}, "modelVersion": "gemini-x"})),
            event("agent", json!([{"functionResponse": {"id": "c1", "name": "get_rain", "response": {"mm": 4}}},
                {"functionResponse": {"id": "c2", "name": "get_wind", "response": {"error": "no station"}}}]), json!({})),
            event("agent", json!([{"text": "4 mm."}]), json!({"usageMetadata": {"promptTokenCount": 9}})),
        ],
    });
    let imported = &traces(&session)[0];
    assert_eq!((imported.format, imported.trace_id.as_str()), (TraceFormat::Adk, "s-1"));
    let document = document(imported);
    assert_eq!(document.steps.len(), 2);
    let first = &document.steps[0];
    assert_eq!(first.input.message.as_deref(), Some("Rain in Rome?"));
    assert_eq!((first.output.response.as_str(), first.output.reasoning.as_deref()), ("I look.", Some("hm")));
    assert_eq!(
        (&first.tool_calls[0].arguments, &first.tool_calls[0].result),
        (&json!({"city": "Rome"}), &json!({"mm": 4}))
    );
    assert!(first.tool_calls[1].error.is_some(), "{:?}", first.tool_calls[1]);
    assert_eq!(document.steps[1].output.response, "4 mm.");
    assert_eq!((document.user_id.as_deref(), document.model.as_deref()), (Some("ada"), Some("gemini-x")));
    assert_eq!(document.usage.and_then(|usage| usage.input_tokens), Some(16));
    assert_eq!(document.metadata["state"], json!({"unit": "C"}));
    assert!(document.started_at.is_some());
}

#[test]
fn reads_eval_sets() {
    let part = |text: &str| json!({"text": text, "thought": null, "function_call": null, "inline_data": null});
    let content = |role: &str, text: &str| json!({"role": role, "parts": [part(text)]});
    let set = json!({
        "eval_set_id": "weather", "name": "weather", "creation_timestamp": 1_771_237_534.0,
        "eval_cases": [
            {"eval_id": "tools", "session_input": {"app_name": "app", "user_id": "ada", "state": {}}, "conversation": [{
                "invocation_id": "1", "user_content": content("user", "Rain?"), "final_response": content("model", "Yes."),
                "intermediate_data": {
                    "tool_uses": [{"id": "c1", "name": "get_rain", "args": {"city": "Rome"}}],
                    "tool_responses": [{"id": "c1", "name": "get_rain", "response": {"mm": 4}}],
                    "intermediate_responses": []},
                "creation_timestamp": 0.0}]},
            {"eval_id": "events", "conversation": [{
                "invocation_id": "1", "user_content": content("user", "Wind?"), "final_response": content("model", "No."),
                "intermediate_data": {"invocation_events": [
                    {"author": "agent", "content": {"role": "model", "parts": [{"function_call": {"name": "get_wind", "args": {}}}]}}]}}]},
            {"eval_id": "simulated", "conversation_scenario": {"starting_prompt": "Hi"}},
        ],
    });
    let mut read = read_text(None, &set.to_string());
    let refused = read.remove(2).expect_err("a scenario").to_string();
    assert_eq!(refused, "item 3: the eval case has no 'conversation'");
    let imported: Vec<ImportedTrace> = read.into_iter().map(|piece| whole(piece.expect("readable"))).collect();
    let tools = document(&imported[0]);
    assert!(imported[0].trace_id.starts_with("tools-"), "{}", imported[0].trace_id);
    assert_eq!((tools.name.as_deref(), &tools.metadata["eval_set_id"]), (Some("tools"), &json!("weather")));
    assert_eq!(
        (tools.steps[0].tool_calls[0].name.as_str(), &tools.steps[0].tool_calls[0].result),
        ("get_rain", &json!({"mm": 4}))
    );
    assert_eq!(tools.steps[1].output.response, "Yes.");
    let events = document(&imported[1]);
    assert_eq!(events.steps[0].tool_calls[0].name, "get_wind");
    assert_eq!(events.steps[0].input.message.as_deref(), Some("Wind?"));
    assert_eq!(events.steps[1].output.response, "No.");
}

#[test]
fn reads_a_real_eval_set() {
    let imported = whole_traces("otel/eval_set_helm.json");
    assert_eq!(imported[0].format, TraceFormat::Adk);
    let document = document(&imported[0]);
    assert_eq!(document.steps[0].input.message.as_deref(), Some("list all Helm releases"));
    let call = &document.steps[0].tool_calls[0];
    assert_eq!((call.name.as_str(), &call.result["isError"]), ("helm_list_releases", &json!(false)));
    assert!(document.steps[1].output.response.starts_with("There are two Helm releases"));
}
