//! The same conversation in every vocabulary: a question, a tool call, its result and an answer.

use karat_core::document::StepUsage;
use karat_core::rating::Rating;
use karat_traces::{Role, Span, assemble};
use rstest::rstest;
use serde_json::{Value, json};

use crate::spans::{at, document, event, log, parts, render, span};

/// The expected conversation.
const CONVERSATION: &str = r#"system: Be brief.
user: Rain in Ulm?
> 
> call c1 weather({"city":"Ulm"}) -> {"rain":true}
tool of c1: {"rain":true}
> Yes."#;

fn text(value: &Value) -> String {
    value.to_string()
}

/// Current OpenTelemetry attributes, with structured values or their JSON text.
fn current_otel(pack: fn(Value) -> Value) -> Vec<Span> {
    let user = json!({"role": "user", "parts": [{"type": "text", "content": "Rain in Ulm?"}]});
    let call = json!({"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Ulm"}}], "finish_reason": "tool_call"});
    let result =
        json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"rain": true}}]});
    let answer = json!({"role": "assistant", "parts": [{"type": "text", "content": "Yes."}], "finish_reason": "stop"});
    let instructions = json!([{"type": "text", "content": "Be brief."}]);
    vec![
        span("agent", 0, json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "forecaster"})),
        span(
            "chat 1/agent",
            1,
            json!({
                "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.model": "m-1",
                "gen_ai.system_instructions": pack(instructions.clone()),
                "gen_ai.input.messages": pack(json!([user])), "gen_ai.output.messages": pack(json!([call])),
                "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2, "gen_ai.usage.cache_read.input_tokens": 4,
                "gen_ai.conversation.id": "session", "user.id": "ada",
            }),
        ),
        span(
            "execute_tool weather/agent",
            3,
            json!({
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1",
                "gen_ai.tool.call.arguments": pack(json!({"city": "Ulm"})), "gen_ai.tool.call.result": pack(json!({"rain": true})),
            }),
        ),
        span(
            "chat 2/agent",
            5,
            json!({
                "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.system_instructions": pack(instructions),
                "gen_ai.input.messages": pack(json!([user, call, result])), "gen_ai.output.messages": pack(json!([answer])),
                "gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 3, "gen_ai.response.finish_reasons": ["stop"],
            }),
        ),
    ]
}

/// The newer key of a tool result in message parts.
fn result_in_parts() -> Vec<Span> {
    let mut spans = current_otel(|value| value);
    spans.retain(|span| span.id != "execute_tool weather");
    let messages = &mut spans[2].attributes["gen_ai.input.messages"];
    messages[2]["parts"][0] = json!({"type": "tool_call_response", "id": "c1", "result": {"rain": true}});
    spans
}

/// Span events of older conventions.
fn span_events() -> Vec<Span> {
    let system = || event("gen_ai.system.message", json!({"content": "Be brief."}));
    let user = || event("gen_ai.user.message", json!({"content": "Rain in Ulm?"}));
    let calls =
        json!([{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Ulm\"}"}}]);
    let call = json!({"role": "assistant", "tool_calls": calls});
    let mut first = span("chat 1", 1, json!({"gen_ai.system": "openai", "gen_ai.operation.name": "chat"}));
    first.events = vec![
        system(),
        user(),
        event("gen_ai.choice", json!({"index": 0, "finish_reason": "tool_calls", "message": text(&call)})),
    ];
    let mut second = span("chat 2", 3, json!({"gen_ai.system": "openai", "gen_ai.operation.name": "chat"}));
    second.events = vec![
        system(),
        user(),
        event("gen_ai.assistant.message", json!({"tool_calls": text(&calls)})),
        event("gen_ai.tool.message", json!({"id": "c1", "content": "{\"rain\":true}"})),
        event(
            "gen_ai.choice",
            json!({"index": 0, "finish_reason": "stop", "message": "{\"role\":\"assistant\",\"content\":\"Yes.\"}"}),
        ),
    ];
    vec![first, second]
}

