//! `LangGraph`'s server: the state after a run, and the stream modes `values`, `updates`, `messages` and
//! `messages-tuple`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::turn::TurnBuilder;
use super::{Approval, error_text, event_parts, message_list};
use crate::lenient::{first, first_text, text_of};

/// Reads the state of a graph, or of a thread.
pub(super) fn read_state(state: &Map<String, Value>, turn: &mut TurnBuilder) {
    turn.is_complete = true;
    let values = state.get("values").and_then(Value::as_object).unwrap_or(state);
    if let Some(Value::Array(messages)) = values.get("messages") {
        message_list::read(messages, turn);
    }
    turn.set_conversation_id(thread_id(state));
    push_interrupts(state.get("__interrupt__"), turn);
    for task in state.get("tasks").and_then(Value::as_array).into_iter().flatten() {
        push_interrupts(task.get("interrupts"), turn);
    }
    if let Some(error) = state.get("__error__") {
        turn.fail(error_text(error).unwrap_or_else(|| text_of(error)));
    }
}

fn thread_id(state: &Map<String, Value>) -> Option<&str> {
    let configuration = || state.get("config")?.get("configurable")?.get("thread_id");
    let checkpoint = || state.get("checkpoint")?.get("thread_id");
    state.get("thread_id").or_else(checkpoint).or_else(configuration)?.as_str()
}

fn push_interrupts(interrupts: Option<&Value>, turn: &mut TurnBuilder) {
    let interrupts = interrupts.and_then(Value::as_array).into_iter().flatten();
    for interrupt in interrupts {
        let id = first(interrupt.as_object().unwrap_or(&Map::new()), &["id", "interrupt_id"]).map(text_of);
        request_approval(id, interrupt.get("value").unwrap_or(interrupt), interrupt, turn);
    }
}

/// Records an interrupt as a request for approval. Its value is any JSON value that the graph passed.
pub(super) fn request_approval(id: Option<String>, value: &Value, request: &Value, turn: &mut TurnBuilder) {
    let question = question_of(value).filter(|text| !text.trim().is_empty()).unwrap_or_else(|| value.to_string());
    turn.request_approval(Approval { question, id, call_id: None, request: request.clone() });
}

fn question_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => items.first().and_then(question_of),
        Value::Object(map) => {
            if let Some(text) = first_text(map, &["question", "message", "prompt", "description", "query"]) {
                return Some(text.to_owned());
            }
            // Requests of LangChain's human-in-the-loop middleware.
            let requests = map.get("action_requests").and_then(Value::as_array)?;
            let describe = |request: &Value| {
                let map = request.as_object()?;
                let call = || {
                    let arguments = first(map, &["args", "arguments"]).map(Value::to_string).unwrap_or_default();
                    Some(format!("{} {arguments}", first_text(map, &["name", "action"])?))
                };
                first_text(map, &["description"]).map(str::to_owned).or_else(call)
            };
            let questions: Vec<String> = requests.iter().filter_map(describe).collect();
            (!questions.is_empty()).then(|| questions.join("\n"))
        }
        _ => None,
    }
}

/// Whether an event has the name of a stream mode.
pub(super) fn is_mode(name: &str) -> bool {
    let name = name.split('|').next().unwrap_or_default();
    matches!(name, "values" | "updates" | "messages" | "messages/partial" | "messages/complete" | "messages/metadata")
}

/// Whether an object is an update: changes by name of the node.
pub(super) fn is_update(map: &Map<String, Value>) -> bool {
    let is_change = |change: &Value| change.get("messages").is_some_and(Value::is_array);
    !map.is_empty()
        && map.iter().any(|(node, change)| node == "__interrupt__" || is_change(change))
        && map.values().all(|change| change.is_object() || change.is_array() || change.is_null())
}

/// Reads the events of a run. Modes that are streamed together repeat each other, so states are preferred to
/// updates, and updates to single messages.
pub(super) fn read_stream(events: &[Value], turn: &mut TurnBuilder) {
    let mut stream = Stream::default();
    for (index, event) in events.iter().enumerate() {
        turn.at_event(index);
        stream.push(event, turn);
    }
    // LangGraph's server does not send a final event.
    turn.is_complete = true;
    if let Some(state) = stream.state {
        read_state(state, turn);
    } else if !stream.updates.is_empty() {
        message_list::read(&stream.updates, turn);
    } else {
        let messages: Vec<Value> = stream.messages.into_iter().map(StreamedMessage::into_value).collect();
        message_list::read(&messages, turn);
    }
    if turn.is_empty() && turn.error.is_none() && turn.approval.is_none() {
        turn.is_complete = false;
    }
}

