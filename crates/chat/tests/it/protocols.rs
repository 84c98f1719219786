//! Details of the protocols that the recorded replies do not cover.

use karat_chat::{Reply, ReplyError, read_reply};
use karat_core::trace::Usage;
use rstest::rstest;
use serde_json::{Value, json};

fn read(value: &Value) -> Reply {
    read_reply(value).unwrap_or_else(|error| panic!("{error}: {value}"))
}

/// Returns names and arguments of the calls.
fn calls(reply: &Reply) -> Vec<(String, Value)> {
    let arguments = |call: &karat_core::trace::ToolCall| match &call.raw_params {
        Some(text) => Value::String(text.clone()),
        None => Value::Object(call.params.clone()),
    };
    reply.calls().map(|call| (call.name.clone(), arguments(call))).collect()
}

fn outcomes(reply: &Reply) -> Vec<(Option<bool>, Option<Value>)> {
    reply.calls().map(|call| (call.success, call.result.clone())).collect()
}

fn chunk(delta: &Value) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn last_chunk() -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
}

fn call_chunk(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = index.into();
    }
    if let Some(id) = id {
        call["id"] = id.into();
    }
    if let Some(name) = name {
        call["function"]["name"] = name.into();
    }
    chunk(&json!({"tool_calls": [call]}))
}

#[rstest]
#[case::by_index(vec![
    call_chunk(Some(0), Some("a"), Some("first"), ""),
    call_chunk(Some(1), Some("b"), Some("second"), "{\"y\""),
    call_chunk(Some(0), None, None, "{\"x\": 1}"),
    call_chunk(Some(1), None, None, ": 2}"),
])]
#[case::id_and_name_in_each_piece(vec![
    call_chunk(Some(0), Some("a"), Some("first"), "{\"x\""),
    call_chunk(Some(0), Some("a"), Some("first"), ": 1}"),
    call_chunk(Some(1), Some("b"), Some("second"), "{\"y\": 2}"),
])]
#[case::same_index_for_all(vec![
    call_chunk(Some(0), Some("a"), Some("first"), "{\"x\": 1}"),
    call_chunk(Some(0), Some("b"), Some("second"), "{\"y\": 2}"),
])]
#[case::no_index(vec![
    call_chunk(None, Some("a"), Some("first"), "{\"x\""),
    call_chunk(None, None, None, ": 1}"),
    call_chunk(None, Some("b"), Some("second"), "{\"y\": 2}"),
])]
#[case::name_after_id(vec![
    call_chunk(Some(0), Some("a"), None, ""),
    call_chunk(Some(0), None, Some("first"), "{\"x\": 1}"),
    call_chunk(Some(1), None, Some("second"), "{\"y\": 2}"),
])]
fn joins_the_chunks_of_calls(#[case] mut chunks: Vec<Value>) {
    chunks.push(last_chunk());
    let reply = read(&Value::Array(chunks));
    assert_eq!(calls(&reply), [("first".to_owned(), json!({"x": 1})), ("second".to_owned(), json!({"y": 2}))]);
    assert!(reply.is_complete && !reply.calls_unreported);
}

#[rstest]
#[case("", json!({}))]
#[case(" ", json!({}))]
#[case("null", json!({}))]
#[case("{}", json!({}))]
#[case("{\"a\": {\"b\": []}}", json!({"a": {"b": []}}))]
#[case("\"{\\\"a\\\": 1}\"", json!({"a": 1}))]
#[case("{\"a\": ", json!("{\"a\": "))]
#[case("order 42", json!("order 42"))]
#[case("[1]", json!("[1]"))]
fn reads_arguments(#[case] text: &str, #[case] expected: Value) {
    let streamed = read(&json!([call_chunk(Some(0), Some("a"), Some("f"), text), last_chunk()]));
    assert_eq!(calls(&streamed), [("f".to_owned(), expected.clone())]);
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": text}});
    let whole = read(&json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [call]}}]}));
    assert_eq!(calls(&whole), [("f".to_owned(), expected)]);
}

