//! Mastra's `generate` and `stream`, and the results of the Vercel AI SDK's `generateText`, which have the same shape.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::turn::{Outcome, TurnBuilder};
use super::{ai_sdk, error_text, usage};
use crate::lenient::{first, first_text, is_blank};

/// Whether an object is the result of `generate`.
pub(super) fn is_result(map: &Map<String, Value>) -> bool {
    map.contains_key("text")
        && (map.get("steps").is_some_and(Value::is_array) || map.contains_key("toolCalls"))
        && (map.contains_key("finishReason") || map.contains_key("usage"))
}

/// Whether an object is a chunk of a stream.
pub(super) fn is_chunk(map: &Map<String, Value>) -> bool {
    map.get("type").is_some_and(Value::is_string) && map.contains_key("from") && map.contains_key("payload")
}

/// Reads the result of `generate`.
pub(super) fn read_result(result: &Map<String, Value>, turn: &mut TurnBuilder) {
    turn.is_complete = true;
    let denied = denied_calls(result);
    let steps = result.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for step in steps.iter().filter_map(Value::as_object) {
        push_step(step, turn);
    }
    for id in denied {
        turn.finish_call(Some(id), None, Outcome::default());
    }
    // Calls that no step has, such as those that wait for an approval.
    push_calls(result, true, turn);
    if steps.is_empty() || !turn.has_text() {
        turn.start_step();
        turn.add_text(first_text(result, &["text"]).unwrap_or_default());
    }
    turn.usage = usage::read(first(result, &["totalUsage", "usage"]));
    turn.set_stop_reason(first_text(result, &["finishReason"]));
    turn.set_model(result.get("response").and_then(|response| response.get("modelId")?.as_str()));
    if let Some(error) = result.get("error").filter(|error| !is_blank(error)).and_then(error_text) {
        turn.fail(error);
    }
    let suspended = result.get("suspendPayload").and_then(Value::as_object).filter(|payload| !payload.is_empty());
    if let Some(request) = suspended {
        request_approval(first_text(result, &["runId"]), request, turn);
    }
}

/// Returns the ids of calls that a person denied. Only the messages that Mastra stores distinguish them.
fn denied_calls(result: &Map<String, Value>) -> HashSet<&str> {
    let steps = result.get("steps").and_then(Value::as_array).into_iter().flatten();
    let stored = steps.filter_map(|step| step.get("response")?.get("dbMessages")?.as_array()).flatten();
    let parts = stored.filter_map(|message| message.get("content")?.get("parts")?.as_array()).flatten();
    let calls = parts.filter_map(|part| part.get("toolInvocation"));
    calls
        .filter(|call| call.get("state").is_some_and(|state| state == "output-denied"))
        .filter_map(|call| call.get("toolCallId")?.as_str())
        .collect()
}

/// Records a request for the approval of a call. The id is that of the run to resume.
fn request_approval(run_id: Option<&str>, request: &Map<String, Value>, turn: &mut TurnBuilder) {
    let inner = request.get("suspendPayload").and_then(Value::as_object).unwrap_or(request);
    let question = first_text(inner, &["question", "message", "reason"]);
    ai_sdk::request_approval(run_id, first_text(request, &["toolCallId"]), question, request, turn);
}

fn push_step(step: &Map<String, Value>, turn: &mut TurnBuilder) {
    turn.start_step();
    if let Some(reasoning) = first_text(step, &["reasoningText", "reasoning"]) {
        turn.add_reasoning(reasoning);
    }
    turn.add_text(first_text(step, &["text"]).unwrap_or_default());
    push_calls(step, false, turn);
    // A failed call has no entry in the list of results.
    for part in step.get("content").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        let id = first_text(part, &["toolCallId"]);
        if id.is_none_or(|id| turn.is_answered(id)) {
            continue;
        }
        match first_text(part, &["type"]) {
            Some("tool-result") => turn.finish_call(id, None, outcome_of_output(part)),
            Some("tool-error") => turn.finish_call(id, None, failure(part)),
            _ => {}
        }
    }
}

/// Adds the lists of calls and results.
fn push_calls(holder: &Map<String, Value>, only_unknown: bool, turn: &mut TurnBuilder) {
    let list = |name: &str| holder.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(payload);
    for call in list("toolCalls") {
        let id = first_text(call, &["toolCallId", "id"]);
        if only_unknown && id.is_none_or(|id| turn.find_call(id).is_some()) {
            continue;
        }
        push_call(call, turn);
    }
    for result in list("toolResults") {
        let id = first_text(result, &["toolCallId", "id"]);
        if only_unknown && id.is_none_or(|id| turn.is_answered(id)) {
            continue;
        }
        turn.finish_call(id, None, outcome(result));
    }
}