#[derive(Default)]
struct Stream<'v> {
    state: Option<&'v Map<String, Value>>,
    updates: Vec<Value>,
    update_ids: HashMap<String, usize>,
    messages: Vec<StreamedMessage>,
    message_ids: HashMap<String, usize>,
}

impl<'v> Stream<'v> {
    fn push(&mut self, event: &'v Value, turn: &mut TurnBuilder) {
        let (name, data) = event_parts(event);
        let Some(name) = name else {
            self.push_unnamed(data, turn);
            return;
        };
        let (mode, namespace) = name.split_once('|').map_or((name, ""), |(mode, namespace)| (mode, namespace));
        match (mode, data) {
            ("values", Value::Object(state)) if namespace.is_empty() => self.push_state(state, turn),
            ("updates", Value::Object(update)) => self.push_update(update, turn),
            ("messages", Value::Array(items)) => {
                // A message and its metadata.
                if let Some(message) = items.first() {
                    self.push_message(message, false, turn);
                }
            }
            ("messages/partial" | "messages/complete", Value::Array(items)) => {
                for message in items {
                    self.push_message(message, true, turn);
                }
            }
            ("metadata", Value::Object(metadata)) => turn.set_conversation_id(first_text(metadata, &["thread_id"])),
            ("error", error) => turn.fail(error_text(error).unwrap_or_else(|| text_of(error))),
            _ => {}
        }
    }

    fn push_unnamed(&mut self, data: &'v Value, turn: &mut TurnBuilder) {
        match data {
            Value::Object(map) if map.get("messages").is_some_and(Value::is_array) => self.push_state(map, turn),
            Value::Object(map) if is_update(map) => self.push_update(map, turn),
            Value::Object(map) => {
                if let Some(error) = first(map, &["__error__", "error", "detail"]) {
                    turn.fail(error_text(error).unwrap_or_else(|| text_of(error)));
                }
            }
            Value::Array(items) if items.first().is_some_and(Value::is_object) => {
                self.push_message(&items[0], false, turn);
            }
            _ => {}
        }
    }

    fn push_state(&mut self, state: &'v Map<String, Value>, turn: &mut TurnBuilder) {
        // The first state is the input.
        let messages = state.get("messages").and_then(Value::as_array);
        if messages.and_then(|messages| messages.last()).is_some_and(|last| is_answer(last) && has_text(last)) {
            turn.mark_text();
        }
        self.state = Some(state);
    }

    fn push_update(&mut self, update: &Map<String, Value>, turn: &mut TurnBuilder) {
        for (node, change) in update {
            if node == "__interrupt__" {
                push_interrupts(Some(change), turn);
                continue;
            }
            let changes = match change {
                Value::Array(changes) => changes.as_slice(),
                change => std::slice::from_ref(change),
            };
            let messages = changes.iter().filter_map(|change| change.get("messages"));
            for message in messages.flat_map(|messages| match messages {
                Value::Array(messages) => messages.as_slice(),
                message => std::slice::from_ref(message),
            }) {
                if is_answer(message) && has_text(message) {
                    turn.mark_text();
                }
                let id = message.get("id").and_then(Value::as_str);
                // A node may replace an earlier message.
                if let Some(index) = id.and_then(|id| self.update_ids.get(id)) {
                    self.updates[*index] = message.clone();
                    continue;
                }
                if let Some(id) = id {
                    self.update_ids.insert(id.to_owned(), self.updates.len());
                }
                self.updates.push(message.clone());
            }
        }
    }

    fn push_message(&mut self, message: &Value, is_whole: bool, turn: &mut TurnBuilder) {
        let Some(map) = message.as_object() else { return };
        if is_answer(message) && has_text(message) {
            turn.mark_text();
        }
        let is_chunk = !is_whole && first_text(map, &["type"]).is_some_and(|kind| kind.ends_with("Chunk"));
        let id = first_text(map, &["id"]).unwrap_or_default();
        let known = self.message_ids.get(id).copied().filter(|_| !id.is_empty());
        let known = known.or_else(|| (is_chunk && id.is_empty()).then(|| self.messages.len().checked_sub(1)).flatten());
        match known {
            Some(index) if is_chunk => self.messages[index].add(map),
            Some(index) => {
                self.messages[index] = StreamedMessage { message: map.clone(), ..StreamedMessage::default() }
            }
            None => {
                self.message_ids.insert(id.to_owned(), self.messages.len());
                if is_chunk {
                    let mut streamed = StreamedMessage::default();
                    streamed.add(map);
                    self.messages.push(streamed);
                } else {
                    self.messages.push(StreamedMessage { message: map.clone(), ..StreamedMessage::default() });
                }
            }
        }
    }
}

