//! Peculiarities of single vocabularies.

use rstest::rstest;
use serde_json::{Value, json};

use crate::spans::{document, event, render, span};

/// Some instrumentations encode a text result as JSON.
#[rstest]
#[case("ai.toolCall.result", "\"It is sunny\"", json!("It is sunny"))]
#[case("mlflow.spanOutputs", "\"forty\"", json!("forty"))]
#[case("gen_ai.tool.call.result", "\"{\\\"a\\\":1}\"", json!({"a": 1}))]
#[case("gen_ai.tool.call.result", "he said \"no\"", json!("he said \"no\""))]
fn unquotes_text_results(#[case] name: &str, #[case] written: &str, #[case] expected: Value) {
    let call =
        json!([{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {}}]}]);
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c1", name: written});
    let chat = json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": call});
    let document = document([span("chat", 1, chat), span("execute_tool f", 3, tool)]);
    assert_eq!(document.steps[0].tool_calls[0].result, expected);
}

/// Tools that the provider runs.
#[rstest]
#[case(
    json!({"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": {"query": "q"}}),
    json!({"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": {"found": 1}})
)]
#[case(
    json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}),
    json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": {"found": 1}})
)]
#[case(
    json!({"type": "tool_call", "id": "s1", "name": "web_search", "arguments": {"query": "q"}}),
    json!({"type": "tool_call_response", "id": "s1", "response": {"found": 1}})
)]
fn a_provider_tool_result_is_in_the_same_output(#[case] call: Value, #[case] result: Value) {
    let parts = json!([call, result, {"type": "text", "content": "Found."}]);
    let attributes = json!({
        "gen_ai.operation.name": "chat", "gen_ai.output.messages": [{"role": "assistant", "parts": parts}],
    });
    let rendered = render(&document([span("chat", 1, attributes)]));
    assert_eq!(rendered, "> Found.\n> call s1 web_search({\"query\":\"q\"}) -> {\"found\":1}");
}

#[test]
fn reads_older_openinference_call_attributes() {
    let attributes = json!({
        "openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.function_call_name": "weather",
        "llm.output_messages.0.message.function_call_arguments_json": "{\"city\":\"Ulm\"}",
    });
    let rendered = render(&document([span("llm", 1, attributes)]));
    assert_eq!(rendered, "> \n> call weather({\"city\":\"Ulm\"}) -> null");
}

#[test]
fn the_first_of_several_choices_is_the_answer() {
    let choice = |text: &str| json!({"role": "assistant", "content": text, "finish_reason": "stop"});
    let in_list = json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": [choice("A"), choice("B")]});
    let indexed = json!({
        "llm.request.type": "chat", "gen_ai.completion.0.content": "A", "gen_ai.completion.0.finish_reason": "stop",
        "gen_ai.completion.1.content": "B", "gen_ai.completion.1.finish_reason": "stop",
    });
    let answered = json!({"choices": [{"message": choice("A")}, {"message": choice("B")}]});
    let in_output = json!({"openinference.span.kind": "LLM", "output.value": answered.to_string()});
    let called = r#"[{"id": "c1", "function": {"name": "f", "arguments": "{}"}}]"#;
    let calls = json!({
        "llm.request.type": "chat",
        "gen_ai.completion.0.content": called, "gen_ai.completion.0.finish_reason": "tool_calls",
        "gen_ai.completion.1.content": called.replace("c1", "c2"), "gen_ai.completion.1.finish_reason": "tool_calls",
    });
    assert_eq!(document([span("chat", 1, calls)]).steps[0].tool_calls.len(), 2);
    let mut events = span("chat", 1, json!({"gen_ai.operation.name": "chat"}));
    let event_of =
        |index: u64, text: &str| event("gen_ai.choice", json!({"index": index, "message": choice(text).to_string()}));
    events.events = vec![event_of(0, "A"), event_of(1, "B")];
    for span in [span("chat", 1, in_list), span("chat", 1, indexed), span("chat", 1, in_output), events] {
        assert_eq!(render(&document([span.clone()])), "> A", "{span:?}");
    }
}

/// Some sources encode calls as the text of an answer. A tool definition is not a call.
#[test]
fn parses_calls_in_text_only_with_arguments() {
    let answer = |text: &str| {
        let attributes = json!({
            "llm.request.type": "chat", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Go",
            "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": text,
        });
        document([span("chat", 1, attributes)]).steps.remove(0)
    };
    let calls = r#"[{"id": "c1", "function": {"name": "weather", "arguments": "{}"}}]"#;
    assert_eq!(answer(calls).tool_calls[0].name, "weather");
    let described = r#"[{"function": {"name": "weather", "description": "tells the weather"}}]"#;
    let step = answer(described);
    assert_eq!((step.tool_calls.len(), step.output.response.as_str()), (0, described));
}