/// Traceloop: indices of messages and calls in the attribute names.
fn traceloop() -> Vec<Span> {
    vec![
        span(
            "openai.chat 1",
            1,
            json!({
                "llm.request.type": "chat", "gen_ai.system": "OpenAI",
                "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be brief.",
                "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "Rain in Ulm?",
                "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.finish_reason": "tool_calls",
                "gen_ai.completion.0.tool_calls.0.id": "c1", "gen_ai.completion.0.tool_calls.0.name": "weather",
                "gen_ai.completion.0.tool_calls.0.arguments": "{\"city\":\"Ulm\"}",
            }),
        ),
        span(
            "weather.tool",
            2,
            json!({
                "traceloop.span.kind": "tool", "traceloop.entity.name": "weather",
                "traceloop.entity.input": "{\"args\": [], \"kwargs\": {\"city\": \"Ulm\"}}", "traceloop.entity.output": "{\"rain\": true}",
            }),
        ),
        span(
            "openai.chat 2",
            3,
            json!({
                "llm.request.type": "chat", "gen_ai.system": "OpenAI",
                "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be brief.",
                "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "[{\"type\": \"text\", \"text\": \"Rain in Ulm?\"}]",
                "gen_ai.prompt.2.role": "assistant", "gen_ai.prompt.2.tool_calls.0.id": "c1",
                "gen_ai.prompt.2.tool_calls.0.name": "weather", "gen_ai.prompt.2.tool_calls.0.arguments": "{\"city\":\"Ulm\"}",
                "gen_ai.prompt.3.role": "tool", "gen_ai.prompt.3.tool_call_id": "c1", "gen_ai.prompt.3.content": "{\"rain\":true}",
                "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Yes.",
            }),
        ),
    ]
}

/// Vercel AI SDK: an outer span for the loop, inner ones for the calls.
fn vercel() -> Vec<Span> {
    let system = json!({"role": "system", "content": "Be brief."});
    let user = json!({"role": "user", "content": [{"type": "text", "text": "Rain in Ulm?"}]});
    let call = json!({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {"city": "Ulm"}}]});
    let result = json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "weather", "output": {"type": "json", "value": {"rain": true}}}]});
    vec![
        span(
            "ai.generateText",
            0,
            json!({
                "ai.operationId": "ai.generateText", "ai.model.id": "m", "gen_ai.request.model": "m", "gen_ai.system": "s",
                "ai.prompt": "{\"system\":\"Be brief.\",\"prompt\":\"Rain in Ulm?\"}", "ai.response.text": "Yes.",
                "ai.usage.promptTokens": 30, "ai.usage.completionTokens": 5,
            }),
        ),
        span(
            "ai.generateText.doGenerate 1/ai.generateText",
            1,
            json!({
                "ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": text(&json!([system, user])),
                "ai.response.toolCalls": "[{\"toolCallId\":\"c1\",\"toolName\":\"weather\",\"input\":\"{\\\"city\\\":\\\"Ulm\\\"}\"}]",
                "ai.response.finishReason": "tool-calls", "ai.usage.promptTokens": 10,
            }),
        ),
        span(
            "ai.toolCall/ai.generateText",
            3,
            json!({
                "ai.operationId": "ai.toolCall", "ai.toolCall.name": "weather", "ai.toolCall.id": "c1",
                "ai.toolCall.args": "{\"city\":\"Ulm\"}", "ai.toolCall.result": "{\"rain\":true}",
            }),
        ),
        span(
            "ai.generateText.doGenerate 2/ai.generateText",
            5,
            json!({
                "ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": text(&json!([system, user, call, result])),
                "ai.response.text": "Yes.", "ai.usage.promptTokens": 20,
            }),
        ),
    ]
}