#[test]
fn counts_the_usage_of_a_completion_once() {
    let with_usage = |id: &str, tokens: u64, reason: Option<&str>| {
        json!({"id": id, "model": "m", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": tokens}})
    };
    // Some servers repeat the usage so far with every chunk; an agent may stream several completions.
    let reply = read(&json!([
        with_usage("c1", 1, None),
        with_usage("c1", 2, Some("tool_calls")),
        with_usage("c2", 1, None),
        with_usage("c2", 3, Some("stop"))
    ]));
    let usage = Usage { input_tokens: Some(20), output_tokens: Some(5), ..Usage::default() };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!((reply.steps.len(), reply.response()), (2, "aa"));
}

#[test]
fn joins_streamed_results_with_their_calls() {
    let reply = read(&json!([
        call_chunk(Some(0), Some("a"), Some("f"), "{}"),
        chunk(&json!({"role": "tool", "tool_call_id": "a", "content": "{\"n\":"})),
        chunk(&json!({"content": " 1}"})),
        chunk(&json!({"role": "assistant", "content": "One"})),
        last_chunk()
    ]));
    assert_eq!(outcomes(&reply), [(None, Some(json!({"n": 1})))]);
    assert_eq!(reply.response(), "One");
}

#[test]
fn reports_the_error_of_a_stream() {
    let reply = read(&json!([chunk(&json!({"content": "Hel"})), {"error": {"message": "overloaded", "code": 529}}]));
    assert_eq!((reply.error.as_deref(), reply.is_complete), (Some("overloaded"), false));
}

#[rstest]
#[case::chat(json!([
    {"role": "user", "content": "one"}, {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "old", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "x"}, {"role": "assistant", "content": "old"},
    {"role": "user", "content": "two"}, {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "new", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "y"}, {"role": "assistant", "content": "done"}]), None)]
#[case::anthropic(json!({"messages": [
    {"role": "user", "content": "one"}, {"role": "assistant", "content": "old"}, {"role": "user", "content": "two"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "new", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "y"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "do"}, {"type": "text", "text": "ne"}]}]}), Some(true))]
#[case::langchain(json!({"messages": [
    {"type": "human", "content": "two"}, {"type": "ai", "content": "", "tool_calls": [{"id": "1", "name": "new", "args": {}}]},
    {"type": "tool", "tool_call_id": "1", "status": "success", "content": "y"}, {"type": "ai", "content": "done"}]}), Some(true))]
#[case::langchain_serialised(json!([
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": "two"}},
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"],
     "kwargs": {"content": "", "tool_calls": [{"id": "1", "name": "new", "args": {}}]}},
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "ToolMessage"],
     "kwargs": {"tool_call_id": "1", "status": "success", "content": "y"}},
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": "done"}}]), Some(true))]
#[case::ui_messages(json!({"messages": [
    {"role": "user", "parts": [{"type": "text", "text": "one"}]}, {"role": "assistant", "parts": [{"type": "text", "text": "old"}]},
    {"role": "user", "parts": [{"type": "text", "text": "two"}]},
    {"role": "assistant", "parts": [
        {"type": "step-start"}, {"type": "tool-new", "toolCallId": "1", "state": "output-available", "input": {}, "output": "y"},
        {"type": "step-start"}, {"type": "text", "text": "done"}]}]}), Some(true))]
#[case::adk_session(json!({"id": "s", "events": [
    {"author": "user", "content": {"role": "user", "parts": [{"text": "one"}]}},
    {"author": "shop", "content": {"role": "model", "parts": [{"text": "old"}]}},
    {"author": "user", "content": {"role": "user", "parts": [{"text": "two"}]}},
    {"author": "shop", "content": {"role": "model", "parts": [{"functionCall": {"id": "1", "name": "new", "args": {}}}]}},
    {"author": "shop", "content": {"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "new", "response": "y"}}]}},
    {"author": "shop", "content": {"role": "model", "parts": [{"text": "done"}]}}]}), Some(true))]
fn reads_only_messages_after_the_last_user_message(#[case] value: Value, #[case] success: Option<bool>) {
    let reply = read(&value);
    assert_eq!(calls(&reply), [("new".to_owned(), json!({}))]);
    assert_eq!(outcomes(&reply), [(success, Some(json!("y")))]);
    assert_eq!(reply.response(), "done");
}

#[test]
fn rejects_messages_without_an_answer() {
    let values = [
        json!({"messages": [{"type": "human", "content": "two"}]}),
        json!([{"role": "assistant", "content": "old"}, {"role": "user", "content": "two"}]),
    ];
    for value in values {
        assert!(matches!(read_reply(&value), Err(ReplyError::Invalid(_))), "{value}");
    }
}

#[rstest]
#[case::null(json!(null))]
#[case::list(json!([]))]
#[case::object(json!({}))]
fn rejects_empty_replies(#[case] value: Value) {
    assert_eq!(read_reply(&value), Err(ReplyError::Empty));
}

