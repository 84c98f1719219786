//! Logs and results that single programs write: benchmarks, evaluation frameworks, trackers and coding agents.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use karat_core::document::{StepCall, TraceContent};
use karat_core::rating::Rating;
use karat_traces::{ImportedTrace, Piece, ReadError, TraceFormat, TraceParts, assemble, read};
use serde_json::{Value, json};

use crate::fixture::{document, lines, read_text, whole};
use crate::spans::render;

fn traces(value: &Value) -> Vec<ImportedTrace> {
    read_text(None, &value.to_string()).into_iter().map(|piece| whole(piece.expect("readable"))).collect()
}

/// Reads spans and assembles their only trace.
fn assembled(text: &str) -> TraceContent {
    let mut all: Option<TraceParts> = None;
    for piece in read_text(None, text) {
        let Piece::Parts(parts) = piece.expect("readable") else { panic!("a whole trace") };
        match &mut all {
            None => all = Some(*parts),
            Some(known) => known.merge(*parts),
        }
    }
    assemble(&all.expect("spans")).document
}

fn calls(document: &TraceContent) -> Vec<&StepCall> {
    document.steps.iter().flat_map(|step| &step.tool_calls).collect()
}

fn tau2_results() -> Value {
    json!({
        "timestamp": "2026-01-02T03:04:05",
        "info": {"agent_info": {"implementation": "llm_agent", "llm": "gpt-x"}},
        "tasks": [{"id": "7", "evaluation_criteria": {"actions": [{"name": "reset_line", "arguments": {"line": 1}}]}}],
        "simulations": [{
            "id": "sim-1", "task_id": "7", "trial": 2, "start_time": "2026-01-02T03:04:05", "agent_cost": 0.5,
            "reward_info": {"reward": 0.0, "action_checks": [
                {"action": {"name": "reset_line", "arguments": {"line": 1}}, "action_match": false}]},
            "messages": [
                {"role": "assistant", "content": "Hi! How can I help?", "turn_idx": 0},
                {"role": "user", "content": "My phone is offline", "turn_idx": 1},
                {"role": "assistant", "content": "Please toggle airplane mode", "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
                {"role": "user", "content": null, "tool_calls": [
                    {"id": "u1", "name": "toggle_airplane_mode", "arguments": {}, "requestor": "user"}]},
                {"role": "tool", "id": "u1", "content": "off", "requestor": "user", "error": false},
                {"role": "user", "content": "Done"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "a1", "name": "reset_line", "arguments": {"line": 2}, "requestor": "assistant"}]},
                {"role": "tool", "id": "a1", "content": "no such line", "requestor": "assistant", "error": true},
                {"role": "assistant", "content": "That failed"},
            ],
        }],
    })
}

#[test]
fn reads_tau2_bench_results_without_the_tools_of_the_user() {
    let imported = &traces(&tau2_results())[0];
    assert_eq!((imported.format, imported.feedback[0].rating), (TraceFormat::Tau2Bench, Rating::Negative));
    let document = document(imported);
    let calls = calls(&document);
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].name.as_str(), calls[0].error.as_deref()), ("reset_line", Some("no such line")));
    assert_eq!(document.steps[2].input.message.as_deref(), Some("Done"));
    assert_eq!(document.metadata["user_tool_calls"][0]["result"], json!("off"));
    assert_eq!(document.metadata["expected_actions"][0]["name"], json!("reset_line"));
    assert_eq!(document.metadata["action_checks"][0]["action_match"], json!(false));
    assert_eq!(document.model.as_deref(), Some("gpt-x"));
    assert!(document.metadata.get("reward").is_none());
}

fn sample() -> Value {
    json!({
        "id": "s1", "epoch": 1, "uuid": "Abc123", "input": "Rain?", "target": "no",
        "attachments": {"h1": "a long result"},
        "messages": [
            {"role": "system", "content": "Be brief"},
            {"role": "user", "content": "Rain?"},
            {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "Hm"}, {"type": "text", "text": "I look"}],
             "tool_calls": [{"id": "1", "function": "rain", "arguments": {"day": 1}}, {"id": "2", "function": "wind", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "1", "function": "rain", "content": "attachment://h1"},
            {"role": "tool", "tool_call_id": "2", "function": "wind", "content": "", "error": {"type": "timeout", "message": "too slow"}},
            {"role": "assistant", "content": "No"},
        ],
        "output": {"model": "m-1"},
        "scores": {"match": {"value": "C", "explanation": "equal"}},
        "model_usage": {"m-1": {"input_tokens": 7, "output_tokens": 3}},
    })
}

