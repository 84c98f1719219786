//! Logs of model API conversations: lists of messages, requests, and requests with their responses.

use karat_core::document::{Step, StepUsage, TraceContent};
use serde_json::{Map, Value, json};

use crate::format::TraceFormat;
use crate::piece::ImportedTrace;
use crate::time::parse_any_unit;
use crate::trace_ids::{content_id, entry_id, validate_id};
use karat_chat::Conversation;
use karat_chat::lenient::{first, first_count, first_text};

/// Keys of a trace id. Conversation ids are excluded: each request of a conversation is a trace.
const TRACE_ID_KEYS: [&str; 3] = ["trace_id", "traceId", "request_id"];

/// Keys of an id that is unique only within its file.
const ENTRY_ID_KEYS: [&str; 2] = ["id", "custom_id"];

/// Keys of an id that several traces share.
const SESSION_ID_KEYS: [&str; 5] = ["session_id", "sessionId", "conversation_id", "thread_id", "chat_id"];

/// Reads one entry of a log.
pub(crate) fn read(format: TraceFormat, value: &Value, text: &[u8]) -> Result<ImportedTrace, String> {
    let empty = Map::new();
    let entry = value.as_object().unwrap_or(&empty);
    let request = ["request", "body"].iter().find_map(|name| entry.get(*name)?.as_object()).unwrap_or(entry);
    let response = response(entry);

    let mut conversation = Conversation::default();
    if let Some(system) = first(request, &["system", "instructions"]).or_else(|| entry.get("system")) {
        conversation.push_system(system);
    }
    let messages = value.as_array().or_else(|| request.get("messages").and_then(Value::as_array));
    match (messages, request.get("input")) {
        (Some(messages), _) => conversation.extend(messages)?,
        // OpenAI Responses API.
        (None, Some(Value::Array(items))) => conversation.push_items(items, "user")?,
        (None, Some(Value::String(text))) => conversation.push(&json!({"role": "user", "content": text}), "user")?,
        _ => return Err("missing list 'messages'".to_owned()),
    }
    let answered = match response {
        Some(Response::Text(text)) => {
            conversation.push(&json!({"role": "assistant", "content": text}), "assistant")?;
            true
        }
        Some(Response::Object(response)) => push_response(&mut conversation, response)?,
        None => false,
    };
    let mut split = conversation.into_steps();
    let error = error_text(entry, response);
    if let Some(error) = &error
        && !answered
    {
        if !split.unanswered.is_empty() {
            let message = split.unanswered.iter().rev().find(|message| message.role == "user");
            let message = message.map(|message| message.content.clone());
            let mut step = Step::default();
            step.input.message = message;
            step.input.messages = std::mem::take(&mut split.unanswered);
            split.steps.push(step);
        }
        if let Some(last) = split.steps.last_mut() {
            last.error = Some(error.clone());
        }
    }
    if split.steps.is_empty() {
        return Err("the conversation is empty".to_owned());
    }

    let response_body = match response {
        Some(Response::Object(response)) => response,
        _ => &empty,
    };
    let mut document = TraceContent { steps: std::mem::take(&mut split.steps), ..TraceContent::default() };
    let model = [response_body, request, entry].iter().find_map(|part| first_text(part, &["model"]));
    document.model = model.map(str::to_owned);
    document.usage =
        response_body.get("usage").or_else(|| entry.get("usage")).and_then(Value::as_object).and_then(usage);
    if let Some(last) = document.steps.last_mut().filter(|_| answered || error.is_some()) {
        last.model.clone_from(&document.model);
        last.usage = document.usage;
    }
    describe(&mut document, entry, request);
    document.started_at = first(entry, &["started_at", "start_time", "timestamp", "created_at", "time", "created"])
        .or_else(|| first(response_body, &["created", "created_at"]))
        .and_then(parse_any_unit);
    document.ended_at = first(entry, &["ended_at", "end_time"]).and_then(parse_any_unit);
    if !split.unanswered.is_empty() {
        let unanswered = serde_json::to_value(&split.unanswered).unwrap_or_default();
        document.metadata.insert("unanswered".to_owned(), unanswered);
    }

    // Local model servers reuse response ids, so they are unique only within a file.
    let file_local_id = first_text(entry, &ENTRY_ID_KEYS).or_else(|| first_text(response_body, &["id"]));
    document.trace_id = match (first_text(entry, &TRACE_ID_KEYS), file_local_id) {
        (Some(id), _) => validate_id(id)?,
        (None, Some(entry)) => entry_id(entry, value)?,
        (None, None) => content_id(format, value),
    };
    Ok(ImportedTrace {
        format,
        trace_id: document.trace_id.clone(),
        document: document.to_text(),
        raw: text.to_vec(),
        feedback: Vec::new(),
    })
}

