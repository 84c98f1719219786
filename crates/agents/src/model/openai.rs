//! The chat completions API of `OpenAI` and compatible servers.

use karat_cases::registry::Tool;
use karat_core::chat::ChatPrompt;
use karat_core::trace::Usage;
use karat_http::header::AUTHORIZATION;
use karat_json::type_name;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client::Parameters;
use super::provider::Provider;
use super::turn::{Arguments, Call, CallResult, Turn, token_count};

pub(super) fn endpoint_url(base: &str) -> String {
    let (path, query) = split_query(base);
    format!("{}/chat/completions{query}", path.trim_end_matches('/'))
}

/// Splits off the query string, which some gateways require.
pub(super) fn split_query(base: &str) -> (&str, &str) {
    base.split_at(base.find('?').unwrap_or(base.len()))
}

pub(super) fn headers(key: &str) -> Vec<(String, String)> {
    vec![(AUTHORIZATION.to_string(), format!("Bearer {key}"))]
}

pub(super) fn tool_definitions(tools: &[Tool]) -> Vec<Value> {
    let empty = || json!({"type": "object", "properties": {}});
    let define = |tool: &Tool| {
        let mut function = json!({"name": tool.name});
        if let Some(description) = tool.description.get() {
            function["description"] = description.as_str().into();
        }
        function["parameters"] = tool.input_schema.get().cloned().unwrap_or_else(empty);
        json!({"type": "function", "function": function})
    };
    tools.iter().map(define).collect()
}

pub(super) fn first_messages(system: Option<&str>, user: &str) -> Vec<Value> {
    let system = system.map(|system| json!({"role": "system", "content": system}));
    system.into_iter().chain([json!({"role": "user", "content": user})]).collect()
}

#[derive(Serialize)]
struct Body<'b> {
    model: &'b str,
    messages: &'b [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'b RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

/// Serialises a request for the next turn.
pub(super) fn request_body(
    provider: &Provider,
    model: &str,
    parameters: Parameters,
    messages: &[Value],
    tools: Option<&RawValue>,
    prompt: Option<&ChatPrompt>,
) -> serde_json::Result<Vec<u8>> {
    // Newer OpenAI models reject `max_tokens`; other servers support nothing else.
    let is_openai = provider.name == "openai";
    let format = |prompt: &ChatPrompt| {
        json!({
            "type": "json_schema",
            "json_schema": {"name": prompt.name, "schema": prompt.schema, "strict": true},
        })
    };
    serde_json::to_vec(&Body {
        model,
        messages,
        tools,
        temperature: parameters.temperature,
        seed: parameters.seed,
        max_completion_tokens: parameters.max_output_tokens.filter(|_| is_openai),
        max_tokens: parameters.max_output_tokens.filter(|_| !is_openai),
        response_format: prompt.map(format),
    })
}

pub(super) fn parse_reply(reply: &Value) -> Result<Turn, String> {
    let choice = reply.pointer("/choices/0").ok_or_else(|| missing("choices", reply))?;
    let message = choice.get("message").filter(|message| message.is_object());
    let message = message.ok_or_else(|| missing("choices[0].message", reply))?;
    let text = read_text(message.get("content"))?;
    let tool_calls = match message.get("tool_calls") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(calls)) => calls.as_slice(),
        Some(other) => return Err(format!("the reply's 'tool_calls' is {}, not an array", type_name(other))),
    };
    let mut calls = tool_calls.iter().map(read_call).collect::<Result<Vec<_>, _>>()?;
    assign_missing_ids(&mut calls);
    let refusal = message.get("refusal").and_then(Value::as_str).filter(|refusal| !refusal.is_empty());
    let incomplete_reason = match choice.get("finish_reason").and_then(Value::as_str) {
        Some("length") => Some("the answer was cut off at the token limit".to_owned()),
        Some("content_filter") => Some("the provider's content filter cut the answer off".to_owned()),
        _ => refusal.map(|refusal| format!("the model refused: {refusal}")),
    };
    // A refusal is shown to the user in place of the text.
    let text = if text.is_empty() { refusal.unwrap_or_default().to_owned() } else { text };
    Ok(Turn {
        message: assistant_message(message, &text, &calls),
        text,
        calls,
        usage: reply.get("usage").and_then(read_usage),
        model: reply.get("model").and_then(Value::as_str).map(str::to_owned),
        incomplete_reason,
    })
}

fn missing(key: &str, reply: &Value) -> String {
    format!("the reply has no '{key}': {reply}")
}

fn read_text(content: Option<&Value>) -> Result<String, String> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            Ok(texts.collect())
        }
        Some(other) => Err(format!("the reply's 'content' is {}, not a string", type_name(other))),
    }
}

/// Assigns ids to calls without one, so that results can be matched to calls.
fn assign_missing_ids(calls: &mut [Call]) {
    let mut number = 0;
    for index in 0..calls.len() {
        while calls[index].id.is_empty() {
            let id = format!("call_{number}");
            number += 1;
            if calls.iter().all(|call| call.id != id) {
                calls[index].id = id;
            }
        }
    }
}

fn read_call(call: &Value) -> Result<Call, String> {
    let function = call.get("function").ok_or_else(|| format!("the reply's tool call has no 'function': {call}"))?;
    let name = function.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| format!("the reply's tool call has no name: {call}"))?;
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => Arguments::Object(serde_json::Map::new()),
        Some(Value::String(text)) => Arguments::parse(text),
        // Some servers send an object in place of a JSON string.
        Some(Value::Object(map)) => Arguments::Object(map.clone()),
        Some(other) => Arguments::Invalid(other.to_string()),
    };
    let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
    Ok(Call { id: id.to_owned(), name: name.to_owned(), arguments })
}

/// Returns the model's message with only the keys that every server accepts in a request.
fn assistant_message(message: &Value, text: &str, calls: &[Call]) -> Value {
    let content = message.get("content").filter(|content| !content.is_null()).cloned();
    // Servers accept a message without content only if it has calls.
    let content = content.unwrap_or_else(|| if calls.is_empty() { text.into() } else { Value::Null });
    let mut sent = json!({"role": "assistant", "content": content});
    let arguments = |arguments: &Arguments| match arguments {
        Arguments::Object(map) => Value::Object(map.clone()).to_string(),
        Arguments::Invalid(text) => text.clone(),
    };
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            let function = json!({"name": call.name, "arguments": arguments(&call.arguments)});
            json!({"id": call.id, "type": "function", "function": function})
        });
        sent["tool_calls"] = calls.collect();
    }
    sent
}

fn read_usage(usage: &Value) -> Option<Usage> {
    let usage = usage.as_object().map(|_| usage)?;
    Some(Usage {
        input_tokens: token_count(usage, "prompt_tokens"),
        output_tokens: token_count(usage, "completion_tokens"),
        cached_input_tokens: usage
            .get("prompt_tokens_details")
            .and_then(|details| token_count(details, "cached_tokens")),
        cost_usd: None,
    })
}

/// Returns the messages with the results of a turn's calls.
pub(super) fn result_messages(results: &[CallResult]) -> Vec<Value> {
    let message = |result: &CallResult| json!({"role": "tool", "tool_call_id": result.id, "content": result.text});
    results.iter().map(message).collect()
}

/// Returns the answer to a prompt with a schema.
pub(super) fn parse_structured(turn: &Turn) -> Result<Value, String> {
    serde_json::from_str(&turn.text).map_err(|error| format!("the answer is not valid JSON ({error}): {}", turn.text))
}
