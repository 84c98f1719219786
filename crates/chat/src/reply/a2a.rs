//! The A2A (agent to agent) protocol: messages, tasks and the events of a stream, with or without the JSON-RPC envelope.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::turn::TurnBuilder;
use super::{Approval, error_text};
use crate::lenient::first_text;

/// The kinds of objects that an agent sends.
enum Object<'v> {
    Message(&'v Map<String, Value>),
    Task(&'v Map<String, Value>),
    Status(&'v Map<String, Value>),
    Artifact(&'v Map<String, Value>),
}

/// Whether an object belongs to the protocol.
pub(super) fn is_known(map: &Map<String, Value>) -> bool {
    map.contains_key("jsonrpc") || classify(map).is_some()
}

/// Returns the kind of an object. Version 1 wraps it in a key, earlier versions have `kind`.
fn classify(map: &Map<String, Value>) -> Option<Object<'_>> {
    let inner = |name: &str| map.get(name).and_then(Value::as_object);
    if let Some(task) = inner("task").filter(|task| task.contains_key("status")) {
        return Some(Object::Task(task));
    }
    if let Some(message) = inner("message").filter(|message| message.contains_key("parts")) {
        return Some(Object::Message(message));
    }
    if let Some(update) = inner("statusUpdate") {
        return Some(Object::Status(update));
    }
    if let Some(update) = inner("artifactUpdate") {
        return Some(Object::Artifact(update));
    }
    match first_text(map, &["kind"]) {
        Some("task") => Some(Object::Task(map)),
        Some("message") => Some(Object::Message(map)),
        Some("status-update") => Some(Object::Status(map)),
        Some("artifact-update") => Some(Object::Artifact(map)),
        // The reply to a request for a task is the task itself.
        None if inner("status").is_some_and(|status| status.contains_key("state")) => Some(Object::Task(map)),
        None if map.contains_key("messageId") && map.contains_key("parts") => Some(Object::Message(map)),
        _ => None,
    }
}

/// Reads one reply, or the events of a stream.
pub(super) fn read(values: &[Value], is_stream: bool, turn: &mut TurnBuilder) {
    let mut task = Task::default();
    for (index, value) in values.iter().enumerate() {
        if is_stream {
            turn.at_event(index);
        }
        let Some(map) = value.as_object() else { continue };
        if let Some(error) = map.get("error").filter(|error| !error.is_null()) {
            turn.fail(error_text(error).unwrap_or_else(|| error.to_string()));
            continue;
        }
        let result = map.get("result").and_then(Value::as_object).unwrap_or(map);
        task.push(result, turn);
    }
    task.finish(turn);
}

/// The state of a task.
#[derive(Default)]
struct Task {
    /// Text of the artifacts, in the order in which they started.
    artifacts: Vec<String>,
    artifact_ids: HashMap<String, usize>,
    /// The message of the latest status.
    status_text: String,
    /// The latest text that was sent while the task was running.
    progress_text: String,
    /// The text of messages outside a task.
    message_text: String,
    /// The agent's last message in the history, if it follows the user's.
    history_text: String,
    state: Option<String>,
    status: Option<Value>,
    id: Option<String>,
    /// Whether the agent is built with Google's ADK, which sends calls as data parts.
    is_adk: bool,
}

impl Task {
    fn push(&mut self, object: &Map<String, Value>, turn: &mut TurnBuilder) {
        match classify(object) {
            Some(Object::Message(message)) => {
                self.read_ids(message, turn);
                let text = parts_text(message, turn);
                push_paragraph(&mut self.message_text, &text);
                mark_text(&text, turn);
            }
            Some(Object::Task(task)) => {
                self.read_ids(task, turn);
                self.push_history(task, turn);
                for artifact in task.get("artifacts").and_then(Value::as_array).into_iter().flatten() {
                    self.push_artifact(artifact.as_object(), false, turn);
                }
                self.push_status(task.get("status"), turn);
            }
            Some(Object::Status(update)) => {
                self.read_ids(update, turn);
                self.push_status(update.get("status"), turn);
            }
            Some(Object::Artifact(update)) => {
                self.read_ids(update, turn);
                let appends = update.get("append").and_then(Value::as_bool) == Some(true);
                self.push_artifact(update.get("artifact").and_then(Value::as_object), appends, turn);
            }
            None => {}
        }
    }

    fn read_ids(&mut self, object: &Map<String, Value>, turn: &mut TurnBuilder) {
        let metadata = object.get("metadata").and_then(Value::as_object);
        self.is_adk |= metadata.is_some_and(|metadata| metadata.keys().any(|key| key.starts_with("adk_")));
        turn.set_conversation_id(first_text(object, &["contextId", "context_id"]));
        let is_task = object.contains_key("status") && !object.contains_key("taskId");
        if let Some(id) = first_text(object, if is_task { &["id"] } else { &["taskId", "task_id"] }) {
            self.id = Some(id.to_owned());
        }
    }

    fn push_history(&mut self, task: &Map<String, Value>, turn: &mut TurnBuilder) {
        let history = task.get("history").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_user =
            |message: &Value| matches!(message.get("role").and_then(Value::as_str), Some("user" | "ROLE_USER"));
        let new = history.iter().rposition(is_user).map_or(history, |last| &history[last + 1..]);
        self.history_text.clear();
        for message in new.iter().filter_map(Value::as_object) {
            // The last message is the answer; those before it are progress.
            self.history_text = parts_text(message, turn);
        }
    }

    fn push_status(&mut self, status: Option<&Value>, turn: &mut TurnBuilder) {
        let Some(status) = status else { return };
        self.status = Some(status.clone());
        if let Some(state) = status.get("state").and_then(Value::as_str) {
            self.state = Some(normalise_state(state));
        }
        let message = status.get("message").and_then(Value::as_object);
        self.status_text = message.map(|message| parts_text(message, turn)).unwrap_or_default();
        if self.state.as_deref() == Some("working") && !self.status_text.is_empty() {
            self.progress_text.clone_from(&self.status_text);
        }
    }

    fn push_artifact(&mut self, artifact: Option<&Map<String, Value>>, appends: bool, turn: &mut TurnBuilder) {
        let Some(artifact) = artifact else { return };
        let text = parts_text(artifact, turn);
        mark_text(&text, turn);
        let id = first_text(artifact, &["artifactId", "artifact_id"]).unwrap_or_default();
        match self.artifact_ids.get(id).copied() {
            Some(index) if appends => self.artifacts[index].push_str(&text),
            Some(index) => self.artifacts[index] = text,
            None => {
                self.artifact_ids.insert(id.to_owned(), self.artifacts.len());
                self.artifacts.push(text);
            }
        }
    }

    fn finish(mut self, turn: &mut TurnBuilder) {
        let state = self.state.take().unwrap_or_default();
        turn.is_complete = match state.as_str() {
            "" => !self.message_text.is_empty() || turn.has_calls() || turn.error.is_some(),
            state => !matches!(state, "submitted" | "working" | "unknown" | "unspecified"),
        };
        let artifacts = self.artifacts.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join("\n");
        let is_answer = matches!(state.as_str(), "" | "completed" | "input-required" | "auth-required");
        let has_approval_in_data = turn.approval.is_some();
        match state.as_str() {
            "input-required" | "auth-required" => {
                let question =
                    [&self.status_text, &self.history_text, &artifacts].into_iter().find(|text| !text.is_empty());
                turn.request_approval(Approval {
                    question: question.cloned().unwrap_or_else(|| state.replace('-', " ")),
                    id: self.id.clone(),
                    call_id: None,
                    request: self.status.take().unwrap_or_default(),
                });
            }
            "failed" | "rejected" | "canceled" => {
                let reason = std::mem::take(&mut self.status_text);
                turn.fail(if reason.is_empty() { format!("the task was {state}") } else { reason });
            }
            _ => {}
        }
        if !state.is_empty() {
            turn.set_stop_reason(Some(&state));
        }
        let status_text = if is_answer { &self.status_text } else { "" };
        // ADK agents send their answer while they are working, and some do not repeat it at the end.
        let progress_text = if self.is_adk && is_answer { &self.progress_text } else { "" };
        let texts = [artifacts.as_str(), status_text, &self.message_text, &self.history_text, progress_text];
        // A question is not an answer, but an agent that asks for approval in data may answer next to it.
        let has_answer = is_answer && (turn.approval.is_none() || has_approval_in_data);
        if has_answer && let Some(text) = texts.into_iter().find(|text| !text.is_empty()) {
            let first_text = turn.first_text_event;
            turn.add_text(text);
            turn.first_text_event = first_text.or(turn.first_text_event);
        }
        turn.calls_unreported = !self.is_adk;
    }
}

fn mark_text(text: &str, turn: &mut TurnBuilder) {
    if !text.is_empty() {
        turn.mark_text();
    }
}

/// Version 1 writes `TASK_STATE_INPUT_REQUIRED` for `input-required`.
fn normalise_state(state: &str) -> String {
    state
        .strip_prefix("TASK_STATE_")
        .unwrap_or(state)
        .to_ascii_lowercase()
        .replace('_', "-")
        .replace("cancelled", "canceled")
}

fn push_paragraph(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// Joins the text parts of a message or artifact, and adds the calls that some agents send as data parts.
fn parts_text(holder: &Map<String, Value>, turn: &mut TurnBuilder) -> String {
    let mut text = String::new();
    for part in holder.get("parts").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        if part.get("metadata").and_then(|metadata| metadata.get("adk_thought")?.as_bool()) == Some(true) {
            continue;
        }
        match part.get("text").and_then(Value::as_str) {
            // Streamed text has several parts, which are joined without a separator.
            Some(part) => text.push_str(part),
            None => push_data(part, turn),
        }
    }
    text
}

/// Adds a call or a result of an ADK agent, which marks them in the metadata of a part.
fn push_data(part: &Map<String, Value>, turn: &mut TurnBuilder) {
    let Some(data) = part.get("data").and_then(Value::as_object) else { return };
    let id = first_text(data, &["id"]);
    let name = first_text(data, &["name"]);
    match part.get("metadata").and_then(|metadata| metadata.get("adk_type")?.as_str()) {
        Some("function_call") if name.is_some_and(super::adk::is_approval_request) => super::adk::push_call(data, turn),
        Some("function_response") if name.is_some_and(super::adk::is_approval_request) => {}
        // Events and the history repeat each other.
        Some("function_call") if id.is_none_or(|id| turn.find_call(id).is_none()) => {
            let call = turn.new_call(id, name.unwrap_or_default());
            turn.set_arguments(call, data.get("args").unwrap_or(&Value::Null));
        }
        Some("function_response") if id.is_none_or(|id| !turn.is_answered(id)) => {
            super::adk::push_response(id, name, data.get("response").unwrap_or(&Value::Null), turn);
        }
        _ => {}
    }
}