#[derive(Clone, Copy)]
enum Response<'v> {
    Text(&'v str),
    Object(&'v Map<String, Value>),
}

/// Finds the response in a log entry.
fn response(entry: &Map<String, Value>) -> Option<Response<'_>> {
    for name in ["response", "completion", "output"] {
        match entry.get(name) {
            Some(Value::String(text)) => return Some(Response::Text(text)),
            // In batch results, the response has a status and a body.
            Some(Value::Object(object)) => {
                return Some(Response::Object(object.get("body").and_then(Value::as_object).unwrap_or(object)));
            }
            _ => {}
        }
    }
    entry.get("choices").is_some_and(Value::is_array).then_some(Response::Object(entry))
}

/// Adds the model's answer, the first of several choices. Returns whether there is one.
fn push_response(conversation: &mut Conversation, response: &Map<String, Value>) -> Result<bool, String> {
    if let Some(choices) = response.get("choices").and_then(Value::as_array) {
        let Some(choice) = choices.first() else { return Ok(false) };
        let mut message = choice.get("message").cloned().unwrap_or_default();
        if let (Some(message), Some(reason)) = (message.as_object_mut(), choice.get("finish_reason")) {
            message.insert("finish_reason".to_owned(), reason.clone());
        }
        conversation.push(&message, "assistant").map_err(|reason| format!("choices[0].message: {reason}"))?;
        return Ok(true);
    }
    if let Some(output) = response.get("output").and_then(Value::as_array) {
        conversation.push_items(output, "assistant")?;
        return Ok(!output.is_empty());
    }
    if response.contains_key("content") || response.contains_key("tool_calls") {
        conversation.push(&Value::Object(response.clone()), "assistant")?;
        return Ok(true);
    }
    Ok(false)
}

fn error_text(entry: &Map<String, Value>, response: Option<Response<'_>>) -> Option<String> {
    let response_error = match response {
        Some(Response::Object(response)) => response.get("error"),
        _ => None,
    };
    let error =
        entry.get("error").filter(|error| !error.is_null()).or(response_error).filter(|error| !error.is_null())?;
    let message = error.get("message").and_then(Value::as_str).or_else(|| error.as_str());
    Some(message.map_or_else(|| error.to_string(), str::to_owned))
}

/// Reads the usage. Anthropic counts cache reads and writes separately; here `input_tokens` includes them, as in other
/// APIs.
pub(crate) fn usage(usage: &Map<String, Value>) -> Option<StepUsage> {
    let cached = usage
        .get("prompt_tokens_details")
        .or_else(|| usage.get("input_tokens_details"))
        .and_then(Value::as_object)
        .and_then(|details| first_count(details, &["cached_tokens"]));
    let read = first_count(usage, &["cache_read_input_tokens"]);
    let written = first_count(usage, &["cache_creation_input_tokens"]);
    let cache_tokens = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let input = first_count(usage, &["prompt_tokens"])
        .or_else(|| first_count(usage, &["input_tokens"]).map(|input| input.saturating_add(cache_tokens)));
    let usage = StepUsage {
        input_tokens: input,
        output_tokens: first_count(usage, &["completion_tokens", "output_tokens"]),
        cached_input_tokens: cached.or(read),
        cost_usd: None,
    };
    (!usage.is_empty()).then_some(usage)
}

/// Adds name, session, user, tags and metadata.
fn describe(document: &mut TraceContent, entry: &Map<String, Value>, request: &Map<String, Value>) {
    document.name = first_text(entry, &["name"]).map(str::to_owned);
    document.session_id =
        first_text(entry, &SESSION_ID_KEYS).or_else(|| first_text(request, &SESSION_ID_KEYS)).map(str::to_owned);
    let user = first_text(entry, &["user_id", "userId", "user"]).or_else(|| first_text(request, &["user"]));
    document.user_id = user.map(str::to_owned);
    if let Some(tags) = entry.get("tags").and_then(Value::as_array) {
        document.tags = tags.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    for part in [request, entry] {
        if let Some(metadata) = part.get("metadata").and_then(Value::as_object) {
            document.metadata.extend(metadata.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
    }
    // A numeric id is a row number, which repeats in other files.
    for name in TRACE_ID_KEYS.iter().chain(&ENTRY_ID_KEYS) {
        if let Some(number @ Value::Number(_)) = entry.get(*name) {
            document.metadata.insert((*name).to_owned(), number.clone());
        }
    }
}
