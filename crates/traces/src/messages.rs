//! Logs of conversations with a model's API: lists of messages, requests, and requests with their responses.

use karat_core::document::{Step, StepUsage, TraceContent};
use serde_json::{Map, Value, json};

use crate::conversation::Conversation;
use crate::identity::{checked_id, id_by_content, id_of_entry};
use crate::json::{first, first_count, first_text};
use crate::kind::Kind;
use crate::piece::Imported;
use crate::time::guessed;

/// Names that a log may have for what is one trace. A conversation's id is none of them: each of its requests is one.
const IDS: [&str; 3] = ["trace_id", "traceId", "request_id"];

/// Names of what tells one entry from another within a file only: other files count from one, too.
const ENTRIES: [&str; 2] = ["id", "custom_id"];

/// Names of what several traces have in common.
const SESSIONS: [&str; 5] = ["session_id", "sessionId", "conversation_id", "thread_id", "chat_id"];

/// Reads one entry of a log.
pub(crate) fn read(kind: Kind, value: &Value, text: &[u8]) -> Result<Imported, String> {
    let nothing = Map::new();
    let entry = value.as_object().unwrap_or(&nothing);
    let request = ["request", "body"].iter().find_map(|name| entry.get(*name)?.as_object()).unwrap_or(entry);
    let response = response(entry);

    let mut conversation = Conversation::default();
    if let Some(system) = first(request, &["system", "instructions"]).or_else(|| entry.get("system")) {
        conversation.push_system(system);
    }
    let messages = value.as_array().or_else(|| request.get("messages").and_then(Value::as_array));
    match (messages, request.get("input")) {
        (Some(messages), _) => conversation.extend(messages)?,
        // OpenAI's Responses.
        (None, Some(Value::Array(items))) => conversation.push_items(items, "user"),
        (None, Some(Value::String(text))) => conversation.push(&json!({"role": "user", "content": text}), "user")?,
        _ => return Err("there is no list of 'messages'".to_owned()),
    }
    let answered = match response {
        Some(Response::Text(text)) => {
            conversation.push(&json!({"role": "assistant", "content": text}), "assistant")?;
            true
        }
        Some(Response::Object(response)) => push_response(&mut conversation, response)?,
        None => false,
    };
    let mut taken = conversation.into_steps();
    let error = error_text(entry, response);
    if let Some(error) = &error
        && !answered
    {
        if !taken.unanswered.is_empty() {
            let message = taken.unanswered.iter().rev().find(|message| message.role == "user");
            let message = message.map(|message| message.content.clone());
            let mut step = Step::default();
            step.input.message = message;
            step.input.messages = std::mem::take(&mut taken.unanswered);
            taken.steps.push(step);
        }
        if let Some(last) = taken.steps.last_mut() {
            last.error = Some(error.clone());
        }
    }
    if taken.steps.is_empty() {
        return Err("the conversation is empty".to_owned());
    }

    let responded = match response {
        Some(Response::Object(response)) => response,
        _ => &nothing,
    };
    let mut document = TraceContent { steps: std::mem::take(&mut taken.steps), ..TraceContent::default() };
    let model = [responded, request, entry].iter().find_map(|part| first_text(part, &["model"]));
    document.model = model.map(str::to_owned);
    document.usage = responded.get("usage").or_else(|| entry.get("usage")).and_then(Value::as_object).and_then(usage);
    if let Some(last) = document.steps.last_mut().filter(|_| answered || error.is_some()) {
        last.model.clone_from(&document.model);
        last.usage = document.usage;
    }
    describe(&mut document, entry, request);
    document.started_at = first(entry, &["started_at", "start_time", "timestamp", "created_at", "time", "created"])
        .or_else(|| first(responded, &["created", "created_at"]))
        .and_then(guessed);
    document.ended_at = first(entry, &["ended_at", "end_time"]).and_then(guessed);
    if !taken.unanswered.is_empty() {
        let unanswered = serde_json::to_value(&taken.unanswered).unwrap_or_default();
        document.metadata.insert("unanswered".to_owned(), unanswered);
    }

    // Servers that run models at home draw the ids of their answers from a few hundred.
    let within = first_text(entry, &ENTRIES).or_else(|| first_text(responded, &["id"]));
    document.trace_id = match (first_text(entry, &IDS), within) {
        (Some(id), _) => checked_id(id)?,
        (None, Some(entry)) => id_of_entry(entry, value)?,
        (None, None) => id_by_content(kind, value),
    };
    Ok(Imported {
        kind,
        trace_id: document.trace_id.clone(),
        document: document.to_text(),
        raw: text.to_vec(),
        feedback: Vec::new(),
    })
}