fn check_sample(imported: &ImportedTrace) {
    assert_eq!((imported.format, imported.trace_id.as_str()), (TraceFormat::Inspect, "Abc123"));
    assert_eq!(imported.feedback[0].note.as_deref(), Some("match: C (equal)"));
    assert_eq!(imported.feedback[0].rating, Rating::Positive);
    let document = document(imported);
    assert_eq!(document.name.as_deref(), Some("weather s1"));
    let calls = calls(&document);
    assert_eq!(
        (calls[0].name.as_str(), &calls[0].arguments, &calls[0].result),
        ("rain", &json!({"day": 1}), &json!("a long result"))
    );
    assert_eq!((calls[1].name.as_str(), calls[1].error.as_deref()), ("wind", Some("too slow")));
    assert_eq!(document.steps[0].output.reasoning.as_deref(), Some("Hm"));
}

#[test]
fn reads_inspect_logs() {
    let log = json!({"version": 2, "status": "success", "eval": {"task": "weather", "model": "m"}, "plan": {}, "samples": [sample()]});
    check_sample(&traces(&log)[0]);
}

fn zip_entry(name: &str, content: &str) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content.as_bytes()).expect("memory");
    let packed = encoder.finish().expect("memory");
    let mut bytes = b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0".to_vec();
    for size in [packed.len(), content.len()] {
        bytes.extend(u32::try_from(size).expect("small").to_le_bytes());
    }
    bytes.extend(u16::try_from(name.len()).expect("short").to_le_bytes());
    bytes.extend([0, 0]);
    bytes.extend(name.as_bytes());
    bytes.extend(packed);
    bytes
}

#[test]
fn reads_inspect_logs_in_zip_files() {
    let start = json!({"version": 2, "eval": {"task": "weather", "model": "m"}, "plan": {}});
    let bytes = [
        zip_entry("_journal/start.json", &start.to_string()),
        zip_entry("samples/s1_epoch_1.json", &sample().to_string()),
        zip_entry("samples/s2_epoch_1.json", "{broken"),
        zip_entry("summaries.json", "[]"),
        b"PK\x01\x02".to_vec(),
    ];
    let read: Vec<_> = read(None, Cursor::new(bytes.concat())).collect();
    let [Ok(Piece::Whole(imported)), Err(ReadError::Refused(refused))] = read.as_slice() else { panic!("{read:?}") };
    check_sample(imported);
    assert_eq!(refused.location, "samples/s2_epoch_1.json");
    let other: Vec<_> = karat_traces::read(None, Cursor::new(zip_entry("a.txt", "a"))).collect();
    assert!(matches!(other.as_slice(), [Err(ReadError::UnknownFormat(_))]), "{other:?}");
}

