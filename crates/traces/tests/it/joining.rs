//! How spans become steps and tool spans are joined with calls, including pitfalls known from other importers.

use karat_traces::{Role, Span, assemble};
use rstest::rstest;
use serde_json::{Value, json};

use crate::spans::{at, document, event, parts, render, span};

#[expect(clippy::needless_pass_by_value, reason = "tables of values are easier to read without borrowing each")]
fn chat(names: &str, second: i64, input: Value, output: Value) -> Span {
    span(
        names,
        second,
        json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": input, "gen_ai.output.messages": output}),
    )
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!([{"role": "assistant", "content": text}])
}

#[expect(clippy::needless_pass_by_value, reason = "tables of values are easier to read without borrowing each")]
fn calls(id: Option<&str>, name: &str, arguments: Value) -> Value {
    let mut call = json!({"type": "tool_call", "name": name, "arguments": arguments});
    if let Some(id) = id {
        call["id"] = json!(id);
    }
    json!([{"role": "assistant", "parts": [call]}])
}

fn tool(names: &str, second: i64, name: &str, attributes: Value) -> Span {
    let mut span = span(names, second, attributes);
    span.attributes.insert("gen_ai.operation.name".to_owned(), json!("execute_tool"));
    span.attributes.insert("gen_ai.tool.name".to_owned(), json!(name));
    span
}

#[test]
fn nested_spans_of_one_call_are_one_step() {
    let input = json!([user("Hi")]);
    let document = document([
        span("agent", 0, json!({"gen_ai.operation.name": "invoke_agent"})),
        span(
            "framework/agent",
            1,
            json!({"openinference.span.kind": "LLM", "input.value": "Hi", "output.value": "Hello", "llm.token_count.prompt": 5}),
        ),
        span("between/framework", 1, json!({})),
        span(
            "provider/between",
            1,
            json!({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 5, "gen_ai.input.messages": input, "gen_ai.output.messages": assistant("Hello")}),
        ),
    ]);
    assert_eq!(render(&document), "user: Hi\n> Hello");
    assert_eq!(document.usage.and_then(|usage| usage.input_tokens), Some(5));
}

#[test]
fn overlapping_spans_with_the_same_response_id_are_one_step() {
    let two = ["a", "b"].map(|name| {
        let mut span = chat(name, 1, json!([user("Hi")]), assistant("Hello"));
        span.attributes.insert("gen_ai.response.id".to_owned(), json!("resp-1"));
        span
    });
    assert_eq!(document(two).steps.len(), 1);
}

#[test]
fn parallel_agents_get_their_own_results() {
    let task = |agent: &str| user(&format!("Task of {agent}"));
    let of = |agent: &str, at: i64| {
        let call = calls(Some("call_0"), "f", json!({"who": agent}));
        let result = json!({"role": "tool", "tool_call_id": "call_0", "content": format!("Result of {agent}")});
        [
            span(agent, at, json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent})),
            chat(&format!("{agent} 1/{agent}"), at + 1, json!([task(agent)]), call.clone()),
            chat(&format!("{agent} 2/{agent}"), at + 4, json!([task(agent), call[0], result]), assistant("Done.")),
        ]
    };
    let document = document(of("one", 0).into_iter().chain(of("two", 1)));
    let results: Vec<&Value> =
        document.steps.iter().flat_map(|step| &step.tool_calls).map(|call| &call.result).collect();
    assert_eq!(results, ["Result of one", "Result of two"]);
}

#[test]
fn results_without_ids_are_joined_in_call_order() {
    let part = |city: &str| json!({"type": "tool_call", "name": "f", "arguments": {"city": city}});
    let call = json!([{"role": "assistant", "parts": [part("Ulm"), part("Bonn")]}]);
    let result = |text: &str| json!({"role": "tool", "content": text});
    let document = document([
        chat("one", 1, json!([user("Hi")]), call.clone()),
        tool(
            "execute_tool f",
            3,
            "f",
            json!({"gen_ai.tool.call.arguments": {"city": "Ulm"}, "gen_ai.tool.call.result": "S1"}),
        ),
        chat("two", 5, json!([user("Hi"), call[0], result("R1"), result("R2")]), assistant("Done.")),
    ]);
    let results: Vec<&Value> = document.steps[0].tool_calls.iter().map(|call| &call.result).collect();
    assert_eq!(results, ["S1", "R2"]);
}