#[rstest]
#[case(json!({"error": "no key"}), "no key")]
#[case(json!({"error": {"message": "no key", "type": "auth"}}), "no key")]
#[case(json!({"__error__": {"error": "ValueError", "message": "no key"}}), "no key")]
#[case(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no key"}}), "no key")]
#[case(json!({"detail": "no key"}), "no key")]
#[case(json!({"detail": [{"loc": ["body", "key"], "msg": "Field required"}, {"loc": ["body"], "msg": "bad"}]}), "key: Field required; body: bad")]
#[case(json!({"message": "no key"}), "no key")]
#[case(json!({"message": "no key", "code": 401}), "no key")]
#[case(json!({"type": "error", "error": {"type": "auth", "message": "no key"}}), "no key")]
#[case(json!([{"event": "error", "data": {"message": "no key", "status_code": 500}}]), "no key")]
fn reads_errors(#[case] value: Value, #[case] expected: &str) {
    let reply = read(&value);
    assert_eq!(reply.error.as_deref(), Some(expected));
    assert!(reply.steps.is_empty());
}

#[rstest]
#[case(json!({"greeting": "hello"}))]
#[case(json!("hello"))]
#[case(json!(["hel", "lo"]))]
#[case(json!([{"x": 1}]))]
#[case(json!(42))]
fn rejects_unknown_shapes(#[case] value: Value) {
    let error = read_reply(&value).expect_err("no known protocol");
    assert!(error.to_string().starts_with("no messages or events of a known protocol in the reply: "), "{error}");
}

#[test]
fn rejects_calls_without_a_name() {
    let whole = json!({"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "1"}]}}]});
    assert!(matches!(read_reply(&whole), Err(ReplyError::Invalid(_))));
    let streamed = json!([call_chunk(Some(0), Some("1"), None, "{}"), last_chunk()]);
    assert!(matches!(read_reply(&streamed), Err(ReplyError::Invalid(_))));
}

#[test]
fn joins_results_without_ids_by_order_and_name() {
    let step = |name: &str, n: u64| json!([{"tool": name, "tool_input": {"n": n}, "log": ""}, n]);
    let reply =
        read(&json!({"output": {"output": "ok", "intermediate_steps": [step("a", 1), step("b", 2), step("a", 3)]}}));
    assert_eq!(outcomes(&reply), [(None, Some(json!(1))), (None, Some(json!(2))), (None, Some(json!(3)))]);
    let reply = read(&json!([
        {"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": "{}"}}, {"function": {"name": "b", "arguments": "{}"}}]},
        {"role": "tool", "name": "b", "content": "2"},
        {"role": "tool", "content": "1"},
        {"role": "assistant", "content": "ok"}
    ]));
    assert_eq!(outcomes(&reply), [(None, Some(json!("1"))), (None, Some(json!("2")))]);
}

#[test]
fn discards_a_step_that_the_ai_sdk_resets() {
    let reply = read(&json!([
        {"type": "start"}, {"type": "start-step"},
        {"type": "text-delta", "id": "t", "delta": "wrong"},
        {"type": "tool-input-available", "toolCallId": "1", "toolName": "wrong", "input": {}},
        {"type": "reset-step"},
        {"type": "text-delta", "id": "t", "delta": "right"},
        {"type": "finish-step"}, {"type": "finish", "finishReason": "stop"}
    ]));
    assert_eq!((reply.response(), reply.calls().count()), ("right", 0));
}

#[test]
fn a_later_output_replaces_a_preliminary_one() {
    let reply = read(&json!([
        {"type": "tool-input-available", "toolCallId": "1", "toolName": "a", "input": {}},
        {"type": "tool-output-available", "toolCallId": "1", "output": "10 %", "preliminary": true},
        {"type": "tool-output-available", "toolCallId": "1", "output": "done"},
        {"type": "finish"}
    ]));
    assert_eq!(outcomes(&reply), [(Some(true), Some(json!("done")))]);
}

#[test]
fn ignores_automatic_approvals() {
    let request = |automatic: bool| {
        json!([
            {"type": "tool-input-available", "toolCallId": "1", "toolName": "delete", "input": {"n": 7}},
            {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "1", "isAutomatic": automatic},
            {"type": "finish"}
        ])
    };
    assert_eq!(read(&request(true)).approval, None);
    let approval = read(&request(false)).approval.expect("asked");
    assert_eq!((approval.question.as_str(), approval.call_id.as_deref()), ("delete {\"n\":7}", Some("1")));
}