/// Mastra wraps calls and results, the SDK does not.
fn payload(item: &Value) -> Option<&Map<String, Value>> {
    item.get("payload").unwrap_or(item).as_object()
}

fn push_call(call: &Map<String, Value>, turn: &mut TurnBuilder) {
    let index =
        turn.call(first_text(call, &["toolCallId", "id"]), first_text(call, &["toolName", "name"]).unwrap_or_default());
    turn.set_arguments(index, first(call, &["args", "input"]).unwrap_or(&Value::Null));
}

fn outcome(result: &Map<String, Value>) -> Outcome {
    let value = first(result, &["result", "output"]).unwrap_or(&Value::Null);
    Outcome::known(value, result.get("isError").and_then(Value::as_bool) == Some(true))
}

fn failure(part: &Map<String, Value>) -> Outcome {
    let error = part.get("error").unwrap_or(&Value::Null);
    Outcome::failed(&error_text(error).map_or_else(|| error.clone(), Value::String))
}

/// Reads an output with its type.
fn outcome_of_output(part: &Map<String, Value>) -> Outcome {
    let output = part.get("output").or_else(|| part.get("result")).unwrap_or(&Value::Null);
    match (output.get("type").and_then(Value::as_str), output.get("value")) {
        (Some(kind), Some(value)) => Outcome::known(value, kind.starts_with("error")),
        _ => outcome(part),
    }
}

/// Reads the chunks of `stream`.
pub(super) fn read_stream(chunks: &[Value], turn: &mut TurnBuilder) {
    let mut requests: Vec<(Option<&str>, &Map<String, Value>)> = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        turn.at_event(index);
        let Some(payload) = chunk.get("payload").and_then(Value::as_object) else { continue };
        let run_id = chunk.get("runId").and_then(Value::as_str);
        let id = first_text(payload, &["toolCallId"]);
        match chunk.get("type").and_then(Value::as_str).unwrap_or_default() {
            "step-start" => turn.start_step(),
            "text-delta" => turn.add_text(first_text(payload, &["text", "textDelta"]).unwrap_or_default()),
            "reasoning-delta" => turn.add_reasoning(first_text(payload, &["text"]).unwrap_or_default()),
            "tool-call-input-streaming-start" => {
                turn.call(id, first_text(payload, &["toolName"]).unwrap_or_default());
            }
            "tool-call-delta" => {
                let piece = first_text(payload, &["argsTextDelta"]);
                if let (Some(call), Some(piece)) = (id.and_then(|id| turn.find_call(id)), piece) {
                    turn.add_arguments(call, piece);
                }
            }
            "tool-call" => push_call(payload, turn),
            "tool-result" => {
                add_missing_call(id, payload, turn);
                turn.finish_call(id, None, outcome(payload));
            }
            "tool-error" => {
                add_missing_call(id, payload, turn);
                turn.finish_call(id, None, failure(payload));
            }
            "tool-output-denied" => {
                add_missing_call(id, payload, turn);
                turn.finish_call(id, None, Outcome::default());
            }
            "tool-call-approval" | "tool-call-suspended" => {
                add_missing_call(id, payload, turn);
                requests.push((run_id, payload));
            }
            "finish" => {
                turn.is_complete = true;
                let output = payload.get("output");
                turn.usage = usage::read(output.and_then(|output| output.get("usage")));
                turn.set_stop_reason(payload.get("stepResult").and_then(|step| step.get("reason")?.as_str()));
            }
            "error" => {
                let error = payload.get("error").unwrap_or(&Value::Null);
                turn.fail(error_text(error).unwrap_or_else(|| error.to_string()));
            }
            "tripwire" | "abort" => {
                turn.fail(first_text(payload, &["reason", "tripwireReason"]).unwrap_or("aborted").to_owned());
            }
            _ => {}
        }
    }
    for (run_id, request) in requests {
        if first_text(request, &["toolCallId"]).is_none_or(|id| !turn.is_answered(id)) {
            request_approval(run_id, request, turn);
            // A suspended run does not send a final chunk.
            turn.is_complete = true;
        }
    }
}

/// Adds the call of a result if the call was in an earlier reply and the result has the tool's name.
fn add_missing_call(id: Option<&str>, payload: &Map<String, Value>, turn: &mut TurnBuilder) {
    if id.is_none_or(|id| turn.find_call(id).is_none()) && first_text(payload, &["toolName"]).is_some() {
        push_call(payload, turn);
    }
}
