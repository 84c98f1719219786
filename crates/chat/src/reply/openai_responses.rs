//! The Responses API of `OpenAI`: whole responses, and streams of events.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::turn::{AfterResult, CallIndex, Outcome, TurnBuilder};
use super::{Approval, error_text, usage};
use crate::lenient::{first, first_text, is_blank};

/// Reads a response object.
pub(super) fn read_response(response: &Map<String, Value>, turn: &mut TurnBuilder) {
    read_header(response, turn);
    turn.after_result = AfterResult::SameStep;
    for item in response.get("output").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        push_item(item, turn);
    }
}

fn read_header(response: &Map<String, Value>, turn: &mut TurnBuilder) {
    let status = first_text(response, &["status"]).unwrap_or("completed");
    turn.is_complete = !matches!(status, "in_progress" | "queued");
    turn.set_model(first_text(response, &["model"]));
    turn.usage = usage::read(response.get("usage")).or_else(|| turn.usage.take());
    let reason = response.get("incomplete_details").and_then(|details| details.get("reason")?.as_str());
    turn.set_stop_reason(reason.or_else(|| turn.is_complete.then_some(status)));
    let conversation = response.get("conversation");
    turn.set_conversation_id(
        conversation.and_then(|conversation| conversation.get("id").unwrap_or(conversation).as_str()),
    );
    match status {
        "failed" | "cancelled" => {
            let error = response.get("error").and_then(error_text);
            turn.fail(error.unwrap_or_else(|| format!("the response has status '{status}'")));
        }
        _ => {}
    }
}

fn push_item(item: &Map<String, Value>, turn: &mut TurnBuilder) {
    let kind = first_text(item, &["type"]).unwrap_or_default();
    match kind {
        "message" => {
            if first_text(item, &["role"]).is_some_and(|role| role != "assistant") {
                return;
            }
            turn.end_line();
            for part in item.get("content").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
            {
                turn.add_text(first_text(part, &["text", "refusal"]).unwrap_or_default());
            }
        }
        "reasoning" => {
            turn.add_reasoning(&first(item, &["summary", "content"]).map(crate::collect_text).unwrap_or_default());
        }
        "function_call" | "custom_tool_call" => {
            let call = push_call(item, first_text(item, &["name"]).unwrap_or_default(), turn);
            set_arguments(call, first(item, &["arguments", "input"]), turn);
        }
        "function_call_output" | "custom_tool_call_output" => {
            let output = item.get("output").unwrap_or(&Value::Null);
            turn.finish_call(first_text(item, &["call_id"]), None, Outcome::unknown(output));
        }
        "mcp_call" => {
            let call = push_call(item, first_text(item, &["name"]).unwrap_or_default(), turn);
            set_arguments(call, item.get("arguments"), turn);
            let outcome = match item.get("error").filter(|error| !is_blank(error)) {
                Some(error) => Outcome::failed(&error_text(error).map_or_else(|| error.clone(), Value::String)),
                None => Outcome::known(item.get("output").unwrap_or(&Value::Null), false),
            };
            turn.set_outcome(call, outcome);
        }
        "mcp_approval_request" => {
            let name = first_text(item, &["name"]).unwrap_or_default();
            let id = first_text(item, &["id"]);
            let call = turn.call(id, name);
            set_arguments(call, item.get("arguments"), turn);
            turn.request_approval(Approval {
                question: id.and_then(|id| turn.describe_call(id)).unwrap_or_else(|| name.to_owned()),
                id: id.map(str::to_owned),
                call_id: id.map(str::to_owned),
                request: Value::Object(item.clone()),
            });
        }
        _ => push_hosted_call(kind, item, turn),
    }
}

