//! Events of AG-UI.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::turn::{CallIndex, Outcome, TurnBuilder};
use super::{Approval, message_list, usage};
use crate::lenient::{first_text, text_of, unpack_owned};

/// Reads the events of a run.
pub(super) fn read_stream(events: &[Value], turn: &mut TurnBuilder) {
    // TanStack AI marks failed results; AG-UI itself marks only failed messages.
    let reports_failures =
        events.iter().any(|event| event.get("metadata").is_some_and(|data| data.get("tanstack").is_some()));
    let mut stream = Stream { reports_failures, ..Stream::default() };
    for (index, event) in events.iter().enumerate() {
        turn.at_event(index);
        if let Some(event) = event.as_object() {
            stream.push(event, turn);
        }
    }
}

#[derive(Default)]
struct Stream<'v> {
    /// The message of the latest text event.
    message: Option<&'v str>,
    /// Messages that are not the agent's.
    other_messages: HashSet<&'v str>,
    last_call: Option<CallIndex>,
    reports_failures: bool,
    /// Calls whose message is known, so that parallel calls stay in one step.
    parents: HashSet<&'v str>,
}

impl<'v> Stream<'v> {
    fn push(&mut self, event: &'v Map<String, Value>, turn: &mut TurnBuilder) {
        let text = |name: &str| event.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let delta = text("delta").unwrap_or_default();
        let kind = text("type").unwrap_or_default();
        // TanStack AI ends a run for each call of the model.
        if kind.starts_with("TEXT_MESSAGE_") || kind.starts_with("TOOL_CALL_") {
            turn.is_complete = false;
        }
        match kind {
            "RUN_STARTED" => {
                turn.set_conversation_id(text("threadId").or(text("thread_id")));
                turn.is_complete = false;
            }
            "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CHUNK" | "TEXT_MESSAGE_CONTENT" => {
                self.push_text(text("messageId").or(text("message_id")), text("role"), delta, turn);
            }
            "REASONING_MESSAGE_CONTENT" | "REASONING_MESSAGE_CHUNK" | "THINKING_TEXT_MESSAGE_CONTENT" => {
                turn.add_reasoning(delta);
            }
            "TOOL_CALL_START" | "TOOL_CALL_CHUNK" | "TOOL_CALL_ARGS" => self.push_call(event, delta, turn),
            "TOOL_CALL_RESULT" => push_result(event, self.reports_failures, turn),
            "MESSAGES_SNAPSHOT" => {
                push_snapshot(event.get("messages"), turn);
                self.last_call = None;
            }
            "CUSTOM" if matches!(text("name"), Some("on_interrupt" | "OnInterrupt")) => {
                let value = event.get("value").map(unpack_owned).unwrap_or_default();
                super::langgraph::request_approval(None, &value, &Value::Object(event.clone()), turn);
            }
            "RUN_FINISHED" => finish(event, turn),
            "RUN_ERROR" => {
                turn.fail(text("message").unwrap_or("the run failed").to_owned());
                turn.is_complete = true;
                add_usage(event.get("usage"), turn);
            }
            _ => {}
        }
    }

    fn push_text(&mut self, message: Option<&'v str>, role: Option<&str>, delta: &str, turn: &mut TurnBuilder) {
        if let Some(id) = message.filter(|_| role.is_some_and(|role| role != "assistant")) {
            self.other_messages.insert(id);
        }
        if let Some(id) = message.filter(|id| self.message != Some(id)) {
            self.message = Some(id);
            if !self.other_messages.contains(id) && !self.parents.contains(id) {
                turn.start_step();
            }
        }
        if self.message.is_none_or(|id| !self.other_messages.contains(id)) {
            turn.add_text(delta);
        }
    }

    fn push_call(&mut self, event: &'v Map<String, Value>, delta: &str, turn: &mut TurnBuilder) {
        let id = first_text(event, &["toolCallId", "tool_call_id"]);
        if let Some(name) = first_text(event, &["toolCallName", "tool_call_name"]) {
            if let Some(parent) = first_text(event, &["parentMessageId", "parent_message_id"]) {
                let is_known = !self.parents.insert(parent) || self.message == Some(parent);
                if !is_known {
                    turn.start_step();
                }
            }
            self.last_call = Some(turn.call(id, name));
        }
        let call = id.and_then(|id| turn.find_call(id)).or(self.last_call);
        if let Some(call) = call.filter(|_| !delta.is_empty()) {
            turn.add_arguments(call, delta);
        }
    }
}

fn push_result(event: &Map<String, Value>, reports_failures: bool, turn: &mut TurnBuilder) {
    let content = event.get("content").map(|content| match content {
        Value::Array(_) => Value::String(crate::messages::result_text(content)),
        other => other.clone(),
    });
    let content = content.unwrap_or_default();
    let state = event.get("metadata").and_then(|metadata| metadata.get("tanstack")?.get("state")?.as_str());
    let outcome = match (event.get("error").filter(|error| !error.is_null()), state) {
        (Some(error), _) => Outcome::failed(error),
        (None, state) if reports_failures => Outcome::known(&content, state == Some("output-error")),
        (None, _) => Outcome::unknown(&content),
    };
    turn.finish_call(first_text(event, &["toolCallId", "tool_call_id"]), None, outcome);
}

/// Reads the list of all messages. It replaces the events if it is as complete, because it reports which calls failed.
fn push_snapshot(messages: Option<&Value>, turn: &mut TurnBuilder) {
    let Some(Value::Array(messages)) = messages else { return };
    let mut snapshot = TurnBuilder::default();
    message_list::read(messages, &mut snapshot);
    if snapshot.call_count() >= turn.call_count() && (snapshot.has_text() || !turn.has_text()) && !snapshot.is_empty() {
        turn.replace_steps(snapshot);
    }
}

fn finish(event: &Map<String, Value>, turn: &mut TurnBuilder) {
    let outcome = event.get("outcome");
    let reason = event.get("metadata").and_then(|metadata| metadata.get("tanstack")?.get("finishReason")?.as_str());
    turn.is_complete = reason != Some("tool_calls") || outcome.is_some();
    add_usage(event.get("usage"), turn);
    let kind = outcome.and_then(|outcome| outcome.get("type").unwrap_or(outcome).as_str());
    turn.set_stop_reason(kind);
    let interrupts = outcome.and_then(|outcome| outcome.get("interrupts")?.as_array());
    let interrupt = interrupts.and_then(|list| list.first()).or_else(|| event.get("interrupt"));
    if let Some(request) = interrupt.and_then(Value::as_object) {
        let call_id = first_text(request, &["toolCallId"]);
        let question = first_text(request, &["message"])
            .map(str::to_owned)
            .or_else(|| turn.describe_call(call_id?))
            .or_else(|| first_text(request, &["reason"]).map(str::to_owned));
        turn.request_approval(Approval {
            question: question.unwrap_or_else(|| text_of(&Value::Object(request.clone()))),
            id: first_text(request, &["id"]).map(str::to_owned),
            call_id: call_id.map(str::to_owned),
            request: Value::Object(request.clone()),
        });
    }
}

/// Adds the usage of a run, one entry per model.
fn add_usage(usage: Option<&Value>, turn: &mut TurnBuilder) {
    let entries = match usage {
        Some(Value::Array(entries)) => entries.as_slice(),
        Some(entry) => std::slice::from_ref(entry),
        None => &[],
    };
    for entry in entries {
        turn.set_model(entry.get("model").and_then(Value::as_str));
        if let Some(usage) = usage::read(Some(entry)) {
            turn.add_usage(&usage);
        }
    }
}
