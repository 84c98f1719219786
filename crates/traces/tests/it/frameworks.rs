//! Peculiarities of frameworks and instrumentations, on spans.

use karat_traces::Span;
use rstest::rstest;
use serde_json::{Value, json};

use crate::spans::{document, render, span};

fn model(names: &str, second: i64, calls: &Value) -> Span {
    let output = json!([{"role": "assistant", "tool_calls": calls}]);
    let input = json!([{"role": "user", "content": names}]);
    span(
        names,
        second,
        json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": input, "gen_ai.output.messages": output}),
    )
}

fn agent(names: &str, second: i64) -> Span {
    span(names, second, json!({"openinference.span.kind": "AGENT"}))
}

fn tool(names: &str, second: i64, input: &Value, output: &Value) -> Span {
    let attributes = json!({"openinference.span.kind": "TOOL", "tool.name": "final_answer", "input.value": input.to_string(), "output.value": output});
    span(names, second, attributes)
}

fn answer(text: &str) -> Value {
    json!([{"function": {"name": "final_answer", "arguments": {"answer": text}}}])
}

#[test]
fn tool_spans_of_nested_agents_belong_to_their_own_agent() {
    let document = document([
        agent("manager", 0),
        model("m1/manager", 1, &answer("outer")),
        agent("helper/manager", 2),
        model("m2/helper", 3, &answer("inner")),
        // The arguments differ from those of both calls, as code passes them in another form.
        tool(
            "t2/helper",
            4,
            &json!({"args": [], "kwargs": {"answer": "inner!"}, "sanitize_inputs_outputs": false}),
            &json!("of the helper"),
        ),
        tool("t1/manager", 6, &json!({"answer": "outer!"}), &json!("of the manager")),
    ]);
    let results: Vec<_> = document.steps.iter().map(|step| step.tool_calls[0].result.clone()).collect();
    assert_eq!(results, [json!("of the manager"), json!("of the helper")]);
}

#[test]
fn a_tool_span_of_another_agent_needs_the_same_arguments() {
    let document = document([
        agent("manager", 0),
        agent("helper/manager", 2),
        model("m2/helper", 3, &answer("inner")),
        tool("t1/manager", 6, &json!({"answer": "outer"}), &json!("done")),
    ]);
    let calls: Vec<_> =
        document.steps[0].tool_calls.iter().map(|call| (&call.arguments["answer"], &call.result)).collect();
    assert_eq!(calls, [(&json!("inner"), &Value::Null), (&json!("outer"), &json!("done"))]);
}

#[test]
fn a_tool_span_before_the_model_call_is_not_its_execution() {
    let document = document([
        agent("a", 0),
        tool("t/a", 1, &json!({"answer": "x"}), &json!("early")),
        model("m/a", 3, &answer("x")),
    ]);
    let results: Vec<_> = document.steps[0].tool_calls.iter().map(|call| call.result.clone()).collect();
    assert_eq!(results, [Value::Null, json!("early")]);
}

#[rstest]
#[case::serialised(json!({"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "ToolMessage"], "kwargs": {"content": "sunny", "tool_call_id": "c1"}}))]
#[case::wrapped(json!({"output": {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "ToolMessage"], "kwargs": {"content": "sunny", "tool_call_id": "c1"}}}))]
#[case::data(json!({"type": "tool", "data": {"content": "sunny", "tool_call_id": "c1"}}))]
#[case::plain(json!({"type": "tool", "content": "sunny", "tool_call_id": "c1"}))]
#[case::strands(json!([{"text": "sunny"}]))]
fn unwraps_tool_results(#[case] output: Value) {
    let document = document([
        agent("a", 0),
        model("m/a", 1, &json!([{"id": "c1", "function": {"name": "final_answer", "arguments": {"answer": "x"}}}])),
        tool("t/a", 2, &json!({"answer": "x"}), &json!(output.to_string())),
    ]);
    assert_eq!(document.steps[0].tool_calls.len(), 1);
    assert_eq!(document.steps[0].tool_calls[0].result, json!("sunny"));
}

#[test]
fn a_langchain_tool_message_can_be_an_error() {
    let output = json!({"type": "tool", "content": "no net", "tool_call_id": "c1", "status": "error"});
    let document = document([
        model("m", 1, &json!([{"id": "c1", "function": {"name": "final_answer", "arguments": {}}}])),
        tool("t", 2, &json!({}), &json!(output.to_string())),
    ]);
    assert_eq!(document.steps[0].tool_calls[0].error.as_deref(), Some("no net"));
}

