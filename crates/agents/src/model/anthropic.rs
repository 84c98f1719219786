//! The Messages API of Anthropic.

use karat_cases::registry::Tool;
use karat_core::chat::ChatPrompt;
use karat_core::trace::Usage;
use karat_json::type_name;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client::Parameters;
use super::openai::split_query;
use super::turn::{Arguments, Call, CallResult, Turn, token_count};

const API_VERSION: &str = "2023-06-01";

/// The API requires a limit.
const DEFAULT_MAX_OUTPUT_TOKENS: u64 = 4096;

/// Returns the endpoint; the base URL may end with `/v1` or not.
pub(super) fn endpoint_url(base: &str) -> String {
    let (path, query) = split_query(base);
    let path = path.trim_end_matches('/');
    format!("{}/v1/messages{query}", path.strip_suffix("/v1").unwrap_or(path))
}

pub(super) fn headers(key: Option<&str>) -> Vec<(String, String)> {
    let version = ("anthropic-version".to_owned(), API_VERSION.to_owned());
    key.map(|key| ("x-api-key".to_owned(), key.to_owned())).into_iter().chain([version]).collect()
}

pub(super) fn tool_definitions(tools: &[Tool]) -> Vec<Value> {
    let empty = || json!({"type": "object", "properties": {}});
    let define = |tool: &Tool| {
        let mut definition = json!({"name": tool.name});
        if let Some(description) = tool.description.get() {
            definition["description"] = description.as_str().into();
        }
        definition["input_schema"] = tool.input_schema.get().cloned().unwrap_or_else(empty);
        definition
    };
    tools.iter().map(define).collect()
}

pub(super) fn first_messages(user: &str) -> Vec<Value> {
    vec![json!({"role": "user", "content": user})]
}

/// Adds a message of the user. After tool results or an unanswered message it is part of the same message, since the
/// roles must alternate.
pub(super) fn push_user_message(messages: &mut Vec<Value>, text: &str) {
    let last = messages.last_mut().filter(|message| message.get("role").and_then(Value::as_str) == Some("user"));
    let Some(content) = last.and_then(|message| message.get_mut("content")) else {
        return messages.push(json!({"role": "user", "content": text}));
    };
    if let Value::String(earlier) = content {
        *content = json!([{"type": "text", "text": earlier}]);
    }
    if let Value::Array(blocks) = content {
        blocks.push(json!({"type": "text", "text": text}));
    }
}

#[derive(Serialize)]
struct Body<'b> {
    model: &'b str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'b str>,
    messages: &'b [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'b RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

/// Serialises a request for the next turn.
pub(super) fn request_body(
    model: &str,
    parameters: Parameters,
    system: Option<&str>,
    messages: &[Value],
    tools: Option<&RawValue>,
    prompt: Option<&ChatPrompt>,
) -> serde_json::Result<Vec<u8>> {
    // A structured answer is requested as the call of a tool with that schema.
    let answer_tool = prompt
        .map(|prompt| {
            let tool =
                json!([{"name": prompt.name, "description": "Gives the answer.", "input_schema": prompt.schema}]);
            RawValue::from_string(tool.to_string())
        })
        .transpose()?;
    serde_json::to_vec(&Body {
        model,
        max_tokens: parameters.max_output_tokens.unwrap_or(DEFAULT_MAX_OUTPUT_TOKENS),
        system,
        messages,
        tools: answer_tool.as_deref().or(tools),
        tool_choice: prompt.map(|prompt| json!({"type": "tool", "name": prompt.name})),
        temperature: parameters.temperature,
    })
}

