//! The Vercel AI SDK: UI message streams and UI messages.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::turn::{CallIndex, Outcome, TurnBuilder};
use super::{Approval, usage};
use crate::lenient::{first, first_text};

/// Whether a message has parts of the SDK's user interface, where calls and results are one part.
pub(super) fn is_ui_message(message: &Map<String, Value>) -> bool {
    let is_ui_part = |part: &Value| {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        matches!(kind, "step-start" | "dynamic-tool" | "tool-invocation")
            || kind.starts_with("tool-") && part.get("toolCallId").is_some() && part.get("state").is_some()
    };
    let parts = message.get("parts").and_then(Value::as_array);
    message.get("role").is_some_and(Value::is_string) && parts.into_iter().flatten().any(is_ui_part)
}

/// Adds a UI message. A user message discards everything before it.
pub(super) fn push_ui_message(message: &Map<String, Value>, turn: &mut TurnBuilder) {
    match first_text(message, &["role"]) {
        Some("user") => return turn.discard_all(),
        Some("assistant") => turn.start_step(),
        _ => return,
    }
    for part in message.get("parts").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        match first_text(part, &["type"]).unwrap_or_default() {
            "step-start" => turn.start_step(),
            "text" => turn.add_text(first_text(part, &["text"]).unwrap_or_default()),
            "reasoning" => turn.add_reasoning(first_text(part, &["text", "reasoning"]).unwrap_or_default()),
            "tool-invocation" => {
                if let Some(inner) = part.get("toolInvocation").and_then(Value::as_object) {
                    push_tool_part(first_text(inner, &["toolName"]).unwrap_or_default(), inner, turn);
                }
            }
            "dynamic-tool" => push_tool_part(first_text(part, &["toolName"]).unwrap_or_default(), part, turn),
            kind => {
                if let Some(name) = kind.strip_prefix("tool-") {
                    push_tool_part(name, part, turn);
                }
            }
        }
    }
    push_message_metadata(message.get("metadata"), turn);
}

fn push_tool_part(name: &str, part: &Map<String, Value>, turn: &mut TurnBuilder) {
    let id = first_text(part, &["toolCallId"]);
    let call = turn.new_call(id, name);
    turn.set_arguments(call, first(part, &["input", "args", "rawInput"]).unwrap_or(&Value::Null));
    match first_text(part, &["state"]).unwrap_or_default() {
        "output-available" | "result" => {
            let result = first(part, &["output", "result"]).unwrap_or(&Value::Null);
            turn.set_outcome(call, Outcome::known(result, false));
        }
        "output-error" => turn.set_outcome(call, Outcome::failed(part.get("errorText").unwrap_or(&Value::Null))),
        "approval-requested" => {
            let approval = part.get("approval").and_then(Value::as_object);
            let reason = approval.and_then(|approval| first_text(approval, &["requestReason", "reason"]));
            let approval_id = approval.and_then(|approval| first_text(approval, &["id"]));
            request_approval(approval_id, id, reason, part, turn);
        }
        _ => {}
    }
}

/// Records a request for the approval of a call.
pub(super) fn request_approval(
    id: Option<&str>,
    call_id: Option<&str>,
    reason: Option<&str>,
    request: &Map<String, Value>,
    turn: &mut TurnBuilder,
) {
    let question = reason.map(str::to_owned).or_else(|| turn.describe_call(call_id?));
    turn.request_approval(Approval {
        question: question.unwrap_or_else(|| "approve the call?".to_owned()),
        id: id.map(str::to_owned),
        call_id: call_id.map(str::to_owned),
        request: Value::Object(request.clone()),
    });
}

/// Reads usage and model from the metadata of a message, as the SDK's documentation recommends.
fn push_message_metadata(metadata: Option<&Value>, turn: &mut TurnBuilder) {
    let Some(metadata) = metadata.and_then(Value::as_object) else { return };
    if let Some(usage) = usage::read(first(metadata, &["totalUsage", "usage"])) {
        turn.usage = Some(usage);
    }
    turn.set_model(first_text(metadata, &["model", "modelId"]));
}

/// Reads the parts of a UI message stream.
pub(super) fn read_stream(parts: &[Value], turn: &mut TurnBuilder) {
    let mut pending: Vec<ApprovalRequest<'_>> = Vec::new();
    let mut decided: HashSet<&str> = HashSet::new();
    for (index, part) in parts.iter().enumerate() {
        turn.at_event(index);
        let Some(part) = part.as_object() else { continue };
        let text = |name: &str| part.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let call_id = text("toolCallId");
        match text("type").unwrap_or_default() {
            "start-step" => turn.start_step(),
            "reset-step" => turn.discard_step(),
            "text-delta" => turn.add_text(text("delta").unwrap_or_default()),
            "reasoning-delta" => turn.add_reasoning(text("delta").unwrap_or_default()),
            "tool-input-start" => {
                call(call_id, text("toolName"), turn);
            }
            "tool-input-delta" => {
                if let (Some(call), Some(piece)) = (call_id.and_then(|id| turn.find_call(id)), text("inputTextDelta")) {
                    turn.add_arguments(call, piece);
                }
            }
            "tool-input-available" => {
                let call = call(call_id, text("toolName"), turn);
                turn.set_arguments(call, part.get("input").unwrap_or(&Value::Null));
            }
            "tool-input-error" => {
                let call = call(call_id, text("toolName"), turn);
                turn.set_arguments(call, part.get("input").unwrap_or(&Value::Null));
                turn.set_outcome(call, Outcome::failed(part.get("errorText").unwrap_or(&Value::Null)));
            }
            "tool-output-available" => {
                let output = part.get("output").unwrap_or(&Value::Null);
                turn.finish_call(call_id, None, Outcome::known(output, false));
            }
            "tool-output-error" => {
                let error = part.get("errorText").unwrap_or(&Value::Null);
                turn.finish_call(call_id, None, Outcome::failed(error));
            }
            "tool-output-denied" => turn.finish_call(call_id, None, Outcome::default()),
            "tool-approval-request" if part.get("isAutomatic").and_then(Value::as_bool) != Some(true) => {
                pending.push(ApprovalRequest {
                    id: text("approvalId"),
                    call_id,
                    reason: text("reason"),
                    request: part,
                });
            }
            "tool-approval-response" => {
                decided.extend(text("approvalId"));
            }
            "start" | "message-metadata" => push_message_metadata(part.get("messageMetadata"), turn),
            "finish" => {
                push_message_metadata(part.get("messageMetadata"), turn);
                turn.set_stop_reason(text("finishReason"));
                turn.is_complete = true;
            }
            "error" => turn.fail(text("errorText").unwrap_or("error").to_owned()),
            "abort" => turn.fail(text("reason").map_or("aborted".to_owned(), |reason| format!("aborted: {reason}"))),
            _ => {}
        }
    }
    for request in pending {
        let is_decided =
            request.id.is_some_and(|id| decided.contains(id)) || request.call_id.is_some_and(|id| turn.is_answered(id));
        if !is_decided {
            request_approval(request.id, request.call_id, request.reason, request.request, turn);
        }
    }
}

/// A request for approval.
struct ApprovalRequest<'v> {
    id: Option<&'v str>,
    call_id: Option<&'v str>,
    reason: Option<&'v str>,
    request: &'v Map<String, Value>,
}

fn call(id: Option<&str>, name: Option<&str>, turn: &mut TurnBuilder) -> CallIndex {
    turn.call(id, name.unwrap_or_default())
}
