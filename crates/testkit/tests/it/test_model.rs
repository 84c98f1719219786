//! The mock model of the benchmarks, run as a process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Client;
use rstest::rstest;
use serde_json::{Value, json};

/// A running model, stopped when dropped.
struct Model {
    child: Child,
    base: String,
}

impl Model {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_karat-test-model"));
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, base: format!("http://127.0.0.1:{}", port.trim()) }
    }

    async fn ask(&self, path: &str, body: &Value) -> (u16, Value) {
        // Another test may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().tls_certs_only([]).build().unwrap();
        let reply = client.post(format!("{}{path}", self.base)).json(body).send().await.unwrap();
        (reply.status().as_u16(), reply.json().await.unwrap())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn openai_gets_a_call_then_an_answer() {
    let model = Model::start(&["--port", "0"]);
    let user = json!({"role": "user", "content": "m"});
    let tools =
        json!([{"type": "function", "function": {"name": "first"}}, {"type": "function", "function": {"name": "b"}}]);
    let first = json!({"model": "m", "messages": [user], "tools": tools});
    let (status, answer) = model.ask("/v1/chat/completions", &first).await;
    assert_eq!(status, 200);
    let message = &answer["choices"][0]["message"];
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "first", "arguments": "{}"}});
    assert_eq!(message["tool_calls"], json!([call]));
    let result = json!({"role": "tool", "tool_call_id": "call_1", "content": "1"});
    let second = json!({"model": "m", "messages": [user, message, result], "tools": tools});
    let (_, answer) = model.ask("/v1/chat/completions", &second).await;
    assert_eq!(answer["choices"][0]["message"]["content"], "It is 18 degrees in Paris.");
    assert_eq!(answer["usage"]["total_tokens"], 10);
    let (_, answer) = model.ask("/v1/chat/completions", &json!({"messages": [user]})).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "stop", "no call without tools");
}

#[tokio::test]
async fn anthropic_gets_a_call_then_an_answer() {
    let model = Model::start(&[]);
    let user = json!({"role": "user", "content": "m"});
    let tools = json!([{"name": "fir\u{73}t", "input_schema": {"type": "object"}}]);
    let (status, answer) = model.ask("/v1/messages", &json!({"messages": [user], "tools": tools})).await;
    assert_eq!(status, 200);
    assert_eq!(answer["content"], json!([{"type": "tool_use", "id": "toolu_1", "name": "first", "input": {}}]));
    let assistant = json!({"role": "assistant", "content": answer["content"]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]});
    let second = json!({"messages": [user, assistant, result], "tools": tools});
    let (_, answer) = model.ask("/v1/messages", &second).await;
    assert_eq!(answer["content"][0]["text"], "It is 18 degrees in Paris.");
    assert_eq!((&answer["stop_reason"], &answer["usage"]["input_tokens"]), (&json!("end_turn"), &json!(7)));
}

#[rstest]
#[case("/v1/chat/completions", json!({"messages": "none"}), 400)]
#[case("/v1/messages", json!([]), 400)]
#[case("/v1/models", json!({"messages": []}), 404)]
#[tokio::test]
async fn refuses_invalid_requests(#[case] path: &str, #[case] body: Value, #[case] status: u16) {
    assert_eq!(Model::start(&[]).ask(path, &body).await.0, status);
}

#[tokio::test]
async fn delays_replies_in_parallel() {
    let model = Model::start(&["--delay-ms", "150"]);
    let body = json!({"messages": [{"role": "user", "content": "m"}]});
    let start = Instant::now();
    let ask = || model.ask("/v1/messages", &body);
    tokio::join!(ask(), ask(), ask(), ask());
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(150) && took < Duration::from_millis(590), "{took:?}");
}