pub(super) fn parse_reply(reply: &Value) -> Result<Turn, String> {
    let content = match reply.get("content") {
        Some(Value::Array(content)) => content,
        Some(other) => return Err(format!("the reply's 'content' is {}, not an array", type_name(other))),
        None => return Err(format!("the reply has no 'content': {reply}")),
    };
    let blocks_of_type = |kind: &'static str| {
        content.iter().filter(move |block| block.get("type").and_then(Value::as_str) == Some(kind))
    };
    let calls = blocks_of_type("tool_use").map(read_call).collect::<Result<Vec<_>, _>>()?;
    let incomplete_reason = match reply.get("stop_reason").and_then(Value::as_str) {
        Some("max_tokens" | "model_context_window_exceeded") => {
            Some("the answer was cut off at the token limit".to_owned())
        }
        Some("refusal") => Some("the model refused".to_owned()),
        Some("pause_turn") => Some("the provider paused the answer".to_owned()),
        _ => None,
    };
    Ok(Turn {
        text: blocks_of_type("text").filter_map(|block| block.get("text").and_then(Value::as_str)).collect(),
        calls,
        usage: reply.get("usage").and_then(read_usage),
        model: reply.get("model").and_then(Value::as_str).map(str::to_owned),
        message: json!({"role": "assistant", "content": content.iter().filter(|block| !is_blank(block)).map(sanitise_block).collect::<Value>()}),
        incomplete_reason,
    })
}

/// Whether a block is an empty text, which the provider rejects in a request.
fn is_blank(block: &Value) -> bool {
    block.get("text").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty())
}

/// Returns a block as it is sent back to the model. Thinking blocks must be unchanged; arguments that are not an object
/// are replaced, because the provider rejects them.
fn sanitise_block(block: &Value) -> Value {
    let mut block = block.clone();
    if block.get("type").and_then(Value::as_str) == Some("tool_use")
        && !block.get("input").is_some_and(Value::is_object)
    {
        block["input"] = json!({});
    }
    block
}

fn read_call(block: &Value) -> Result<Call, String> {
    let text = |key: &str| block.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let missing = |part: &str| format!("the reply's tool call has no {part}: {block}");
    let arguments = match block.get("input") {
        Some(Value::Object(map)) => Arguments::Object(map.clone()),
        None | Some(Value::Null) => Arguments::Object(serde_json::Map::new()),
        // A string may contain the object as JSON.
        Some(Value::String(text)) => Arguments::parse(text),
        Some(other) => Arguments::Invalid(other.to_string()),
    };
    Ok(Call {
        id: text("id").ok_or_else(|| missing("id"))?,
        name: text("name").ok_or_else(|| missing("name"))?,
        arguments,
    })
}

fn read_usage(usage: &Value) -> Option<Usage> {
    let usage = usage.as_object().map(|_| usage)?;
    let cached = token_count(usage, "cache_read_input_tokens").filter(|cached| *cached > 0);
    let written = token_count(usage, "cache_creation_input_tokens").unwrap_or(0);
    // `input_tokens` does not include cache reads and writes.
    let input = token_count(usage, "input_tokens")
        .map(|input| input.saturating_add(cached.unwrap_or(0)).saturating_add(written));
    Some(Usage {
        input_tokens: input,
        output_tokens: token_count(usage, "output_tokens"),
        cached_input_tokens: cached,
        cost_usd: None,
    })
}

/// Returns the message with the results of a turn's calls.
pub(super) fn result_messages(results: &[CallResult]) -> Vec<Value> {
    let blocks = results.iter().map(|result| {
        let mut block = json!({"type": "tool_result", "tool_use_id": result.id, "content": result.text});
        if result.is_error {
            block["is_error"] = true.into();
        }
        block
    });
    vec![json!({"role": "user", "content": blocks.collect::<Value>()})]
}

/// Returns the answer to a prompt with a schema.
pub(super) fn parse_structured(turn: &Turn) -> Result<Value, String> {
    match turn.calls.first().map(|call| &call.arguments) {
        Some(Arguments::Object(map)) => Ok(Value::Object(map.clone())),
        Some(Arguments::Invalid(text)) => Err(format!("the answer is not a JSON object: {text}")),
        None => Err(format!("the model did not answer in the requested format: {}", turn.text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_alternate() {
        let mut messages = first_messages("a");
        push_user_message(&mut messages, "b");
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use"}]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result"}]}));
        push_user_message(&mut messages, "c");
        let text = |text: &str| json!({"type": "text", "text": text});
        let expected = json!([
            {"role": "user", "content": [text("a"), text("b")]},
            {"role": "assistant", "content": [{"type": "tool_use"}]},
            {"role": "user", "content": [{"type": "tool_result"}, text("c")]},
        ]);
        assert_eq!(json!(messages), expected);
    }
}