fn open_inference() -> Vec<Span> {
    vec![
        span(
            "agent",
            0,
            json!({"openinference.span.kind": "AGENT", "input.value": "Rain in Ulm?", "output.value": "Yes."}),
        ),
        span(
            "llm 1/agent",
            1,
            json!({
                "openinference.span.kind": "LLM", "llm.model_name": "m",
                "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "Be brief.",
                "llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.content": "Rain in Ulm?",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "weather",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{\"city\":\"Ulm\"}",
                "llm.token_count.prompt": 10, "session.id": "session",
            }),
        ),
        span(
            "weather/agent",
            3,
            json!({
                "openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": "{\"city\":\"Ulm\"}",
                "input.mime_type": "application/json", "output.value": "{\"rain\":true}", "output.mime_type": "application/json",
            }),
        ),
        span(
            "llm 2/agent",
            5,
            json!({
                "openinference.span.kind": "LLM", "llm.model_name": "m",
                "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "Be brief.",
                "llm.input_messages.1.message.role": "user",
                "llm.input_messages.1.message.contents.0.message_content.type": "text",
                "llm.input_messages.1.message.contents.0.message_content.text": "Rain in Ulm?",
                "llm.input_messages.2.message.role": "assistant",
                "llm.input_messages.2.message.tool_calls.0.tool_call.id": "c1",
                "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "weather",
                "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments": "{\"city\":\"Ulm\"}",
                "llm.input_messages.3.message.role": "tool", "llm.input_messages.3.message.tool_call_id": "c1",
                "llm.input_messages.3.message.content": "{\"rain\":true}",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.contents.0.message_content.type": "text",
                "llm.output_messages.0.message.contents.0.message_content.text": "Yes.",
            }),
        ),
    ]
}

/// Google ADK: Gemini contents as JSON text.
fn vertex() -> Vec<Span> {
    let user = json!({"role": "user", "parts": [{"text": "Rain in Ulm?"}]});
    let call = json!({"role": "model", "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Ulm"}}}]});
    let result = json!({"role": "user", "parts": [{"function_response": {"id": "c1", "name": "weather", "response": {"rain": true}}}]});
    let config =
        json!({"system_instruction": "Be brief.", "tools": [{"function_declarations": [{"name": "weather"}]}]});
    let request = |contents: Value| text(&json!({"model": "gemini", "config": config, "contents": contents}));
    let response = |content: Value| text(&json!({"content": content, "finish_reason": "STOP", "usage_metadata": {}}));
    vec![
        span(
            "call_llm 1",
            1,
            json!({
                "gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "gemini",
                "gcp.vertex.agent.llm_request": request(json!([user])), "gcp.vertex.agent.llm_response": response(call.clone()),
            }),
        ),
        span(
            "execute_tool weather/call_llm 1",
            2,
            json!({
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1",
                "gcp.vertex.agent.llm_request": "{}", "gcp.vertex.agent.llm_response": "{}",
                "gcp.vertex.agent.tool_call_args": "{\"city\": \"Ulm\"}", "gcp.vertex.agent.tool_response": "{\"rain\": true}",
            }),
        ),
        span(
            "call_llm 2",
            4,
            json!({
                "gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "gemini",
                "gcp.vertex.agent.llm_request": request(json!([user, call, result])),
                "gcp.vertex.agent.llm_response": response(json!({"role": "model", "parts": [{"text": "Yes."}]})),
            }),
        ),
    ]
}

/// Older pydantic-ai: events as JSON text in one attribute.
fn pydantic_events() -> Vec<Span> {
    let system = json!({"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief.", "gen_ai.message.index": 0});
    let user = json!({"event.name": "gen_ai.user.message", "role": "user", "content": "Rain in Ulm?", "gen_ai.message.index": 0});
    let calls =
        json!([{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Ulm"}}}]);
    let call = json!({"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": calls});
    let result = json!({"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": "{\"rain\":true}", "name": "weather"});
    let call_event =
        json!({"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "tool_calls": calls}});
    let answer_event =
        json!({"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Yes."}});
    vec![
        span(
            "agent run",
            0,
            json!({"agent_name": "agent", "model_name": "m", "all_messages_events": text(&json!([system, user, call, result]))}),
        ),
        span(
            "chat 1/agent run",
            1,
            json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "events": text(&json!([system, user, call_event]))}),
        ),
        span(
            "running tool/agent run",
            3,
            json!({
                "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1", "tool_arguments": "{\"city\":\"Ulm\"}", "tool_response": "{\"rain\":true}",
            }),
        ),
        span(
            "chat 2/agent run",
            5,
            json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "events": text(&json!([system, user, call, result, answer_event]))}),
        ),
    ]
}

