//! Replies of Dify's chat API, blocking and streamed.

use std::collections::HashMap;

use karat_core::trace::Usage;
use serde_json::{Map, Value};

use super::turn::{CallIndex, Outcome, TurnBuilder};
use super::{error_text, usage};
use crate::lenient::{first_number, first_text, parse_nested};

/// Whether an object is a reply or an event.
pub(super) fn is_known(map: &Map<String, Value>) -> bool {
    let has_ids =
        ["message_id", "task_id", "conversation_id", "workflow_run_id"].iter().any(|name| map.contains_key(*name));
    has_ids && (map.get("event").is_some_and(Value::is_string) || map.contains_key("answer"))
}

/// Reads a blocking reply.
pub(super) fn read_reply(reply: &Map<String, Value>, turn: &mut TurnBuilder) {
    turn.is_complete = true;
    // Agents report their calls only in streams; a blocking reply has only the text.
    turn.calls_unreported = true;
    turn.set_conversation_id(first_text(reply, &["conversation_id"]));
    turn.add_text(first_text(reply, &["answer"]).unwrap_or_default());
    read_metadata(reply, turn);
}

fn read_metadata(holder: &Map<String, Value>, turn: &mut TurnBuilder) {
    let usage = holder.get("metadata").and_then(|metadata| metadata.get("usage")).and_then(Value::as_object);
    if let Some(usage) = usage {
        let cost_usd =
            first_number(usage, &["total_price"]).filter(|_| first_text(usage, &["currency"]) == Some("USD"));
        turn.usage = usage::read(Some(&Value::Object(usage.clone()))).map(|usage| Usage { cost_usd, ..usage });
    }
}

/// Reads the events of a stream.
pub(super) fn read_stream(events: &[Value], turn: &mut TurnBuilder) {
    let mut thoughts: HashMap<&str, Vec<CallIndex>> = HashMap::new();
    turn.calls_unreported = true;
    for (index, event) in events.iter().enumerate() {
        turn.at_event(index);
        let Some(event) = event.as_object() else { continue };
        turn.set_conversation_id(first_text(event, &["conversation_id"]));
        let kind = first_text(event, &["event"]).unwrap_or_default();
        match kind {
            "message" | "agent_message" => {
                turn.calls_unreported &= kind == "message";
                turn.add_text(first_text(event, &["answer"]).unwrap_or_default());
            }
            "message_replace" => turn.replace_text(first_text(event, &["answer"]).unwrap_or_default()),
            "agent_thought" => {
                turn.calls_unreported = false;
                push_thought(event, &mut thoughts, turn);
            }
            "message_end" => {
                read_metadata(event, turn);
                turn.is_complete = true;
            }
            "workflow_finished" => {
                let data = event.get("data");
                if let Some(error) = data.and_then(|data| data.get("error")).and_then(error_text) {
                    turn.fail(error);
                }
            }
            "error" => {
                turn.fail(first_text(event, &["message", "code"]).unwrap_or("error").to_owned());
                turn.is_complete = true;
            }
            _ => {}
        }
    }
}

/// Adds the calls of a thought. Later events with the same id complete it.
fn push_thought<'v>(
    event: &'v Map<String, Value>,
    thoughts: &mut HashMap<&'v str, Vec<CallIndex>>,
    turn: &mut TurnBuilder,
) {
    let Some(tools) = first_text(event, &["tool"]) else { return };
    let id = first_text(event, &["id"]).unwrap_or_default();
    let names: Vec<&str> = tools.split(';').filter(|name| !name.is_empty()).collect();
    let calls = thoughts.entry(id).or_default();
    for name in names.iter().skip(calls.len()) {
        calls.push(turn.new_call(None, name));
    }
    let input = first_text(event, &["tool_input"]).unwrap_or_default();
    let observation = first_text(event, &["observation"]);
    for (call, name) in calls.iter().zip(&names) {
        let arguments = select_tool_value(input, name, names.len()).unwrap_or_else(|| Value::String(input.to_owned()));
        turn.set_arguments(*call, &arguments);
        if let Some(observation) = observation {
            let result = select_tool_value(observation, name, names.len());
            let result = result.unwrap_or_else(|| Value::String(observation.to_owned()));
            turn.set_outcome(*call, Outcome::unknown(&result));
        }
    }
}

/// Parses JSON text and returns the value of a tool, if the text is an object with a key per tool.
fn select_tool_value(text: &str, name: &str, tools: usize) -> Option<Value> {
    let Some(Value::Object(map)) = parse_nested(text) else { return None };
    match map.get(name) {
        Some(part) if map.len() <= tools => Some(part.clone()),
        _ => Some(Value::Object(map)),
    }
}