#[test]
fn a_successful_retry_clears_the_error_of_a_tool() {
    let mut failed = tool("try 1", 3, "f", json!({"gen_ai.tool.call.id": "c1"}));
    failed.error = Some("no net".to_owned());
    let document = document([
        chat("one", 1, json!([user("Hi")]), calls(Some("c1"), "f", json!({}))),
        failed,
        tool("try 2", 5, "f", json!({"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "fine"})),
    ]);
    let call = &document.steps[0].tool_calls[0];
    assert_eq!((&call.result, &call.error), (&json!("fine"), &None));
}

#[rstest]
#[case::at_the_same_time(Some(at(1)))]
#[case::unknown_time(None)]
fn the_step_with_the_shorter_history_comes_first(#[case] start: Option<jiff::Timestamp>) {
    let history = json!([user("Hi"), {"role": "assistant", "content": "Hello"}, user("Bye")]);
    let spans = [chat("z", 1, json!([user("Hi")]), assistant("Hello")), chat("a", 1, history, assistant("Bye."))];
    let document = document(spans.map(|span| Span { start, end: start, ..span }));
    assert_eq!(render(&document), "user: Hi\n> Hello\nuser: Bye\n> Bye.");
}

#[test]
fn consecutive_spans_with_the_same_response_id_are_two_steps() {
    let first = chat("a", 1, json!([user("Hi")]), assistant("Hello"));
    let history = json!([user("Hi"), {"role": "assistant", "content": "Hello"}, user("Wipe it")]);
    let two = [first, chat("b", 5, history, calls(Some("c1"), "wipe", json!({"all": true})))].map(|mut span| {
        // Ollama reuses a thousand ids.
        span.attributes.insert("gen_ai.response.id".to_owned(), json!("chatcmpl-417"));
        span
    });
    let document = document(two);
    assert_eq!(render(&document), "user: Hi\n> Hello\nuser: Wipe it\n> \n> call c1 wipe({\"all\":true}) -> null");
}

#[test]
fn a_model_span_around_several_calls_is_not_a_step() {
    let document = document([
        chat("loop", 0, json!([user("Hi")]), assistant("Bye")),
        chat("one/loop", 1, json!([user("Hi")]), assistant("Hello")),
        chat(
            "two/loop",
            3,
            json!([user("Hi"), {"role": "assistant", "content": "Hello"}, user("Bye")]),
            assistant("Bye"),
        ),
    ]);
    assert_eq!(render(&document), "user: Hi\n> Hello\nuser: Bye\n> Bye");
}

#[test]
fn requests_without_content_inside_a_call_are_not_steps() {
    let bare = |names: &str, second| span(names, second, json!({"gen_ai.operation.name": "chat"}));
    let document = document([
        chat("call", 0, json!([user("Hi")]), assistant("Hello")),
        bare("try 1/call", 1),
        bare("try 2/call", 2),
    ]);
    assert_eq!(render(&document), "user: Hi\n> Hello");
}

#[test]
fn an_agent_called_as_a_tool_has_its_own_steps() {
    let document = document([
        chat(
            "main",
            0,
            json!([{"role": "system", "content": "Delegate."}, user("Hi")]),
            calls(Some("c1"), "helper", json!({"q": "Hi"})),
        ),
        tool("tool/main", 1, "helper", json!({"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "done"})),
        span("helper/tool", 1, json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"})),
        chat("inner/helper", 2, json!([{"role": "system", "content": "Help."}, user("Hi")]), assistant("done")),
        chat(
            "last",
            5,
            json!([{"role": "system", "content": "Delegate."}, user("Hi"), {"role": "tool", "tool_call_id": "c1", "content": "done"}]),
            assistant("Done."),
        ),
    ]);
    assert_eq!(
        render(&document),
        "system: Delegate.\nuser: Hi\n> \n> call c1 helper({\"q\":\"Hi\"}) -> \"done\"\nsystem: Help.\nuser: Hi\n> done\ntool of c1: done\n> Done."
    );
    assert_eq!(document.steps[1].agent.as_deref(), Some("helper"));
}

#[test]
fn steps_are_ordered_by_start_time() {
    let document = document([
        chat("b", 1, json!([user("one")]), assistant("1")),
        chat("a", 4, json!([user("two")]), assistant("2")),
    ]);
    assert_eq!(render(&document), "user: one\n> 1\nuser: two\n> 2");
}

#[test]
fn tool_spans_without_ids_are_joined_by_name_and_arguments() {
    let weather = |city: &str| json!({"type": "tool_call", "name": "weather", "arguments": {"city": city}});
    let asks = json!([{"role": "assistant", "parts": [weather("Ulm"), weather("Bonn")]}]);
    let document = document([
        chat("one", 0, json!([user("Rain?")]), asks),
        tool(
            "t1",
            1,
            "weather",
            json!({"gen_ai.tool.call.arguments": {"city": "Bonn"}, "gen_ai.tool.call.result": "dry"}),
        ),
        tool(
            "t2",
            2,
            "weather",
            json!({"gen_ai.tool.call.arguments": {"city": "Ulm"}, "gen_ai.tool.call.result": "wet"}),
        ),
    ]);
    assert_eq!(
        render(&document),
        "user: Rain?\n> \n> call weather({\"city\":\"Ulm\"}) -> \"wet\"\n> call weather({\"city\":\"Bonn\"}) -> \"dry\""
    );
}

#[test]
fn results_without_ids_and_spans_are_joined_in_order() {
    let weather = |city: &str| json!({"type": "tool_call", "name": "weather", "arguments": {"city": city}});
    let asks = json!({"role": "assistant", "parts": [weather("Ulm"), weather("Bonn")]});
    let answer = |text: &str| json!({"role": "tool", "content": text});
    let document = document([
        chat("one", 0, json!([user("Rain?")]), json!([asks])),
        chat("two", 2, json!([user("Rain?"), asks, answer("wet"), answer("dry")]), assistant("In Ulm.")),
    ]);
    let results: Vec<_> = document.steps[0].tool_calls.iter().map(|call| call.result.clone()).collect();
    assert_eq!(results, [json!("wet"), json!("dry")]);
}

#[test]
fn a_tool_span_without_a_call_belongs_to_the_step_before_it() {
    let document = document([
        chat("one", 0, json!([user("Rain?")]), assistant("Let me see.")),
        tool(
            "t",
            2,
            "weather",
            json!({"gen_ai.tool.call.id": "c9", "gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": "wet"}),
        ),
        chat("two", 4, json!([user("Rain?")]), assistant("Yes.")),
    ]);
    assert_eq!(render(&document), "user: Rain?\n> Let me see.\n> call c9 weather({}) -> \"wet\"\nuser: Rain?\n> Yes.");
}

#[test]
fn a_call_recorded_in_several_places_counts_once() {
    let asks = calls(Some("c1"), "weather", json!({}));
    let document = document([
        chat("one", 0, json!([user("Rain?")]), asks.clone()),
        tool("framework", 1, "weather", json!({"gen_ai.tool.call.id": "c1"})),
        tool("client/framework", 1, "tools/call", json!({"gen_ai.tool.call.result": "raw"})),
        tool("again", 1, "weather", json!({"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "wet"})),
        chat(
            "two",
            3,
            json!([user("Rain?"), asks[0], {"role": "tool", "tool_call_id": "c1", "content": "wet"}]),
            assistant("Yes."),
        ),
    ]);
    assert_eq!(render(&document), "user: Rain?\n> \n> call c1 weather({}) -> \"wet\"\ntool of c1: wet\n> Yes.");
}

#[rstest]
#[case::status(|span: &mut Span| span.error = Some("no such city".to_owned()), "no such city")]
#[case::status_without_message(|span: &mut Span| span.error = Some(String::new()), "failed, without a message")]
#[case::error_type(|span: &mut Span| { span.attributes.insert("error.type".to_owned(), json!("timeout")); }, "timeout")]
#[case::exception(
    |span: &mut Span| span.events.push(event("exception", json!({"exception.type": "KeyError", "exception.message": "Ulm"}))),
    "KeyError: Ulm"
)]
#[case::exception_message_with_empty_status(
    |span: &mut Span| {
        span.error = Some(String::new());
        span.events.push(event("exception", json!({"exception.message": "Ulm"})));
    },
    "Ulm"
)]
#[case::mcp_error_result(
    |span: &mut Span| {
        span.attributes.insert("gen_ai.tool.call.result".to_owned(), json!({"isError": true, "content": [{"type": "text", "text": "no"}]}));
    },
    "no"
)]
fn errors_are_assigned_to_the_failed_call(#[case] fail: fn(&mut Span), #[case] expected: &str) {
    let mut failed = tool("t", 1, "weather", json!({"gen_ai.tool.call.id": "c1"}));
    fail(&mut failed);
    let document =
        document([chat("one", 0, json!([user("Rain?")]), calls(Some("c1"), "weather", json!({}))), failed.clone()]);
    assert_eq!(document.steps[0].tool_calls[0].error.as_deref(), Some(expected));
    assert_eq!((document.steps[0].error.as_deref(), document.error.as_deref()), (None, None));
}

#[test]
fn a_failed_model_call_is_a_failed_step() {
    let mut failed = span(
        "one",
        0,
        json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": [user("Hi")], "error.type": "429"}),
    );
    failed.error = Some("rate limit".to_owned());
    let document = document([failed, chat("two", 2, json!([user("Hi")]), assistant("Hello"))]);
    assert_eq!(render(&document), "user: Hi\n> \n> failed: rate limit\nuser: Hi\n> Hello");
}

#[test]
fn reports_agent_errors_once_and_ignores_other_spans() {
    let mut agent = span("agent", 0, json!({"gen_ai.operation.name": "invoke_agent"}));
    agent.error = Some("out of turns".to_owned());
    let mut http_request = span("GET/agent", 1, json!({"http.response.status_code": 404}));
    http_request.error = Some("Not Found".to_owned());
    let document = document([agent, http_request, chat("one/agent", 2, json!([user("Hi")]), assistant("Hello"))]);
    assert_eq!(render(&document), "user: Hi\n> Hello\nfailed: out of turns");
}

#[test]
fn without_model_spans_the_agent_is_the_step() {
    let document = document([
        span("POST", 0, json!({})),
        span(
            "agent/POST",
            1,
            json!({"openinference.span.kind": "AGENT", "input.value": "Rain?", "output.value": "Yes."}),
        ),
        tool("t/agent", 2, "weather", json!({"gen_ai.tool.call.result": "wet"})),
    ]);
    assert_eq!(render(&document), "user: Rain?\n> Yes.\n> call weather({}) -> \"wet\"");
    assert_eq!(document.name.as_deref(), Some("POST"));
}

#[test]
fn without_agent_spans_the_root_is_the_step() {
    let document = document([
        span(
            "chain",
            0,
            json!({"openinference.span.kind": "CHAIN", "input.value": "{\"city\": \"Ulm\"}", "output.value": "[1, 2]"}),
        ),
        span("retriever/chain", 1, json!({"openinference.span.kind": "RETRIEVER"})),
    ]);
    assert_eq!(render(&document), "value: {\"city\":\"Ulm\"}\n> \n> value: [1,2]");
}

#[test]
fn a_conversation_in_an_agent_span_yields_one_step_per_answer() {
    let call = json!({"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": "{}"}]});
    let all = json!([
        {"role": "user", "parts": [{"type": "text", "content": "before"}]},
        {"role": "user", "parts": [{"type": "text", "content": "Rain?"}]},
        call,
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "name": "weather", "result": "wet"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]},
    ]);
    let expected = "user: Rain?\n> \n> call c1 weather({}) -> \"wet\"\ntool of c1: wet\n> Yes.";
    let agent =
        json!({"agent_name": "a", "pydantic_ai.all_messages": all.to_string(), "pydantic_ai.new_message_index": 1});
    assert_eq!(render(&document([span("agent run", 0, agent.clone())])), expected);
    // Model spans without content do not empty the conversation.
    let bare = |names: &str, second| {
        span(names, second, json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}))
    };
    assert_eq!(
        render(&document([span("agent run", 0, agent), bare("1/agent run", 1), bare("2/agent run", 2)])),
        expected
    );
}