fn is_answer(message: &Value) -> bool {
    let kind = |name: &str| message.get(name).and_then(Value::as_str);
    matches!(kind("type"), Some("ai" | "AIMessage" | "AIMessageChunk")) || kind("role") == Some("assistant")
}

fn has_text(message: &Value) -> bool {
    message.get("content").is_some_and(|content| !text_of_content(content).is_empty())
}

/// Returns the text of message content: a string, or the joined text parts.
fn text_of_content(content: &Value) -> String {
    let is_text = |part: &&Value| part.get("type").is_none_or(|kind| kind == "text");
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let parts = parts.iter().filter(is_text);
            parts.filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect()
        }
        _ => String::new(),
    }
}

/// Adds the metadata of a chunk: counts are summed, as `LangChain` does.
fn merge(known: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        let sum = || known.get(name)?.as_u64()?.checked_add(value.as_u64()?);
        let value = sum().map_or_else(|| value.clone(), Value::from);
        known.insert(name.clone(), value);
    }
}

/// A message that arrives in chunks.
#[derive(Default)]
struct StreamedMessage {
    /// The first chunk, or the whole message.
    message: Map<String, Value>,
    text: String,
    calls: Vec<ChunkedCall>,
    call_indexes: HashMap<u64, usize>,
    is_chunked: bool,
}

#[derive(Default)]
struct ChunkedCall {
    id: Option<String>,
    name: String,
    arguments: String,
}

impl StreamedMessage {
    fn add(&mut self, chunk: &Map<String, Value>) {
        if !self.is_chunked {
            self.is_chunked = true;
            self.message.insert("type".to_owned(), Value::String("ai".to_owned()));
        }
        if let Some(content) = chunk.get("content") {
            self.text.push_str(&text_of_content(content));
        }
        for call in chunk.get("tool_call_chunks").and_then(Value::as_array).into_iter().flatten() {
            self.add_call(call);
        }
        if chunk.get("tool_call_chunks").is_none()
            && let Some(calls) = chunk.get("tool_calls").and_then(Value::as_array)
        {
            for call in calls {
                let call_text = |name: &str| call.get(name).and_then(Value::as_str).map(str::to_owned);
                self.calls.push(ChunkedCall {
                    id: call_text("id"),
                    name: call_text("name").unwrap_or_default(),
                    arguments: call.get("args").map(text_of).unwrap_or_default(),
                });
            }
        }
        for name in ["usage_metadata", "response_metadata"] {
            if let Some(Value::Object(metadata)) = chunk.get(name) {
                let known = self.message.entry(name.to_owned()).or_insert_with(|| Value::Object(Map::new()));
                if !known.is_object() {
                    *known = Value::Object(Map::new());
                }
                if let Some(known) = known.as_object_mut() {
                    merge(known, metadata);
                }
            }
        }
    }

    fn add_call(&mut self, chunk: &Value) {
        let text = |name: &str| chunk.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let index = chunk.get("index").and_then(Value::as_u64);
        let known = match index {
            Some(index) => self.call_indexes.get(&index).copied(),
            None if text("id").is_none() => self.calls.len().checked_sub(1),
            None => None,
        };
        let position = known.unwrap_or_else(|| {
            self.calls.push(ChunkedCall::default());
            self.calls.len() - 1
        });
        if let Some(index) = index {
            self.call_indexes.insert(index, position);
        }
        let call = &mut self.calls[position];
        call.id = call.id.take().or_else(|| text("id").map(str::to_owned));
        call.name.push_str(text("name").unwrap_or_default());
        call.arguments.push_str(text("args").unwrap_or_default());
    }

    fn into_value(mut self) -> Value {
        if self.is_chunked {
            let calls = self.calls.into_iter().map(|call| {
                serde_json::json!({"id": call.id, "name": call.name, "args": call.arguments, "type": "tool_call"})
            });
            self.message.insert("tool_calls".to_owned(), calls.collect());
            self.message.insert("content".to_owned(), Value::String(self.text));
        }
        Value::Object(self.message)
    }
}