#[test]
fn results_with_unknown_ids_are_joined_in_order() {
    let call = |id: &str| json!({"id": id, "function": {"name": "final_answer", "arguments": {}}});
    let mut second = model("m2", 5, &json!([]));
    second.attributes.insert(
        "gen_ai.input.messages".to_owned(),
        json!([{"role": "user", "content": "Hi"},
            {"type": "function_call_output", "call_id": "call_1", "output": "one"},
            {"type": "function_call_output", "call_id": "call_2", "output": "two"}]),
    );
    let document = document([model("m1", 1, &json!([call("fc_1"), call("fc_2")])), second]);
    let results: Vec<_> = document.steps[0].tool_calls.iter().map(|call| call.result.clone()).collect();
    assert_eq!(results, [json!("one"), json!("two")]);
}

#[test]
fn finds_errors_of_results_in_the_raw_request() {
    let request = json!({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": "no net"}]}]});
    let document = document([
        model("m1", 1, &json!([{"id": "c1", "function": {"name": "rain", "arguments": {}}}])),
        span(
            "m2",
            3,
            json!({"openinference.span.kind": "LLM", "input.value": request.to_string(),
            "llm.input_messages.0.message.role": "tool", "llm.input_messages.0.message.tool_call_id": "c1",
            "llm.input_messages.0.message.content": "no net",
            "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Sorry"}),
        ),
    ]);
    assert_eq!(document.steps[0].tool_calls[0].error.as_deref(), Some("no net"));
}

#[rstest]
#[case::llama_index(json!({"openinference.span.kind": "LLM", "llm.prompts": ["Rain?"], "output.value": "No"}))]
#[case::llama_index_indexed(json!({"openinference.span.kind": "LLM", "llm.prompts.0.prompt.text": "Rain?", "output.value": "No"}))]
#[case::langsmith(json!({"langsmith.span.kind": "llm", "gen_ai.prompt": "{\"input\": \"Rain?\"}", "gen_ai.completion": "{\"output\": \"No\"}"}))]
fn finds_the_user_message(#[case] attributes: Value) {
    assert_eq!(render(&document([span("m", 1, attributes)])), "user: Rain?\n> No");
}

#[test]
fn finds_the_system_prompt_of_the_agent_span() {
    let document = document([
        span(
            "a",
            0,
            json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.system_instructions": "[{\"type\": \"text\", \"content\": \"Be brief\"}]"}),
        ),
        span(
            "m/a",
            1,
            json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": [{"role": "user", "content": "Hi"}], "gen_ai.output.messages": [{"role": "assistant", "content": "Hello"}]}),
        ),
    ]);
    assert_eq!(render(&document), "system: Be brief\nuser: Hi\n> Hello");
}

#[test]
fn an_embedding_is_not_a_step() {
    let document = document([
        span("create_embedding", 0, json!({"gen_ai.system": "openai", "gen_ai.request.model": "text-embedding-3"})),
        model("m", 1, &json!([])),
    ]);
    assert_eq!(document.steps.len(), 1);
}

#[test]
fn merges_the_event_spans_of_beeai() {
    let event = |name: &str, second: i64, attributes: Value| span(name, second, attributes);
    let kind = |kind: &str, more: Value| {
        let mut attributes = json!({"openinference.span.kind": kind});
        attributes.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        attributes
    };
    let document = document([
        event(
            "backend.chat.start-3/root",
            1,
            kind(
                "LLM",
                json!({"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Who?"}),
            ),
        ),
        event(
            "backend.chat.success-3/root",
            2,
            kind(
                "LLM",
                json!({"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "I look"}),
            ),
        ),
        event("backend.chat.finish-3/root", 3, kind("LLM", json!({}))),
        event("search.wikipedia.start-12/root", 4, kind("TOOL", json!({"input.value": "{\"query\": \"Ada\"}"}))),
        event("search.wikipedia.success-12/root", 5, kind("TOOL", json!({"output.value": "a person"}))),
        event("search.wikipedia.finish-12/root", 6, kind("TOOL", json!({}))),
        agent("root", 0),
    ]);
    assert_eq!(render(&document), "user: Who?\n> I look\n> call search.wikipedia({\"query\":\"Ada\"}) -> \"a person\"");
}

#[test]
fn keeps_calls_without_a_tool_name_in_the_metadata() {
    let document = document([model("m", 1, &json!([{"id": "1", "what": "rain"}]))]);
    assert_eq!(document.metadata["unread_tool_calls"], json!([{"id": "1", "what": "rain"}]));
}