/// Adds the call of a tool that the server runs itself, such as `web_search_call`. It has no name and no result.
fn push_hosted_call(kind: &str, item: &Map<String, Value>, turn: &mut TurnBuilder) {
    let Some(name) = kind.strip_suffix("_call") else { return };
    let call = push_call(item, name, turn);
    let own_arguments = || {
        let own = item.iter().filter(|(name, _)| matches!(name.as_str(), "queries" | "code" | "prompt"));
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let arguments = first(item, &["action", "arguments"]).cloned().unwrap_or_else(own_arguments);
    set_arguments(call, Some(&arguments), turn);
    let result = first(item, &["results", "outputs", "output"]);
    match first_text(item, &["status"]) {
        Some("failed") => turn.set_outcome(call, Outcome::failed(result.unwrap_or(&Value::Null))),
        Some("completed") => {
            let result = result.map(|result| Outcome::known(result, false));
            turn.set_outcome(call, result.unwrap_or(Outcome { success: Some(true), ..Outcome::default() }));
        }
        _ => {}
    }
}

fn push_call(item: &Map<String, Value>, name: &str, turn: &mut TurnBuilder) -> CallIndex {
    // An approved call has a new id; `approval_request_id` is the id that the request for approval had.
    turn.call(first_text(item, &["approval_request_id", "call_id", "id"]), name)
}

fn set_arguments(call: CallIndex, arguments: Option<&Value>, turn: &mut TurnBuilder) {
    turn.set_arguments(call, arguments.unwrap_or(&Value::Null));
}

/// Reads a stream of events.
pub(super) fn read_stream(events: &[Value], turn: &mut TurnBuilder) {
    let mut items: BTreeMap<u64, StreamedItem> = BTreeMap::new();
    turn.after_result = AfterResult::SameStep;
    let mut last: Option<&Map<String, Value>> = None;
    for (index, event) in events.iter().enumerate() {
        turn.at_event(index);
        let Some(event) = event.as_object() else { continue };
        let kind = first_text(event, &["type"]).unwrap_or_default();
        let slot = event.get("output_index").and_then(Value::as_u64).unwrap_or(0);
        let delta = first_text(event, &["delta"]).unwrap_or_default();
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                if let Some(item) = event.get("item").and_then(Value::as_object) {
                    let streamed = items.entry(slot).or_default();
                    streamed.item = Some(item);
                    streamed.is_done = kind.ends_with("done");
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                if !delta.is_empty() {
                    turn.mark_text();
                }
                items.entry(slot).or_default().text.push_str(delta);
            }
            "response.function_call_arguments.delta"
            | "response.mcp_call_arguments.delta"
            | "response.custom_tool_call_input.delta" => items.entry(slot).or_default().arguments.push_str(delta),
            "error" => {
                turn.fail(error_text(event.get("error").unwrap_or(&Value::Object(event.clone()))).unwrap_or_default());
            }
            _ => {}
        }
        if let Some(response) = event.get("response").and_then(Value::as_object) {
            last = Some(response);
            turn.is_complete |= matches!(kind, "response.completed" | "response.failed" | "response.incomplete");
        }
    }
    let is_complete = turn.is_complete;
    if let Some(response) = last {
        read_header(response, turn);
    }
    turn.is_complete = is_complete;
    // The last event repeats all items, but not on every server.
    match last.filter(|_| is_complete).and_then(|response| response.get("output")?.as_array()) {
        Some(output) if !output.is_empty() => {
            output.iter().filter_map(Value::as_object).for_each(|item| push_item(item, turn));
        }
        _ => items.into_values().for_each(|item| item.push(turn)),
    }
}

/// An output item that arrives in parts.
#[derive(Default)]
struct StreamedItem<'v> {
    item: Option<&'v Map<String, Value>>,
    is_done: bool,
    text: String,
    arguments: String,
}

impl StreamedItem<'_> {
    fn push(self, turn: &mut TurnBuilder) {
        let Some(item) = self.item else {
            turn.add_text(&self.text);
            return;
        };
        if self.is_done {
            push_item(item, turn);
            return;
        }
        let mut item = item.clone();
        if !self.text.is_empty() {
            item.insert("content".to_owned(), json!([{"type": "output_text", "text": self.text}]));
        }
        if !self.arguments.is_empty() {
            item.insert("arguments".to_owned(), Value::String(self.arguments));
        }
        push_item(&item, turn);
    }
}
