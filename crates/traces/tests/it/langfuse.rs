//! Exports of ten frameworks, compared with the messages that Langfuse displays for them.

use std::fs;

use karat_core::document::{StepCall, TraceContent};
use karat_core::rating::Rating;
use karat_traces::TraceFormat;
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixture::{document, path, read_text, whole, whole_traces};

/// A message as Langfuse displays it.
struct DisplayedMessage {
    role: Option<String>,
    texts: Vec<String>,
    calls: Vec<StepCall>,
}

fn displayed_message(message: &Value) -> DisplayedMessage {
    let role = message["role"].as_str().map(str::to_owned);
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    match &message["content"] {
        Value::String(text) => match parse_call_list(text) {
            Some(parsed) => calls.extend(parsed),
            None => texts.push(text.clone()),
        },
        Value::Array(blocks) => {
            for block in blocks {
                match block["type"].as_str() {
                    Some("text") => texts.push(block["text"].as_str().expect("a string").to_owned()),
                    Some("tool_use") => calls.push(call(&block["id"], &block["name"], block["input"].clone())),
                    // A tool result that Langfuse parsed as JSON.
                    None => texts.push(Value::Array(blocks.clone()).to_string()),
                    Some(other) => panic!("unexpected block type {other}"),
                }
            }
        }
        _ => {}
    }
    for tool_call in message["tool_calls"].as_array().into_iter().flatten() {
        let arguments = serde_json::from_str(tool_call["arguments"].as_str().expect("a string")).expect("JSON");
        calls.push(call(&tool_call["id"], &tool_call["name"], arguments));
    }
    texts.retain(|text| !text.is_empty());
    DisplayedMessage { role, texts, calls }
}

fn call(id: &Value, name: &Value, arguments: Value) -> StepCall {
    let id = id.as_str().filter(|id| !id.is_empty()).map(str::to_owned);
    StepCall { id, name: name.as_str().expect("a name").to_owned(), arguments, ..StepCall::default() }
}

/// Parses a message of Koog that is a JSON list of calls.
fn parse_call_list(text: &str) -> Option<Vec<StepCall>> {
    let entries: Vec<Value> = serde_json::from_str(text).ok()?;
    entries
        .iter()
        .map(|entry| {
            let arguments = serde_json::from_str(entry["function"]["arguments"].as_str()?).ok()?;
            Some(call(&entry["id"], &entry["function"]["name"], arguments))
        })
        .collect()
}

fn calls(document: &TraceContent) -> impl Iterator<Item = &StepCall> {
    document.steps.iter().flat_map(|step| &step.tool_calls)
}

/// Whether the document has this text as a message or in a tool result.
fn contains_text(document: &TraceContent, text: &str) -> bool {
    let value: Option<Value> = serde_json::from_str(text).ok();
    let is_message = document
        .steps
        .iter()
        .any(|step| step.output.response == text || step.input.messages.iter().any(|message| message.content == text));
    is_message
        || calls(document).any(|call| {
            call.result.as_str() == Some(text)
                || value.as_ref() == Some(&call.result)
                || call.result.to_string().contains(&Value::from(text).to_string())
        })
}

fn has_call(document: &TraceContent, expected: &StepCall) -> bool {
    calls(document).any(|call| {
        call.name == expected.name
            && call.arguments == expected.arguments
            && (expected.id.is_none() || call.id == expected.id)
    })
}

#[rstest]
#[case("agno-2025-06-11", 2, 1)]
#[case("autogen-2025-06-06", 1, 0)]
#[case("claude-agent-2025-12-22", 4, 2)]
#[case("crewai-2025-07-11", 1, 0)]
#[case("google-adk-2025-08-28", 2, 1)]
#[case("koog-2025-08-26", 2, 2)]
#[case("langgraph-python-2025-08-22", 2, 1)]
#[case("openai-agents-2025-09-30", 2, 1)]
#[case("pydantic-ai-tools-2025-12-04", 4, 4)]
#[case("vercel-aisdk-2025-11-17", 1, 1)]
fn contains_everything_that_langfuse_displays(#[case] name: &str, #[case] steps: usize, #[case] tool_calls: usize) {
    let imported = whole_traces(&format!("langfuse/{name}.trace.json"));
    assert_eq!(imported.len(), 1);
    assert_eq!(imported[0].format, TraceFormat::Langfuse);
    let document = document(&imported[0]);
    let expected = fs::read_to_string(path(&format!("langfuse/{name}.chatml.json"))).expect("fixture exists");
    let expected: Value = serde_json::from_str(&expected).expect("JSON");

    let mut missing = Vec::new();
    let mut compared = 0;
    for (observation, fields) in expected.as_object().expect("an object") {
        for (field, messages) in fields.as_object().expect("an object") {
            for message in messages["data"].as_array().into_iter().flatten() {
                let displayed = displayed_message(message);
                for text in &displayed.texts {
                    compared += 1;
                    if !contains_text(&document, text) {
                        missing.push(format!("{observation} {field}: {:?}: {text:.200}", displayed.role));
                    }
                }
                for call in &displayed.calls {
                    compared += 1;
                    if !has_call(&document, call) {
                        missing.push(format!(
                            "{observation} {field}: calls {} {} {:?}",
                            call.name, call.arguments, call.id
                        ));
                    }
                }
            }
        }
    }
    let document_text = serde_json::to_string_pretty(&document).expect("JSON");
    assert!(missing.is_empty(), "{name}: missing {missing:#?}\nin {document_text}");
    // Langfuse cannot parse the AutoGen messages, so it displays none.
    assert!(compared > 0 || name.starts_with("autogen"), "{name}: nothing was compared");
    assert_eq!(document.steps.len(), steps, "{name}: steps of {document_text}");
    assert_eq!(calls(&document).count(), tool_calls, "{name}: calls of {document_text}");
    let results = calls(&document).filter(|call| call.name != "final_result");
    assert!(results.into_iter().all(|call| !call.result.is_null()), "{name}: results of {document_text}");
    assert!(document.steps.iter().all(|step| step.model.is_some()), "{name}: models of {document_text}");
    assert!(document.started_at.is_some() && document.name.is_some());
    let history = document.steps.iter().flat_map(|step| &step.input.messages);
    let history = history.filter(|message| message.role == "assistant").count();
    assert_eq!(history, 0, "{name}: repeated messages in {document_text}");
    // The fixtures have only scores from models, which are not feedback.
    assert_eq!(imported[0].feedback, []);
}

