//! Parsing of replies.

use karat_core::trace::{ToolCall, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{agent_at, ask, ask_server, error_of, serve};

/// Asks a server that always sends `reply`, with a custom response map.
async fn ask_mapped(response: Value, reply: Value) -> Result<karat_core::trace::Trace, String> {
    let server = serve(json!({"*": {"json": reply}}));
    let agent = agent_at(&server.endpoint(), &json!({"response": response}));
    ask(&agent, "hi").await.map_err(|error| error.message)
}

#[tokio::test]
async fn parses_a_full_reply() {
    let trace = ask_server(json!({
        "response": "It is 18 °C.",
        "toolCalls": [
            {"name": "a", "params": {"z": 1, "a": [null]}, "success": true, "durationMs": 41.5, "result": {"t": 18}},
            {"name": "b", "params": "{\"x\": \"{}\"}", "success": false, "result": null, "other": 1},
            {"name": "a"},
        ],
        "usage": {"inputTokens": 412, "outputTokens": 9, "costUsd": 0.004},
        "model": "my-model-1",
        "unknown": {"ignored": true},
    }))
    .await
    .unwrap();
    assert_eq!(trace.response, "It is 18 °C.");
    assert_eq!(trace.tool_names(), ["a", "b", "a"]);
    let [first, second, third] = &trace.tool_calls[..] else { unreachable!("expected three calls") };
    assert_eq!(serde_json::to_string(&first.params).unwrap(), r#"{"z":1,"a":[null]}"#);
    assert_eq!((first.success, first.duration_ms, &first.result), (Some(true), Some(41.5), &Some(json!({"t": 18}))));
    assert_eq!((second.params["x"].as_str(), second.success), (Some("{}"), Some(false)));
    assert_eq!(second.result, Some(Value::Null), "the result is null, not absent");
    assert_eq!(*third, ToolCall { name: "a".to_owned(), ..ToolCall::default() });
    assert_eq!(
        trace.usage,
        Some(Usage { input_tokens: Some(412), output_tokens: Some(9), cost_usd: Some(0.004), ..Usage::default() })
    );
    assert_eq!((trace.model.as_deref(), trace.stop_reason), (Some("my-model-1"), None));
}

#[rstest]
#[case(json!({"response": "only"}))]
#[case(json!({"response": "only", "toolCalls": null, "usage": null, "model": null}))]
#[case(json!({"response": "only", "toolCalls": [], "usage": {}, "model": 5}))]
#[case(json!({"response": "only", "usage": {"inputTokens": "many", "outputTokens": -1}}))]
#[tokio::test]
async fn missing_and_invalid_optional_parts_are_none(#[case] reply: Value) {
    let trace = ask_server(json!({"json": reply})).await.unwrap();
    assert_eq!((trace.response.as_str(), trace.tool_calls.len()), ("only", 0));
    assert_eq!((trace.usage, trace.model), (None, None));
}

#[rstest]
#[case(json!({"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.5}), Some(1), Some(2), Some(0.5))]
#[case(json!({"prompt_tokens": 1, "completion_tokens": 2}), Some(1), Some(2), None)]
#[case(json!({"promptTokens": 1, "completionTokens": 2}), Some(1), Some(2), None)]
#[case(json!({"costUsd": 0}), None, None, Some(0.0))]
#[tokio::test]
async fn accepts_common_names_of_usage(
    #[case] usage: Value,
    #[case] input_tokens: Option<u64>,
    #[case] output_tokens: Option<u64>,
    #[case] cost_usd: Option<f64>,
) {
    let trace = ask_server(json!({"response": "", "usage": usage})).await.unwrap();
    assert_eq!(trace.usage, Some(Usage { input_tokens, output_tokens, cost_usd, ..Usage::default() }));
}

#[tokio::test]
async fn reads_parts_at_configured_pointers() {
    let response = json!({
        "response": "/choices/0/message/content",
        "toolCalls": "/choices/0/message/tool_calls",
        "toolCall": {
            "name": "/function/name",
            "params": "/function/arguments",
            "success": "/ok",
            "durationMs": "/timing/ms",
            "result": "/out",
        },
        "usage": "/meta/usage",
        "model": "/meta/m~1n",
    });
    let call = json!({
        "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"},
        "ok": true, "timing": {"ms": 3}, "out": [1],
    });
    let reply = json!({
        "choices": [{"message": {"content": "18 °C", "tool_calls": [call]}}],
        "meta": {"usage": {"prompt_tokens": 20}, "m/n": "my-agent"},
    });
    let trace = ask_mapped(response, reply).await.unwrap();
    assert_eq!(trace.response, "18 °C");
    let params = json!({"city": "Paris"}).as_object().cloned().unwrap();
    assert_eq!(
        trace.tool_calls,
        [ToolCall {
            name: "get_weather".to_owned(),
            success: Some(true),
            duration_ms: Some(3.0),
            params,
            result: Some(json!([1])),
            ..ToolCall::default()
        }]
    );
    assert_eq!((trace.usage.unwrap().input_tokens, trace.model.as_deref()), (Some(20), Some("my-agent")));
}

#[tokio::test]
async fn the_whole_reply_may_be_the_text() {
    assert_eq!(ask_mapped(json!({"response": ""}), json!("just text")).await.unwrap().response, "just text");
    assert_eq!(
        ask_mapped(json!({"response": ""}), json!({"response": "x"})).await,
        Err("the reply's text at '' is an object".to_owned())
    );
}

#[rstest]
#[case(json!([]), "the reply has no text at '/response'")]
#[case(json!("text"), "the reply has no text at '/response'")]
#[case(json!(null), "the reply has no text at '/response'")]
#[case(json!({"Response": "x"}), "the reply has no text at '/response'")]
#[case(json!({"response": null}), "the reply's text at '/response' is null")]
#[case(json!({"response": ["x"]}), "the reply's text at '/response' is an array")]
#[case(json!({"response": 5}), "the reply's text at '/response' is a number")]
#[case(json!({"response": "", "toolCalls": "none"}), "the reply's '/toolCalls' is a string, not an array")]
#[case(json!({"response": "", "toolCalls": [{"name": "a"}, "b"]}), "tool call 1 of the reply has no name at '/name'")]
#[case(json!({"response": "", "toolCalls": [{"name": null}]}), "tool call 0 of the reply has no name at '/name'")]
#[case(
    json!({"response": "", "toolCalls": [{"function": {"name": "a", "arguments": "{}"}}]}),
    "tool call 0 of the reply has no name at '/name': for calls in OpenAI's form set 'agent.response.toolCall' to \
     {\"name\": \"/function/name\", \"params\": \"/function/arguments\"}"
)]
#[case(
    json!({"response": "", "toolCalls": [{"tool": "a"}]}),
    "tool call 0 of the reply has no name at '/name': set 'agent.response.toolCall.name' to \"/tool\""
)]
#[case(
    json!({"response": "", "toolCalls": [{"name": "t", "success": 1}]}),
    "tool call 0 of the reply ('t') has a 'success' that is a number"
)]
#[tokio::test]
async fn reports_invalid_parts_of_a_reply(#[case] reply: Value, #[case] message: &str) {
    assert_eq!(error_of(json!({"json": reply})).await, message);
}

