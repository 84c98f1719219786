//! The Messages API of Anthropic: whole messages, and streams of events.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::turn::{AfterResult, CallIndex, Outcome, TurnBuilder};
use super::{error_text, usage};
use crate::lenient::first_text;
use crate::messages::result_text;

/// Reads a message that is not streamed.
pub(super) fn read_message(message: &Map<String, Value>, turn: &mut TurnBuilder) {
    turn.is_complete = true;
    turn.set_model(first_text(message, &["model"]));
    turn.set_stop_reason(first_text(message, &["stop_reason"]));
    turn.usage = usage::read(message.get("usage"));
    turn.after_result = AfterResult::SameStep;
    turn.start_step();
    let mut after_call = false;
    for block in message.get("content").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        separate_text(block, &mut after_call, turn);
        push_block(block, turn);
    }
}

/// Begins a new line for text after a call. Consecutive text blocks are one text that citations split.
fn separate_text(block: &Map<String, Value>, after_call: &mut bool, turn: &mut TurnBuilder) {
    match first_text(block, &["type"]) {
        Some("text") if std::mem::take(after_call) => turn.end_line(),
        Some("text" | "thinking") => {}
        _ => *after_call = true,
    }
}

/// Adds a content block. Returns the call if the block is one.
fn push_block(block: &Map<String, Value>, turn: &mut TurnBuilder) -> Option<CallIndex> {
    let kind = first_text(block, &["type"]).unwrap_or_default();
    match kind {
        "text" => turn.add_text(first_text(block, &["text"]).unwrap_or_default()),
        "thinking" => turn.add_reasoning(first_text(block, &["thinking"]).unwrap_or_default()),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let call = turn.new_call(first_text(block, &["id"]), first_text(block, &["name"]).unwrap_or_default());
            turn.set_arguments(call, block.get("input").unwrap_or(&Value::Null));
            return Some(call);
        }
        _ if kind.ends_with("tool_result") => push_result(block, turn),
        _ => {}
    }
    None
}

fn push_result(block: &Map<String, Value>, turn: &mut TurnBuilder) {
    let content = block.get("content").unwrap_or(&Value::Null);
    // Anthropic's server tools report errors as an object whose type ends with `_error`.
    let own_error = content.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("_error"));
    let failed = own_error || block.get("is_error").and_then(Value::as_bool) == Some(true);
    let outcome = if own_error {
        Outcome { result: Some(content.clone()), ..Outcome::failed(content.get("error_code").unwrap_or(content)) }
    } else if first_text(block, &["type"]).is_some_and(|kind| matches!(kind, "tool_result" | "mcp_tool_result")) {
        Outcome::known(&Value::String(result_text(content)), failed)
    } else {
        Outcome::known(content, failed)
    };
    turn.finish_call(first_text(block, &["tool_use_id"]), None, outcome);
}

/// Reads a stream of events; there may be several messages one after another.
pub(super) fn read_stream(events: &[Value], turn: &mut TurnBuilder) {
    let mut calls: HashMap<u64, CallIndex> = HashMap::new();
    let mut usage_so_far = Map::new();
    let mut after_call = false;
    turn.after_result = AfterResult::SameStep;
    for (index, event) in events.iter().enumerate() {
        turn.at_event(index);
        let Some(event) = event.as_object() else { continue };
        let block_index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match first_text(event, &["type"]).unwrap_or_default() {
            "message_start" => {
                add_usage(&mut usage_so_far, turn);
                calls.clear();
                after_call = false;
                turn.start_step();
                turn.is_complete = false;
                if let Some(message) = event.get("message").and_then(Value::as_object) {
                    turn.set_model(first_text(message, &["model"]));
                    extend(&mut usage_so_far, message.get("usage"));
                }
            }
            "content_block_start" => {
                if let Some(block) = event.get("content_block").and_then(Value::as_object) {
                    separate_text(block, &mut after_call, turn);
                    if let Some(call) = push_block(block, turn) {
                        calls.insert(block_index, call);
                    }
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.get("delta").and_then(Value::as_object) {
                    push_delta(delta, calls.get(&block_index).copied(), turn);
                }
            }
            "message_delta" => {
                turn.set_stop_reason(event.get("delta").and_then(|delta| delta.get("stop_reason")?.as_str()));
                // The counts are cumulative.
                extend(&mut usage_so_far, event.get("usage"));
            }
            "message_stop" => turn.is_complete = true,
            "error" => turn.fail(event.get("error").and_then(error_text).unwrap_or_else(|| "error".to_owned())),
            _ => {}
        }
    }
    add_usage(&mut usage_so_far, turn);
}

fn push_delta(delta: &Map<String, Value>, call: Option<CallIndex>, turn: &mut TurnBuilder) {
    match first_text(delta, &["type"]).unwrap_or_default() {
        "text_delta" => turn.add_text(first_text(delta, &["text"]).unwrap_or_default()),
        "thinking_delta" => turn.add_reasoning(first_text(delta, &["thinking"]).unwrap_or_default()),
        "input_json_delta" => {
            if let (Some(call), Some(piece)) = (call, first_text(delta, &["partial_json"])) {
                turn.add_arguments(call, piece);
            }
        }
        _ => {}
    }
}

fn extend(usage: &mut Map<String, Value>, more: Option<&Value>) {
    let more = more.and_then(Value::as_object).into_iter().flatten().filter(|(_, count)| !count.is_null());
    usage.extend(more.map(|(name, count)| (name.clone(), count.clone())));
}

fn add_usage(usage_so_far: &mut Map<String, Value>, turn: &mut TurnBuilder) {
    if let Some(usage) = usage::read(Some(&Value::Object(std::mem::take(usage_so_far)))) {
        turn.add_usage(&usage);
    }
}
