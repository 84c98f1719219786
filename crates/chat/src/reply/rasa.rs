//! Replies of Rasa: the messages of the REST channel, and the tracker's events.

use serde_json::{Map, Value};

use super::turn::{AfterResult, Outcome, TurnBuilder};
use crate::lenient::first_text;

/// Whether an object is a message to the user.
pub(super) fn is_bot_message(map: &Map<String, Value>) -> bool {
    map.contains_key("recipient_id")
        && ["text", "image", "buttons", "custom", "attachment"].iter().any(|name| map.contains_key(*name))
}

/// Reads the messages of the REST channel. They do not report which actions ran.
pub(super) fn read_bot_messages(messages: &[Value], turn: &mut TurnBuilder) {
    turn.is_complete = true;
    turn.calls_unreported = true;
    for message in messages.iter().filter_map(Value::as_object) {
        turn.add_text(first_text(message, &["text"]).unwrap_or_default());
        turn.end_line();
        turn.set_conversation_id(first_text(message, &["recipient_id"]));
    }
}

/// Reads the conversation of a tracker. Custom actions count as calls; their arguments are the slots that were set
/// since the previous action.
pub(super) fn read_tracker(tracker: &Map<String, Value>, turn: &mut TurnBuilder) {
    turn.is_complete = true;
    turn.after_result = AfterResult::SameStep;
    turn.set_conversation_id(first_text(tracker, &["sender_id"]));
    let mut slots = Map::new();
    for event in tracker.get("events").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        let name = first_text(event, &["name"]).unwrap_or_default();
        let kind = first_text(event, &["event"]).unwrap_or_default();
        match kind {
            "user" => {
                turn.discard_all();
                slots.clear();
            }
            "bot" => {
                turn.add_text(first_text(event, &["text"]).unwrap_or_default());
                turn.end_line();
            }
            "slot" => {
                slots.insert(name.to_owned(), event.get("value").cloned().unwrap_or_default());
            }
            "action" | "action_execution_rejected" => {
                let arguments = std::mem::take(&mut slots);
                if is_custom_action(name) {
                    let call = turn.new_call(None, name);
                    turn.set_arguments(call, &Value::Object(arguments));
                    turn.set_outcome(call, outcome(kind == "action"));
                }
            }
            _ => {}
        }
    }
}

fn outcome(succeeded: bool) -> Outcome {
    if succeeded {
        Outcome { success: Some(true), ..Outcome::default() }
    } else {
        Outcome { success: Some(false), error: Some("the action was rejected".to_owned()), result: None }
    }
}

/// Whether an action is the application's own. Others send predefined responses or are built in.
fn is_custom_action(name: &str) -> bool {
    const BUILT_IN: [&str; 12] = [
        "action_listen",
        "action_session_start",
        "action_restart",
        "action_default_fallback",
        "action_deactivate_loop",
        "action_revert_fallback_events",
        "action_default_ask_affirmation",
        "action_default_ask_rephrase",
        "action_two_stage_fallback",
        "action_back",
        "action_extract_slots",
        "action_unlikely_intent",
    ];
    name.starts_with("action_") && !BUILT_IN.contains(&name)
}
