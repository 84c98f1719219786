//! The `OpenAI` chat completions API: request validation and responses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Request;
use super::protocol::{Question, Refusal, is_tool_name, non_null, number_within, only_keys, positive_integer, text_of};
use super::turn::{Arguments, Turn};

/// The known request parameters.
const PARAMETERS: [&str; 31] = [
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// Parses a request, or returns why the API would reject it.
pub(super) fn read(request: &Request, needs_key: bool) -> Result<Question, Refusal> {
    let key = request.headers.get("authorization").and_then(|header| header.strip_prefix("Bearer "));
    if needs_key && key.is_none_or(|key| key.trim().is_empty()) {
        return Err(Refusal { status: 401, reason: "you did not provide an API key".to_owned() });
    }
    let body = &request.body;
    only_keys(body.as_object().ok_or_else(|| Refusal::bad("the body is not an object"))?, &PARAMETERS, "body")?;
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err(Refusal::bad("you must provide a model parameter"));
    }
    if non_null(body, "stream").is_some_and(|stream| stream != false) {
        return Err(Refusal::bad("stream: this server does not stream"));
    }
    number_within(body, "temperature", 0.0, 2.0)?;
    number_within(body, "top_p", 0.0, 1.0)?;
    positive_integer(body, "max_tokens")?;
    positive_integer(body, "max_completion_tokens")?;
    if non_null(body, "max_tokens").is_some() && non_null(body, "max_completion_tokens").is_some() {
        return Err(Refusal::bad("max_tokens and max_completion_tokens cannot both be set"));
    }
    if non_null(body, "seed").is_some_and(|seed| !seed.is_i64() && !seed.is_u64()) {
        return Err(Refusal::bad("seed: not an integer"));
    }
    check_tools(body)?;
    check_response_format(body)?;
    let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| Refusal::bad("messages: at least one message is required"))?;
    check_messages(messages)?;
    let of = |role: &'static str| messages.iter().filter(move |message| message["role"] == role);
    let message = of("user").next().map(|message| text_of(&message["content"])).unwrap_or_default();
    Ok(Question { message, turn: of("assistant").count() })
}

fn check_tools(body: &Value) -> Result<(), Refusal> {
    let Some(tools) = non_null(body, "tools") else {
        let orphan = ["tool_choice", "parallel_tool_calls"].into_iter().find(|key| non_null(body, key).is_some());
        return match orphan {
            Some(key) => Err(Refusal::bad(format!("{key}: only allowed when tools are specified"))),
            None => Ok(()),
        };
    };
    let tools = tools.as_array().filter(|tools| !tools.is_empty());
    let tools = tools.ok_or_else(|| Refusal::bad("tools: at least one tool is required"))?;
    for (index, tool) in tools.iter().enumerate() {
        check_tool(tool, &format!("tools[{index}]"))?;
    }
    let name_of = |tool: &Value| tool["function"]["name"].clone();
    match non_null(body, "tool_choice") {
        None => Ok(()),
        Some(Value::String(choice)) if ["auto", "none", "required"].contains(&choice.as_str()) => Ok(()),
        Some(choice) if choice["type"] == "function" && tools.iter().any(|tool| name_of(tool) == name_of(choice)) => {
            Ok(())
        }
        Some(choice) => {
            Err(Refusal::bad(format!("tool_choice: {choice} is not a valid choice or does not name a tool")))
        }
    }
}

fn check_tool(tool: &Value, at: &str) -> Result<(), Refusal> {
    let refuse = |problem: &str| Err(Refusal::bad(format!("{at}{problem}")));
    let Some((outer, function)) = tool.as_object().zip(tool["function"].as_object()) else {
        return refuse(".function: missing");
    };
    only_keys(outer, &["type", "function"], at)?;
    only_keys(function, &["name", "description", "parameters", "strict"], at)?;
    if tool["type"] != "function" {
        return refuse(".type: not 'function'");
    }
    if !tool["function"]["name"].as_str().is_some_and(is_tool_name) {
        return refuse(".function.name: does not match '^[a-zA-Z0-9_-]{1,64}$'");
    }
    if function.get("description").is_some_and(|description| !description.is_string()) {
        return refuse(".function.description: not a string");
    }
    if function.get("parameters").is_some_and(|parameters| parameters["type"] != "object") {
        return refuse(".function.parameters: not a JSON Schema of type 'object'");
    }
    Ok(())
}

fn check_response_format(body: &Value) -> Result<(), Refusal> {
    let Some(format) = non_null(body, "response_format") else { return Ok(()) };
    let is_valid = match format["type"].as_str() {
        Some("text" | "json_object") => true,
        Some("json_schema") => {
            let schema = &format["json_schema"];
            if schema["strict"] == true {
                check_strict(&schema["schema"], "response_format.json_schema.schema")?;
            }
            schema["name"].as_str().is_some_and(is_tool_name) && schema["schema"].is_object()
        }
        _ => false,
    };
    if is_valid {
        Ok(())
    } else {
        Err(Refusal::bad("response_format: unknown type, or json_schema without name and schema"))
    }
}