#[test]
fn reads_chunk_events_of_ag_ui() {
    let reply = read(&json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "u", "role": "user", "delta": "question"},
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "1", "toolCallName": "a", "delta": "{\"n\":"},
        {"type": "TOOL_CALL_CHUNK", "delta": "1}"},
        {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "1", "content": "x"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "delta": "ans"},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "wer"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
    ]));
    assert_eq!(calls(&reply), [("a".to_owned(), json!({"n": 1}))]);
    assert_eq!((reply.response(), reply.conversation_id.as_deref()), ("answer", Some("t")));
}

#[test]
fn reads_confirmation_requests_of_adk() {
    // The tool did not run, so the text in place of its result does not mark a failure.
    let reply = read(&json!([
        {"author": "shop", "content": {"parts": [{"functionCall": {"id": "1", "name": "delete", "args": {"n": 7}}}]}},
        {"author": "shop", "longRunningToolIds": ["c"], "content": {"parts": [{"functionCall": {"id": "c", "name": "adk_request_confirmation",
            "args": {"originalFunctionCall": {"id": "1", "name": "delete", "args": {"n": 7}}, "toolConfirmation": {"hint": "", "confirmed": false}}}}]}},
        {"author": "shop", "content": {"parts": [{"functionResponse": {"id": "1", "name": "delete",
            "response": {"error": "This tool call requires confirmation, please approve or reject."}}}]}}
    ]));
    assert_eq!(calls(&reply), [("delete".to_owned(), json!({"n": 7}))]);
    assert_eq!(reply.calls().next().and_then(|call| call.success), None);
    let approval = reply.approval.expect("asked");
    assert_eq!((approval.question.as_str(), approval.id.as_deref()), ("delete {\"n\":7}", Some("c")));
}

#[rstest]
#[case(json!("Delete account 7?"), "Delete account 7?")]
#[case(json!({"question": "Delete?", "account": 7}), "Delete?")]
#[case(json!({"action_requests": [{"name": "delete", "args": {"n": 7}}], "review_configs": []}), "delete {\"n\":7}")]
#[case(json!({"action_requests": [{"name": "delete", "args": {}, "description": "Delete 7?"}]}), "Delete 7?")]
#[case(json!({"account": 7}), "{\"account\":7}")]
fn finds_the_question_of_an_interrupt(#[case] value: Value, #[case] expected: &str) {
    let interrupts = json!([{"value": value, "id": "i"}]);
    let values = [
        json!({"messages": [{"type": "human", "content": "x"}], "__interrupt__": interrupts}),
        json!({"values": {"messages": []}, "next": ["approve"], "tasks": [{"id": "t", "interrupts": interrupts}]}),
        json!([{"event": "metadata", "data": {"run_id": "r"}}, {"event": "updates", "data": {"__interrupt__": interrupts}}]),
    ];
    for value in values {
        let approval = read(&value).approval.expect("asked");
        assert_eq!((approval.question.as_str(), approval.id.as_deref()), (expected, Some("i")), "{value}");
    }
}

#[test]
fn sums_the_usage_of_streamed_messages_of_langgraph() {
    let chunk = |content: &str, usage: Value| json!({"event": "messages", "data": [{"type": "AIMessageChunk", "id": "m", "content": content, "usage_metadata": usage}, {}]});
    let reply = read(&json!([
        chunk("", json!({"input_tokens": 10, "output_tokens": 0, "total_tokens": 10})),
        chunk("Hel", Value::Null),
        chunk("lo", json!({"input_tokens": 0, "output_tokens": 2, "total_tokens": 2}))
    ]));
    assert_eq!(reply.response(), "Hello");
    assert_eq!(reply.usage, Some(Usage { input_tokens: Some(10), output_tokens: Some(2), ..Usage::default() }));
}

#[test]
fn joins_the_chunks_of_an_artifact() {
    let artifact = |id: &str, text: &str, append: bool| {
        json!({"jsonrpc": "2.0", "id": 1, "result": {"kind": "artifact-update", "taskId": "t", "contextId": "c", "append": append,
            "artifact": {"artifactId": id, "parts": [{"kind": "text", "text": text}]}}})
    };
    let status = |state: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "result": {"kind": "status-update", "taskId": "t", "contextId": "c", "final": true,
            "status": {"state": state, "message": {"role": "agent", "parts": [{"kind": "text", "text": "status"}]}}}})
    };
    let events =
        [artifact("a", "Or", false), artifact("b", "Paris", false), artifact("a", "der", true), status("completed")];
    let reply = read(&json!(events));
    assert_eq!((reply.response(), reply.conversation_id.as_deref()), ("Order\nParis", Some("c")));
    assert!(reply.is_complete && reply.calls_unreported);
    for (state, error) in [("failed", Some("status")), ("canceled", Some("status")), ("working", None)] {
        let reply = read(&json!([artifact("a", "Or", false), status(state)]));
        assert_eq!(reply.error.as_deref(), error, "{state}");
        assert_eq!(reply.is_complete, error.is_some(), "{state}");
    }
}