#[test]
fn reads_mlflow_traces() {
    let span = |id: &str, parent: Value, name: &str, start: u64, attributes: Value| {
        let attributes: Value = attributes
            .as_object()
            .expect("an object")
            .iter()
            .map(|(name, value)| (name.clone(), json!(value.to_string())))
            .collect();
        json!({"trace_id": "S/kvNXezTaajzpKdDg5HNg==", "span_id": id, "parent_span_id": parent, "name": name,
            "start_time_unix_nano": 1_771_237_534_000_000_000_u64 + start, "end_time_unix_nano": 1_771_237_534_000_000_000_u64 + start + 1,
            "status": {"code": "STATUS_CODE_OK", "message": ""}, "attributes": attributes})
    };
    let call = |id: &str, city: &str| json!({"id": id, "type": "function", "function": {"name": "get_weather", "arguments": format!("{{\"city\": \"{city}\"}}")}});
    let trace = json!({
        "info": {"trace_id": "tr-1", "request_time": "2026-02-16T10:25:34Z", "state": "OK",
            "trace_metadata": {"mlflow.trace.session": "s-1"}, "tags": {"mlflow.traceName": "agent", "team": "blue"},
            "assessments": [{"assessment_name": "helpful", "source": {"source_type": "HUMAN", "source_id": "ada"}, "feedback": {"value": false}, "rationale": "late"}]},
        "data": {"spans": [
            span("AAAAAAAAAAE=", Value::Null, "agent", 0, json!({"mlflow.spanType": "AGENT"})),
            span("AAAAAAAAAAI=", json!("AAAAAAAAAAE="), "Completions", 1, json!({"mlflow.spanType": "CHAT_MODEL", "mlflow.llm.model": "gpt-x",
                "mlflow.chat.tokenUsage": {"input_tokens": 9, "output_tokens": 4},
                "mlflow.spanInputs": {"messages": [{"role": "user", "content": "Weather?"}]},
                "mlflow.spanOutputs": {"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [call("1", "Rome"), call("2", "Oslo")]}}]}})),
            span("AAAAAAAAAAM=", json!("AAAAAAAAAAE="), "get_weather_1", 3, json!({"mlflow.spanType": "TOOL", "mlflow.spanInputs": {"city": "Rome"}, "mlflow.spanOutputs": "sunny"})),
            span("AAAAAAAAAAQ=", json!("AAAAAAAAAAE="), "get_weather_2", 4, json!({"mlflow.spanType": "TOOL", "mlflow.spanInputs": {"city": "Oslo"}, "mlflow.spanOutputs": "rain"})),
        ]},
    });
    let imported = &traces(&trace)[0];
    assert_eq!((imported.format, imported.trace_id.as_str()), (TraceFormat::Mlflow, "tr-1"));
    assert_eq!((imported.feedback[0].author.as_str(), imported.feedback[0].rating), ("ada", Rating::Negative));
    let document = document(imported);
    let results: Vec<_> = calls(&document).iter().map(|call| (call.name.clone(), call.result.clone())).collect();
    assert_eq!(results, [("get_weather".to_owned(), json!("sunny")), ("get_weather".to_owned(), json!("rain"))]);
    assert_eq!(
        (document.model.as_deref(), document.usage.and_then(|usage| usage.input_tokens)),
        (Some("gpt-x"), Some(9))
    );
    assert_eq!((document.session_id.as_deref(), &document.metadata["team"]), (Some("s-1"), &json!("blue")));

    // Without the first tool span, the call still names the tool.
    let mut partial = trace.clone();
    partial["data"]["spans"].as_array_mut().expect("a list").remove(2);
    let document = self::document(&traces(&partial)[0]);
    assert_eq!(calls(&document).iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["get_weather"; 2]);
}

#[test]
fn reads_exports_of_the_openai_agents_sdk() {
    let span = |id: &str, parent: Value, second: u8, data: Value| {
        json!({"object": "trace.span", "id": id, "trace_id": "trace_1", "parent_id": parent, "error": null,
            "started_at": format!("2026-01-02T03:04:0{second}+00:00"), "ended_at": format!("2026-01-02T03:04:0{second}+00:00"), "span_data": data})
    };
    let items = [
        json!({"object": "trace", "id": "trace_1", "workflow_name": "Weather", "group_id": "chat-9", "metadata": {"team": "blue"}}),
        span("span_a", Value::Null, 1, json!({"type": "agent", "name": "Forecaster", "tools": ["rain"]})),
        span(
            "span_b",
            json!("span_a"),
            2,
            json!({"type": "generation", "model": "gpt-x", "usage": {"input_tokens": 3, "output_tokens": 1},
            "input": [{"role": "user", "content": "Rain?"}],
            "output": [{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "rain", "arguments": "{\"day\": 1}"}}]}]}),
        ),
        span(
            "span_c",
            json!("span_a"),
            3,
            json!({"type": "function", "name": "rain", "input": "{\"day\": 1}", "output": "none"}),
        ),
    ];
    for text in [json!({"data": items}).to_string(), lines(&items)] {
        let document = assembled(&text);
        assert_eq!((document.trace_id.as_str(), document.name.as_deref()), ("trace_1", Some("Weather")));
        assert_eq!((document.session_id.as_deref(), &document.metadata["team"]), (Some("chat-9"), &json!("blue")));
        let calls = calls(&document);
        assert_eq!((calls.len(), calls[0].name.as_str(), &calls[0].result), (1, "rain", &json!("none")));
        assert_eq!(document.steps[0].agent.as_deref(), Some("Forecaster"));
    }
}

#[test]
fn reads_claude_code_sessions() {
    let entry = |kind: &str, uuid: &str, second: u8, more: Value| {
        let mut entry = json!({"type": kind, "sessionId": "s-1", "uuid": uuid, "parentUuid": null, "isSidechain": false,
            "timestamp": format!("2026-01-02T03:04:0{second}Z"), "cwd": "/p", "version": "2.0.1"});
        entry.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        entry
    };
    let answer = |block: Value| json!({"message": {"id": "msg_1", "role": "assistant", "model": "m-1", "content": [block], "usage": {"input_tokens": 2, "output_tokens": 1}}});
    let text = lines(&[
        json!({"type": "summary", "summary": "Fix", "leafUuid": "x"}),
        entry("user", "1", 1, json!({"message": {"role": "user", "content": "Fix it"}})),
        entry("assistant", "2", 2, answer(json!({"type": "text", "text": "I look"}))),
        entry(
            "assistant",
            "3",
            2,
            answer(json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}})),
        ),
        entry(
            "user",
            "4",
            3,
            json!({"message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": "denied"}]}}),
        ),
        entry(
            "user",
            "5",
            3,
            json!({"isSidechain": true, "agentId": "b7", "message": {"role": "user", "content": "Search"}}),
        ),
        entry(
            "assistant",
            "6",
            4,
            json!({"isSidechain": true, "agentId": "b7", "message": {"id": "msg_2", "role": "assistant", "content": [{"type": "text", "text": "Found"}]}}),
        ),
        json!({"type": "some-new-kind", "payload": 1}),
        entry(
            "assistant",
            "7",
            5,
            json!({"message": {"id": "msg_3", "role": "assistant", "content": [{"type": "text", "text": "Sorry"}]}}),
        ),
    ]);
    let imported: Vec<_> = read_text(None, &text).into_iter().map(|piece| whole(piece.expect("readable"))).collect();
    let ids: Vec<&str> = imported.iter().map(|trace| trace.trace_id.as_str()).collect();
    assert_eq!(ids, ["s-1", "s-1-b7"]);
    let first = document(&imported[0]);
    let calls = calls(&first);
    assert_eq!((first.steps.len(), first.steps[0].output.response.as_str()), (2, "I look"));
    assert_eq!((calls[0].name.as_str(), calls[0].error.as_deref()), ("Bash", Some("denied")));
    assert_eq!(first.usage.and_then(|usage| usage.input_tokens), Some(2));
    assert_eq!(first.model.as_deref(), Some("m-1"));
    assert_eq!(document(&imported[1]).steps[0].output.response, "Found");
}

