//! Replies that list pairs of an action and an observation: `LangServe`'s agent executors and n8n's agents.

use serde_json::{Map, Value};

use super::turn::{Outcome, TurnBuilder};
use super::{error_text, event_parts, message_list};
use crate::lenient::{first, first_text};

/// Keys of the list of pairs.
const STEP_KEYS: [&str; 2] = ["intermediate_steps", "intermediateSteps"];

/// Reads a reply of `LangServe`'s `/invoke`.
pub(super) fn read_langserve(reply: &Map<String, Value>, turn: &mut TurnBuilder) {
    turn.is_complete = true;
    match reply.get("output") {
        Some(output) => push_output(output, 1, turn),
        None => turn.calls_unreported = true,
    }
}

fn push_output(output: &Value, depth: usize, turn: &mut TurnBuilder) {
    match output {
        Value::String(text) => {
            turn.calls_unreported = true;
            turn.add_text(text);
        }
        Value::Array(items) if items.iter().any(|item| item.as_object().is_some_and(is_message)) => {
            message_list::read(items, turn);
        }
        // Outputs of a batch.
        Value::Array(items) if depth > 0 => items.iter().for_each(|item| push_output(item, depth - 1, turn)),
        Value::Object(map) if is_message(map) => message_list::push(output, turn),
        Value::Object(map) => {
            if let Some(Value::Array(messages)) = map.get("messages").filter(|_| !map.contains_key("output")) {
                message_list::read(messages, turn);
                return;
            }
            push_steps(map, turn);
        }
        other => {
            turn.calls_unreported = true;
            turn.add_text(&crate::lenient::text_of(other));
        }
    }
}

fn is_message(map: &Map<String, Value>) -> bool {
    map.contains_key("content") && (map.contains_key("type") || map.contains_key("role"))
}

/// Adds the pairs and the answer.
fn push_steps(map: &Map<String, Value>, turn: &mut TurnBuilder) {
    match first(map, &STEP_KEYS).and_then(Value::as_array) {
        Some(pairs) => pairs.iter().for_each(|pair| push_pair(pair, turn)),
        None => turn.calls_unreported = true,
    }
    turn.start_step();
    if let Some(text) = first(map, &["output", "text", "answer", "response", "result"]) {
        turn.add_text(&crate::collect_text(text));
    }
}

/// Adds a call: `[action, observation]`, or an object with both.
fn push_pair(pair: &Value, turn: &mut TurnBuilder) {
    let action = pair.get("action").or_else(|| pair.get(0)).and_then(Value::as_object);
    let Some(action) = action else { return };
    push_action(action, turn);
    if let Some(observation) = pair.get("observation").or_else(|| pair.get(1)) {
        push_observation(action, observation, turn);
    }
}

fn push_action(action: &Map<String, Value>, turn: &mut TurnBuilder) {
    let Some(name) = first_text(action, &["tool", "toolName", "name"]) else { return };
    let call = turn.new_call(first_text(action, &["tool_call_id", "toolCallId"]), name);
    let input = first(action, &["tool_input", "toolInput", "input"]).unwrap_or(&Value::Null);
    turn.set_arguments(call, input);
}

fn push_observation(action: &Map<String, Value>, observation: &Value, turn: &mut TurnBuilder) {
    let id = first_text(action, &["tool_call_id", "toolCallId"]);
    let name = first_text(action, &["tool", "toolName", "name"]);
    turn.finish_call(id, name, Outcome::unknown(observation));
}

/// Reads the chunks of `LangServe`'s `/stream`.
pub(super) fn read_langserve_stream(events: &[Value], turn: &mut TurnBuilder) {
    let mut has_steps = false;
    let mut messages: Vec<Value> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        turn.at_event(index);
        match event_parts(event) {
            (Some("end"), _) => turn.is_complete = true,
            (Some("error"), data) => turn.fail(error_text(data).unwrap_or_else(|| data.to_string())),
            (Some("data"), Value::String(text)) => turn.add_text(text),
            (Some("data"), Value::Object(chunk)) => {
                let list = |name: &str| chunk.get(name).and_then(Value::as_array).into_iter().flatten();
                let actions = list("actions").filter_map(Value::as_object);
                actions.for_each(|action| push_action(action, turn));
                for step in list("steps") {
                    if let (Some(action), Some(observation)) =
                        (step.get("action").and_then(Value::as_object), step.get("observation"))
                    {
                        push_observation(action, observation, turn);
                    }
                }
                has_steps |= chunk.contains_key("actions")
                    || chunk.contains_key("steps")
                    || first(chunk, &STEP_KEYS).is_some()
                    || is_message(chunk);
                if is_message(chunk) {
                    turn.mark_text();
                    messages.push(serde_json::json!([chunk]));
                } else if let Some(output) = chunk.get("output") {
                    turn.add_text(&crate::collect_text(output));
                }
            }
            _ => {}
        }
    }
    if !messages.is_empty() {
        let is_complete = turn.is_complete;
        super::langgraph::read_stream(&messages, turn);
        turn.is_complete = is_complete;
    }
    turn.calls_unreported = !has_steps;
}

/// Reads replies of n8n: an object, or a list of such objects.
pub(super) fn read_n8n(items: &[Value], turn: &mut TurnBuilder) {
    turn.is_complete = true;
    let mut has_steps = false;
    for item in items {
        let item = item.get("json").unwrap_or(item);
        let Some(item) = item.as_object() else { continue };
        has_steps |= first(item, &STEP_KEYS).is_some_and(Value::is_array);
        push_steps(item, turn);
    }
    turn.calls_unreported = !has_steps;
}

/// Reads the lines of n8n's streaming reply: the text of each node in pieces.
pub(super) fn read_n8n_stream(items: &[Value], turn: &mut TurnBuilder) {
    turn.calls_unreported = true;
    let mut open = 0_usize;
    for (index, item) in items.iter().enumerate() {
        turn.at_event(index);
        let Some(item) = item.as_object() else { continue };
        match first_text(item, &["type"]).unwrap_or_default() {
            "begin" => open = open.saturating_add(1),
            "item" => turn.add_text(&item.get("content").map(crate::lenient::text_of).unwrap_or_default()),
            "end" => {
                open = open.saturating_sub(1);
                turn.is_complete = open == 0;
            }
            "error" => turn.fail(
                item.get("content")
                    .or_else(|| item.get("error"))
                    .and_then(error_text)
                    .unwrap_or_else(|| "error".to_owned()),
            ),
            _ => {}
        }
    }
}