#[test]
fn distinguishes_parallel_calls_of_dify() {
    let thought = |observation: &str| {
        json!({"event": "agent_thought", "id": "1", "task_id": "t", "conversation_id": "c", "thought": "", "tool": "a;b",
            "tool_input": "{\"a\": {\"n\": 1}, \"b\": {\"n\": 2}}", "observation": observation})
    };
    let reply = read(&json!([
        thought(""),
        thought("{\"a\": \"one\", \"b\": \"two\"}"),
        {"event": "agent_message", "task_id": "t", "conversation_id": "c", "answer": "Done"},
        {"event": "message_replace", "task_id": "t", "conversation_id": "c", "answer": "Hidden"},
        {"event": "message_end", "task_id": "t", "conversation_id": "c",
         "metadata": {"usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_price": "0.5", "currency": "USD"}}}
    ]));
    assert_eq!(calls(&reply), [("a".to_owned(), json!({"n": 1})), ("b".to_owned(), json!({"n": 2}))]);
    assert_eq!(outcomes(&reply), [(None, Some(json!("one"))), (None, Some(json!("two")))]);
    assert_eq!((reply.response(), reply.usage.as_ref().and_then(|usage| usage.cost_usd)), ("Hidden", Some(0.5)));
}

#[test]
fn joins_text_blocks_that_citations_split() {
    let reply = read(&json!({"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": [
        {"type": "text", "text": "I look. "},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "text", "text": "It is "}, {"type": "text", "text": "18 degrees"}, {"type": "text", "text": "."}]}));
    assert_eq!(reply.response(), "I look. \nIt is 18 degrees.");
    assert_eq!(outcomes(&reply), [(Some(true), Some(json!([])))]);
}

#[test]
fn reports_why_a_response_is_incomplete() {
    let reply = read(
        &json!({"object": "response", "id": "r", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hel"}]}]}),
    );
    assert_eq!((reply.response(), reply.stop_reason.as_deref()), ("Hel", Some("max_output_tokens")));
    let running = read(&json!({"object": "response", "id": "r", "status": "in_progress", "output": []}));
    assert!(!running.is_complete);
}

#[test]
fn merges_the_replies_before_and_after_an_approval() {
    let asked = read(&json!([
        {"type": "start-step"}, {"type": "text-delta", "id": "t", "delta": "I look"},
        {"type": "tool-input-available", "toolCallId": "1", "toolName": "find", "input": {}},
        {"type": "tool-output-available", "toolCallId": "1", "output": "found"},
        {"type": "start-step"},
        {"type": "tool-input-available", "toolCallId": "2", "toolName": "delete", "input": {"n": 7}},
        {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "2"},
        {"type": "finish", "messageMetadata": {"usage": {"inputTokens": 1, "outputTokens": 2}}}
    ]));
    let later = read(&json!([
        {"type": "tool-output-available", "toolCallId": "2", "output": "gone"},
        {"type": "start-step"}, {"type": "text-delta", "id": "t", "delta": "Deleted"},
        {"type": "finish", "messageMetadata": {"usage": {"inputTokens": 10, "outputTokens": 20}}}
    ]));
    assert_eq!(later.late_results.len(), 1);
    let turn = asked.followed_by(later);
    assert_eq!(calls(&turn), [("find".to_owned(), json!({})), ("delete".to_owned(), json!({"n": 7}))]);
    assert_eq!(outcomes(&turn)[1], (Some(true), Some(json!("gone"))));
    assert_eq!((turn.response(), turn.approval.is_some(), turn.late_results.len()), ("Deleted", false, 0));
    assert_eq!(turn.usage, Some(Usage { input_tokens: Some(11), output_tokens: Some(22), ..Usage::default() }));
}

#[test]
fn detects_the_protocol_of_named_events() {
    let message =
        json!({"kind": "message", "role": "agent", "messageId": "m", "parts": [{"kind": "text", "text": "Hi"}]});
    let reply = read(&json!([{"event": "message", "data": message}]));
    assert_eq!((reply.protocol, reply.response()), ("a2a", "Hi"));
}
