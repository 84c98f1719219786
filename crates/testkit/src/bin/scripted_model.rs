//! A mock model for benchmarks behind both APIs: its first turn calls the first tool, its second turn answers.
//!
//! The first line on standard output is the port. `OPENAI_BASE_URL` is then `http://127.0.0.1:PORT/v1`,
//! `ANTHROPIC_BASE_URL` the same without `/v1`.

use std::borrow::Cow;
use std::io;

use clap::Parser;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use karat_testkit::bench_server::{ListenArgs, serve};
use serde::Deserialize;
use serde_json::{Value, json};

const ANSWER: &str = "It is 18 degrees in Paris.";

/// Answer every conversation in two turns: a tool call, then a text reply.
#[derive(Debug, Parser)]
#[command(name = "karat-test-model")]
struct Arguments {
    #[command(flatten)]
    listen: ListenArgs,
}

/// The needed fields of a request in either protocol.
#[derive(Debug, Deserialize)]
struct Conversation<'b> {
    #[serde(borrow)]
    messages: Vec<Message<'b>>,
    #[serde(borrow, default)]
    tools: Vec<Tool<'b>>,
}

#[derive(Debug, Deserialize)]
struct Message<'b> {
    #[serde(borrow)]
    role: Cow<'b, str>,
}

#[derive(Debug, Deserialize)]
struct Tool<'b> {
    /// Anthropic.
    #[serde(borrow)]
    name: Option<Cow<'b, str>>,
    /// `OpenAI`.
    #[serde(borrow)]
    function: Option<Function<'b>>,
}

impl Tool<'_> {
    fn name(&self) -> Option<&str> {
        self.name.as_deref().or_else(|| self.function.as_ref().map(|function| function.name.as_ref()))
    }
}

#[derive(Debug, Deserialize)]
struct Function<'b> {
    #[serde(borrow)]
    name: Cow<'b, str>,
}

fn main() -> io::Result<()> {
    match serve(Arguments::parse().listen, answer)? {}
}

async fn answer(request: hyper::Request<Incoming>) -> (StatusCode, Bytes) {
    let render: fn(Option<&str>) -> Value = match request.uri().path() {
        path if path.ends_with("/chat/completions") => completion,
        path if path.ends_with("/messages") => message,
        _ => return refuse(StatusCode::NOT_FOUND, "unknown path"),
    };
    let Ok(body) = request.into_body().collect().await else {
        return refuse(StatusCode::BAD_REQUEST, "cannot read the body");
    };
    let body = body.to_bytes();
    let Ok(conversation) = serde_json::from_slice::<Conversation>(&body) else {
        return refuse(StatusCode::BAD_REQUEST, "not a conversation");
    };
    let is_first = !conversation.messages.iter().any(|message| message.role == "assistant");
    let called = conversation.tools.first().filter(|_| is_first).and_then(Tool::name);
    (StatusCode::OK, Bytes::from(render(called).to_string()))
}

fn refuse(status: StatusCode, reason: &str) -> (StatusCode, Bytes) {
    (status, Bytes::from(json!({"error": {"type": "invalid_request_error", "message": reason}}).to_string()))
}

/// Renders a turn for `OpenAI`: a call of this tool, or the answer.
fn completion(called: Option<&str>) -> Value {
    let (message, finish_reason) = match called {
        Some(name) => {
            let call = json!({"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}});
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
        }
        None => (json!({"role": "assistant", "content": ANSWER}), "stop"),
    };
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "test-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    })
}

/// Renders a turn for Anthropic: a call of this tool, or the answer.
fn message(called: Option<&str>) -> Value {
    let (content, stop_reason) = match called {
        Some(name) => (json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}), "tool_use"),
        None => (json!({"type": "text", "text": ANSWER}), "end_turn"),
    };
    json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "test-model",
        "content": [content],
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {"input_tokens": 7, "output_tokens": 3},
    })
}
