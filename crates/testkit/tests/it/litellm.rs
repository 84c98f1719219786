use karat_testkit::litellm::{KEY, Litellm};
use reqwest::StatusCode;
use serde_json::{Value, json};

fn tools() -> Value {
    json!([{"type": "function", "function": {"name": "echo", "parameters": {"type": "object"}}}])
}

/// Sends a request over a new connection.
fn ask(path: &str, body: &Value) -> (StatusCode, Value) {
    let proxy = Litellm::shared();
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = reqwest::Client::new();
        let request = client.post(format!("{}{path}", proxy.openai_base())).bearer_auth(KEY).json(body);
        let response = request.send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    })
}

fn complete(model: &str, messages: &Value) -> (StatusCode, Value) {
    ask("/chat/completions", &json!({"model": model, "messages": messages, "tools": tools()}))
}

fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

#[test]
#[ignore = "needs litellm"]
fn returns_text() {
    let (status, reply) = complete("says-hello", &user("hi"));
    assert_eq!(status, 200, "{reply}");
    assert_eq!(reply["choices"][0]["message"]["content"], "Hello from litellm.");
    assert_eq!(reply["usage"]["total_tokens"], 30);
}

#[test]
#[ignore = "needs litellm"]
fn returns_calls() {
    let (status, reply) = complete("calls-two", &user("hi"));
    assert_eq!(status, 200, "{reply}");
    let calls = &reply["choices"][0]["message"]["tool_calls"];
    assert_eq!((&calls[0]["function"]["name"], &calls[1]["function"]["name"]), (&json!("get-sum"), &json!("echo")));
    assert_eq!(calls[1]["function"]["arguments"], r#"{"message": "hi"}"#);
}

#[test]
#[ignore = "needs litellm"]
fn calls_the_requested_tool_and_repeats_its_result() {
    let (status, reply) = complete("obeys", &user(r#"echo {"message": "x"}"#));
    assert_eq!(status, 200, "{reply}");
    let message = &reply["choices"][0]["message"];
    let call = &message["tool_calls"][0];
    assert_eq!(call["function"], json!({"name": "echo", "arguments": "{\"message\": \"x\"}"}));
    let result = json!({"role": "tool", "tool_call_id": call["id"], "content": "Echo: x"});
    let turns = json!([{"role": "user", "content": "echo"}, message, result]);
    let (_, reply) = complete("obeys", &turns);
    assert_eq!(reply["choices"][0]["message"]["content"], "the tool said: Echo: x", "{reply}");
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
}

#[test]
#[ignore = "needs litellm"]
fn returns_errors_repeatedly() {
    for _ in 0..4 {
        let (status, reply) = complete("is-limited", &user("hi"));
        assert_eq!(status, 429, "{reply}");
    }
    assert_eq!(complete("is-broken", &user("hi")).0, 500);
    assert_eq!(complete("unknown", &user("hi")).0, 400);
}

#[test]
#[ignore = "needs litellm"]
fn supports_the_anthropic_protocol() {
    let body = json!({"model": "says-hello", "max_tokens": 9, "messages": user("hi")});
    let (status, reply) = ask("/messages", &body);
    assert_eq!(status, 200, "{reply}");
    assert_eq!(reply["content"], json!([{"type": "text", "text": "Hello from litellm."}]));
}