/// `MLflow`: everything as JSON text, in the shapes of the model API.
fn mlflow() -> Vec<Span> {
    let system = json!({"role": "system", "content": "Be brief."});
    let user = json!({"role": "user", "content": "Rain in Ulm?"});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Ulm\"}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "{\"rain\":true}"});
    let answer = |message: Value| {
        text(
            &json!({"id": "x", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}),
        )
    };
    vec![
        span(
            "Completions_1",
            1,
            json!({
                "mlflow.spanType": "\"CHAT_MODEL\"", "mlflow.spanInputs": text(&json!({"model": "m", "messages": [system, user]})),
                "mlflow.spanOutputs": answer(call.clone()),
            }),
        ),
        span(
            "weather",
            2,
            json!({
                "mlflow.spanType": "\"TOOL\"", "mlflow.spanInputs": "{\"city\": \"Ulm\"}", "mlflow.spanOutputs": "{\"rain\": true}",
            }),
        ),
        span(
            "Completions_2",
            3,
            json!({
                "mlflow.spanType": "\"CHAT_MODEL\"", "mlflow.spanInputs": text(&json!({"model": "m", "messages": [system, user, call, result]})),
                "mlflow.spanOutputs": answer(json!({"role": "assistant", "content": "Yes."})),
            }),
        ),
    ]
}

/// Anthropic content blocks in the input and output of a framework.
fn anthropic() -> Vec<Span> {
    let user = json!({"role": "user", "content": "Rain in Ulm?"});
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Ulm"}}]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "{\"rain\":true}"}]}]});
    let answer = json!({"id": "msg", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Yes."}], "stop_reason": "end_turn"});
    vec![
        span(
            "messages 1",
            1,
            json!({
                "openinference.span.kind": "LLM", "input.value": text(&json!({"system": "Be brief.", "messages": [user]})), "output.value": text(&call),
            }),
        ),
        span(
            "messages 2",
            3,
            json!({
                "openinference.span.kind": "LLM",
                "input.value": text(&json!({"system": "Be brief.", "messages": [user, call, result]})), "output.value": text(&answer),
            }),
        ),
    ]
}

/// Amazon Bedrock content blocks as JSON text in events, as Strands writes them.
fn bedrock() -> Vec<Span> {
    let system = || event("gen_ai.system.message", json!({"content": "[{\"text\": \"Be brief.\"}]"}));
    let user = || event("gen_ai.user.message", json!({"content": "[{\"text\": \"Rain in Ulm?\"}]"}));
    let call = "[{\"toolUse\": {\"toolUseId\": \"c1\", \"name\": \"weather\", \"input\": {\"city\": \"Ulm\"}}}]";
    let result = "[{\"toolResult\": {\"toolUseId\": \"c1\", \"status\": \"success\", \"content\": [{\"text\": \"{\\\"rain\\\":true}\"}]}}]";
    let mut first = span("chat 1", 1, json!({"gen_ai.operation.name": "chat"}));
    first.events =
        vec![system(), user(), event("gen_ai.choice", json!({"finish_reason": "tool_use", "message": call}))];
    let mut second = span("chat 2", 3, json!({"gen_ai.operation.name": "chat"}));
    second.events = vec![
        system(),
        user(),
        event("gen_ai.assistant.message", json!({"content": call})),
        event("gen_ai.tool.message", json!({"content": result})),
        event("gen_ai.choice", json!({"finish_reason": "end_turn", "message": "[{\"text\": \"Yes.\"}]"})),
    ];
    vec![first, second]
}

/// `OpenAI` Responses API: items instead of messages.
fn responses() -> Vec<Span> {
    let user = json!({"role": "user", "content": "Rain in Ulm?"});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "{\"city\":\"Ulm\"}"});
    let result = json!({"type": "function_call_output", "call_id": "c1", "output": "{\"rain\":true}"});
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]});
    let answer = |output: Value| text(&json!({"id": "resp", "object": "response", "output": output}));
    vec![
        span(
            "response 1",
            1,
            json!({
                "openinference.span.kind": "LLM", "input.value": text(&json!({"instructions": "Be brief.", "input": [user]})), "output.value": answer(json!([call])),
            }),
        ),
        span(
            "response 2",
            3,
            json!({
                "openinference.span.kind": "LLM",
                "input.value": text(&json!({"instructions": "Be brief.", "input": [user, call, result]})), "output.value": answer(json!([message])),
            }),
        ),
    ]
}