#[test]
fn reads_attributes_of_the_trace() {
    let imported = whole_traces("langfuse/autogen-2025-06-06.trace.json");
    let document = document(&imported[0]);
    assert_eq!(imported[0].trace_id, "1b72c51fabed12ae7df83bfd4a09f545");
    assert_eq!(document.name.as_deref(), Some("autogen-chat-trace"));
    assert_eq!(document.session_id.as_deref(), Some("session_abc"));
    assert_eq!(document.user_id.as_deref(), Some("user_123"));
    assert_eq!(document.tags, ["autogen", "dev"]);
    assert_eq!(document.metadata["email"], "user@langfuse.com");
    assert_eq!(document.steps[0].input.message.as_deref(), Some("Say 'Hello World!'"));
    assert_eq!(document.steps[0].output.response, "Hello World!");
}

#[test]
fn reads_errors() {
    let export = json!({
        "trace": {"id": "t", "timestamp": "2026-01-01T00:00:00Z", "name": "ask"},
        "observations": [
            {"id": "a", "type": "SPAN", "name": "ask", "startTime": "2026-01-01T00:00:00Z"},
            {"id": "b", "parentObservationId": "a", "type": "GENERATION", "name": "chat", "startTime": "2026-01-01T00:00:01Z",
             "model": "m", "input": [{"role": "user", "content": "Rain?"}],
             "output": {"role": "assistant", "content": "", "tool_calls": [
                 {"id": "c1", "type": "function", "function": {"name": "rain", "arguments": "{\"day\":1}"}}]},
             "usageDetails": {"input": 7, "output": 3}, "totalCost": 0.5},
            {"id": "c", "parentObservationId": "a", "type": "TOOL", "name": "rain", "startTime": "2026-01-01T00:00:02Z",
             "input": "{\"day\":1}", "level": "ERROR", "statusMessage": "no network",
             "metadata": {"attributes": {"gen_ai.tool.call.id": "c1"}}},
            {"id": "d", "parentObservationId": "a", "type": "GENERATION", "name": "chat", "startTime": "2026-01-01T00:00:03Z",
             "level": "ERROR", "statusMessage": "overloaded", "input": [
                 {"role": "user", "content": "Rain?"},
                 {"role": "assistant", "tool_calls": [
                     {"id": "c1", "type": "function", "function": {"name": "rain", "arguments": "{\"day\":1}"}}]},
                 {"role": "tool", "tool_call_id": "c1", "content": "failed"}]}
        ]
    });
    let mut read = read_text(None, &export.to_string());
    let document = document(&whole(read.remove(0).expect("readable")));
    assert_eq!(document.steps.len(), 2, "{document:#?}");
    assert_eq!(document.steps[0].tool_calls[0].error.as_deref(), Some("no network"));
    assert_eq!(document.steps[1].error.as_deref(), Some("overloaded"));
    let usage = document.steps[0].usage.expect("usage");
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_usd), (Some(7), Some(3), Some(0.5)));
}

#[test]
fn finds_the_system_prompt_in_an_enclosing_span() {
    let document = document(&whole_traces("langfuse/claude-agent-2025-12-22.trace.json")[0]);
    let first = &document.steps[0].input.messages[0];
    assert_eq!(first.role, "system");
    assert!(first.content.starts_with("You are a friendly travel assistant"), "{}", first.content);
}

