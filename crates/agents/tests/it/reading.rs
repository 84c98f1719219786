//! What becomes of a reply.

use karat_core::trace::{ToolCall, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{agent_at, answered, ask, error_of, serve};

/// Asks a server with one answer as the configuration of the reply says.
async fn mapped(response: Value, reply: Value) -> Result<karat_core::trace::Trace, String> {
    let server = serve(json!({"*": {"json": reply}}));
    let agent = agent_at(&server.endpoint(), &json!({"response": response}));
    ask(&agent, "hi").await.map_err(|error| error.message)
}

#[tokio::test]
async fn a_whole_reply() {
    let trace = answered(json!({
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
    let [first, second, third] = &trace.tool_calls[..] else { unreachable!("three calls") };
    assert_eq!(serde_json::to_string(&first.params).unwrap(), r#"{"z":1,"a":[null]}"#);
    assert_eq!((first.success, first.duration_ms, &first.result), (Some(true), Some(41.5), &Some(json!({"t": 18}))));
    assert_eq!((second.params["x"].as_str(), second.success), (Some("{}"), Some(false)));
    assert_eq!(second.result, Some(Value::Null), "the tool answered null");
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
async fn what_an_agent_leaves_out_is_not_there(#[case] reply: Value) {
    let trace = answered(json!({"json": reply})).await.unwrap();
    assert_eq!((trace.response.as_str(), trace.tool_calls.len()), ("only", 0));
    assert_eq!((trace.usage, trace.model), (None, None));
}

#[rstest]
#[case(json!({"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.5}), Some(1), Some(2), Some(0.5))]
#[case(json!({"prompt_tokens": 1, "completion_tokens": 2}), Some(1), Some(2), None)]
#[case(json!({"promptTokens": 1, "completionTokens": 2}), Some(1), Some(2), None)]
#[case(json!({"costUsd": 0}), None, None, Some(0.0))]
#[tokio::test]
async fn usage_goes_by_many_names(
    #[case] usage: Value,
    #[case] input_tokens: Option<u64>,
    #[case] output_tokens: Option<u64>,
    #[case] cost_usd: Option<f64>,
) {
    let trace = answered(json!({"response": "", "usage": usage})).await.unwrap();
    assert_eq!(trace.usage, Some(Usage { input_tokens, output_tokens, cost_usd, ..Usage::default() }));
}

#[tokio::test]
async fn a_reply_is_read_where_the_configuration_says() {
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
    let trace = mapped(response, reply).await.unwrap();
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
    assert_eq!(mapped(json!({"response": ""}), json!("just text")).await.unwrap().response, "just text");
    assert_eq!(
        mapped(json!({"response": ""}), json!({"response": "x"})).await,
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
    json!({"response": "", "toolCalls": [{"name": "t", "params": [1]}]}),
    "tool call 0 of the reply ('t') has arguments that are an array, not an object"
)]
#[case(
    json!({"response": "", "toolCalls": [{"name": "t", "params": "[1]"}]}),
    "tool call 0 of the reply ('t') has arguments that are no JSON object"
)]
#[case(
    json!({"response": "", "toolCalls": [{"name": "t", "success": 1}]}),
    "tool call 0 of the reply ('t') has a 'success' that is a number"
)]
#[tokio::test]
async fn a_reply_of_another_shape_is_no_answer(#[case] reply: Value, #[case] message: &str) {
    assert_eq!(error_of(json!({"json": reply})).await, message);
}

#[rstest]
#[case("", "the reply is empty")]
#[case(" \r\n", "the reply is empty")]
#[case("<html>", "the reply is no JSON (expected value at line 1 column 1): <html>")]
#[case(
    "{\"response\": \"x\"} {}",
    "the reply is no JSON (trailing characters at line 1 column 19): {\"response\": \"x\"} {}"
)]
#[case("{'response': 'x'}", "the reply is no JSON (key must be a string at line 1 column 2): {'response': 'x'}")]
#[tokio::test]
async fn what_is_no_json_is_shown(#[case] raw: &str, #[case] message: &str) {
    assert_eq!(error_of(json!({"raw": raw})).await, message);
}

#[tokio::test]
async fn what_is_no_json_is_told_whole() {
    let long = error_of(json!({"raw": "ü".repeat(500)})).await;
    assert_eq!(long, format!("the reply is no JSON (expected value at line 1 column 1): {}", "ü".repeat(500)));
    let surrogate = error_of(json!({"raw": r#"{"response": "\ud800"}"#})).await;
    assert!(surrogate.starts_with("the reply is no JSON (unexpected end of hex escape"), "{surrogate}");
    let binary = error_of(json!({"rawBytes": b"{\"response\": \"\xff\"}".to_vec()})).await;
    assert!(binary.starts_with("the reply is no JSON (invalid unicode code point"), "{binary}");
    assert!(binary.ends_with("{\"response\": \"\u{fffd}\"}"), "{binary}");
    let deep = error_of(json!({"raw": "[".repeat(100_000)})).await;
    assert!(deep.starts_with("the reply is no JSON (recursion limit exceeded"), "{deep}");
}

/// It was not asked for, so it is not unpacked; that is said, and nothing is made up.
#[tokio::test]
async fn a_packed_reply_is_no_json() {
    let bytes = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let error = error_of(json!({"rawBytes": bytes, "headers": {"content-encoding": "gzip"}})).await;
    assert!(error.starts_with("the reply is no JSON (expected value at line 1 column 1)"), "{error}");
}

#[tokio::test]
async fn a_long_and_colourful_reply_comes_whole() {
    let response = "日本語 \u{1b}[31m \0 😀\r\n\"".repeat(50_000);
    let trace = answered(json!({"response": response, "toolCalls": vec![json!({"name": "t"}); 1000]})).await.unwrap();
    assert!(trace.response == response, "{} bytes of {}", trace.response.len(), response.len());
    assert_eq!(trace.tool_calls.len(), 1000);
}