/// `LangChain` messages as `LangSmith` and others store them, with the roles that the source assigns to spans.
fn langchain() -> Vec<Span> {
    let lc = |class: &str, kwargs: Value| json!({"lc": 1, "type": "constructor", "id": ["langchain", "schema", class], "kwargs": kwargs});
    let system = lc("SystemMessage", json!({"content": "Be brief."}));
    let user = lc("HumanMessage", json!({"content": "Rain in Ulm?"}));
    let call = lc(
        "AIMessage",
        json!({"content": "", "tool_calls": [{"name": "weather", "args": {"city": "Ulm"}, "id": "c1", "type": "tool_call"}]}),
    );
    let result = lc("ToolMessage", json!({"content": "{\"rain\":true}", "tool_call_id": "c1"}));
    let answer = lc("AIMessage", json!({"content": "Yes."}));
    let generation = |message: Value| json!({"generations": [[{"text": "", "message": message}]]});
    let of_role = |mut span: Span, role: Role, input: Value, output: Value| {
        (span.role, span.input, span.output) = (Some(role), Some(input), Some(output));
        span
    };
    vec![
        of_role(
            span("ChatOpenAI 1", 1, json!({})),
            Role::Model,
            json!({"messages": [[system, user]]}),
            generation(call.clone()),
        ),
        of_role(
            span("weather", 2, json!({})),
            Role::Tool,
            json!({"input": "{\"city\": \"Ulm\"}"}),
            json!({"output": {"content": "{\"rain\":true}", "type": "tool", "tool_call_id": "c1"}}),
        ),
        of_role(
            span("ChatOpenAI 2", 3, json!({})),
            Role::Model,
            json!({"messages": [[system, user, call, result]]}),
            generation(answer),
        ),
    ]
}

#[rstest]
#[case::opentelemetry_structured(current_otel(|value| value))]
#[case::opentelemetry_json_text(current_otel(|value| Value::String(value.to_string())))]
#[case::opentelemetry_parts_only(result_in_parts())]
#[case::opentelemetry_span_events(span_events())]
#[case::traceloop(traceloop())]
#[case::vercel(vercel())]
#[case::open_inference(open_inference())]
#[case::vertex(vertex())]
#[case::pydantic_events(pydantic_events())]
#[case::mlflow(mlflow())]
#[case::anthropic(anthropic())]
#[case::bedrock(bedrock())]
#[case::responses(responses())]
#[case::langchain(langchain())]
fn every_vocabulary_yields_the_same_conversation(#[case] spans: Vec<Span>) {
    let document = document(spans);
    assert_eq!(render(&document), CONVERSATION);
    assert_eq!(document.steps[0].input.message.as_deref(), Some("Rain in Ulm?"));
    assert_eq!(document.steps[1].input.message, None);
}

#[test]
fn reads_content_of_log_records() {
    let body = |value: Value| value;
    let calls =
        json!([{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Ulm\"}"}}]);
    let mut parts = parts([
        span("chat 1", 1, json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})),
        span("chat 2", 3, json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})),
    ]);
    parts.logs = vec![
        log("chat 1", "gen_ai.system.message", 1, json!({}), body(json!({"content": "Be brief."}))),
        log("chat 1", "gen_ai.user.message", 2, json!({}), body(json!({"content": "Rain in Ulm?"}))),
        log(
            "chat 1",
            "",
            3,
            json!({"event.name": "gen_ai.choice"}),
            body(
                json!({"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": calls}}),
            ),
        ),
        log(
            "chat 2",
            "gen_ai.client.inference.operation.details",
            4,
            json!({
                "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
                "gen_ai.input.messages": [
                    {"role": "user", "parts": [{"type": "text", "content": "Rain in Ulm?"}]},
                    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Ulm"}}]},
                    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"rain": true}}]},
                ],
                "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}],
            }),
            Value::Null,
        ),
    ];
    assert_eq!(render(&assemble(&parts).document), CONVERSATION);
    // The records suffice if the spans are late or lost.
    parts.spans.clear();
    assert_eq!(render(&assemble(&parts).document), CONVERSATION);
}