/// Checks a strict schema: every key of an object must be required, other keys must be forbidden, and every value must
/// have a type.
fn check_strict(schema: &Value, at: &str) -> Result<(), Refusal> {
    let refuse = |problem: &str| Err(Refusal::bad(format!("{at}: {problem}")));
    if !["type", "$ref", "anyOf"].iter().any(|key| schema.get(key).is_some()) {
        return refuse("schema must have a 'type' key");
    }
    if schema["type"] == "object" {
        if schema["additionalProperties"] != false {
            return refuse("'additionalProperties' is required to be supplied and to be false");
        }
        let keys: BTreeSet<&str> =
            schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if keys != required {
            return refuse("'required' is required to be an array including every key in properties");
        }
    }
    let members = |key: &str| schema[key].as_object().into_iter().flatten().map(|(_, inner)| inner);
    let choices = schema["anyOf"].as_array().into_iter().flatten();
    let mut inner = members("properties").chain(members("$defs")).chain(choices).chain(schema.get("items"));
    inner.try_for_each(|inner| check_strict(inner, at))
}

fn check_messages(messages: &[Value]) -> Result<(), Refusal> {
    // The unanswered calls of the last assistant message.
    let mut open = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Err(Refusal::bad(format!("{at}: tool_call_id '{id}' matches no open call")));
            }
            if !is_text(&message["content"]) {
                return Err(Refusal::bad(format!("{at}.content: not a string")));
            }
            continue;
        }
        check_all_answered(&open, &at)?;
        match role {
            "system" | "developer" | "user" if is_content(&message["content"]) => {}
            "assistant" => open = call_ids(message, &at)?,
            "system" | "developer" | "user" => {
                return Err(Refusal::bad(format!("{at}.content: missing or invalid")));
            }
            role => return Err(Refusal::bad(format!("{at}.role: unknown role '{role}'"))),
        }
    }
    check_all_answered(&open, "the last message")
}

fn check_all_answered(open: &BTreeSet<String>, at: &str) -> Result<(), Refusal> {
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = open.iter().map(String::as_str).collect();
    let ids = ids.join(", ");
    Err(Refusal::bad(format!("{at}: these tool_call_ids did not have response messages: {ids}")))
}

/// Returns the ids of the calls of an assistant message.
fn call_ids(message: &Value, at: &str) -> Result<BTreeSet<String>, Refusal> {
    let content = non_null(message, "content");
    if content.is_some_and(|content| !is_text(content)) {
        return Err(Refusal::bad(format!("{at}.content: not a string")));
    }
    let Some(calls) = non_null(message, "tool_calls") else {
        return match content {
            Some(_) => Ok(BTreeSet::new()),
            None => Err(Refusal::bad(format!("{at}: neither content nor tool_calls"))),
        };
    };
    let calls = calls.as_array().filter(|calls| !calls.is_empty());
    let calls = calls.ok_or_else(|| Refusal::bad(format!("{at}.tool_calls: at least one is required")))?;
    let mut ids = BTreeSet::new();
    for (index, call) in calls.iter().enumerate() {
        let refuse = |problem: &str| Err(Refusal::bad(format!("{at}.tool_calls[{index}].{problem}")));
        let id = call["id"].as_str().unwrap_or_default();
        if id.is_empty() || !ids.insert(id.to_owned()) {
            return refuse("id: missing or not unique");
        }
        if call["type"] != "function" {
            return refuse("type: not 'function'");
        }
        if !call["function"]["name"].as_str().is_some_and(is_tool_name) {
            return refuse("function.name: does not match '^[a-zA-Z0-9_-]{1,64}$'");
        }
        if !call["function"]["arguments"].is_string() {
            return refuse("function.arguments: not a string");
        }
    }
    Ok(ids)
}

/// Whether content is a string or a list of text parts.
fn is_text(content: &Value) -> bool {
    let is_part = |part: &Value| part["type"] == "text" && part["text"].is_string();
    content.is_string() || content.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_part))
}

/// Whether content is a string or a list of any parts.
fn is_content(content: &Value) -> bool {
    let is_part = |part: &Value| part["type"].is_string();
    content.is_string() || content.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_part))
}

/// Whether the request asks for structured output.
pub(super) fn requests_structure(body: &Value) -> bool {
    body["response_format"]["type"] == "json_schema" || body["tool_choice"]["type"] == "function"
}

/// Renders a turn as a response of the API.
pub(super) fn completion(turn: &Turn, request: &Value) -> Value {
    let mut text = turn.text.clone();
    let mut calls: Vec<(&str, String)> = turn
        .calls
        .iter()
        .map(|call| match &call.arguments {
            Arguments::Raw(raw) => (call.name.as_str(), raw.clone()),
            Arguments::Json(json) => (call.name.as_str(), json.to_string()),
        })
        .collect();
    if let Some(structured) = &turn.structured {
        match request["tool_choice"]["function"]["name"].as_str() {
            Some(forced) => calls.push((forced, structured.text())),
            None => text = structured.text(),
        }
    }
    let calls: Vec<Value> = calls
        .into_iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            let id = format!("call_{index}_{name}");
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    let finish_reason = match (turn.is_truncated, calls.is_empty()) {
        (true, _) => "length",
        (false, true) => "stop",
        (false, false) => "tool_calls",
    };
    let mut message = json!({"role": "assistant", "content": (!text.is_empty()).then_some(text)});
    if let Some(refusal) = &turn.refusal {
        message["refusal"] = json!(refusal);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let (input, output) = turn.tokens();
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output},
    })
}

/// Renders an error of the API.
pub(super) fn error(refusal: &Refusal) -> Value {
    let (kind, code) = match refusal.status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({"error": {"message": refusal.reason, "type": kind, "param": null, "code": code}})
}