/// Google ADK has an empty result in the tool span, and the real one in the conversation.
#[test]
fn replaces_an_empty_result() {
    let document = document(&whole_traces("langfuse/google-adk-2025-08-28.trace.json")[0]);
    let call = calls(&document).next().expect("a call");
    assert!(call.result["greeting"].is_string(), "{call:?}");
}

#[test]
fn takes_usage_from_the_innermost_span() {
    let document = document(&whole_traces("langfuse/agno-2025-06-11.trace.json")[0]);
    let usage = document.usage.expect("usage");
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(663 + 163), Some(225 + 20)));
}

#[rstest]
#[case::excluded_by_total(json!({"input": 7, "output": 3, "input_cached_tokens": 2, "total": 12}), Some(9), Some(2))]
#[case::included_by_total(json!({"input": 7, "output": 3, "prompt_details.cache_read": 2, "total": 10}), Some(7), Some(2))]
#[case::excluded_by_anthropic_names(json!({"input": 7, "output": 3, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1}), Some(10), Some(2))]
fn input_tokens_include_cached_tokens(#[case] details: Value, #[case] input: Option<u64>, #[case] cached: Option<u64>) {
    let export = json!({"trace": {"id": "t"}, "observations": [
        {"id": "g", "type": "GENERATION", "name": "chat", "startTime": "2026-01-01T00:00:01Z", "usageDetails": details,
         "input": [{"role": "user", "content": "Rain?"}], "output": {"role": "assistant", "content": "No."}}]});
    let document = document(&whole(read_text(None, &export.to_string()).remove(0).expect("readable")));
    let usage = document.usage.expect("usage");
    assert_eq!((usage.input_tokens, usage.cached_input_tokens), (input, cached));
}

fn import_scores(scores: &Value) -> Vec<(String, Rating, Option<String>)> {
    let export = json!({"trace": {"id": "t", "input": "Hi", "output": "Hello"}, "observations": [], "scores": scores});
    let imported = whole(read_text(None, &export.to_string()).remove(0).expect("readable"));
    imported.feedback.into_iter().map(|entry| (entry.author, entry.rating, entry.note)).collect()
}

#[test]
fn human_scores_are_feedback() {
    let score = |author: Value, name: &str, kind: &str, value: Value, string_value: Value| {
        json!({"source": "ANNOTATION", "authorUserId": author, "name": name, "dataType": kind, "value": value,
               "stringValue": string_value, "comment": null, "timestamp": "2026-01-02T00:00:00Z"})
    };
    let scores = json!([
        score(json!("ann"), "helpful", "BOOLEAN", json!(1), json!("True")),
        score(json!("ann"), "tone", "CATEGORICAL", json!(0), json!("blue")),
        score(json!("ben"), "stars", "NUMERIC", json!(4), Value::Null),
        score(json!("cat"), "helpful", "BOOLEAN", json!(1), json!("True")),
        score(json!("cat"), "right", "CATEGORICAL", Value::Null, json!("Wrong")),
        score(Value::Null, "right", "NUMERIC", json!(0), Value::Null),
        {"source": "EVAL", "name": "judge", "dataType": "NUMERIC", "value": 0},
        {"source": "API", "name": "user", "dataType": "NUMERIC", "value": 0},
    ]);
    let feedback = |author: &str, rating, note: &str| (author.to_owned(), rating, Some(note.to_owned()));
    assert_eq!(
        import_scores(&scores),
        [
            feedback("ann", Rating::Positive, "helpful: True; tone: blue"),
            feedback("ben", Rating::Neutral, "stars: 4"),
            feedback("cat", Rating::Negative, "helpful: True; right: Wrong"),
            feedback("langfuse", Rating::Negative, "right: 0"),
        ]
    );
}

#[rstest]
#[case(json!({"id": "t", "input": "Hi", "observations": ["o1", "o2"]}), "'observations' holds only ids")]
#[case(json!({"trace": {"id": "t", "input": "Hi", "observations": ["o1"]}, "observations": []}), "holds only ids")]
#[case(json!({"id": "t", "timestamp": "2026-01-01T00:00:00Z", "htmlPath": "/t", "input": "Hi"}), "missing 'observations'")]
#[case(json!({"id": "o", "traceId": "t", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z"}), "an observation without its trace")]
fn rejects_incomplete_traces(#[case] entry: Value, #[case] reason: &str) {
    for export in [entry.clone(), json!({"data": [entry], "meta": {"page": 1}})] {
        let mut read = read_text(None, &export.to_string());
        assert_eq!(read.len(), 1, "{read:?}");
        let error = read.remove(0).expect_err("incomplete trace").to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_trace_without_observations_is_one_step() {
    let export =
        json!({"id": "t", "name": "ask", "input": "{\"q\": \"Rain?\"}", "output": "\"Yes\"", "observations": []});
    let document = document(&whole(read_text(None, &export.to_string()).remove(0).expect("readable")));
    assert_eq!(document.steps.len(), 1, "{document:#?}");
}
