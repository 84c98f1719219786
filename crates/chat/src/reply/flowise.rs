//! Replies of Flowise's prediction API, whole and streamed.

use serde_json::{Map, Value};

use super::turn::{Outcome, TurnBuilder};
use super::{Approval, event_parts};
use crate::lenient::{first_text, is_blank, text_of};

/// Whether an object is a reply.
pub(super) fn is_reply(map: &Map<String, Value>) -> bool {
    map.contains_key("text")
        && map.contains_key("chatId")
        && (map.contains_key("chatMessageId") || map.contains_key("usedTools"))
}

/// Whether an event is specific to Flowise. Other protocols use the names of its remaining events too.
pub(super) fn is_event(name: &str, data: &Value) -> bool {
    match name {
        "token" | "start" => data.is_string(),
        "usedTools" | "agentFlowEvent" | "nextAgentFlow" => true,
        _ => false,
    }
}

/// Reads a reply that is not streamed.
pub(super) fn read_reply(reply: &Map<String, Value>, turn: &mut TurnBuilder) {
    turn.is_complete = true;
    push_tools(reply.get("usedTools"), turn);
    turn.add_text(first_text(reply, &["text"]).unwrap_or_default());
    read_ids(reply, turn);
    if let Some(action) = reply.get("action").filter(|action| !is_blank(action)) {
        request_approval(action, first_text(reply, &["text"]).unwrap_or_default(), turn);
    }
}

fn read_ids(holder: &Map<String, Value>, turn: &mut TurnBuilder) {
    turn.set_conversation_id(first_text(holder, &["chatId"]));
}

/// Records a request for approval. The question is the text of the reply.
fn request_approval(action: &Value, text: &str, turn: &mut TurnBuilder) {
    let question = if text.is_empty() { "proceed?" } else { text };
    turn.request_approval(Approval {
        question: question.to_owned(),
        id: action.get("id").map(text_of),
        call_id: None,
        request: action.clone(),
    });
}

fn push_tools(tools: Option<&Value>, turn: &mut TurnBuilder) {
    for tool in tools.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        let call = turn.new_call(None, first_text(tool, &["tool"]).unwrap_or_default());
        turn.set_arguments(call, tool.get("toolInput").unwrap_or(&Value::Null));
        let outcome = match tool.get("error").filter(|error| !is_blank(error)) {
            Some(error) => Outcome::failed(error),
            None => Outcome::known(tool.get("toolOutput").unwrap_or(&Value::Null), false),
        };
        turn.set_outcome(call, outcome);
    }
}

/// Reads the events of a stream.
pub(super) fn read_stream(events: &[Value], turn: &mut TurnBuilder) {
    let mut text = String::new();
    let mut tools = None;
    let mut action = None;
    for (index, event) in events.iter().enumerate() {
        turn.at_event(index);
        match event_parts(event) {
            (Some("token"), Value::String(piece)) => {
                turn.mark_text();
                text.push_str(piece);
            }
            // Each event repeats the list so far; the last one is complete.
            (Some("usedTools"), data) => tools = Some(data),
            (Some("action"), data) => action = Some(data).filter(|data| !is_blank(data)),
            (Some("metadata"), Value::Object(metadata)) => read_ids(metadata, turn),
            (Some("error"), error) => turn.fail(text_of(error)),
            (Some("end"), _) => turn.is_complete = true,
            _ => {}
        }
    }
    push_tools(tools, turn);
    turn.add_text(&text);
    if let Some(action) = action {
        request_approval(action, &text, turn);
    }
}
