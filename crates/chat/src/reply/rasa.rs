//! Replies of Rasa: the messages of the REST channel, and the tracker's events.

use serde_json::{Map, Value};

use super::turn::{Outcome, Turn};
use crate::lenient::first_text;

/// Whether an object is a message to the user.
pub(super) fn is_bubble(map: &Map<String, Value>) -> bool {
    map.contains_key("recipient_id")
        && ["text", "image", "buttons", "custom", "attachment"].iter().any(|name| map.contains_key(*name))
}

/// Reads the messages of the REST channel. They do not tell which actions ran.
pub(super) fn read_bubbles(bubbles: &[Value], turn: &mut Turn) {
    turn.is_complete = true;
    turn.calls_unreported = true;
    for bubble in bubbles.iter().filter_map(Value::as_object) {
        turn.add_paragraph(first_text(bubble, &["text"]).unwrap_or_default());
        turn.set_conversation_id(first_text(bubble, &["recipient_id"]));
    }
}

/// Reads the conversation of a tracker. Custom actions count as calls, with the slots that they set as results.
pub(super) fn read_tracker(tracker: &Map<String, Value>, turn: &mut Turn) {
    turn.is_complete = true;
    turn.set_conversation_id(first_text(tracker, &["sender_id"]));
    for event in tracker.get("events").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        match first_text(event, &["event"]).unwrap_or_default() {
            // The first messages of a session are the channel's, such as `/session_start`.
            "user" => turn.discard_all(),
            "bot" => turn.add_paragraph(first_text(event, &["text"]).unwrap_or_default()),
            "action" => {
                let name = first_text(event, &["name"]).unwrap_or_default();
                if is_custom_action(name) {
                    turn.new_call(None, name);
                }
            }
            "action_execution_rejected" => {
                let name = first_text(event, &["name"]).unwrap_or_default();
                turn.finish_call(
                    None,
                    Some(name),
                    Outcome::failed(&Value::String("the action was rejected".to_owned())),
                );
            }
            _ => {}
        }
    }
}

/// Whether an action is the application's own. Others send prepared texts, or belong to Rasa itself.
fn is_custom_action(name: &str) -> bool {
    const OWN: [&str; 12] = [
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
    name.starts_with("action_") && !OWN.contains(&name)
}
