//! Session files of Codex: one entry per line, most of them items of the OpenAI Responses API.

use karat_core::document::TraceContent;
use serde_json::{Map, Value, json};

use crate::format::TraceFormat;
use crate::messages::usage;
use crate::piece::ImportedTrace;
use crate::time::parse_any_unit;
use crate::trace_ids::{content_id, validate_id};
use karat_chat::Conversation;
use karat_chat::lenient::{first, first_text, parse_nested};

const ENTRY_TYPES: [&str; 5] = ["session_meta", "response_item", "event_msg", "turn_context", "compacted"];

/// The items that the lines of older session files consist of.
const ITEM_TYPES: [&str; 8] = [
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "web_search_call",
];

/// Whether an object is a line of a session file, the first line of an older one, or the whole of the oldest kind.
pub(crate) fn is_entry(object: &Map<String, Value>) -> bool {
    match first_text(object, &["type"]) {
        Some(kind) => ENTRY_TYPES.contains(&kind) && object.get("payload").is_some_and(Value::is_object),
        None => is_header(object) || is_whole_session(object),
    }
}

fn is_header(object: &Map<String, Value>) -> bool {
    let has = |name: &&str| object.contains_key(*name);
    // A log of requests has their input.
    ["id", "timestamp", "instructions"].iter().all(has) && !["messages", "input", "request", "body"].iter().any(has)
}

fn is_whole_session(object: &Map<String, Value>) -> bool {
    object.get("session").is_some_and(|session| session.get("id").is_some())
        && object.get("items").is_some_and(Value::is_array)
}

/// Whether an object is an item. Other sources have such objects too, so this holds only within a session.
pub(crate) fn is_item(object: &Map<String, Value>) -> bool {
    first_text(object, &["type"]).is_some_and(|kind| ITEM_TYPES.contains(&kind))
}