#[test]
fn reads_codex_sessions() {
    let entry =
        |kind: &str, payload: Value| json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": kind, "payload": payload});
    let text = lines(&[
        entry("session_meta", json!({"id": "0199", "cwd": "/p", "cli_version": "0.50", "instructions": "Be brief"})),
        entry("turn_context", json!({"cwd": "/p", "model": "gpt-x"})),
        entry(
            "response_item",
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List"}]}),
        ),
        entry("event_msg", json!({"type": "user_message", "message": "List"})),
        entry("response_item", json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]})),
        entry(
            "response_item",
            json!({"type": "function_call", "name": "shell", "arguments": "{\"command\": [\"ls\"]}", "call_id": "c1"}),
        ),
        entry(
            "response_item",
            json!({"type": "function_call_output", "call_id": "c1", "output": "{\"output\": \"no\", \"metadata\": {\"exit_code\": 2}}"}),
        ),
        entry(
            "response_item",
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Failed"}]}),
        ),
        entry(
            "event_msg",
            json!({"type": "token_count", "info": {"total_token_usage": {"input_tokens": 8, "cached_input_tokens": 2, "output_tokens": 3}}}),
        ),
    ]);
    let imported: Vec<_> = read_text(None, &text).into_iter().map(|piece| whole(piece.expect("readable"))).collect();
    assert_eq!((imported.len(), imported[0].trace_id.as_str()), (1, "0199"));
    let document = document(&imported[0]);
    let calls = calls(&document);
    assert_eq!((calls[0].name.as_str(), &calls[0].arguments), ("shell", &json!({"command": ["ls"]})));
    assert_eq!((calls[0].error.as_deref(), document.steps.len()), (Some("no"), 2));
    assert_eq!((document.steps[1].output.response.as_str(), document.model.as_deref()), ("Failed", Some("gpt-x")));
    assert_eq!(document.usage.and_then(|usage| usage.cached_input_tokens), Some(2));
    assert_eq!(document.steps[0].input.message.as_deref(), Some("List"));
}

