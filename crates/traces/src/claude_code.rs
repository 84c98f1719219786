//! Session files of Claude Code: one entry per line. An answer is spread over several lines, one per content block.

use std::collections::HashMap;

use jiff::Timestamp;
use karat_core::document::{StepUsage, TraceContent};
use serde_json::{Map, Value};

use crate::format::TraceFormat;
use crate::messages::usage;
use crate::piece::ImportedTrace;
use crate::time::parse_any_unit;
use crate::trace_ids::{content_id, validate_id};
use karat_chat::Conversation;
use karat_chat::lenient::first_text;

/// Whether an object is a line of a session file.
pub(crate) fn is_entry(object: &Map<String, Value>) -> bool {
    let has = |names: &[&str]| names.iter().all(|name| object.contains_key(*name));
    has(&["type", "sessionId", "uuid"])
        || has(&["type", "sessionId", "operation"])
        || match first_text(object, &["type"]) {
            Some("summary") => has(&["summary", "leafUuid"]),
            Some("file-history-snapshot") => has(&["messageId", "snapshot"]),
            _ => false,
        }
}

/// Reads a session: one trace for the main conversation and one for each conversation of a sub-agent.
pub(crate) fn read(entries: &[Value]) -> Vec<Result<ImportedTrace, String>> {
    let mut sessions: Vec<(String, Vec<&Map<String, Value>>)> = Vec::new();
    let mut roots: HashMap<&str, String> = HashMap::new();
    for entry in entries.iter().filter_map(Value::as_object) {
        let id = conversation_id(entry, &mut roots);
        if !matches!(first_text(entry, &["type"]), Some("user" | "assistant")) || !entry.contains_key("message") {
            continue;
        }
        match sessions.iter_mut().find(|(known, _)| *known == id) {
            Some((_, lines)) => lines.push(entry),
            None => sessions.push((id, vec![entry])),
        }
    }
    if sessions.is_empty() {
        return vec![Err("the session has no messages".to_owned())];
    }
    sessions.iter().map(|(id, lines)| read_session(id, lines)).collect()
}

/// Returns the id of the conversation that an entry belongs to: its session, followed by its sub-agent.
fn conversation_id<'v>(entry: &'v Map<String, Value>, roots: &mut HashMap<&'v str, String>) -> String {
    let session = first_text(entry, &["sessionId"]).unwrap_or_default().to_owned();
    let uuid = first_text(entry, &["uuid"]).unwrap_or_default();
    let is_sub_agent = entry.get("isSidechain").and_then(Value::as_bool) == Some(true);
    let id = match first_text(entry, &["agentId"]) {
        _ if !is_sub_agent => session,
        Some(agent) => format!("{session}-{agent}"),
        // Older versions have no agent id: its first entry has no parent.
        None => {
            let parent = first_text(entry, &["parentUuid"]).and_then(|parent| roots.get(parent));
            parent.cloned().unwrap_or_else(|| format!("{session}-{uuid}"))
        }
    };
    if is_sub_agent {
        roots.insert(uuid, id.clone());
    }
    id
}

fn read_session(id: &str, lines: &[&Map<String, Value>]) -> Result<ImportedTrace, String> {
    let raw: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap_or_default()).collect();
    let messages = merge_blocks(lines);
    let mut conversation = Conversation::default();
    let mut total = StepUsage::default();
    let mut model = None;
    for message in &messages {
        conversation.push(message, "user")?;
        if let Some(usage) = message.get("usage").and_then(Value::as_object).and_then(usage) {
            total.add(&usage);
        }
        // Messages that the program itself adds have a model name in angle brackets.
        let model_name = message.get("model").and_then(Value::as_str).filter(|model| !model.starts_with('<'));
        model = model_name.map(str::to_owned).or(model);
    }
    let split = conversation.into_steps();
    let trace_id = match id {
        "" => content_id(TraceFormat::ClaudeCode, &Value::from(raw.clone())),
        id => validate_id(id)?,
    };
    let times = || lines.iter().filter_map(|line| line.get("timestamp").and_then(parse_any_unit));
    let mut metadata = Map::new();
    for name in ["cwd", "gitBranch", "version", "agentId"] {
        if let Some(value) = lines.iter().find_map(|line| line.get(name)).filter(|value| value.is_string()) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    if !split.unanswered.is_empty() {
        metadata.insert("unanswered".to_owned(), serde_json::to_value(&split.unanswered).unwrap_or_default());
    }
    let document = TraceContent {
        trace_id: trace_id.clone(),
        steps: split.steps,
        session_id: lines.iter().find_map(|line| first_text(line, &["sessionId"])).map(str::to_owned),
        started_at: times().min(),
        ended_at: times().max().filter(|end: &Timestamp| Some(*end) != times().min()),
        model,
        usage: (!total.is_empty()).then_some(total),
        metadata,
        ..TraceContent::default()
    };
    Ok(ImportedTrace {
        format: TraceFormat::ClaudeCode,
        trace_id,
        document: document.to_text(),
        raw: raw.join("\n").into_bytes(),
        feedback: Vec::new(),
    })
}

/// Returns the messages, with the blocks of each answer in one message. Lines of one answer have the same message id;
/// results of tools that run at the same time may stand between them.
fn merge_blocks(lines: &[&Map<String, Value>]) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let mut answers: HashMap<&str, usize> = HashMap::new();
    for line in lines {
        let Some(message) = line.get("message").filter(|message| message.is_object()) else { continue };
        let id = message.get("id").and_then(Value::as_str).filter(|_| message["role"] == "assistant");
        let Some(id) = id else {
            messages.push(message.clone());
            continue;
        };
        let Some(at) = answers.get(id) else {
            answers.insert(id, messages.len());
            messages.push(message.clone());
            continue;
        };
        let known = &mut messages[*at];
        if let (Some(blocks), Some(more)) =
            (known.get_mut("content").and_then(Value::as_array_mut), message.get("content").and_then(Value::as_array))
        {
            // A resumed session repeats its lines.
            let new: Vec<Value> = more.iter().filter(|block| !blocks.contains(block)).cloned().collect();
            blocks.extend(new);
        }
        // Usage and stop reason of the last line are complete.
        for name in ["usage", "stop_reason"] {
            if let Some(value) = message.get(name).filter(|value| !value.is_null()) {
                known[name] = value.clone();
            }
        }
    }
    messages
}