/// Reads a session.
pub(crate) fn read(entries: &[Value]) -> Result<ImportedTrace, String> {
    let empty = Map::new();
    // A session that continues another one repeats its lines, including its description: the first one counts.
    let session = payloads(entries, "session_meta").next().or_else(|| older_header(entries)).unwrap_or(&empty);
    let mut conversation = Conversation::default();
    if let Some(instructions) = first(session, &["base_instructions", "instructions"]) {
        conversation.push_system(instructions);
    }
    let older = entries.iter().flat_map(older_items).filter_map(Value::as_object).filter(|item| is_item(item));
    let items: Vec<Value> = payloads(entries, "response_item").chain(older).map(normalise).collect();
    // An answer consists of several items, up to the next input.
    for answer in items.chunk_by(|left, right| is_output(left) && is_output(right)) {
        conversation.push_items(answer, if is_output(&answer[0]) { "assistant" } else { "user" })?;
    }
    let split = conversation.into_steps();
    if split.steps.is_empty() {
        return Err("the session has no messages".to_owned());
    }
    let model = payloads(entries, "turn_context").filter_map(|turn| first_text(turn, &["model"])).last();
    let mut metadata = Map::new();
    for name in ["cwd", "originator", "cli_version", "git"] {
        if let Some(value) = first(session, &[name]) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    if !split.unanswered.is_empty() {
        metadata.insert("unanswered".to_owned(), serde_json::to_value(&split.unanswered).unwrap_or_default());
    }
    let times = || entries.iter().filter_map(|entry| entry.get("timestamp").and_then(parse_any_unit));
    let id = first_text(session, &["id"]);
    let trace_id = match id {
        Some(id) => validate_id(id)?,
        None => content_id(TraceFormat::Codex, &Value::Array(entries.to_vec())),
    };
    let mut steps = split.steps;
    for step in &mut steps {
        step.model = model.map(str::to_owned);
    }
    let document = TraceContent {
        trace_id: trace_id.clone(),
        steps,
        session_id: id.map(str::to_owned),
        started_at: times().min(),
        ended_at: times().max(),
        model: model.map(str::to_owned),
        // The counts of the last event include all earlier ones.
        usage: payloads(entries, "event_msg")
            .filter(|event| first_text(event, &["type"]) == Some("token_count"))
            .filter_map(|event| event.get("info")?.get("total_token_usage")?.as_object())
            .last()
            .and_then(total_usage),
        metadata,
        ..TraceContent::default()
    };
    let raw: Vec<String> = entries.iter().map(Value::to_string).collect();
    Ok(ImportedTrace {
        format: TraceFormat::Codex,
        trace_id,
        document: document.to_text(),
        raw: raw.join("\n").into_bytes(),
        feedback: Vec::new(),
    })
}

/// Returns the description of an older session.
fn older_header(entries: &[Value]) -> Option<&Map<String, Value>> {
    let entry = entries.first()?.as_object()?;
    match entry.get("session").and_then(Value::as_object) {
        Some(session) => Some(session),
        None => Some(entry).filter(|entry| is_header(entry)),
    }
}

/// Returns the items of an older session that an entry has or is.
fn older_items(entry: &Value) -> &[Value] {
    entry.get("items").and_then(Value::as_array).map_or(std::slice::from_ref(entry), Vec::as_slice)
}

fn payloads<'e>(entries: &'e [Value], kind: &'static str) -> impl Iterator<Item = &'e Map<String, Value>> {
    entries
        .iter()
        .filter(move |entry| entry.get("type").and_then(Value::as_str) == Some(kind))
        .filter_map(|entry| entry.get("payload")?.as_object())
}

fn total_usage(total: &Map<String, Value>) -> Option<karat_core::document::StepUsage> {
    let mut usage = usage(total)?;
    usage.cached_input_tokens = usage.cached_input_tokens.or_else(|| total.get("cached_input_tokens")?.as_u64());
    Some(usage)
}

/// Whether an item comes from the model.
fn is_output(item: &Value) -> bool {
    match item.get("type").and_then(Value::as_str).unwrap_or_default() {
        "message" => item.get("role").is_some_and(|role| role == "assistant"),
        kind => !kind.ends_with("_output"),
    }
}

/// Converts items that only Codex writes, and the wrapper that it puts around results.
fn normalise(item: &Map<String, Value>) -> Value {
    match first_text(item, &["type"]) {
        Some("local_shell_call") => json!({
            "type": "function_call",
            "name": "local_shell",
            "arguments": item.get("action").cloned().unwrap_or_default(),
            "call_id": first(item, &["call_id", "id"]).cloned().unwrap_or_default(),
        }),
        Some("web_search_call") => json!({
            "type": "function_call",
            "name": "web_search",
            "arguments": item.get("action").cloned().unwrap_or_default(),
            "call_id": first(item, &["call_id", "id"]).cloned().unwrap_or_default(),
        }),
        Some("function_call_output" | "custom_tool_call_output") => {
            let mut item = item.clone();
            let output = item.get("output").cloned().unwrap_or_default();
            let unpacked = output.as_str().and_then(parse_nested).unwrap_or(output);
            // `{"output": TEXT, "metadata": {"exit_code": 0, …}}`.
            if let Some(metadata) = unpacked.get("metadata")
                && let Some(text @ Value::String(_)) = unpacked.get("output")
            {
                if metadata.get("exit_code").and_then(Value::as_i64).is_some_and(|code| code != 0) {
                    item.insert("is_error".to_owned(), Value::Bool(true));
                }
                item.insert("output".to_owned(), text.clone());
            } else if let Some(content) = unpacked.get("content") {
                if unpacked.get("success") == Some(&Value::Bool(false)) {
                    item.insert("is_error".to_owned(), Value::Bool(true));
                }
                item.insert("output".to_owned(), content.clone());
            }
            Value::Object(item)
        }
        _ => Value::Object(item.clone()),
    }
}