#[test]
fn reads_older_codex_sessions() {
    let header = json!({"id": "0198", "timestamp": "2025-07-01T10:00:00Z", "instructions": "Be brief", "git": {"branch": "main"}});
    let items = [
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List"}]}),
        json!({"type": "function_call", "name": "shell", "arguments": "{\"command\": [\"ls\"]}", "call_id": "c1"}),
        json!({"type": "function_call_output", "call_id": "c1", "output": "a.txt"}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One file"}]}),
    ];
    let mut all = vec![header.clone(), json!({"record_type": "state"})];
    all.extend(items.clone());
    let whole_file = json!({"session": header, "items": items});
    for text in [lines(&all), whole_file.to_string()] {
        let imported: Vec<_> =
            read_text(None, &text).into_iter().map(|piece| whole(piece.expect("readable"))).collect();
        assert_eq!(
            (imported.len(), imported[0].format, imported[0].trace_id.as_str()),
            (1, TraceFormat::Codex, "0198")
        );
        let document = document(&imported[0]);
        assert_eq!(calls(&document)[0].result, json!("a.txt"));
        assert_eq!(
            document.steps.iter().map(|step| step.output.response.as_str()).collect::<Vec<_>>(),
            ["", "One file"]
        );
        assert_eq!(document.steps[0].input.message.as_deref(), Some("List"));
    }
}

#[test]
fn reads_trees_of_spans() {
    let span = |id: &str, name: &str, second: u8, attributes: Value, children: Value| {
        json!({"trace_id": "ab", "span_id": id, "span_name": name, "timestamp": format!("2026-01-02T03:04:0{second}.000Z"), "duration": "PT0.5S",
            "span_attributes": attributes, "status_code": "Unset", "resource_attributes": {"service.name": "gaia"}, "child_spans": children})
    };
    let mut failed = span(
        "3",
        "web_search",
        3,
        json!({"openinference.span.kind": "TOOL", "tool.name": "web_search",
        "tool.parameters": "{\"query\": {\"type\": \"string\"}, \"year\": {\"type\": \"string\"}}",
        "input.value": "{\"args\": [\"rust\"], \"sanitize_inputs_outputs\": true, \"kwargs\": {\"year\": 2015}}"}),
        json!([]),
    );
    failed["status_code"] = json!("Error");
    failed["status_message"] = json!("no net");
    let model = span(
        "2",
        "LiteLLMModel.__call__",
        2,
        json!({"openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Find it",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "web_search",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{\"query\": \"rust\", \"year\": 2015}"}),
        json!([]),
    );
    let mut model_without_trace = model;
    model_without_trace.as_object_mut().expect("an object").shift_remove("trace_id");
    let root = span(
        "1",
        "CodeAgent.run",
        1,
        json!({"openinference.span.kind": "AGENT"}),
        json!([model_without_trace, failed]),
    );
    let document = assembled(&json!({"trace_id": "ab", "spans": [root]}).to_string());
    let calls = calls(&document);
    assert_eq!((calls.len(), calls[0].name.as_str(), calls[0].error.as_deref()), (1, "web_search", Some("no net")));
    assert_eq!((document.name.as_deref(), &document.metadata["service.name"]), (Some("CodeAgent.run"), &json!("gaia")));
    assert!(render(&document).starts_with("user: Find it"), "{}", render(&document));
    assert_eq!(calls[0].duration_ms, Some(500.0));
}

#[test]
fn refuses_entries_of_tool_calls_without_a_tool_name() {
    let log = json!({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "what": "rain"}]}]});
    let read = read_text(None, &log.to_string());
    let [Err(ReadError::Refused(refused))] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(refused.message, r#"messages[1]: an entry of 'tool_calls' has no tool name: {"id":"1","what":"rain"}"#);
}