#[rstest]
#[case(json!([1]), "[1]")]
#[case(json!("[1]"), "[1]")]
#[case(json!("{\"a\": "), "{\"a\": ")]
#[case(json!("Paris"), "Paris")]
#[tokio::test]
async fn keeps_arguments_that_are_not_an_object(#[case] params: Value, #[case] raw: &str) {
    let trace = ask_server(json!({"response": "", "toolCalls": [{"name": "t", "params": params}]})).await.unwrap();
    assert_eq!((trace.tool_calls[0].raw_params.as_deref(), trace.tool_calls[0].params.len()), (Some(raw), 0));
}

#[rstest]
#[case("", "the reply is empty")]
#[case(" \r\n", "the reply is empty")]
#[case("<html>", "the reply is not valid JSON (expected value at line 1 column 1): <html>")]
#[case(
    "{\"response\": \"x\"} {}",
    "the reply is not valid JSON (trailing characters at line 1 column 19): {\"response\": \"x\"} {}"
)]
#[case(
    "{\"response\": \"x\", \"response\": \"y\"}",
    "the reply is not valid JSON (duplicate key 'response' at line 1 column 19): {\"response\": \"x\", \"response\": \"y\"}"
)]
#[case("{'response': 'x'}", "the reply is not valid JSON (key must be a string at line 1 column 2): {'response': 'x'}")]
#[tokio::test]
async fn quotes_replies_that_are_not_json(#[case] raw: &str, #[case] message: &str) {
    assert_eq!(error_of(json!({"raw": raw})).await, message);
}

#[tokio::test]
async fn quotes_the_whole_reply() {
    let long = error_of(json!({"raw": "ü".repeat(500)})).await;
    assert_eq!(long, format!("the reply is not valid JSON (expected value at line 1 column 1): {}", "ü".repeat(500)));
    let surrogate = error_of(json!({"raw": r#"{"response": "\ud800"}"#})).await;
    assert!(surrogate.starts_with("the reply is not valid JSON (unexpected end of hex escape"), "{surrogate}");
    let binary = error_of(json!({"rawBytes": b"{\"response\": \"\xff\"}".to_vec()})).await;
    assert!(binary.starts_with("the reply is not valid JSON (invalid utf-8 sequence"), "{binary}");
    assert!(binary.ends_with("{\"response\": \"\u{fffd}\"}"), "{binary}");
    let deep = error_of(json!({"raw": "[".repeat(100_000)})).await;
    assert!(deep.starts_with("the reply is not valid JSON (recursion limit exceeded"), "{deep}");
}

/// Compression was not requested, so the reply is not decompressed.
#[tokio::test]
async fn a_compressed_reply_is_not_valid_json() {
    let bytes = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let error = error_of(json!({"rawBytes": bytes, "headers": {"content-encoding": "gzip"}})).await;
    assert!(error.starts_with("the reply is not valid JSON (invalid utf-8 sequence"), "{error}");
}

#[tokio::test]
async fn long_replies_with_control_characters_are_unchanged() {
    let response = "日本語 \u{1b}[31m \0 😀\r\n\"".repeat(50_000);
    let trace = ask_server(json!({"response": response, "toolCalls": vec![json!({"name": "t"}); 1000]})).await.unwrap();
    assert!(trace.response == response, "{} bytes of {}", trace.response.len(), response.len());
    assert_eq!(trace.tool_calls.len(), 1000);
}