#[test]
fn fills_in_content_from_the_agent_span() {
    let bare = |names: &str, second| {
        span(names, second, json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}))
    };
    let document = document([
        span(
            "agent",
            0,
            json!({"gen_ai.operation.name": "invoke_agent", "input.value": "Rain?", "output.value": "Yes."}),
        ),
        bare("1/agent", 1),
        tool("t/agent", 2, "weather", json!({"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "wet"})),
        bare("2/agent", 3),
    ]);
    assert_eq!(render(&document), "user: Rain?\n> \n> call c1 weather({}) -> \"wet\"\n> Yes.");
}

#[test]
fn fills_in_an_output_from_the_next_input() {
    let mut first = chat("one", 0, json!([user("Rain?")]), json!([]));
    first.attributes.remove("gen_ai.output.messages");
    let asks = &calls(Some("c1"), "weather", json!({}))[0];
    let document = document([
        first,
        chat(
            "two",
            3,
            json!([user("Rain?"), asks, {"role": "tool", "tool_call_id": "c1", "content": "wet"}]),
            assistant("Yes."),
        ),
    ]);
    assert_eq!(render(&document), "user: Rain?\n> \n> call c1 weather({}) -> \"wet\"\ntool of c1: wet\n> Yes.");
}

#[test]
fn durations_of_nested_spans_are_not_added() {
    let document = document([
        chat("one", 0, json!([user("Rain?")]), calls(Some("c1"), "weather", json!({}))),
        tool("outer", 1, "weather", json!({"gen_ai.tool.call.id": "c1"})),
        tool("inner/outer", 1, "weather", json!({})),
    ]);
    assert_eq!(document.steps[0].tool_calls.len(), 1);
    assert_eq!(document.steps[0].tool_calls[0].duration_ms, Some(1000.0));
    assert_eq!((document.started_at, document.ended_at), (Some(at(0)), Some(at(2))));
}

#[test]
fn the_message_is_from_the_user_not_the_system_prompt() {
    let document = document([chat(
        "one",
        0,
        json!([user("Rain?"), {"role": "system", "content": "Be brief."}]),
        assistant("Yes."),
    )]);
    assert_eq!(document.steps[0].input.message.as_deref(), Some("Rain?"));
}

#[test]
fn embeddings_and_retrievals_are_not_steps() {
    let other = |name: &str| {
        span(name, 0, json!({"gen_ai.operation.name": name, "gen_ai.request.model": "m", "gen_ai.system": "s"}))
    };
    let document =
        document([other("embeddings"), other("retrieval"), chat("one", 1, json!([user("Hi")]), assistant("Hello"))]);
    assert_eq!(document.steps.len(), 1);
}

#[test]
fn the_role_from_the_source_takes_precedence() {
    let mut generation = span("step", 0, json!({"openinference.span.kind": "CHAIN"}));
    (generation.role, generation.input, generation.output) =
        (Some(Role::Model), Some(user("Hi")), Some(assistant("Hello")));
    assert_eq!(render(&document([generation])), "user: Hi\n> Hello");
}

#[test]
fn a_repeated_span_is_not_duplicated() {
    let span = chat("one", 0, json!([user("Hi")]), assistant("Hello"));
    let mut early = span.clone();
    (early.end, early.attributes) = (None, serde_json::Map::new());
    let expected = parts([span.clone()]);
    for order in [vec![span.clone(), early.clone()], vec![early, span.clone(), span]] {
        let mut merged = parts([]);
        for span in order {
            merged.merge(parts([span]));
        }
        assert_eq!(merged, expected);
        assert_eq!(assemble(&merged), assemble(&expected));
    }
}

#[test]
fn a_nested_tool_span_does_not_match_another_call() {
    let two = json!([{"role": "assistant", "parts": [
        {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {}},
        {"type": "tool_call", "id": "c2", "name": "weather", "arguments": {}},
    ]}]);
    let document = document([
        chat("one", 0, json!([user("Rain?")]), two),
        tool("first", 1, "weather", json!({"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "wet"})),
        tool("first's client/first", 1, "weather", json!({"gen_ai.tool.call.result": "raw"})),
        tool("second", 3, "weather", json!({"gen_ai.tool.call.id": "c2", "gen_ai.tool.call.result": "dry"})),
    ]);
    let results: Vec<_> = document.steps[0].tool_calls.iter().map(|call| call.result.clone()).collect();
    assert_eq!(results, [json!("wet"), json!("dry")]);
}

/// Some models number their calls from zero in each answer.
#[test]
fn distinguishes_reused_call_ids() {
    let asks = |city: &str| calls(Some("call_0"), "weather", json!({"city": city}))[0].clone();
    let answer = |text: &str| json!({"role": "tool", "tool_call_id": "call_0", "content": text});
    let chats = || {
        [
            chat("one", 0, json!([user("Rain?")]), json!([asks("Ulm")])),
            chat("two", 2, json!([user("Rain?"), asks("Ulm"), answer("wet")]), json!([asks("Bonn")])),
            chat(
                "three",
                4,
                json!([user("Rain?"), asks("Ulm"), answer("wet"), asks("Bonn"), answer("dry")]),
                assistant("In Ulm."),
            ),
        ]
    };
    let tools = [("t1", 1, "Ulm", "wet"), ("t2", 3, "Bonn", "dry")].map(|(name, second, city, result)| {
        tool(name, second, "weather", json!({"gen_ai.tool.call.id": "call_0", "gen_ai.tool.call.arguments": {"city": city}, "gen_ai.tool.call.result": result}))
    });
    let expected = "user: Rain?\n> \n> call call_0 weather({\"city\":\"Ulm\"}) -> \"wet\"\ntool of call_0: wet\n> \n> call call_0 weather({\"city\":\"Bonn\"}) -> \"dry\"\ntool of call_0: dry\n> In Ulm.";
    assert_eq!(render(&document(chats())), expected);
    assert_eq!(render(&document(chats().into_iter().chain(tools))), expected);
}

#[test]
fn overlapping_spans_with_the_same_calls_are_one_step() {
    let asks = || calls(Some("c1"), "weather", json!({}));
    let document =
        document([chat("a", 0, json!([user("Rain?")]), asks()), chat("b", 0, json!([user("Rain?")]), asks())]);
    assert_eq!(render(&document), "user: Rain?\n> \n> call c1 weather({}) -> null");
}

#[test]
fn a_failed_attempt_inside_a_successful_call_is_not_an_error() {
    let mut failed = span("try 1/call", 0, json!({"gen_ai.operation.name": "chat"}));
    failed.error = Some("503".to_owned());
    let document = document([
        chat("call", 0, json!([user("Hi")]), assistant("Hello")),
        failed,
        span("try 2/call", 1, json!({"gen_ai.operation.name": "chat"})),
    ]);
    assert_eq!(render(&document), "user: Hi\n> Hello");
}

#[test]
fn truncated_messages_are_kept_as_text() {
    let cut = "[{\"role\": \"user\", \"parts\": [{\"type\": \"text\", \"content\": \"Rain in";
    let document = document([span("chat", 0, json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": cut}))]);
    assert_eq!(document.steps[0].input.message.as_deref(), Some(cut));
}

#[test]
fn repeated_messages_are_recognised_in_another_form() {
    // The calls are in one answer first, then in two messages without ids; only the tool spans have ids.
    let call = |city: &str| json!({"type": "tool_call", "name": "weather", "arguments": {"city": city}});
    let message = |calls: Vec<Value>| json!({"role": "assistant", "parts": calls});
    let result = |text: &str| json!({"role": "tool", "name": "weather", "content": text});
    let ran = |name: &str, second: i64, city: &str, result: &str| {
        let id = format!("id-{city}");
        tool(
            name,
            second,
            "weather",
            json!({"gen_ai.tool.call.id": id, "gen_ai.tool.call.arguments": {"city": city}, "gen_ai.tool.call.result": result}),
        )
    };
    let history =
        json!([user("Rain?"), message(vec![call("Ulm")]), result("wet"), message(vec![call("Bonn")]), result("dry")]);
    let document = document([
        chat("one", 0, json!([user("Rain?")]), json!([message(vec![call("Ulm"), call("Bonn")])])),
        ran("t1", 1, "Ulm", "wet"),
        ran("t2", 2, "Bonn", "dry"),
        chat("two", 4, history, assistant("In Ulm.")),
    ]);
    assert_eq!(
        render(&document),
        "user: Rain?\n> \n> call id-Ulm weather({\"city\":\"Ulm\"}) -> \"wet\"\n> call id-Bonn weather({\"city\":\"Bonn\"}) -> \"dry\"\ntool: wet\ntool: dry\n> In Ulm."
    );
}

#[rstest]
#[case::roles_in_lines("system: Be brief.\nuser: Rain?\nIn Ulm.", "system: Be brief.\nuser: Rain?\nIn Ulm.\n> ")]
#[case::no_user("system: Be brief.", "user: system: Be brief.\n> ")]
#[case::no_leading_role("Hi\nuser: Rain?", "user: Hi\nuser: Rain?\n> ")]
fn parses_roles_in_a_text_prompt(#[case] prompt: &str, #[case] expected: &str) {
    let document = document([span("chat", 0, json!({"gen_ai.operation.name": "chat", "gen_ai.prompt": prompt}))]);
    assert_eq!(render(&document), expected);
    let message_count = if expected.starts_with("system") { 2 } else { 1 };
    assert_eq!(document.steps[0].input.messages.len(), message_count);
}