/// What came back.
#[derive(Clone, Copy)]
enum Response<'v> {
    Text(&'v str),
    Object(&'v Map<String, Value>),
}

/// Returns what came back, wherever the log has it.
fn response(entry: &Map<String, Value>) -> Option<Response<'_>> {
    for name in ["response", "completion", "output"] {
        match entry.get(name) {
            Some(Value::String(text)) => return Some(Response::Text(text)),
            // A batch's results have the response's body beside its status.
            Some(Value::Object(object)) => {
                return Some(Response::Object(object.get("body").and_then(Value::as_object).unwrap_or(object)));
            }
            _ => {}
        }
    }
    entry.get("choices").is_some_and(Value::is_array).then_some(Response::Object(entry))
}

/// Adds the model's answer; tells whether there is one. Of several choices the first is the answer.
fn push_response(conversation: &mut Conversation, response: &Map<String, Value>) -> Result<bool, String> {
    if let Some(choices) = response.get("choices").and_then(Value::as_array) {
        let Some(choice) = choices.first() else { return Ok(false) };
        let mut message = choice.get("message").cloned().unwrap_or_default();
        if let (Some(message), Some(reason)) = (message.as_object_mut(), choice.get("finish_reason")) {
            message.insert("finish_reason".to_owned(), reason.clone());
        }
        conversation.push(&message, "assistant").map_err(|why| format!("choices[0].message: {why}"))?;
        return Ok(true);
    }
    if let Some(output) = response.get("output").and_then(Value::as_array) {
        conversation.push_items(output, "assistant");
        return Ok(!output.is_empty());
    }
    if response.contains_key("content") || response.contains_key("tool_calls") {
        conversation.push(&Value::Object(response.clone()), "assistant")?;
        return Ok(true);
    }
    Ok(false)
}

fn error_text(entry: &Map<String, Value>, response: Option<Response<'_>>) -> Option<String> {
    let within = match response {
        Some(Response::Object(response)) => response.get("error"),
        _ => None,
    };
    let error = entry.get("error").filter(|error| !error.is_null()).or(within).filter(|error| !error.is_null())?;
    let message = error.get("message").and_then(Value::as_str).or_else(|| error.as_str());
    Some(message.map_or_else(|| error.to_string(), str::to_owned))
}

/// Reads what a request used up. Anthropic counts what its cache had and what was written there apart; here `input_tokens`
/// is all that went in, as with the others.
fn usage(usage: &Map<String, Value>) -> Option<StepUsage> {
    let cached = usage
        .get("prompt_tokens_details")
        .or_else(|| usage.get("input_tokens_details"))
        .and_then(Value::as_object)
        .and_then(|details| first_count(details, &["cached_tokens"]));
    let read = first_count(usage, &["cache_read_input_tokens"]);
    let written = first_count(usage, &["cache_creation_input_tokens"]);
    let apart = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let input = first_count(usage, &["prompt_tokens"])
        .or_else(|| first_count(usage, &["input_tokens"]).map(|input| input.saturating_add(apart)));
    let usage = StepUsage {
        input_tokens: input,
        output_tokens: first_count(usage, &["completion_tokens", "output_tokens"]),
        cached_input_tokens: cached.or(read),
        cost_usd: None,
    };
    (!usage.is_empty()).then_some(usage)
}

/// Adds what the log says around the messages.
fn describe(document: &mut TraceContent, entry: &Map<String, Value>, request: &Map<String, Value>) {
    document.name = first_text(entry, &["name"]).map(str::to_owned);
    document.session_id = first_text(entry, &SESSIONS).or_else(|| first_text(request, &SESSIONS)).map(str::to_owned);
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
    // A number is a row's, not a trace's: other files have the same ones.
    for name in IDS.iter().chain(&ENTRIES) {
        if let Some(number @ Value::Number(_)) = entry.get(*name) {
            document.metadata.insert((*name).to_owned(), number.clone());
        }
    }
}
