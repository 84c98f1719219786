//! Messages, as Anthropic speaks them.

use karat_core::chat::ChatPrompt;
use karat_core::registry::Tool;
use karat_core::trace::Usage;
use karat_json::type_name;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client::Parameters;
use super::openai::split_query;
use super::turn::{Arguments, Call, CallResult, Turn, tokens};

/// The version of the wire format that this file speaks.
const VERSION: &str = "2023-06-01";

/// The provider wants to be told how long an answer may be.
const MAX_OUTPUT_TOKENS: u64 = 4096;

/// Returns where a provider of this kind is asked; the base may hold the version or not.
pub(super) fn url(base: &str) -> String {
    let (path, query) = split_query(base);
    let path = path.trim_end_matches('/');
    format!("{}/v1/messages{query}", path.strip_suffix("/v1").unwrap_or(path))
}

pub(super) fn headers(key: Option<&str>) -> Vec<(String, String)> {
    let version = ("anthropic-version".to_owned(), VERSION.to_owned());
    key.map(|key| ("x-api-key".to_owned(), key.to_owned())).into_iter().chain([version]).collect()
}

/// Returns the tools as they are offered.
pub(super) fn tools(tools: &[Tool]) -> Vec<Value> {
    let empty = || json!({"type": "object", "properties": {}});
    let offer = |tool: &Tool| {
        let mut offered = json!({"name": tool.name});
        if let Some(description) = tool.description.get() {
            offered["description"] = description.as_str().into();
        }
        offered["input_schema"] = tool.input_schema.get().cloned().unwrap_or_else(empty);
        offered
    };
    tools.iter().map(offer).collect()
}

pub(super) fn first_messages(user: &str) -> Vec<Value> {
    vec![json!({"role": "user", "content": user})]
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

/// Writes a request for the next turn.
pub(super) fn body(
    model: &str,
    parameters: Parameters,
    system: Option<&str>,
    messages: &[Value],
    tools: Option<&RawValue>,
    prompt: Option<&ChatPrompt>,
) -> serde_json::Result<Vec<u8>> {
    // An answer of a given shape is asked for as the call of a tool with that shape.
    let asked = prompt
        .map(|prompt| {
            let tool =
                json!([{"name": prompt.name, "description": "Gives the answer.", "input_schema": prompt.schema}]);
            RawValue::from_string(tool.to_string())
        })
        .transpose()?;
    serde_json::to_vec(&Body {
        model,
        max_tokens: parameters.max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS),
        system,
        messages,
        tools: asked.as_deref().or(tools),
        tool_choice: prompt.map(|prompt| json!({"type": "tool", "name": prompt.name})),
        temperature: parameters.temperature,
    })
}

/// Reads a reply.
pub(super) fn read(reply: &Value) -> Result<Turn, String> {
    let content = match reply.get("content") {
        Some(Value::Array(content)) => content,
        Some(other) => return Err(format!("the reply's 'content' is {}, not an array", type_name(other))),
        None => return Err(format!("the reply has no 'content': {reply}")),
    };
    let of_kind = |kind: &'static str| {
        content.iter().filter(move |block| block.get("type").and_then(Value::as_str) == Some(kind))
    };
    let calls = of_kind("tool_use").map(read_call).collect::<Result<Vec<_>, _>>()?;
    let cut_off = match reply.get("stop_reason").and_then(Value::as_str) {
        Some("max_tokens" | "model_context_window_exceeded") => {
            Some("the answer was cut off at its longest".to_owned())
        }
        Some("refusal") => Some("the model refused".to_owned()),
        Some("pause_turn") => Some("the provider paused the answer".to_owned()),
        _ => None,
    };
    Ok(Turn {
        text: of_kind("text").filter_map(|block| block.get("text").and_then(Value::as_str)).collect(),
        calls,
        usage: reply.get("usage").and_then(read_usage),
        model: reply.get("model").and_then(Value::as_str).map(str::to_owned),
        message: json!({"role": "assistant", "content": content.iter().filter(|block| !is_blank(block)).map(returned).collect::<Value>()}),
        cut_off,
    })
}

/// Tells whether a block is a text without any, which the provider would not take back.
fn is_blank(block: &Value) -> bool {
    block.get("text").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty())
}

/// Returns a block as it goes back to the model: whole, since blocks of thinking must come back as they were, but for
/// arguments that the provider would not take back.
fn returned(block: &Value) -> Value {
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
    let lacks = |what: &str| format!("the reply's tool call has no {what}: {block}");
    let arguments = match block.get("input") {
        Some(Value::Object(map)) => Arguments::Object(map.clone()),
        None | Some(Value::Null) => Arguments::Object(serde_json::Map::new()),
        // A text is what was meant to be JSON.
        Some(Value::String(text)) => Arguments::parse(text),
        Some(other) => Arguments::Unreadable(other.to_string()),
    };
    Ok(Call { id: text("id").ok_or_else(|| lacks("id"))?, name: text("name").ok_or_else(|| lacks("name"))?, arguments })
}

fn read_usage(usage: &Value) -> Option<Usage> {
    let usage = usage.as_object().map(|_| usage)?;
    let cached = tokens(usage, "cache_read_input_tokens").filter(|cached| *cached > 0);
    let written = tokens(usage, "cache_creation_input_tokens").unwrap_or(0);
    // What came from the cache or went into it is not in the plain count.
    let input =
        tokens(usage, "input_tokens").map(|input| input.saturating_add(cached.unwrap_or(0)).saturating_add(written));
    Some(Usage {
        input_tokens: input,
        output_tokens: tokens(usage, "output_tokens"),
        cached_input_tokens: cached,
        cost_usd: None,
    })
}

/// Returns the message that answers a turn's calls.
pub(super) fn results(results: &[CallResult]) -> Vec<Value> {
    let blocks = results.iter().map(|result| {
        let mut block = json!({"type": "tool_result", "tool_use_id": result.id, "content": result.text});
        if result.failed {
            block["is_error"] = true.into();
        }
        block
    });
    vec![json!({"role": "user", "content": blocks.collect::<Value>()})]
}

/// Reads the answer to a prompt with a schema.
pub(super) fn structured(turn: &Turn) -> Result<Value, String> {
    match turn.calls.first().map(|call| &call.arguments) {
        Some(Arguments::Object(map)) => Ok(Value::Object(map.clone())),
        Some(Arguments::Unreadable(text)) => Err(format!("the answer is no JSON object: {text}")),
        None => Err(format!("the model did not answer in the shape that it was asked for: {}", turn.text)),
    }
}
