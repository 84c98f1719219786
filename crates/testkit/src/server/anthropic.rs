//! The Anthropic messages API: request validation and responses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Request;
use super::protocol::{Question, Refusal, is_tool_name, non_null, number_within, only_keys, positive_integer, text_of};
use super::turn::{Arguments, Turn};

/// The known request parameters.
const PARAMETERS: [&str; 14] = [
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// Parses a request, or returns why the API would reject it.
pub(super) fn read(request: &Request, needs_key: bool) -> Result<Question, Refusal> {
    if needs_key && request.headers.get("x-api-key").is_none_or(|key| key.trim().is_empty()) {
        return Err(Refusal { status: 401, reason: "x-api-key header is required".to_owned() });
    }
    if request.headers.get("anthropic-version").is_none_or(String::is_empty) {
        return Err(Refusal::bad("anthropic-version: header is required"));
    }
    let body = &request.body;
    only_keys(body.as_object().ok_or_else(|| Refusal::bad("the body is not an object"))?, &PARAMETERS, "body")?;
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err(Refusal::bad("model: field required"));
    }
    if non_null(body, "max_tokens").is_none() {
        return Err(Refusal::bad("max_tokens: field required"));
    }
    positive_integer(body, "max_tokens")?;
    if non_null(body, "stream").is_some_and(|stream| stream != false) {
        return Err(Refusal::bad("stream: this server does not stream"));
    }
    number_within(body, "temperature", 0.0, 1.0)?;
    number_within(body, "top_p", 0.0, 1.0)?;
    if non_null(body, "system").is_some_and(|system| !system.is_string() && !is_text_blocks(system)) {
        return Err(Refusal::bad("system: neither a string nor text blocks"));
    }
    check_tools(body)?;
    let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| Refusal::bad("messages: at least one message is required"))?;
    check_messages(messages)?;
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    Ok(Question { message: text_of(&messages[0]["content"]), turn })
}

fn check_tools(body: &Value) -> Result<(), Refusal> {
    let tools = match non_null(body, "tools") {
        None => &[][..],
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(Refusal::bad("tools: not a list")),
    };
    let mut names = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools.{index}");
        let name = check_tool(tool, &at)?;
        if !names.insert(name) {
            return Err(Refusal::bad(format!("{at}.name: tool names must be unique")));
        }
    }
    let Some(choice) = non_null(body, "tool_choice") else { return Ok(()) };
    let is_valid = match choice["type"].as_str() {
        Some("auto" | "none") => true,
        Some("any") => !names.is_empty(),
        Some("tool") => choice["name"].as_str().is_some_and(|name| names.contains(name)),
        _ => false,
    };
    if is_valid {
        Ok(())
    } else {
        Err(Refusal::bad(format!("tool_choice: {choice} is not a valid choice or does not name a tool")))
    }
}

fn check_tool<'v>(tool: &'v Value, at: &str) -> Result<&'v str, Refusal> {
    let refuse = |problem: &str| Err(Refusal::bad(format!("{at}{problem}")));
    let Some(keys) = tool.as_object() else { return refuse(": not an object") };
    only_keys(keys, &["type", "name", "description", "input_schema", "cache_control", "strict"], at)?;
    if non_null(tool, "type").is_some_and(|kind| kind != "custom") {
        return refuse(".type: not 'custom'");
    }
    let Some(name) = tool["name"].as_str().filter(|name| is_tool_name(name)) else {
        return refuse(".name: does not match '^[a-zA-Z0-9_-]{1,64}$'");
    };
    if keys.get("description").is_some_and(|description| !description.is_string()) {
        return refuse(".description: not a string");
    }
    if tool["input_schema"]["type"] != "object" {
        return refuse(".input_schema.type: not 'object'");
    }
    Ok(name)
}

fn check_messages(messages: &[Value]) -> Result<(), Refusal> {
    // The calls of the previous message, which this one must answer.
    let mut open = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages.{index}");
        let (role, other) = if index % 2 == 0 { ("user", "assistant") } else { ("assistant", "user") };
        if message["role"] != role {
            let problem = if message["role"] == other { "roles must alternate, user first" } else { "unknown" };
            return Err(Refusal::bad(format!("{at}.role: {problem}")));
        }
        let blocks = match &message["content"] {
            Value::String(text) if !text.trim().is_empty() => vec![json!({"type": "text", "text": text})],
            Value::Array(blocks) if !blocks.is_empty() => blocks.clone(),
            _ => return Err(Refusal::bad(format!("{at}.content: messages must have non-empty content"))),
        };
        open = if role == "user" {
            check_results(&blocks, open, &at)?;
            BTreeSet::new()
        } else {
            call_ids(&blocks, &at)?
        };
    }
    check_all_answered(&open, "the last message")
}

fn check_all_answered(open: &BTreeSet<String>, at: &str) -> Result<(), Refusal> {
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = open.iter().map(String::as_str).collect();
    let ids = ids.join(", ");
    Err(Refusal::bad(format!("{at}: tool_use ids were found without tool_result blocks immediately after: {ids}")))
}

