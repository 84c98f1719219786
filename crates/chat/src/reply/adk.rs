//! Events of Google's Agent Development Kit.

use serde_json::{Map, Value};

use super::turn::{Outcome, TurnBuilder};
use super::{Approval, error_text, usage};
use crate::lenient::{first, first_text, is_blank};

/// The call by which ADK asks a person for confirmation.
const CONFIRMATION: &str = "adk_request_confirmation";
const CREDENTIAL: &str = "adk_request_credential";

/// Whether an object is an event.
pub(super) fn is_event(map: &Map<String, Value>) -> bool {
    map.contains_key("author")
        && ["content", "invocationId", "invocation_id", "actions", "errorCode", "error_code", "partial"]
            .iter()
            .any(|name| map.contains_key(*name))
}

/// Reads the events of a run.
pub(super) fn read_events(events: &[Value], turn: &mut TurnBuilder) {
    let mut partial = String::new();
    for (index, event) in events.iter().enumerate() {
        turn.at_event(index);
        let Some(event) = event.as_object() else { continue };
        push_event(event, &mut partial, turn);
    }
    // The last event of a streamed text repeats the partial ones, and calls have results unless they are long-running.
    turn.is_complete =
        partial.is_empty() && (turn.approval.is_some() || !events.last().is_some_and(has_unanswered_call));
    turn.add_text(&partial);
}

fn push_event(event: &Map<String, Value>, partial: &mut String, turn: &mut TurnBuilder) {
    if let Some(error) = first_text(event, &["errorMessage", "error_message", "errorCode", "error_code"]) {
        turn.fail(error.to_owned());
    } else if !event.contains_key("author")
        && let Some(error) = first(event, &["error", "detail"])
    {
        turn.fail(error_text(error).unwrap_or_else(|| error.to_string()));
    }
    let parts = event.get("content").and_then(|content| content.get("parts")?.as_array());
    let parts = parts.map(Vec::as_slice).unwrap_or_default();
    let is_partial = event.get("partial").and_then(Value::as_bool) == Some(true);
    if is_partial {
        for text in parts.iter().filter(|part| !is_thought(part)).filter_map(|part| part.get("text")?.as_str()) {
            if !text.is_empty() {
                turn.mark_text();
            }
            partial.push_str(text);
        }
        return;
    }
    if first_text(event, &["author"]) == Some("user") {
        if parts.iter().any(|part| part.get("text").is_some_and(Value::is_string)) {
            turn.discard_all();
        }
    } else if parts.iter().any(|part| part.as_object().is_some_and(starts_step)) {
        partial.clear();
        turn.start_step();
    }
    for part in parts.iter().filter_map(Value::as_object) {
        push_part(part, first_text(event, &["author"]) == Some("user"), turn);
    }
    let actions = event.get("actions").and_then(Value::as_object);
    let confirmations =
        actions.and_then(|actions| first(actions, &["requestedToolConfirmations", "requested_tool_confirmations"]));
    for id in confirmations.and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        turn.clear_success(id);
    }
    if let Some(usage) = usage::read(first(event, &["usageMetadata", "usage_metadata"])) {
        turn.add_usage(&usage);
    }
    turn.set_model(first_text(event, &["modelVersion", "model_version"]));
    turn.set_stop_reason(first_text(event, &["finishReason", "finish_reason"]));
}

/// Whether an event has a call whose result must follow.
fn has_unanswered_call(event: &Value) -> bool {
    let Some(event) = event.as_object() else { return false };
    let is_long_running =
        first(event, &["longRunningToolIds", "long_running_tool_ids"]).is_some_and(|ids| !is_blank(ids));
    let parts = event.get("content").and_then(|content| content.get("parts")?.as_array()).into_iter().flatten();
    let mut parts = parts.filter_map(Value::as_object);
    !is_long_running && parts.any(|part| first(part, &["functionCall", "function_call"]).is_some())
}

fn is_thought(part: &Value) -> bool {
    part.get("thought").and_then(Value::as_bool) == Some(true)
}

fn starts_step(part: &Map<String, Value>) -> bool {
    ["text", "functionCall", "function_call", "executableCode", "executable_code"]
        .iter()
        .any(|name| part.get(*name).is_some_and(|value| !value.is_null()))
}

fn push_part(part: &Map<String, Value>, is_user: bool, turn: &mut TurnBuilder) {
    let object = |names: &[&str]| first(part, names).and_then(Value::as_object);
    if let Some(text) = first_text(part, &["text"]).filter(|_| !is_user) {
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            turn.add_reasoning(text);
        } else {
            turn.add_text(text);
        }
    }
    if let Some(function) = object(&["functionCall", "function_call"]) {
        push_call(function, turn);
    }
    if let Some(function) = object(&["functionResponse", "function_response"]) {
        let name = first_text(function, &["name"]);
        if !name.is_some_and(is_approval_request) {
            push_response(first_text(function, &["id"]), name, function.get("response").unwrap_or(&Value::Null), turn);
        }
    }
    if let Some(code) = object(&["executableCode", "executable_code"]) {
        let call = turn.new_call(None, "code_execution");
        turn.set_arguments(call, &Value::Object(code.clone()));
    }
    if let Some(result) = object(&["codeExecutionResult", "code_execution_result"]) {
        let output = result.get("output").unwrap_or(&Value::Null);
        let failed = first_text(result, &["outcome"]).is_some_and(|outcome| outcome != "OUTCOME_OK");
        turn.finish_call(None, Some("code_execution"), Outcome::known(output, failed));
    }
}

/// Whether a call is a question to a person, not a tool of the agent.
pub(super) fn is_approval_request(name: &str) -> bool {
    matches!(name, CONFIRMATION | CREDENTIAL)
}

pub(super) fn push_call(function: &Map<String, Value>, turn: &mut TurnBuilder) {
    let name = first_text(function, &["name"]).unwrap_or_default();
    let id = first_text(function, &["id"]);
    let arguments = function.get("args").unwrap_or(&Value::Null);
    if !is_approval_request(name) {
        let call = turn.new_call(id, name);
        turn.set_arguments(call, arguments);
        return;
    }
    let original = arguments.get("originalFunctionCall").or_else(|| arguments.get("original_function_call"));
    let call_id =
        original.and_then(|call| call.get("id")?.as_str()).or_else(|| arguments.get("functionCallId")?.as_str());
    let confirmation = arguments.get("toolConfirmation").or_else(|| arguments.get("tool_confirmation"));
    let hint = confirmation.and_then(|confirmation| confirmation.get("hint")?.as_str()).filter(|hint| !hint.is_empty());
    let question = hint.map(str::to_owned).or_else(|| turn.describe_call(call_id?));
    turn.request_approval(Approval {
        question: question.unwrap_or_else(|| name.to_owned()),
        id: id.map(str::to_owned),
        call_id: call_id.map(str::to_owned),
        request: Value::Object(function.clone()),
    });
}

/// Finishes a call. ADK reports a failure as the key `error` of the response.
pub(super) fn push_response(id: Option<&str>, name: Option<&str>, response: &Value, turn: &mut TurnBuilder) {
    let outcome = match response.get("error").filter(|error| !error.is_null()) {
        Some(error) => Outcome { result: Some(response.clone()), ..Outcome::failed(error) },
        None => Outcome::known(response, false),
    };
    turn.finish_call(id, name, outcome);
}
