//! Joins calls with the tool results in the conversation.

use std::collections::{HashMap, HashSet};

use karat_core::document::{Message, StepCall};
use serde_json::Value;

use super::open_calls::CallPosition;
use super::step::StepBuilder;
use super::tree::Tree;
use crate::parts::Role;
use crate::vocabulary;
use karat_chat::lenient::is_blank;
use karat_chat::parse_result;

/// Maximum number of later steps that are compared with the step of a call.
const MAX_COMPARED_STEPS: usize = 32;

/// Joins tool results of the conversation with calls: by call id, else by tool name, else by order.
pub(super) fn join(tree: &Tree<'_>, builders: &mut [StepBuilder]) {
    join_by_id(builders);
    if !has_open_calls(builders) {
        return;
    }
    let call_ids: HashSet<String> =
        builders.iter().flat_map(|builder| &builder.calls).filter_map(|call| call.id.clone()).collect();
    for at in 0..builders.len().saturating_sub(1) {
        if !builders[at].calls.iter().any(is_open) {
            continue;
        }
        // The results that the next step has in addition to this one.
        let previous = if builders[at + 1].is_delta { &[] } else { builders[at].input.as_slice() };
        let known = previous.iter().filter(|message| lacks_call_id(message, &call_ids)).count();
        let next = builders[at + 1].input.iter().filter(|message| lacks_call_id(message, &call_ids));
        let next: Vec<Message> = next.skip(known).cloned().collect();
        let calls = &mut builders[at].calls;
        let fits = |(call, message): (&StepCall, &Message)| message.name.as_ref().is_none_or(|name| *name == call.name);
        if next.len() == calls.len() && calls.iter().zip(&next).all(fits) {
            // Every call has a result, including those already joined with a tool span.
            for (call, message) in calls.iter_mut().zip(&next) {
                apply_result(call, message);
            }
            continue;
        }
        for message in next {
            let calls = &mut builders[at].calls;
            let by_name = calls.iter().position(|call| is_open(call) && message.name.as_ref() == Some(&call.name));
            let unnamed = || message.name.is_none().then(|| calls.iter().position(is_open)).flatten();
            if let Some(position) = by_name.or_else(unnamed) {
                apply_result(&mut builders[at].calls[position], &message);
            }
        }
    }
    if has_open_calls(builders) {
        // The results of the last calls may be only in the enclosing agent span.
        for index in tree.with_role(Role::Agent) {
            let Some(conversation) = vocabulary::conversation(&tree.spans[index]) else { continue };
            for message in conversation.messages.iter().filter(|message| message.role == "tool") {
                let calls = builders.iter_mut().flat_map(|builder| &mut builder.calls);
                if let Some(call) = calls.into_iter().find(|call| call.id.is_some() && call.id == message.tool_call_id)
                {
                    apply_result(call, message);
                }
            }
        }
    }
}

/// Whether a call has neither a result nor an error. Some sources write an empty result into every tool span.
fn is_open(call: &StepCall) -> bool {
    is_blank(&call.result) && call.error.is_none()
}

fn has_open_calls(builders: &[StepBuilder]) -> bool {
    builders.iter().flat_map(|builder| &builder.calls).any(is_open)
}

/// Joins by call id. Some models number their calls from zero in each answer: then the result of a call is the first
/// one that was not yet in the input of its step.
fn join_by_id(builders: &mut [StepBuilder]) {
    let mut results_by_id: HashMap<&str, Vec<(usize, &Message)>> = HashMap::new();
    for (at, builder) in builders.iter().enumerate() {
        for message in builder.input.iter().filter(|message| message.role == "tool") {
            if let Some(id) = &message.tool_call_id {
                results_by_id.entry(id).or_default().push((at, message));
            }
        }
    }
    if results_by_id.is_empty() {
        return;
    }
    let mut matches: Vec<(CallPosition, Message)> = Vec::new();
    for (step, builder) in builders.iter().enumerate() {
        for (at, call) in builder.calls.iter().enumerate() {
            let Some(results) = call.id.as_deref().and_then(|id| results_by_id.get(id)) else { continue };
            if let Some(message) = find_result(builders, results, step) {
                matches.push(((step, at), message.clone()));
            }
        }
    }
    for (position, message) in matches {
        apply_result(&mut builders[position.0].calls[position.1], &message);
    }
}

/// Finds the result of a call of this step among all results with its id, ordered by the step they were input to.
fn find_result<'a>(builders: &[StepBuilder], results: &[(usize, &'a Message)], step: usize) -> Option<&'a Message> {
    let known = results.iter().filter(|(at, _)| *at == step).count();
    let later = &results[results.partition_point(|(at, _)| *at <= step)..];
    let groups = || later.chunk_by(|left, right| left.0 == right.0);
    let of_group = |group: &[(usize, &'a Message)]| {
        let skipped = if builders[group[0].0].is_delta { 0 } else { known };
        group.get(skipped).map(|(_, message)| *message)
    };
    // Parallel agents may use the same call ids: prefer steps of the same conversation.
    let mut same_conversation =
        groups().take(MAX_COMPARED_STEPS).filter(|group| may_continue(&builders[step], &builders[group[0].0]));
    if let Some(message) = same_conversation.find_map(of_group).or_else(|| groups().find_map(of_group)) {
        return Some(message);
    }
    // Steps with the same start time may be in the wrong order.
    results.first().map(|(_, message)| *message).filter(|_| later.is_empty() && known > 0)
}

/// Whether a later step may continue the conversation: it has the same agent and the same first question.
fn may_continue(step: &StepBuilder, later: &StepBuilder) -> bool {
    step.agent == later.agent && (step.is_delta || later.is_delta || question(step) == question(later))
}

fn question(builder: &StepBuilder) -> Option<&str> {
    builder.input.iter().find(|message| message.role == "user").map(|message| message.content.as_str())
}

/// Whether a tool message has no call id, or one that no call has: some instrumentations record the id of an item with
/// the call and the id of the call with its result.
fn lacks_call_id(message: &Message, call_ids: &HashSet<String>) -> bool {
    message.role == "tool" && message.tool_call_id.as_ref().is_none_or(|id| !call_ids.contains(id))
}

/// Applies a tool message to a call, without overwriting known values.
pub(super) fn apply_result(call: &mut StepCall, message: &Message) {
    if message.is_error {
        if call.error.is_none() {
            call.error = Some(message.content.clone());
        }
        return;
    }
    let is_improvement = call.result.is_null() || is_blank(&call.result) && !message.content.is_empty();
    if is_improvement && (call.error.is_none() || !message.content.is_empty()) {
        call.result = parse_result(&Value::String(message.content.clone()));
    }
    if call.error.is_none() {
        call.error = vocabulary::result_failure(&call.result);
    }
}