/// Checks that the blocks of a user message start with results for all open calls.
fn check_results(blocks: &[Value], mut open: BTreeSet<String>, at: &str) -> Result<(), Refusal> {
    for (index, block) in blocks.iter().enumerate() {
        let at = format!("{at}.content.{index}");
        match block["type"].as_str() {
            Some("tool_result") => {
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                if !open.remove(id) {
                    return Err(Refusal::bad(format!(
                        "{at}: tool_use_id '{id}' matches no tool_use of the previous message"
                    )));
                }
                check_result(block, &at)?;
            }
            Some("text") => {
                check_all_answered(&open, &at)?;
                check_text(block, &at)?;
            }
            Some("image" | "document") => check_all_answered(&open, &at)?,
            _ => return Err(Refusal::bad(format!("{at}.type: unknown for a user"))),
        }
    }
    check_all_answered(&open, at)
}

fn check_result(block: &Value, at: &str) -> Result<(), Refusal> {
    let keys = block.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let known = ["type", "tool_use_id", "content", "is_error", "cache_control"];
    if let Some(key) = keys.into_iter().find(|key| !known.contains(key)) {
        return Err(Refusal::bad(format!("{at}: '{key}' is not permitted")));
    }
    if non_null(block, "is_error").is_some_and(|flag| !flag.is_boolean()) {
        return Err(Refusal::bad(format!("{at}.is_error: not a boolean")));
    }
    match non_null(block, "content") {
        Some(content) if !content.is_string() && !is_text_blocks(content) => {
            Err(Refusal::bad(format!("{at}.content: neither a string nor text blocks")))
        }
        _ => Ok(()),
    }
}

/// Returns the ids of the calls of an assistant message.
fn call_ids(blocks: &[Value], at: &str) -> Result<BTreeSet<String>, Refusal> {
    let mut ids = BTreeSet::new();
    for (index, block) in blocks.iter().enumerate() {
        let at = format!("{at}.content.{index}");
        match block["type"].as_str() {
            Some("text") => check_text(block, &at)?,
            Some("tool_use") => {
                let id = block["id"].as_str().unwrap_or_default();
                let is_id = |id: &str| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
                if id.is_empty() || !is_id(id) || !ids.insert(id.to_owned()) {
                    return Err(Refusal::bad(format!("{at}.id: missing, invalid, or not unique")));
                }
                if !block["name"].as_str().is_some_and(is_tool_name) {
                    return Err(Refusal::bad(format!("{at}.name: does not match '^[a-zA-Z0-9_-]{{1,64}}$'")));
                }
                if !block["input"].is_object() {
                    return Err(Refusal::bad(format!("{at}.input: not an object")));
                }
            }
            Some("thinking" | "redacted_thinking") => {}
            _ => return Err(Refusal::bad(format!("{at}.type: unknown for an assistant"))),
        }
    }
    Ok(ids)
}

fn check_text(block: &Value, at: &str) -> Result<(), Refusal> {
    if block["text"].as_str().is_some_and(|text| !text.trim().is_empty()) {
        return Ok(());
    }
    Err(Refusal::bad(format!("{at}.text: text content blocks must contain non-whitespace text")))
}

fn is_text_blocks(content: &Value) -> bool {
    let is_block =
        |block: &Value| block["type"] == "text" && block["text"].as_str().is_some_and(|text| !text.is_empty());
    content.as_array().is_some_and(|blocks| blocks.iter().all(is_block))
}

/// Returns the tool that the model must call.
pub(super) fn forced_tool(body: &Value) -> Option<&str> {
    let choice = body.get("tool_choice").filter(|choice| choice["type"] == "tool")?;
    choice["name"].as_str()
}

/// Renders a turn as a response of the API.
pub(super) fn message(turn: &Turn, request: &Value) -> Value {
    let mut content = Vec::new();
    let text = turn.refusal.as_ref().unwrap_or(&turn.text);
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    let calls = turn.calls.iter().map(|call| match &call.arguments {
        Arguments::Raw(raw) => (call.name.as_str(), json!(raw)),
        Arguments::Json(json) => (call.name.as_str(), json.clone()),
    });
    let structured = turn.structured.as_ref().zip(forced_tool(request)).map(|(input, name)| (name, input.json()));
    let calls: Vec<_> = calls.chain(structured).collect();
    let stop_reason = match turn {
        Turn { is_truncated: true, .. } => "max_tokens",
        Turn { refusal: Some(_), .. } => "refusal",
        _ if calls.is_empty() => "end_turn",
        _ => "tool_use",
    };
    content.extend(calls.into_iter().enumerate().map(|(index, (name, input))| {
        json!({"type": "tool_use", "id": format!("toolu_{index}_{name}"), "name": name, "input": input})
    }));
    let (input, output) = turn.tokens();
    json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {"input_tokens": input, "output_tokens": output},
    })
}

/// Renders an error of the API.
pub(super) fn error(refusal: &Refusal) -> Value {
    let kind = match refusal.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": refusal.reason}})
}