#[test]
fn reads_attributes_of_the_trace() {
    let document = document(current_otel(|value| value));
    assert_eq!(document.name.as_deref(), Some("agent"));
    assert_eq!(document.session_id.as_deref(), Some("session"));
    assert_eq!(document.user_id.as_deref(), Some("ada"));
    assert_eq!((document.started_at, document.ended_at), (Some(at(0)), Some(at(6))));
    assert_eq!(document.model.as_deref(), Some("m"));
    assert_eq!(document.steps[0].model.as_deref(), Some("m-1"));
    assert_eq!(document.steps[0].agent.as_deref(), Some("forecaster"));
    assert_eq!(document.steps[0].stop_reason.as_deref(), Some("tool_call"));
    assert_eq!(document.steps[0].tool_calls[0].duration_ms, Some(1000.0));
    let usage =
        StepUsage { input_tokens: Some(30), output_tokens: Some(5), cached_input_tokens: Some(4), cost_usd: None };
    assert_eq!(document.usage, Some(usage));
}

#[test]
fn usage_of_the_loop_is_not_added_to_that_of_its_calls() {
    assert_eq!(document(vercel()).usage.and_then(|usage| usage.input_tokens), Some(30));
}

#[test]
fn separates_reasoning_from_the_answer() {
    let with_reasoning = json!([{"role": "assistant", "parts": [{"type": "reasoning", "content": "Clouds."}, {"type": "text", "content": "Yes."}]}]);
    let document = document([span(
        "chat",
        1,
        json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": [{"role": "user", "content": "Rain?"}], "gen_ai.output.messages": with_reasoning}),
    )]);
    assert_eq!(render(&document), "user: Rain?\n> thought: Clouds.\n> Yes.");
}

#[test]
fn keeps_images_as_parts() {
    let image = json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}});
    let input = json!([{"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]}]);
    let document = document([span(
        "chat",
        1,
        json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": input, "gen_ai.output.messages": [{"role": "assistant", "content": "A cat."}]}),
    )]);
    let message = &document.steps[0].input.messages[0];
    assert_eq!((message.content.as_str(), &message.parts), ("What is this?", &vec![image]));
}

#[rstest]
#[case(json!({"annotator_kind": "HUMAN", "label": "correct", "name": "quality", "explanation": "as asked"}), Some((Rating::Positive, "quality: correct: as asked")))]
#[case(json!({"annotator_kind": "HUMAN", "label": "bad", "score": 1}), Some((Rating::Negative, "bad")))]
#[case(json!({"annotator_kind": "human", "score": 1, "name": "quality"}), Some((Rating::Positive, "quality")))]
#[case(json!({"annotator_kind": "HUMAN", "score": -1, "name": "quality"}), Some((Rating::Negative, "quality")))]
#[case(json!({"annotator_kind": "HUMAN", "score": 0.5, "name": "quality"}), Some((Rating::Neutral, "quality")))]
#[case(json!({"annotator_kind": "LLM", "label": "correct"}), None)]
#[case(json!({"annotator_kind": "CODE", "score": 1}), None)]
fn human_annotations_are_feedback(#[case] annotation: Value, #[case] expected: Option<(Rating, &str)>) {
    let attributes: serde_json::Map<String, Value> = crate::spans::map(annotation)
        .into_iter()
        .map(|(name, value)| (format!("annotations.0.annotation.{name}"), value))
        .collect();
    let feedback = assemble(&parts([span("llm", 1, Value::Object(attributes))])).feedback;
    let ratings: Vec<_> =
        feedback.iter().map(|entry| (entry.rating, entry.note.as_deref().unwrap_or_default())).collect();
    assert_eq!(ratings, expected.into_iter().collect::<Vec<_>>());
    assert!(feedback.iter().all(|entry| entry.author == "otlp" && entry.created_at == Some(at(2))));
}
